//! What rexec-sh, rexec-host and rexec share: the wire format, the socket's path, the choices for a command and the rules
//! for its environment, the places of real shells, notices and exit codes. Also the shim's rules that need no system call:
//! which invocations go to the host, and what the shim's options mean.
//!
//! std only. The shim's system calls are in its binary, the host's in its own crate.

pub mod choice;
pub mod environment;
pub mod exit_code;
pub mod invocation;
pub mod mark;
pub mod notice;
pub mod options;
pub mod place;
pub mod process;
pub mod shell_places;
pub mod wire;
