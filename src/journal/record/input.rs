//! The record of a person's answer to a run's prompt, type `input`.

use serde::{Deserialize, Serialize};

use super::fields::is_default;

/// An answer: how much was typed for a run. What was typed is not in the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputRecord {
    pub seq: u64,
    /// The answer's length, its end included.
    pub bytes: u64,
    /// The terminal did not show it, as for a password.
    #[serde(skip_serializing_if = "is_default")]
    pub hidden: bool,
    /// Where it was typed: `console`, `send` or `attach`. Older records do not say it.
    #[serde(skip_serializing_if = "is_default")]
    pub from: String,
    /// When it was written down: see [`super::timestamp`].
    pub time: String,
}
