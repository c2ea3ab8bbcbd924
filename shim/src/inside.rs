//! Whether this process already runs below a host's guard. If it does, the shim becomes the real shell.

use std::ffi::CString;
use std::os::fd::AsRawFd;

use nix::libc;
use rexec_sh::protocol::mark::{ProcessStat, is_guard_above};

use rexec_sh::protocol::process::Pid;

use crate::sys;

/// The inode of the first pid namespace, on every machine (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
/// The most of a `/proc/PID/stat` that is read, bytes; the session lies before that.
const STAT_BYTES: usize = 1024;

/// What a `REXEC_INSIDE` comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    /// There is none, or no guard is above: it counts as unset.
    No,
    /// A guard is above.
    Yes,
    /// A guard may be above, out of sight: this pid namespace is not the first, as for a sandbox within a run. A host is
    /// asked all the same; only where none can be reached, the real shell is the answer.
    Unseen,
}

/// Judges the variable's value. Without one this costs nothing.
pub(crate) fn judge(value: &[u8]) -> Inside {
    if value.is_empty() {
        return Inside::No;
    }
    if is_guard_above(sys::parent(), stat_of) {
        return Inside::Yes;
    }
    match sys::status_at(c"/proc/self/ns/pid") {
        Ok(own) if own.inode != FIRST_NAMESPACE => Inside::Unseen,
        _ => Inside::No,
    }
}

fn stat_of(pid: Pid) -> Option<ProcessStat> {
    let path = CString::new(format!("/proc/{pid}/stat")).expect("a number has no NUL");
    let file = sys::open(&path, libc::O_RDONLY).ok()?;
    let mut text = [0; STAT_BYTES];
    let bytes = sys::read(file.as_raw_fd(), &mut text).ok()?;
    ProcessStat::read(&text[..bytes])
}
