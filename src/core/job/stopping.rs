//! A job is asked to end.
//!
//! Invariant: a job without a grace gets no SIGTERM, because a program could act on it before the SIGKILL comes.

use std::time::{Duration, Instant};

use super::{Job, JobState, Order, Stop};
use crate::core::entry::{Entry, Outcome, Reason};
use crate::limits;

impl Job {
    /// Asks the job to end: SIGTERM, and SIGKILL after `grace`. Without a grace, or asked again, it is killed at once.
    #[must_use]
    pub fn stop(&mut self, reason: Reason, grace: Duration, now: Instant) -> Option<Order> {
        match (&self.state, self.stop) {
            (JobState::Closed, _) | (_, Stop::Killed { .. }) => None,
            (JobState::Queued, _) => {
                self.close(Outcome::NeverRun(reason));
                None
            }
            (_, Stop::Terminating { reason, .. }) => self.kill(reason, now),
            (_, Stop::No) => {
                self.log.push(Entry::Stopping { reason });
                self.prompts.on_asker_gone();
                let order = if grace.is_zero() {
                    self.kill(reason, now)
                } else {
                    self.stop = Stop::Terminating { reason, kill_at: now + grace };
                    self.guard.then_some(Order::Terminate)
                };
                self.settle(None);
                order
            }
        }
    }

    /// When SIGKILL follows SIGTERM, if that is still to come.
    #[must_use]
    pub fn killed_at(&self) -> Option<Instant> {
        match self.stop {
            Stop::Terminating { kill_at, .. } if self.is_alive() => Some(kill_at),
            _ => None,
        }
    }

    pub(super) fn kill(&mut self, reason: Reason, now: Instant) -> Option<Order> {
        self.stop = Stop::Killed { reason, give_up_at: now + limits::KILL_TIMEOUT };
        self.guard.then_some(Order::Kill)
    }
}
