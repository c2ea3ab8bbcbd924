//! The shim's own options. They are environment variables, because its command line belongs to the shell.
//!
//! Invariants: an empty value counts as unset; of repeated names the first counts, as with getenv(3); values are
//! checked only if a command goes to the host, so a wrong one never stops a real shell.

use std::ffi::CStr;
use std::fmt;

use crate::protocol::choice::{self, Sanitize, Tty};
use crate::protocol::report::marked_socket;

/// The options, as in the environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShimOptions<'a> {
    /// `REXEC_INSIDE`: tells that this process is inside a run.
    pub inside: Option<&'a CStr>,
    /// `REXEC_SHELL`: the real shell's path.
    pub shell: Option<&'a CStr>,
    /// `REXEC_SOCKET`: the path of the host's socket.
    pub socket: Option<&'a CStr>,
    /// `REXEC_FALLBACK`: the action without a host.
    pub fallback: Option<&'a CStr>,
    /// `REXEC_TTY`: the descriptors of the command that are its terminal.
    pub tty: Option<&'a CStr>,
    /// `REXEC_ENV_DROP`: globs of variables that the command does not get.
    pub env_drop: Option<&'a CStr>,
    /// `REXEC_WHOAMI`: the caller's name for itself.
    pub whoami: Option<&'a CStr>,
    /// `REXEC_INTERACTIVE`: sends interactive shells to the host, too.
    pub interactive: Option<&'a CStr>,
    /// `REXEC_SANITIZE`: the treatment of the output.
    pub sanitize: Option<&'a CStr>,
    /// `REXEC_REPORT`: reports commands that this process runs itself to the host.
    pub report: Option<&'a CStr>,
    /// `REXEC_REPORTED`: the reported run around this process.
    pub reported: Option<&'a CStr>,
    /// `REXEC_LIVE`: asks runtimes not to buffer output on pipes.
    pub live: Option<&'a CStr>,
    /// `REXEC_BUDGET`: the size of the caller's part of the output.
    pub budget: Option<&'a CStr>,
    /// `REXEC_UNDO`: whether the host keeps what the command may destroy.
    pub undo: Option<&'a CStr>,
    /// `REXEC_RUN_SET`: the variables that `rexec run` has set.
    pub run_set: Option<&'a CStr>,
    /// `REXEC_RUN_AGENT`: the agent that `rexec run` has started.
    pub run_agent: Option<&'a CStr>,
    /// `REXEC_PRELOAD_FED`: tells that a pipe feeds the shell with commands, if the preload has seen that.
    pub fed: Option<&'a CStr>,
}

/// The options with a choice of words, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// True if the real shell runs the command without a host.
    pub fallback: bool,
    /// The descriptors of the command that are its terminal. `None`: the host's choice holds.
    pub tty: Option<Tty>,
    /// The treatment of the output. `None`: the host's choice holds.
    pub sanitize: Option<Sanitize>,
    /// True if runtimes are asked not to buffer output on pipes. `None`: the host's choice holds.
    pub live: Option<bool>,
    /// The caller's part of the output, bytes; zero means all. `None`: the host's choice holds.
    pub budget: Option<u32>,
    /// True if a command that the shim runs itself is reported.
    pub reports: bool,
    /// True if nothing is kept of what the command may destroy.
    pub keeps_nothing: bool,
}

/// An option whose value is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionError<'a> {
    pub name: &'static str,
    pub value: &'a CStr,
    /// The valid values, separated by commas.
    pub allowed: &'static str,
}

impl fmt::Display for OptionError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value, allowed) = (self.name, self.value.to_bytes().escape_ascii(), self.allowed);
        write!(f, "{name}: `{value}` is not a valid value ({allowed})")
    }
}

impl std::error::Error for OptionError<'_> {}

impl<'a> ShimOptions<'a> {
    /// Finds the options in an environment.
    #[must_use]
    pub fn find(env: impl IntoIterator<Item = &'a CStr>) -> Self {
        let mut options = Self::default();
        for entry in env {
            if entry.to_bytes().starts_with(b"REXEC_") {
                options.take(entry);
            }
        }
        if given(options.socket).is_empty() {
            options.socket = options.reported.and_then(marked_socket);
        }
        options
    }

    fn take(&mut self, entry: &'a CStr) {
        let bytes = entry.to_bytes_with_nul();
        let Some(equals) = bytes.iter().position(|&byte| byte == b'=') else { return };
        let slot = match &bytes[..equals] {
            b"REXEC_INSIDE" => &mut self.inside,
            b"REXEC_SHELL" => &mut self.shell,
            b"REXEC_SOCKET" => &mut self.socket,
            b"REXEC_FALLBACK" => &mut self.fallback,
            b"REXEC_TTY" => &mut self.tty,
            b"REXEC_ENV_DROP" => &mut self.env_drop,
            b"REXEC_WHOAMI" => &mut self.whoami,
            b"REXEC_INTERACTIVE" => &mut self.interactive,
            b"REXEC_SANITIZE" => &mut self.sanitize,
            b"REXEC_LIVE" => &mut self.live,
            b"REXEC_BUDGET" => &mut self.budget,
            b"REXEC_UNDO" => &mut self.undo,
            b"REXEC_RUN_SET" => &mut self.run_set,
            b"REXEC_RUN_AGENT" => &mut self.run_agent,
            b"REXEC_PRELOAD_FED" => &mut self.fed,
            b"REXEC_REPORT" => &mut self.report,
            b"REXEC_REPORTED" => &mut self.reported,
            _ => return,
        };
        let value = CStr::from_bytes_with_nul(&bytes[equals + 1..]).expect("the tail of a C string is one");
        // An empty value is kept: it hides a later one of the same name.
        slot.get_or_insert(value);
    }

