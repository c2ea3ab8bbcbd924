//! The journal's format, which the recorder writes, the host feeds, and the command line reads.

pub mod reader;
pub mod record;
