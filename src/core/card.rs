//! The card of a run: what is known of it when it begins and may be published.
//!
//! It is made once, where a request becomes a job. Console, journal, transcript and lists each show a part of it.
//! Invariant: neither an environment nor a value for masking is a part of it.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The run's number, unique within one host.
    pub run: u64,
    /// When the run began, RFC 3339.
    pub time: String,
    /// The same moment on the clock of the loop.
    pub at: Instant,
    pub caller: Caller,
    pub place: Place,
    pub command: CommandLine,
    /// The sandbox that its shim runs it in, if the host does not run it.
    pub sandbox: Option<String>,
}

/// The facts about a caller. Empty texts are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Its name.
    pub whoami: String,
    /// The short name of the agent's program, even if its name is another one.
    pub agent: &'static str,
    pub version: String,
    /// The agent's own name for its session, or `run-PID` for the start by `rexec run` in that process.
    pub session: String,
    /// The call of its shell tool that runs the command.
    pub call: String,
    pub role: Role,
    /// The number among the sessions of callers with this name, from 1; 0 if not known yet.
    pub number: u32,
}

impl Caller {
    /// The number of its session in published forms, from 2; 0 for the first one.
    #[must_use]
    pub fn session_number(&self) -> u32 {
        if self.number > 1 { self.number } else { 0 }
    }
}

/// The part of an agent that calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// The agent itself.
    #[default]
    Agent,
    /// An agent that it has started within itself.
    Subagent,
    /// A command from its settings.
    Hook,
}

impl Role {
    /// The word for the part; empty for the agent itself.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "",
            Self::Subagent => "subagent",
            Self::Hook => "hook",
        }
    }

    /// The part that a record names.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        [Self::Subagent, Self::Hook].into_iter().find(|role| role.word() == word).unwrap_or_default()
    }
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub dir: String,
    /// The same as a person would name it: from the top of its project, or from the home directory.
    pub name: String,
}

/// What is run, and what its caller said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The command, without an agent's wrapper.
    pub text: String,
    /// The program and its arguments, if its caller gave words and not a line for a shell.
    pub words: Option<Vec<String>>,
    /// The shell, or the program of these words.
    pub shell: String,
    /// `text` lacks its agent's wrapper.
    pub is_unwrapped: bool,
    /// An agent only looks at the shell.
    pub is_probe: bool,
    /// Its purpose, in its caller's words. May be empty.
    pub why: String,
    /// The name of its service. May be empty.
    pub service: String,
    /// The time limit that its caller set.
    pub timeout: Option<Duration>,
}
