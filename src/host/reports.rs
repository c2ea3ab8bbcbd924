//! The reports: what shims in sandboxes write about commands that they run themselves.
//!
//! | file | what it does |
//! |---|---|
//! | `reports/fifo.rs` | keeps the FIFO beside the socket, and reads it within a bound per second |
//! | `reports/run.rs` | one reported run: its records in order, and its process as seen from here |
//! | `reports/control.rs` | ends, signals, pauses and resumes reported runs for people |
//! | `reports/search.rs` | finds the shim of a report that has begun |
//! | `reports/shim_identity.rs` | which process may be the shim of a run |
//! | `reports/dropped.rs` | whose reports found no room |
//! | `reports/intake.rs` | finds what may become a job, makes facts of the other records, and notices ends |
//!
//! Everybody who runs as this user can write there. So a report makes the host run nothing, and a signal goes only to
//! the tree of a process that was found from here: of this user, in the namespace that the report names, with the number
//! and start that it names, and with the FIFO open for writing only; and only if it is this run's, as `shim_identity.rs`
//! says.
//!
//! Invariants: reported runs, their beginnings and what is read in a second are bounded; a report whose shim is not found
//! when it has begun becomes nothing; all searches for shims together take a bounded part of the time; a flood or a forged
//! record is named once on the console; a run ends when its shim is gone: as it has reported, or, once what was seen below
//! the shim is gone too, as lost. Records that are missing, doubled or behind the end make a report doubtful, and then its
//! end is lost, too.

mod control;
mod dropped;
mod fifo;
mod intake;
mod run;
mod search;
mod shim_identity;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Instant;

use rexec_sh::protocol::place;
use rexec_sh::protocol::process::Pid;
use rexec_sh::protocol::report::RunKey;

use super::rate_count::RateCount;
use super::screen::Screen;
use super::turn::Turn;
use super::unseen::{self, UnseenNotes};
use crate::core::engine::JobId;
use crate::io::poller::{Ready, Token};
use crate::limits;
use crate::sys::namespace::{self, InnerProcess};
use crate::sys::tree::Process;
use crate::text::reason::reason;
use dropped::DroppedShims;
use fifo::ReportFifo;
pub(super) use intake::{BegunReport, ClosedReport, FoundShim};
pub(super) use run::ReportedRun;
use search::ShimSearch;

/// The faults of reports that the console has named, each once.
#[derive(Debug, Default)]
struct Told {
    forged: bool,
    flood: bool,
    crowd: bool,
    rush: bool,
    absent: bool,
    meddled: bool,
}

#[derive(Debug)]
pub(super) struct Reports {
    /// `None` with `--no-reports`.
    fifo: Option<ReportFifo>,
    /// Device and inode.
    fifo_identity: Option<(u64, u64)>,
    runs: BTreeMap<RunKey, ReportedRun>,
    dropped: DroppedShims,
    /// The keys of the runs that ended last, newest first. Nothing comes with them any more.
    over: VecDeque<RunKey>,
    /// The lines about refused callers that the console shows unless a report comes first.
    refused: Vec<Refused>,
    /// Its hash matches a report with the refusal before it: nobody else can make two that have the same.
    hash: RandomState,
    told: Told,
    search: ShimSearch,
    beginnings: RateCount,
    /// Looks at the processes that beginnings name.
    looks: RateCount,
    /// The notes of shims that could not even report.
    pub(super) notes: UnseenNotes,
}

/// A caller whose command was refused, and that is about to report it. It holds no more than its line shows: a request
/// may have megabytes.
#[derive(Debug)]
struct Refused {
    /// The caller.
    pid: Pid,
    until: Instant,
    why: &'static str,
    /// The console's line if no report comes.
    line: String,
    /// The hash of its name and its arguments.
    hash: u64,
}

/// A refused command, and why it was refused.
#[derive(Debug)]
pub(super) struct ExpectedReport<'a> {
    pub(super) pid: Pid,
    pub(super) why: &'static str,
    pub(super) whoami: &'a str,
    pub(super) command: &'a [u8],
    /// The arguments, which identify its report.
    pub(super) exec: &'a [Vec<u8>],
}

impl Reports {
    pub(super) fn new(socket: &Path, is_on: bool, now: Instant) -> Self {
        let fifo = is_on.then(|| ReportFifo::new(place::report_path(socket)));
        let (runs, refused, notes) = (BTreeMap::new(), Vec::new(), UnseenNotes::new(socket, now));
        let [beginnings, looks] = [(); 2].map(|()| RateCount::new(now));
        let over = VecDeque::new();
        let told = Told::default();
        let hash = RandomState::new();
        let search = ShimSearch::new(now);
        let dropped = DroppedShims::default();
        Self { fifo, fifo_identity: None, runs, dropped, over, refused, hash, told, search, beginnings, looks, notes }
    }

