//! A process between a test and the program that it runs. It knows exactly what that program leaves behind.
//!
//! The warden is a child subreaper: whatever the program starts, however it detaches itself, stays below the warden
//! until it ends. It reports the program's pid and wait status through a pipe and leaves when nothing is left, so that
//! the end of the pipe means: the whole tree is gone. When the test dies, however it dies, the warden kills the tree.
//!
//! ```text
//! test ─▶ warden (own session, own group) ─▶ program (own group) ─▶ …
//!    ◀── pipe: PID, STATUS, end of file ──┘
//! ```

#![expect(unsafe_code, reason = "what a program inherits is set between fork and exec")]

mod prepared;

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::pipe2;

use self::prepared::Prepared;
use super::procs::{self, Process};

/// What a program inherits beside its descriptors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) umask: u32,
    pub(crate) nice: i32,
    /// The one processor it may run on, the nth of those that the tests may use, or all.
    pub(crate) cpu: Option<usize>,
    /// Resource, soft and hard limit.
    pub(crate) limits: &'static [(Resource, u64, u64)],
    pub(crate) ignored: &'static [Signal],
}

/// A usual state.
pub(crate) const USUAL: State = State { umask: 0o022, nice: 0, cpu: None, limits: &[], ignored: &[] };

/// Which terminal controls the program.
#[derive(Debug)]
pub(crate) enum Control {
    /// None.
    None,
    /// This one, and the program is in its background: a guard holds the foreground.
    Background(OwnedFd),
    /// This one, and the program leads its session.
    Foreground(OwnedFd),
}

/// What to start, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    program: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    pub(crate) dir: Option<OwnedFd>,
    /// Each descriptor of the test that the program inherits, with its number there. All others are closed.
    pub(crate) descriptors: Vec<(OwnedFd, RawFd)>,
    pub(crate) control: Control,
    pub(crate) state: State,
    pub(crate) user: Option<u32>,
}

/// How many descriptors the tests could have when they were started, soft and hard. From the first question on they may
/// have more: the ends of many calls are open here at once.
fn usual_files() -> (u64, u64) {
    static USUAL_FILES: OnceLock<(u64, u64)> = OnceLock::new();
    *USUAL_FILES.get_or_init(|| {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(4_096)), hard).expect("the soft limit may rise");
        (soft, hard)
    })
}

/// A copy of a descriptor with at least this number.
fn high(fd: OwnedFd, least: RawFd) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    let number = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(least))?;
    // SAFETY: the number is a new descriptor that nothing else knows of.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Keeps descriptors that the test process was started with from those it starts.
