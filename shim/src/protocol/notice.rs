//! A message for a person or an agent about a failure: one sentence on the problem, one hint, and an exit code. The
//! shim, the host and the command lines all use this form:
//!
//! ```text
//! rexec: PROBLEM
//! hint: HINT
//! ```
//!
//! Each of problem and hint is rendered as one line of plain text, whatever it contains.
//!
//! Agents look for certain words ("permission denied", "sandbox") to recognize a sandbox's refusal, so a problem uses
//! them only if it is one.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::Path;

use crate::protocol::exit_code;
use crate::protocol::shown::escaped;

/// The beginning of every line of rexec's own.
const PREFIX: &str = "rexec: ";

/// A problem, the reader's remedy, and the exit code. `Display` renders it, with a newline at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// A line for programs, above the problem. Usually none.
    headline: &'static str,
    /// One sentence, without a full stop.
    pub problem: Cow<'static, str>,
    /// One sentence, without a full stop. Empty if no hint would help.
    pub hint: Cow<'static, str>,
    /// The exit code, see [`exit_code`].
    pub code: u8,
}

impl Notice {
    /// A notice in fixed words.
    #[must_use]
    pub const fn fixed(code: u8, problem: &'static str, hint: &'static str) -> Self {
        Self { headline: "", problem: Cow::Borrowed(problem), hint: Cow::Borrowed(hint), code }
    }

    pub fn new(code: u8, problem: impl Display, hint: impl Display) -> Self {
        Self { headline: "", problem: problem.to_string().into(), hint: hint.to_string().into(), code }
    }

    /// A notice about a problem without a remedy.
    pub fn without_hint(code: u8, problem: impl Display) -> Self {
        Self { headline: "", problem: problem.to_string().into(), hint: Cow::Borrowed(""), code }
    }

    /// A notice about a failed request: [`exit_code::FAILURE`].
    pub fn failed(problem: impl Display, hint: impl Display) -> Self {
        Self::new(exit_code::FAILURE, problem, hint)
    }

    /// A notice about a wrong command line: [`exit_code::USAGE`].
    pub fn usage(problem: impl Display, hint: impl Display) -> Self {
        Self::new(exit_code::USAGE, problem, hint)
    }

    #[must_use]
    pub fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// The notice that no host listens on this socket.
    #[must_use]
    pub fn host_not_found(socket: &Path) -> Self {
        let socket = socket.display();
        let problem = format_args!("no rexec-host is listening on {socket}");
        let hint = "start rexec-host in a terminal, then run the command again";
        Self { headline: HOST_NOT_FOUND, ..Self::new(exit_code::NOT_FOUND, problem, hint) }
    }
}

/// The line that says that no host runs, newline included.
pub const HOST_NOT_FOUND: &str = "HOST NOT FOUND\n";

impl Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{PREFIX}{}", self.headline, escaped(&self.problem))?;
        if self.hint.is_empty() { Ok(()) } else { writeln!(f, "hint: {}", escaped(&self.hint)) }
    }
}

impl std::error::Error for Notice {}

/// One line of rexec's own that is not a problem: prefixed, with a newline.
pub fn remark(text: impl Display) -> String {
    format!("{PREFIX}{}\n", escaped(&text.to_string()))
}

/// A rendered notice without its prefix.
#[must_use]
pub fn without_prefix(rendered: &[u8]) -> &[u8] {
    rendered.strip_prefix(PREFIX.as_bytes()).unwrap_or(rendered)
}

/// The problem in a rendered notice: its first line without the prefix.
#[must_use]
pub fn problem_in(rendered: &str) -> &str {
    let first = rendered.lines().next().unwrap_or_default();
    first.strip_prefix(PREFIX).unwrap_or(first)
}

/// The hint in a rendered notice, without its prefix; empty if it has none.
#[must_use]
pub fn hint_in(rendered: &str) -> &str {
    rendered.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_two_lines_or_one() {
        let notice = Notice::new(1, "no command #7 runs", "rexec ps shows what runs");
        assert_eq!(notice.to_string(), "rexec: no command #7 runs\nhint: rexec ps shows what runs\n");
        assert_eq!(problem_in(&notice.to_string()), "no command #7 runs");
        assert_eq!(hint_in(&notice.to_string()), "rexec ps shows what runs");
        assert_eq!(hint_in("rexec: no hint: here\n"), "");
        let hostile = Notice::new(1, "no /x\u{1b}]0;t\u{7}\n\u{258C}", "\u{202e}\nrexec: x");
        assert_eq!(hostile.to_string(), "rexec: no /x\\x1b]0;t\\x07\\n⟨258C⟩\nhint: \\u{202e}\\nrexec: x\n");
        assert_eq!(remark("a\u{9b}2J"), "rexec: a\\u{9b}2J\n");
        assert_eq!(Notice::without_hint(126, "x").to_string(), "rexec: x\n");
        assert!(Notice::host_not_found(Path::new("/s")).to_string().starts_with("HOST NOT FOUND\nrexec: no "));
        assert_eq!((remark("x").as_str(), problem_in("x\ny"), problem_in("")), ("rexec: x\n", "x", ""));
    }
}
