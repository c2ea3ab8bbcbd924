//! Files with special demands: the lock that decides who is the host, and files that must not be followed or shared.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use nix::libc;

/// An exclusive lock on a file, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    file: Flock<File>,
}

impl Lock {
    /// Takes the lock; `None` when another process has it. The file is made if it is missing and never removed.
    ///
    /// # Errors
    /// As open(2) and flock(2).
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            match Self::take_once(path)? {
                // Removed between the opening and the locking: whoever comes next would make and lock another one.
                Some(lock) if !lock.is_at(path) => {}
                taken => return Ok(taken),
            }
        }
    }

    fn take_once(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Some(Self { file })),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(super::io(errno)),
        }
    }

    /// Whether the path still names the locked file.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        let ours = self.file.metadata().map(|data| (data.dev(), data.ino()));
        let there = std::fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }

    /// Writes a number for people and for the next host's message.
    pub fn write_pid(&self, pid: u32) {
        use std::io::{Seek, Write};
        let mut file: &File = &self.file;
        let _ = file.rewind();
        let _ = file.set_len(0);
        let _ = writeln!(file, "{pid}");
    }
}

/// Makes a directory that only its owner may enter, and its parents as usual. An existing one is left as it is.
///
/// # Errors
/// As mkdir(2).
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.parent().is_some_and(|p| !p.exists()) => {
            std::fs::create_dir_all(path.parent().expect("just seen"))?;
            DirBuilder::new().mode(0o700).create(path)
        }
        made => made,
    }
}

/// Device and inode of what a path names, without following a last link.
#[must_use]
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

/// Opens `/dev/null` for reading.
///
/// # Errors
/// EMFILE or ENFILE.
pub fn null() -> io::Result<File> {
    File::open("/dev/null")
}

/// Whether this process may execute the file.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Opens a directory to enter it later, without the right to read it.
///
/// # Errors
/// As open(2) with O_PATH and O_DIRECTORY.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    OpenOptions::new().read(true).custom_flags(flags).open(path).map(OwnedFd::from)
}

/// A file that exists in memory only, at its start, holding these bytes.
///
/// # Errors
/// As memfd_create(2).
pub fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek, Write};
    let fd = nix::sys::memfd::memfd_create(c"rexec-stdin", nix::sys::memfd::MFdFlags::MFD_CLOEXEC);
    let mut file = File::from(fd.map_err(super::io)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}
