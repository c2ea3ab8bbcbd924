//! Readiness and buffers: the only place that knows mio.
//!
//! mio is edge-triggered: an event comes once and is only a hint. So readiness is remembered per descriptor, and only
//! `WouldBlock` clears it; what is left unread for lack of budget or room is still remembered as readable. Both
//! interests are registered once and never changed, so they cannot get out of step with anything.

pub mod outlet;
pub mod poller;
pub mod port;
