//! The library behind `rexec-host` and `rexec`.

pub mod text;
