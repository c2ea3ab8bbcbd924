//! The oracle is the real shell: every case is run by it and by the shim, from the same harness, and compared.
//!
//! Pipe mode is compared with the shell on pipes, byte for byte; terminal mode with the shell on a terminal of the
//! size that the host gives. A death by signal equals 128 + N. `REXEC_UNDER_TEST=theirs` compares the real shell with
//! itself, which finds cases that are not repeatable.

#[expect(dead_code, reason = "every test file uses its part of the harness")]
mod support;

#[path = "conformance/case.rs"]
mod case;
#[path = "conformance/environment.rs"]
mod environment;
#[path = "conformance/everyday.rs"]
mod everyday;
#[path = "conformance/exits.rs"]
mod exits;
#[path = "conformance/inherited.rs"]
mod inherited;
#[path = "conformance/language.rs"]
mod language;
#[path = "conformance/probes.rs"]
mod probes;
#[path = "conformance/processes.rs"]
mod processes;
#[path = "conformance/prompters.rs"]
mod prompters;
#[path = "conformance/prompts.rs"]
mod prompts;
#[path = "conformance/stops.rs"]
mod stops;
#[path = "conformance/streams.rs"]
mod streams;
