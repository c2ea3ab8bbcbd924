//! A verb of `rexec`: one row of the table in [`super::verbs`].
//!
//! Each verb's file has its row and the function that the row names. Help, completions and man pages are made of rows, so
//! nothing is said twice. A verb reads its own options; [`Verb::wrong`] and [`Verb::unexpected`] say what is wrong with
//! them. What a flag of `rexec` does, as `--list`, is a verb whose name begins with dashes.

use std::time::Duration;

use lexopt::Arg;
use rexec_sh::protocol::notice::Notice;

use super::{nearest, quoted, when, wrong_call};
use crate::limits;

/// Where `rexec --help` lists a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// Agents.
    Agents,
    /// Commands that run now.
    Live,
    /// Commands of the past.
    Past,
    /// The host and rexec itself.
    Own,
    /// Options that act as verbs.
    Flag,
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

/// What a shell offers as the value of an option, or as a verb's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Nothing.
    Nothing,
    /// Numbers of commands that the host has, and names of services.
    Runs,
    /// Names of journals.
    Journals,
    /// Verbs and topics of the manual.
    Topics,
    /// Verbs.
    Verbs,
    /// A program and what belongs to it. These are known.
    Program(&'static [&'static str]),
    /// These words.
    Words(&'static [&'static str]),
}

/// An option of a verb.
#[derive(Debug, Clone, Copy)]
pub(super) struct VerbOption {
    pub(super) short: Option<char>,
    /// Without its dashes.
    pub(super) long: &'static str,
    /// What stands for its value in the help. Empty for an option without a value.
    pub(super) value: &'static str,
    /// What a shell offers as its value.
    pub(super) values: Values,
    /// A phrase without a full stop.
    pub(super) help: &'static str,
}

impl VerbOption {
    /// An option without a value.
    pub(super) const fn flag(long: &'static str, help: &'static str) -> Self {
        Self { short: None, long, value: "", values: Values::Nothing, help }
    }

    /// An option with a value.
    pub(super) const fn taking(long: &'static str, value: &'static str, values: Values, help: &'static str) -> Self {
        Self { short: None, long, value, values, help }
    }

    /// The option with a short form.
    pub(super) const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    /// How the help writes it: `-s, --signal SIGNAL`.
    pub(super) fn written(&self) -> String {
        let short = self.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let value = if self.value.is_empty() { String::new() } else { format!(" {}", self.value) };
        format!("{short}--{}{value}", self.long)
    }
}

/// The option of every verb that prints JSON.
pub(super) const JSON: VerbOption = VerbOption::flag("json", "print JSON, one object in each line");

/// A verb.
#[derive(Debug)]
pub(super) struct Verb {
    /// As it is written on the command line.
    pub(super) name: &'static str,
    /// The short form of a flag.
    pub(super) short: Option<char>,
    pub(super) group: Group,
    /// The arguments, as the usage line has them behind the options.
    pub(super) arguments: &'static str,
    /// What a shell offers as an argument.
    pub(super) values: Values,
    /// What the verb does, as a phrase that begins with a verb in the imperative.
    pub(super) summary: &'static str,
    /// Paragraphs in lines of 79 columns or fewer. A line that begins with two spaces stays as it is.
    pub(super) text: &'static str,
    pub(super) options: &'static [VerbOption],
    /// The exit codes that need words, beside 2 for a wrong call.
    pub(super) codes: &'static [(u8, &'static str)],
    /// Command lines.
    pub(super) examples: &'static [&'static str],
    /// Does it; returns the exit code. The parser stands behind the verb's name.
    pub(super) run: fn(&mut lexopt::Parser) -> Result<u8, Notice>,
}

/// The exit codes of a verb that asks the host.
pub(super) const NO_HOST: (u8, &str) = (127, "no host runs");

