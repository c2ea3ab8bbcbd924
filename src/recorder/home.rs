//! The journal's directory: made or checked before anything is written into it.
//!
//! Invariant: a directory that is opened is not a link, belongs to the user, and is closed to all others.

use std::error::Error;
use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;

use super::directory::OpenDirectory;
use crate::text::reason::reason;

/// Why the directory cannot hold a journal. The human who starts the host reads this.
#[derive(Debug)]
pub enum JournalError {
    /// The directory cannot be made.
    Create { path: PathBuf, source: io::Error },
    /// The directory's metadata cannot be read.
    Unreadable { path: PathBuf, source: io::Error },
    /// The path is a symbolic link: another user may decide where commands and their output go.
    Symlink { path: PathBuf },
    /// The path is neither a directory nor a link.
    NotADirectory { path: PathBuf },
    /// The directory belongs to another user.
    NotOurs { path: PathBuf, uid: u32 },
    /// The mode lets other users in.
    Open { path: PathBuf, mode: u32 },
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Create { path, source } => {
                write!(f, "the journal's directory {} cannot be made: {}", path.display(), reason(source))
            }
            JournalError::Unreadable { path, source } => {
                write!(f, "the journal's directory {} cannot be read: {}", path.display(), reason(source))
            }
            JournalError::Symlink { path } => {
                write!(f, "the journal's directory {} is a symbolic link", path.display())
            }
            JournalError::NotADirectory { path } => {
                write!(f, "the journal's directory {} is not a directory", path.display())
            }
            JournalError::NotOurs { path, uid } => {
                write!(f, "the journal's directory {} belongs to user {uid}", path.display())
            }
            JournalError::Open { path, mode } => {
                write!(f, "the journal's directory {} is open to other users (mode {mode:03o})", path.display())
            }
        }
    }
}

impl Error for JournalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            JournalError::Create { source, .. } | JournalError::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl JournalError {
    /// Advice for the human.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            JournalError::Create { .. } | JournalError::NotOurs { .. } => {
                "set REXEC_HOME to a directory that you can write".to_owned()
            }
            JournalError::Symlink { .. } => "set REXEC_HOME to the directory it points to".to_owned(),
            JournalError::NotADirectory { path } => {
                format!("move {} away, or set REXEC_HOME to a directory", path.display())
            }
            JournalError::Unreadable { path, .. } | JournalError::Open { path, .. } => {
                format!("run: chmod 700 {}", path.display())
            }
        }
    }
}

/// The journal's directory, and the user whose it must be.
#[derive(Debug, Clone)]
pub(super) struct JournalHome {
    pub(super) path: PathBuf,
    pub(super) uid: u32,
}

impl JournalHome {
    /// Makes the directory if there is none, and opens it.
    pub(super) fn prepare(&self) -> Result<OpenDirectory, JournalError> {
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if fs::symlink_metadata(&self.path).is_err_and(|error| is_missing(&error)) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.path)
                // The umask may have removed the owner's permissions.
                .and_then(|()| fs::set_permissions(&self.path, Permissions::from_mode(0o700)))
                .map_err(|source| JournalError::Create { path: self.path.clone(), source })?;
        }
        self.open()
    }

    /// Opens the directory. One that others could read or replace is refused, and so is a link in its place.
    pub(super) fn open(&self) -> Result<OpenDirectory, JournalError> {
        let path = || self.path.clone();
        let unreadable = |source| JournalError::Unreadable { path: path(), source };
        let there = fs::symlink_metadata(&self.path).map_err(unreadable)?;
        if there.is_symlink() {
            return Err(JournalError::Symlink { path: path() });
        }
        if !there.is_dir() {
            return Err(JournalError::NotADirectory { path: path() });
        }
        if there.uid() != self.uid {
            return Err(JournalError::NotOurs { path: path(), uid: there.uid() });
        }
        // The directory that was opened decides, and not what was there before.
        let directory = OpenDirectory::open(&self.path).map_err(unreadable)?;
        let metadata = directory.metadata().map_err(unreadable)?;
        let mode = metadata.mode() & 0o7777;
        if metadata.uid() != self.uid {
            Err(JournalError::NotOurs { path: path(), uid: metadata.uid() })
        } else if mode & 0o077 != 0 {
            Err(JournalError::Open { path: path(), mode })
        } else {
            Ok(directory)
        }
    }
}

#[cfg(test)]
impl JournalHome {
    /// A directory for a test, which removes it.
    pub(super) fn of_test(path: &std::path::Path) -> Self {
        let home = Self { path: path.to_owned(), uid: fs::metadata("/proc/self").unwrap().uid() };
        home.prepare().unwrap();
        home
    }
}
