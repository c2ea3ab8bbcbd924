//! The tree below a guard, read from /proc.
//!
//! A guard is a child subreaper, so its descendants are exactly the processes of its command: also those that made
//! sessions of their own, were forked twice or cleaned their environment. While a guard does not reap, none of its
//! direct children's numbers can be given to another process; a deeper one that dies is reaped by its own parent, and
//! its number could in theory be reused between the look and the signal, which no interface without a descriptor for
//! each process prevents.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;

use super::kill::{TTIN, TTOU};
use super::program::Program;
use super::stat::Stat;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// A process as /proc/PID/stat shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its parent's number.
    pub parent: Pid,
    /// Its process group.
    pub group: ProcessGroup,
    /// Its session.
    pub session: Pid,
    /// Whether it has ended and waits to be reaped.
    pub is_zombie: bool,
    /// Whether it is stopped.
    pub is_stopped: bool,
    /// The signal that stopped it, where the kernel tells (Linux 5.17 and newer); `None` also once the parent has waited
    /// for the stop.
    pub stop_signal: Option<Signal>,
    /// When it started, in clock ticks since boot: with the number it names a process for ever.
    pub start: u64,
    /// Its program's name.
    pub program: Program,
}

/// Reads one process; `None` when it is gone.
#[must_use]
pub fn process(pid: Pid) -> Option<Process> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = Stat::read(&line)?;
    let state = stat.state()?;
    Some(Process {
        pid,
        parent: Pid::new(stat.field(4)?),
        group: ProcessGroup::new(stat.field(5)?),
        session: Pid::new(stat.field(6)?),
        is_zombie: state == b'Z' || state == b'X',
        is_stopped: state == b'T',
        stop_signal: stat.field(52).filter(|&number| number != 0).map(Signal::new),
        start: stat.field(22)?,
        program: Program::new(stat.name),
    })
}

/// Whether a process has ended after this time at the latest.
#[expect(clippy::disallowed_methods, reason = "only for a process that was hung up")]
pub(crate) fn ends_within(pid: Pid, time: Duration) -> bool {
    const STEP: Duration = Duration::from_millis(1);
    let from = Instant::now();
    while process(pid).is_some_and(|process| !process.is_zombie) {
        if from.elapsed() >= time {
            return false;
        }
        std::thread::sleep(STEP);
    }
    true
}

/// The direct children of a process, zombies included.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().map(|task| fs::read_to_string(task.path().join("children")));
    let mut children = Vec::new();
    for list in lists {
        match list {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(number)),
            // A kernel without CONFIG_PROC_CHILDREN has no such file.
            Err(_) => return children_by_parent(pid),
        }
    }
    children
}

fn number(digits: &str) -> Option<Pid> {
    digits.parse().ok().map(Pid::new)
}

fn children_by_parent(parent: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?));
    pids.filter(|pid| {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        line.and_then(|ppid| number(ppid.trim())) == Some(parent)
    })
    .collect()
}

/// Every living descendant of a process, nearest first.
pub(crate) fn descendants(root: Pid) -> Vec<Process> {
    walk(root).collect()
}

/// The living descendants of a process, nearest first, read as they are asked for.
pub fn walk(root: Pid) -> impl Iterator<Item = Process> {
    let mut pids = VecDeque::from(children(root));
    std::iter::from_fn(move || {
        loop {
            let pid = pids.pop_front()?;
            pids.extend(children(pid));
            if let Some(process) = process(pid).filter(|process| !process.is_zombie) {
                return Some(process);
            }
        }
    })
}

/// What a stopped process wants of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Input,
    /// To set its modes, or to write where that is stopped too.
    Modes,
    Nothing,
    /// It belongs to somebody else, or runs.
    Unknown,
}

/// What a stopped process was about to do: it stops in the middle of the system call, which it makes again later.
pub(crate) fn want(pid: Pid) -> Want {
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
        // An interactive shell in the background stops itself.
        libc::SYS_kill if second == Some(libc::SIGTTIN.unsigned_abs().into()) => Want::Input,
        _ => Want::Nothing,
    }
}

/// Whether a thread of a process waits in a system call that a key could end. One that does not tell counts as waiting.
pub(crate) fn may_wait_for_keys(pid: Pid) -> bool {
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

/// Whether a process caught the stop at the terminal and then stopped itself, as top(1) does to restore the modes
/// first. That can come after it was continued for the stop.
pub(crate) fn has_stopped_itself(pid: Pid) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let caught = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    let terminal = 1 << (libc::SIGTTIN - 1) | 1 << (libc::SIGTTOU - 1);
    caught.unwrap_or(0) & terminal != 0 && process(pid).is_some_and(|process| process.is_stopped)
}

/// The member of a stopped group for whose sake it was stopped: the shell that waits for a program is stopped with it.
pub(crate) fn asker(members: &[Process], wanted: Want) -> Option<&Process> {
    let last = |sought| members.iter().rev().find(|process| want(process.pid) == sought);
    // A program that has not come to its stop yet, or is another user's; at last the one furthest from the shell.
    last(wanted).or_else(|| last(Want::Unknown)).or(members.last())
}

/// Whether a stopped group waits to read from the terminal; `None` when it does not wait for the terminal at all.
pub(crate) fn reads_at_stop(members: &[Process]) -> Option<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn a_process_and_its_children_are_seen() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let (me, pid) = (super::super::process::pid(), Pid::new(child.id().cast_signed()));
        assert!(children(me).contains(&pid));
        assert!(children_by_parent(me).contains(&pid));
        let seen = descendants(me).into_iter().find(|process| process.pid == pid).unwrap();
        let same = process(me).unwrap();
        assert_eq!((seen.group, seen.session, seen.is_stopped), (same.group, same.session, false));
        assert!(!ends_within(pid, Duration::from_millis(2)));
        child.kill().unwrap();
        assert!(ends_within(pid, Duration::from_secs(10)), "a zombie has ended");
        child.wait().unwrap();
        assert!(process(pid).is_none() && ends_within(pid, Duration::ZERO));
    }
}
