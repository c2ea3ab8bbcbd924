//! A job is asked to end.
//!
//! Invariant: a job without a grace gets no SIGTERM, because a program could act on it before the SIGKILL comes.

use std::time::{Duration, Instant};

use super::{Job, JobState, Order, Stop};
use crate::core::end::{How, Stopper};
use crate::core::entry::Entry;
use crate::limits;

impl Job {
    /// Asks the job to end: SIGTERM, and SIGKILL after `grace`. Without a grace, or asked again, it is killed at once.
    #[must_use]
    pub fn stop(&mut self, by: Stopper, grace: Duration, now: Instant) -> Option<Order> {
        match (&self.state, self.stop) {
            (JobState::Ended { .. } | JobState::Over, _) | (_, Stop::Killed { .. }) => None,
            (JobState::Queued | JobState::Held(_), _) => {
                self.end(How::NeverRun, Some(by));
                None
            }
            (_, Stop::Terminating { by, .. }) => self.kill(by, now),
            (_, Stop::No) => {
                self.log.push(Entry::Stopping { by });
                self.prompts.on_asker_gone();
                let order = if grace.is_zero() {
                    self.kill(by, now)
                } else {
                    self.stop = Stop::Terminating { by, kill_at: now + grace };
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

    pub(super) fn kill(&mut self, by: Stopper, now: Instant) -> Option<Order> {
        self.stop = Stop::Killed { by, give_up_at: now + limits::KILL_TIMEOUT };
        self.guard.then_some(Order::Kill)
    }
}
