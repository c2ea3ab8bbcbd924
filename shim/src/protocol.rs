//! What rexec-sh and rexec-host share: the wire format, where the socket lies, and which environment travels; and
//! the rules of the shim that are pure: which invocations go to the host, and what its options mean.
//!
//! std only; the shim's system calls are in its binary, the host's in its own crate.

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
