//! The consequences of closing a caller's descriptor.

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;

/// The consequence of closing a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseKind {
    /// It never waits: a pipe, /dev/null, or a place (O_PATH).
    AtOnce,
    /// The last close of a socket may wait for the other side. That ends when the closing process is killed.
    Socket,
    /// Each close of a copy may wait for the file's server; nothing ends that wait, not even a signal to the closing
    /// process.
    File,
}

impl CloseKind {
    /// The kind of this descriptor. Asks no file server.
    #[must_use]
    pub(super) fn of(fd: BorrowedFd<'_>) -> Self {
        const NULL_DEVICE: (u32, u32) = (1, 3);
        // SAFETY: the call takes numbers.
        let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
        if flags >= 0 && flags & libc::O_PATH != 0 {
            return Self::AtOnce;
        }
        // SAFETY: every field is a number, for which zero is a value.
        let mut seen: libc::statx = unsafe { std::mem::zeroed() };
        let at = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
        let wanted = libc::STATX_TYPE | libc::STATX_NLINK;
        // SAFETY: the kernel fills the structure, and the name ends with a NUL.
        if unsafe { libc::statx(fd.as_raw_fd(), c"".as_ptr(), at, wanted, &raw mut seen) } != 0 {
            return Self::File;
        }
        match u32::from(seen.stx_mode) & libc::S_IFMT {
            // A named pipe that was removed takes its place on a disk with it.
            libc::S_IFIFO if seen.stx_nlink > 0 => Self::AtOnce,
            libc::S_IFCHR if (seen.stx_rdev_major, seen.stx_rdev_minor) == NULL_DEVICE => Self::AtOnce,
            libc::S_IFSOCK => Self::Socket,
            _ => Self::File,
        }
    }
}

/// Returns true if a descriptor is a socket that reaches no other machine: none of its closes waits for the other side.
#[must_use]
pub(super) fn is_local_socket(fd: BorrowedFd<'_>) -> bool {
    let mut domain: libc::c_int = 0;
    let mut length: libc::socklen_t = 4;
    // SAFETY: the kernel writes one number of this length.
    let answer = unsafe {
        let into = (&raw mut domain).cast();
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_DOMAIN, into, &raw mut length)
    };
    answer == 0 && domain == libc::AF_UNIX
}
