//! Thin wrappers of system calls. Only this folder and `guard` name nix and have `unsafe` blocks.
//!
//! Global rules that its SAFETY comments lean on: the process has one thread; between fork or clone and exec a child
//! makes system calls only; no borrowed descriptor outlives its owner.
//!
//! Reading order: [`pty`], `stat`, [`program`], [`tree`], [`orphans`]; then [`socket`], [`signal`], [`terminal`], [`writer`],
//! [`process`], [`confinement`], [`watch`], [`mod@file`].

pub mod cgroup;
pub mod confinement;
pub mod file;
pub mod kill;
pub mod process;
pub mod program;
pub mod pty;
pub mod signal;
pub mod socket;
mod stat;
pub mod terminal;
pub mod tree;
pub mod watch;
pub mod writer;

use std::os::fd::{AsFd, AsRawFd};

/// A failed call as io::Error.
pub(crate) fn io(errno: nix::errno::Errno) -> std::io::Error {
    errno.into()
}

/// What a raw call answered, as a result.
pub(crate) fn check(answer: nix::libc::c_int) -> std::io::Result<nix::libc::c_int> {
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
}

/// Whether a read or write would have had to wait, or was only interrupted.
#[must_use]
pub fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

/// Whether a write found no room on its disk, or the user's part of it is used up: both may change.
#[must_use]
pub fn is_disk_full(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(nix::libc::ENOSPC | nix::libc::EDQUOT))
}

/// Repeats a call for as long as it is interrupted (EINTR): an interruption says nothing of the descriptor.
///
/// # Errors
/// Any other error of the call.
pub fn uninterrupted<T>(mut call: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

/// read(2), repeated when interrupted.
///
/// # Errors
/// As read(2); EAGAIN is `WouldBlock`, EIO is what a terminal gives that nobody holds open.
pub fn read(fd: &impl AsFd, buffer: &mut [u8]) -> std::io::Result<usize> {
    uninterrupted(|| nix::unistd::read(fd, buffer).map_err(io))
}

/// write(2), repeated when interrupted.
///
/// # Errors
/// As write(2); EAGAIN is `WouldBlock`.
pub fn write(fd: &impl AsFd, bytes: &[u8]) -> std::io::Result<usize> {
    uninterrupted(|| nix::unistd::write(fd, bytes).map_err(io))
}

/// Whether an error is the EIO of a terminal whose other side nobody holds.
#[must_use]
pub fn is_hangup(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EIO)
}

/// Whether something was refused for want of descriptors, processes, terminals or memory, which come back.
#[must_use]
pub fn is_shortage(errno: i32) -> bool {
    use nix::libc::{EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC};
    [EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC].contains(&errno)
}

/// Whether descriptors could not be sent because all processes of this user together have too many on their way.
#[must_use]
pub fn is_in_flight_limit(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::ETOOMANYREFS)
}

/// Sets O_NONBLOCK on a descriptor that this process made itself and shares with nobody.
///
/// # Errors
/// As fcntl(2).
pub fn set_nonblocking(fd: &impl AsFd) -> std::io::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).map_err(io)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).map_err(io)?;
    Ok(())
}

/// What a pipe for a command's output holds, bytes: fewer wake-ups than with the usual 64 KiB.
const PIPE_BYTES: i32 = 256 << 10;

/// A pipe whose read end does not block, both ends closed on exec.
///
/// # Errors
/// EMFILE or ENFILE, as pipe2(2).
pub fn pipe() -> std::io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(io)?;
    set_nonblocking(&read)?;
    // Beyond the user's allowance (pipe-user-pages-soft) the usual size has to do.
    let _ = nix::fcntl::fcntl(&read, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    Ok((read, write))
}

/// What a descriptor refers to, as /proc names it: a path for files and directories.
#[must_use]
pub fn path_of(fd: &impl AsFd) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).ok()
}
