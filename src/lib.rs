//! rexec-host: one place between AI coding agents and the system, under a human's eye.

pub mod core;
pub mod front;
pub mod io;
pub mod limits;
#[expect(unsafe_code, reason = "system calls live here and nowhere else")]
pub mod sys;
pub mod text;
