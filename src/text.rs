//! Bytes to bytes: what is shown, sent and written of a command and its output.

pub mod banner;
pub mod encode;
