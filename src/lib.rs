//! rexec-host: one place between AI coding agents and the system, under a human's eye.

pub mod cli;
pub mod core;
pub mod front;
#[expect(unsafe_code, reason = "a guard forks, and its child makes system calls only")]
pub mod guard;
pub mod host;
pub mod io;
pub mod journal;
pub mod limits;
pub mod recorder;
pub mod sink;
#[expect(unsafe_code, reason = "system calls live here and in guard")]
pub mod sys;
pub mod text;
