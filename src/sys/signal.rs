//! The signals that the host itself receives, as events of its loop.
//!
//! They are blocked and read from a signalfd(2), so no code of the host runs in a signal handler. Guards and the recorder
//! set their own dispositions and mask after the fork; commands get those of their callers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// A signal to the host, by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostSignal {
    /// End (SIGINT, SIGTERM, SIGQUIT). The second one ends the host at once.
    End,
    /// End, because the terminal is gone (SIGHUP).
    HangUp,
    /// The console's window has another size (SIGWINCH).
    Resize,
    /// Make sure that the socket exists (SIGUSR1).
    CheckSocket,
    /// This process was stopped and goes on (SIGCONT). Its terminal may have been another program's meanwhile.
    Continued,
}

/// The number of a signal by its name, with or without `SIG`, or by its number. `None` if there is no such signal.
#[must_use]
pub fn number(word: &str) -> Option<u8> {
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Ok(number) = name.parse() {
        return (1..=libc::SIGRTMAX()).contains(&i32::from(number)).then_some(number);
    }
    let signal: Signal = format!("SIG{name}").parse().ok()?;
    u8::try_from(signal as libc::c_int).ok()
}

#[derive(Debug)]
pub struct HostSignals {
    descriptor: SignalFd,
    survives_hangup: bool,
}

const BLOCKED: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGWINCH,
    Signal::SIGUSR1,
    Signal::SIGCONT,
];

/// Signals for faults of the host itself. They keep their default effect.
const FAULTS: [Signal; 5] = [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE, Signal::SIGABRT];

/// All other signals, which the host ignores. By default, an alarm or a soft limit of processor time would end every
/// agent's commands and leave the terminal raw. With SIGCHLD ignored the kernel reaps children: a guard's control socket
/// shows its end. With SIGTSTP ignored the terminal cannot stop the host, which would stop every agent.
fn meaningless() -> impl Iterator<Item = libc::c_int> {
    (1..=libc::SIGRTMAX())
        .filter(|&number| !BLOCKED.into_iter().chain(FAULTS).any(|signal| signal as libc::c_int == number))
}

impl HostSignals {
    /// Begins to receive signals. Signals that this process ignored before stay ignored, as after nohup(1).
    ///
    /// # Errors
    /// EMFILE or ENFILE, as signalfd(2).
    pub fn take() -> io::Result<Self> {
        Self::take_all_but(&[])
    }

    /// As [`HostSignals::take`], for a program that a person may stop with ^Z.
    ///
    /// # Errors
    /// As [`HostSignals::take`].
    pub fn take_stoppable() -> io::Result<Self> {
        Self::take_all_but(&[libc::SIGTSTP])
    }

    fn take_all_but(kept: &[libc::c_int]) -> io::Result<Self> {
        for signal in meaningless().filter(|signal| !kept.contains(signal)) {
            // SAFETY: a disposition without a handler. For some signals the call is refused, which does no harm.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let ignored = BLOCKED.into_iter().filter(|&signal| is_ignored(signal)).collect::<Vec<_>>();
        let mask = SigSet::from_iter(BLOCKED.into_iter().filter(|signal| !ignored.contains(signal)));
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).map_err(super::io)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&mask, flags).map_err(super::io)?;
        Ok(Self { descriptor, survives_hangup: ignored.contains(&Signal::SIGHUP) })
    }

    /// Returns true if SIGHUP was ignored from the start, so that the host lives on without its terminal.
    #[must_use]
    pub fn survives_hangup(&self) -> bool {
        self.survives_hangup
    }

    /// Waits for a signal, for at most `most`.
    pub fn wait(&mut self, most: Duration) -> Option<HostSignal> {
        let mut polled = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        // A pause below a millisecond still waits.
        let most = if most.is_zero() { most } else { most.max(Duration::from_millis(1)) };
        let timeout = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut polled, timeout);
        self.take_next()
    }

    /// The next signal that has arrived.
    pub fn take_next(&mut self) -> Option<HostSignal> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        Some(match Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()? {
            Signal::SIGWINCH => HostSignal::Resize,
            Signal::SIGUSR1 => HostSignal::CheckSocket,
            Signal::SIGHUP => HostSignal::HangUp,
            Signal::SIGCONT => HostSignal::Continued,
            _ => HostSignal::End,
        })
    }
}

impl AsRawFd for HostSignals {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl AsFd for HostSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call sets no action; it writes the current one into `action`.
    let is_read = unsafe { libc::sigaction(signal as libc::c_int, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: zeros are a valid action, whether the call wrote one or not.
    is_read && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Ignores the signals that a terminal sends, in a helper process of the host. The host receives them too, and closes
/// the helper's socket when it ends.
pub fn leave_to_host() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM, libc::SIGTTOU] {
        // SAFETY: a disposition without a handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn signals_have_names_and_numbers() {
        for word in ["KILL", "SIGKILL", "kill", "9"] {
            assert_eq!(number(word), Some(9), "{word}");
        }
        for word in ["", "SIG", "0", "65", "-9", "256", "KILLER", "9x"] {
            assert_eq!(number(word), None, "{word}");
        }
    }
}
