//! The confinement of one process, as /proc shows it.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::stat::Mode;

use super::super::looker::{self, Identity, Look};
use super::super::proc_file;
use super::super::stat::StatLine;
use super::{Difference, ELSEWHERE, Purpose, is_gone};
use rexec_sh::protocol::process::Pid;

/// The namespaces that are compared. Of the pid namespaces, that of the children counts, because a command is a child.
/// Cgroup and time namespaces hide nothing.
pub(super) const NAMESPACES: [(&str, Difference); 6] = [
    ("ns/user", "other user namespace"),
    ("ns/pid_for_children", ELSEWHERE),
    ("ns/mnt", "other mount namespace"),
    ("ns/net", "other network namespace"),
    ("ns/ipc", "other ipc namespace"),
    ("ns/uts", "other uts namespace"),
];

/// The lines of /proc/PID/status that are compared. `true` marks lines of every supported kernel.
pub(super) const LINES: [(&[u8], Difference, bool); 9] = [
    (b"Seccomp:", "seccomp filter", false),
    (b"Seccomp_filters:", "seccomp filter", false),
    (b"NoNewPrivs:", "no_new_privs", true),
    (b"Uid:", "other user", true),
    (b"Gid:", "other group", true),
    (b"Groups:", "other groups", true),
    (b"CapEff:", "other capabilities", true),
    (b"CapPrm:", "other capabilities", true),
    (b"CapBnd:", "other capabilities to gain", true),
];
/// The place of `NoNewPrivs:` in [`LINES`].
pub(super) const NO_NEW_PRIVS: usize = 2;

/// The most bytes of a security label that are read.
const LABEL_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Confinement {
    /// True if the process has one thread.
    pub(super) is_single: bool,
    /// Its parent, which does not confine it.
    pub(super) parent: Option<Pid>,
    /// `None` for a namespace that the kernel does not have.
    pub(super) namespaces: [Option<Vec<u8>>; NAMESPACES.len()],
    /// Device, inode and mount of its root directory. The mount counts, because one directory mounted twice can have different
    /// mounts below it.
    pub(super) root: Identity,
    /// The values of [`LINES`]; `None` for a line that the kernel does not have.
    pub(super) lines: [Option<Vec<u8>>; LINES.len()],
    /// The label of AppArmor, SELinux or Smack; `None` on a kernel without labels.
    pub(super) label: Option<Vec<u8>>,
}

impl Confinement {
    /// Reads the confinement of a process, or of a thread, from its open directory at `place` below /proc. Without
    /// `has_labels`, no security label is read.
    pub(super) fn read(process: &OwnedFd, place: &str, has_labels: bool) -> io::Result<Self> {
        let status = proc_file::read_record(&open(process, c"status")?)?;
        let paths = NAMESPACES.map(|(name, _)| format!("{place}/{name}"));
        let root = format!("{place}/root");
        // A caller may have entered a root of its own, on a server that does not answer.
        let looks: Vec<Look<'_>> = paths.iter().map(|path| Look::Link(path)).chain([Look::Identity(&root)]).collect();
        let mut found = looker::all(&looks)?.into_iter();
        let mut namespaces = [const { None }; NAMESPACES.len()];
        for (namespace, link) in namespaces.iter_mut().zip(found.by_ref()) {
            *namespace = optional(link)?;
        }
        let root = found.next().unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()))?;
        let root = Identity::decode(&root)?;
        Ok(Self {
            is_single: proc_file::lines(&status).any(|line| line == b"Threads:\t1\n"),
            parent: proc_file::lines(&status).find_map(|line| line.strip_prefix(b"PPid:")).and_then(pid),
            namespaces,
            root,
            lines: lines(&status)?,
            label: if has_labels { label(process)? } else { None },
        })
    }

    pub(super) fn has_no_new_privs(&self) -> bool {
        self.lines[NO_NEW_PRIVS].as_deref() != Some(b"0")
    }

    /// The first difference that matters for this purpose. The most telling differences come first.
    pub(super) fn difference(&self, other: &Self, purpose: Purpose) -> Option<Difference> {
        let namespaces = self.namespaces.iter().zip(&other.namespaces).zip(NAMESPACES);
        let lines = self.lines.iter().zip(&other.lines).zip(LINES);
        let lines = lines.filter(|(_, (name, ..))| purpose.counts(name));
        let namespaces = namespaces.filter(|((ours, theirs), _)| ours != theirs).map(|(_, (_, words))| words);
        let lines = lines.filter(|((ours, theirs), _)| ours != theirs).map(|(_, (_, words, _))| words);
        let root = (self.root != other.root).then_some("other root directory");
        let label = (self.label != other.label).then_some("other security label");
        namespaces.chain(root).chain(lines).chain(label).next()
    }
}

/// The number of a process on a line of /proc/PID/status.
fn pid(digits: &[u8]) -> Option<Pid> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok().map(Pid::new)
}

/// Returns true if a thread, with its directory at `place` below /proc, is ending. The kernel then hides parts of it or
/// denies reading them.
pub(super) fn is_ending(place: &str) -> bool {
    const PF_EXITING: u64 = 4;
    match looker::file(&format!("{place}/stat")) {
        Ok(stat) => {
            StatLine::read(&stat).and_then(|stat| stat.field::<u64>(9)).is_some_and(|flags| flags & PF_EXITING != 0)
        }
        Err(error) => is_gone(&error),
    }
}

/// Opens a process's directory. Once open, it never refers to a later process with the same number.
pub(super) fn directory(proc: &OwnedFd, pid: &str) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat(proc, pid, flags, Mode::empty()).map_err(super::super::io)
}

fn open(process: &OwnedFd, name: &CStr) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    openat(process, name, flags, Mode::empty()).map(File::from).map_err(super::super::io)
}

pub(super) fn link(directory: &OwnedFd, name: &CStr) -> io::Result<Vec<u8>> {
    let mut target = [0_u8; 64];
    let buffer = target.as_mut_ptr().cast();
    // SAFETY: the kernel writes into the buffer, no further than its length.
    let length = unsafe { libc::readlinkat(directory.as_raw_fd(), name.as_ptr(), buffer, target.len()) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    if length == target.len() {
        return Err(io::Error::other("a name longer than any"));
    }
    Ok(target[..length].to_vec())
}

/// Turns an error for a missing file into `None`.
fn optional<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

pub(super) fn lines(status: &[u8]) -> io::Result<[Option<Vec<u8>>; LINES.len()]> {
    let mut values = [const { None }; LINES.len()];
    for line in proc_file::lines(status) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, rest) = line.split_at(colon + 1);
        if let Some(at) = LINES.iter().position(|(other, ..)| *other == name) {
            values[at] = Some(rest.trim_ascii().to_vec());
        }
    }
    let is_whole = values.iter().zip(LINES).all(|(value, (.., is_usual))| value.is_some() || !is_usual);
    if is_whole { Ok(values) } else { Err(io::Error::other("a status without the usual lines")) }
}

/// Reads the security label. EINVAL means that no security module of the kernel has labels.
fn label(process: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = optional(open(process, c"attr/current"))? else { return Ok(None) };
    let mut label = Vec::new();
    match file.take(LABEL_BYTES_MAX).read_to_end(&mut label) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        read => read.map(|_| Some(label)),
    }
}