impl Verb {
    /// The name without dashes, as in `rexec help list`.
    pub(super) fn bare(&self) -> &'static str {
        self.name.trim_start_matches('-')
    }

    /// How the usage line writes it: `rexec kill [options] N...`.
    pub(super) fn usage(&self) -> String {
        let options = if self.options.is_empty() { "" } else { " [options]" };
        let space = if self.arguments.is_empty() { "" } else { " " };
        format!("rexec {}{options}{space}{}", self.name, self.arguments)
    }

    /// The notice on options that lexopt does not take. It names the option of this verb that was probably meant.
    pub(super) fn wrong(&self, error: &lexopt::Error) -> Notice {
        let names: Vec<String> = self.options.iter().map(|option| format!("--{}", option.long)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).chain(["--help"]).collect();
        wrong_call(error, &format!("rexec {}", self.name), &names)
    }

    /// The notice on an argument that this verb does not take.
    pub(super) fn unexpected(&self, argument: Arg<'_>) -> Notice {
        match argument {
            Arg::Value(word) => self.too_much(&word.to_string_lossy()),
            option => self.wrong(&option.unexpected()),
        }
    }

    /// The notice on a word too many.
    pub(super) fn too_much(&self, word: &str) -> Notice {
        let word = quoted(word);
        let hint = format!("usage: {}", self.usage());
        Notice::usage(format_args!("{}: {word} is too much", self.name), hint)
    }

    /// The notice on a call that misses its argument.
    pub(super) fn missing(&self, what: &str) -> Notice {
        Notice::usage(format_args!("{} needs {what}", self.name), format_args!("usage: {}", self.usage()))
    }

    /// The notice on a value that an option or argument does not take. `what` names it, `wanted` says what is right.
    pub(super) fn not_valid(&self, what: &str, given: &str, wanted: &str) -> Notice {
        let problem = format_args!("{} {what}: {} is not valid", self.name, quoted(given));
        Notice::usage(problem, wanted)
    }

    /// The notice on a word that is none of these.
    pub(super) fn none_of(&self, what: &str, given: &str, words: &[&str]) -> Notice {
        let wanted = match nearest::nearest(given, words) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("one of {}", words.join(", ")),
        };
        self.not_valid(what, given, &wanted)
    }

    /// The value of the option that was read last. What is not UTF-8 in it is replaced.
    pub(super) fn value(&self, parser: &mut lexopt::Parser) -> Result<String, Notice> {
        let value = parser.value().map_err(|error| self.wrong(&error))?;
        Ok(value.to_string_lossy().into_owned())
    }

    /// The agent that the option that was read last names.
    pub(super) fn agent(&self, parser: &mut lexopt::Parser) -> Result<String, Notice> {
        let agent = self.value(parser)?;
        let wanted = "the name of an agent, as in --agent codex";
        if agent.trim().is_empty() { Err(self.not_valid("--agent", &agent, wanted)) } else { Ok(agent) }
    }

    /// The time that the option that was read last gives: a number of seconds, or numbers with units.
    pub(super) fn time(&self, option: &str, parser: &mut lexopt::Parser) -> Result<Duration, Notice> {
        let given = self.value(parser)?;
        if let Some(time) = when::seconds(&given).filter(|time| *time <= limits::TIMEOUT_MAX) {
            return Ok(time);
        }
        let most = limits::TIMEOUT_MAX.as_secs() / 3_600;
        Err(self.not_valid(option, &given, &format!("seconds as 90, or 10m or 1.5h, up to {most}h")))
    }

    /// The port that the option that was read last gives.
    pub(super) fn port(&self, option: &str, parser: &mut lexopt::Parser) -> Result<u16, Notice> {
        let given = self.value(parser)?;
        let port = given.parse().ok().filter(|&port| port > 0);
        port.ok_or_else(|| self.not_valid(option, &given, "a port is a number from 1 to 65535"))
    }

    /// The one word behind a verb that has no options, if there is one: `--list 3` or `--list=3`.
    pub(super) fn one_word(&self, parser: &mut lexopt::Parser) -> Result<Option<String>, Notice> {
        let attached = parser.optional_value();
        let mut words = parser.raw_args().map_err(|error| self.wrong(&error))?;
        let word = attached.or_else(|| words.next()).map(|word| word.to_string_lossy().into_owned());
        match words.next() {
            Some(more) => Err(self.too_much(&more.to_string_lossy())),
            None => Ok(word),
        }
    }

    /// Reads the arguments of a verb that takes none but these flags; returns which were given.
    pub(super) fn flags<const N: usize>(
        &self,
        parser: &mut lexopt::Parser,
        names: [&str; N],
    ) -> Result<[bool; N], Notice> {
        let mut given = [false; N];
        while let Some(argument) = parser.next().map_err(|error| self.wrong(&error))? {
            let long = match argument {
                Arg::Long(long) => Some(long),
                Arg::Short(letter) => {
                    self.options.iter().find(|option| option.short == Some(letter)).map(|option| option.long)
                }
                Arg::Value(_) => None,
            };
            match names.iter().position(|name| Some(*name) == long) {
                Some(at) => given[at] = true,
                None => return Err(self.unexpected(argument)),
            }
        }
        Ok(given)
    }
}
