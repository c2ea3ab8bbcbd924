//! One host's journal, whichever recorder writes it: the host keeps it and hands a copy to every recorder it starts.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::home::{JournalError, JournalHome};
use super::names;
use crate::journal::record::timestamp;

/// One host's journal.
#[derive(Debug, Clone)]
pub struct Session {
    pub(super) home: JournalHome,
    /// The host's process.
    pub(super) host: u32,
    /// When the journal began, in the form of its files' names.
    pub(super) time: String,
    /// The first file's name, with which the names of raw files begin.
    pub(super) name: Option<String>,
    pub(super) resume: Option<ResumePoint>,
}

/// The point from which the next recorder goes on: every record before it is in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResumePoint {
    pub(super) name: String,
    pub(super) length: u64,
}

impl Session {
    /// Begins a journal in the directory `home`, which must belong to the user `uid`. `host` is the host's process ID.
    #[must_use]
    pub fn new(home: &Path, uid: u32, host: u32) -> Session {
        let time = names::of_stamp(&timestamp(SystemTime::now()));
        let home = JournalHome { path: home.to_owned(), uid };
        Session { home, host, time, name: None, resume: None }
    }

    /// Makes the directory, or checks that the one that is there is safe.
    ///
    /// # Errors
    /// If the directory cannot be made or others could read or replace it.
    pub fn prepare(&self) -> Result<(), JournalError> {
        self.home.prepare().map(drop)
    }

    /// Notes that the recorder now writes the file `name` (without extension).
    pub fn on_file(&mut self, name: &str) {
        self.name.get_or_insert_with(|| name.to_owned());
        // A recorder that goes on in the file of the one before names it, too.
        let goes_on = self.resume.as_ref().is_some_and(|point| point.name == name);
        if !goes_on {
            self.resume = Some(ResumePoint { name: name.to_owned(), length: 0 });
        }
    }

    /// Notes that every acknowledged record stands within the file's first `length` bytes.
    pub fn on_length(&mut self, length: u64) {
        if let Some(point) = &mut self.resume {
            point.length = length;
        }
    }

    /// The file that is being written. `None` until a recorder has named it.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.resume.as_ref().map(|point| names::path(&self.home.path, &point.name))
    }
}
