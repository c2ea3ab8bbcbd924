//! What waitpid(2) tells of a guard's children.
//!
//! Signals are numbers here: nix has no names for real-time signals, and fails after it has reaped whom one has ended.

use std::io;

use nix::libc;

use crate::core::entry::Exit;

/// What has happened to the children of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing more for now.
    None,
    /// There are no children.
    NoChildren,
    /// This one was stopped by this signal.
    Stopped { pid: i32, signal: i32 },
    /// This one has ended and is reaped.
    Ended { pid: i32, exit: Exit },
}

/// The next thing that has happened; it does not wait.
pub(super) fn next() -> News {
    let mut status = 0;
    // SAFETY: the call writes the status, and nothing else.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
    match pid {
        0 => News::None,
        1.. if libc::WIFSTOPPED(status) => News::Stopped { pid, signal: libc::WSTOPSIG(status) },
        1.. if libc::WIFSIGNALED(status) => {
            News::Ended { pid, exit: Exit::Signal(libc::WTERMSIG(status).to_le_bytes()[0]) }
        }
        1.. => News::Ended { pid, exit: Exit::Code(libc::WEXITSTATUS(status).to_le_bytes()[0]) },
        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => next(),
        _ => News::NoChildren,
    }
}
