//! The record that stands for missing ones, type `dropped`.

use serde::{Deserialize, Serialize};

/// Records that the host or the recorder gave up because too many waited for the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DroppedRecord {
    pub count: u64,
    /// When the file took records again: see [`super::timestamp`].
    pub time: String,
}
