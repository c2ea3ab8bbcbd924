//! Tells if this process already runs below a host's guard. If so, the shim becomes the real shell.

use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;

use nix::libc;
use rexec_sh::protocol::mark::{NamedProgram, ProcessStat, is_guard_above};

use rexec_sh::protocol::process::Pid;

use crate::collect;
use crate::sys;

/// The inode of the first pid namespace, on every machine (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
/// The bytes of `/proc/PID/stat` that are read. The start lies before that.
const STAT_BYTES: usize = 1024;
/// The bytes of `/proc/PID/comm` that are read: a thread of the kernel may have the longest name there.
const NAME_BYTES: usize = 64;
/// The most ancestors that are examined.
const ANCESTORS_MAX: usize = 1024;

/// The meaning of `REXEC_INSIDE` in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    /// The variable is unset, or no guard is above. It then counts as unset.
    No,
    /// A guard is above.
    Yes,
    /// A guard may be above but hidden, because this pid namespace is not the first one, as in a sandbox within a run.
    /// The shim then asks the host. If no host can be reached, it becomes the real shell.
    Unseen,
}

/// Judges the variable's value. An empty one costs no system call.
pub(crate) fn judge(value: &[u8]) -> Inside {
    if value.is_empty() {
        return Inside::No;
    }
    if is_guard_above(sys::parent(), stat_of) {
        return Inside::Yes;
    }
    if is_in_first_namespace() { Inside::No } else { Inside::Unseen }
}

/// Returns true if this pid namespace is the first one, or if that does not show.
pub(crate) fn is_in_first_namespace() -> bool {
    sys::status_at(c"/proc/self/ns/pid").map_or(true, |own| own.inode == FIRST_NAMESPACE)
}

/// Reads the needed facts about a process.
pub(crate) fn stat_of(pid: Pid) -> Option<ProcessStat> {
    read_stat(&CString::new(format!("/proc/{pid}/stat")).expect("a number has no NUL"))
}

/// Reads the needed facts about this process. Its number differs if /proc is that of another pid namespace.
pub(crate) fn own_stat() -> Option<ProcessStat> {
    read_stat(c"/proc/self/stat")
}

/// The kind of a process by its name. Its /proc/PID/comm costs a third of its stat, for which the kernel sums up its
/// threads.
pub(crate) fn program_of(pid: Pid) -> NamedProgram {
    let path = CString::new(format!("/proc/{pid}/comm")).expect("a number has no NUL");
    let mut name = [0; NAME_BYTES];
    let read = sys::open(&path, libc::O_RDONLY).and_then(|file| sys::read(file.as_raw_fd(), &mut name));
    NamedProgram::of(read.map_or(&[][..], |bytes| name[..bytes].trim_ascii_end()))
}

fn read_stat(path: &CStr) -> Option<ProcessStat> {
    let file = sys::open(path, libc::O_RDONLY).ok()?;
    let mut text = [0; STAT_BYTES];
    let bytes = sys::read(file.as_raw_fd(), &mut text).ok()?;
    ProcessStat::read(&text[..bytes])
}

/// The visible processes below this one, in no order.
pub(crate) fn below(root: Pid) -> Vec<Pid> {
    processes().filter(|&pid| is_below(pid, |above| above == root)).collect()
}

/// All visible processes.
pub(crate) fn processes() -> impl Iterator<Item = Pid> {
    collect::numbers_in(c"/proc").unwrap_or_default().into_iter().map(Pid::new)
}

/// Returns true if a process above this one is a root.
pub(crate) fn is_below(pid: Pid, is_root: impl Fn(Pid) -> bool) -> bool {
    let parent = |pid: &Pid| stat_of(*pid).map(|stat| stat.parent).filter(|parent| parent.number() > 0);
    std::iter::successors(parent(&pid), parent).take(ANCESTORS_MAX).any(is_root)
}
