//! What a command line tells its user when it cannot go on: one sentence, a hint, and a code.

use std::fmt;

/// A failure in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    text: String,
    hint: String,
    /// The process's exit code.
    pub code: u8,
}

impl Failure {
    /// A failure with code 1.
    pub fn new(text: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self { text: text.to_string(), hint: hint.to_string(), code: 1 }
    }

    /// The same failure with another code.
    #[must_use]
    pub fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// A wrong call, code 2.
    pub fn usage(text: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self::new(text, hint).with_code(2)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rexec: {}", self.text)?;
        if !self.hint.is_empty() {
            writeln!(f, "hint: {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
