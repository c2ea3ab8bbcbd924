//! rexec-host: one place between AI coding agents and the system, under a human's eye.

pub mod core;
pub mod limits;
