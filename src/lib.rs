//! rexec-host: one place between AI coding agents and the system, under a human's eye.

pub mod cli;
pub mod core;
pub mod failure;
pub mod front;
pub mod host;
pub mod io;
pub mod limits;
pub mod sink;
#[expect(unsafe_code, reason = "system calls live here and nowhere else")]
pub mod sys;
pub mod text;
