//! What runs, and what became of a command that a person ended: the host's answers to the `rexec` command, as JSON.
//!
//! ```text
//! {"action":"list"}          ▶ {"result":"list","runs":[{"seq":12,"state":"running",…}]}
//! {"action":"kill","seq":12} ▶ {"result":"kill","seq":12,"unkillable":[]}     when it is over, within ten seconds
//! ```
//!
//! Readers skip fields that they do not know.

use rexec_sh::protocol::notice;
use serde::{Deserialize, Serialize};

/// An answer of the host's that is not a command's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Answer {
    /// To a ping.
    Pong {
        /// The host's version.
        version: String,
        /// Its process.
        pid: u32,
    },
    /// Everything that runs, oldest first.
    List {
        /// One for each command.
        runs: Vec<Listed>,
    },
    /// A command that was to be killed is over, or is not within the time that an answer may take.
    Kill {
        /// Its number.
        seq: u64,
        /// Its processes that could not be killed.
        unkillable: Vec<i32>,
        /// It is not over yet, because its grace lasts so much longer, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_left_ms: Option<u64>,
    },
}

/// What a host said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// What was asked for.
    Answer(Answer),
    /// Why there is none: its sentence.
    Refused(String),
}

impl Reply {
    /// Reads a line; `None` when it is neither.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct RefusedResponse {
            message: String,
        }
        if let Ok(answer) = serde_json::from_str(line) {
            return Some(Self::Answer(answer));
        }
        let RefusedResponse { message } = serde_json::from_str(line).ok()?;
        Some(Self::Refused(notice::problem_in(&message).to_owned()))
    }
}

/// A command that runs, waits, or left processes behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listed {
    /// Its number.
    pub seq: u64,
    /// How far it is.
    pub state: RunState,
    /// Since it came, milliseconds.
    pub age_ms: u64,
    /// Who called.
    pub whoami: String,
    /// Where it runs.
    pub dir: String,
    /// What it is; the first bytes of it when it is long.
    pub command: String,
    /// The process that guards its tree: everything below it is the command's.
    pub guard: Option<i32>,
    /// Its processes, where its guard is gone.
    pub orphans: Vec<i32>,
}

/// How far a command is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It waits for its start.
    Queued,
    /// Its shell lives.
    Running,
    /// It was asked to end.
    Stopping,
    /// Its shell has ended and processes of it go on.
    Left,
    /// A word of a newer host's.
    #[default]
    #[serde(other)]
    Unknown,
}

impl RunState {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Left => "left",
            Self::Unknown => "?",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_are_written_and_news_are_skipped() {
        let pong = Answer::Pong { version: "1".to_owned(), pid: 7 };
        assert_eq!(serde_json::to_string(&pong).unwrap(), r#"{"result":"pong","version":"1","pid":7}"#);
        let listed = Listed { seq: 3, state: RunState::Left, guard: Some(9), ..Listed::default() };
        let list = Answer::List { runs: vec![listed] };
        assert_eq!(Reply::read(&serde_json::to_string(&list).unwrap()), Some(Reply::Answer(list)));
        let newer = r#"{"result":"list","runs":[{"seq":1,"state":"frozen","colour":"red"}],"more":1}"#;
        let Some(Reply::Answer(Answer::List { runs })) = Reply::read(newer) else { panic!("no list") };
        assert_eq!((runs[0].seq, runs[0].state), (1, RunState::Unknown));
        let refusal = r#"{"exit":1,"output":"","error":"refused","message":"rexec: no such command\nhint: look\n"}"#;
        assert_eq!(Reply::read(refusal), Some(Reply::Refused("no such command".to_owned())));
        assert_eq!(Reply::read("{}"), None);
    }
}
