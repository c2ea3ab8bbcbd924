//! The end of a host that nobody needs any more, such as one in the background: no command, no process of one, no
//! connection, and no agent of `rexec run`.
//!
//! Invariant: a host without `--end-idle` never ends by itself; one with it looks once in that time, so an idle host hardly
//! ever wakes.

use std::time::{Duration, Instant};

use super::Host;
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct IdleEnd {
    after: Option<Duration>,
    look_at: Option<Instant>,
    /// The number of commands up to the last look.
    commands: u64,
}

impl IdleEnd {
    /// Ends the host when nothing has happened for this long.
    pub(super) fn new(after: Option<Duration>, now: Instant) -> Self {
        Self { after, look_at: after.map(|after| now + after.max(limits::END_IDLE_FIRST)), ..Self::default() }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Puts the next look off, because an agent begins.
    pub(super) fn put_off(&mut self, now: Instant) {
        self.look_at = self.after.map(|after| now + after);
    }
}

impl Host {
    /// Ends the host if nobody has needed it since the last look.
    pub(super) fn tick_idle(&mut self) {
        let now = self.turn.now;
        let idle = &mut self.callers.idle;
        let Some(after) = idle.after.filter(|_| idle.look_at.is_some_and(|at| at <= now)) else { return };
        idle.look_at = Some(now + after);
        let commands = std::mem::replace(&mut idle.commands, self.engine.count());
        let has_agents = self.callers.started.are_any_alive();
        let is_needed = has_agents || commands != self.engine.count() || !self.peers.all.is_empty();
        if !is_needed && !self.is_closing() && self.all_running().is_empty() {
            self.screen.say("… nobody has needed this host for long: it ends");
            self.ask_to_end();
        }
    }
}
