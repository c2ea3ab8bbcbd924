//! A FIFO that many processes of this user write and one process reads.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::stat::Mode;

use super::process;

/// The mode of the FIFO: its user may write.
const WRITE_ONLY: u16 = 0o200;
/// The wanted size, bytes.
const FIFO_BYTES: i32 = 1 << 20;

/// Makes a FIFO at this path and opens it for reading without waiting. An existing FIFO of this user is replaced;
/// anything else is left alone. It is also opened for writing, so that it never ends. Then its mode allows only
/// writing: writers of reports may not read those of others.
///
/// # Errors
/// As mkfifo(3) and open(2); `AlreadyExists` if something else is at the path.
pub fn make(path: &Path) -> io::Result<OwnedFd> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_fifo() && there.uid() == process::uid() => fs::remove_file(path)?,
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(super::io)?;
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let fifo = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    fifo.set_permissions(fs::Permissions::from_mode(WRITE_ONLY.into()))?;
    // Beyond the user's limit (pipe-user-pages-soft), it keeps its usual size.
    let _ = fcntl(&fifo, FcntlArg::F_SETPIPE_SZ(FIFO_BYTES));
    Ok(fifo.into())
}

/// Returns true if only its writers have access to a FIFO from [`make`]: its mode and its one name are unchanged.
#[must_use]
pub fn is_as_made(fd: &OwnedFd) -> bool {
    nix::sys::stat::fstat(fd).is_ok_and(|data| data.st_mode & 0o7777 == u32::from(WRITE_ONLY) && data.st_nlink <= 1)
}

/// The state of a reader that has read records: its search for their writers may be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimLook {
    /// Writers must stay, to be found.
    Due,
    /// Nobody has to stay.
    Done,
}

/// Reports the state to the writers, by a lock that they can see: unlike a change of the file it waits for no disk. If
/// the lock fails, writers may leave too early.
pub fn tell_writers(fd: &OwnedFd, look: ShimLook) {
    let kind = match look {
        ShimLook::Due => libc::F_WRLCK,
        ShimLook::Done => libc::F_UNLCK,
    };
    // SAFETY: every field is a number, for which zero is a value: the whole file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = i16::try_from(kind).expect("a small number");
    let _ = fcntl(fd, FcntlArg::F_OFD_SETLK(&lock));
}

/// The device and inode of an open file.
#[must_use]
pub fn identity(fd: &OwnedFd) -> Option<(u64, u64)> {
    let data = nix::sys::stat::fstat(fd).ok()?;
    Some((data.st_dev, data.st_ino))
}

/// Removes the FIFO at this path if it is this one.
pub fn remove(path: &Path, identity: Option<(u64, u64)>) {
    if identity.is_some() && super::file::identity(path) == identity {
        let _ = fs::remove_file(path);
    }
}
