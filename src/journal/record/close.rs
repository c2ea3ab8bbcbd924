//! The record that closes a file, type `close`.

use serde::{Deserialize, Serialize};

use super::fields::is_default;

/// The last line of a journal that its host closed, or that a later host repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloseRecord {
    /// When the file was closed: see [`super::timestamp`].
    pub time: String,
    /// How many runs have a record in the file.
    #[serde(skip_serializing_if = "is_default")]
    pub commands: Option<u64>,
    /// The name of the journal in which the host goes on.
    #[serde(skip_serializing_if = "is_default")]
    pub next: Option<String>,
}
