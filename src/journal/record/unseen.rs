//! The record of commands that ran without a host, type `unseen`.

use serde::{Deserialize, Serialize};

use super::fields::is_default;

/// Commands of one caller, which it ran itself. Nothing else is known of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnseenRecord {
    pub whoami: String,
    pub count: u64,
    /// There were more, which left no notes.
    #[serde(skip_serializing_if = "is_default")]
    pub more: bool,
    /// Why no host saw them.
    pub reason: String,
    /// When the first one began.
    pub since: String,
    /// When the last one began.
    pub until: String,
    /// When the host learned of them: see [`super::timestamp`].
    pub time: String,
}
