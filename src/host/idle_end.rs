//! The end of a host that nobody needs any more, such as one in the background: no command, no process of one, no
//! connection, and no agent of `rexec run`.
//!
//! Invariant: a host without `--end-idle` never ends by itself; one with it looks once in that time, so an idle host hardly
//! ever wakes.

use std::time::{Duration, Instant};

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

    /// Returns true if a look is due and no command has come since the last one, of which there were this many.
    pub(super) fn is_quiet(&mut self, commands: u64, now: Instant) -> bool {
        let Some(after) = self.after.filter(|_| self.look_at.is_some_and(|at| at <= now)) else { return false };
        self.look_at = Some(now + after);
        commands == std::mem::replace(&mut self.commands, commands)
    }
}
