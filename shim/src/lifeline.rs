//! Whose end ends the command: the agent's. Its own signals end a command too, but an agent that is killed sends none.
//!
//! | what is known | the command ends |
//! |---|---|
//! | an agent above | with that agent, whatever stands between |
//! | no agent | when the parent has gone and nobody reads the pipes any more |
//! | an orphan, or a caller that ignores SIGHUP as nohup(1) has it | with rexec-sh alone |
//!
//! The look for the agent costs as much as a tenth of a short command. It waits for a moment where neither a variable nor
//! the parent's name tells of one.
//!
//! Invariants: a parent in between that ends, ends nothing; a process is known by its number and its start, and watched
//! by a descriptor, so that no other process is ever taken for it.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::libc;
use rexec_sh::protocol::agents::AgentClues;
use rexec_sh::protocol::mark::NamedProgram;
use rexec_sh::protocol::options::{ShimOptions, given};
use rexec_sh::protocol::process::{Pid, Signal};

use crate::inside::{self, stat_of};
use crate::output_descriptor::OutputDescriptor;
use crate::sys;

/// The bytes of an environment that are read at a time, and in all.
const ENVIRON_BYTES: usize = 16 << 10;
const ENVIRON_BYTES_MAX: usize = 512 << 10;

/// The time from the start of a command to the look for an agent without any clue. Of many callers at once, most have
/// their results by then.
const LATER: Duration = Duration::from_millis(100);

/// The known facts about the agent.
#[derive(Debug, Default)]
enum Agent {
    #[default]
    Unknown,
    /// The look for it is due at this time.
    Sought { clues: AgentClues, at: Instant },
    /// Its descriptor tells its end, until which its number is no other process's.
    Watched(Pid, OwnedFd),
}

/// The processes whose ends count.
#[derive(Debug, Default)]
pub(crate) struct Lifeline {
    agent: Agent,
    /// `None` once it has died, or if its death has no effect.
    parent: Option<(Pid, OwnedFd)>,
    /// No known process waits for the command, so its readers decide.
    is_left: bool,
}

impl Lifeline {
    /// Looks for the processes above this one.
    pub(crate) fn find(env: &[&CStr], options: &ShimOptions<'_>) -> Self {
        if sys::is_ignored(Signal::HUP) {
            return Self::default();
        }
        let clues = AgentClues::of(given(options.run_agent), env.iter().map(|entry| entry.to_bytes()));
        let parent = sys::parent();
        if parent.number() <= 1 {
            // A sandbox starts its first command as the child of its own first process, or of a process outside.
            let is_left = clues.names_agent() && !inside::is_in_first_namespace();
            return Self { is_left, ..Self::default() };
        }
        // Opened before the search for the others, because its death goes unnoticed until then.
        let watch = sys::process_descriptor(parent).ok();
        let agent = match clues.names_agent() || inside::program_of(parent) != NamedProgram::Other {
            true => Agent::above(&clues),
            false => Agent::Sought { clues, at: Instant::now() + LATER },
        };
        let parent = watch.filter(|_| sys::parent() == parent).map(|watch| (parent, watch));
        Self { agent, parent, is_left: false }
    }

    /// The time of the look for the agent.
    pub(crate) fn looks_at(&self) -> Option<Instant> {
        match self.agent {
            Agent::Sought { at, .. } => Some(at),
            Agent::Unknown | Agent::Watched(..) => None,
        }
    }

    /// Looks for the agent, if that was not done yet. Without the parent, the processes above now were not above this
    /// call.
    pub(crate) fn look(&mut self) {
        if let Agent::Sought { clues, .. } = self.agent {
            let is_whole = self.parent().is_some_and(|parent| sys::parent() == parent);
            self.agent = if is_whole { Agent::above(&clues) } else { Agent::Unknown };
        }
    }

    /// The poll(2) entries of the agent and of the parent.
    pub(crate) fn watch(&self) -> [libc::pollfd; 2] {
        let agent = match &self.agent {
            Agent::Watched(_, watch) => Some(watch),
            Agent::Unknown | Agent::Sought { .. } => None,
        };
        let ends = [agent, self.parent.as_ref().map(|(_, watch)| watch)];
        ends.map(|end| sys::watch(end.map_or(-1, AsRawFd::as_raw_fd), libc::POLLIN))
    }

    /// The parent, while it is watched.
    pub(crate) fn parent(&self) -> Option<Pid> {
        self.parent.as_ref().map(|(pid, _)| *pid)
    }

    /// Returns true if the agent is known and about to end. It closes its files before its descriptor tells its end.
    pub(crate) fn is_agent_dying(&self) -> bool {
        matches!(self.agent, Agent::Watched(pid, _) if sys::is_dying(pid))
    }

    /// Returns true if the watched parent has just died, or is about to.
    pub(crate) fn is_parent_dying(&self) -> bool {
        self.parent().is_some_and(|parent| sys::parent() != parent || sys::is_dying(parent))
    }

    pub(crate) fn lose_agent(&mut self) {
        self.agent = Agent::Unknown;
    }

    pub(crate) fn lose_parent(&mut self) {
        self.parent = None;
        self.look();
        self.is_left = !matches!(self.agent, Agent::Watched(..));
    }

    /// Returns true if the command ends once nobody reads its output.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left
    }
}

/// Returns true if there were readers of these outputs, and all have left.
pub(crate) fn have_lost_readers(outputs: &[OutputDescriptor]) -> bool {
    let mut piped = outputs.iter().filter(|output| output.is_piped()).peekable();
    piped.peek().is_some() && piped.all(OutputDescriptor::has_lost_reader)
}

impl Agent {
    /// The known agent above this process.
    fn above(clues: &AgentClues) -> Self {
        let watch = || {
            // In the /proc of another pid namespace the numbers mean other processes.
            let own = inside::own_stat().filter(|own| own.pid == sys::own_pid())?;
            let agent = clues.agent_above(own, stat_of, was_started_with)?;
            let watch = sys::process_descriptor(agent.pid).ok()?;
            stat_of(agent.pid).filter(|now| now.start == agent.start).map(|_| Self::Watched(agent.pid, watch))
        };
        watch().unwrap_or(Self::Unknown)
    }
}

/// Returns true if a process was started with a variable that begins with `variable`. `None` if its environment is
/// hidden. That of a dying process is empty, so such a process counts as one of those between.
fn was_started_with(pid: Pid, variable: &[u8]) -> Option<bool> {
    let path = CString::new(format!("/proc/{pid}/environ")).expect("a number has no NUL");
    let file = sys::open(&path, libc::O_RDONLY).ok()?;
    let (mut text, mut end) = (vec![0; ENVIRON_BYTES], 0);
    while end < ENVIRON_BYTES_MAX {
        if end == text.len() {
            text.resize(end + ENVIRON_BYTES, 0);
        }
        match sys::read(file.as_raw_fd(), &mut text[end..]).ok()? {
            0 => break,
            length => end += length,
        }
    }
    Some(end == 0 || text[..end].split(|&byte| byte == 0).any(|entry| entry.starts_with(variable)))
}
