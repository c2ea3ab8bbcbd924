//! A direct call: the shim runs a program instead of a shell's command string. `rexec exec` and `rexec --whoami` become
//! the shim in this way, so that it handles streams, terminal and signals like those of an agent's command.
//!
//! ```text
//! "rexec exec"  FORM  TIMEOUT  WHY  PROGRAM  ARGUMENTS…        TIMEOUT in milliseconds; 0 means never
//! ```
//!
//! Invariant: what [`DirectCall::words`] makes, [`DirectCall::read`] understands.

use std::ffi::{CStr, CString};

use super::wire::{Attributes, Direct, Stdio};

/// The name, `argv[0]`, of a direct call.
pub const NAME: &CStr = c"rexec exec";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectCall<'a> {
    /// The environment of the program.
    pub environment: Direct,
    /// The time limit in milliseconds; 0 means none.
    pub timeout_ms: u64,
    /// The command's purpose, in the caller's words. May be empty.
    pub why: &'a [u8],
    /// The program and its arguments. Never empty.
    pub argv: &'a [&'a CStr],
}

impl<'a> DirectCall<'a> {
    /// Reads the arguments of a process. `None` if they are not a direct call.
    #[must_use]
    pub fn read(argv: &'a [&'a CStr]) -> Option<Self> {
        let [name, environment, timeout, why, argv @ ..] = argv else { return None };
        if *name != NAME || argv.is_empty() {
            return None;
        }
        let environment = Direct::named(environment.to_bytes())?;
        let timeout_ms = timeout.to_str().ok()?.parse().ok()?;
        Some(Self { environment, timeout_ms, why: why.to_bytes(), argv })
    }

    /// The arguments of the shim for this call, except the program and its arguments.
    #[must_use]
    pub fn words(environment: Direct, timeout_ms: u64, why: CString) -> [CString; 4] {
        let timeout = CString::new(timeout_ms.to_string()).expect("a number has no NUL");
        [NAME.to_owned(), environment.word().to_owned(), timeout, why]
    }

    /// Adds the call's choices to the command's attributes.
    pub fn apply(&self, attributes: &mut Attributes) {
        if self.is_plain_client() {
            // Its output is text for a program, wherever it goes.
            let stdin = attributes.stdio.stdin;
            attributes.stdio = Stdio { stdin, stdout: true, stderr: true, same_output: true, ..Stdio::default() };
        }
        let extras = &mut attributes.extras;
        (extras.timeout_ms, extras.direct) = (self.timeout_ms, Some(self.environment));
        extras.why = self.why.to_vec();
    }

    /// Returns true if this is the form with `--whoami`: both outputs are one, a signal aborts the command, and every
    /// failure has code 127.
    #[must_use]
    pub fn is_plain_client(&self) -> bool {
        self.environment != Direct::Caller
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for environment in Direct::ALL {
            let words = DirectCall::words(environment, 1500, c"to see".to_owned());
            let argv: Vec<&CStr> = words.iter().map(CString::as_c_str).chain([c"ls", c"-l"]).collect();
            let call = DirectCall { environment, timeout_ms: 1500, why: b"to see", argv: &[c"ls", c"-l"] };
            assert_eq!(DirectCall::read(&argv), Some(call));
            assert_eq!(DirectCall::read(&argv[..4]), None);
        }
        assert_eq!(DirectCall::read(&[c"sh", c"caller", c"0", c"", c"ls"]), None);
        assert_eq!(DirectCall::read(&[NAME, c"caller", c"x", c"", c"ls"]), None);
    }
}
