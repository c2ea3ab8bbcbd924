//! A descriptor that pins the process that called connect(2).
//!
//! Invariant: while the pinned process lives, no other process has its number. If it still lives after files in /proc were
//! read under that number, they were its own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::super::check;
use super::super::kill::{CONT, Pidfd};
use super::super::looker;
use super::super::stat::StatLine;
use super::super::tree;
use rexec_sh::protocol::process::Pid;

/// A point in time, in clock ticks since boot, the unit of process starts in /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    #[must_use]
    pub fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call fills the structure. It cannot fail, because every kernel has this clock.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
        // SAFETY: the call takes a number.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let ticks = u64::try_from(ticks).unwrap_or(100).clamp(1, 1_000_000);
        let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
        Self(seconds * ticks + nanos / (1_000_000_000 / ticks))
    }
}

/// A descriptor for the process that called connect(2), which had this number when the connection was accepted.
pub(super) fn of_peer(socket: &impl AsFd, pid: Pid, accepted: Moment) -> io::Result<OwnedFd> {
    match pin_of_peer(socket) {
        // Older than Linux 6.5.
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => pin_by_number(pid, accepted),
        pin => pin,
    }
}

#[derive(Debug)]
pub struct ConnectedProcess {
    pin: Pidfd,
    pid: Pid,
}

impl ConnectedProcess {
    /// The process at the other end of a connection, which had this number when the connection was accepted.
    ///
    /// # Errors
    /// It has ended, or no descriptor is left.
    pub fn of(socket: &impl AsFd, pid: Pid, accepted: Moment) -> io::Result<Self> {
        Ok(Self { pin: of_peer(socket, pid, accepted)?.into(), pid })
    }

    /// Continues it if it is stopped. Returns true if it was, or has ended.
    #[must_use]
    pub fn continue_if_stopped(&self) -> bool {
        let is_stopped = tree::process(self.pid).is_none_or(|process| process.is_stopped);
        if is_stopped {
            self.pin.send(CONT);
        }
        is_stopped
    }
}

/// A descriptor for the process that called connect(2).
fn pin_of_peer(socket: &impl AsFd) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let (mut fd, mut size): (libc::c_int, libc::socklen_t) = (-1, 4);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes one number, for which there is room.
    let answer =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, SO_PEERPIDFD, (&raw mut fd).cast(), &raw mut size) };
    check(answer)?;
    check(fd)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A descriptor for the process with this number. Fails if the process started after the connection was accepted.
pub(super) fn pin_by_number(pid: Pid, accepted: Moment) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.number(), 0) };
    let fd = check(i32::try_from(fd).unwrap_or(-1))?;
    // SAFETY: the descriptor is new and has no other owner.
    let pin = unsafe { OwnedFd::from_raw_fd(fd) };
    match started(&looker::file(&format!("{pid}/stat"))?) {
        Some(start) if start <= accepted => Ok(pin),
        _ => Err(io::Error::other("a later process has its number")),
    }
}

/// The start of a process, from its /proc/PID/stat.
fn started(stat: &[u8]) -> Option<Moment> {
    StatLine::read(stat)?.field(22).map(Moment)
}

/// Returns true if a process has not ended. Its descriptor becomes readable when it ends, before its number is free.
pub(super) fn lives(pin: &OwnedFd) -> bool {
    matches!(poll(&mut [PollFd::new(pin.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO), Ok(0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    pub(crate) fn sleeper() -> Child {
        Command::new("sleep").arg("100").stdout(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_process_younger_than_the_connection_did_not_make_it() {
        let before = Moment(Moment::now().0 - 1);
        let mut child = sleeper();
        let pid = Pid::new(child.id().cast_signed());
        assert!(pin_by_number(pid, Moment::now()).is_ok());
        assert!(pin_by_number(pid, before).is_err());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(started(b"7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"), Some(Moment(4711)));
        assert_eq!(started(b"7 (a) S 1"), None);
    }
}
