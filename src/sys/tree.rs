//! Process trees, read from /proc.
//!
//! A guard is a child subreaper, so its descendants are exactly the processes of its command, including those in sessions
//! of their own, those forked twice, and those that cleaned their environment. The number of a direct child cannot be
//! reused while its parent does not reap. A deeper process is reaped by its own parent, so its number could be reused
//! between a look and a signal. Only a descriptor for each process would prevent that.

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use super::looker;
use super::program::Program;
use super::stat::StatLine;
use super::{proc_file, process};
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// A process as /proc/PID/stat shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    pub parent: Pid,
    pub group: ProcessGroup,
    /// The leader of its session.
    pub session: Pid,
    /// True if it has ended but is not reaped.
    pub is_zombie: bool,
    /// True if it is stopped.
    pub is_stopped: bool,
    /// True if it runs on a processor, or waits for one.
    pub is_running: bool,
    /// True if it sleeps in the kernel and no signal wakes it, for example waiting for a device or for its vfork(2).
    pub is_uninterruptible: bool,
    /// The signal that stopped it. `None` before Linux 5.17, and once its parent has waited for the stop.
    pub stop_signal: Option<Signal>,
    /// Its start, in clock ticks since boot; 0 if it must not be read now. Number and start together identify a process
    /// for good.
    pub start: u64,
    pub program: Program,
}

/// Reads one process; `None` if it is gone. One whose `stat` must not be read now has no start.
#[must_use]
pub fn process(pid: Pid) -> Option<Process> {
    let line = match looker::file(&format!("{pid}/stat")) {
        Err(error) if error.kind() == ErrorKind::TimedOut => return from_status(pid),
        line => line.ok()?,
    };
    let stat = StatLine::read(&line)?;
    let state = stat.state()?;
    Some(Process {
        pid,
        parent: Pid::new(stat.field(4)?),
        group: ProcessGroup::new(stat.field(5)?),
        session: Pid::new(stat.field(6)?),
        is_zombie: state == b'Z' || state == b'X',
        is_stopped: state == b'T',
        is_running: state == b'R',
        is_uninterruptible: state == b'D',
        stop_signal: stat.field(52).filter(|&number| number != 0).map(Signal::new),
        start: stat.field(22)?,
        program: Program::new(stat.name),
    })
}

/// Reads the parts of a process that anybody may see at any time.
fn from_status(pid: Pid) -> Option<Process> {
    let status = proc_file::read(&format!("/proc/{pid}/status")).ok()?;
    let value = |name: &[u8]| {
        let line = proc_file::lines(&status).find_map(|line| line.strip_prefix(name)?.strip_prefix(b":\t"))?;
        std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()
    };
    let process = |name: &[u8]| number(value(name)?);
    let state = value(b"State")?;
    Some(Process {
        pid,
        parent: process(b"PPid")?,
        group: ProcessGroup::new(value(b"NSpgid")?.parse().ok()?),
        session: process(b"NSsid")?,
        is_zombie: state == "Z" || state == "X",
        is_stopped: state == "T",
        is_running: state == "R",
        is_uninterruptible: state == "D",
        stop_signal: None,
        start: 0,
        program: Program::new(proc_file::read(&format!("/proc/{pid}/comm")).ok()?.trim_ascii_end()),
    })
}

/// Waits for the end of a process, for at most `time`. Returns true if it has ended.
pub(crate) fn ends_within(pid: Pid, time: Duration) -> bool {
    process::comes_true_within(time, || process(pid).is_none_or(|process| process.is_zombie))
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

/// Returns true if the first child that a process made has ended and is not reaped. Not seen without
/// `CONFIG_PROC_CHILDREN`.
pub fn has_first_child_ended(pid: Pid) -> bool {
    let list = first_bytes(Path::new(&format!("/proc/{pid}/task/{pid}/children")));
    let first = list.split(|&byte| byte == b' ').next().and_then(|digits| number(std::str::from_utf8(digits).ok()?));
    first.and_then(process).is_some_and(|child| child.is_zombie)
}

/// Returns true if one of the processes below a process, nearest first, has a wanted name. It reads no file that may
/// wait (see [`looker`]), and at most `reads_max` files. Without `CONFIG_PROC_CHILDREN` none is found.
pub fn has_below(root: Pid, reads_max: usize, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
    let (mut above, mut reads) = (VecDeque::from([root]), 0..reads_max);
    while let Some(pid) = above.pop_front() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            if reads.next().is_none() {
                return false;
            }
            let list = first_bytes(&task.path().join("children"));
            for child in list.split(|&byte| byte == b' ').filter_map(|digits| number(std::str::from_utf8(digits).ok()?))
            {
                if reads.next().is_none() {
                    return false;
                }
                if is_wanted(first_bytes(Path::new(&format!("/proc/{child}/comm"))).trim_ascii_end()) {
                    return true;
                }
                above.push_back(child);
            }
        }
    }
    false
}

/// The beginning of a file.
fn first_bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = fs::File::open(path).and_then(|file| file.take(4 << 10).read_to_end(&mut bytes));
    bytes
}

fn number(digits: &str) -> Option<Pid> {
    digits.parse().ok().map(Pid::new)
}

fn children_by_parent(parent: Pid) -> Vec<Pid> {
    all().filter(|process| process.parent == parent).map(|process| process.pid).collect()
}

/// Every process that /proc shows, zombies included.
pub(crate) fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process(number(entry.file_name().to_str()?)?))
}

/// Every living descendant of a process, nearest first.
pub(crate) fn descendants(root: Pid) -> Vec<Process> {
    walk(root).collect()
}

/// The living descendants of a process, nearest first, read lazily.
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
