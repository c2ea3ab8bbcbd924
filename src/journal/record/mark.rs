//! The record that sums up the part of a file before it, type `mark`.

use serde::{Deserialize, Serialize};

/// The facts about the part before that a reader of a journal's last few MiB needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkRecord {
    /// How many runs have a record in the file so far.
    pub commands: u64,
    /// The runs that began and have not ended, each with the offset of its start in the file, bytes.
    pub open: Vec<(u64, u64)>,
}
