//! The library half of rexec-sh: the [`protocol`] that it shares with rexec-host. The shim itself is the binary.

pub mod protocol;
