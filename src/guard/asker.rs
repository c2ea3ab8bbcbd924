//! Which process of a stopped group asks for the terminal, and what it asks for.
//!
//! A process that touches the terminal from the background stops in the middle of its system call, which it repeats when
//! it is continued. /proc/PID/task/TID/syscall shows that call, to processes of the same user only.

use std::fs;
use std::io;
use std::path::Path;

use nix::libc;

use crate::sys::kill::{TTIN, TTOU};
use crate::sys::tree::{self, Process};
use rexec_sh::protocol::process::Pid;

/// What a stopped process asks of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// To read.
    Input,
    /// To set its modes, or to write where `stty tostop` stops writers too.
    Modes,
    /// Nothing.
    Nothing,
    /// The process runs, or belongs to another user.
    Unknown,
}

/// What a stopped process asks of the terminal, in any of its threads.
fn want(pid: Pid) -> Want {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Want::Unknown };
    let wants: Vec<Want> = threads.flatten().map(|thread| want_of_thread(&thread.path())).collect();
    let sought = [Want::Input, Want::Modes, Want::Unknown];
    sought.into_iter().find(|want| wants.contains(want)).unwrap_or(Want::Nothing)
}

fn want_of_thread(thread: &Path) -> Want {
    let Ok(line) = fs::read_to_string(thread.join("syscall")) else { return Want::Unknown };
    let mut words = line.split_ascii_whitespace();
    let Some(call) = words.next().and_then(|word| word.parse::<i64>().ok()) else { return Want::Unknown };
    let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (first, second) = (number(), number());
    let is_terminal = || {
        let link = fs::read_link(thread.join("fd").join(first.unwrap_or(u64::MAX).to_string())).unwrap_or_default();
        link.starts_with("/dev/pts") || link == Path::new("/dev/tty")
    };
    match call {
        libc::SYS_read | libc::SYS_readv if is_terminal() => Want::Input,
        libc::SYS_ioctl | libc::SYS_write | libc::SYS_writev if is_terminal() => Want::Modes,
        // An interactive shell in the background stops itself with kill(2).
        libc::SYS_kill if second == Some(libc::SIGTTIN.unsigned_abs().into()) => Want::Input,
        _ => Want::Nothing,
    }
}

/// Whether a thread of a process may be waiting in a system call that a key would end. Processes of other users count as
/// waiting.
pub(super) fn may_wait_for_keys(pid: Pid) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let Ok(line) = fs::read_to_string(thread.path().join("syscall")) else { return true };
        let Ok(call) = line.split_ascii_whitespace().next().unwrap_or_default().parse::<i64>() else { return false };
        POLLS.contains(&call) || want_of_thread(&thread.path()) == Want::Input
    })
}

/// The system calls that wait for several descriptors.
const POLLS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
];

/// Whether a process caught the stop at the terminal and then stopped itself, as top(1) does to restore the modes first.
/// It may do so only after it was continued.
pub(super) fn has_stopped_itself(pid: Pid) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let caught = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    let stops = 1 << (libc::SIGTTIN - 1) | 1 << (libc::SIGTTOU - 1);
    caught.unwrap_or(0) & stops != 0 && tree::process(pid).is_some_and(|process| process.is_stopped)
}

/// The member of a stopped group that asks for the terminal. A shell that waits for such a member is stopped with it.
/// `members` are in the order of [`tree::descendants`].
pub(super) fn asker(members: &[Process], wanted: Want) -> Option<&Process> {
    let last = |sought| members.iter().rev().find(|process| want(process.pid) == sought);
    // Otherwise one that is not stopped yet or belongs to another user, and at last the one furthest from the shell.
    last(wanted).or_else(|| last(Want::Unknown)).or(members.last())
}

/// The process that waits in read(2) at the terminal and is not stopped. A process of another user, whose system calls
/// cannot be seen, counts where `hides_keys` says that somebody asks for a password.
pub(super) fn reader(below: &[Process], hides_keys: bool) -> Option<&Process> {
    let last = |reads: fn(&Process) -> bool| below.iter().rev().find(|process| !process.is_stopped && reads(process));
    last(|process| want(process.pid) == Want::Input)
        .or_else(|| last(|process| is_foreign(process.pid)).filter(|_| hides_keys))
}

/// Whether a process that [`reader`] has found goes on reading. It may be stopped by now: for that read, or because it
/// restores the modes after it.
pub(super) fn still_reads(process: &Process, hides_keys: bool) -> bool {
    let may_read = process.is_stopped || hides_keys;
    want(process.pid) == Want::Input || (may_read && is_foreign(process.pid))
}

/// Whether the system calls of a process are hidden from this user.
fn is_foreign(pid: Pid) -> bool {
    let calls = fs::read_to_string(format!("/proc/{pid}/syscall"));
    calls.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether a stopped group waits to read from the terminal; `None` when it does not wait for the terminal at all.
pub(super) fn reads_at_stop(members: &[Process]) -> Option<bool> {
    let stopped = || members.iter().filter(|process| process.is_stopped);
    if let Some(signal) = stopped().find_map(|process| process.stop_signal) {
        return [TTIN, TTOU].contains(&signal).then_some(signal == TTIN);
    }
    let wants = |wanted| stopped().any(|process| want(process.pid) == wanted);
    match () {
        () if wants(Want::Input) || wants(Want::Unknown) => Some(true),
        () if wants(Want::Modes) => Some(false),
        () => None,
    }
}
