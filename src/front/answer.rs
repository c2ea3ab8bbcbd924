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
use serde::{Deserialize, Serialize};

use crate::text::agent_name::{agent_name, is_meant};

/// An answer to an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Answer {
    /// To a ping.
    Pong {
        /// The host's version.
        version: String,
        /// Its process id.
        pid: u32,
    },
    /// Every command that runs, oldest first.
    List {
        /// The commands.
        runs: Vec<Listed>,
    },
    /// A person's terminal stands for a command's. Frames follow.
    Attach {
        /// The command's number.
        seq: u64,
        /// The command's text, cut to [`crate::limits::ROSTER_TEXT_BYTES`].
        command: String,
    },
    /// An answer to a prompt was typed.
    Send {
        /// The command's number.
        seq: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// What the host is and has.
    Status(Box<HostStatus>),
    /// The host ends.
    Stop {
        /// Its process id.
        pid: u32,
    },
    /// The console follows: its bytes, without any form, until the connection ends.
    Watch {
        /// The host's version.
        version: String,
        /// For one command: how long it has run, milliseconds. What it wrote until then is not shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ran_ms: Option<u64>,
        /// For one command: what it wrote until then, if the recorder knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<WrittenBefore>,
    },
    /// A signal is on its way to a command.
    Signal {
        /// The command's number.
        seq: u64,
    },
    /// A command's processes are being stopped.
    Pause {
        /// The command's number.
        seq: u64,
        /// The process id of its guard.
        guard: i32,
    },
    /// A command's processes are being continued.
    Resume {
        /// The command's number.
        seq: u64,
    },
    /// A command that a client wanted to end has ended, or has not in the time that an answer may take.
    Kill {
        /// The command's number.
        seq: u64,
        /// Process ids that could not be killed.
        unkillable: Vec<i32>,
        /// If the command has not ended because its grace is not over: what is left of it, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_left_ms: Option<u64>,
    },
}

/// What a command wrote before the console shows it: the beginning of its raw file, and the lines that follow that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBefore {
    /// How much of its raw file is the beginning, bytes. With 0, nothing of it is.
    pub file_bytes: u64,
    /// Bytes behind it that are not kept.
    pub left_out: u64,
    /// What follows, in base64: whole lines.
    pub lines_b64: String,
}

/// What the host replied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The answer.
    Answer(Answer),
    /// Why there is no answer.
    Refused(Notice),
}

impl Reply {
    /// Reads a line of JSON; `None` when it is not a reply.
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

/// What the host is and has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostStatus {
    /// The host's version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// How long it has been up, milliseconds.
    pub up_ms: u64,
    /// The name of its journal's session.
    pub session: String,
    /// Commands since its start, those that run included.
    pub commands: u64,
    /// Ended commands of these with an exit code other than 0.
    pub failed: u64,
    /// Commands that run now or wait for their start.
    pub running: u64,
    /// Commands of these that wait for a person's answer.
    pub waiting: u64,
    /// Commands of these that are paused.
    pub paused: u64,
    /// Ended commands that left processes running.
    pub left: u64,
    /// The callers whose commands these are, each once.
    pub agents: Vec<String>,
    /// The agents that have run something today, as the console names them, each once.
    pub agents_today: Vec<String>,
    /// The agents that `rexec run` has started, as far as they are known to live.
    pub started: Vec<StartedAgent>,
    /// The command that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

/// An agent that `rexec run` has started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartedAgent {
    /// Its process.
    pub pid: i32,
    /// When that started, in clock ticks since boot.
    pub start: u64,
    /// Its name.
    pub name: String,
    /// Whether a run of it has come.
    pub has_run: bool,
}

/// A command that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastRun {
    /// Its number.
    pub seq: u64,
    /// The caller's name.
    pub whoami: String,
    /// The command's text, cut to [`crate::limits::ROSTER_TEXT_BYTES`].
    pub command: String,
    /// Its exit code, as the caller got it.
    pub exit: u8,
    /// How long ago it ended, milliseconds.
    pub ended_ms: u64,
}

/// A command that runs, waits, or left processes behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listed {
    /// The command's number.
    pub seq: u64,
    /// Its state.
    pub state: RunState,
    /// The program that waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    /// The words of its prompt, without control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// How long ago it came, milliseconds.
    pub age_ms: u64,
    /// The caller's name.
    pub whoami: String,
    /// The agent's program by its short name, if it is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// Its session, as it names that itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Which of the sessions of callers with this name it is, from 2; 0 for the first one.
    #[serde(skip_serializing_if = "is_zero")]
    pub session_number: u32,
    /// The call of the agent's shell tool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// `subagent` or `hook`, if it is not the agent itself that calls.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// The working directory.
    pub dir: String,
    /// The command's text, cut to [`crate::limits::ROSTER_TEXT_BYTES`].
    pub command: String,
    /// The process id of its guard. Every process below the guard is the command's.
    pub guard: Option<i32>,
    /// The process ids of the command, if it has no guard.
    pub orphans: Vec<i32>,
    /// The sandbox that its shim runs it in, if this host does not run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

impl Listed {
    /// The caller's name as the console shows it.
    #[must_use]
    pub fn agent_name(&self) -> String {
        agent_name(&self.whoami, self.session_number, &self.role)
    }

    /// Whether a person who names an agent means the caller of this command.
    #[must_use]
    pub fn is_of(&self, agent: &str) -> bool {
        is_meant(agent, &self.whoami, self.session_number, &self.role)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The state of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It waits for its start.
    Queued,
    /// Its shell runs.
    Running,
    /// A program of it waits for a person's answer.
    Waiting,
    /// Its processes are stopped until a person resumes them.
    Paused,
    /// It was told to end.
    Stopping,
    /// Its shell has ended; processes that it started go on.
    Left,
    /// A state that only a newer host knows.
    #[default]
    #[serde(other)]
    Unknown,
}

impl RunState {
    /// The word for the state, as `rexec ps` shows it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
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
        assert_eq!(Reply::read(refusal), Some(Reply::Refused(Notice::new(1, "no such command", "look"))));
        assert_eq!(Reply::read("{}"), None);
    }
}
