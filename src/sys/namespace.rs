//! Processes of other pid namespaces, found from outside.
//!
//! Invariants: only processes of this user are found, and only with the right number, namespace and start, and with the
//! wanted file open only for writing, which excludes its reader. No look waits: the target of a link in /proc is the
//! process's own choice, so the link is read first and its target is never asked for news. The memory of a process is
//! not read, because that waits while the process maps or executes a file.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::looker::{self, Look};
use super::process;
use super::program::Program;
use super::tree::{self, Process};
use rexec_sh::protocol::process::Pid;

/// Descriptors of a process that are searched for the file. A shim opens few.
const DESCRIPTORS_MAX: usize = 256;

/// A process by its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InnerProcess {
    /// The inode of its pid namespace.
    pub namespace: u64,
    /// Its number there.
    pub pid: i32,
    /// Its start, in clock ticks since boot; 0 if unknown.
    pub start: u64,
}

/// The place of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is this process of the own namespace.
    Here(Process),
    Gone,
    /// It is not in this process's own namespace. A [`Census`] finds it.
    Elsewhere,
}

/// Finds a process in this process's own pid namespace, where its own number is valid. It must have this file (device
/// and inode) open for writing only.
#[must_use]
pub fn find_here(inner: &InnerProcess, open: (u64, u64)) -> Whereabouts {
    if inner.pid <= 0 {
        return Whereabouts::Gone;
    }
    // A process that sees no /proc cannot name its namespace.
    let may_be_here = inner.namespace == 0 || own_namespace() == Some(inner.namespace);
    match judge(Pid::new(inner.pid), inner, open).filter(|_| may_be_here) {
        Some(process) => Whereabouts::Here(process),
        None if inner.namespace != 0 && may_be_here => Whereabouts::Gone,
        None => Whereabouts::Elsewhere,
    }
}

/// The processes of other pid namespaces, by their numbers there. It is taken in parts, because a look at all processes
/// of a machine may take long.
#[derive(Debug, Default)]
pub struct Census {
    rest: Vec<Pid>,
    /// By its own number and namespace.
    seen: Vec<(i32, u64, Pid)>,
}

impl Census {
    /// Begins with all present processes.
    #[must_use]
    pub fn begin() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let rest = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::new)).collect();
        Self { rest, seen: Vec::new() }
    }

    /// Looks at `most` of them. Returns true if it has seen all.
    pub fn go_on(&mut self, most: usize) -> bool {
        for pid in self.rest.split_off(self.rest.len().saturating_sub(most)) {
            // Most processes are in this one's namespace.
            let inner = inner_number(pid);
            self.seen.extend(inner.and_then(|number| Some((number, namespace_of(pid)?, pid))));
        }
        self.rest.is_empty()
    }

    /// Finds a process that existed at the beginning, and that has this file (device and inode) open for writing only.
    #[must_use]
    pub fn find(&self, inner: &InnerProcess, open: (u64, u64)) -> Option<Process> {
        let is_it = |&&(number, there, _): &&(i32, u64, Pid)| {
            number == inner.pid && (inner.namespace == 0 || there == inner.namespace)
        };
        self.seen.iter().filter(is_it).find_map(|&(_, _, pid)| judge(pid, inner, open))
    }
}

/// Returns the process with this number here if it is the wanted one, which names itself as its own namespace numbers it.
/// It must have this file (device and inode) open for writing only.
#[must_use]
pub fn find_as(pid: Pid, inner: &InnerProcess, open: (u64, u64)) -> Option<Process> {
    (own_number(pid) == Some(inner.pid)).then(|| judge(pid, inner, open)).flatten()
}

fn own_namespace() -> Option<u64> {
    namespace_number(fs::read_link("/proc/self/ns/pid").ok()?.as_os_str().as_encoded_bytes())
}

/// The pid namespace of a process, if this user may see it.
fn namespace_of(pid: Pid) -> Option<u64> {
    namespace_number(&looker::link(&format!("{pid}/ns/pid")).ok()?)
}

fn namespace_number(link: &[u8]) -> Option<u64> {
    std::str::from_utf8(link.strip_prefix(b"pid:[")?.strip_suffix(b"]")?).ok()?.parse().ok()
}

/// This process, if it is the wanted one.
fn judge(pid: Pid, inner: &InnerProcess, open: (u64, u64)) -> Option<Process> {
    let found = tree::process(pid).filter(|found| !found.is_zombie)?;
    let is_it = (inner.start == 0 || found.start == inner.start)
        && fs::metadata(format!("/proc/{pid}")).is_ok_and(|data| data.uid() == process::uid())
        && (inner.namespace == 0 || namespace_of(pid) == Some(inner.namespace))
        && writes_to(pid, open);
    is_it.then_some(found)
}

/// The numbers of a process in this process's namespace, in its own, and in those between them: `NSpid` in
/// proc_pid_status(5).
fn numbers(pid: Pid) -> Vec<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    line.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// The number of a process in its own namespace.
fn own_number(pid: Pid) -> Option<i32> {
    numbers(pid).last().copied()
}

/// The number of a process in its own namespace, if that is not this process's one.
fn inner_number(pid: Pid) -> Option<i32> {
    let numbers = numbers(pid);
    numbers.last().filter(|_| numbers.len() > 1).copied()
}

