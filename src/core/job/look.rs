//! When a guard looks for processes of its command that are stopped at the terminal.
//!
//! Stops of a guard's own children are reported to it; for processes further below it has to look. It looks when the
//! command has been silent for a while, then at doubling intervals.

use std::time::{Duration, Instant};

use crate::limits;

/// The times at which a guard looks through the tree of its command.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookSchedule {
    pub(super) at: Instant,
    /// The interval after it.
    every: Duration,
    /// The silence after which the first look follows.
    after: Duration,
    /// The next look is no later than this, however much the command writes.
    latest: Instant,
}

impl LookSchedule {
    /// A first look after this much silence.
    pub(super) fn new(after: Duration, now: Instant) -> Self {
        Self { at: now + after, every: after, after, latest: now + limits::LOOK_EVERY_MAX }
    }

    pub(super) fn put_off(&mut self, now: Instant) {
        self.at = self.latest.min(now + self.after);
        self.every = self.after;
    }

    /// The schedule after a look at `now`.
    pub(super) fn next(self, now: Instant) -> Self {
        let every = (self.every * 2).min(limits::LOOK_EVERY_MAX);
        Self { at: now + every, every, latest: now + limits::LOOK_EVERY_MAX, ..self }
    }
}
