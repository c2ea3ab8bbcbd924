//! `rexec`: its command line. The table of verbs lists its abilities, and each verb has a file of its own.

use std::process::ExitCode;

use super::verbs;

#[must_use]
pub fn main() -> ExitCode {
    super::finish(verbs::run(&mut lexopt::Parser::from_env()))
}
