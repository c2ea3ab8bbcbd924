//! What rexec-sh and rexec-host share: the wire format, where the socket lies, and which environment travels.
//!
//! std only; the shim's system calls are in its binary, the host's in its own crate.

pub mod wire;