    /// Makes the FIFO if it is not there.
    pub(super) fn check(&mut self, turn: &mut Turn, screen: &mut Screen) {
        self.notes.look(turn.now);
        let Some(fifo) = &mut self.fifo else { return };
        let checked = fifo.check(turn);
        self.fifo_identity = fifo.identity();
        let path = fifo.path().display();
        match checked {
            Ok(true) if !std::mem::replace(&mut self.told.meddled, true) => screen.say(format_args!(
                "… a process has changed who may read or reach {path}, which reports of sandboxed commands go through: \
                 it was made anew, and what such a command still reports to the old one is lost"
            )),
            Ok(_) => {}
            Err(error) => {
                screen.say(format_args!("… sandboxed commands run unseen: {path} cannot be made: {}", reason(&error)))
            }
        }
    }

    fn close(&mut self, turn: &mut Turn) {
        if let Some(fifo) = self.fifo.take() {
            fifo.close(turn);
        }
    }

    pub(super) fn remember(&mut self, event: Ready) {
        if let Some(fifo) = &mut self.fifo {
            fifo.remember(event);
        }
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.fifo.as_ref().and_then(ReportFifo::token)
    }

    /// When something has to be done although no report comes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let runs = self.runs.values().map(ReportedRun::deadline);
        let refused = self.refused.iter().map(|refused| refused.until);
        runs.chain(refused)
            .chain(self.notes.deadline())
            .chain(self.search.deadline(self.runs.values()))
            .chain(self.fifo.as_ref().and_then(ReportFifo::resumes_at))
            .min()
    }

    /// Notes that a caller was refused. Its shim runs the command itself, and probably reports it. Returns `false` if it
    /// will not.
    pub(super) fn expect(&mut self, expected: &ExpectedReport<'_>, now: Instant) -> bool {
        let has_room = self.refused.len() < limits::REPORTS_EXPECTED_MAX;
        if has_room && self.fifo.is_some() {
            let ExpectedReport { pid, why, whoami, command, exec } = *expected;
            let hash = self.hash.hash_one((whoami, exec));
            let line = unseen::sandboxed_line(why, whoami, command);
            self.refused.push(Refused { pid, until: now + limits::REPORT_PATIENCE, why, line, hash });
        }
        has_room && self.fifo.is_some()
    }

    /// Finds a process of another namespace among the refused callers. It may leave before a census has come to it.
    fn find_refused(&self, named: &InnerProcess, open: (u64, u64)) -> Option<Process> {
        self.refused.iter().find_map(|refused| namespace::find_as(refused.pid, named, open))
    }

    /// Takes the refusal that a report belongs to.
    fn take_refused(&mut self, whoami: &str, exec: &[Vec<u8>]) -> Option<Refused> {
        let hash = self.hash.hash_one((whoami, exec));
        let is_it = |refused: &Refused| refused.hash == hash;
        self.refused.iter().position(is_it).map(|at| self.refused.remove(at))
    }

    /// Looks for reports in the next visit, although no event has reported any.
    pub(super) fn expect_input(&mut self) {
        self.fifo.iter_mut().for_each(ReportFifo::expect_input);
    }

    /// Returns true if a process is below the shim of a reported run, so that the command is seen already.
    pub(super) fn is_below_shim(&self, pid: Pid) -> bool {
        let shims: Vec<InnerProcess> = self.begun().map(|(_, run)| run.named()).collect();
        !shims.is_empty() && self.fifo_identity.is_some_and(|open| namespace::is_one_above(pid, &shims, open))
    }

    /// The reported runs that have begun, in no order.
    pub(super) fn begun(&self) -> impl Iterator<Item = (JobId, &ReportedRun)> {
        self.runs.values().filter_map(|run| Some((run.job?, run)))
    }

    pub(super) fn get(&self, job: JobId) -> Option<&ReportedRun> {
        self.begun().find(|&(other, _)| other == job).map(|(_, run)| run)
    }

    fn of_job(&mut self, job: JobId) -> Option<&mut ReportedRun> {
        self.runs.values_mut().find(|run| run.job == Some(job))
    }

    fn key_of(&self, job: JobId) -> Option<RunKey> {
        self.runs.iter().find(|(_, run)| run.job == Some(job)).map(|(&key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_request_of_megabytes_leaves_a_line_by_which_its_report_is_known() {
        let now = Instant::now();
        let mut reports = Reports::new(Path::new("/nowhere/host.sock"), true, now);
        let (word, other) = (vec![b'x'; 8 << 20], [b"other".to_vec()]);
        let exec = [word.clone()];
        let pid = crate::sys::process::pid();
        let expected = ExpectedReport { pid, why: "no_new_privs", whoami: "late", command: &word, exec: &exec };
        assert!(reports.expect(&expected, now));
        assert!(reports.take_refused("late", &other).is_none() && reports.take_refused("other", &exec).is_none());
        let refused = reports.take_refused("late", &exec).expect("it is expected");
        assert!(refused.line.capacity() < 4_096, "{} bytes", refused.line.capacity());
        assert!(reports.take_refused("late", &exec).is_none());
    }
}
