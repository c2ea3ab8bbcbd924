//! The commands that a verb acts on: numbers, all of an agent, or all.

use std::path::Path;

use rexec_sh::protocol::notice::Notice;

use super::run_reference::RunReference;
use super::verb::{Given, Opt, Verb};
use super::{ask, service};
use crate::front::answer::{Answer, Listed};

pub(super) const AGENT: Opt<Chosen> =
    Opt::value("--agent AGENT", |q, v| q.agent = v.agent(), "all commands of this agent, by its name in rexec ps");
pub(super) const ALL: Opt<Chosen> = Opt::flag("--all", |q| q.all = true, "all commands");

#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) numbers: Vec<u64>,
    pub(super) agent: Option<String>,
    pub(super) all: bool,
    /// Of `rexec kill`: the only signal that is sent.
    pub(super) signal: Option<u8>,
    pub(super) is_json: bool,
}

impl Chosen {
    /// Returns the choice if it is exactly one of: numbers, an agent, or all.
    pub(super) fn checked(self, verb: &Verb) -> Result<Self, Notice> {
        let ways = [!self.numbers.is_empty(), self.agent.is_some(), self.all];
        match ways.into_iter().filter(|is_given| *is_given).count() {
            0 => Err(verb.missing("a command number; rexec ps shows the numbers")),
            1 => Ok(self),
            _ => Err(verb.missing("either numbers or one of --agent and --all")),
        }
    }

    /// The numbers of the chosen commands. Only `--agent` and `--all` ask the host.
    pub(super) fn numbers(self, socket: &Path) -> Result<Vec<u64>, Notice> {
        self.numbers_of(socket, |_| true, "nothing runs")
    }

    /// As [`Chosen::numbers`], but `--agent` and `--all` take only fit commands. `none` is the message if there are
    /// none.
    pub(super) fn numbers_of(
        self,
        socket: &Path,
        is_fit: impl Fn(&Listed) -> bool,
        none: &str,
    ) -> Result<Vec<u64>, Notice> {
        if !self.numbers.is_empty() {
            return Ok(self.numbers);
        }
        let meant = |run: &Listed| is_fit(run) && self.agent.as_ref().is_none_or(|agent| run.card.is_of(agent));
        let numbers: Vec<u64> = runs(socket)?.iter().filter(|run| meant(run)).map(|run| run.card.seq).collect();
        if numbers.is_empty() {
            let problem = match &self.agent {
                Some(agent) => format!("{none} of {}", super::quoted(agent)),
                None => none.to_owned(),
            };
            return Err(Notice::failed(problem, "rexec ps shows what runs"));
        }
        Ok(numbers)
    }
}

/// A command's number, written as `12` or `#12`; as `-1` for the newest one, from the journal; or as the name of a
/// service, from the host.
pub(super) fn number(verb: &Verb, word: &str) -> Result<u64, Notice> {
    if service::is_name(word) {
        return service::number_of(word);
    }
    if let Some(reference) = RunReference::parse(word).filter(|_| word.starts_with('-')) {
        return Ok(reference.find(&super::home()?, &super::socket_path()?)?.start.card.seq);
    }
    word.strip_prefix('#').unwrap_or(word).parse().map_err(|_| {
        let problem = format_args!("{}: {} is not a command number", verb.name(), super::quoted(word));
        Notice::usage(problem, "rexec ps shows the numbers")
    })
}

pub(super) fn given_number(word: &mut Given<'_>) -> Option<u64> {
    let number = number(word.verb(), &word.text());
    word.check(number)
}

/// The commands of the host, oldest first.
pub(super) fn runs(socket: &Path) -> Result<Vec<Listed>, Notice> {
    match ask::ask(socket, r#"{"action":"list"}"#)?.answer(Some(ask::PATIENCE))? {
        Answer::List { runs } => Ok(runs),
        _ => Err(ask::AskError::Unclear.into()),
    }
}
