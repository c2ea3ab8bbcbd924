//! The bounds of the journal's files.

use std::time::Duration;

/// The longest journal file, bytes. The journal goes on in a new file before that.
pub const JOURNAL_FILE_BYTES: u64 = 64 << 20;
/// Bytes of a journal file after which it gets a mark, so that a reader that needs its end does not have to read all of
/// it.
pub const JOURNAL_MARK_BYTES: u64 = 1 << 20;
/// How far the summary beside a journal's file may be behind the file while it is written, bytes. A reader reads the
/// rest.
pub const JOURNAL_SUMMARY_BYTES: u64 = 8 << 20;
/// How much of a file that a dead host left is summarized before the recorder takes in what is new, bytes.
pub const JOURNAL_SUMMARY_STEP_BYTES: u64 = 1 << 20;
/// The end of a file in which a reader looks for a mark, bytes: one interval, the longest line and the mark itself.
pub const JOURNAL_TAIL_BYTES: u64 = 4 << 20;
/// How much is read of the end of a file without marks, bytes. Earlier starts without an end are not found.
pub const JOURNAL_UNMARKED_BYTES: u64 = 64 << 20;
/// An argument longer than this, bytes, is written once per file, and records refer to it.
pub const JOURNAL_ARGUMENT_BYTES: usize = 4 << 10;
/// Texts of a file that later arguments are compared with, newest first. An argument that resembles none of them is
/// written whole.
pub const JOURNAL_TEXTS_KNOWN: usize = 8;
/// Texts of a file that a reader keeps, bytes. An argument that refers to a later text stays cut.
pub const JOURNAL_TEXTS_READ_BYTES: usize = 64 << 20;
/// How much of the beginning and of the end of a command's output `raw/` keeps, bytes each (`--raw-cap`). The middle is
/// counted.
pub const RAW_CAP_BYTES: u64 = 16 << 20;
/// How much of the beginning of a command's output is recorded with its times, bytes. The rest is counted, and a replay
/// says so.
pub const RECORDING_RUN_BYTES: u64 = 4 << 20;
/// A recording's file of this length takes no more commands, bytes; those that it has go on in it …
pub const RECORDING_FILE_BYTES: u64 = 16 << 20;
/// … and so does one of this age, because a file is removed as a whole.
pub const RECORDING_FILE_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long recorded output may wait in the recorder, which then writes it in one piece.
pub const RECORDING_DELAY: Duration = Duration::from_millis(200);
/// The last output of a run, bytes, that the recorder sends to the host for a person who begins to follow the run. What is
/// before it is in the raw file.
pub const LAST_OUTPUT_BYTES: u64 = 32 << 10;
/// How long that person waits for the recorder's answer. Without one, the output around that moment may be shown twice.
pub const REACHED_PATIENCE: Duration = Duration::from_secs(1);
/// The largest `--raw-cap`, MiB.
pub const RAW_CAP_MAX_MIB: u64 = 1 << 20;
