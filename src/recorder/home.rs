//! The journal's directory: made or checked before anything is written into it.
//!
//! Invariant: after [`prepare`] the directory is not a link, belongs to the user, and is closed to all others.

use std::error::Error;
use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
    /// What the human can do about it.
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

/// Makes the journal's directory if there is none, and refuses one that others could read or replace.
pub(super) fn prepare(path: &Path, uid: u32) -> Result<(), JournalError> {
    let path = || path.to_owned();
    let look = || fs::symlink_metadata(path());
    let metadata = match look() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path())
                // The umask may have removed the owner's permissions.
                .and_then(|()| fs::set_permissions(path(), Permissions::from_mode(0o700)))
                .map_err(|source| JournalError::Create { path: path(), source })?;
            look()
        }
        found => found,
    };
    let metadata = metadata.map_err(|source| JournalError::Unreadable { path: path(), source })?;
    let mode = metadata.mode() & 0o7777;
    if metadata.is_symlink() {
        Err(JournalError::Symlink { path: path() })
    } else if !metadata.is_dir() {
        Err(JournalError::NotADirectory { path: path() })
    } else if metadata.uid() != uid {
        Err(JournalError::NotOurs { path: path(), uid: metadata.uid() })
    } else if mode & 0o077 != 0 {
        Err(JournalError::Open { path: path(), mode })
    } else {
        Ok(())
    }
}
