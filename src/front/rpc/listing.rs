//! What a client is told of a run.

use serde::Serialize;

use crate::front::how_ended::HowEnded;

/// What a run is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunFacts {
    /// Its number.
    pub run: u64,
    /// The caller's name.
    pub whoami: String,
    /// What tells the caller's session from its others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_session: Option<String>,
    /// The working directory.
    pub dir: String,
    /// The command's text, cut to [`crate::limits::ROSTER_TEXT_BYTES`].
    pub command: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The project session that it runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Why it is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether it outlives its connection.
    pub background: bool,
}

/// A run in a list.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListedRun {
    /// What it is.
    #[serde(flatten)]
    pub facts: RunFacts,
    /// `queued`, `running`, `asks`, `paused`, `exited` or `closed`.
    pub state: &'static str,
    /// How long ago it was taken in, milliseconds.
    pub started_ms_ago: u64,
    /// How it ended.
    #[serde(flatten)]
    pub end: Option<HowEnded>,
    /// The ports on which it listens.
    pub ports: Vec<u16>,
    /// Bytes that it has written so far.
    pub bytes: u64,
    /// The last line that it has written.
    pub last_line: String,
    /// Processes of it that live. Lists have it of the first runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
}
