//! Sending signals: kill(2), killpg(3) and, through a descriptor, pidfd_send_signal(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::libc::{self, c_int};

use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

pub const CONT: Signal = named(libc::SIGCONT);
pub const STOP: Signal = named(libc::SIGSTOP);
pub const TSTP: Signal = named(libc::SIGTSTP);
pub const TTIN: Signal = named(libc::SIGTTIN);
pub const TTOU: Signal = named(libc::SIGTTOU);

const fn named(number: c_int) -> Signal {
    Signal::new(number.to_le_bytes()[0])
}

/// Sends a signal to one process.
///
/// # Errors
/// ESRCH or EPERM, as kill(2).
pub fn process(pid: Pid, signal: Signal) -> io::Result<()> {
    // SAFETY: the call takes numbers. Not by way of nix, which has no names for real-time signals.
    super::check(unsafe { libc::kill(pid.number(), signal.number().into()) }).map(drop)
}

/// Sends a signal to every process of a group.
///
/// # Errors
/// ESRCH or EPERM, as killpg(3).
pub fn group(group: ProcessGroup, signal: Signal) -> io::Result<()> {
    // SAFETY: as above.
    super::check(unsafe { libc::killpg(group.number(), signal.number().into()) }).map(drop)
}

/// Returns true if a child of this process is stopped, by a signal and not by a tracer.
#[must_use]
pub fn is_stopped_child(pid: Pid) -> bool {
    // SAFETY: every field is a number, for which zero is a value.
    let mut seen: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel fills the structure, and waits for nothing.
    let asked = unsafe { libc::waitid(libc::P_PID, pid.number().unsigned_abs(), &raw mut seen, flags) };
    // SAFETY: waitid(2) sets this field, to 0 if there is nothing to report.
    asked == 0 && unsafe { seen.si_pid() } == pid.number()
}

/// A descriptor of a process. While it is open, it never refers to a later process with the same number.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Pidfd {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl Pidfd {
    /// Opens the process with this number; `None` if there is none, or no descriptor is left.
    #[must_use]
    pub fn open(pid: Pid) -> Option<Self> {
        // SAFETY: the call takes numbers and returns a new descriptor, closed on exec.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.number(), 0) };
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0)?;
        // SAFETY: the descriptor is new and has no other owner.
        Some(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sends a signal. A process that has ended gets none.
    pub fn send(&self, signal: Signal) {
        let (fd, number) = (self.0.as_raw_fd(), c_int::from(signal.number()));
        // SAFETY: the call takes numbers and a null pointer.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, number, std::ptr::null::<u8>(), 0) };
    }

    /// A copy of the process's descriptor with this number; `None` if this process may not trace that one.
    pub(super) fn descriptor(&self, number: c_int) -> Option<OwnedFd> {
        // SAFETY: the call takes numbers and returns a new descriptor, closed on exec.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, self.0.as_raw_fd(), number, 0) };
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0)?;
        // SAFETY: the descriptor is new and has no other owner.
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn a_stopped_child_is_seen_as_often_as_one_asks_until_it_goes_on() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = Pid::new(child.id().cast_signed());
        let is_stopped_after = |signal: Signal, wanted: bool| {
            process(pid, signal).unwrap();
            while is_stopped_child(pid) != wanted {
                std::thread::yield_now();
            }
        };
        assert!(!is_stopped_child(pid));
        is_stopped_after(STOP, true);
        assert!(is_stopped_child(pid), "the first look has taken nothing away");
        is_stopped_after(CONT, false);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_stopped_child(pid));
    }
}
