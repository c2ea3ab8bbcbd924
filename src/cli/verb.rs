//! A verb of `rexec`: one row of the table in [`super::verbs`].
//!
//! Each verb's file has its row. Help, completions and man pages are made of rows, so nothing is said twice. A row's
//! [`Call`] has the verb's options, its words and its function. A flag of `rexec` that acts, as `--list`, is a verb whose
//! name begins with dashes. rexec-host has a row too.

mod call;

use rexec_sh::protocol::notice::Notice;

use call::{AnyCall, WordsText};
pub(super) use call::{Call, Given, Opt, OptionText, Words, json, one_word};

use super::{quoted, wrong_call};
use crate::text::nearest::nearest;

/// Where `rexec --help` lists a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Agents,
    /// Commands that run now.
    Live,
    Past,
    /// The host and rexec itself.
    Own,
    /// Options that act as verbs.
    Flag,
    /// A program of its own, which no list of verbs has.
    Program,
}

impl Group {
    /// All groups in the order of `rexec --help`, each with its heading.
    pub(super) const ALL: [(Self, &'static str); 5] = [
        (Self::Agents, "agents"),
        (Self::Live, "commands that run"),
        (Self::Past, "commands of the past"),
        (Self::Own, "host and help"),
        (Self::Flag, "options"),
    ];
}

/// The words that a shell offers as the value of an option or as a verb's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Nothing,
    /// Numbers of commands that the host has, and names of services.
    Runs,
    /// Records of what is kept for undo.
    Records,
    Journals,
    /// Verbs and topics of the manual.
    Topics,
    Verbs,
    /// A program and what belongs to it. These are known.
    Program(&'static [&'static str]),
    Words(&'static [&'static str]),
}

/// A verb.
pub(super) struct Verb {
    /// Its names: `kill`, or `-l, --list`.
    pub(super) term: &'static str,
    pub(super) group: Group,
    /// A phrase that begins with a verb in the imperative.
    pub(super) summary: &'static str,
    /// Paragraphs in lines of 79 columns or fewer. A line that begins with two spaces stays as it is.
    pub(super) text: &'static str,
    /// The exit codes that need words, beside 2 for a wrong call.
    pub(super) codes: &'static [(u8, &'static str)],
    pub(super) examples: &'static [&'static str],
    /// Its options and words, and what it does.
    pub(super) call: &'static dyn AnyCall,
}

/// The exit codes of a verb that asks the host.
pub(super) const NO_HOST: (u8, &str) = (127, "no host runs");

impl Verb {
    /// The options that the help lists.
    pub(super) fn options(&self) -> Vec<OptionText> {
        self.call.options().into_iter().filter(|option| !option.help.is_empty()).collect()
    }

    pub(super) fn words(&self) -> WordsText {
        self.call.words()
    }

    /// Reads the rest of the command line and does what it says; returns the exit code, or `None` if help is asked for.
    pub(super) fn run(&self, parser: &mut lexopt::Parser) -> Result<Option<u8>, Notice> {
        self.call.run(self, parser)
    }

    /// Its names as they are written on the command line.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.term.split(", ")
    }

    /// The long name.
    pub(super) fn name(&self) -> &'static str {
        self.term.rsplit(", ").next().unwrap_or_default()
    }

    /// The name without dashes, as in `rexec help list`.
    pub(super) fn bare(&self) -> &'static str {
        self.name().trim_start_matches('-')
    }

    /// How it is called: `rexec kill`, or `rexec-host`.
    pub(super) fn program(&self) -> String {
        if self.group == Group::Program { self.name().to_owned() } else { format!("rexec {}", self.name()) }
    }

    /// How the usage line writes it: `rexec kill [options] N...`.
    pub(super) fn usage(&self) -> String {
        let options = if self.options().is_empty() { "" } else { " [options]" };
        let words = self.words().usage;
        let space = if words.is_empty() { "" } else { " " };
        format!("{}{options}{space}{words}", self.program())
    }

    /// The notice on options that lexopt does not take. It names the option of this verb that was probably meant.
    pub(super) fn wrong(&self, error: &lexopt::Error) -> Notice {
        let names: Vec<&str> = self.call.options().iter().flat_map(OptionText::names).collect();
        let names: Vec<&str> = names.into_iter().filter(|name| name.starts_with("--")).chain(["--help"]).collect();
        wrong_call(error, &self.program(), &names)
    }

    /// The notice on a word too many.
    pub(super) fn too_much(&self, word: &str) -> Notice {
        let word = quoted(word);
        let hint = format!("usage: {}", self.usage());
        Notice::usage(format_args!("{}: {word} is too much", self.name()), hint)
    }

    /// The notice on a call that misses its argument.
    pub(super) fn missing(&self, what: &str) -> Notice {
        Notice::usage(format_args!("{} needs {what}", self.name()), format_args!("usage: {}", self.usage()))
    }

    /// The notice on a value that an option or argument does not take. `what` names it, `wanted` says what is right.
    pub(super) fn not_valid(&self, what: &str, given: &str, wanted: &str) -> Notice {
        let problem = format_args!("{} {what}: {} is not valid", self.name(), quoted(given));
        Notice::usage(problem, wanted)
    }

    /// The notice on a word that is none of these.
    pub(super) fn none_of(&self, what: &str, given: &str, words: &[&str]) -> Notice {
        let wanted = match nearest(given, words) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("one of {}", words.join(", ")),
        };
        self.not_valid(what, given, &wanted)
    }
}
