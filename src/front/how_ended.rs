//! The end of a run, for clients in JSON.

use rexec_sh::protocol::exit_code::NOT_FOUND;
use rexec_sh::protocol::notice::Notice;
use serde::{Deserialize, Deserializer, Serialize};

use crate::core::end::{End, Failure, How, Stopper};

/// A word of this program's own. A plain reference is what serde would take from the text that it reads.
type Word = &'static str;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HowEnded {
    /// The exit code, as in a shell.
    pub exit: u8,
    /// The signal that killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// The word for a failure outside the command itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "failure")]
    pub error: Option<Word>,
    /// Who ended it, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stopper")]
    pub by: Option<Word>,
    /// A sentence on the failure, and a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// From its start to the end of its shell, milliseconds.
    pub duration_ms: u64,
}

/// Reads the word for a failure. A word that this version does not know is skipped.
fn failure<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Word>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    Ok(word.and_then(|word| Failure::of_word(&word)).map(Failure::word))
}

/// Reads who ended a run, likewise.
fn stopper<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Word>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    Ok(word.and_then(|word| Stopper::of_word(&word)).map(Stopper::word))
}

impl From<&End> for HowEnded {
    fn from(end: &End) -> Self {
        let (exit, message) = match &end.how {
            // Published: clients in JSON get this code for each command that did not start.
            How::NotStarted(why) => (NOT_FOUND, Some(Notice::from(why.as_ref()).to_string())),
            How::Refused(refusal) => (end.code(), Some(Notice::from(refusal.as_ref()).to_string())),
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
