//! What verbs that act on commands say of each one: a line of words, or of JSON.

use std::io::Write;

use serde::Serialize;

use super::json_line;

/// What was done to a command: a line of `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Acted<'a> {
    /// The command's number.
    pub(super) seq: u64,
    /// `ended`, `stopping`, `unkillable`, `signalled`, `paused`, `resumed`, or `sent`.
    pub(super) result: &'static str,
    /// Processes that cannot be killed, or that do not stop.
    #[serde(skip_serializing_if = "<[i32]>::is_empty")]
    pub(super) pids: &'a [i32],
    /// What is left of its grace, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grace_left_ms: Option<u64>,
    /// How much was typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
}

impl Acted<'_> {
    /// Says it: in JSON, or in these words if there are any.
    pub(super) fn say(&self, is_json: bool, words: &str, out: &mut impl Write) {
        // Without a standard output there is nobody to tell.
        let _ = match (is_json, words) {
            (true, _) => out.write_all(json_line(self).as_bytes()),
            (false, "") => Ok(()),
            (false, words) => writeln!(out, "#{} {words}", self.seq),
        };
    }
}