    /// Checks the options with a choice of words.
    ///
    /// # Errors
    /// The first option whose value is not one of its words.
    pub fn judge(&self) -> Result<Choices, OptionError<'a>> {
        let fallback = match given(self.fallback) {
            b"" => false,
            b"shell" => true,
            _ => return Err(wrong("REXEC_FALLBACK", self.fallback, "shell")),
        };
        let tty = choice("REXEC_TTY", self.tty, Tty::named, Tty::WORDS)?;
        let sanitize = choice("REXEC_SANITIZE", self.sanitize, Sanitize::named, Sanitize::WORDS)?;
        let live = match given(self.live) {
            b"" => None,
            b"1" => Some(true),
            b"0" => Some(false),
            _ => return Err(wrong("REXEC_LIVE", self.live, "1, 0")),
        };
        let budget = choice("REXEC_BUDGET", self.budget, choice::budget, choice::BUDGET_WORDS)?;
        let reports = match given(self.report) {
            b"" => true,
            b"never" => false,
            _ => return Err(wrong("REXEC_REPORT", self.report, "never")),
        };
        let keeps_nothing = match given(self.undo) {
            b"" | b"on" => false,
            b"off" => true,
            _ => return Err(wrong("REXEC_UNDO", self.undo, "on, off")),
        };
        Ok(Choices { fallback, tty, sanitize, live, budget, reports, keeps_nothing })
    }
}

/// The bytes of a value; empty if it is unset.
#[must_use]
pub fn given(value: Option<&CStr>) -> &[u8] {
    value.map_or(&[], CStr::to_bytes)
}

/// The choice for the value of an option; `None` if it is unset.
fn choice<'a, T>(
    name: &'static str,
    value: Option<&'a CStr>,
    named: impl FnOnce(&[u8]) -> Option<T>,
    allowed: &'static str,
) -> Result<Option<T>, OptionError<'a>> {
    match given(value) {
        b"" => Ok(None),
        word => named(word).map(Some).ok_or_else(|| wrong(name, value, allowed)),
    }
}

fn wrong<'a>(name: &'static str, value: Option<&'a CStr>, allowed: &'static str) -> OptionError<'a> {
    OptionError { name, value: value.unwrap_or_default(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_and_the_first_of_a_name_counts() {
        let options =
            ShimOptions::find([c"A=1", c"REXEC_TTY=never", c"REXEC_TTY=auto", c"REXEC_WHOAMI=a=b", c"REXEC_X=1"]);
        assert_eq!(options.tty, Some(c"never"));
        assert_eq!(options.whoami, Some(c"a=b"));
        assert_eq!(
            ShimOptions::find([c"REXEC_INSIDE", c"REXEC_SHELL="]),
            ShimOptions { shell: Some(c""), ..ShimOptions::default() }
        );
    }

    #[test]
    fn words_are_judged() {
        let judged = |entry| ShimOptions::find([entry]).judge();
        let none = Choices {
            fallback: false,
            tty: None,
            sanitize: None,
            live: None,
            budget: None,
            reports: true,
            keeps_nothing: false,
        };
        assert_eq!(ShimOptions::default().judge(), Ok(none));
        assert_eq!((judged(c"REXEC_TTY="), judged(c"REXEC_SANITIZE=")), (Ok(none), Ok(none)));
        assert_eq!(judged(c"REXEC_TTY=auto"), Ok(Choices { tty: Some(Tty::Auto), ..none }));
        assert_eq!(judged(c"REXEC_TTY=always"), Ok(Choices { tty: Some(Tty::Always), ..none }));
        assert_eq!(judged(c"REXEC_TTY=never"), Ok(Choices { tty: Some(Tty::Never), ..none }));
        assert_eq!(judged(c"REXEC_LIVE=1"), Ok(Choices { live: Some(true), ..none }));
        assert_eq!(judged(c"REXEC_LIVE=0"), Ok(Choices { live: Some(false), ..none }));
        assert_eq!(judged(c"REXEC_REPORT=never"), Ok(Choices { reports: false, ..none }));
        assert_eq!(judged(c"REXEC_FALLBACK=shell"), Ok(Choices { fallback: true, ..none }));
        assert_eq!(judged(c"REXEC_UNDO=off"), Ok(Choices { keeps_nothing: true, ..none }));
        assert_eq!(judged(c"REXEC_UNDO=on"), Ok(none));
        for (entry, sanitize) in [
            (c"REXEC_SANITIZE=raw", Sanitize::Raw),
            (c"REXEC_SANITIZE=strip", Sanitize::Strip),
            (c"REXEC_SANITIZE=collapse", Sanitize::Collapse),
            (c"REXEC_SANITIZE=tidy", Sanitize::Tidy),
        ] {
            assert_eq!(judged(entry), Ok(Choices { sanitize: Some(sanitize), ..none }));
        }
    }

    #[test]
    fn a_wrong_word_is_named_with_its_value() {
        for entry in [
            c"REXEC_TTY=yes",
            c"REXEC_FALLBACK=yes",
            c"REXEC_SANITIZE=RAW",
            c"REXEC_SANITIZE=\xff",
            c"REXEC_LIVE=yes",
            c"REXEC_REPORT=1",
            c"REXEC_UNDO=0",
        ] {
            assert!(ShimOptions::find([entry]).judge().is_err(), "{entry:?}");
        }
        let error = ShimOptions::find([c"REXEC_TTY=al\xffways"]).judge().unwrap_err();
        assert_eq!(error.to_string(), r"REXEC_TTY: `al\xffways` is not a valid value (auto, always, never)");
        assert_eq!(error.allowed, "auto, always, never");
    }
}
