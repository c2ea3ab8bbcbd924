//! What the command line chose.

use std::path::PathBuf;
use std::time::Duration;

use super::prompt_policy::PromptChoice;
use crate::recorder::Bounds;
use crate::sink::console::View;
use rexec_sh::protocol::choice::{Sanitize, Tty};

/// Whether the console has colours of its own (`--color`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal that can show them, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// On every terminal.
    Always,
    /// Nowhere, and the commands' own colours are left out, too.
    Never,
}

/// What the command line chose.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The path of the socket.
    pub socket: PathBuf,
    /// The journal's directory.
    pub home: PathBuf,
    /// Rows and columns of the commands' terminals, instead of the console's.
    pub pty_size: Option<(u16, u16)>,
    /// Which of a command's descriptors are its terminal, unless its caller says.
    pub tty: Tty,
    /// Whether runtimes are asked not to hold back what they write to pipes, unless the caller says.
    pub live: bool,
    /// The time from SIGTERM to SIGKILL when a person ends a command.
    pub grace: Duration,
    /// What happens to output on its way to a caller, unless the caller says.
    pub sanitize: Sanitize,
    /// How the commands' output reaches the human's terminal.
    pub view: View,
    /// Whether shims' commands are told their number and their caller's name, too.
    pub markers: bool,
    /// Whether the console has colours.
    pub color: Color,
    /// Whether the console marks errors and the like in output that has no colours.
    pub highlights: bool,
    /// Whether the terminal's last row is a status line.
    pub has_status: bool,
    /// The human's shell command for when a run waits for an answer.
    pub notify: Option<String>,
    /// Whether commands get a `TRACEPARENT` of their own.
    pub traces: bool,
    /// What happens when a command asks for terminal input.
    pub prompts: PromptChoice,
    /// How long a prompt waits for an answer.
    pub prompt_wait: Duration,
    /// Whether secrets are masked for callers too, and not only in the journal.
    pub redact_agents: bool,
    /// How much of the beginning and of the end of a command's output goes to a file of its own, bytes each.
    pub raw_cap: u64,
    /// How much of each stream an agent gets, bytes, unless it says; zero means all.
    pub budget: usize,
    /// Whether output is recorded with its times.
    pub records: bool,
    /// Whether the journal keeps the environments of commands, without their secrets.
    pub environments: bool,
    /// Whether commands of sandboxed callers run here, outside of their sandboxes.
    pub allow_sandboxed: bool,
    /// Whether a host that cannot see Landlock sandboxes compares everything else and ignores them.
    pub unseen_landlock: bool,
    /// Whether shims in sandboxes can report the commands that they run.
    pub reports: bool,
    /// How long nobody must have needed the host before it ends; `None`: it goes on.
    pub end_idle: Option<Duration>,
    /// Whether a request must come with a descriptor. No relay of bytes can pass one on.
    pub require_descriptor: bool,
}

impl HostOptions {
    /// How large the journal and its parts may grow.
    pub(super) fn journal_bounds(&self) -> Bounds {
        let bounds = Bounds { raw_cap: self.raw_cap, environments: self.environments, ..Bounds::default() };
        if self.records { bounds } else { Bounds { record_cap: 0, ..bounds } }
    }
}
