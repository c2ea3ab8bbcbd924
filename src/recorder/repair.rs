//! Repairs journals that a dead host left without closing them.
//!
//! Invariants: nothing that was written is removed; after a repair every line but the torn one is a record, every
//! start has its end, is marked lost, or is in the file that continues this one, and the last record is a `close`; files
//! of living hosts and files that are not journals are left alone; a repair reads the end of a file, and all of one that
//! continues it, and never sleeps; a repair that fails is left to the next host.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::directory::open_file;
use super::home::JournalHome;
use super::names::{first_line, is_alive, journals, started, successor};
use super::summary_file::SummaryMaker;
use super::tail::Tail;
use crate::journal::reader::closing;
use crate::journal::record::{CloseRecord, line, timestamp};
use crate::limits;

/// How many journals are checked, newest first. A closed one does not end the search: an older one may have been in use
/// when it was checked last.
const FILES_MAX: usize = 256;
/// How long the recorder of a host that was killed may take to write its input. Beyond it, its file is left to the next
/// host.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// The pause before a file that is in use is tried again.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// The journals that may need a repair. They are repaired one at a time, so that frames are taken in meanwhile.
#[derive(Debug)]
pub(super) struct Repairs {
    home: JournalHome,
    paths: VecDeque<PathBuf>,
    /// When files that are in use are given up.
    patience: Instant,
    /// When the next file is due.
    next: Option<Instant>,
    /// How many runs were marked as lost so far.
    lost: u64,
    summarized: Option<(PathBuf, File, SummaryMaker)>,
}

/// The result for one file.
enum Repair {
    /// The file is in order, or is now. The number counts runs that were marked as lost. A file that nobody writes any
    /// more is summarized next.
    Done(u64, Option<File>),
    /// Another process holds the lock. The file's host is dead, so this will not last.
    Busy,
}

impl Repairs {
    /// Lists all journals of the directory `home` but `own`.
    pub(super) fn of(home: JournalHome, own: &Path) -> Repairs {
        let now = Instant::now();
        let newest = journals(&home.path).unwrap_or_default().into_iter().map(|(_, path)| path);
        let paths = newest.filter(|path| path != own).take(FILES_MAX).collect();
        Repairs { home, paths, patience: now + DRAIN_MAX, next: Some(now), lost: 0, summarized: None }
    }

    /// When the next file is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next.filter(|_| !self.paths.is_empty() || self.summarized.is_some())
    }

    /// Repairs one file, if one is due. After the last one, returns how many runs were marked as lost.
    pub(super) fn step(&mut self, now: Instant) -> Option<u64> {
        if self.deadline().is_none_or(|at| at > now) {
            return None;
        }
        if self.summarized.is_some() {
            self.summarize();
            return self.take_lost();
        }
        let path = self.paths.pop_front()?;
        match repair(&self.home, &path) {
            Ok(Repair::Busy) if now < self.patience => {
                self.paths.push_back(path);
                self.next = Some(now + DRAIN_POLL);
            }
            Ok(Repair::Done(lost, file)) => {
                self.lost += lost;
                self.summarized = file.map(|file| {
                    let maker = SummaryMaker::begin(&path, &file);
                    (path, file, maker)
                });
            }
            Ok(Repair::Busy) | Err(_) => {}
        }
        self.take_lost()
    }

    fn take_lost(&mut self) -> Option<u64> {
        (self.paths.is_empty() && self.summarized.is_none()).then(|| std::mem::take(&mut self.lost))
    }

    /// Summarizes a part of the file. A reader can do without, so a failure is not reported.
    fn summarize(&mut self) {
        let Some((path, file, mut maker)) = self.summarized.take() else { return };
        match maker.extend(&file, limits::JOURNAL_SUMMARY_STEP_BYTES) {
            Ok(false) => self.summarized = Some((path, file, maker)),
            Ok(true) if maker.is_ahead() => drop(maker.store(&path, &file)),
            Ok(true) | Err(_) => {}
        }
    }
}

fn repair(home: &JournalHome, path: &Path) -> io::Result<Repair> {
    let directory = home.open().map_err(io::Error::other)?;
    let path = directory.at(path.file_name().ok_or(io::ErrorKind::NotFound)?);
    let file = open_file(&path, OpenOptions::new().read(true).append(true))?;
    let Some(open) = first_line(&file).filter(|open| !is_alive(open)) else { return Ok(Repair::Done(0, None)) };
    if closing(&file)?.is_some() {
        return Ok(Repair::Done(0, Some(file)));
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) if started(open.pid).is_some() => return Ok(Repair::Done(0, None)),
        Err(TryLockError::WouldBlock) => return Ok(Repair::Busy),
        Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    let lost = finish(&file, successor(&path, &open));
    let _ = file.unlock();
    Ok(Repair::Done(lost?, Some(file)))
}

/// Writes the missing records at the end of a journal. The caller holds its lock. The runs that its host went on with
/// in another file, `next`, are not lost.
fn finish(mut file: &File, next: Option<(String, File)>) -> io::Result<u64> {
    // The file's own recorder may have closed it meanwhile.
    let tail = Tail::read(file, u64::MAX)?;
    if tail.is_closed {
        return Ok(0);
    }
    let mut repair = if tail.is_torn { b"\n".to_vec() } else { Vec::new() };
    let mut lost = tail.unfinished(file);
    if let Some((_, next)) = &next {
        let there = Tail::read(next, 0)?;
        lost.retain(|run| !there.has(run.start.card.seq));
    }
    for run in &lost {
        repair.extend_from_slice(&line("lost", run));
    }
    let (time, next) = (timestamp(SystemTime::now()), next.map(|(name, _)| name));
    repair.extend_from_slice(&line("close", &CloseRecord { time, commands: Some(tail.commands), next }));
    file.write_all(&repair)?;
    Ok(lost.len() as u64)
}

#[cfg(test)]
mod tests;
