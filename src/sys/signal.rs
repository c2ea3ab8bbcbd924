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
    /// End (INT, TERM, QUIT); asked twice: at once.
    End,
    /// End, because the terminal is gone (HUP).
    HangUp,
    /// The console has another size (WINCH).
    Resize,
    /// Make sure that the socket is there (USR1).
    CheckSocket,
}

/// The signals that have arrived.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    survives_hangup: bool,
}

const BLOCKED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH, Signal::SIGUSR1];

/// What ends the host at once: faults of its own.
const FAULTS: [Signal; 5] = [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE, Signal::SIGABRT];

/// The signals that mean nothing to the host, and are ignored: with the others, an alarm or a soft limit of processor
/// time would end every agent's commands and leave the terminal as it is. Children are reaped by the kernel: the end of
/// a guard is the end of its control socket. The host refuses to be stopped from its terminal, because a stopped host
/// stops every agent.
fn meaningless() -> impl Iterator<Item = libc::c_int> {
    (1..=libc::SIGRTMAX())
        .filter(|&number| !BLOCKED.into_iter().chain(FAULTS).any(|signal| signal as libc::c_int == number))
}

impl Signals {
    /// Takes the host's signals over. Those that end a process and that were ignored before stay so, as after nohup(1).
    ///
    /// # Errors
    /// EMFILE or ENFILE, as signalfd(2).
    pub fn take() -> io::Result<Self> {
        for signal in meaningless() {
            // SAFETY: a disposition without a handler; what may not be set is refused, which does no harm.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let ignored = BLOCKED.into_iter().filter(|&signal| is_ignored(signal)).collect::<Vec<_>>();
        let mask = SigSet::from_iter(BLOCKED.into_iter().filter(|signal| !ignored.contains(signal)));
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).map_err(super::io)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&mask, flags).map_err(super::io)?;
        Ok(Self { descriptor, survives_hangup: ignored.contains(&Signal::SIGHUP) })
    }

    /// Whether the host was started to live on without its terminal.
    #[must_use]
    pub fn survives_hangup(&self) -> bool {
        self.survives_hangup
    }

    /// The next one that has arrived.
    pub fn take_next(&mut self) -> Option<Asked> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        Some(match Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()? {
            Signal::SIGWINCH => Asked::Resize,
            Signal::SIGUSR1 => Asked::CheckSocket,
            Signal::SIGHUP => Asked::HangUp,
            _ => Asked::End,
        })
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no action is set, and the one that is there is written where there is room for it.
    let is_read = unsafe { libc::sigaction(signal as libc::c_int, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: zeros are a valid action, whether it was written or not.
    is_read && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
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
