//! Processes of other pid namespaces, found from outside.
//!
//! Invariant: only processes of this user are found, and only with the right number, namespace and start, and with a
//! descriptor of the file that is asked for.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::process;
use super::tree::{self, Process};
use rexec_sh::protocol::process::Pid;

/// A process as it names itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InnerProcess {
    /// The inode of its pid namespace.
    pub namespace: u64,
    /// Its number there.
    pub pid: i32,
    /// Its start, in clock ticks since boot; 0 if it is not known.
    pub start: u64,
}

/// Where a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is this one here.
    Here(Process),
    /// There is no such process.
    Gone,
    /// It cannot be told.
    Unknown,
}

/// Finds a process that has this file open (device and inode).
#[must_use]
pub fn find(inner: &InnerProcess, open: (u64, u64)) -> Whereabouts {
    if inner.namespace == 0 || inner.pid <= 0 {
        return Whereabouts::Unknown;
    }
    let Ok(entries) = fs::read_dir("/proc") else { return Whereabouts::Unknown };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<i32> = numbers.collect();
    // It is mostly looked for when it has just begun.
    pids.sort_unstable_by(|one, other| other.cmp(one));
    let mut answer = Whereabouts::Gone;
    for pid in pids.into_iter().map(Pid::new) {
        if own_number(pid) != Some(inner.pid) {
            continue;
        }
        match judge(pid, inner, open) {
            Some(Some(process)) => return Whereabouts::Here(process),
            Some(None) => {}
            None => answer = Whereabouts::Unknown,
        }
    }
    answer
}

/// Whether this is the process. `None` if it cannot be told.
fn judge(pid: Pid, inner: &InnerProcess, open: (u64, u64)) -> Option<Option<Process>> {
    let Some(found) = tree::process(pid).filter(|found| !found.is_zombie) else { return Some(None) };
    if inner.start != 0 && found.start != inner.start {
        return Some(None);
    }
    let owner = fs::metadata(format!("/proc/{pid}")).ok().map(|data| data.uid());
    if owner != Some(process::uid()) {
        return Some(None);
    }
    let namespace = fs::metadata(format!("/proc/{pid}/ns/pid")).ok()?.ino();
    Some((namespace == inner.namespace && has_open(pid, open)?).then_some(found))
}

/// The number of a process in its own namespace: the last of `NSpid` in proc_pid_status(5).
fn own_number(pid: Pid) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

fn has_open(pid: Pid, open: (u64, u64)) -> Option<bool> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let files = entries.flatten().filter_map(|entry| fs::metadata(entry.path()).ok());
    Some(files.into_iter().any(|data| (data.dev(), data.ino()) == open))
}

/// Whether this process, or one above it, is one of these. Of the latter, only those count that have this file open.
#[must_use]
pub fn is_one_above(pid: Pid, inners: &[InnerProcess], open: (u64, u64)) -> bool {
    is_below(pid, |above| {
        let Some(process) = tree::process(above) else { return false };
        let alike = inners.iter().filter(|inner| inner.start == process.start);
        alike
            .into_iter()
            .any(|inner| own_number(above) == Some(inner.pid) && judge(above, inner, open).flatten().is_some())
    })
}

/// The processes below this one that are this user's. Empty if it has ended meanwhile.
#[must_use]
pub fn all_below(root: &Process) -> Vec<Process> {
    let owner = |pid: Pid| fs::metadata(format!("/proc/{pid}")).ok().map(|data| data.uid());
    let found = tree::walk(root.pid).filter(|process| owner(process.pid) == Some(process::uid())).collect();
    // Its number may have come to belong to another process before its children were read.
    if tree::process(root.pid).is_some_and(|now| now.start == root.start) { found } else { Vec::new() }
}

/// The same without those that execute the same file: helpers of its own.
#[must_use]
pub fn below(root: &Process) -> Vec<Process> {
    let program = |pid: Pid| {
        let data = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        Some((data.dev(), data.ino()))
    };
    let own = program(root.pid);
    let mut found = all_below(root);
    found.retain(|process| own.is_none() || program(process.pid) != own);
    found
}

/// Whether one of these processes is this one or above it.
#[must_use]
pub fn is_below(pid: Pid, above: impl Fn(Pid) -> bool) -> bool {
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|pid| pid.number() > 1) {
        if above(pid) {
            return true;
        }
        next = tree::process(pid).map(|process| process.parent);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn a_process_is_found_by_what_only_it_has() {
        let held = std::env::current_exe().unwrap();
        let file = fs::File::open(&held).unwrap();
        let mut child = std::process::Command::new("sleep").arg("100").stdin(file).spawn().unwrap();
        let data = fs::metadata(&held).unwrap();
        let open = (data.dev(), data.ino());
        let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        let pid = Pid::new(child.id().cast_signed());
        let start = tree::process(pid).unwrap().start;
        let inner = InnerProcess { namespace, pid: pid.number(), start };
        assert!(matches!(find(&inner, open), Whereabouts::Here(process) if process.pid == pid));
        assert!(matches!(find(&InnerProcess { start: 0, ..inner }, open), Whereabouts::Here(_)));
        assert_eq!(find(&InnerProcess { start: start + 1, ..inner }, open), Whereabouts::Gone);
        assert_eq!(find(&InnerProcess { namespace: namespace + 1, ..inner }, open), Whereabouts::Gone);
        assert_eq!(find(&inner, (open.0, open.1 + 1)), Whereabouts::Gone);
        assert_eq!(find(&InnerProcess { namespace: 0, ..inner }, open), Whereabouts::Unknown);
        assert!(is_below(pid, |above| above == process::pid()) && !is_below(pid, |_| false));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(find(&inner, open), Whereabouts::Gone);
    }
}
