//! The file with the project sessions, `projects.json` in the journal's directory.
//!
//! Invariants: the file is replaced as a whole, so that a reader finds the old text or the new one; only its owner may
//! read it; a disk that fails ends nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::text::reason::reason;

/// The most that is read of it, bytes: far more than any host writes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The file, for the recorder.
#[derive(Debug)]
pub(super) struct ProjectsFile {
    path: PathBuf,
    /// What the human has to know.
    news: Option<String>,
    /// The last text could not be written, which was told.
    has_failed: bool,
}

impl ProjectsFile {
    /// The file in this directory.
    pub(super) fn new(home: &Path) -> Self {
        Self { path: path(home), news: None, has_failed: false }
    }

    /// Replaces the text.
    pub(super) fn write(&mut self, text: &[u8]) {
        let error = replace(&self.path, text).err();
        if let Some(error) = error.as_ref().filter(|_| !self.has_failed) {
            self.news = Some(format!(
                "{} cannot be written: {}; a new host will not know what was defined since",
                self.path.display(),
                reason(error)
            ));
        }
        self.has_failed = error.is_some();
    }

    /// What the human has to know, once.
    pub(super) fn take_news(&mut self) -> Option<String> {
        self.news.take()
    }
}

/// The text that an earlier host's recorder has left; empty if there is none.
#[must_use]
pub fn read_projects(home: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut text = Vec::new();
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path(home));
    let is_whole = file.is_ok_and(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text).is_ok());
    if is_whole { text } else { Vec::new() }
}

/// O_NONBLOCK: a FIFO in its place has no writer to wait for.
const NO_WAIT: i32 = 0o4000;

fn path(home: &Path) -> PathBuf {
    home.join("projects.json")
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("json.new");
    let written = fs::remove_file(&new).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    });
    let file = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    let written = written.and_then(|()| file()?.write_all(text)).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_text_is_replaced_and_a_failure_is_told_once() {
        let home = std::env::temp_dir().join(format!("rexec-projects-{}", std::process::id()));
        assert_eq!(read_projects(&home), b"");
        let mut file = ProjectsFile::new(&home);
        file.write(b"[]");
        assert!(file.take_news().is_some_and(|news| news.contains("cannot be written")));
        file.write(b"[]");
        assert_eq!(file.take_news(), None);
        fs::create_dir(&home).unwrap();
        for text in [&b"[1, 2]"[..], b"[]"] {
            file.write(text);
            assert_eq!(read_projects(&home), text);
        }
        assert_eq!(fs::metadata(path(&home)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
        fs::remove_dir_all(&home).unwrap();
    }
}