/// Returns true if a process has this file open for writing only. The mode of a descriptor's link shows how it was
/// opened, and the link's text shows its kind (proc_pid_fd(5)). fdinfo is not read: of an epoll it is as long as its
/// process likes.
fn writes_to(pid: Pid, open: (u64, u64)) -> bool {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let entries = entries.take(DESCRIPTORS_MAX);
    let written =
        entries.filter(|entry| fs::symlink_metadata(entry.path()).is_ok_and(|data| data.mode() & 0o600 == 0o200));
    let mut links: Vec<String> = written.map(|entry| format!("{pid}/fd/{}", entry.file_name().display())).collect();
    let looks: Vec<Look<'_>> = links.iter().map(|link| Look::Link(link)).collect();
    let Ok(texts) = looker::all(&looks) else { return false };
    let mut is_path = texts.into_iter().map(|text| text.is_ok_and(|text| text.starts_with(b"/")));
    links.retain(|_| is_path.next().unwrap_or(false));
    links.iter().any(|link| looker::identity(link).is_ok_and(|file| (file.device, file.inode) == open))
}

/// The path of a process's program, as the kernel names it. The file itself is not touched.
#[must_use]
pub fn program_path(pid: Pid) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(looker::link(&program_link(pid)).ok()?)))
}

/// The names of a process's children, as they have set them (PR_SET_NAME, prctl(2)).
#[must_use]
pub fn names_of_children(pid: Pid) -> Vec<Program> {
    tree::children(pid).into_iter().filter_map(tree::process).map(|child| child.program).collect()
}

/// Returns true if this process, or one above it, is one of these. Of those above, only processes with this file open
/// count.
#[must_use]
pub fn is_one_above(pid: Pid, inners: &[InnerProcess], open: (u64, u64)) -> bool {
    is_below(pid, |above| {
        let Some(process) = tree::process(above) else { return false };
        let mut alike = inners.iter().filter(|inner| inner.start == process.start);
        alike.any(|inner| find_as(above, inner, open).is_some())
    })
}

/// This user's processes among the first `most` below this one. Empty if it has ended meanwhile.
#[must_use]
pub fn all_below(root: &Process, most: usize) -> Vec<Process> {
    let owner = |pid: Pid| fs::metadata(format!("/proc/{pid}")).ok().map(|data| data.uid());
    let found = tree::walk(root.pid).take(most).filter(|process| owner(process.pid) == Some(process::uid())).collect();
    // Its number may have passed to another process before its children were read.
    if tree::process(root.pid).is_some_and(|now| now.start == root.start) { found } else { Vec::new() }
}

/// As [`all_below`], without processes that execute the same file: its own helpers.
#[must_use]
pub fn below(root: &Process, most: usize) -> Vec<Process> {
    let own = program_path(root.pid);
    let program = |pid: Pid| looker::identity(&program_link(pid)).ok();
    let identity = own.as_ref().and_then(|_| program(root.pid));
    let mut found = all_below(root, most);
    // The path comes first: any other program may be a file on a server that does not answer.
    let is_same = |pid: Pid| program_path(pid) == own && program(pid) == identity;
    found.retain(|process| identity.is_none() || !is_same(process.pid));
    found
}

fn program_link(pid: Pid) -> String {
    format!("{pid}/exe")
}

/// Returns true if one of these processes is this one or above it.
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
        let file = |options: &mut fs::OpenOptions| options.open("/dev/null").unwrap();
        let sleep = |output: fs::File| {
            let mut command = std::process::Command::new("sleep");
            let command = command.arg("100").stdin(file(fs::OpenOptions::new().read(true)));
            command.stdout(output).stderr(std::process::Stdio::inherit()).spawn().unwrap()
        };
        let mut child = sleep(file(fs::OpenOptions::new().write(true)));
        let mut other = sleep(file(fs::OpenOptions::new().read(true).write(true)));
        let data = fs::metadata("/dev/null").unwrap();
        let open = (data.dev(), data.ino());
        let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        let pid = Pid::new(child.id().cast_signed());
        let start = tree::process(pid).unwrap().start;
        let inner = InnerProcess { namespace, pid: pid.number(), start };
        assert!(matches!(find_here(&inner, open), Whereabouts::Here(process) if process.pid == pid));
        assert!(matches!(find_here(&InnerProcess { start: 0, ..inner }, open), Whereabouts::Here(_)));
        assert!(matches!(find_here(&InnerProcess { namespace: 0, ..inner }, open), Whereabouts::Here(_)));
        assert_eq!(find_here(&InnerProcess { start: start + 1, ..inner }, open), Whereabouts::Gone);
        assert_eq!(find_here(&InnerProcess { namespace: namespace + 1, ..inner }, open), Whereabouts::Elsewhere);
        assert_eq!(find_here(&inner, (open.0, open.1 + 1)), Whereabouts::Gone);
        assert!(is_below(pid, |above| above == process::pid()) && !is_below(pid, |_| false));
        let reader = InnerProcess { pid: other.id().cast_signed(), start: 0, ..inner };
        assert_eq!(find_here(&reader, open), Whereabouts::Gone, "it could read, too");
        assert!(program_path(pid).is_some_and(|path| path.is_absolute()));
        assert!(names_of_children(process::pid()).iter().any(|name| name.bytes() == b"sleep"));
        let mut census = Census::begin();
        let mut parts = 1;
        while !census.go_on(3) {
            parts += 1;
        }
        assert!(parts > 1 || census.rest.is_empty());
        assert_eq!(census.find(&inner, open), None, "it is in this namespace");
        other.kill().unwrap();
        other.wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(find_here(&inner, open), Whereabouts::Gone);
    }
}
