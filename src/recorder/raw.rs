//! Raw files: the output of runs that is too long for their records, within a quota.
//!
//! A file has the beginning and the end of a run's output, each up to the cap. While the run lasts, the part behind the
//! beginning is a ring. It is put in order when the run ends.
//!
//! Invariants:
//! * A file that a record names without an error has every byte of the run's output but those that the record omits.
//! * Only the user may enter the directory.
//! * After a sweep no raw file is older than the age, and all together keep within the quota; the oldest are removed
//!   first. Files being written count and are never removed. Files whose names no recorder makes are left alone.
//! * The age of a file that this recorder wrote is the time that has passed, even if the wall clock was set meanwhile.
//! * A file is on the disk before the record that names it.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::bounds::Bounds;
use super::names;

/// The directory of raw files, below the journal's.
const DIRECTORY: &str = "raw";
const EXTENSION: &str = ".out";
/// Closed files that are not synced to the disk yet. Beyond this all of them are synced at once.
const UNSYNCED_MAX: usize = 32;
/// Names that are tried for a run's file, because recorders that died may have left theirs. Beyond this making one
/// fails.
const NAMES_MAX: u32 = 100;

/// The raw files of one journal.
#[derive(Debug)]
pub(super) struct RawStore {
    directory: PathBuf,
    session: String,
    quota: u64,
    age: Duration,
    cap: u64,
    /// The names of files being written.
    open: HashSet<OsString>,
    /// The sum of their lengths.
    open_bytes: u64,
    /// When this recorder closed a file, for those that still exist.
    closed: HashMap<OsString, Instant>,
    unsynced: Vec<File>,
    /// Bytes written since the last sweep.
    unswept: u64,
}

/// One run's raw file.
#[derive(Debug)]
pub(super) struct RawFile {
    file: File,
    name: String,
    /// How much output came so far, which may be more than the file holds.
    bytes: u64,
}

/// What a record says about a raw file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// The path below the journal's directory.
    pub(super) reference: String,
    /// The file's length.
    pub(super) bytes: u64,
    /// How many bytes the file leaves out, and the offset at which they would stand.
    pub(super) omitted: Option<(u64, u64)>,
}

/// Why a raw file cannot grow.
#[derive(Debug)]
pub(super) enum RawRefusal {
    /// All raw files together have reached the quota. What the file has is the output's beginning.
    Quota,
    /// Writing failed, so the file is useless.
    Disk(io::Error),
}

impl RawStore {
    pub(super) fn new(home: &Path, session: &str, bounds: &Bounds) -> RawStore {
        RawStore {
            directory: home.join(DIRECTORY),
            session: session.to_owned(),
            quota: bounds.raw_bytes,
            age: bounds.raw_age,
            cap: bounds.raw_cap,
            open: HashSet::new(),
            open_bytes: 0,
            closed: HashMap::new(),
            unsynced: Vec::new(),
            unswept: 0,
        }
    }

    /// Whether raw files are kept at all.
    pub(super) fn is_wanted(&self) -> bool {
        self.cap > 0
    }

