//! Finds the process of a stopped group that asks for the terminal, and its wish.
//!
//! A process that touches the terminal from the background stops in the middle of its system call, and repeats that
//! when it is continued. /proc/PID/task/TID/syscall shows that call, to processes of the same user only.

use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::libc;

use crate::limits;
use crate::sys::kill::{TTIN, TTOU};
use crate::sys::looker::{self, Look};
use crate::sys::process;
use crate::sys::tree::{self, Process};
use rexec_sh::protocol::process::Pid;

/// A stopped process's wish from the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// To read.
    Input,
    /// To set its modes, or to write (where `stty tostop` stops writers too).
    Modes,
    /// To be in the foreground, where an interactive shell begins its job control: it reads nothing yet.
    Foreground,
    Nothing,
    /// The process belongs to another user.
    Unknown,
    /// The process runs. It is about to stop, or goes on.
    Running,
}

/// The wish of a stopped process, from any of its threads.
fn want(pid: Pid) -> Want {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Want::Unknown };
    let wants: Vec<Want> = threads.flatten().map(|thread| want_of_thread(&place(pid, &thread))).collect();
    let sought = [Want::Input, Want::Modes, Want::Foreground, Want::Unknown, Want::Running];
    sought.into_iter().find(|want| wants.contains(want)).unwrap_or(Want::Nothing)
}

/// The highest process number (proc(5), /proc/sys/kernel/pid_max). For kill(2), a group is 0 or negative.
const PID_MAX: u64 = 1 << 22;

/// The directory of a thread, below /proc.
fn place(pid: Pid, thread: &DirEntry) -> String {
    format!("{pid}/task/{}", thread.file_name().display())
}

/// The present system call of a thread, and its arguments, as the kernel writes them.
fn system_call(place: &str) -> io::Result<String> {
    looker::file(&format!("{place}/syscall")).map(|line| String::from_utf8_lossy(&line).into_owned())
}

fn want_of_thread(thread: &str) -> Want {
    let line = match system_call(thread) {
        Ok(line) => line,
        // It executes a program.
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Want::Nothing,
        Err(_) => return Want::Unknown,
    };
    let mut words = line.split_ascii_whitespace();
    let Some(call) = words.next().and_then(|word| word.parse::<i64>().ok()) else { return Want::Running };
    let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (first, second, third) = (number(), number(), number());
    let is_terminal = || {
        let link = looker::link(&format!("{thread}/fd/{}", first.unwrap_or(u64::MAX))).unwrap_or_default();
        link.starts_with(b"/dev/pts/") || link == b"/dev/tty"
    };
    match call {
        // A read of no bytes only asks if the caller is in the foreground, as zsh(1) does.
        libc::SYS_read if third == Some(0) && is_terminal() => Want::Foreground,
        libc::SYS_read | libc::SYS_readv if is_terminal() => Want::Input,
        libc::SYS_ioctl | libc::SYS_write | libc::SYS_writev if is_terminal() => Want::Modes,
        libc::SYS_kill if second == Some(libc::SIGTTIN.unsigned_abs().into()) => match first {
            // A reader has caught the signal, as readline(3) does to restore the modes, and now stops itself.
            Some(1..=PID_MAX) => Want::Input,
            // An interactive shell in the background stops its whole group, itself included.
            _ => Want::Foreground,
        },
        _ => Want::Nothing,
    }
}

/// Returns true if a thread of a process may be waiting in a system call that a key would end. Processes of other users
/// count as waiting.
pub(super) fn may_wait_for_keys(pid: Pid) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let place = place(pid, &thread);
        let line = match system_call(&place) {
            Ok(line) => line,
            Err(error) => return error.kind() != io::ErrorKind::TimedOut,
        };
        let Ok(call) = line.split_ascii_whitespace().next().unwrap_or_default().parse::<i64>() else { return false };
        POLLS.contains(&call) || matches!(want_of_thread(&place), Want::Input | Want::Foreground)
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

/// Returns true if a process caught the stop at the terminal and then stopped itself, as top(1) does to restore the
/// modes first. It may do so only after it was continued.
pub(super) fn has_stopped_itself(pid: Pid) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let caught = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    let stops = 1 << (libc::SIGTTIN - 1) | 1 << (libc::SIGTTOU - 1);
    caught.unwrap_or(0) & stops != 0 && tree::process(pid).is_some_and(|process| process.is_stopped)
}

