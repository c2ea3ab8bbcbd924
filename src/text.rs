//! Text as pure functions: bytes in, bytes out. No descriptors, no clock of its own, no dependency on the host.
//!
//! `parser` is the one grammar of terminal output; `sanitize` (for agents) and `safe` (for the console) are what is
//! made of it.

mod csi;
mod parser;
pub mod redact;
pub mod safe;
pub mod sanitize;
mod scan;
pub mod settle;
mod width;
