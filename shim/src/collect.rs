//! The attributes that a command inherits from its caller (fork(2), execve(2)), read from this process, which inherited
//! them.
//!
//! Invariants: reading changes nothing, except that umask(2) differs for an instant; an attribute that the kernel does
//! not report gets its value in a fresh login.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::wire::{AFFINITY_BYTES_MAX, Attributes, CallerStream, Extras, Stdio};

use crate::sys::{self, FileKind, FileStatus};

/// The number of resource limits in Linux.
const RESOURCES: u32 = 16;
/// Descriptors below this number are tried one by one if /proc does not list them.
const PROBED_MAX: RawFd = 1024;
/// The same limit if /proc reports their number; few calls find that many faster than a list.
const COUNTED_MAX: RawFd = 64;
/// Offsets of length and name in a struct linux_dirent64, bytes.
const ENTRY_LENGTH_AT: usize = 16;
const ENTRY_NAME_AT: usize = 19;

/// Descriptors 0, 1 and 2 as the caller left them.
#[derive(Debug)]
pub(crate) struct StandardStreams {
    status: [Option<FileStatus>; 3],
    terminal: [bool; 3],
    /// Occupy the numbers of closed descriptors. They are close-on-exec, so these numbers stay closed for the real
    /// shell.
    plugs: Vec<OwnedFd>,
}

impl StandardStreams {
    /// Inspects the three, before this process opens any file.
    pub(crate) fn inspect() -> Self {
        let status = [0, 1, 2].map(|fd| sys::status_of(fd).ok());
        let is_terminal = |fd: RawFd, status: &Option<FileStatus>| {
            status.is_some_and(|status| status.kind == FileKind::Character) && sys::is_terminal(fd)
        };
        let terminal = [0, 1, 2].map(|fd| is_terminal(fd, &status[usize::try_from(fd).expect("0, 1 or 2")]));
        Self { status, terminal, plugs: Vec::new() }
    }

    /// Opens `/dev/null` in place of each closed descriptor, so that the shim opens nothing else under these numbers.
    pub(crate) fn plug(&mut self) -> sys::Result<()> {
        for _ in self.status.iter().filter(|status| status.is_none()) {
            self.plugs.push(sys::open(c"/dev/null", libc::O_RDWR)?);
        }
        Ok(())
    }

    pub(crate) fn has_stdin(&self) -> bool {
        self.status[0].is_some()
    }

    /// Returns true if descriptor 0 is a pipe, or a socket in place of one.
    pub(crate) fn has_piped_input(&self) -> bool {
        self.status[0].is_some_and(|status| matches!(status.kind, FileKind::Pipe | FileKind::Socket))
    }

    /// The kind of an output; `true` if it is a terminal. `None` if it is closed.
    pub(crate) fn output(&self, stream: CallerStream) -> Option<(FileKind, bool)> {
        let [_, out, err] = self.status;
        let (status, terminal) = match stream {
            CallerStream::Out => (out, self.terminal[1]),
            CallerStream::Err => (err, self.terminal[2]),
        };
        status.map(|status| (status.kind, terminal))
    }

    pub(crate) fn is_file(&self) -> bool {
        self.status[1].is_some_and(|status| status.kind == FileKind::Regular)
    }

    /// Returns true if standard input and an output are terminals.
    pub(crate) fn is_at_terminal(&self) -> bool {
        self.terminal[0] && (self.terminal[1] || self.terminal[2])
    }

    /// The terminal whose size the command's terminal gets.
    pub(crate) fn window(&self) -> Option<RawFd> {
        self.output_terminals().next()
    }

    fn output_terminals(&self) -> impl Iterator<Item = RawFd> {
        let outputs = [libc::STDOUT_FILENO, libc::STDERR_FILENO].into_iter().zip(&self.terminal[1..]);
        outputs.filter(|(_, is_terminal)| **is_terminal).map(|(fd, _)| fd)
    }

