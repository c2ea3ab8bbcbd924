//! Directories of the journal, held open while something is made, read or removed in them.
//!
//! Invariant: what is named through an [`OpenDirectory`] lies in the directory that was opened, whatever has taken its
//! place on its path meanwhile. A link is never opened as a directory or a file.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// O_NONBLOCK, which has no effect on files: a FIFO in the place of one is not waited for.
pub(super) const NO_WAIT: i32 = 0o4000;

#[derive(Debug)]
pub(super) struct OpenDirectory(File);

impl OpenDirectory {
    /// # Errors
    /// As open(2). A link in its place is not a directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Only a directory has an entry for itself, so that nothing else is waited for.
        open_itself(path, || File::open(path.join(".")), Metadata::is_dir).map(Self)
    }

    /// Opens the directory of this name in it.
    ///
    /// # Errors
    /// As [`OpenDirectory::open`].
    pub(super) fn directory(&self, name: &str) -> io::Result<Self> {
        Self::open(&self.at(name))
    }

    /// A path to this name in it. It leads there as long as the directory is open, see proc_pid_fd(5).
    pub(super) fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path().join(name.as_ref())
    }

    /// A path to it while it is open.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Locks the directory as flock(2) does. Fails if somebody else has locked it. The lock ends when the directory is
    /// closed.
    pub(super) fn try_lock(&self) -> Result<(), TryLockError> {
        self.0.try_lock()
    }

    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// The bytes of the file of this name; empty if there is none.
    ///
    /// # Errors
    /// It cannot be read, or has more bytes than `most`.
    pub(super) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = match open_file(&self.at(name), OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let mut text = Vec::new();
        file.take(most + 1).read_to_end(&mut text)?;
        if text.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
    }

    /// Replaces the file of this name by one with this text, which only its owner may read. A reader sees the old text or
    /// the new one, and a link in the file's place is replaced and not followed.
    pub(super) fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let new = self.at(format!("{name}.new"));
        let cleared = fs::remove_file(&new).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        });
        let file = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
        let written = cleared.and_then(|()| file()?.write_all(text)).and_then(|()| fs::rename(&new, self.at(name)));
        written.inspect_err(|_| drop(fs::remove_file(&new)))
    }
}

/// Opens a file, and nothing but a file.
///
/// # Errors
/// As open(2), and "not found" where there is no file, but a link for example.
pub(super) fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    open_itself(path, || options.custom_flags(NO_WAIT).open(path), Metadata::is_file)
}

/// Opens what stands at this path itself. If somebody puts a link there in between, another file is opened, and this
/// notices it.
fn open_itself(
    path: &Path,
    open: impl FnOnce() -> io::Result<File>,
    is_fit: impl FnOnce(&Metadata) -> bool,
) -> io::Result<File> {
    let there = fs::symlink_metadata(path)?;
    if is_fit(&there) {
        let file = open()?;
        let opened = file.metadata()?;
        if (opened.dev(), opened.ino()) == (there.dev(), there.ino()) {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_takes_the_directorys_place_gets_nothing() {
        let top = std::env::temp_dir().join(format!("rexec-directory-{}", std::process::id()));
        fs::create_dir_all(top.join("elsewhere")).unwrap();
        fs::create_dir(top.join("home")).unwrap();
        let open = OpenDirectory::open(&top.join("home")).unwrap();
        fs::rename(top.join("home"), top.join("moved")).unwrap();
        symlink(top.join("elsewhere"), top.join("home")).unwrap();
        assert!(OpenDirectory::open(&top.join("home")).is_err(), "a link is no directory");
        open.replace("text", b"one").unwrap();
        fs::remove_file(top.join("moved/text")).unwrap();
        fs::write(top.join("target"), "mine").unwrap();
        symlink(top.join("target"), top.join("moved/text")).unwrap();
        assert!(open_file(&open.at("text"), OpenOptions::new().append(true)).is_err());
        open.replace("text", b"two").unwrap();
        assert_eq!(fs::read(top.join("moved/text")).unwrap(), b"two");
        assert_eq!(fs::read(top.join("target")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(top.join("elsewhere")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(open.path()).unwrap().count(), 1);
        assert!(open.directory("text").is_err());
        fs::remove_dir_all(&top).unwrap();
    }
}
