//! Finds the shim of a report that has begun. Without it, a report is nobody's word, and becomes nothing.
//!
//! A shim in the host's own pid namespace is found by its number. One of another namespace is mostly a caller that was
//! refused a moment ago. Where it could not even connect, all processes are looked at: once for all reports that wait
//! for it, in parts, so that nobody else waits long, and after a pause that is many times as long as the last look took.
//! A shim stays until it was looked for, as its FIFO's lock tells it.
//!
//! Invariant: a look counts for the reports alone that had begun before it, as it sees no later process.

use std::time::{Duration, Instant};

use rexec_sh::protocol::report::{Beginning, RunKey, witness_name};

use super::run::ReportedRun;
use crate::host::Host;
use crate::limits;
use crate::sys::fifo::ShimLook;
use crate::sys::namespace::{self, Census, Whereabouts};
use crate::sys::tree::Process;

#[derive(Debug)]
pub(super) struct ShimSearch {
    census: Option<RunningCensus>,
    /// When the next one may begin.
    next_at: Instant,
}

#[derive(Debug)]
struct RunningCensus {
    census: Census,
    began: Instant,
    /// The time that it has taken so far.
    spent: Duration,
}

impl ShimSearch {
    pub(super) fn new(now: Instant) -> Self {
        Self { census: None, next_at: now }
    }

    /// When the search goes on, if one of these runs waits for it.
    pub(super) fn deadline<'a>(&self, mut runs: impl Iterator<Item = &'a ReportedRun>) -> Option<Instant> {
        let is_due = self.census.is_some() || runs.any(|run| run.sought_since.is_some());
        is_due.then(|| self.census.as_ref().map_or(self.next_at, |running| running.began))
    }

    /// Goes on for a part. Returns the whole look and its beginning if that was the last part.
    fn go_on(&mut self) -> Option<(Census, Instant)> {
        let from = Instant::now();
        let new = || RunningCensus { census: Census::begin(), began: from, spent: Duration::ZERO };
        let mut running = self.census.take().unwrap_or_else(new);
        let is_whole = running.census.go_on(limits::REPORT_SEARCH_PART);
        running.spent += from.elapsed();
        if !is_whole {
            self.census = Some(running);
            return None;
        }
        self.next_at = Instant::now() + running.spent * limits::REPORT_SEARCH_REST;
        Some((running.census, running.began))
    }
}

impl Host {
    /// The beginning of a report is whole: looks for its shim.
    pub(super) fn seek_reported(&mut self, key: RunKey) {
        let Some(run) = self.reports.runs.get_mut(&key) else { return };
        let place = Beginning::decode(&run.beginning).map(|beginning| beginning.place);
        let (Some(place), Some(open)) = (place, self.reports.fifo_identity) else { return self.refuse_report(key) };
        run.place = place;
        let named = run.named();
        let name = witness_name(&run.mark());
        let is_same = |other: &ReportedRun| other.has_begun() && witness_name(&other.mark()) == name;
        if self.reports.runs.values().any(is_same) {
            return self.refuse_report(key);
        }
        if !self.reports.looks.take(limits::REPORT_LOOKS_A_SECOND, self.turn.now) {
            return self.drop_reported(key);
        }
        match namespace::find_here(&named, open) {
            Whereabouts::Here(shim) => self.on_shim(key, shim),
            Whereabouts::Gone => self.on_no_shim(key),
            Whereabouts::Elsewhere => match self.reports.find_refused(&named, open) {
                Some(shim) => self.on_shim(key, shim),
                None => {
                    self.reports.runs.entry(key).and_modify(|run| run.sought_since = Some(Instant::now()));
                }
            },
        }
    }

    /// Goes on with the search for the shims that are not found yet.
    pub(super) fn tick_search(&mut self) {
        let due = self.reports.search.deadline(self.reports.runs.values());
        if due.is_some_and(|at| at <= self.turn.now)
            && let Some((census, began)) = self.reports.search.go_on()
        {
            let sought =
                self.reports.runs.iter().filter(|(_, run)| run.sought_since.is_some_and(|since| since <= began));
            let sought: Vec<_> = sought.map(|(&key, run)| (key, run.named())).collect();
            for (key, named) in sought {
                match self.reports.fifo_identity.and_then(|open| census.find(&named, open)) {
                    Some(shim) => self.on_shim(key, shim),
                    None => self.on_no_shim(key),
                }
            }
        }
        let is_sought = self.reports.runs.values().any(|run| run.sought_since.is_some());
        let fifo = self.reports.fifo.as_mut().filter(|_| !is_sought);
        fifo.into_iter().for_each(|fifo| fifo.tell_shims(ShimLook::Done));
    }

    fn on_shim(&mut self, key: RunKey, shim: Process) {
        let has_same = |run: &&ReportedRun| run.living_shim() == Some(shim);
        if self.reports.runs.values().filter(has_same).count() >= limits::REPORTS_OF_ONE_SHIM {
            return self.refuse_report(key);
        }
        if !self.is_in_time() {
            return self.drop_reported(key);
        }
        self.reports.runs.entry(key).and_modify(|run| run.sought_since = None);
        self.begin_reported(key, shim);
    }

    fn on_no_shim(&mut self, key: RunKey) {
        self.reports.runs.remove(&key);
        if !std::mem::replace(&mut self.reports.told.absent, true) {
            self.screen.say("… a command was reported whose rexec-sh is not there: such reports are ignored");
        }
    }

    fn refuse_report(&mut self, key: RunKey) {
        self.drop_reported(key);
        self.tell_forged();
    }
}
