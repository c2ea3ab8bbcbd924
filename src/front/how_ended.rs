//! The end of a run, for clients in JSON.

use std::time::Duration;

use rexec_sh::protocol::exit_code::{NOT_FOUND, OWN_FAILURE, TIMED_OUT};
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Exit;
use serde::Serialize;

use crate::core::entry::{Outcome, Reason};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HowEnded {
    /// The exit code, as in a shell.
    pub exit: u8,
    /// The signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// The word for a failure outside the command itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// A sentence on the failure, and a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// From its start to the end of its shell, milliseconds.
    pub duration_ms: u64,
}

impl HowEnded {
    /// The end of a run whose shell has ended; `stopped` is the reason why the host stopped it.
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

    #[must_use]
    pub fn of(outcome: &Outcome, took: Duration) -> Self {
        let without_exit = |exit, error| Self { exit, error: Some(error), ..Self::default() };
        let end = match outcome {
            Outcome::Ended { exit, stopped } => return Self::exited(*exit, *stopped, took),
            Outcome::NotStarted(why) => {
                let error = if why.code == NOT_FOUND { "not_found" } else { "spawn_failed" };
                let message = Some(Notice::from(why.as_ref()).to_string());
                Self { message, ..without_exit(NOT_FOUND, error) }
            }
            Outcome::NeverRun(_) => without_exit(OWN_FAILURE, "aborted"),
            Outcome::Lost { .. } | Outcome::Unseen => without_exit(OWN_FAILURE, "lost"),
        };
        Self { duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX), ..end }
    }
}
