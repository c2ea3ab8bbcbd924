//! Counts how the host's commands ended, and remembers the last one.
//!
//! Invariant: a day's numbers begin with its first command.

use std::collections::BTreeSet;
use std::time::Instant;

use time::Date;

use super::run::Description;
use super::runs::Runs;
use crate::core::engine::{Engine, JobId};
use crate::front::answer::{HostStatus, LastRun};
use crate::limits;
use crate::text::agent_name::{agent_name, is_agent};

#[derive(Debug)]
pub(super) struct Tally {
    since: Instant,
    failed: u64,
    /// The human's day, the number of failures on it, and the agents that ran something.
    day: Option<Date>,
    failed_today: u64,
    agents: BTreeSet<String>,
    last: Option<(LastRun, Instant)>,
}

impl Tally {
    pub(super) fn new(since: Instant) -> Self {
        Self { since, failed: 0, day: None, failed_today: 0, agents: BTreeSet::new(), last: None }
    }

    /// A caller begins a command.
    pub(super) fn begin(&mut self, whoami: &str, day: Date) {
        if self.day.replace(day).is_some_and(|before| before != day) {
            self.failed_today = 0;
            self.agents.clear();
        }
        if is_agent(whoami) && self.agents.len() < limits::AGENTS_COUNTED_MAX {
            self.agents.insert(agent_name(whoami, 1, ""));
        }
    }

    /// The number of agents that have run something today.
    pub(super) fn agents(&self) -> usize {
        self.agents.len()
    }

    pub(super) fn failed_today(&self) -> u64 {
        self.failed_today
    }

    /// Counts a command if it has ended since the last call. The journal's reader has not read its end then.
    pub(super) fn note(&mut self, job: JobId, engine: &Engine, runs: &mut Runs, now: Instant) {
        let Some(run) = runs.get_mut(job).filter(|run| !run.is_tallied) else { return };
        run.is_tallied = self.count(job, engine, &run.description, now);
    }

    /// Counts a command if it has ended. Returns true if it has.
    pub(super) fn count(&mut self, job: JobId, engine: &Engine, known: &Description, now: Instant) -> bool {
        let Some(end) = engine.job(job).and_then(|known| known.log.end()) else { return false };
        let exit = end.code();
        self.failed += u64::from(exit != 0);
        self.failed_today += u64::from(exit != 0);
        let (whoami, command) = (known.card.whoami.clone(), known.card.command.clone());
        self.last = Some((LastRun { seq: job.0, whoami, command, exit, ended_ms: 0 }, now));
        true
    }

    pub(super) fn fill(&self, status: &mut HostStatus, now: Instant) {
        let ms = |from: Instant| u64::try_from(now.saturating_duration_since(from).as_millis()).unwrap_or(u64::MAX);
        (status.up_ms, status.failed) = (ms(self.since), self.failed);
        status.agents_today = self.agents.iter().cloned().collect();
        status.last = self.last.clone().map(|(last, at)| LastRun { ended_ms: ms(at), ..last });
    }
}
