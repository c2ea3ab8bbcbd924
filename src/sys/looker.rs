//! The looker: a process that looks at other processes in place of the host, because a look may wait.
//!
//! A process that executes a program holds a lock of its own (`exec_update_lock`, execve(2)) while the kernel closes
//! its close-on-exec files, and for each of these it waits for the server of the file (FUSE, NFS). Files that only a
//! possible tracer may read (ptrace(2)) wait for that lock: its `stat`, and every link below its directory in /proc.
//! Files that anybody may read do not: `status`, `comm`, `cgroup`, the lists of its threads, children and descriptors.
//!
//! So a helper reads the former for the host, which gives the helper up when it waits: unlike the examined process, it
//! can be killed. Other processes look themselves, and not at a process that holds the lock. One that takes it in the
//! same moment makes them wait, too: a guard can be killed, and a person ends `rexec` with ^C.
//!
//! Invariants: an answer belongs to the last question, because a looker that was given up is killed and its socket
//! closed; the host's waiting time is bounded by [`limits::LOOK_ALLOWANCE`]; a looker has no descriptor of the host's
//! and ends with it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::CString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::process::{self, is_living_child};
use super::{helper, kill, proc_file, socket};
use crate::limits;
use rexec_sh::protocol::process::{Pid, Signal};

/// The beginning of a question or an answer: the length of the rest, bytes.
const LENGTH_BYTES: usize = 4;

