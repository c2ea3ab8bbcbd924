//! The limits on a journal and its parts.

use std::time::Duration;

use crate::limits;

#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How much of the beginning of a run's text goes into its record, bytes. The raw output of a longer text goes into
    /// a raw file.
    pub head_bytes: usize,
    /// How much of the end of a run's text goes into its record, bytes.
    pub tail_bytes: usize,
    /// Records that wait in memory while the disk refuses them, bytes. Beyond this the oldest are dropped and counted.
    pub queue_bytes: usize,
    /// The pause after a failure before the disk is tried again. A new record tries at once.
    pub retry: Duration,
    /// The length of a file, bytes. A record that would exceed it goes into a new file.
    pub file_bytes: u64,
    /// How much a raw file keeps of the beginning of a run's output, and how much of the end, bytes. With 0 there are
    /// no raw files.
    pub raw_cap: u64,
    /// How much of the beginning of a run's output is recorded with its times, bytes. With 0 there are no recordings.
    pub record_cap: u64,
    /// The environments of runs are kept, without their secrets.
    pub environments: bool,
    /// All raw files and recordings together, bytes. Beyond this the oldest are removed, and files being written stop
    /// growing.
    pub raw_bytes: u64,
    /// The age at which a raw file or a recording is removed.
    pub raw_age: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            head_bytes: 32 << 10,
            tail_bytes: 32 << 10,
            queue_bytes: 4 << 20,
            retry: Duration::from_secs(5),
            file_bytes: limits::JOURNAL_FILE_BYTES,
            raw_cap: limits::RAW_CAP_BYTES,
            record_cap: limits::RECORDING_RUN_BYTES,
            environments: true,
            raw_bytes: 1 << 30,
            raw_age: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}
