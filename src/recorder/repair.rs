//! Journals that an earlier host left without closing them.
//!
//! Invariants: nothing that was written is taken away; after a repair every line but the torn one is a record, every
//! start has its end or is marked lost, and the last record is a `close`; only what dead hosts left is repaired, and
//! only journals; a repair reads the end of a file and never sleeps; a failure costs that one repair, which the next
//! host tries again.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::names::{first_line, is_alive, journals};
use super::tail::Tail;
use crate::journal::reader::closing;
use crate::journal::record::{CloseRecord, line, timestamp};

/// How many journals are looked at, newest first. Not the first closed one ends the search: another host's journal,
/// in use when last looked at, may lie behind it.
const FILES_MAX: usize = 64;
/// How long the recorder of a host that was killed may take to write what it was sent.
const DRAIN_MAX: Duration = Duration::from_secs(1);
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// The journals that may need a repair; one at a time, so that others have their turn in between.
#[derive(Debug)]
pub(super) struct Repairs {
    paths: VecDeque<PathBuf>,
    patience: Instant,
    next: Option<Instant>,
    lost: u64,
}

/// What became of one file.
enum Repair {
    /// It needs none, or has it now: so many runs were lost.
    Done(u64),
    /// Somebody has it. Its host is dead, so this will not last.
    Busy,
}

impl Repairs {
    /// All journals of this directory but one.
    pub(super) fn of(home: &Path, own: &Path) -> Repairs {
        let now = Instant::now();
        let newest = journals(home).unwrap_or_default().into_iter().map(|(_, path)| path);
        let paths = newest.filter(|path| path != own).take(FILES_MAX).collect();
        Repairs { paths, patience: now + DRAIN_MAX, next: Some(now), lost: 0 }
    }

    /// When there is something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next.filter(|_| !self.paths.is_empty())
    }

    /// Does what is due, one file at most; when all is done, gives how many runs were marked as lost.
    pub(super) fn step(&mut self, now: Instant) -> Option<u64> {
        if self.deadline().is_none_or(|at| at > now) {
            return None;
        }
        let path = self.paths.pop_front()?;
        match repair(&path) {
            Ok(Repair::Busy) if now < self.patience => {
                self.paths.push_back(path);
                self.next = Some(now + DRAIN_POLL);
            }
            Ok(Repair::Done(lost)) => self.lost += lost,
            Ok(Repair::Busy) | Err(_) => {}
        }
        self.paths.is_empty().then(|| std::mem::take(&mut self.lost))
    }
}

fn repair(path: &Path) -> io::Result<Repair> {
    let file = OpenOptions::new().read(true).append(true).open(path)?;
    let Some(open) = first_line(&file).filter(|open| !is_alive(open)) else { return Ok(Repair::Done(0)) };
    if closing(&file)?.is_some() {
        return Ok(Repair::Done(0));
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) if super::names::started(open.pid).is_some() => return Ok(Repair::Done(0)),
        Err(TryLockError::WouldBlock) => return Ok(Repair::Busy),
        Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    let lost = finish(&file);
    let _ = file.unlock();
    lost.map(Repair::Done)
}

/// Writes what is missing at the end of a journal that is locked by us.
fn finish(mut file: &File) -> io::Result<u64> {
    // Its own recorder may have closed it meanwhile.
    let tail = Tail::read(file, u64::MAX)?;
    if tail.is_closed {
        return Ok(0);
    }
    let mut repair = if tail.is_torn { b"\n".to_vec() } else { Vec::new() };
    let unfinished = tail.unfinished(file);
    for run in &unfinished {
        repair.extend_from_slice(&line("lost", run));
    }
    let time = timestamp(SystemTime::now());
    repair.extend_from_slice(&line("close", &CloseRecord { time, commands: Some(tail.commands), next: None }));
    file.write_all(&repair)?;
    Ok(unfinished.len() as u64)
}