    /// Makes an empty file for this run.
    pub(super) fn create(&mut self, seq: u64) -> io::Result<RawFile> {
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ if fs::symlink_metadata(&self.directory)?.is_dir() => {}
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
        for number in 1..NAMES_MAX {
            // A recorder that died may have left a file of this run, which keeps its name.
            let part = if number == 1 { String::new() } else { format!(".{number}") };
            let name = format!("{}-{seq}{part}{EXTENSION}", self.session);
            let path = self.directory.join(&name);
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path) {
                Ok(file) => {
                    file.set_permissions(Permissions::from_mode(0o600))?;
                    self.open.insert(OsString::from(&name));
                    return Ok(RawFile { file, name, bytes: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Appends to a file. After an error the caller must close or discard it.
    pub(super) fn write(&mut self, raw: &mut RawFile, bytes: &[u8]) -> Result<(), RawRefusal> {
        let before = self.file_bytes(raw.bytes);
        let more = self.file_bytes(raw.bytes + bytes.len() as u64) - before;
        if self.open_bytes + more > self.quota {
            return Err(RawRefusal::Quota);
        }
        self.place(raw, bytes).map_err(RawRefusal::Disk)?;
        self.open_bytes += more;
        self.unswept += more;
        // One large file may need the room of old ones long before its run ends.
        if self.unswept > self.quota / 16 {
            self.sweep();
        }
        Ok(())
    }

    /// Writes bytes behind the others or, once the ring is full, over the oldest ones.
    fn place(&self, raw: &mut RawFile, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (at, room) = match raw.bytes.checked_sub(self.cap) {
                None => (raw.bytes, self.cap - raw.bytes),
                Some(behind) => (self.cap + behind % self.cap, self.cap - behind % self.cap),
            };
            let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            raw.file.write_all_at(now, at)?;
            raw.bytes += now.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// The length of a file for this much output.
    fn file_bytes(&self, output: u64) -> u64 {
        output.min(self.cap.saturating_mul(2))
    }

    /// Closes a file and puts its ring in order.
    pub(super) fn close(&mut self, raw: RawFile) -> io::Result<Kept> {
        let reference = format!("{DIRECTORY}/{}", raw.name);
        let bytes = self.file_bytes(raw.bytes);
        let omitted = raw.bytes - bytes;
        if omitted > 0
            && let Err(error) = self.unroll(&raw)
        {
            self.discard(raw);
            return Err(error);
        }
        self.closed.insert(OsString::from(&raw.name), Instant::now());
        self.forget(&raw);
        self.unsynced.push(raw.file);
        if self.unsynced.len() > UNSYNCED_MAX {
            self.sync();
        }
        self.sweep();
        Ok(Kept { reference, bytes, omitted: (omitted > 0).then_some((omitted, self.cap)) })
    }

    /// Turns the ring so that its oldest byte comes first.
    fn unroll(&self, raw: &RawFile) -> io::Result<()> {
        let oldest = (raw.bytes - self.cap) % self.cap;
        if oldest == 0 {
            return Ok(());
        }
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let mut ring = vec![0; usize::try_from(self.cap).map_err(too_large)?];
        raw.file.read_exact_at(&mut ring, self.cap)?;
        ring.rotate_left(usize::try_from(oldest).map_err(too_large)?);
        raw.file.write_all_at(&ring, self.cap)
    }

    /// Syncs the closed files to the disk.
    pub(super) fn sync(&mut self) {
        // A disk that cannot sync refuses the next write, and that is reported.
        self.unsynced.drain(..).for_each(|file| drop(file.sync_data()));
    }

    /// Removes a file that is useless.
    pub(super) fn discard(&mut self, raw: RawFile) {
        let _ = fs::remove_file(self.directory.join(&raw.name));
        self.forget(&raw);
    }

    fn forget(&mut self, raw: &RawFile) {
        self.open.remove(OsStr::new(&raw.name));
        self.open_bytes -= self.file_bytes(raw.bytes);
    }

    /// Removes files that are too old, then the oldest until the rest keep within the quota.
    pub(super) fn sweep(&mut self) {
        self.unswept = 0;
        let now = SystemTime::now();
        let mut files = Vec::new();
        let mut total = 0;
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_file() || !is_ours(&entry.file_name()) {
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
            // The wall clock may have been set since this recorder wrote the file.
            let age = self.closed.get(&name).map_or_else(|| now.duration_since(modified).ok(), |at| Some(at.elapsed()));
            let is_old = age.is_some_and(|age| age > self.age);
            if (is_old || total > self.quota) && fs::remove_file(self.directory.join(&name)).is_ok() {
                self.closed.remove(&name);
                total -= bytes;
            }
        }
    }
}

/// Whether [`RawStore::create`] makes such names.
fn is_ours(name: &OsStr) -> bool {
    let run = || {
        let (session, run) = name.to_str()?.strip_suffix(EXTENSION)?.rsplit_once('-')?;
        let is_run = run.split('.').all(|number| number.parse::<u64>().is_ok());
        names::split(session).filter(|_| is_run)
    };
    run().is_some()
}
