//! `rexec`: its command line. The table of verbs says what it can do, and each verb has a file of its own.

use std::process::ExitCode;

use super::verbs;

/// Runs rexec to its end; returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    super::finish(verbs::run(&mut lexopt::Parser::from_env()))
}