    /// Descriptors 0 to 2 as the request describes them.
    ///
    /// The controlling terminal can be relayed, because this process is stopped and continued with it. An output on
    /// another terminal then counts as a pipe. If standard input or output is something else, other processes probably
    /// read the same terminal. The command then gets keys only on demand.
    fn flags(&self) -> Stdio {
        let [is_in, mut is_out, mut is_err] = self.terminal;
        let mut foreground = if is_in { sys::foreground_group(libc::STDIN_FILENO) } else { None };
        let (mut relayed, mut on_demand) = (false, false);
        let of_terminal = |fd: RawFd| {
            let number = sys::terminal_number(fd);
            let is_same =
                |fd: RawFd| self.output_terminals().any(|out| out == fd) && sys::terminal_number(fd) == number;
            (is_same(libc::STDOUT_FILENO), is_same(libc::STDERR_FILENO))
        };
        if foreground.is_some() {
            let same = of_terminal(libc::STDIN_FILENO);
            if same.0 || same.1 {
                (relayed, is_out, is_err) = (true, same.0, same.1);
                on_demand = self.status[1].is_some_and(|status| status.kind == FileKind::Pipe);
            }
        }
        let group = Some(sys::own_group());
        let is_reachable = |fd: &RawFd| sys::foreground_group(*fd) == group;
        if foreground.is_none()
            && let Some(fd) = self.output_terminals().find(is_reachable)
        {
            (is_out, is_err) = of_terminal(fd);
            (foreground, on_demand) = (group, true);
        }
        Stdio {
            relayed,
            on_demand,
            background: foreground.is_some_and(|group| group != sys::own_group()),
            leader: if foreground.is_some() { sys::is_session_leader() } else { sys::is_in_leaders_group() },
            stdin: self.status[0].is_some(),
            stdout: self.status[1].is_some(),
            stderr: self.status[2].is_some(),
            same_output: self.has_same_output(),
            stdin_tty: is_in,
            stdout_tty: is_out,
            stderr_tty: is_err,
        }
    }

    /// Returns true if descriptors 1 and 2 are one output: one terminal, or one open file description. If the kernel
    /// does not tell, one file counts as one open file description.
    pub(crate) fn has_same_output(&self) -> bool {
        let (Some(out), Some(err)) = (self.status[1], self.status[2]) else { return false };
        if let [_, true, true] = self.terminal {
            return sys::terminal_number(libc::STDOUT_FILENO) == sys::terminal_number(libc::STDERR_FILENO);
        }
        if !out.is_same_file(&err) {
            return false;
        }
        // When each write goes to the end of the file, two openings behave as one.
        let has_no_place = match out.kind {
            FileKind::Pipe => true,
            FileKind::Regular => sys::is_appending(libc::STDOUT_FILENO) && sys::is_appending(libc::STDERR_FILENO),
            FileKind::Socket | FileKind::Character | FileKind::Other => false,
        };
        has_no_place || sys::is_same_description(libc::STDOUT_FILENO, libc::STDERR_FILENO).unwrap_or(true)
    }
}

/// All attributes except the signal mask and the options.
pub(crate) fn attributes(standard: &StandardStreams, inherited: Vec<RawFd>) -> Attributes {
    let (rows, cols) = standard.window().and_then(sys::window_size).unwrap_or_default();
    let limits = (0..RESOURCES).map_while(sys::limit).collect();
    let mut affinity = vec![0; AFFINITY_BYTES_MAX];
    let affinity_bytes = sys::affinity(&mut affinity);
    affinity.truncate(affinity_bytes);
    Attributes {
        stdio: standard.flags(),
        umask: sys::umask(),
        nice: sys::nice(),
        oom_score_adj: oom_score_adj().unwrap_or_default(),
        ignored: sys::ignored_signals(),
        rows,
        cols,
        limits,
        affinity,
        inherited,
        extras: extras(),
        ..Attributes::default()
    }
}

/// Attributes that few callers change. Not carried: the memory policy of numactl(8), utilisation clamps, the session keyring, and
/// the flags of prctl(2) for machine checks, I/O flushers and write-execute protection.
fn extras() -> Extras {
    let usual = Extras::default();
    Extras {
        io_priority: sys::io_priority(),
        scheduler: sys::scheduler(),
        personality: sys::personality(),
        timer_slack_ns: sys::timer_slack().unwrap_or(usual.timer_slack_ns),
        coredump_filter: coredump_filter().unwrap_or(usual.coredump_filter),
        no_huge_pages: sys::has_no_huge_pages(),
        project: project(),
        ..usual
    }
}

