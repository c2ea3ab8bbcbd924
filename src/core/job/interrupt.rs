//! A person's ^C for a command that is shown on the console.
//!
//! The command decides what it does about it, so it is not asked to end as by [`Job::stop`]. Invariant: only an end that
//! comes soon after counts as the person's.

use std::time::Instant;

use super::{Job, JobState, Order};
use crate::limits;

impl Job {
    /// Interrupts a running command, as ^C at its terminal would.
    #[must_use]
    pub fn interrupt(&mut self, now: Instant) -> Option<Order> {
        let is_running = self.state == JobState::Running && self.guard;
        is_running.then(|| {
            self.interrupted = Some(now);
            Order::Interrupt
        })
    }

    /// The shell has ended: forgets an interrupt that came too long ago to be the reason.
    pub(super) fn judge_interrupt(&mut self, end: Instant) {
        self.interrupted = self.interrupted.filter(|&at| end.saturating_duration_since(at) <= limits::INTERRUPT_COUNTS);
    }
}
