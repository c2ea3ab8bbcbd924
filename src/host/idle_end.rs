//! The end of a host that nobody needs any more, as one in the background: no command, no process of one, no connection, and no
//! agent of `rexec run`.
//!
//! Invariant: a host without `--end-idle` never ends by itself; one with it looks once in that time, so an idle host hardly
//! ever wakes.

use std::time::{Duration, Instant};

use rexec_sh::protocol::process::Pid;

use super::Host;
use crate::front::answer::Answer;
use crate::limits;
use crate::sys::tree;

/// What is watched.
#[derive(Debug, Default)]
pub(super) struct IdleEnd {
    after: Option<Duration>,
    look_at: Option<Instant>,
    /// The commands that there had been at the last look.
    commands: u64,
    /// The agents that `rexec run` has started: process number and start.
    agents: Vec<(Pid, u64)>,
}

impl IdleEnd {
    /// Ends the host when nothing has happened for this long.
    pub(super) fn new(after: Option<Duration>, now: Instant) -> Self {
        Self { after, look_at: after.map(|after| now + after.max(limits::END_IDLE_FIRST)), ..Self::default() }
    }

    /// When to look.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// An agent begins in this process.
    fn add(&mut self, agent: Pid, now: Instant) {
        self.look_at = self.after.map(|after| now + after);
        self.agents.retain(is_alive);
        let start = tree::process(agent).map(|process| process.start);
        if let Some(start) = start.filter(|_| self.agents.len() < limits::AGENTS_AWAITED_MAX) {
            self.agents.push((agent, start));
        }
    }
}

fn is_alive(agent: &(Pid, u64)) -> bool {
    tree::process(agent.0).is_some_and(|process| process.start == agent.1 && !process.is_zombie)
}

impl Host {
    /// `rexec run` starts an agent in the process that asks.
    pub(super) fn expect_agent(&mut self, agent: Pid) -> Answer {
        self.callers.idle.add(agent, self.turn.now);
        Answer::Pong { version: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id() }
    }

    /// Ends the host if nobody has needed it since the last look.
    pub(super) fn tick_idle(&mut self) {
        let now = self.turn.now;
        let idle = &mut self.callers.idle;
        let Some(after) = idle.after.filter(|_| idle.look_at.is_some_and(|at| at <= now)) else { return };
        idle.look_at = Some(now + after);
        let commands = std::mem::replace(&mut idle.commands, self.engine.count());
        let has_agents = idle.agents.iter().any(is_alive);
        let is_needed = has_agents || commands != self.engine.count() || !self.peers.all.is_empty();
        if !is_needed && !self.is_closing() && self.all_running().is_empty() {
            self.screen.say("… nobody has needed this host for long: it ends");
            self.ask_to_end();
        }
    }
}
