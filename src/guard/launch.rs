//! From the guard to the shell: what happens between clone and execve.
//!
//! The child shares the guard's memory (CLONE_VM, and the guard waits: CLONE_VFORK), which costs no page copies, so it
//! makes system calls only: everything it needs is prepared beforehand in [`Launch`], and what fails is written into
//! [`Launch::failure`] for the guard to read.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::libc::{self, c_char, c_int, c_void};
use rexec_sh::protocol::wire::{Attributes, RunRequest};

use super::baseline::{Baseline, RESOURCES, resource_number};
use super::control::Stage;
use super::extras::Changes;
use crate::sys;
use rexec_sh::protocol::process::Pid;

/// The signals that a guard ignores for itself and that the command must not inherit ignored.
pub(super) const GUARD_IGNORES: [c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTTIN, libc::SIGTTOU];

/// Where execvp(3) looks when PATH is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Everything the child needs, ready for system calls.
pub(super) struct Launch<'a> {
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    /// Where the shell may be, in the order in which they are tried.
    candidates: Vec<Cow<'a, CStr>>,
    /// As [`Launch::argv`], for sh to read a program that has no format of its own; the second is the program's path.
    script: Vec<Cell<*const c_char>>,
    attributes: &'a Attributes,
    directory: Directory<'a>,
    /// Pairs of source and target; no source is a target.
    places: Vec<(RawFd, RawFd)>,
    /// Limits that differ from the guard's own, by number of the resource.
    limits: Vec<(c_int, libc::rlimit64)>,
    oom_score_adj: Option<Vec<u8>>,
    nice: bool,
    affinity: Option<&'a [u8]>,
    extras: Changes,
    terminal: AtTerminal,
    failure: Cell<Option<(Stage, i32)>>,
}

/// Where a shell begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum AtTerminal {
    /// In a background process group of the guard's session.
    Background,
    /// In the foreground process group of this terminal, which controls the guard's session.
    Foreground(RawFd),
    /// As the leader of a session of its own. This terminal, which must control no session, becomes its controlling
    /// terminal.
    Leader(RawFd),
}

/// How the working directory is known.
enum Directory<'a> {
    Open(RawFd),
    Named(&'a CStr),
}

/// The descriptors of a command.
#[derive(Debug)]
pub(super) struct Descriptors {
    /// None when the command names it.
    pub(super) directory: Option<OwnedFd>,
    pub(super) stdin: Option<OwnedFd>,
    /// What came as descriptor 0, where the command gets its own terminal in place of it.
    pub(super) terminal: Option<OwnedFd>,
    pub(super) inherited: Vec<OwnedFd>,
    pub(super) stdout: RawFd,
    pub(super) stderr: RawFd,
    /// Keeps the two numbers above valid.
    pub(super) _kept: Vec<OwnedFd>,
}

