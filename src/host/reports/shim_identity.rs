//! Decides which process a report may call its rexec-sh. Whoever forges a report could name another one, so that a
//! person who ends or pauses that command would hit somebody else's.
//!
//! Invariants: it executes rexec-sh, and is neither the host nor above nor below it, as the guards and all that they run
//! are. A child of it, which the shim has made beside the command, carries the run's mark in its name. Where no child
//! carries any, as where the shim could not make it, the run is the first that has named the process. Where a report was
//! dropped before that named the process, no run is certainly that one's.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rexec_sh::protocol::environment::names_shim;
use rexec_sh::protocol::process::Pid;
use rexec_sh::protocol::report::{Beginning, RunKey, ShimPlace, names_witness, witness_name};

use super::{ReportedRun, Reports};
use crate::limits;
use crate::sys::namespace::{self, InnerProcess};
use crate::sys::process;
use crate::sys::tree::Process;

/// The suffix that the kernel adds to the path of a program whose file was replaced.
const REPLACED: &[u8] = b" (deleted)";

/// The processes of a run that get a signal.
#[derive(Debug)]
pub(super) enum Targets {
    Below(Process),
    /// Its shim was killed: the survivors of those that the host saw below it.
    Left(Vec<Process>),
}

impl Targets {
    pub(super) fn all(&self) -> Vec<Process> {
        match self {
            Self::Below(shim) => namespace::below(shim, usize::MAX),
            Self::Left(left) => left.clone(),
        }
    }

    /// The same with helpers of the shim.
    pub(super) fn whole(&self) -> Vec<Process> {
        match self {
            Self::Below(shim) => namespace::all_below(shim, usize::MAX),
            Self::Left(_) => self.all(),
        }
    }
}

impl Reports {
    /// Finds the shim of a run, for a signal to what is below it. `None` unless it is certainly that run's.
    pub(super) fn vouch(&mut self, key: RunKey) -> Option<Process> {
        let run = self.runs.get(&key)?;
        let shim = run.living_shim()?;
        let is_proven = run.is_proven;
        if run.is_contested {
            return None;
        }
        (is_proven || self.proves(key, &shim)).then_some(shim)
    }

    /// The host throws a beginning away, or the first piece of one.
    pub(super) fn drop_beginning(&mut self, first: &[u8]) {
        if let Some((namespace, pid, start)) = Beginning::named_in(first) {
            self.dropped.note(InnerProcess { namespace, pid, start });
        }
    }

    /// The same of a run that has not begun.
    pub(in crate::host) fn note_dropped(&mut self, run: &ReportedRun) {
        match run.place == ShimPlace::default() {
            true => self.drop_beginning(&run.beginning),
            false => self.dropped.note(run.named()),
        }
    }

    /// Remembers what is below the shim of a run, or below what is left of that. At the end of a report, an honest shim has
    /// waited for its shell: if a child of it lives, the end is not its own word.
    pub(super) fn look_below(&mut self, key: RunKey, is_end: bool) {
        let shim = self.vouch(key);
        let Some(run) = self.runs.get_mut(&key) else { return };
        if let Some(shim) = shim {
            run.known = namespace::below(&shim, limits::REPORT_KNOWN_BELOW);
            // The first process of a namespace gets the orphans of others.
            let adopts = run.place.pid == 1;
            run.is_doubtful |= is_end && !adopts && run.known.iter().any(|process| process.parent == shim.pid);
        } else if run.living_shim().is_none() {
            let left = run.survivors().flat_map(|process| {
                [process].into_iter().chain(namespace::all_below(&process, limits::REPORT_KNOWN_BELOW))
            });
            run.known = left.take(2 * limits::REPORT_KNOWN_BELOW).collect();
            run.known.sort_unstable_by_key(|process| process.pid);
            run.known.dedup_by_key(|process| process.pid);
        }
        run.known.truncate(limits::REPORT_KNOWN_BELOW);
    }

    /// The processes that a person's signal for a run goes to. None if they are not certainly that run's.
    pub(super) fn targets(&mut self, key: RunKey) -> Option<Targets> {
        if let Some(shim) = self.vouch(key) {
            return Some(Targets::Below(shim));
        }
        if self.runs.get(&key).is_none_or(|run| run.living_shim().is_some()) {
            return None;
        }
        self.look_below(key, false);
        let left: Vec<Process> = self.runs.get(&key)?.survivors().collect();
        (!left.is_empty()).then_some(Targets::Left(left))
    }

    fn proves(&mut self, key: RunKey, shim: &Process) -> bool {
        if !is_shim(shim.pid) || is_kin(shim.pid) {
            return false;
        }
        let Some(run) = self.runs.get(&key) else { return false };
        let mut names = namespace::names_of_children(shim.pid);
        names.retain(|name| names_witness(name.bytes()));
        let is_marked = names.iter().any(|name| name.bytes() == witness_name(&run.mark()).as_bytes());
        let named = run.named();
        let job = run.job;
        let is_first =
            || !self.runs.values().any(|other| other.job < job && other.job.is_some() && is_one(other.named(), named));
        let is_its_own = is_marked || (names.is_empty() && is_first());
        if !is_its_own {
            return false;
        }
        self.runs.get_mut(&key).into_iter().for_each(|run| run.is_proven = is_marked);
        true
    }
}

fn is_shim(pid: Pid) -> bool {
    let Some(path) = namespace::program_path(pid) else { return false };
    let path = path.as_os_str().as_bytes();
    let path = path.strip_suffix(REPLACED).unwrap_or(path);
    let name = std::path::Path::new(OsStr::from_bytes(path)).file_name().unwrap_or_default();
    names_shim(path) && name != "rexec-host"
}

/// Returns true if a process is this host, or above or below it.
fn is_kin(pid: Pid) -> bool {
    let me = process::pid();
    namespace::is_below(pid, |above| above == me) || namespace::is_below(me, |above| above == pid)
}

/// Returns true if two reports name one process. One may not have named its start.
pub(super) fn is_one(one: InnerProcess, other: InnerProcess) -> bool {
    let is_start = one.start == other.start || one.start == 0 || other.start == 0;
    (one.namespace, one.pid) == (other.namespace, other.pid) && is_start
}