thread_local! {
    static LOOKER: RefCell<Option<Looker>> = const { RefCell::new(None) };
    /// The end of the time in which a process without a looker has no patience.
    static IMPATIENT_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// One look, at a path below /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look<'a> {
    /// The contents of a file of one record.
    File(&'a str),
    Link(&'a str),
    /// The target of a link, as the kernel knows it: the [`Identity`]'s numbers.
    Identity(&'a str),
}

type Found = io::Result<Vec<u8>>;

/// Device, inode and mount of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) mount: u64,
}

#[derive(Debug)]
struct Looker {
    /// The process for which it looks. A child of that has a copy of this.
    owner: Pid,
    /// `None` until the next look after one that was given up.
    helper: Option<(OwnedFd, Pid)>,
    /// Lookers that were given up and have not ended yet.
    killed: Vec<Pid>,
    /// Processes for which a looker has waited, by number, and the end of the time in which they are skipped.
    silent: VecDeque<(String, Instant)>,
    /// The time when [`Self::waited`] began anew.
    since: Instant,
    /// The total wait for lookers that were given up.
    waited: Duration,
}

/// Makes the looker of this process. Without one, a process looks itself.
///
/// # Errors
/// As socketpair(2) and fork(2).
pub fn begin() -> io::Result<()> {
    let mut looker = Looker {
        owner: process::pid(),
        helper: None,
        killed: Vec::new(),
        silent: VecDeque::new(),
        since: Instant::now(),
        waited: Duration::ZERO,
    };
    looker.start()?;
    LOOKER.set(Some(looker));
    Ok(())
}

#[must_use]
pub fn pids() -> Vec<Pid> {
    LOOKER.with_borrow(|looker| {
        let Some(looker) = looker else { return Vec::new() };
        looker.killed.iter().chain(looker.helper.as_ref().map(|(_, pid)| pid)).copied().collect()
    })
}

/// Reads a file of one record.
///
/// # Errors
/// As open(2) and read(2); `TimedOut` if it would wait.
pub(crate) fn file(path: &str) -> Found {
    one(Look::File(path))
}

/// Reads a link.
///
/// # Errors
/// As readlink(2); `TimedOut` if it would wait.
pub(crate) fn link(path: &str) -> Found {
    one(Look::Link(path))
}

/// Finds the target of a link. Its server is not asked (`AT_STATX_DONT_SYNC`, statx(2)), as one of files may not
/// answer.
///
/// # Errors
/// As statx(2); `TimedOut` if it would wait.
pub(crate) fn identity(path: &str) -> io::Result<Identity> {
    Identity::decode(&one(Look::Identity(path))?)
}

fn one(look: Look<'_>) -> Found {
    all(&[look])?.pop().unwrap_or_else(|| Err(ErrorKind::InvalidData.into()))
}

/// Does several looks at one process. They cost little more than one.
///
/// # Errors
/// `TimedOut` if one of them would wait, or if the process has made a look wait in the last moments.
pub(crate) fn all(looks: &[Look<'_>]) -> io::Result<Vec<Found>> {
    LOOKER.with_borrow_mut(|looker| match looker {
        Some(looker) if looker.owner == process::pid() => looker.ask(looks, Instant::now()),
        _ if looks.first().is_some_and(Look::goes_on_waiting) => Err(ErrorKind::TimedOut.into()),
        _ => Ok(looks.iter().copied().map(Look::take).collect()),
    })
}

impl Look<'_> {
    fn take(self) -> Found {
        match self {
            Self::File(path) => proc_file::read(&format!("/proc/{path}")),
            Self::Link(path) => fs::read_link(format!("/proc/{path}")).map(|link| link.into_os_string().into_vec()),
            Self::Identity(path) => Identity::of(&format!("/proc/{path}")).map(Identity::encode),
        }
    }

    fn path(&self) -> &str {
        let (Self::File(path) | Self::Link(path) | Self::Identity(path)) = self;
        path
    }

    /// The examined process, as its path names it.
    fn process(&self) -> &str {
        self.path().split('/').next().unwrap_or_default()
    }

    /// Returns true if the process stands in execve(2) with a new memory that has no program yet.
    fn would_wait(&self) -> bool {
        let process = self.process();
        let status = proc_file::read(&format!("/proc/{process}/status")).unwrap_or_default();
        let size = proc_file::lines(&status).find_map(|line| line.strip_prefix(b"VmExe:")?.strip_suffix(b" kB\n"));
        size.is_some_and(|size| size.trim_ascii() == b"0")
    }

    /// As [`Self::would_wait`], for longer than a process that nobody delays. One that stays there takes patience for a
    /// while.
    fn goes_on_waiting(&self) -> bool {
        if !self.would_wait() {
            return false;
        }
        if IMPATIENT_UNTIL.get().is_some_and(|until| Instant::now() < until) {
            return true;
        }
        let has_gone_on = process::comes_true_within(limits::LOOK_PATIENCE, || !self.would_wait());
        if !has_gone_on {
            IMPATIENT_UNTIL.set(Some(Instant::now() + limits::LOOK_SILENT_TIME));
        }
        !has_gone_on
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let kind = match self {
            Self::File(_) => b'f',
            Self::Link(_) => b'l',
            Self::Identity(_) => b'i',
        };
        put_part(into, &[&[kind], self.path().as_bytes()].concat());
    }

    fn decode(part: &[u8]) -> Option<Look<'_>> {
        let (kind, path) = part.split_first()?;
        let path = std::str::from_utf8(path).ok()?;
        match kind {
            b'f' => Some(Look::File(path)),
            b'l' => Some(Look::Link(path)),
            b'i' => Some(Look::Identity(path)),
            _ => None,
        }
    }
}

impl Identity {
    fn of(path: &str) -> io::Result<Self> {
        const WANTED: u32 = libc::STATX_INO | libc::STATX_MNT_ID;
        let path = CString::new(path)?;
        let flags = libc::AT_STATX_DONT_SYNC | libc::AT_NO_AUTOMOUNT;
        // SAFETY: every field is a number, for which zero is a value.
        let mut seen: libc::statx = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the structure, and the path ends with a NUL.
        super::check(unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, WANTED, &raw mut seen) })?;
        if seen.stx_mask & WANTED != WANTED {
            return Err(io::Error::other("the mount of a file cannot be told"));
        }
        let device = libc::makedev(seen.stx_dev_major, seen.stx_dev_minor);
        Ok(Self { device, inode: seen.stx_ino, mount: seen.stx_mnt_id })
    }

    fn encode(self) -> Vec<u8> {
        [self.device, self.inode, self.mount].map(u64::to_ne_bytes).concat()
    }

    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let numbers: Vec<u64> = bytes.as_chunks().0.iter().map(|number| u64::from_ne_bytes(*number)).collect();
        let [device, inode, mount] = numbers[..] else { return Err(ErrorKind::InvalidData.into()) };
        Ok(Self { device, inode, mount })
    }
}

