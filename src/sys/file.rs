//! Files: the lock that decides which process is the host, private directories, and files in memory.

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
    /// Takes the lock; `None` if another process has it. The file is created if it is missing, and never removed.
    ///
    /// # Errors
    /// As open(2) and flock(2).
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            match Self::take_once(path)? {
                // The file was removed between open(2) and flock(2). The next process would create and lock another one.
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

    /// Returns true if the path still names the locked file.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        let ours = self.file.metadata().map(|data| (data.dev(), data.ino()));
        let there = std::fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }

    /// Writes the host's process number into the file, for people and for the message of another host.
    pub fn write_pid(&self, pid: u32) {
        use std::io::{Seek, Write};
        let mut file: &File = &self.file;
        let _ = file.rewind();
        let _ = file.set_len(0);
        let _ = writeln!(file, "{pid}");
    }
}

/// Creates a directory with mode 0700, and its parents with the usual mode. An existing directory is not changed.
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

/// The device and inode of a path. A symbolic link at its end is not followed.
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

/// Returns true if this process may execute the file.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Opens a directory for a later fchdir(2). The right to read it is not needed.
///
/// # Errors
/// As open(2) with O_PATH and O_DIRECTORY.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    OpenOptions::new().read(true).custom_flags(flags).open(path).map(OwnedFd::from)
}

/// Makes a file in memory with this content. Its offset is at the start.
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
