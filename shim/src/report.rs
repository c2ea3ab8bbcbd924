//! What the shim says itself, always on stderr. A model reads it, so each report is one sentence on what is wrong and
//! one on what to do; agents look for certain words to tell a sandbox's refusal, and those are avoided.

use std::fmt::{self, Display};

use nix::libc;

use crate::sys;

/// Exit code when something failed between the caller and the command.
pub(crate) const FAILED: u8 = 125;
/// Exit code when the command cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// Exit code when there is no host, or no shell.
pub(crate) const NOT_FOUND: u8 = 127;

/// A problem and what the reader can do about it.
#[derive(Debug)]
pub(crate) struct Report {
    code: u8,
    headline: &'static str,
    problem: String,
    hint: String,
}

impl Report {
    pub(crate) fn new(code: u8, problem: impl Display, hint: impl Display) -> Self {
        Self { code, headline: "", problem: problem.to_string(), hint: format!("hint: {hint}\n") }
    }

    /// A problem that a hint would not help with.
    pub(crate) fn without_hint(code: u8, problem: impl Display) -> Self {
        Self { code, headline: "", problem: problem.to_string(), hint: String::new() }
    }

    /// The report with a line above it, its newline included.
    pub(crate) fn under(self, headline: &'static str) -> Self {
        Self { headline, ..self }
    }

    /// Writes the report and returns its code.
    pub(crate) fn write(&self) -> u8 {
        let text = self.to_string();
        let mut rest = text.as_bytes();
        while let Ok(written @ 1..) = sys::write(libc::STDERR_FILENO, rest) {
            rest = &rest[written..];
        }
        self.code
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}rexec: {}\n{}", self.headline, self.problem, self.hint)
    }
}
