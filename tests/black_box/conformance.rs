//! The oracle is the real shell: every case is run by it and by the shim, from the same harness, and compared.
//!
//! Pipe mode is compared with the shell on pipes, byte for byte; terminal mode with the shell on a terminal of the
//! size that the host gives. A death by signal equals 128 + N. `REXEC_UNDER_TEST=theirs` compares the real shell with
//! itself, which finds cases that are not repeatable.

mod case;
mod environment;
mod everyday;
mod exits;
mod inherited;
mod language;
mod probes;
mod processes;
mod prompters;
mod prompts;
mod stops;
mod streams;