/// The number of directories from this one up to the top of its git project. Nobody but the caller waits if the file
/// system is slow, and the caller would wait for it anyway.
pub(crate) fn project() -> Option<u8> {
    const UP: &CStr = c"../../../../../../../../../../../../.git";
    const DEPTH_MAX: u8 = 12;
    let has_git = |depth: &u8| {
        let start = usize::from(DEPTH_MAX - depth) * "../".len();
        CStr::from_bytes_with_nul(&UP.to_bytes_with_nul()[start..]).is_ok_and(sys::exists)
    };
    if has_git(&0) {
        return Some(0);
    }
    // Above the root directory is the root directory again.
    let above = sys::directories_above().unwrap_or(DEPTH_MAX);
    (1..=above.min(DEPTH_MAX)).find(has_git)
}

fn oom_score_adj() -> Option<i32> {
    let mut text = [0; 16];
    text_of(c"/proc/self/oom_score_adj", &mut text)?.parse().ok()
}

fn coredump_filter() -> Option<u32> {
    let mut text = [0; 16];
    u32::from_str_radix(text_of(c"/proc/self/coredump_filter", &mut text)?, 16).ok()
}

fn text_of<'a>(path: &CStr, text: &'a mut [u8]) -> Option<&'a str> {
    let file = sys::open(path, libc::O_RDONLY).ok()?;
    let bytes = sys::read(file.as_raw_fd(), text).ok()?;
    std::str::from_utf8(&text[..bytes]).ok().map(str::trim_ascii_end)
}

/// The working directory, for fchdir(2). EACCES if this process may not search it.
pub(crate) fn working_directory() -> sys::Result<OwnedFd> {
    sys::open(c".", libc::O_PATH | libc::O_DIRECTORY)
}

/// The descriptors from 3 up that a command would inherit, in ascending order. The shim's own are close-on-exec.
pub(crate) fn inherited() -> Vec<RawFd> {
    if let Some(found) = counted() {
        return found;
    }
    let mut found = listed().unwrap_or_else(|_| (3..PROBED_MAX).filter(|&fd| sys::is_inheritable(fd)).collect());
    found.sort_unstable();
    found
}

/// Tries one number after the other until it has found as many open descriptors as this process has. `None` if the
/// kernel does not report their number, or if some are beyond [`COUNTED_MAX`]. A list costs the kernel an entry and an
/// inode for each.
fn counted() -> Option<Vec<RawFd>> {
    let mut left = sys::open_descriptors().filter(|&count| count > 0)?;
    let mut found = Vec::new();
    for fd in 0..COUNTED_MAX {
        let Some(is_inheritable) = sys::inheritance(fd) else { continue };
        if is_inheritable && fd > libc::STDERR_FILENO {
            found.push(fd);
        }
        left -= 1;
        if left == 0 {
            return Some(found);
        }
    }
    None
}

fn listed() -> Result<Vec<RawFd>, Errno> {
    let mut found = numbers_in(c"/proc/self/fd")?;
    // The directory's own descriptor is closed by now.
    found.retain(|&fd| fd > libc::STDERR_FILENO && sys::is_inheritable(fd));
    Ok(found)
}

/// The entries of a directory whose names are numbers.
pub(crate) fn numbers_in(path: &CStr) -> Result<Vec<i32>, Errno> {
    let directory = sys::open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let (mut found, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        let bytes = sys::read_directory(&directory, &mut buffer)?;
        if bytes == 0 {
            return Ok(found);
        }
        let mut entries = &buffer[..bytes];
        while let Some((entry, rest)) = split_entry(entries) {
            entries = rest;
            found.extend(number(entry));
        }
    }
}

/// Splits off the first entry. Returns its name and the remaining entries.
fn split_entry(entries: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = entries.get(ENTRY_LENGTH_AT..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))?;
    let (entry, rest) = entries.split_at_checked(usize::from(length))?;
    Some((entry.get(ENTRY_NAME_AT..)?, rest))
}

/// Parses a NUL-terminated number.
fn number(name: &[u8]) -> Option<RawFd> {
    let end = name.iter().position(|&byte| byte == 0)?;
    name[..end].iter().try_fold(0, |number: RawFd, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(RawFd::from(byte - b'0')),
        _ => None,
    })
}
