//! The start of the shell: the steps between clone(2) and execve(2).
//!
//! The child shares the guard's memory until it executes (CLONE_VM), which saves copying page tables. Meanwhile the
//! guard only closes its own copies of the command's descriptors (the child waits for that before it executes), and
//! waits for the child. Invariant: the child makes system calls only. Everything it needs is prepared in [`Launch`],
//! and it writes an error to [`Launch::failure`], where the guard reads it. (They share `errno`, too: the guard reads
//! none meanwhile, and none of its calls fails while the child makes one that may.)

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::libc::{self, c_char, c_int, c_void};
use rexec_sh::protocol::wire::{Attributes, RunRequest};

use super::baseline::{Baseline, RESOURCES, resource_number};
use super::control::StartStage;
use super::extras::Changes;
use crate::limits;
use crate::sys;
use rexec_sh::protocol::process::Pid;

/// Signals that the guard ignores. The command does not inherit this.
pub(super) const GUARD_IGNORES: [c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTTIN, libc::SIGTTOU];

/// The search path of execvp(3) if PATH is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// A prepared start: everything that the child needs, in the form for system calls.
pub(super) struct Launch<'a> {
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    /// The possible paths of the shell, in the order in which they are tried.
    candidates: Vec<Cow<'a, CStr>>,
    /// The arguments with which /bin/sh runs a program that has no executable format (ENOEXEC, execvp(3)). The child
    /// puts the program's path into the second place.
    script: Vec<Cell<*const c_char>>,
    attributes: &'a Attributes,
    /// The `cgroup.procs` files of the caller's control groups.
    cgroups: Vec<&'a CStr>,
    directory: Directory<'a>,
    /// Pairs of a descriptor and its target number. No descriptor's own number is a target of another one.
    places: Vec<(RawFd, RawFd)>,
    /// Resource limits that differ from the guard's own, with the number of the resource.
    limits: Vec<(c_int, libc::rlimit64)>,
    oom_score_adj: Option<Vec<u8>>,
    nice: bool,
    affinity: Option<&'a [u8]>,
    extras: Changes,
    place: ShellPlace,
    /// The guard's control socket.
    control: RawFd,
    failure: Cell<Option<(StartStage, i32)>>,
    /// 1 once the guard has closed its copies.
    is_let_go: AtomicU32,
    /// 1 while the child has the guard's memory. The kernel clears it (CLONE_CHILD_CLEARTID, set_tid_address(2)).
    is_in_memory: AtomicU32,
}

/// The place of the shell at its beginning.
#[derive(Debug, Clone, Copy)]
pub(super) enum ShellPlace {
    /// In a background process group of the guard's session.
    Background,
    /// In the foreground process group of this terminal, which controls the guard's session.
    Foreground(RawFd),
    /// As the leader of a session of its own, without a controlling terminal.
    OwnSession,
    /// As the leader of a session of its own. This terminal, which must control no session, becomes its controlling
    /// terminal.
    SessionLeader(RawFd),
}

/// The working directory, as the caller passed it.
enum Directory<'a> {
    Open(RawFd),
    Named(&'a CStr),
}

#[derive(Debug)]
pub(super) struct Descriptors {
    /// `None` if the command gives a path instead.
    pub(super) directory: Option<OwnedFd>,
    pub(super) stdin: Option<OwnedFd>,
    /// The caller's descriptor 0, if the command gets the run's terminal instead.
    pub(super) terminal: Option<OwnedFd>,
    pub(super) inherited: Vec<OwnedFd>,
    pub(super) stdout: RawFd,
    pub(super) stderr: RawFd,
    /// Owns `stdout` and `stderr` if they are pipes.
    pub(super) _kept: Vec<OwnedFd>,
}

