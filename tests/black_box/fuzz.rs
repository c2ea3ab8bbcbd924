//! Mutated bytes from outside: frames of shims, hosts and guards, JSON lines, the recorder's frames, and facts in any
//! order. Nothing panics, nothing is accepted that was not sent, and it never matters where the bytes are split.
//!
//! The loops are short unless `REXEC_FUZZ_SECONDS` is set.

mod calls;
mod core;
mod languages;
mod living;
mod mcp;
mod mutation;
mod recorder;
