//! Files with the whole output of runs that are too long for their record, and the room these files may take.
//!
//! Invariants: a file that a record names without an error has every byte of the run's output; the directory is ours
//! alone, no file is older than the age nor their sum larger than the quota once a sweep has passed, oldest going
//! first; files that are being written count, and never go; of those that this recorder wrote, the age is the time that
//! has passed, wherever the wall's clock was set meanwhile.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::appender::open_append_new;

/// The directory of raw files, below the journal's.
const DIRECTORY: &str = "raw";
const EXTENSION: &str = "out";

/// The raw files of one journal.
#[derive(Debug)]
pub(super) struct RawStore {
    directory: PathBuf,
    session: String,
    quota: u64,
    age: Duration,
    /// Files being written, and their bytes.
    open: HashSet<OsString>,
    open_bytes: u64,
    /// When files that are still there were closed.
    closed: HashMap<OsString, Instant>,
    unswept: u64,
}

/// One run's raw file.
#[derive(Debug)]
pub(super) struct RawFile {
    file: File,
    name: String,
    bytes: u64,
}

impl RawFile {
    /// The name for the record.
    pub(super) fn reference(&self) -> String {
        format!("{DIRECTORY}/{}", self.name)
    }
}

/// Why a raw file takes no more.
#[derive(Debug)]
pub(super) enum Refusal {
    /// What it has stays, as the output's beginning.
    Quota,
    /// The disk's word; the file is worth nothing any more.
    Disk(io::Error),
}

impl RawStore {
    pub(super) fn new(home: &Path, session: &str, quota: u64, age: Duration) -> RawStore {
        RawStore {
            directory: home.join(DIRECTORY),
            session: session.to_owned(),
            quota,
            age,
            open: HashSet::new(),
            open_bytes: 0,
            closed: HashMap::new(),
            unswept: 0,
        }
    }

    /// A new, empty file for this run.
    pub(super) fn create(&mut self, seq: u64) -> io::Result<RawFile> {
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ if fs::symlink_metadata(&self.directory)?.is_dir() => {}
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
        let name = format!("{}-{seq}.{EXTENSION}", self.session);
        let file = open_append_new(&self.directory.join(&name))?;
        self.open.insert(OsString::from(&name));
        Ok(RawFile { file, name, bytes: 0 })
    }

    /// Appends to a file. After a refusal it must be given back at once.
    pub(super) fn write(&mut self, raw: &mut RawFile, bytes: &[u8]) -> Result<(), Refusal> {
        if self.open_bytes + bytes.len() as u64 > self.quota {
            return Err(Refusal::Quota);
        }
        raw.file.write_all(bytes).map_err(Refusal::Disk)?;
        raw.bytes += bytes.len() as u64;
        self.open_bytes += bytes.len() as u64;
        self.unswept += bytes.len() as u64;
        // Long before it ends, one large file may need the room of the old ones.
        if self.unswept > self.quota / 16 {
            self.sweep();
        }
        Ok(())
    }

    /// Takes a file that has all it will get.
    pub(super) fn close(&mut self, raw: RawFile) {
        self.closed.insert(OsString::from(&raw.name), Instant::now());
        self.forget(raw);
        self.sweep();
    }

    /// Takes a file that is of no use, and removes it.
    pub(super) fn discard(&mut self, raw: RawFile) {
        let _ = fs::remove_file(self.directory.join(&raw.name));
        self.forget(raw);
    }

    fn forget(&mut self, raw: RawFile) {
        self.open.remove(&OsString::from(&raw.name));
        self.open_bytes -= raw.bytes;
    }

    /// Removes what is too old, then the oldest until the rest keeps within the quota.
    pub(super) fn sweep(&mut self) {
        self.unswept = 0;
        let now = SystemTime::now();
        let mut files = Vec::new();
        let mut total = 0;
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_file() || entry.path().extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            total += metadata.len();
            if !self.open.contains(&entry.file_name()) {
                files.push((metadata.modified().unwrap_or(now), entry.file_name(), metadata.len()));
            }
        }
        files.sort();
        let there: HashSet<&OsString> = files.iter().map(|(_, name, _)| name).collect();
        self.closed.retain(|name, _| there.contains(name));
        for (modified, name, bytes) in files {
            // Who wrote it knows better than the wall's clock, which may have been set.
            let age = self.closed.get(&name).map_or_else(|| now.duration_since(modified).ok(), |at| Some(at.elapsed()));
            let is_old = age.is_some_and(|age| age > self.age);
            if (is_old || total > self.quota) && fs::remove_file(self.directory.join(&name)).is_ok() {
                self.closed.remove(&name);
                total -= bytes;
            }
        }
    }
}
