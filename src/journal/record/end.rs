//! The complete record of a run that has ended, type `end`: its start, its output and how it ended.
//!
//! The fields stand in the line in an order of their own, not part by part, so they are written by hand.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::fields::RecordFields;
use super::start::StartRecord;
use super::{LINE_BYTES_MAX, line};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndRecord {
    /// The fields that the run's `start` has, too.
    pub start: StartRecord,
    pub end: RunEnd,
    pub output: RecordedOutput,
}

/// How a run ended. The host sends this; the recorder adds the start and the output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// The run's number, as in its start.
    pub seq: u64,
    /// The exit code that the caller got.
    pub exit: u8,
    /// The signal that ended the command.
    pub signal: Option<u8>,
    /// From the command's start to its end, milliseconds.
    pub duration_ms: u64,
    /// From the request to the command's start, milliseconds.
    pub queued_ms: u64,
    /// Raw bytes of all streams, also of output that never reached the recorder.
    pub bytes: u64,
    /// How much of them its caller got, after all filters. `None` if that was not known yet when the record was made:
    /// its caller is slow to read, or is not a shim.
    pub received: Option<u64>,
    /// How many secrets were masked for its caller.
    pub hidden: u64,
    /// Why the run did not end by itself: `aborted`, `not_found`, …
    pub error: Option<String>,
    /// Who ended it, if somebody did: `caller`, `kill`, …
    pub by: Option<String>,
    /// Processes that outlived the shell, the first few of them.
    pub left: Vec<Straggler>,
    /// How many processes outlived the shell in all.
    pub left_count: u32,
    /// Processes that SIGKILL did not end.
    pub unkillable: Vec<i32>,
    /// How many answers of people it got: see [`super::InputRecord`].
    pub answers: u32,
    /// The port that the command could not listen on, because another run did.
    pub port_held: Option<PortHolder>,
    /// What the person's rules said of the command, if they did not allow all of it.
    pub gate: Option<GateRecord>,
    /// What was kept for undo before the command began, if it might destroy something.
    pub kept: Option<KeptRecord>,
}

/// What was kept before a command that might destroy something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptRecord {
    pub files: u32,
    /// Paths that were not kept.
    #[serde(skip_serializing_if = "is_none")]
    pub missed: u32,
    /// A program whose operands were not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unknown: String,
    /// Why not all was kept, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// The strictest verdict of rules on a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateRecord {
    /// `ask` or `deny`; `allow` if not all of it was read.
    pub r#do: String,
    /// The rule that decided, by its name and its place. `None` if a setting did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The program that it was about, with its arguments, without secrets.
    pub leaf: String,
    /// Who decided: `watch` and `unread` (nobody, it ran), `rule` and `away` (it was refused at once), `later` and `learned`
    /// (a yes from before), `console`, `client`, `token` or `timeout`. `nobody` if it was stopped before.
    pub by: String,
    /// How long it waited for that, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// A run that listens on a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortHolder {
    pub port: u16,
    pub seq: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Straggler {
    pub pid: i32,
    /// The program's name, as in proc_pid_comm(5).
    pub comm: String,
    /// The TCP ports on which it listened by then, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

/// The part of a run's output that the journal keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RecordedOutput {
    /// Clean text with redraws resolved: its beginning and its end, if it is long.
    #[serde(rename = "output")]
    pub text: String,
    /// How many bytes `text` leaves out.
    #[serde(rename = "output_omitted")]
    pub omitted: Option<u64>,
    /// The offset in `text` at which those bytes would stand.
    #[serde(rename = "output_cut")]
    pub cut: Option<u64>,
    /// Bytes that never reached this recorder. They count as omitted, too.
    #[serde(rename = "output_lost")]
    pub lost: Option<u64>,
    /// The file with the raw output, relative to the journal's directory. It is complete unless `raw_omitted` or
    /// `raw_error` says otherwise.
    pub raw: Option<String>,
    /// The length of that file.
    pub raw_bytes: Option<u64>,
    /// How many bytes that file leaves out in its middle.
    pub raw_omitted: Option<u64>,
    /// The offset in that file at which those bytes would stand.
    pub raw_cut: Option<u64>,
    /// Why there is no such file, or not all of it.
    pub raw_error: Option<String>,
    /// How many secrets were masked in the output, and in the fields of the start.
    pub secrets: u64,
    /// The file with the recording, relative to the journal's directory: see [`crate::journal::recording`].
    pub recording: Option<String>,
    /// The part of that file that has the run's lines: the offset of the first one and the one behind the last.
    pub recording_at: Option<(u64, u64)>,
    /// How many bytes of output the recording leaves out at its end.
    pub recording_omitted: Option<u64>,
    /// Why there is no recording, or not all of it.
    pub recording_error: Option<String>,
}