impl<'a> Launch<'a> {
    pub(super) fn new(
        run: &'a RunRequest<'a>,
        descriptors: &Descriptors,
        baseline: &Baseline,
        control: &OwnedFd,
    ) -> Self {
        let argv = run.argv.iter().map(CStr::as_ptr).chain([std::ptr::null()]).collect::<Vec<_>>();
        let env = environment(run).map(CStr::as_ptr).chain([std::ptr::null()]).collect();
        let attributes = &run.attributes;
        let stdio = attributes.stdio;
        let mut places = Vec::with_capacity(3 + descriptors.inherited.len());
        places.extend(descriptors.stdin.as_ref().map(|fd| (fd.as_raw_fd(), 0)));
        places.extend(stdio.stdout.then_some((descriptors.stdout, 1)));
        places.extend(stdio.stderr.then_some((descriptors.stderr, 2)));
        places.extend(descriptors.inherited.iter().map(AsRawFd::as_raw_fd).zip(attributes.inherited.iter().copied()));
        let limits = (0..RESOURCES).zip(&attributes.limits).zip(&baseline.limits);
        let limits = limits.filter_map(|((resource, &(soft, hard)), own)| {
            let wanted = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
            (*own != (soft, hard)).then_some((resource, wanted))
        });
        let named = attributes.extras.directory.as_deref().unwrap_or(c"/");
        let directory = descriptors.directory.as_ref().map(|fd| Directory::Open(fd.as_raw_fd()));
        let rest = argv.iter().skip(1).copied();
        let script = [c"/bin/sh".as_ptr(), std::ptr::null()].into_iter().chain(rest).map(Cell::new);
        Self {
            script: script.collect(),
            argv,
            env,
            candidates: candidates(run),
            attributes,
            cgroups: strings(&attributes.extras.cgroups).collect(),
            directory: directory.unwrap_or(Directory::Named(named)),
            places,
            limits: limits.collect(),
            oom_score_adj: (attributes.oom_score_adj != baseline.oom_score_adj)
                .then(|| attributes.oom_score_adj.to_string().into_bytes()),
            nice: attributes.nice != baseline.nice,
            affinity: Some(attributes.affinity.as_slice())
                .filter(|mask| !mask.is_empty() && *mask != baseline.affinity),
            extras: Changes::between(&baseline.extras, &attributes.extras),
            place: ShellPlace::Background,
            control: control.as_raw_fd(),
            failure: Cell::new(None),
            is_let_go: AtomicU32::new(0),
            is_in_memory: AtomicU32::new(0),
        }
    }

    /// Sets the place of the shell; the default is the background of the guard's terminal.
    pub(super) fn begin_at(&mut self, place: ShellPlace) {
        self.place = place;
    }

