//! The file with the project sessions, `projects.json` in the journal's directory.
//!
//! Invariants: the file is replaced as a whole, so that a reader finds the old text or the new one; only its owner may
//! read it; a disk that fails ends nothing.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::Path;

use super::directory::open_file;
use super::home::JournalHome;
use crate::text::reason::reason;

const NAME: &str = "projects.json";

/// The most that is read of it, bytes: far more than any host writes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The file, for the recorder.
#[derive(Debug)]
pub(super) struct ProjectsFile {
    home: JournalHome,
    /// What the human has to know.
    news: Option<String>,
    /// The last text could not be written, which was told.
    has_failed: bool,
}

impl ProjectsFile {
    /// The file in this directory.
    pub(super) fn new(home: JournalHome) -> Self {
        Self { home, news: None, has_failed: false }
    }

    /// Replaces the text.
    pub(super) fn write(&mut self, text: &[u8]) {
        let replace = || self.home.open().map_err(io::Error::other)?.replace(NAME, text);
        let error = replace().err();
        if let Some(error) = error.as_ref().filter(|_| !self.has_failed) {
            self.news = Some(format!(
                "{} cannot be written: {}; a new host will not know what was defined since",
                self.home.path.join(NAME).display(),
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
    let mut text = Vec::new();
    let file = open_file(&home.join(NAME), OpenOptions::new().read(true));
    let is_whole = file.is_ok_and(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text).is_ok());
    if is_whole { text } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn the_text_is_replaced_and_a_failure_is_told_once() {
        let home = std::env::temp_dir().join(format!("rexec-projects-{}", std::process::id()));
        assert_eq!(read_projects(&home), b"");
        let mut file =
            ProjectsFile::new(JournalHome { path: home.clone(), uid: fs::metadata("/proc/self").unwrap().uid() });
        file.write(b"[]");
        assert!(file.take_news().is_some_and(|news| news.contains("cannot be written")));
        file.write(b"[]");
        assert_eq!(file.take_news(), None);
        JournalHome::of_test(&home);
        for text in [&b"[1, 2]"[..], b"[]"] {
            file.write(text);
            assert_eq!(read_projects(&home), text);
        }
        assert_eq!(fs::metadata(home.join(NAME)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
        fs::remove_dir_all(&home).unwrap();
    }
}
