//! The callers: the agent that asks for a command, and its session.
//!
//! An agent that sets no variable is known by the name of its program, and one that does not name its sessions has one in
//! each of its processes. Both are asked of the process that calls: the nearest one above the shim that is not a shell or a
//! wrapper of one.
//!
//! Invariants: only what `/proc/PID/stat` says is read, by the looker (`cmdline` and `environ` lie in the memory of the
//! process, whose pages may be a file system's that never answers); few processes are looked at, and those above an agent
//! once; what was seen is bounded.

use std::collections::VecDeque;
use std::time::Instant;

use rexec_sh::protocol::agent_programs::{is_between, named_by_program};
use rexec_sh::protocol::process::Pid;

use super::idle_end::IdleEnd;
use super::peer::Peer;
use super::started_agents::StartedAgents;
use crate::core::card::Role;
use crate::front::caller::lacks_sessions;
use crate::front::command::Command;
use crate::front::sessions::Sessions;
use crate::limits;
use crate::sys::program::Program;
use crate::sys::tree;
use crate::text::agent_name::short_name;
use crate::text::name::name_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin {
    pid: Pid,
    start: u64,
    /// The agent that its program's name stands for.
    agent: Option<&'static str>,
    /// Commands have come from it that an agent's variables named.
    is_agents: bool,
}

#[derive(Debug, Default)]
pub(super) struct Callers {
    sessions: Sessions,
    pub(super) idle: IdleEnd,
    pub(super) started: StartedAgents,
    /// A shim's parent, by number, start and program, with what was found from there.
    known: VecDeque<((Pid, u64, Program), Origin)>,
    /// The process of each agent is looked for, so that none decides for its user.
    notes_agents: bool,
}

impl Callers {
    /// `notes_agents` says that people decide on commands.
    pub(super) fn new(idle: IdleEnd, notes_agents: bool) -> Self {
        Self { idle, notes_agents, ..Self::default() }
    }

    /// People decide on commands from now on.
    pub(super) fn note_agents(&mut self) {
        self.notes_agents = true;
    }

    /// Completes the facts about a command's caller. `shim` is the peer that asks, if that is a shim.
    pub(super) fn identify(&mut self, command: &mut Command, shim: Option<&Peer>) {
        let is_agents = !command.is_unnamed && !command.caller.agent.is_empty();
        let is_asked = command.is_unnamed || lacks_sessions(&command.caller) || (self.notes_agents && is_agents);
        let origin = shim.filter(|_| is_asked).and_then(|shim| self.origin(shim));
        if let Some(origin) = origin.filter(|_| is_agents) {
            let is_same = |known: &&mut Origin| known.pid == origin.pid && known.start == origin.start;
            self.known.iter_mut().map(|(_, known)| known).filter(is_same).for_each(|known| known.is_agents = true);
        }
        if let Some(name) = origin.and_then(|origin| origin.agent).filter(|_| command.is_unnamed) {
            command.caller.whoami = name.to_owned();
            command.caller.agent = short_name(name);
            // Codex gives the commands of a person's settings none of its variables.
            let is_hook = name == "Codex" && !command.is_for_program;
            command.caller.role = if is_hook { Role::Hook } else { Role::Agent };
        }
        let caller = &mut command.caller;
        if let Some(origin) = origin.filter(|_| lacks_sessions(caller)) {
            caller.session = format!("pid-{}", origin.pid);
            command.session_key = format!("{}-{}", origin.pid, origin.start);
        }
        caller.number = self.sessions.number(&caller.whoami, command.session_key.as_bytes());
        self.started.hear(command.started, &caller.whoami);
    }

    /// `rexec run` starts an agent of this name in this process.
    pub(super) fn expect(&mut self, agent: Pid, name: &str, now: Instant) {
        self.idle.put_off(now);
        self.started.add(agent, name_of(name, limits::WHOAMI_COLUMNS), now);
    }

    /// The name of the agent whose process this is, if it is known as one: by its program, because `rexec run` has started
    /// it, or because an agent's commands have come from it.
    pub(super) fn agent_in(&self, process: &tree::Process) -> Option<String> {
        let is_it = |origin: &Origin| origin.is_agents && origin.pid == process.pid && origin.start == process.start;
        let has_called = || self.known.iter().any(|(_, origin)| is_it(origin)).then(|| "an agent".to_owned());
        let named = named_by_program(&process.program.to_string()).or_else(|| self.started.name_of(process.pid));
        named.map(str::to_owned).or_else(has_called)
    }

    /// The process that stands for the agent behind a connection: the one that its calls come from, or the one that has
    /// connected.
    pub(super) fn process_of(&mut self, peer: &Peer) -> Pid {
        self.origin(peer).map_or(peer.pid, |origin| origin.pid)
    }

    /// The process that a shim's call comes from; `None` if it is gone or too far.
    fn origin(&mut self, shim: &Peer) -> Option<Origin> {
        let parent = shim.parent.map_or_else(|| above(shim.pid), could_be_agent)?;
        let identity = (parent.pid, parent.start, parent.program);
        if let Some((_, origin)) = self.known.iter().find(|(known, _)| *known == identity) {
            return Some(*origin);
        }
        let mut process = parent;
        for _ in 0..limits::ANCESTORS_MAX {
            let program = process.program.to_string();
            if !is_between(&program) {
                let agent = named_by_program(&program);
                let origin = Origin { pid: process.pid, start: process.start, agent, is_agents: agent.is_some() };
                if self.known.len() >= limits::ANCESTORS_KNOWN_MAX {
                    self.known.pop_front();
                }
                self.known.push_back((identity, origin));
                return Some(origin);
            }
            process = above(process.pid)?;
        }
        None
    }
}

/// The parent of a process, unless it has none that could be an agent.
fn above(pid: Pid) -> Option<tree::Process> {
    could_be_agent(tree::process(pid)?.parent)
}

/// A process, if it lives and could be an agent.
fn could_be_agent(pid: Pid) -> Option<tree::Process> {
    (pid.number() > 1).then(|| tree::process(pid)).flatten()
}
