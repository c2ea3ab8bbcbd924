//! Bytes from outside, mutated: frames of shims, hosts and guards, JSON lines, the recorder's frames, and facts in any
//! order. Nothing panics, nothing is believed that was not sent, and cuts between pieces do not show.
//!
//! The loops are short in a normal run; `REXEC_FUZZ_SECONDS` makes each of them as long as that, and then they say how far
//! they came.

#[path = "fuzz/core.rs"]
mod core;
#[path = "fuzz/languages.rs"]
mod languages;
#[path = "fuzz/living.rs"]
mod living;
#[path = "fuzz/mutation.rs"]
mod mutation;
#[path = "fuzz/recorder.rs"]
mod recorder;
#[expect(dead_code, reason = "every test file uses its part of the harness")]
mod support;
