//! The file with the project sessions, `projects.json` in the journal's directory.
//!
//! Several hosts may have one journal directory. Each adds and removes its own sessions, under a lock, and leaves the
//! rest.
//!
//! Invariants: the file is replaced as a whole, so that a reader finds the old text or the new one; only its owner may
//! read it; a text that is not understood is never overwritten but put aside; a disk that fails ends nothing.

use std::collections::BTreeSet;
use std::fs::{self, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::directory::OpenDirectory;
use super::home::JournalHome;
use crate::limits;
use crate::text::reason::reason;

const NAME: &str = "projects.json";
/// The most that is read of it, bytes: far more than any host writes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// How often to try a lock that another host's recorder holds, and the time in between. It holds it for one file.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A host's change to the file.
#[derive(Debug, Deserialize)]
struct ProjectsChange {
    /// All the project sessions that it knows.
    kept: Vec<Value>,
    /// The directories of those that it has made or changed. The file decides about the others.
    own: BTreeSet<String>,
    /// The directories of those that it has forgotten.
    forgotten: BTreeSet<String>,
}

/// The file, for the recorder.
#[derive(Debug)]
pub(super) struct ProjectsFile {
    home: JournalHome,
    /// News for the human.
    news: Option<String>,
    /// The last text could not be written, and the human knows it.
    has_failed: bool,
}

impl ProjectsFile {
    pub(super) fn new(home: JournalHome) -> Self {
        Self { home, news: None, has_failed: false }
    }

    /// Applies a host's change to the file.
    pub(super) fn write(&mut self, change: &[u8]) {
        let error = self.change(change).err();
        if let Some(error) = error.as_ref().filter(|_| !self.has_failed) {
            self.news = Some(format!(
                "{} cannot be written: {}; a new host will not know what was defined since",
                self.home.path.join(NAME).display(),
                reason(error)
            ));
        }
        self.has_failed = error.is_some();
    }

    fn change(&mut self, change: &[u8]) -> io::Result<()> {
        let ProjectsChange { mut kept, own, forgotten } = serde_json::from_slice(change)?;
        let directory = self.home.open().map_err(io::Error::other)?;
        lock(&directory);
        let others = match read(&directory).and_then(|text| entries(&text)) {
            Ok(others) => others,
            Err(error) if !is_damage(&error) => return Err(error),
            Err(_) => {
                self.news = Some(set_aside(&directory, &self.home.path));
                Vec::new()
            }
        };
        if !others.is_empty() {
            kept.retain(|entry| dir(entry).is_some_and(|dir| own.contains(dir)));
        }
        let is_anothers = |entry: &Value| dir(entry).is_some_and(|dir| !own.contains(dir) && !forgotten.contains(dir));
        kept.extend(others.into_iter().filter(is_anothers));
        kept.truncate(limits::PROJECTS_MAX);
        directory.replace(NAME, &serde_json::to_vec(&kept)?)
    }

    /// Takes the news for the human.
    pub(super) fn take_news(&mut self) -> Option<String> {
        self.news.take()
    }
}

/// The text that earlier hosts' recorders left. Empty if there is none, or no directory that may hold a journal.
///
/// # Errors
/// It cannot be read, or is far too long.
pub fn read_projects(home: &Path, uid: u32) -> io::Result<Vec<u8>> {
    let home = JournalHome { path: home.to_owned(), uid };
    home.open().map_or_else(|_| Ok(Vec::new()), |directory| read(&directory))
}

/// Returns true if the text is wrong, and not the way to it.
#[must_use]
pub fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, InvalidData, UnexpectedEof};
    matches!(error.kind(), InvalidData | UnexpectedEof | FileTooLarge)
}

/// Puts a file aside that was not understood. Returns a sentence about it for the human.
#[must_use]
pub fn set_projects_aside(home: &Path, uid: u32) -> String {
    let place = JournalHome { path: home.to_owned(), uid };
    place.open().map_or_else(|error| error.to_string(), |directory| set_aside(&directory, home))
}

fn set_aside(directory: &OpenDirectory, home: &Path) -> String {
    let mut names = (1..100).map(|number| format!("{NAME}.damaged-{number}"));
    let aside = names.find(|name| directory.at(name).symlink_metadata().is_err());
    let shown = home.join(NAME);
    match aside.map(|aside| fs::rename(directory.at(NAME), directory.at(&aside)).map(|()| home.join(aside))) {
        Some(Ok(aside)) => {
            format!(
                "{} is damaged: it is kept as {}, and this host knows what could be read of it",
                shown.display(),
                aside.display()
            )
        }
        Some(Err(error)) => format!("{} is damaged, and cannot be put aside: {}", shown.display(), reason(&error)),
        None => format!("{} is damaged, as many before it were, and is replaced", shown.display()),
    }
}

