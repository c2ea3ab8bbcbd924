//! Journals that an earlier host left without closing them.
//!
//! Invariants: nothing that was written is taken away; after a repair every line but the torn one is a record, every
//! start has its end or is marked lost, and the last record is a `close`; a journal that its host still writes is left
//! alone; a failure costs that one repair, which the next host tries again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::super::reader::{Entry, Reader, is_closed};
use super::super::record::{Close, Lost, line, timestamp};

/// How many journals are looked at, newest first. Not the first closed one ends the search: another host's journal,
/// in use when last looked at, may lie behind it.
const FILES_MAX: usize = 64;
/// How long the recorder of a host that was killed may take to write what it was sent.
const DRAIN_MAX: Duration = Duration::from_secs(1);
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// The journals of a directory, newest first, as name without extension and path.
pub fn journals(home: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(home)? {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jsonl");
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if is_journal && fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            found.push((name.to_owned(), path));
        }
    }
    found.sort_by_cached_key(|(name, _)| std::cmp::Reverse(age_key(name)));
    Ok(found)
}

/// `…:18` is older than `…:18-2`, and that than `…:18-10`.
fn age_key(name: &str) -> (String, u32) {
    let time = name.get(..19).unwrap_or(name);
    let number = name[time.len()..].strip_prefix('-').and_then(|number| number.parse().ok());
    match number {
        Some(number) => (time.to_owned(), number),
        None => (name.to_owned(), 1),
    }
}

/// Repairs what needs it, and tells how many runs were lost.
pub(super) fn repair_all(home: &Path) -> u64 {
    let patience = Instant::now() + DRAIN_MAX;
    let newest = journals(home).unwrap_or_default().into_iter().take(FILES_MAX);
    newest.map(|(_, path)| repair(&path, patience).unwrap_or(0)).sum()
}

fn repair(path: &Path, patience: Instant) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    if is_closed(&mut file)? || file.metadata()?.len() == 0 || !lock(&mut file, patience)? {
        return Ok(0);
    }
    let lost = finish(&mut file);
    // Not left to the drop: a process that is being forked at this moment has the lock as well.
    let _ = file.unlock();
    lost
}

/// Writes what is missing at the end of a journal that is locked by us.
fn finish(file: &mut File) -> io::Result<u64> {
    // Its own recorder may have closed it while we waited.
    if is_closed(file)? {
        return Ok(0);
    }
    let is_torn = ends_torn(file)?;
    let lost = unfinished(file)?;
    let mut repair = if is_torn { b"\n".to_vec() } else { Vec::new() };
    for run in lost.values() {
        repair.extend_from_slice(&line("lost", run));
    }
    repair.extend_from_slice(&line("close", &Close { time: timestamp(SystemTime::now()) }));
    file.write_all(&repair)?;
    Ok(lost.len() as u64)
}

/// Takes the journal, if its host is gone.
fn lock(file: &mut File, patience: Instant) -> io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        if Instant::now() >= patience || is_host_alive(file)? {
            return Ok(false);
        }
        thread::sleep(DRAIN_POLL);
    }
}

/// Whether the host that the first line names still runs. Unknown counts as no: then patience decides.
fn is_host_alive(file: &mut File) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let Some(Ok(Entry::Open(open))) = Reader::new(file.try_clone()?).next() else { return Ok(false) };
    let stat = fs::read_to_string(format!("/proc/{}/stat", open.pid)).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    Ok(state.is_some_and(|state| !matches!(state, 'Z' | 'X')))
}

fn ends_torn(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The runs that began and neither ended nor were marked lost.
fn unfinished(file: &mut File) -> io::Result<BTreeMap<u64, Lost>> {
    let mut runs = BTreeMap::new();
    file.seek(SeekFrom::Start(0))?;
    for entry in Reader::new(file.try_clone()?) {
        match entry? {
            Entry::Start(start) => drop(runs.insert(start.seq, Lost::from(*start))),
            Entry::Run(run) => drop(runs.remove(&run.seq)),
            Entry::Lost(lost) => drop(runs.remove(&lost.seq)),
            Entry::Open(_) | Entry::Dropped(_) | Entry::Close(_) => {}
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::age_key;

    #[test]
    fn names_sort_by_age() {
        let names = [
            "2026-05-20-17:03:55",
            "2026-05-21-09:42:18",
            "2026-05-21-09:42:18-2",
            "2026-05-21-09:42:18-10",
            "2026-05-21-09:42:19",
        ];
        assert!(names.is_sorted_by_key(|name| age_key(name)));
        assert_eq!(age_key("ä"), ("ä".to_owned(), 1));
    }
}
