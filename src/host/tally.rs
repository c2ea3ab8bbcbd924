//! Counts how the host's commands ended, and remembers the last one.

use std::time::Instant;

use super::runs::Runs;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::Entry;
use crate::front::answer::{HostStatus, LastRun};

/// What is known of the commands that have ended.
#[derive(Debug)]
pub(super) struct Tally {
    since: Instant,
    failed: u64,
    last: Option<(LastRun, Instant)>,
}

impl Tally {
    /// Nothing has ended yet.
    pub(super) fn new(since: Instant) -> Self {
        Self { since, failed: 0, last: None }
    }

    /// Counts a command if it has ended since the last call. The journal's reader has not read its last entry then.
    pub(super) fn note(&mut self, job: JobId, engine: &Engine, runs: &mut Runs, now: Instant) {
        let Some(Entry::Closed { outcome, .. }) = engine.job(job).and_then(|known| known.log.newest()) else { return };
        let Some(run) = runs.get_mut(job).filter(|run| !run.is_tallied) else { return };
        run.is_tallied = true;
        let (exit, known) = (outcome.exit_code(), &run.description);
        self.failed += u64::from(exit != 0);
        let (whoami, command) = (known.whoami.clone(), known.command.clone());
        self.last = Some((LastRun { seq: job.0, whoami, command, exit, ended_ms: 0 }, now));
    }

    /// Adds what is known to a status.
    pub(super) fn fill(&self, status: &mut HostStatus, now: Instant) {
        let ms = |from: Instant| u64::try_from(now.saturating_duration_since(from).as_millis()).unwrap_or(u64::MAX);
        (status.up_ms, status.failed) = (ms(self.since), self.failed);
        status.last = self.last.clone().map(|(last, at)| LastRun { ended_ms: ms(at), ..last });
    }
}