fn read(directory: &OpenDirectory) -> io::Result<Vec<u8>> {
    directory.read(NAME, FILE_BYTES_MAX)
}

/// The project sessions of a text.
fn entries(text: &[u8]) -> io::Result<Vec<Value>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::from_slice(text)?)
}

fn dir(entry: &Value) -> Option<&str> {
    entry.get("dir")?.as_str()
}

/// Locks the journal's directory, until it is dropped, while the file is changed. Without the lock, as on a file system
/// that has none, two hosts that write in the same instant may lose one's change.
#[expect(clippy::disallowed_methods, reason = "the recorder may wait for another one, unlike the host")]
fn lock(directory: &OpenDirectory) {
    for _ in 0..LOCK_TRIES {
        match directory.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn change(dirs: &[&str], forgotten: &[&str]) -> Vec<u8> {
        let kept: Vec<Value> = dirs.iter().map(|dir| serde_json::json!({"dir": dir})).collect();
        serde_json::json!({"kept": kept, "own": dirs, "forgotten": forgotten}).to_string().into_bytes()
    }

    fn uid() -> u32 {
        fs::metadata("/proc/self").unwrap().uid()
    }

    fn dirs(home: &Path) -> Vec<String> {
        let entries = entries(&read_projects(home, uid()).unwrap()).unwrap();
        entries.iter().filter_map(dir).map(str::to_owned).collect()
    }

    #[test]
    fn the_text_is_replaced_and_a_failure_is_told_once() {
        let home = std::env::temp_dir().join(format!("rexec-projects-{}", std::process::id()));
        assert_eq!(read_projects(&home, uid()).unwrap(), b"");
        let mut file = ProjectsFile::new(JournalHome { path: home.clone(), uid: uid() });
        file.write(&change(&[], &[]));
        assert!(file.take_news().is_some_and(|news| news.contains("cannot be written")));
        file.write(&change(&[], &[]));
        assert_eq!(file.take_news(), None);
        JournalHome::of_test(&home);
        for wanted in [&["/a", "/b"][..], &["/b"]] {
            file.write(&change(wanted, &["/a"]));
            assert_eq!(dirs(&home), wanted);
        }
        assert_eq!(fs::metadata(home.join(NAME)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn two_hosts_keep_theirs_in_one_file() {
        let home = std::env::temp_dir().join(format!("rexec-projects-two-{}", std::process::id()));
        let [mut one, mut other] = [(); 2].map(|()| ProjectsFile::new(JournalHome::of_test(&home)));
        one.write(&change(&["/one"], &[]));
        other.write(&change(&["/other"], &[]));
        assert_eq!(dirs(&home), ["/other", "/one"]);
        one.write(&change(&["/new"], &["/one"]));
        assert_eq!(dirs(&home), ["/new", "/other"]);
        // What it read when it began is not its own, and is gone or newer in the file by now.
        let stale = serde_json::json!({"kept": [{"dir": "/one"}, {"dir": "/new", "env": {"A": "old"}}, {"dir": "/more"}],
            "own": ["/more"], "forgotten": ["/other"]});
        other.write(stale.to_string().as_bytes());
        assert_eq!(dirs(&home), ["/more", "/new"]);
        assert!(!String::from_utf8(read_projects(&home, uid()).unwrap()).unwrap().contains("old"));
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn what_is_not_understood_is_put_aside_and_told() {
        let home = std::env::temp_dir().join(format!("rexec-projects-damaged-{}", std::process::id()));
        let mut file = ProjectsFile::new(JournalHome::of_test(&home));
        for (number, damaged) in [(1, &b"[{\"dir\": \"/x\"}"[..]), (2, b"\xff")] {
            fs::write(home.join(NAME), damaged).unwrap();
            file.write(&change(&["/a"], &[]));
            let aside = format!("projects.json.damaged-{number}");
            assert!(file.take_news().is_some_and(|news| news.contains(&aside)));
            assert_eq!(fs::read(home.join(aside)).unwrap(), damaged);
            assert_eq!(dirs(&home), ["/a"]);
        }
        fs::remove_dir_all(&home).unwrap();
    }
}
