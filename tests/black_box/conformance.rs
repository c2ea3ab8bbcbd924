//! The oracle is the real shell: the same harness runs every case with it and with the shim, and compares.
//!
//! On pipes the oracle runs on pipes, and the output is compared byte for byte; where commands get a terminal, the
//! oracle runs on one of the same size. Death by a signal is no exit code.

mod askers;
mod case;
mod environment;
mod everyday;
mod exits;
mod filters;
mod inherited;
mod language;
mod let_go;
mod probes;
mod processes;
mod prompters;
mod prompts;
mod stops;
mod streams;