    /// Adds default environment variables that the caller has not set.
    pub(super) fn add_defaults<const N: usize>(&mut self, defaults: [&'static CStr; N], run: &RunRequest<'a>) {
        let missing = rexec_sh::protocol::environment::missing(defaults, run.env.iter()).map(CStr::as_ptr);
        let end = self.env.len() - 1;
        self.env.splice(end..end, missing);
    }

    /// Makes the shell's process and returns when it has executed the shell. It does that once `let_go` has closed the
    /// guard's copies of the command's descriptors. The process does not keep the guard's control socket meanwhile:
    /// while it waits for a disk, the host still learns of the guard's death.
    ///
    /// # Errors
    /// The step that failed and its errno. There is no process then.
    pub(super) fn start(&self, let_go: &mut dyn FnMut()) -> Result<Pid, (StartStage, i32)> {
        const STACK_BYTES: usize = 64 << 10;
        let mut stack = Vec::<u128>::with_capacity(STACK_BYTES / size_of::<u128>());
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end.cast::<c_void>();
        // musl's clone() refuses the flag, so the child sets the address itself.
        let clear = if cfg!(target_env = "musl") { 0 } else { libc::CLONE_CHILD_CLEARTID };
        let flags = libc::CLONE_VM | clear | libc::SIGCHLD;
        let argument = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        self.is_let_go.store(0, Ordering::Relaxed);
        self.is_in_memory.store(1, Ordering::Relaxed);
        let (nothing, in_memory) = (std::ptr::null_mut::<c_void>(), self.is_in_memory.as_ptr());
        // SAFETY: the child runs on a stack of its own that lives until it has executed or exited, which this waits for,
        // the argument outlives it for the same reason, and `child` makes system calls only.
        let pid = sys::check(unsafe { libc::clone(child, top, flags, argument, nothing, nothing, in_memory) })
            .map_err(|error| (StartStage::Fork, error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
        let_go();
        self.is_let_go.store(1, Ordering::Release);
        wake(&self.is_let_go);
        while self.is_in_memory.load(Ordering::Acquire) != 0 {
            let is_due = !wait_while(&self.is_in_memory, 1, limits::LET_GO_PATIENCE);
            // A child killed before it could set the address has reported nothing.
            if is_due && has_ended(pid) {
                break;
            }
        }
        match self.failure.get() {
            None => Ok(Pid::new(pid)),
            Some(failure) => {
                // SAFETY: the call takes numbers and no status is asked for.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
                Err(failure)
            }
        }
    }

    /// The child's work. Returns the step that failed and its errno; does not return on success.
    fn execute(&self) -> (StartStage, i32) {
        // SAFETY: system calls on numbers and on memory that `Launch` owns, in a process that is about to execute.
        unsafe {
            // Copies of the guard's control socket have the first three numbers.
            [self.control, 0, 1, 2].into_iter().for_each(|fd| _ = libc::close(fd));
            match self.place {
                ShellPlace::Background => _ = libc::setpgid(0, 0),
                ShellPlace::Foreground(terminal) => {
                    libc::setpgid(0, 0);
                    // The guard ignores SIGTTOU, and so does its child so far.
                    libc::tcsetpgrp(terminal, libc::getpid());
                }
                ShellPlace::OwnSession => _ = libc::setsid(),
                ShellPlace::SessionLeader(terminal) => {
                    libc::setsid();
                    libc::ioctl(terminal, libc::TIOCSCTTY, 0);
                }
            }
            self.enter_groups();
            self.set_dispositions();
            libc::umask(self.attributes.umask);
            let entered = match self.directory {
                Directory::Open(fd) => libc::fchdir(fd),
                Directory::Named(path) => libc::chdir(path.as_ptr()),
            };
            if entered < 0 {
                return (StartStage::Directory, last_errno());
            }
            for &(source, target) in &self.places {
                if libc::dup2(source, target) < 0 {
                    return (StartStage::Descriptors, last_errno());
                }
            }
            self.set_scheduling();
            let mask = self.attributes.blocked;
            libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0_usize, size_of::<u64>());
            // A killed guard wakes nobody.
            if self.is_let_go.load(Ordering::Acquire) == 0 {
                wait_while(&self.is_let_go, 0, limits::LET_GO_PATIENCE);
            }
            (StartStage::Exec, self.execute_first())
        }
    }

    /// Executes the first candidate that exists and is executable, as execvp(3) does; returns the errno of a failure.
    ///
    /// # Safety
    /// Only in the child.
    unsafe fn execute_first(&self) -> c_int {
        let mut error = libc::ENOENT;
        for candidate in &self.candidates {
            // SAFETY: the lists end in NULL, and `Launch` keeps what they point to.
            unsafe { libc::execve(candidate.as_ptr(), self.argv.as_ptr(), self.env.as_ptr()) };
            match last_errno() {
                other if self.candidates.len() == 1 && other != libc::ENOEXEC => return other,
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                libc::EACCES => error = libc::EACCES,
                libc::ENOEXEC if self.searches() => {
                    self.script[1].set(candidate.as_ptr());
                    // SAFETY: as above; a Cell has the form of what it holds.
                    unsafe { libc::execve(self.script[0].get(), self.script.as_ptr().cast(), self.env.as_ptr()) };
                    return last_errno();
                }
                other => return other,
            }
        }
        error
    }

    /// Returns true if the program is searched as by execvp(3). Otherwise it is a shell with a known path.
    fn searches(&self) -> bool {
        matches!(self.directory, Directory::Named(_)) || self.attributes.extras.direct.is_some()
    }

    /// Moves this process into its caller's control groups. If a move fails, the command runs in the host's group.
    ///
    /// # Safety
    /// Only in the child.
    unsafe fn enter_groups(&self) {
        for file in &self.cgroups {
            // SAFETY: system calls on strings that end with a NUL. 0 is the process that writes.
            unsafe {
                let file = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                libc::write(file, c"0".as_ptr().cast(), 1);
                libc::close(file);
            }
        }
    }

    /// Sets signal dispositions: ignored for the signals that the caller ignores, else the default.
    ///
    /// # Safety
    /// Only in the child.
    unsafe fn set_dispositions(&self) {
        let ignored = |signal: c_int| self.attributes.ignored & 1 << (signal - 1) != 0;
        for signal in GUARD_IGNORES.into_iter().filter(|&signal| !ignored(signal)) {
            // SAFETY: a disposition without a handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        for signal in (1..=64).filter(|&signal| ignored(signal)) {
            // SAFETY: as above. For signals that the C library reserves the call is refused, which does no harm.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }

    /// Sets priorities and limits, if the kernel permits: a host with lower limits than its caller cannot raise them.
    ///
    /// # Safety
    /// Only in the child.
    unsafe fn set_scheduling(&self) {
        // SAFETY: system calls on numbers and on memory that `Launch` owns.
        unsafe {
            if let Some(text) = &self.oom_score_adj {
                let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                libc::write(file, text.as_ptr().cast(), text.len());
                libc::close(file);
            }
            if let Some(mask) = self.affinity {
                libc::syscall(libc::SYS_sched_setaffinity, 0, mask.len(), mask.as_ptr());
            }
            if self.nice {
                libc::setpriority(libc::PRIO_PROCESS, 0, self.attributes.nice);
            }
            self.extras.apply();
            for (resource, limit) in &self.limits {
                let number = resource_number(*resource);
                if libc::prlimit64(0, number, limit, std::ptr::null_mut()) < 0 {
                    // The hard limit cannot be raised. The soft limit is raised as far as possible.
                    let mut own = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
                    libc::prlimit64(0, number, std::ptr::null(), &raw mut own);
                    own.rlim_cur = limit.rlim_cur.min(own.rlim_max);
                    libc::prlimit64(0, number, &raw const own, std::ptr::null_mut());
                }
            }
        }
    }
}

/// The command's environment: its caller's, with the host's variables in place of those with the same names.
fn environment<'a>(run: &'a RunRequest<'a>) -> impl Iterator<Item = &'a CStr> {
    let added = &run.attributes.extras.variables;
    let is_replaced = |entry: &CStr| added.iter().any(|variable| name_of(variable) == name_of(entry));
    let kept = run.env.iter().filter(move |entry| added.is_empty() || !is_replaced(entry));
    kept.chain(added.iter().map(|entry| &**entry))
}

/// The strings of a list in which each one ends with a NUL.
fn strings(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|&byte| byte == 0).filter_map(|string| CStr::from_bytes_with_nul(string).ok())
}

fn name_of(entry: &CStr) -> &[u8] {
    entry.to_bytes().split(|&byte| byte == b'=').next().unwrap_or_default()
}

/// The possible paths of a program: for a name without a slash, one in each directory of PATH. An empty entry of PATH
/// is the working directory. Only the child touches them, because a directory may be on a file system that hangs.
fn candidates<'a>(run: &RunRequest<'a>) -> Vec<Cow<'a, CStr>> {
    let name = run.shell.to_bytes();
    if name.contains(&b'/') {
        return vec![Cow::Borrowed(run.shell)];
    }
    let path = run.env.iter().filter_map(|entry| entry.to_bytes().strip_prefix(b"PATH=")).next();
    let place = |folder: &[u8]| {
        let slash: &[u8] = if folder.is_empty() { b"./" } else { b"/" };
        CString::new([folder, slash, name].concat()).expect("strings of a RUN have no NUL inside")
    };
    path.unwrap_or(DEFAULT_PATH).split(|&byte| byte == b':').map(|folder| Cow::Owned(place(folder))).collect()
}

/// Sleeps while the word has this value. Returns false after the timeout.
fn wait_while(word: &AtomicU32, value: u32, patience: Duration) -> bool {
    let time = libc::timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
    // SAFETY: the word and the time outlive the call.
    let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time) };
    answer == 0 || last_errno() != libc::ETIMEDOUT
}

/// Returns true if this child has ended. It stays a zombie.
fn has_ended(child: libc::pid_t) -> bool {
    // SAFETY: the kernel fills the structure, all of whose fields are numbers.
    unsafe {
        let mut ended: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child.cast_unsigned(), &raw mut ended, flags) == 0 && ended.si_pid() == child
    }
}

/// Wakes the sleeper on a word that has changed.
fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

extern "C" fn child(argument: *mut c_void) -> c_int {
    // SAFETY: `start` passes a reference to a `Launch` that outlives this child.
    let launch = unsafe { &*argument.cast::<Launch<'_>>() };
    if cfg!(target_env = "musl") {
        // SAFETY: the word lives as long as the memory in which the kernel clears it.
        unsafe { libc::syscall(libc::SYS_set_tid_address, launch.is_in_memory.as_ptr()) };
    }
    launch.failure.set(Some(launch.execute()));
    // SAFETY: ends this process without running anything of the guard's.
    unsafe { libc::_exit(127) }
}