/// The member of a stopped group that asks for the terminal, and its wish. A shell that waits for such a member is
/// stopped with it. SIGTTIN has stopped the group if `reads`. `members` are in the order of [`tree::descendants`].
pub(super) fn asker(members: &[Process], reads: bool) -> Option<(&Process, Want)> {
    let wanted = if reads { Want::Input } else { Want::Modes };
    // The member that asks stops a moment after the others, and its call can be seen only then.
    process::comes_true_within(limits::GROUP_STOP_WAIT, || {
        members.iter().all(|process| want(process.pid) != Want::Running)
    });
    let last = |sought| members.iter().rev().find(|process| want(process.pid) == sought);
    let in_foreground = || last(Want::Foreground).filter(|_| reads).map(|process| (process, Want::Foreground));
    // Otherwise a member that belongs to another user or is not stopped yet, and at last the one furthest from the
    // shell.
    let unseen =
        || last(Want::Unknown).or_else(|| last(Want::Running)).or(members.last()).map(|process| (process, wanted));
    last(wanted).map(|process| (process, wanted)).or_else(in_foreground).or_else(unseen)
}

/// The process that waits in read(2) at the terminal and is not stopped. A process of another user, whose system calls
/// cannot be seen, counts if `hides_keys` shows that somebody asks for a password.
pub(super) fn reader(below: &[Process], hides_keys: bool) -> Option<&Process> {
    let last = |reads: fn(&Process) -> bool| below.iter().rev().find(|process| !process.is_stopped && reads(process));
    last(|process| want(process.pid) == Want::Input)
        .or_else(|| last(|process| is_foreign(process.pid)).filter(|_| hides_keys))
}

/// Returns true if a process from [`reader`] still reads. It may be stopped by now: for that read, or because it
/// restores the modes after it.
pub(super) fn still_reads(process: &Process, hides_keys: bool) -> bool {
    let may_read = process.is_stopped || hides_keys;
    want(process.pid) == Want::Input || (may_read && is_foreign(process.pid))
}

/// The process that may wait for keys of a foreign terminal: it is in another session than `session` and has opened the
/// terminal by its name.
pub(super) fn reader_elsewhere(terminal: &Path, session: Pid) -> Option<Process> {
    let others = tree::all().filter(|process| process.session != session);
    others.into_iter().find(|process| reads_elsewhere(process.pid, terminal))
}

/// Returns true if a process from [`reader_elsewhere`] may still wait for keys.
pub(super) fn reads_elsewhere(pid: Pid, terminal: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let links: Vec<String> = files.flatten().map(|file| format!("{pid}/fd/{}", file.file_name().display())).collect();
    let looks: Vec<Look<'_>> = links.iter().map(|link| Look::Link(link)).collect();
    let Ok(texts) = looker::all(&looks) else { return false };
    let is_named = |text: &io::Result<Vec<u8>>| text.as_ref().is_ok_and(|text| text == terminal.as_os_str().as_bytes());
    let named = links.iter().zip(&texts).filter(|(_, text)| is_named(text));
    // A container has terminals of the same names. Only files of that name are examined: others may be on a dead
    // server.
    let own = fs::metadata(terminal).ok().map(|data| (data.dev(), data.ino()));
    let is_it = |link: &str| looker::identity(link).is_ok_and(|file| Some((file.device, file.inode)) == own);
    named.into_iter().any(|(link, _)| is_it(link)) && may_wait_for_keys(pid)
}

/// Returns true if the system calls of a process are hidden from this user.
fn is_foreign(pid: Pid) -> bool {
    let call = system_call(&pid.to_string());
    call.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns true if a stopped group waits to read from the terminal; `None` if it does not wait for the terminal at all.
pub(super) fn reads_at_stop(members: &[Process]) -> Option<bool> {
    let stopped = || members.iter().filter(|process| process.is_stopped);
    if let Some(signal) = stopped().find_map(|process| process.stop_signal) {
        return [TTIN, TTOU].contains(&signal).then_some(signal == TTIN);
    }
    let wants = |wanted| stopped().any(|process| want(process.pid) == wanted);
    match () {
        () if [Want::Input, Want::Foreground, Want::Unknown, Want::Running].into_iter().any(wants) => Some(true),
        () if wants(Want::Modes) => Some(false),
        () => None,
    }
}
