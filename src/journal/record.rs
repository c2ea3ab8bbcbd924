//! The journal's records: one JSON object per line, each with its format version `v` and its `type`.
//!
//! ```text
//! open                      first line of a file: the host that writes it
//! text                      an argument that is too long to be repeated by the records of every run that has it
//! start                     a run begins
//! end                       the same run, complete: everything the start said, its output and how it ended
//! lost                      a start whose end was never written, found when the next journal was opened
//! dropped                   records that were given up, because the disk or the recorder did not take them
//! mark                      what a reader of the file's end needs to know of the part before
//! close                     last line of a file whose host left in order, or went on in another file
//! ```
//!
//! A file is complete in itself: where a host goes on in another one, the starts of the runs that have not ended are
//! written there again, and so are the texts that its records refer to.
//!
//! Invariants: no line is longer than [`LINE_BYTES_MAX`], because the caller's fields are cut by `Start::fitted` and
//! the output by its excerpt; a reader gets every field it does not know out of the way by ignoring it, and every
//! field it misses by a default, so fields may come and go within one `v`.

mod fit;
mod frame;
mod status;
mod text;

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::text::encode::base64;

pub use frame::{
    Decoder, FRAME_BYTES_MAX, Frame, encode_close, encode_dropped, encode_end, encode_lost, encode_output,
    encode_start, encode_start_in, secrets,
};
pub use status::{Done, RecorderStatus};
pub use text::{Library, TextRecord, TextRef, Texts};

/// The version of every record this build writes, and the newest it reads.
pub const VERSION: u32 = 1;
/// The longest line, bytes with its newline.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// What is known of a run when it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartRecord {
    pub seq: u64,
    /// RFC 3339, UTC, milliseconds: see [`timestamp`].
    pub time: String,
    pub whoami: String,
    pub dir: String,
    /// What the caller set on purpose; never the values of an inherited environment.
    pub envs: BTreeMap<String, String>,
    /// The whole argument vector as the caller gave it.
    pub exec: Vec<String>,
    /// What a person would say was run: without the agent's wrapping.
    pub command: String,
    pub shell: String,
    /// The bytes of `exec` in base64, when they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_b64: Option<Vec<String>>,
    /// The bytes of `dir` in base64, when they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir_b64: Option<String>,
    /// An agent's wrapper, which `exec` has, was left out of `command`.
    #[serde(skip_serializing_if = "is_false")]
    pub unwrapped: bool,
    /// One of the runs an agent makes at its own start, to learn about the shell.
    #[serde(skip_serializing_if = "is_false")]
    pub probe: bool,
    /// A field above was cut to keep the line within its bound.
    #[serde(skip_serializing_if = "is_false")]
    pub clipped: bool,
    /// Arguments, by their place in `exec`, that stand there cut, and what they are made of.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub exec_text: BTreeMap<usize, TextRef>,
    /// Rows and columns of the terminal. For the recorder, which does not write them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<(u16, u16)>,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    pub seq: u64,
    pub exit: u8,
    pub signal: Option<u8>,
    pub duration_ms: u64,
    pub queued_ms: u64,
    /// Raw output bytes of all streams; what exceeds the bytes sent by [`encode_output`] counts as omitted.
    pub bytes: u64,
    /// `aborted`, `not_started`, …
    pub error: Option<String>,
    pub left: Vec<Left>,
    /// Processes that were left running, those that are not named too.
    pub left_count: u32,
    pub unkillable: Vec<i32>,
}

/// A process that outlived the run's shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Left {
    pub pid: i32,
    pub comm: String,
}

/// The complete record of a run, type `end`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndRecord {
    pub seq: u64,
    pub whoami: String,
    pub dir: String,
    pub envs: BTreeMap<String, String>,
    pub exec: Vec<String>,
    pub exit: u8,
    /// Clean text with redraws resolved: its beginning and its end when it was long.
    pub output: String,
    /// When the run began.
    pub time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub command: String,
    pub shell: String,
    pub duration_ms: u64,
    pub queued_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    pub bytes: u64,
    /// Bytes of the text that `output` leaves out, and at which byte of `output` they would stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_omitted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_cut: Option<u64>,
    /// Bytes of the output that never reached the recorder, or died with one. They count as omitted, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_lost: Option<u64>,
    /// The file with the raw output, relative to the journal's directory. Complete unless `raw_omitted` or `raw_error`
    /// says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The file's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<u64>,
    /// Bytes that the file leaves out in its middle, and at which byte of it they would stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_omitted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_cut: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// Processes that were left running, those that are not named too.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_count: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unkillable: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_b64: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir_b64: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub unwrapped: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub probe: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub clipped: bool,
    /// As in [`Start`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub exec_text: BTreeMap<usize, TextRef>,
}

