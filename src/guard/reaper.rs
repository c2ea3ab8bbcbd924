//! What waitpid(2) tells of a guard's children.
//!
//! Signals are numbers here: nix has no names for real-time signals, and fails after it has reaped whom one has ended.

use std::io;

use nix::libc;

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, Signal};

/// What has happened to the children of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing more for now.
    None,
    /// There are no children.
    NoChildren,
    /// This one was stopped by this signal.
    Stopped { pid: Pid, signal: Signal },
    /// This one has ended and is reaped.
    Ended { pid: Pid, exit: Exit },
}

/// The next thing that has happened; it does not wait.
pub(super) fn next() -> News {
    let mut status = 0;
    // SAFETY: the call writes the status, and nothing else.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
    let low_byte = |number: libc::c_int| number.to_le_bytes()[0];
    let ended = |exit| News::Ended { pid: Pid::new(pid), exit };
    match pid {
        0 => News::None,
        1.. if libc::WIFSTOPPED(status) => {
            News::Stopped { pid: Pid::new(pid), signal: Signal::new(low_byte(libc::WSTOPSIG(status))) }
        }
        1.. if libc::WIFSIGNALED(status) => ended(Exit::Signal(Signal::new(low_byte(libc::WTERMSIG(status))))),
        1.. => ended(Exit::Code(low_byte(libc::WEXITSTATUS(status)))),
        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => next(),
        _ => News::NoChildren,
    }
}