impl<'a> Launch<'a> {
    /// Prepares the child of this run.
    pub(super) fn new(run: &'a RunRequest<'a>, descriptors: &Descriptors, baseline: &Baseline) -> Self {
        let argv = run.argv.iter().map(CStr::as_ptr).chain([std::ptr::null()]).collect::<Vec<_>>();
        let env = run.env.iter().map(CStr::as_ptr).chain([std::ptr::null()]).collect();
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
            ((own.rlim_cur, own.rlim_max) != (soft, hard)).then_some((resource, wanted))
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
            directory: directory.unwrap_or(Directory::Named(named)),
            places,
            limits: limits.collect(),
            oom_score_adj: (attributes.oom_score_adj != baseline.oom_score_adj)
                .then(|| attributes.oom_score_adj.to_string().into_bytes()),
            nice: attributes.nice != baseline.nice,
            affinity: Some(attributes.affinity.as_slice())
                .filter(|mask| !mask.is_empty() && *mask != baseline.affinity),
            extras: Changes::between(&baseline.extras, &attributes.extras),
            terminal: AtTerminal::Background,
            failure: Cell::new(None),
        }
    }

    /// Sets where the shell begins; without this call, in the background of the guard's terminal.
    pub(super) fn begin_at(&mut self, terminal: AtTerminal) {
        self.terminal = terminal;
    }

    /// Adds those of the defaults that the caller left unset.
    pub(super) fn add_defaults<const N: usize>(&mut self, defaults: [&'static CStr; N], run: &RunRequest<'a>) {
        let missing = rexec_sh::protocol::environment::missing(defaults, run.env.iter()).map(CStr::as_ptr);
        let end = self.env.len() - 1;
        self.env.splice(end..end, missing);
    }

    /// Makes the shell's process and waits until it has executed the shell.
    ///
    /// # Errors
    /// Where it failed and why; there is no process then.
    pub(super) fn start(&self) -> Result<Pid, (Stage, i32)> {
        const STACK_BYTES: usize = 64 << 10;
        let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let argument = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: the child runs on a stack of its own that lives until it has executed or exited (CLONE_VFORK), the
        // argument outlives it for the same reason, and `child` makes system calls only.
        let pid = sys::check(unsafe { libc::clone(child, top, flags, argument) })
            .map_err(|error| (Stage::Fork, error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
        match self.failure.get() {
            None => Ok(Pid::new(pid)),
            Some(failure) => {
                // SAFETY: the call takes numbers and no status is asked for.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
                Err(failure)
            }
        }
    }

    /// The child's part. Gives where it failed; it does not come back when it succeeds.
    fn execute(&self) -> (Stage, i32) {
        // SAFETY: system calls on numbers and on memory that `Launch` owns, in a process that is about to execute.
        unsafe {
            match self.terminal {
                AtTerminal::Background => _ = libc::setpgid(0, 0),
                AtTerminal::Foreground(terminal) => {
                    libc::setpgid(0, 0);
                    // The guard ignores SIGTTOU, and so does its child so far.
                    libc::tcsetpgrp(terminal, libc::getpid());
                }
                AtTerminal::Leader(terminal) => {
                    libc::setsid();
                    libc::ioctl(terminal, libc::TIOCSCTTY, 0);
                }
            }
            self.set_dispositions();
            libc::umask(self.attributes.umask);
            let entered = match self.directory {
                Directory::Open(fd) => libc::fchdir(fd),
                Directory::Named(path) => libc::chdir(path.as_ptr()),
            };
            if entered < 0 {
                return (Stage::Directory, last_errno());
            }
            for &(source, target) in &self.places {
                if libc::dup2(source, target) < 0 {
                    return (Stage::Descriptors, last_errno());
                }
            }
            self.set_scheduling();
            let mask = self.attributes.blocked;
            libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0_usize, size_of::<u64>());
            (Stage::Exec, self.execute_first())
        }
    }

    /// Executes the first candidate that can be, as execvp(3) does; else why the most promising one could not.
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

    /// Whether the program is started as execvp(3) would do it, and not as a shell that is known by its path.
    fn searches(&self) -> bool {
        matches!(self.directory, Directory::Named(_))
    }

    /// Default for what the guard ignores, ignored for what the caller ignored.
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
            // SAFETY: as above; signals that the C library keeps to itself are refused, which does no harm.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }

    /// What can only be approached is set as far as it goes: a host with less than its caller cannot give more.
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
                    // The hard limit cannot be raised: the soft one as far as it goes.
                    let mut own = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
                    libc::prlimit64(0, number, std::ptr::null(), &raw mut own);
                    own.rlim_cur = limit.rlim_cur.min(own.rlim_max);
                    libc::prlimit64(0, number, &raw const own, std::ptr::null_mut());
                }
            }
        }
    }
}

/// Where a program may be: a name without a slash in each directory of PATH, of which an empty one is the working
/// directory. The directories are looked at in the child, because one of them may be on a file system that hangs.
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

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

extern "C" fn child(argument: *mut c_void) -> c_int {
    // SAFETY: `start` passes a reference to a `Launch` that outlives this child.
    let launch = unsafe { &*argument.cast::<Launch<'_>>() };
    launch.failure.set(Some(launch.execute()));
    // SAFETY: ends this process without running anything of the guard's.
    unsafe { libc::_exit(127) }
}