/// A run that began and whose end is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LostRecord {
    pub seq: u64,
    pub whoami: String,
    pub dir: String,
    pub exec: Vec<String>,
    pub command: String,
    pub time: String,
    #[serde(skip_serializing_if = "is_false")]
    pub unwrapped: bool,
}

/// The first line of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenRecord {
    pub time: String,
    /// The host's process.
    pub pid: u32,
    /// When that process began, as /proc/PID/stat has it: its number alone may be another's by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The host's version.
    pub version: String,
    /// The name of the journal that this one goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// What a reader of a journal's end needs to know of the part before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkRecord {
    /// Runs of which there is a record so far.
    pub commands: u64,
    /// Runs that began and have not ended, each with the place of its start in the file.
    pub open: Vec<(u64, u64)>,
}

/// Records that were given up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DroppedRecord {
    pub count: u64,
    pub time: String,
}

/// The last line of a journal that was closed in order, or that was repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloseRecord {
    pub time: String,
    /// Runs of which this file has a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<u64>,
    /// The name of the journal in which the host goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl StartRecord {
    /// Sets `exec`, and its twin when an argument is not UTF-8.
    pub fn set_exec<'a>(&mut self, arguments: impl Iterator<Item = &'a [u8]> + Clone) {
        let is_text = arguments.clone().all(|argument| std::str::from_utf8(argument).is_ok());
        self.exec_b64 = (!is_text).then(|| arguments.clone().map(base64).collect());
        self.exec = arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    }

    /// Sets `dir`, and its twin when it is not UTF-8.
    pub fn set_dir(&mut self, dir: &[u8]) {
        self.dir_b64 = std::str::from_utf8(dir).is_err().then(|| base64(dir));
        self.dir = String::from_utf8_lossy(dir).into_owned();
    }
}

impl EndRecord {
    /// What the start and the end say together; the output is the recorder's to add.
    #[must_use]
    pub fn new(start: StartRecord, end: RunEnd) -> EndRecord {
        EndRecord {
            seq: start.seq,
            whoami: start.whoami,
            dir: start.dir,
            envs: start.envs,
            exec: start.exec,
            exit: end.exit,
            output: String::new(),
            time: start.time,
            error: end.error,
            command: start.command,
            shell: start.shell,
            duration_ms: end.duration_ms,
            queued_ms: end.queued_ms,
            signal: end.signal,
            bytes: end.bytes,
            output_omitted: None,
            output_cut: None,
            output_lost: None,
            raw: None,
            raw_bytes: None,
            raw_omitted: None,
            raw_cut: None,
            raw_error: None,
            left: end.left,
            left_count: end.left_count,
            unkillable: end.unkillable,
            exec_b64: start.exec_b64,
            dir_b64: start.dir_b64,
            unwrapped: start.unwrapped,
            probe: start.probe,
            clipped: start.clipped,
            exec_text: start.exec_text,
        }
    }

    /// The record's line. An output that would burst the line is left out rather than the record.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let line = line("end", self);
        if line.len() <= LINE_BYTES_MAX {
            return line;
        }
        self::line(
            "end",
            &EndRecord { output: String::new(), output_omitted: Some(self.bytes), output_cut: Some(0), ..self.clone() },
        )
    }
}

impl From<StartRecord> for LostRecord {
    fn from(start: StartRecord) -> LostRecord {
        let StartRecord { seq, whoami, dir, exec, command, time, unwrapped, .. } = start;
        LostRecord { seq, whoami, dir, exec, command, time, unwrapped }
    }
}

/// One line of the journal: the record's fields behind its version and type, with the newline.
pub fn line(kind: &str, record: &impl Serialize) -> Vec<u8> {
    let mut line = format!("{{\"v\":{VERSION},\"type\":\"{kind}\",").into_bytes();
    let fields = line.len();
    serde_json::to_writer(&mut line, record).expect("a record has string keys only, and memory does not fail to write");
    // The record's own opening brace; every record has at least one field, so the comma before it is right.
    line.remove(fields);
    line.push(b'\n');
    line
}

/// `when` as the journal writes it: RFC 3339, UTC, milliseconds.
#[must_use]
pub fn timestamp(when: SystemTime) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    OffsetDateTime::from(when).format(&form).unwrap_or_default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests;
