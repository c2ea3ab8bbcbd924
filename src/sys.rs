//! Thin wrappers around system calls. Policy is elsewhere. Only this folder and [`guard`](crate::guard) name nix and have
//! `unsafe` blocks.
//!
//! The SAFETY comments rely on three rules: the process has one thread; between fork or clone and exec a child makes
//! system calls only; no borrowed descriptor outlives its owner.
//!
//! Reading order: [`process`], [`scheduler`], [`close_kind`], [`closer`], [`caller_descriptor`], [`own_table`],
//! [`helper`], [`looker`], [`kill`], [`pty`], `stat`, [`program`], [`tree`], [`usage`]; then [`socket`], [`signal`],
//! [`terminal`], [`writer`], [`confinement`], [`cgroup`], [`watch`], [`mod@file`], [`folder`], [`background`], [`local_time`],
//! [`locale`], [`mod@poll`].

#![expect(unsafe_code, reason = "system calls live here and in guard")]

pub mod background;
pub mod caller_descriptor;
pub mod cgroup;
pub mod close_kind;
pub mod closer;
pub mod confinement;
pub mod fifo;
pub mod file;
pub mod folder;
pub mod helper;
pub mod kill;
pub mod local_time;
pub mod locale;
pub mod looker;
pub mod namespace;
pub mod near_file;
pub mod own_table;
pub mod poll;
pub(crate) mod proc_file;
pub mod process;
pub mod program;
pub mod project;
pub mod pty;
pub mod query;
pub mod scheduler;
pub mod signal;
pub mod socket;
pub mod spool;
pub mod standard_input;
mod stat;
pub mod terminal;
pub mod terminal_keeper;
pub mod tree;
pub mod usage;
pub mod watch;
pub mod writer;

use std::os::fd::{AsFd, AsRawFd};

/// Converts the error of a nix call.
pub(crate) fn io(errno: nix::errno::Errno) -> std::io::Error {
    errno.into()
}

/// Converts the answer of a raw call: a negative one is an error in errno.
pub(crate) fn check(answer: nix::libc::c_int) -> std::io::Result<nix::libc::c_int> {
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
}

/// Whether a read or write failed only because it would have had to wait or was interrupted.
#[must_use]
pub fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

/// Whether a write failed because the disk is full or the user's quota is used up. Both may change.
#[must_use]
pub fn is_disk_full(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::StorageFull
        || matches!(error.raw_os_error(), Some(nix::libc::ENOSPC | nix::libc::EDQUOT))
}

/// Repeats a call while it fails with EINTR.
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
/// As read(2). EAGAIN is `WouldBlock`. A terminal's master fails with EIO while no process holds the slave open.
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

/// Whether an error is the EIO of a terminal whose other side no process holds open.
#[must_use]
pub fn is_hangup(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EIO)
}

/// Whether an errno says that descriptors, processes, terminals or memory have run out, for now.
#[must_use]
pub fn is_shortage(errno: i32) -> bool {
    use nix::libc::{EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC};
    [EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC].contains(&errno)
}

/// Whether descriptors could not be sent because this user has too many in flight (unix(7)).
#[must_use]
pub fn is_in_flight_limit(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::ETOOMANYREFS)
}

/// Sets O_NONBLOCK on a descriptor that this process made and shares with no other.
///
/// # Errors
/// As ioctl(2).
pub fn set_nonblocking(fd: &impl AsFd) -> std::io::Result<()> {
    let mut is_set: nix::libc::c_int = 1;
    // SAFETY: the kernel reads one number. This takes one system call, where fcntl(2) takes two.
    check(unsafe { nix::libc::ioctl(fd.as_fd().as_raw_fd(), nix::libc::FIONBIO, &raw mut is_set) }).map(drop)
}

/// The capacity of a pipe for much output, bytes. It causes fewer wake-ups than the usual 64 KiB.
const PIPE_BYTES: i32 = 256 << 10;

/// Gives a pipe this capacity, or what the user may have of it (pipe-max-size, pipe-user-pages-soft): the half, the
/// quarter, or no more than it has.
pub(crate) fn widen(pipe: &impl AsFd, bytes: i32) {
    let is_set = |bytes| nix::fcntl::fcntl(pipe, nix::fcntl::FcntlArg::F_SETPIPE_SZ(bytes)).is_ok();
    let _ = [bytes, bytes / 2, bytes / 4].into_iter().find(|&bytes| is_set(bytes));
}

/// Makes a pipe whose read end does not block. Both ends are closed on exec.
///
/// # Errors
/// EMFILE or ENFILE, as pipe2(2).
pub fn pipe() -> std::io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(io)?;
    set_nonblocking(&read)?;
    widen(&read, PIPE_BYTES);
    Ok((read, write))
}

/// Makes a pipe whose write end does not block. Both ends are closed on exec.
///
/// # Errors
/// As pipe2(2).
pub fn input_pipe() -> std::io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(io)?;
    set_nonblocking(&write)?;
    Ok((read, write))
}

/// Gives one of the standard numbers of this process another meaning.
pub(crate) fn put_at(fd: &impl AsFd, number: std::os::fd::RawFd) -> std::io::Result<()> {
    // SAFETY: the call takes numbers, and nothing owns the standard ones.
    check(unsafe { nix::libc::dup2(fd.as_fd().as_raw_fd(), number) }).map(drop)
}

/// Random bytes. The kernel gives them at once.
///
/// # Errors
/// As open(2) and read(2).
pub fn random<const BYTES: usize>() -> std::io::Result<[u8; BYTES]> {
    use std::io::Read;
    let mut bytes = [0; BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The name under which /proc shows a descriptor. For files and directories it is a path.
#[must_use]
pub fn path_of(fd: &impl AsFd) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).ok()
}
