//! Files, descriptors, and waiting for them.

use std::ffi::{CStr, c_int};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::time::TimeSpec;

use super::{Result, check, check_size, own};

/// KCMP_FILE of kcmp(2).
const KCMP_FILE: c_int = 0;

/// The file that a descriptor or a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStatus {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
}

/// Kinds of files that the shim treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Regular,
    Pipe,
    Socket,
    /// A character device, which may be a terminal.
    Character,
    Other,
}

impl FileStatus {
    fn from_raw(raw: &libc::stat) -> Self {
        let kind = match raw.st_mode & libc::S_IFMT {
            libc::S_IFREG => FileKind::Regular,
            libc::S_IFIFO => FileKind::Pipe,
            libc::S_IFSOCK => FileKind::Socket,
            libc::S_IFCHR => FileKind::Character,
            _ => FileKind::Other,
        };
        Self { device: raw.st_dev, inode: raw.st_ino, kind, mode: raw.st_mode }
    }

    /// Returns true if both statuses are of one file.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// fstat(2). EBADF means that the descriptor is closed.
pub(crate) fn status_of(fd: RawFd) -> Result<FileStatus> {
    // SAFETY: a stat of zeros is a valid one, and fstat fills it.
    let (result, raw) = unsafe {
        let mut raw = std::mem::zeroed();
        (libc::fstat(fd, &raw mut raw), raw)
    };
    check(result.into()).map(|_| FileStatus::from_raw(&raw))
}

/// stat(2). Follows symbolic links.
pub(crate) fn status_at(path: &CStr) -> Result<FileStatus> {
    // SAFETY: a stat of zeros is a valid one, and stat fills it.
    let (result, raw) = unsafe {
        let mut raw = std::mem::zeroed();
        (libc::stat(path.as_ptr(), &raw mut raw), raw)
    };
    check(result.into()).map(|_| FileStatus::from_raw(&raw))
}

/// Returns true if this process may execute the file at this path.
pub(crate) fn is_executable(path: &CStr) -> bool {
    // SAFETY: the path is a C string.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
}

/// Returns true if there is a file or directory of this name.
pub(crate) fn exists(path: &CStr) -> bool {
    // SAFETY: the path is a C string.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::F_OK, 0) == 0 }
}

/// The number of directories above the working directory. `None` if it cannot be reached from the root directory, or if
/// there are more than 255.
pub(crate) fn directories_above() -> Option<u8> {
    let mut path = [0_u8; 4096];
    // SAFETY: the kernel writes within the buffer. The raw call, because the C library's may look for the path by itself.
    let length = unsafe { libc::syscall(libc::SYS_getcwd, path.as_mut_ptr(), path.len()) };
    match path.get(..usize::try_from(length).ok()?)? {
        b"/\0" => Some(0),
        path if path.starts_with(b"/") => path.iter().filter(|&&byte| byte == b'/').count().try_into().ok(),
        _ => None,
    }
}

/// open(2), close-on-exec.
pub(crate) fn open(path: &CStr, flags: c_int) -> Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the path is a C string; no file is created, so there is no mode. The raw call, because musl's would set
    // close-on-exec a second time.
    own(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) })
}

/// read(2).
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes within the buffer.
    check_size(unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// write(2).
pub(crate) fn write(fd: RawFd, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the kernel reads within the slice.
    check_size(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) })
}

/// Takes an exclusive flock(2) on an open file, which lasts until the file is closed. Returns true if it was free.
pub(crate) fn lock(file: &OwnedFd) -> bool {
    // SAFETY: flock takes any descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Takes a shared flock(2) on an open file, which lasts until the file is closed. Returns true if nobody has an
/// exclusive one.
pub(crate) fn lock_shared(file: &OwnedFd) -> bool {
    // SAFETY: flock takes any descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) == 0 }
}

/// Opens a file to add to its end, and creates it for this user alone. It follows no symbolic link, and waits for no
/// FIFO's reader.
pub(crate) fn open_to_append(path: &CStr) -> Result<OwnedFd> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the path is a C string, and a mode follows the flags.
    own(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) })
}

/// The size of a regular file of this user's that has one name and is closed to others; `None` for any other file.
pub(crate) fn private_file_size(file: &OwnedFd, uid: u32) -> Option<u64> {
    // SAFETY: a stat of zeros is a valid one, and fstat fills it.
    let raw = unsafe {
        let mut raw: libc::stat = std::mem::zeroed();
        check(libc::fstat(file.as_raw_fd(), &raw mut raw).into()).ok()?;
        raw
    };
    let is_private = raw.st_mode & libc::S_IFMT == libc::S_IFREG && raw.st_mode & 0o177 == 0;
    (is_private && raw.st_uid == uid && raw.st_nlink == 1).then(|| u64::try_from(raw.st_size).ok()).flatten()
}

