//! The directory of the journal's large files: raw output and recordings, within a quota.
//!
//! Invariants:
//! * Only the user may enter the directory.
//! * After a sweep no file is older than the age, and all together keep within the quota; the oldest are removed first.
//!   Files being written count and are never removed: another host's recorder holds a lock on each of its own. Files
//!   whose names no recorder makes are left alone.
//! * The age of a file that this recorder wrote is the time that has passed, even if the wall clock was set meanwhile.
//! * A file is on the disk before the record that names it.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::bounds::Bounds;
use super::directory::{NO_WAIT, OpenDirectory};
use super::home::JournalHome;
use super::names;

/// The directory's name, below the journal's.
const DIRECTORY: &str = "raw";
/// Closed files that are not synced to the disk yet. Beyond this all of them are synced at once.
const UNSYNCED_MAX: usize = 32;
/// Names that are tried for a file, because recorders that died may have left theirs. Beyond this making one fails.
const NAMES_MAX: u32 = 10_000;

/// The purpose of a file, which its extension shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFileKind {
    /// The output of the run with this number.
    Raw(u64),
    /// The recording of many runs.
    Recording,
}

/// The directory, as one recorder uses it.
#[derive(Debug)]
pub(super) struct OutputDirectory {
    home: JournalHome,
    session: String,
    quota: u64,
    age: Duration,
    /// The names of files being written.
    open: HashSet<OsString>,
    /// The sum of their lengths.
    open_bytes: u64,
    /// When this recorder closed a file, for those that still exist.
    closed: HashMap<OsString, Instant>,
    unsynced: Vec<File>,
    unswept: u64,
}

impl OutputFileKind {
    const ALL: [&'static str; 2] = [".out", ".rec"];

    fn extension(self) -> &'static str {
        let [raw, recording] = Self::ALL;
        match self {
            Self::Raw(_) => raw,
            Self::Recording => recording,
        }
    }
}

/// The path of a file below the journal's directory.
pub(super) fn reference(name: &str) -> String {
    format!("{DIRECTORY}/{name}")
}

impl OutputDirectory {
    pub(super) fn new(home: JournalHome, session: &str, bounds: &Bounds) -> OutputDirectory {
        OutputDirectory {
            home,
            session: session.to_owned(),
            quota: bounds.raw_bytes,
            age: bounds.raw_age,
            open: HashSet::new(),
            open_bytes: 0,
            closed: HashMap::new(),
            unsynced: Vec::new(),
            unswept: 0,
        }
    }

    /// Makes an empty file. Returns it with its name.
    pub(super) fn create(&mut self, kind: OutputFileKind) -> io::Result<(File, String)> {
        let home = self.home.open().map_err(io::Error::other)?;
        match DirBuilder::new().mode(0o700).create(home.at(DIRECTORY)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let directory = home.directory(DIRECTORY).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::ErrorKind::NotADirectory.into(),
            _ => error,
        })?;
        let run = match kind {
            OutputFileKind::Raw(seq) => format!("-{seq}"),
            OutputFileKind::Recording => String::new(),
        };
        for number in 1..NAMES_MAX {
            // A recorder that died may have left a file of this name, which keeps it.
            let part = if number == 1 { String::new() } else { format!(".{number}") };
            let name = format!("{}{run}{part}{}", self.session, kind.extension());
            let path = directory.at(&name);
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path) {
                Ok(file) => {
                    file.set_permissions(Permissions::from_mode(0o600))?;
                    // Where there are no locks, only this recorder knows that it writes the file.
                    let _ = file.try_lock();
                    self.open.insert(OsString::from(&name));
                    return Ok((file, name));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns true if open files may grow by this many bytes.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.open_bytes + bytes <= self.quota
    }

    /// Notes that an open file grew by this many bytes.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.open_bytes += bytes;
        self.unswept += bytes;
        // One large file may need the room of old ones long before its run ends.
        if self.unswept > self.quota / 16 {
            self.sweep();
        }
    }

    /// Notes that an open file is shorter by this many bytes.
    pub(super) fn shrink(&mut self, bytes: u64) {
        self.open_bytes = self.open_bytes.saturating_sub(bytes);
    }

