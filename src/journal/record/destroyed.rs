//! The record of what a run has destroyed of what was kept before it began, type `destroyed`.

use serde::{Deserialize, Serialize};

use super::fields::is_default;
use crate::core::engine::JobId;
use crate::core::entry::DestroyedFiles;

/// What is gone or changed. It is known once nothing of the run lives, or a minute after its shell's end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DestroyedRecord {
    pub seq: u64,
    pub files: u64,
    /// Of these files.
    pub bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub directories: u32,
    /// Paths that are gone, and were not kept.
    #[serde(skip_serializing_if = "is_default")]
    pub not_kept: u32,
    /// When the host learned of it: see [`super::timestamp`].
    pub time: String,
}

impl DestroyedRecord {
    /// The record without its time.
    #[must_use]
    pub fn of(job: JobId, destroyed: DestroyedFiles) -> Self {
        let DestroyedFiles { files, bytes, directories, missed } = destroyed;
        Self { seq: job.0, files, bytes, directories, not_kept: missed, time: String::new() }
    }
}

impl From<&DestroyedRecord> for DestroyedFiles {
    fn from(record: &DestroyedRecord) -> Self {
        let DestroyedRecord { files, bytes, directories, not_kept, .. } = *record;
        Self { files, bytes, directories, missed: not_kept }
    }
}
