//! Readiness and buffers: the only place that knows mio.
//!
//! mio is edge-triggered: an event comes once and is only a hint. So a port remembers readiness, and only `WouldBlock`
//! clears it; a descriptor that was not read to the end, for lack of budget or room, stays readable. Both interests are
//! registered once and never changed, so they cannot get out of step with anything.
//!
//! [`poller`] waits, [`port`] reads and writes one descriptor, [`outlet`] queues bytes in front of it.

pub mod outlet;
pub mod poller;
pub mod port;