pub(crate) fn keep_descriptors_to_ourselves() {
    // SAFETY: it changes one flag of our descriptors, which those of the standard library have anyway.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Runs `body` on a thread that shares no descriptor but the usual three with the other tests. What it opens is in no process
/// that they start meanwhile, so none of these has the last copy, whose close(2) may wait for minutes.
pub(crate) fn with_own_descriptors(body: impl FnOnce() + Send) {
    let run = || {
        // SAFETY: nothing on this thread uses a descriptor of another one.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
        assert_eq!(closed, 0, "close_range: {}", io::Error::last_os_error());
        body();
    };
    let result = std::thread::scope(|scope| scope.spawn(run).join());
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Gives back the memory that this process no longer uses, which the allocator would keep. A copy of it for each warden took
/// most of the processors' time.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it gives back what nothing points to.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn strings<S: AsRef<[u8]>>(list: &[S]) -> Vec<CString> {
    list.iter().map(|bytes| CString::new(bytes.as_ref()).expect("no NUL in a string for execve")).collect()
}

impl Plan {
    /// The first number above those that the program's descriptors have.
    fn above_numbers(&self) -> RawFd {
        self.descriptors.iter().map(|&(_, number)| number + 1).fold(3, RawFd::max)
    }

    /// A program with its arguments (argv[0] first) and environment; nothing open, the usual state.
    pub(crate) fn new<A: AsRef<[u8]>, E: AsRef<[u8]>>(program: &Path, argv: &[A], env: &[E]) -> Self {
        Self {
            program: CString::new(program.as_os_str().as_bytes()).expect("no NUL in a path"),
            argv: strings(argv),
            env: strings(env),
            dir: None,
            descriptors: Vec::new(),
            control: Control::None,
            state: USUAL,
            user: None,
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    Signal(i32),
}

impl Ended {
    /// The number by which shells report it: a death by signal N is 128 + N.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Warden {
    process: Child,
    pipe: File,
    pid: i32,
    ended: Option<Ended>,
    is_empty: bool,
}

const PID: i32 = 1;
const STATUS: i32 = 2;

impl Warden {
    /// Starts the program; the error is the one of its execve.
    pub(crate) fn start(plan: Plan) -> io::Result<Self> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let (failure, low) = pipe2(OFlag::O_CLOEXEC)?;
        // Out of the way of the numbers that the plan gives away.
        let executed = high(low, plan.above_numbers())?;
        let prepared = Prepared::new(plan, usual_files(), write.as_raw_fd(), executed.as_raw_fd());
        let mut command = Command::new(OsStr::new("the warden never gets to execute a program"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        give_memory_back();
        // SAFETY: the closure makes system calls only, on memory that was prepared before the fork.
        unsafe { command.pre_exec(move || prepared.run()) };
        let process = command.spawn()?;
        drop((command, write, executed));
        let mut warden = Self { process, pipe: read.into(), pid: 0, ended: None, is_empty: false };
        match warden.record(Duration::from_secs(60)) {
            Some((PID, pid)) => warden.pid = pid,
            other => panic!("the warden's first word was {other:?}"),
        }
        // A successful execve closes this pipe without a word.
        let mut errno = [0; 4];
        if File::from(failure).read_exact(&mut errno).is_ok() {
            return Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)));
        }
        Ok(warden)
    }

    /// The pid of the program.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Reads the next record, if it comes in time. A status is kept on the way.
    fn record(&mut self, within: Duration) -> Option<(i32, i32)> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) if left.is_zero() => return None,
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => break,
                Err(error) => panic!("poll: {error}"),
            }
        }
        let mut record = [0; 8];
        if self.pipe.read_exact(&mut record).is_err() {
            self.is_empty = true;
            return None;
        }
        let [a, b, c, d, e, f, g, h] = record;
        let (tag, value) = (i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h]));
        if tag == STATUS {
            let by_signal = libc::WIFSIGNALED(value);
            self.ended = Some(if by_signal {
                Ended::Signal(libc::WTERMSIG(value))
            } else {
                Ended::Code(libc::WEXITSTATUS(value))
            });
        }
        Some((tag, value))
    }

    /// Waits for the program's end.
    pub(crate) fn wait(&mut self, within: Duration) -> Option<Ended> {
        let deadline = Instant::now() + within;
        while self.ended.is_none() && !self.is_empty {
            self.record(deadline.saturating_duration_since(Instant::now()))?;
        }
        self.ended
    }

    /// Waits until neither the program nor anything it started is left.
    pub(crate) fn is_empty_within(&mut self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while !self.is_empty {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.record(left).is_none() && !self.is_empty {
                return false;
            }
        }
        true
    }

    /// Everything that runs below the warden now, the program included.
    pub(crate) fn tree(&self) -> Vec<Process> {
        procs::descendants(i32::try_from(self.process.id()).expect("a pid"))
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid), signal);
        }
    }

    /// Sends a signal to the program's group, as agents do.
    pub(crate) fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(self.pid), signal);
        }
    }

    /// Kills the whole tree; true when nothing withstood.
    pub(crate) fn clear(&mut self) -> bool {
        for _ in 0..500 {
            if self.is_empty_within(Duration::from_millis(2)) {
                return true;
            }
            for process in self.tree() {
                process.signal(Signal::SIGKILL);
            }
        }
        self.is_empty_within(Duration::from_secs(5))
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        self.clear();
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
