//! The host's own signals, as events of its loop.
//!
//! Blocked and read from a signalfd(2), so nothing of the host runs inside a handler. Guards and the recorder set their
//! own dispositions and mask explicitly after the fork; commands get their caller's.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What a signal asks of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// End (INT, TERM, HUP, QUIT); asked twice: at once.
    End,
    /// The console has another size (WINCH).
    Resize,
    /// Make sure that the socket is there (USR1).
    CheckSocket,
}

/// The signals that have arrived.
#[derive(Debug)]
pub struct Signals(SignalFd);

const BLOCKED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH, Signal::SIGUSR1];

/// Children are reaped by the kernel: the end of a guard is the end of its control socket. The host refuses to be
/// stopped from its terminal, because a stopped host stops every agent.
const IGNORED: [libc::c_int; 6] =
    [libc::SIGPIPE, libc::SIGCHLD, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGXFSZ];

impl Signals {
    /// Takes the host's signals over.
    ///
    /// # Errors
    /// EMFILE or ENFILE, as signalfd(2).
    pub fn take() -> io::Result<Self> {
        for signal in IGNORED {
            // SAFETY: a disposition without a handler.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let mask = SigSet::from_iter(BLOCKED);
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).map_err(super::io)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        SignalFd::with_flags(&mask, flags).map(Self).map_err(super::io)
    }

    /// The next one that has arrived.
    pub fn take_next(&mut self) -> Option<Asked> {
        let info = self.0.read_signal().ok().flatten()?;
        Some(match Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()? {
            Signal::SIGWINCH => Asked::Resize,
            Signal::SIGUSR1 => Asked::CheckSocket,
            _ => Asked::End,
        })
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// In a process forked from the host that is no guard: the terminal's signals are the host's business, its own end
/// comes from its socket.
pub fn leave_to_host() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
        // SAFETY: a disposition without a handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}
