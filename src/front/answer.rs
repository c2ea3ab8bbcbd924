//! The host's answers to actions, as JSON: which commands run, and how a command ended that a person ended.
//!
//! ```text
//! {"action":"list"}          ▶ {"result":"list","runs":[{"seq":12,"state":"running",…}]}
//! {"action":"status"}        ▶ {"result":"status","pid":4711,"running":2,…}
//! {"action":"pause","seq":12} ▶ {"result":"pause","seq":12,"guard":4712}     and the same for "resume"
//! {"action":"kill","seq":12,"signal":10} ▶ {"result":"signal","seq":12}
//! {"action":"kill","seq":12} ▶ {"result":"kill","seq":12,"unkillable":[]}     at its end, or within ten seconds
//! ```
//!
//! Readers skip fields that they do not know, so that a newer host's answers are understood.

use rexec_sh::protocol::notice::{self, Notice};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::run_state::RunState;
use crate::journal::record::{PublishedCard, RecordFields};

/// An answer to an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Answer {
    /// To a ping.
    Pong {
        version: String,
        pid: u32,
    },
    /// Every running command, oldest first.
    List {
        runs: Vec<Listed>,
    },
    /// A person's terminal now stands for a command's. Frames follow.
    Attach {
        seq: u64,
        /// The command's text, cut to [`crate::limits::ROSTER_TEXT_BYTES`].
        command: String,
    },
    /// An answer to a prompt was typed.
    Send {
        seq: u64,
        /// The number of bytes.
        bytes: u64,
    },
    Status(Box<HostStatus>),
    /// The host ends.
    Stop {
        pid: u32,
    },
    /// The console follows: its bytes, without any form, until the connection ends.
    Watch {
        version: String,
        /// For one command: its age, milliseconds. Its output until then is not shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ran_ms: Option<u64>,
        /// For one command: its output until then, if the recorder knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<WrittenBefore>,
    },
    /// A signal is on its way to a command.
    Signal {
        seq: u64,
    },
    /// A command's processes are being stopped.
    Pause {
        seq: u64,
        /// The process id of the command's guard.
        guard: i32,
    },
    /// A command's processes are being continued.
    Resume {
        seq: u64,
    },
    /// A command that a client wanted to end has ended, or its time to answer is over.
    Kill {
        seq: u64,
        /// Process ids that could not be killed.
        unkillable: Vec<i32>,
        /// If the command has not ended because its grace is not over: the rest of that, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_left_ms: Option<u64>,
    },
}

/// A command's output before the console shows it: the beginning of its raw file, and the following lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBefore {
    /// The length of that beginning, bytes; 0 for nothing of the file.
    pub file_bytes: u64,
    /// Bytes after it that are not kept.
    pub left_out: u64,
    /// The following whole lines, in base64.
    pub lines_b64: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Answer(Answer),
    /// The reason for a refusal.
    Refused(Notice),
}

impl Reply {
    /// Reads a line of JSON; `None` if it is not a reply.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct RefusedResponse {
            exit: u8,
            message: String,
        }
        if let Ok(answer) = serde_json::from_str(line) {
            return Some(Self::Answer(answer));
        }
        let RefusedResponse { exit, message } = serde_json::from_str(line).ok()?;
        Some(Self::Refused(Notice::new(exit, notice::problem_in(&message), notice::hint_in(&message))))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostStatus {
    pub version: String,
    pub pid: u32,
    /// The time since its start, milliseconds.
    pub up_ms: u64,
    /// The name of its journal's session.
    pub session: String,
    /// Commands since its start, including running ones.
    pub commands: u64,
    /// The number of these that ended with an exit code other than 0.
    pub failed: u64,
    /// Commands that run now or wait for their start.
    pub running: u64,
    /// The number of these that wait for a person's answer.
    pub waiting: u64,
    /// The number of these that are paused.
    pub paused: u64,
    /// Ended commands that left processes running.
    pub left: u64,
    /// The callers of these commands, each once.
    pub agents: Vec<String>,
    /// The agents that have run a command today, as the console names them, each once.
    pub agents_today: Vec<String>,
    /// The agents that `rexec run` has started and that are known to live.
    pub started: Vec<StartedAgent>,
    /// The command that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

/// An agent that `rexec run` has started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartedAgent {
    pub pid: i32,
    /// The start of that process, in clock ticks since boot.
    pub start: u64,
    pub name: String,
    /// True if a run of it has come.
    pub has_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastRun {
    pub seq: u64,
    pub whoami: String,
    /// The command's text, cut to [`crate::limits::ROSTER_TEXT_BYTES`].
    pub command: String,
    /// Its exit code, as the caller got it.
    pub exit: u8,
    /// The time since its end, milliseconds.
    pub ended_ms: u64,
}

/// A command that runs, waits, or left processes behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Listed {
    /// Its texts are cut to [`crate::limits::ROSTER_TEXT_BYTES`].
    #[serde(flatten)]
    pub card: PublishedCard,
    pub state: RunState,
    /// The program that waits for an answer.
    pub asks: Option<String>,
    /// The words of its prompt, without control characters.
    pub prompt: Option<String>,
    /// The part of the command on which a person decides.
    pub held: Option<String>,
    /// The time since its arrival, milliseconds.
    pub age_ms: u64,
    /// The process id of its guard. Every process below the guard is the command's.
    pub guard: Option<i32>,
    /// The process ids of the command, if it has no guard.
    pub orphans: Vec<i32>,
}

impl Serialize for Listed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut card, mut fields) = (self.card.fields(), RecordFields(serializer.serialize_map(None)?));
        card.put(&["seq"], &mut fields)?;
        fields.put("state", &self.state)?;
        fields.put_set("asks", &self.asks)?;
        fields.put_set("prompt", &self.prompt)?;
        fields.put_set("held", &self.held)?;
        fields.put("age_ms", &self.age_ms)?;
        let caller = ["whoami", "agent", "session", "session_number", "call", "role"];
        card.put(&caller, &mut fields)?;
        card.put(&["dir", "command"], &mut fields)?;
        fields.put("guard", &self.guard)?;
        fields.put("orphans", &self.orphans)?;
        let without = ["time", "why", "name", "shell", "agent_version", "unwrapped", "probe"];
        card.put_rest(&without, &mut fields)?;
        fields.0.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_are_written_and_news_are_skipped() {
        let pong = Answer::Pong { version: "1".to_owned(), pid: 7 };
        assert_eq!(serde_json::to_string(&pong).unwrap(), r#"{"result":"pong","version":"1","pid":7}"#);
        let card = PublishedCard { seq: 3, ..PublishedCard::default() };
        let listed = Listed { card, state: RunState::Left, guard: Some(9), ..Listed::default() };
        let list = Answer::List { runs: vec![listed] };
        assert_eq!(Reply::read(&serde_json::to_string(&list).unwrap()), Some(Reply::Answer(list)));
        let newer = r#"{"result":"list","runs":[{"seq":1,"state":"frozen","colour":"red"}],"more":1}"#;
        let Some(Reply::Answer(Answer::List { runs })) = Reply::read(newer) else { panic!("no list") };
        assert_eq!((runs[0].card.seq, runs[0].state), (1, RunState::Unknown));
        let refusal = r#"{"exit":1,"output":"","error":"refused","message":"rexec: no such command\nhint: look\n"}"#;
        assert_eq!(Reply::read(refusal), Some(Reply::Refused(Notice::new(1, "no such command", "look"))));
        assert_eq!(Reply::read("{}"), None);
    }
}