impl EndRecord {
    /// # Errors
    /// If the line is not a JSON object, or if a field has another type.
    pub fn parse(line: &[u8]) -> serde_json::Result<EndRecord> {
        // Each part ignores the fields of the others.
        Ok(EndRecord {
            start: serde_json::from_slice(line)?,
            end: serde_json::from_slice(line)?,
            output: serde_json::from_slice(line)?,
        })
    }

    /// The record's line, without the output if that would make the line too long.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let line = line("end", self);
        if line.len() <= LINE_BYTES_MAX {
            return line;
        }
        let (text, omitted, cut) = (String::new(), Some(self.end.bytes), Some(0));
        let output = RecordedOutput { text, omitted, cut, ..self.output.clone() };
        self::line("end", &EndRecord { output, ..self.clone() })
    }
}

impl Serialize for EndRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let EndRecord { start, end, output } = self;
        let (mut card, mut fields) = (start.card.fields(), RecordFields(serializer.serialize_map(None)?));
        card.put(&["seq", "whoami", "dir"], &mut fields)?;
        fields.put("envs", &start.envs)?;
        fields.put("exec", &start.exec)?;
        fields.put("exit", &end.exit)?;
        fields.put("output", &output.text)?;
        card.put(&["time"], &mut fields)?;
        fields.put_set("error", &end.error)?;
        fields.put_set("by", &end.by)?;
        card.put(&["command", "why", "name", "shell"], &mut fields)?;
        fields.put("duration_ms", &end.duration_ms)?;
        fields.put("queued_ms", &end.queued_ms)?;
        fields.put_set("signal", &end.signal)?;
        fields.put("bytes", &end.bytes)?;
        fields.put_set("received", &end.received)?;
        fields.put_set("hidden", &end.hidden)?;
        fields.put_set("output_omitted", &output.omitted)?;
        fields.put_set("output_cut", &output.cut)?;
        fields.put_set("output_lost", &output.lost)?;
        fields.put_set("raw", &output.raw)?;
        fields.put_set("raw_bytes", &output.raw_bytes)?;
        fields.put_set("raw_omitted", &output.raw_omitted)?;
        fields.put_set("raw_cut", &output.raw_cut)?;
        fields.put_set("raw_error", &output.raw_error)?;
        fields.put_set("secrets", &output.secrets)?;
        fields.put_set("recording", &output.recording)?;
        fields.put_set("recording_at", &output.recording_at)?;
        fields.put_set("recording_omitted", &output.recording_omitted)?;
        fields.put_set("recording_error", &output.recording_error)?;
        fields.put_set("left", &end.left)?;
        fields.put_set("left_count", &end.left_count)?;
        fields.put_set("unkillable", &end.unkillable)?;
        fields.put_set("answers", &end.answers)?;
        fields.put_set("port_held", &end.port_held)?;
        fields.put_set("gate", &end.gate)?;
        fields.put_set("kept", &end.kept)?;
        fields.put_set("exec_b64", &start.exec_b64)?;
        fields.put_set("dir_b64", &start.dir_b64)?;
        card.put_rest(&[], &mut fields)?;
        fields.put_set("terminal", &start.terminal)?;
        fields.put_set("clipped", &start.clipped)?;
        fields.put_set("exec_text", &start.exec_text)?;
        fields.put_set("trace", &start.trace)?;
        fields.put_set("trace_parent", &start.trace_parent)?;
        fields.0.end()
    }
}
