//! Text as pure functions: bytes in, bytes out. No descriptors, no clock of its own, no dependency on the host.
//!
//! `parser` is the one grammar of terminal output; `sanitize` (for agents) and `safe` (for the console) are what is
//! made of it.

pub mod banner;
pub mod count;
mod csi;
pub mod encode;
pub mod ends;
pub mod escape;
pub mod hidden;
mod parser;
pub mod reason;
pub mod redact;
pub mod rows;
pub mod safe;
pub mod sanitize;
mod scan;
pub mod unwrap;
mod utf8;
pub(crate) mod width;