impl Looker {
    fn start(&mut self) -> io::Result<()> {
        let (near, far) = socket::pair()?;
        let owner = self.owner;
        let pid = helper::fork(c"rexec-looker", &[far.as_raw_fd()], || serve(&far, owner))?;
        self.helper = Some((near, pid));
        Ok(())
    }

    fn ask(&mut self, looks: &[Look<'_>], now: Instant) -> io::Result<Vec<Found>> {
        self.killed.retain(|&pid| is_living_child(pid));
        self.silent.retain(|&(_, until)| until > now);
        let process = looks.first().map_or("", Look::process);
        if self.silent.iter().any(|(silent, _)| silent == process) {
            return Err(ErrorKind::TimedOut.into());
        }
        let mut question = Vec::new();
        looks.iter().for_each(|look| look.encode(&mut question));
        // Somebody may have killed it, which shows now.
        for _ in 0..2 {
            if self.helper.is_none() {
                self.start()?;
            }
            match self.exchange(&question, now) {
                Ok(answer) => return Ok(parts(&answer).map(found).collect()),
                Err(error) => {
                    self.give_up();
                    if error.kind() == ErrorKind::TimedOut {
                        self.note_silent(process, now);
                        return Err(error);
                    }
                }
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Asks and waits for the answer, as long as the looker itself does not wait.
    fn exchange(&self, question: &[u8], from: Instant) -> io::Result<Vec<u8>> {
        let (socket, pid) = self.helper.as_ref().ok_or(ErrorKind::NotConnected)?;
        let question = [&length(question), question].concat();
        if socket::send(socket, &question, &[])? != question.len() {
            return Err(ErrorKind::InvalidInput.into());
        }
        let (mut answer, mut waits_since) = (Answer::default(), None);
        loop {
            let mut watched = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            let step = PollTimeout::from(limits::LOOK_STEP_MS);
            if super::uninterrupted(|| poll(&mut watched, step).map_err(super::io))? > 0 {
                if let Some(answer) = answer.read(socket)? {
                    return Ok(answer);
                }
                continue;
            }
            let now = Instant::now();
            waits_since = waits(*pid).then(|| waits_since.unwrap_or(now));
            let is_given_up = waits_since.is_some_and(|since| now.duration_since(since) >= self.patience(now));
            if is_given_up || now.duration_since(from) >= limits::LOOK_WAIT_MAX {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }

    /// The time for which a looker may wait.
    fn patience(&self, now: Instant) -> Duration {
        let is_used_up = self.waited >= limits::LOOK_ALLOWANCE && now < self.since + limits::LOOK_ALLOWANCE_TIME;
        if is_used_up { Duration::ZERO } else { limits::LOOK_PATIENCE }
    }

    fn note_silent(&mut self, process: &str, from: Instant) {
        let now = Instant::now();
        if now >= self.since + limits::LOOK_ALLOWANCE_TIME {
            (self.since, self.waited) = (now, Duration::ZERO);
        }
        self.waited += now.duration_since(from);
        if self.silent.len() >= limits::LOOK_SILENT_MAX {
            self.silent.pop_front();
        }
        self.silent.push_back((process.to_owned(), now + limits::LOOK_SILENT_TIME));
    }

    fn give_up(&mut self) {
        let Some((_, pid)) = self.helper.take() else { return };
        let _ = kill::process(pid, Signal::KILL);
        self.killed.push(pid);
    }
}

/// An answer that comes in pieces.
#[derive(Debug, Default)]
struct Answer(Vec<u8>);

impl Answer {
    /// Reads a piece. Returns the answer if it is whole.
    fn read(&mut self, socket: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
        let mut piece = [0; 16 << 10];
        match super::read(socket, &mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => self.0.extend_from_slice(&piece[..length]),
        }
        Ok(parts(&self.0).next().map(<[u8]>::to_vec))
    }
}

fn length(bytes: &[u8]) -> [u8; LENGTH_BYTES] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_ne_bytes()
}

fn put_part(into: &mut Vec<u8>, part: &[u8]) {
    into.extend_from_slice(&length(part));
    into.extend_from_slice(part);
}

/// The whole parts at the start of the bytes, each after its length.
fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>()?;
        let (part, others) = behind.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
        rest = others;
        Some(part)
    })
}

/// Decodes a part of an answer: the number of an error, which is 0 if there was none, and the bytes.
fn found(part: &[u8]) -> Found {
    match part.split_first_chunk::<4>() {
        Some((error, bytes)) if *error == [0; 4] => Ok(bytes.to_vec()),
        Some((error, _)) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(*error))),
        None => Err(ErrorKind::InvalidData.into()),
    }
}

