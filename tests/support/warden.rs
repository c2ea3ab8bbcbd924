//! A process of ours between a test and a program, which knows exactly what that program leaves behind.
//!
//! The warden is a child subreaper: whatever the program starts, however it detaches itself, stays below the warden
//! until it ends. It reports the program's pid and wait status through a pipe and leaves when nothing is left, so that
//! the end of the pipe means: the whole tree is gone. When the test dies, however it dies, the warden kills the tree.
//!
//! ```text
//! test ─▶ warden (own session, own group) ─▶ program (own group) ─▶ …
//!    ◀── pipe: PID, STATUS, end of file ──┘
//! ```
//!
//! Between fork and exec only system calls are made, on values prepared before.

#![expect(unsafe_code, reason = "what a program inherits is set between fork and exec")]

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc::{self, c_char, c_int};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use nix::unistd::pipe2;

use super::procs::{self, Process};

/// What a program inherits beside its descriptors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) umask: u32,
    pub(crate) nice: i32,
    /// The one processor it may run on, or all.
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
    /// Descriptor of ours, number it gets. What is not named here is closed.
    pub(crate) descriptors: Vec<(OwnedFd, RawFd)>,
    pub(crate) control: Control,
    pub(crate) state: State,
    pub(crate) user: Option<u32>,
}

fn high(fd: OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    let number = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(500))?;
    // SAFETY: the number is a new descriptor that nothing else knows of.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Keeps descriptors that the test process was started with from those it starts.
