//! Reads the events of a guard's children from waitpid(2).
//!
//! This does not use nix: it has no names for real-time signals, and fails after it has reaped a child that died of
//! one.

use std::io;

use nix::libc;

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, Signal};

/// An event of a child of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildEvent {
    /// Nothing new.
    None,
    /// There are no children.
    NoChildren,
    /// A child was stopped by this signal.
    Stopped { pid: Pid, signal: Signal },
    /// A child goes on after a stop.
    Continued { pid: Pid },
    /// A child has ended and is reaped.
    Ended { pid: Pid, exit: Exit },
}

/// Returns the next event without waiting for one.
pub(super) fn next() -> ChildEvent {
    let mut status = 0;
    // SAFETY: the call writes the status, and nothing else.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED) };
    let low_byte = |number: libc::c_int| number.to_le_bytes()[0];
    let ended = |exit| ChildEvent::Ended { pid: Pid::new(pid), exit };
    match pid {
        0 => ChildEvent::None,
        1.. if libc::WIFSTOPPED(status) => {
            ChildEvent::Stopped { pid: Pid::new(pid), signal: Signal::new(low_byte(libc::WSTOPSIG(status))) }
        }
        1.. if libc::WIFCONTINUED(status) => ChildEvent::Continued { pid: Pid::new(pid) },
        1.. if libc::WIFSIGNALED(status) => ended(Exit::Signal(Signal::new(low_byte(libc::WTERMSIG(status))))),
        1.. => ended(Exit::Code(low_byte(libc::WEXITSTATUS(status)))),
        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => next(),
        _ => ChildEvent::NoChildren,
    }
}
