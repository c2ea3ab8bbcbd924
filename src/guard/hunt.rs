//! Ends a command's process tree: kills every descendant, again and again, until none is left.
//!
//! Invariants: a hunt ends after [`limits::KILL_ROUNDS_MAX`] rounds or [`limits::KILL_HUNT`], and reports the
//! survivors.

use std::time::{Duration, Instant};

use super::control::GuardReport;
use crate::limits;
use crate::sys::tree::Process;
use crate::sys::{kill, process, tree};
use rexec_sh::protocol::process::Signal;

/// The progress of ending the tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hunt {
    /// Nobody wants the tree to end.
    No,
    /// The host is gone. The tree has got SIGTERM and is killed at this time.
    Grace { until: Instant },
    /// Every descendant is killed in rounds.
    Killing { round: u32, next: Instant, until: Instant },
    /// SIGKILL does not end the remaining processes.
    GivenUp,
}

impl Hunt {
    /// Begins to kill, unless that has begun already.
    pub(super) fn start(&mut self, now: Instant) -> Vec<GuardReport> {
        if matches!(self, Self::Killing { .. }) {
            return Vec::new();
        }
        *self = Self::Killing { round: 0, next: now, until: now + limits::KILL_HUNT };
        self.tick(now)
    }

    /// The time at which [`Hunt::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match *self {
            Self::Grace { until } | Self::Killing { next: until, .. } => Some(until),
            Self::No | Self::GivenUp => None,
        }
    }

    /// Does the due work; returns the reports for the host.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<GuardReport> {
        match *self {
            Self::Grace { until } if now >= until => self.start(now),
            Self::Killing { round, next, until } if now >= next => self.kill_round(round, until, now),
            _ => Vec::new(),
        }
    }

    fn kill_round(&mut self, round: u32, until: Instant, now: Instant) -> Vec<GuardReport> {
        let living = tree::descendants(process::pid());
        if round >= limits::KILL_ROUNDS_MAX || now >= until {
            *self = Self::GivenUp;
            let report = |left: &Process| GuardReport::Unkillable { pid: left.pid, program: left.program };
            return living.iter().take(limits::STRAGGLERS_NAMED_MAX).map(report).collect();
        }
        for process in living {
            let _ = kill::process(process.pid, Signal::KILL);
        }
        let pause = Duration::from_millis(50.min(2 << round.min(5)));
        *self = Self::Killing { round: round + 1, next: now + pause, until };
        Vec::new()
    }
}
