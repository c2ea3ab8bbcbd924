//! The facts about a run for a client.

use serde::Serialize;

use crate::front::how_ended::HowEnded;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunFacts {
    pub run: u64,
    pub whoami: String,
    /// Tells the caller's session from its others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_session: Option<String>,
    pub dir: String,
    /// The command's text, cut to [`crate::limits::ROSTER_TEXT_BYTES`].
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The reason for the run, in its caller's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// True if it outlives its connection.
    pub background: bool,
}

/// A run in a list.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListedRun {
    #[serde(flatten)]
    pub facts: RunFacts,
    /// `queued`, `running`, `asks`, `paused`, `exited` or `closed`.
    pub state: &'static str,
    /// The time since its arrival, milliseconds.
    pub started_ms_ago: u64,
    #[serde(flatten)]
    pub end: Option<HowEnded>,
    pub ports: Vec<u16>,
    /// The bytes of its output so far.
    pub bytes: u64,
    pub last_line: String,
    /// The number of its living processes. In lists only the first runs have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
}
