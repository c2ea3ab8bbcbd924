//! Bytes from outside, mutated: frames of shims, hosts and guards, JSON lines, the recorder's frames, and facts in any
//! order. Nothing panics, nothing is believed that was not sent, and cuts between pieces do not show.
//!
//! The loops are short in a normal run; `REXEC_FUZZ_SECONDS` makes each of them as long as that, and then they say how far
//! they came.

mod core;
mod languages;
mod living;
mod mutation;
mod recorder;