/// Creates a directory with mode 0700, whatever the umask. Returns true if it did.
pub(crate) fn make_private_directory(path: &CStr) -> bool {
    // SAFETY: the path is a C string.
    unsafe { libc::mkdir(path.as_ptr(), 0o700) == 0 && libc::chmod(path.as_ptr(), 0o700) == 0 }
}

/// Returns true if a process holds an exclusive flock(2) on this file.
pub(crate) fn is_locked(path: &CStr) -> bool {
    let Ok(file) = open(path, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK) else { return false };
    // SAFETY: flock takes any descriptor.
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
    check(result.into()) == Err(Errno::EWOULDBLOCK)
}

/// Reads entries of an open directory, laid out as by getdents64(2). Returns 0 bytes at the end.
pub(crate) fn read_directory(directory: &OwnedFd, buffer: &mut [u8]) -> Result<usize> {
    let fd = directory.as_raw_fd();
    // SAFETY: the kernel writes within the buffer.
    let bytes = check(unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) })?;
    Ok(usize::try_from(bytes).expect("check refuses negative numbers"))
}

/// Returns true if a descriptor is open and would outlive execve(2).
pub(crate) fn is_inheritable(fd: RawFd) -> bool {
    inheritance(fd) == Some(true)
}

/// Returns true if a descriptor would outlive execve(2); `None` if it is not open.
pub(crate) fn inheritance(fd: RawFd) -> Option<bool> {
    // SAFETY: F_GETFD takes any number.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    (flags >= 0).then_some(flags & libc::FD_CLOEXEC == 0)
}

/// The number of open descriptors of this process: the size of /proc/self/fd since Linux 6.2 (proc_pid_fd(5)). 0
/// before.
pub(crate) fn open_descriptors() -> Option<u64> {
    // SAFETY: a stat of zeros is a valid one, and stat fills it.
    unsafe {
        let mut raw: libc::stat = std::mem::zeroed();
        check(libc::stat(c"/proc/self/fd".as_ptr(), &raw mut raw).into()).ok()?;
        u64::try_from(raw.st_size).ok()
    }
}

/// Returns true if every write to a descriptor goes to the end of its file.
pub(crate) fn is_appending(fd: RawFd) -> bool {
    // SAFETY: F_GETFL takes any number.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_APPEND != 0
}

/// Returns true if two descriptors of this process share one open file description (kcmp(2)). `None` if the kernel does
/// not tell.
pub(crate) fn is_same_description(one: RawFd, other: RawFd) -> Option<bool> {
    // SAFETY: neither call has preconditions.
    let result = unsafe {
        let pid = libc::getpid();
        libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one, other)
    };
    (result >= 0).then_some(result == 0)
}

/// Returns true if another process holds a write lock on an open file that belongs to an open file description
/// (fcntl(2), F_OFD_GETLK). No lock is taken.
pub(crate) fn is_write_locked(file: &OwnedFd) -> bool {
    let write = libc::c_short::try_from(libc::F_WRLCK).expect("a small number");
    // SAFETY: every field is a number, for which zero is a value; the kernel reads and writes one structure.
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = write;
        libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) == 0 && lock.l_type == write
    }
}

/// Waits for some milliseconds, or until a signal arrives.
pub(crate) fn pause(milliseconds: c_int) {
    let _ = poll(&mut [], milliseconds);
}

/// An entry for [`poll`]. A descriptor of −1 is skipped.
pub(crate) const fn watch(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// poll(2). A negative time waits forever.
pub(crate) fn poll(watched: &mut [libc::pollfd], milliseconds: c_int) -> Result<usize> {
    // SAFETY: the kernel reads and writes within the slice.
    let ready = unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, milliseconds) };
    usize::try_from(ready).map_err(|_| Errno::last())
}

/// As [`poll`], with a time as fine as the system's clock. None waits forever.
pub(crate) fn poll_for(watched: &mut [libc::pollfd], time: Option<Duration>) -> Result<usize> {
    let time = time.map(TimeSpec::from_duration);
    let time = time.as_ref().map_or(std::ptr::null(), |time| std::ptr::from_ref::<libc::timespec>(time.as_ref()));
    // SAFETY: the kernel reads and writes within the slice, and reads a time that lives.
    let ready = unsafe { libc::ppoll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, time, std::ptr::null()) };
    usize::try_from(ready).map_err(|_| Errno::last())
}

/// Returns true if a descriptor takes output at once, or has an error.
pub(crate) fn has_room(fd: RawFd) -> bool {
    let mut watched = [watch(fd, libc::POLLOUT)];
    poll(&mut watched, 0).is_ok_and(|ready| ready > 0)
}
