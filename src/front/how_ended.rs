//! The end of a run, for clients in JSON.

use rexec_sh::protocol::exit_code::NOT_FOUND;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use crate::core::end::{End, Failure, How, Stopper};

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
    /// Who ended it, if somebody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'static str>,
    /// A sentence on the failure, and a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// From its start to the end of its shell, milliseconds.
    pub duration_ms: u64,
}

impl From<&End> for HowEnded {
    fn from(end: &End) -> Self {
        let (exit, message) = match &end.how {
            // Published: clients in JSON get this code for each command that did not start.
            How::NotStarted(why) => (NOT_FOUND, Some(Notice::from(why.as_ref()).to_string())),
            _ => (end.code(), None),
        };
        let by = end.by.map(Stopper::word);
        Self {
            exit,
            signal: end.signal(),
            error: end.failure().map(Failure::word),
            by,
            message,
            duration_ms: end.took_ms(),
        }
    }
}
