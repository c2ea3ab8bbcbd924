//! Text as pure functions: bytes in, bytes out. No descriptors, no clock of its own, no dependency on the host.

pub mod sanitize;
