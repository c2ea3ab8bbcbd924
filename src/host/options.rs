//! What the command line chose.

use std::path::PathBuf;
use std::time::Duration;

use super::prompt_policy::PromptChoice;
use crate::gate::UndoSettings;
use crate::recorder::Bounds;
use crate::sink::console::View;
use rexec_sh::protocol::choice::{Sanitize, Tty};

/// The console's own colours (`--color`).
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

#[derive(Debug, Clone)]
pub struct HostOptions {
    pub socket: PathBuf,
    /// The journal's directory.
    pub home: PathBuf,
    /// Rows and columns of the commands' terminals, instead of the console's.
    pub pty_size: Option<(u16, u16)>,
    /// Which of a command's descriptors are its terminal, unless its caller says.
    pub tty: Tty,
    /// Ask runtimes not to hold back what they write to pipes, unless the caller says.
    pub live: bool,
    /// The time from SIGTERM to SIGKILL when a person ends a command.
    pub grace: Duration,
    /// The filter for output on its way to a caller, unless the caller says.
    pub sanitize: Sanitize,
    /// How the commands' output reaches the human's terminal.
    pub view: View,
    /// Tell shims' commands their number and their caller's name, too.
    pub markers: bool,
    pub color: Color,
    /// Mark errors and the like on the console, in output that has no colours.
    pub highlights: bool,
    /// The terminal's last row is a status line.
    pub has_status: bool,
    /// The human's shell command for when a run waits for an answer.
    pub notify: Option<String>,
    /// Give commands a `TRACEPARENT` of their own.
    pub traces: bool,
    pub prompts: PromptChoice,
    /// The time that a prompt waits for an answer.
    pub prompt_wait: Duration,
    /// Mask secrets for callers too, and not only in the journal.
    pub redact_agents: bool,
    /// Bytes of the beginning, and of the end, of a command's output that go to a file of its own.
    pub raw_cap: u64,
    /// Bytes of each stream that an agent gets, unless it says; zero means all.
    pub budget: usize,
    /// Record output with its times.
    pub records: bool,
    /// Keep what commands may destroy, for `rexec undo`.
    pub undo: bool,
    /// How they are kept.
    pub keeping: UndoSettings,
    /// Keep the environments of commands in the journal, without their secrets.
    pub environments: bool,
    /// Run commands of sandboxed callers here, outside of their sandboxes.
    pub allow_sandboxed: bool,
    /// If the host cannot see Landlock sandboxes, compare everything else and ignore them.
    pub unseen_landlock: bool,
    /// Let shims in sandboxes report the commands that they run.
    pub reports: bool,
    /// A sentence on the options that a file has set.
    pub of_file: Option<String>,
    /// Where the person's file of rules stands, if it counts.
    pub config: Option<PathBuf>,
    /// The time without any need for the host after which it ends; `None`: it goes on.
    pub end_idle: Option<Duration>,
    /// Requests must come with a descriptor. No relay of bytes can pass one on.
    pub require_descriptor: bool,
}

impl HostOptions {
    /// The bounds on the journal and its parts.
    pub(super) fn journal_bounds(&self) -> Bounds {
        let bounds = Bounds { raw_cap: self.raw_cap, environments: self.environments, ..Bounds::default() };
        if self.records { bounds } else { Bounds { record_cap: 0, ..bounds } }
    }
}
