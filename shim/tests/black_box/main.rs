//! The shim from outside, beside a host that the test plays itself. The shim with the real host is tested in the
//! workspace's `tests/black_box`.
//!
//! | what | run |
//! | --- | --- |
//! | the allocator, whose tests are in its file | `cargo test -p rexec-sh --test black_box arena` |
//! | no host, or one that cannot be trusted | `cargo test -p rexec-sh --test black_box absence` |
//! | what travels with a command | `… inheritance` |
//! | signals, slow readers, a parent that dies | `… relay` |
//! | when the real shell runs in the shim's place | `… routes` |
//! | a terminal that does not control the caller | `… terminal` |
//! | exit codes, and a host that breaks the protocol | `… verdict` |

#![expect(clippy::disallowed_methods, reason = "tests start programs")]

mod absence;
// The binary has a C `main` of its own, which a test harness cannot hold.
#[expect(unsafe_code, reason = "an allocator and its callers")]
#[path = "../../src/sys/arena.rs"]
mod arena;
mod host;
mod inheritance;
mod relay;
mod routes;
mod terminal;
mod verdict;
