//! How a run ended, as clients in JSON are told.

use std::time::Duration;

use rexec_sh::protocol::exit_code::{NOT_FOUND, OWN_FAILURE, TIMED_OUT};
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Exit;
use serde::Serialize;

use crate::core::entry::{Outcome, Reason};

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HowEnded {
    /// The exit code, as a shell has it.
    pub exit: u8,
    /// The signal that it died of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// The word for what went wrong beside the command itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// What went wrong in a sentence, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// From its start to the end of its shell, milliseconds.
    pub duration_ms: u64,
}

impl HowEnded {
    /// The end of a run whose shell has ended; `stopped` is why it was asked to.
    #[must_use]
    pub fn exited(exit: Exit, stopped: Option<Reason>, took: Duration) -> Self {
        let signal = match exit {
            Exit::Signal(signal) => Some(signal.number()),
            Exit::Code(_) => None,
        };
        let code = if stopped == Some(Reason::TimedOut) { TIMED_OUT } else { exit.code() };
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Self { exit: code, signal, error: stopped.map(Reason::word), message: None, duration_ms }
    }

    /// The end of a run.
    #[must_use]
    pub fn of(outcome: &Outcome, took: Duration) -> Self {
        let without_exit = |exit, error| Self { exit, error: Some(error), ..Self::default() };
        let end = match outcome {
            Outcome::Ended { exit, stopped } => return Self::exited(*exit, *stopped, took),
            Outcome::NotStarted(why) => {
                let message = Some(Notice::from(why.as_ref()).to_string());
                Self { message, ..without_exit(NOT_FOUND, why.word()) }
            }
            Outcome::NeverRun(_) => without_exit(OWN_FAILURE, "aborted"),
            Outcome::Lost { .. } | Outcome::Unseen => without_exit(OWN_FAILURE, "lost"),
        };
        Self { duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX), ..end }
    }
}