    /// Notes that a file of this length is complete.
    pub(super) fn close(&mut self, file: File, name: &str, bytes: u64) {
        self.closed.insert(OsString::from(name), Instant::now());
        self.forget(name, bytes);
        let _ = file.unlock();
        self.unsynced.push(file);
        if self.unsynced.len() > UNSYNCED_MAX {
            self.sync();
        }
        self.sweep();
    }

    /// Removes a useless open file.
    pub(super) fn discard(&mut self, name: &str, bytes: u64) {
        if let Some(directory) = self.opened() {
            let _ = fs::remove_file(directory.at(name));
        }
        self.forget(name, bytes);
    }

    /// The directory, if there is one.
    fn opened(&self) -> Option<OpenDirectory> {
        self.home.open().ok()?.directory(DIRECTORY).ok()
    }

    fn forget(&mut self, name: &str, bytes: u64) {
        self.open.remove(OsStr::new(name));
        self.open_bytes -= bytes;
    }

    pub(super) fn sync(&mut self) {
        // A disk that cannot sync refuses the next write, and that is reported.
        self.unsynced.drain(..).for_each(|file| drop(file.sync_data()));
    }

    /// Removes files that are too old, then the oldest until the rest keep within the quota.
    pub(super) fn sweep(&mut self) {
        self.unswept = 0;
        let now = SystemTime::now();
        let Some(directory) = self.opened() else { return };
        let mut files = Vec::new();
        let mut total = 0;
        for entry in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
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
            let path = directory.at(&name);
            if (is_old || total > self.quota) && !is_being_written(&path) && fs::remove_file(path).is_ok() {
                self.closed.remove(&name);
                total -= bytes;
            }
        }
    }
}

/// Returns true if another recorder writes the file.
fn is_being_written(path: &Path) -> bool {
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

/// Returns true if [`OutputDirectory::create`] makes such names.
fn is_ours(name: &OsStr) -> bool {
    let [raw, recording] = OutputFileKind::ALL;
    let is_numbers = |text: &str| text.split('.').all(|number| number.parse::<u64>().is_ok());
    let Some(name) = name.to_str() else { return false };
    let (session, numbers) = if let Some(stem) = name.strip_suffix(raw) {
        stem.rsplit_once('-').unwrap_or_default()
    } else {
        let stem = name.strip_suffix(recording).unwrap_or_default();
        stem.split_once('.').unwrap_or((stem, "1"))
    };
    names::split(session).is_some() && is_numbers(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_host_writes_is_not_removed() {
        let home = std::env::temp_dir().join(format!("rexec-output-{}", std::process::id()));
        let bounds = Bounds { raw_bytes: 0, ..Bounds::default() };
        let at = |time| OutputDirectory::new(JournalHome::of_test(&home), time, &bounds);
        let mut one = at("2026-05-21-09:42:18");
        let mut other = at("2026-05-21-09:42:19");
        let (file, name) = one.create(OutputFileKind::Raw(7)).unwrap();
        fs::write(home.join(reference(&name)), "output").unwrap();
        one.grow(6);
        other.sweep();
        assert!(home.join(reference(&name)).exists());
        // The quota counts as soon as the file is complete, though it is open until it is synced.
        one.quota = 6;
        one.close(file, &name, 6);
        assert!(home.join(reference(&name)).exists());
        other.sweep();
        assert!(!home.join(reference(&name)).exists());
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn names_that_a_recorder_makes_are_known() {
        let ours = ["-7.out", "-7.2.out", "-2-7.out", ".rec", ".2.rec", "-3.rec", "-3.2.rec"];
        assert!(ours.iter().all(|end| is_ours(OsStr::new(&format!("2026-05-21-09:42:18{end}")))));
        let others = [".out", "-x.out", "-7.txt", "-7", ".x.rec", "-7.rec.bak", "-07.rec"];
        assert!(others.iter().all(|end| !is_ours(OsStr::new(&format!("2026-05-21-09:42:18{end}")))));
        assert!(!is_ours(OsStr::new("notes.rec")) && !is_ours(OsStr::new("x-7.out")));
    }
}
