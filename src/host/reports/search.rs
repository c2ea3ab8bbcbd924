//! Finds the shim of a report that has begun. Without it, a report is nobody's word, and becomes nothing.
//!
//! A shim in the host's own pid namespace is found by its number. One of another namespace is mostly a caller that was
//! refused a moment ago. Where it could not even connect, all processes are looked at: once for all reports that wait
//! for it, in parts, so that nobody else waits long, and after a pause that is many times as long as the last look took.
//! A shim stays until it was looked for, as its FIFO's lock tells it.
//!
//! Invariant: a look counts for the reports alone that had begun before it, as it sees no later process.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rexec_sh::protocol::report::{Beginning, RunKey, witness_name};

use super::Reports;
use super::intake::FoundShim;
use super::run::ReportedRun;
use crate::host::screen::Screen;
use crate::limits;
use crate::sys::fifo::ShimLook;
use crate::sys::namespace::{self, Census, Whereabouts};
use crate::sys::tree::Process;

#[derive(Debug)]
pub(super) struct ShimSearch {
    census: Option<RunningCensus>,
    /// When the next one may begin.
    next_at: Instant,
    /// The shims that the last one has found or not, until [`Reports::next_searched`] takes them.
    results: VecDeque<(RunKey, Option<Process>)>,
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
        Self { census: None, next_at: now, results: VecDeque::new() }
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

impl Reports {
    /// The beginning of a report is whole: looks for its shim, which may take a search.
    pub(super) fn seek(&mut self, key: RunKey, now: Instant, screen: &mut Screen) -> Option<FoundShim> {
        let run = self.runs.get_mut(&key)?;
        let place = Beginning::decode(&run.beginning).map(|beginning| beginning.place);
        let (Some(place), Some(open)) = (place, self.fifo_identity) else { return self.refuse(key, screen) };
        run.place = place;
        let named = run.named();
        let name = witness_name(&run.mark());
        let is_same = |other: &ReportedRun| other.has_begun() && witness_name(&other.mark()) == name;
        if self.runs.values().any(is_same) {
            return self.refuse(key, screen);
        }
        if !self.looks.take(limits::REPORT_LOOKS_A_SECOND, now) {
            self.drop_run(key);
            return None;
        }
        match namespace::find_here(&named, open) {
            Whereabouts::Here(shim) => self.on_shim(key, shim, now, screen),
            Whereabouts::Gone => self.on_no_shim(key, screen),
            Whereabouts::Elsewhere => match self.find_refused(&named, open) {
                Some(shim) => self.on_shim(key, shim, now, screen),
                None => {
                    self.runs.entry(key).and_modify(|run| run.sought_since = Some(Instant::now()));
                    None
                }
            },
        }
    }

    /// Goes on with the search for the shims that are not found yet, if that is due.
    pub(in crate::host) fn search(&mut self, now: Instant) {
        let due = self.search.deadline(self.runs.values());
        if due.is_some_and(|at| at <= now)
            && let Some((census, began)) = self.search.go_on()
        {
            let sought = self.runs.iter().filter(|(_, run)| run.sought_since.is_some_and(|since| since <= began));
            let find = |run: &ReportedRun| self.fifo_identity.and_then(|open| census.find(&run.named(), open));
            self.search.results = sought.map(|(&key, run)| (key, find(run))).collect();
        }
    }

    /// Takes the results of the search, up to a shim that is there.
    pub(in crate::host) fn next_searched(&mut self, now: Instant, screen: &mut Screen) -> Option<FoundShim> {
        while let Some((key, shim)) = self.search.results.pop_front() {
            let found = match shim {
                Some(shim) => self.on_shim(key, shim, now, screen),
                None => self.on_no_shim(key, screen),
            };
            if found.is_some() {
                return found;
            }
        }
        let is_sought = self.runs.values().any(|run| run.sought_since.is_some());
        let fifo = self.fifo.as_mut().filter(|_| !is_sought);
        fifo.into_iter().for_each(|fifo| fifo.tell_shims(ShimLook::Done));
        None
    }

    fn on_shim(&mut self, key: RunKey, shim: Process, now: Instant, screen: &mut Screen) -> Option<FoundShim> {
        let has_same = |run: &&ReportedRun| run.living_shim() == Some(shim);
        if self.runs.values().filter(has_same).count() >= limits::REPORTS_OF_ONE_SHIM {
            return self.refuse(key, screen);
        }
        if !self.is_in_time(now, screen) {
            self.drop_run(key);
            return None;
        }
        self.runs.entry(key).and_modify(|run| run.sought_since = None);
        Some(FoundShim { key, shim })
    }

    fn on_no_shim(&mut self, key: RunKey, screen: &mut Screen) -> Option<FoundShim> {
        self.runs.remove(&key);
        if !std::mem::replace(&mut self.told.absent, true) {
            screen.say("… a command was reported whose rexec-sh is not there: such reports are ignored");
        }
        None
    }

    fn refuse(&mut self, key: RunKey, screen: &mut Screen) -> Option<FoundShim> {
        self.drop_run(key);
        self.tell_forged(screen);
        None
    }
}
