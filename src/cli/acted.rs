//! The reports of verbs that act on commands: a line of words, or of JSON, for each command.

use std::io::Write;

use serde::Serialize;

use super::json_line;

/// The result of an action on a command: a line of `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Acted<'a> {
    pub(super) seq: u64,
    /// `ended`, `stopping`, `unkillable`, `signalled`, `paused`, `resumed`, `allowed`, `refused`, `next`, `always`, or
    /// `sent`.
    pub(super) result: &'static str,
    /// Processes that cannot be killed, or that do not stop.
    #[serde(skip_serializing_if = "<[i32]>::is_empty")]
    pub(super) pids: &'a [i32],
    /// The rest of its grace, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grace_left_ms: Option<u64>,
    /// How long the next run of the command may pass, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_ms: Option<u64>,
    /// What is allowed from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) always: Option<&'a str>,
    /// The number of bytes typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
}

impl Acted<'_> {
    /// Prints the report: in JSON, or in these words if there are any.
    pub(super) fn say(&self, is_json: bool, words: &str, out: &mut impl Write) {
        // Without a standard output nobody reads it.
        let _ = match (is_json, words) {
            (true, _) => out.write_all(json_line(self).as_bytes()),
            (false, "") => Ok(()),
            (false, words) => writeln!(out, "#{} {words}", self.seq),
        };
    }
}