/// Runs the looker until the end of its owner.
fn serve(far: &OwnedFd, owner: Pid) {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    let mut asked = Answer::default();
    // Its owner may have died before the request for that signal.
    while nix::unistd::getppid().as_raw() == owner.number() {
        let question = match asked.read(far) {
            Ok(Some(question)) => question,
            Ok(None) => continue,
            Err(_) => return,
        };
        asked = Answer::default();
        let mut answer = Vec::new();
        for look in parts(&question).filter_map(Look::decode) {
            let (error, bytes) = match look.take() {
                Ok(bytes) => (0, bytes),
                Err(error) => (error.raw_os_error().unwrap_or(libc::EIO), Vec::new()),
            };
            put_part(&mut answer, &[&error.to_ne_bytes()[..], &bytes].concat());
        }
        let mut whole = Vec::new();
        put_part(&mut whole, &answer);
        let mut rest = &whole[..];
        while !rest.is_empty() {
            match super::write(far, rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(_) => return,
            }
        }
    }
}

/// Returns true if a process sleeps in the kernel and no usual signal wakes it.
fn waits(pid: Pid) -> bool {
    let status = proc_file::read(&format!("/proc/{pid}/status")).unwrap_or_default();
    proc_file::lines(&status).any(|line| line.starts_with(b"State:\tD"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn give_back(pid: Pid) {
        assert_eq!(pids().last(), Some(&pid));
        LOOKER.set(None);
        while is_living_child(pid) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_looker_finds_what_its_owner_would_and_is_made_anew() {
        let me = process::pid();
        let own = || -> [Found; 4] {
            let missing = link(&format!("{me}/fd/999999"));
            [link(&format!("{me}/exe")), file(&format!("{me}/comm")), file(&format!("{me}/cgroup")), missing]
        };
        let same = own();
        begin().unwrap();
        for _ in 0..2 {
            let first = *pids().last().unwrap();
            for (found, same) in own().into_iter().zip(&same) {
                assert_eq!(found.as_ref().ok(), same.as_ref().ok());
                assert_eq!(found.err().map(|error| error.kind()), same.as_ref().err().map(io::Error::kind));
            }
            let exe = fs::metadata("/proc/self/exe").unwrap();
            let seen = identity(&format!("{me}/exe")).unwrap();
            assert_eq!((seen.device, seen.inode), (exe.dev(), exe.ino()));
            kill::process(first, Signal::KILL).unwrap();
            while is_living_child(first) {
                std::thread::yield_now();
            }
            assert!(file(&format!("{me}/stat")).is_ok(), "another one is made");
            assert_ne!(pids().last(), Some(&first));
        }
        give_back(*pids().last().unwrap());
    }

    #[test]
    fn one_that_made_a_look_wait_is_left_alone_and_patience_has_an_end() {
        begin().unwrap();
        let (me, now) = (process::pid().to_string(), Instant::now());
        let stat = format!("{me}/stat");
        let patience = || LOOKER.with_borrow(|looker| looker.as_ref().unwrap().patience(Instant::now()));
        LOOKER.with_borrow_mut(|looker| looker.as_mut().unwrap().note_silent(&me, now));
        assert_eq!(file(&stat).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(file("1/stat").is_ok(), "others are looked at");
        assert_eq!(patience(), limits::LOOK_PATIENCE);
        LOOKER.with_borrow_mut(|looker| looker.as_mut().unwrap().waited = limits::LOOK_ALLOWANCE);
        assert_eq!(patience(), Duration::ZERO);
        give_back(pids()[0]);
    }
}