pub(crate) fn keep_descriptors_to_ourselves() {
    // SAFETY: it changes one flag of our descriptors, which those of the standard library have anyway.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

fn strings<S: AsRef<[u8]>>(list: &[S]) -> Vec<CString> {
    list.iter().map(|bytes| CString::new(bytes.as_ref()).expect("no NUL in a string for execve")).collect()
}

impl Plan {
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
        let executed = high(low)?;
        let prepared = Prepared::new(plan, write.as_raw_fd(), executed.as_raw_fd());
        let mut command = Command::new(OsStr::new("the warden never gets to execute a program"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
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

/// Its arrival ends a wait; there is nothing else to do.
extern "C" fn on_child(_: c_int) {}

/// Kills every child, and so in a few rounds the whole tree, which a subreaper adopts. Allocates nothing.
fn kill_children() {
    let mut list = [0_u8; 4096];
    // SAFETY: system calls on a descriptor and a buffer of our own, signals to our own children.
    unsafe {
        let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY);
        let length = libc::read(fd, list.as_mut_ptr().cast(), list.len());
        libc::close(fd);
        let mut pid = 0;
        for byte in list.iter().take(usize::try_from(length).unwrap_or(0)) {
            match byte {
                b'0'..=b'9' => pid = pid * 10 + libc::pid_t::from(byte - b'0'),
                _ if pid > 0 => {
                    libc::kill(pid, libc::SIGKILL);
                    pid = 0;
                }
                _ => {}
            }
        }
        libc::poll(std::ptr::null_mut(), 0, 5);
    }
}

/// A plan in the form of system calls.
struct Prepared {
    plan: Plan,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    /// As many numbers as there are descriptors, to be filled after the fork without allocating.
    moved: Vec<RawFd>,
    report: RawFd,
    failure: RawFd,
}

// SAFETY: the pointers lead into the plan, which moves along and is never changed.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

fn check(result: c_int) -> Result<c_int, Errno> {
    Errno::result(result)
}

impl Prepared {
    fn new(plan: Plan, report: RawFd, failure: RawFd) -> Self {
        let (argv, env) = (pointers(&plan.argv), pointers(&plan.env));
        let moved = vec![0; plan.descriptors.len()];
        Self { plan, argv, env, moved, report, failure }
    }

    /// Never returns: the caller becomes the warden.
    fn run(&self) -> io::Result<()> {
        // SAFETY: system calls on our own descriptors and memory, in a process with one thread.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
            for signal in [libc::SIGTTIN, libc::SIGTTOU, libc::SIGHUP, libc::SIGPIPE] {
                libc::signal(signal, libc::SIG_IGN);
            }
            if let Control::Background(terminal) = &self.plan.control {
                check(libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0))?;
            }
            match check(libc::fork())? {
                0 => {
                    let error = self.become_program().expect_err("execve returns with an error only");
                    let errno = error as i32;
                    libc::write(self.failure, (&raw const errno).cast(), 4);
                    libc::_exit(126)
                }
                pid => self.watch(pid),
            }
        }
    }

    fn tell(&self, tag: i32, value: i32) {
        let record = [tag, value];
        // SAFETY: the kernel reads eight bytes from the two numbers.
        unsafe { libc::write(self.report, record.as_ptr().cast(), 8) };
    }

    /// Reaps until nothing is left. When nobody reads the report any more, the test is dead and the tree follows it.
    fn watch(&self, program: libc::pid_t) -> ! {
        let report = u32::try_from(self.report).unwrap_or(0);
        self.tell(PID, program);
        // SAFETY: the descriptors that are closed belong to this process alone since the fork, and so do its signals.
        unsafe {
            libc::syscall(libc::SYS_close_range, 0, report - 1, 0);
            libc::syscall(libc::SYS_close_range, report + 1, u32::MAX, 0);
            let (mut blocked, mut usual): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut usual);
            libc::sigemptyset(&raw mut blocked);
            libc::sigaddset(&raw mut blocked, libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut());
            libc::signal(libc::SIGCHLD, on_child as *const () as libc::sighandler_t);
            loop {
                let mut status = 0;
                match libc::waitpid(-1, &raw mut status, libc::WNOHANG) {
                    0 => {
                        let mut pipe = libc::pollfd { fd: self.report, events: 0, revents: 0 };
                        if libc::ppoll(&raw mut pipe, 1, std::ptr::null(), &raw const usual) > 0 {
                            kill_children();
                        }
                    }
                    pid if pid == program => self.tell(STATUS, status),
                    pid if pid < 0 && Errno::last() == Errno::ECHILD => libc::_exit(0),
                    _ => {}
                }
            }
        }
    }

    fn become_program(&self) -> Result<(), Errno> {
        // SAFETY: the pointers were made from strings that live in the plan, with a null at the end.
        unsafe {
            if let Control::Foreground(terminal) = &self.plan.control {
                libc::setsid();
                check(libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0))?;
            } else {
                libc::setpgid(0, 0);
            }
            if let Some(dir) = &self.plan.dir {
                check(libc::fchdir(dir.as_raw_fd()))?;
            }
            // From here on the numbers of the descriptors above may mean others.
            self.take_descriptors()?;
            self.take_state()?;
            if let Some(user) = self.plan.user {
                check(libc::setgroups(1, &raw const user))?;
                check(libc::setresgid(user, user, user))?;
                check(libc::setresuid(user, user, user))?;
            }
            check(libc::execve(self.plan.program.as_ptr(), self.argv.as_ptr(), self.env.as_ptr()))?;
        }
        Ok(())
    }

    fn take_state(&self) -> Result<(), Errno> {
        let state = &self.plan.state;
        // SAFETY: system calls on our own memory.
        unsafe {
            for signal in [libc::SIGTTIN, libc::SIGTTOU, libc::SIGHUP, libc::SIGPIPE] {
                libc::signal(signal, libc::SIG_DFL);
            }
            for &signal in state.ignored {
                libc::signal(signal as c_int, libc::SIG_IGN);
            }
            libc::umask(state.umask);
            if state.nice != 0 {
                check(libc::setpriority(libc::PRIO_PROCESS, 0, state.nice))?;
            }
            if let Some(cpu) = state.cpu {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set))?;
            }
            for &(resource, soft, hard) in state.limits {
                let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
                check(libc::setrlimit(resource as _, &raw const limit))?;
            }
        }
        Ok(())
    }

    /// Gives every descriptor its number. They are moved out of the way first, because a number that one of them is
    /// to get may be where another one still is.
    fn take_descriptors(&self) -> Result<(), Errno> {
        let moved = self.moved.as_ptr().cast_mut();
        let mut above = 3;
        // SAFETY: `moved` has a place for each descriptor, and this process is the only one with this copy of it.
        unsafe {
            for (n, (fd, _)) in self.plan.descriptors.iter().enumerate() {
                *moved.add(n) = check(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 1000))?;
            }
            for fd in 0..3 {
                libc::close(fd);
            }
            for (n, &(_, number)) in self.plan.descriptors.iter().enumerate() {
                check(libc::dup2(*moved.add(n), number))?;
                above = above.max(number + 1);
            }
            let above = libc::c_uint::try_from(above).unwrap_or(3);
            libc::syscall(libc::SYS_close_range, above, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        }
        Ok(())
    }
}
