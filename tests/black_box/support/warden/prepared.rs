//! The child's side of a start: it becomes the warden, and its own child the program.
//!
//! Invariant: between fork and execve only system calls are made, on values that were prepared before.

use std::ffi::{CString, c_void};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use nix::errno::Errno;
use nix::libc::{self, c_char, c_int};
use nix::sys::resource::Resource;

use super::{Control, PID, Plan, STATUS};

const STACK_BYTES: usize = 256 << 10;

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

/// The program's process until it executes.
extern "C" fn program(prepared: *mut c_void) -> c_int {
    // SAFETY: the warden, whose memory this is, stands still until this process has executed or exited.
    let prepared = unsafe { &*prepared.cast_const().cast::<Prepared>() };
    let error = prepared.become_program().expect_err("execve returns with an error only");
    let errno = error as i32;
    // SAFETY: the kernel reads four bytes from the number.
    unsafe {
        libc::write(prepared.failure, (&raw const errno).cast(), 4);
        libc::_exit(126)
    }
}

/// A plan in the form of system calls.
pub(super) struct Prepared {
    plan: Plan,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    /// As many numbers as there are descriptors, to be filled after the fork without allocating.
    moved: Vec<RawFd>,
    /// How many descriptors the program may have, soft and hard.
    files: (u64, u64),
    report: RawFd,
    failure: RawFd,
    /// For the program's process until it executes.
    stack: Vec<u128>,
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
    pub(super) fn new(plan: Plan, files: (u64, u64), report: RawFd, failure: RawFd) -> Self {
        let (argv, env) = (pointers(&plan.argv), pointers(&plan.env));
        let moved = vec![0; plan.descriptors.len()];
        Self { plan, argv, env, moved, files, report, failure, stack: vec![0; STACK_BYTES / size_of::<u128>()] }
    }

    /// Never returns: the caller becomes the warden.
    pub(super) fn run(&self) -> io::Result<()> {
        // SAFETY: system calls on our own descriptors and memory, in a process with one thread. The child has a stack of its
        // own, and this process stands still until the child has executed or exited.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
            for signal in [libc::SIGTTIN, libc::SIGTTOU, libc::SIGHUP, libc::SIGPIPE] {
                libc::signal(signal, libc::SIG_IGN);
            }
            if let Control::Background(terminal) = &self.plan.control {
                check(libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0))?;
            }
            // The memory of the tests is copied once, for the warden, and not again for the program.
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let top = self.stack.as_ptr_range().end.cast_mut().cast();
            let argument = std::ptr::from_ref(self).cast_mut().cast();
            self.watch(check(libc::clone(program, top, flags, argument))?)
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
            // The tests may have been started with signals ignored, as a shell does for background jobs.
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
            for &signal in state.ignored {
                libc::signal(signal as c_int, libc::SIG_IGN);
            }
            libc::umask(state.umask);
            // Only root may lower the value that the tests were started with.
            if state.nice > libc::getpriority(libc::PRIO_PROCESS, 0) {
                check(libc::setpriority(libc::PRIO_PROCESS, 0, state.nice))?;
            }
            if let Some(nth) = state.cpu {
                let (mut allowed, mut set): (libc::cpu_set_t, libc::cpu_set_t) =
                    (std::mem::zeroed(), std::mem::zeroed());
                check(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed))?;
                let mut cpus = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed));
                libc::CPU_SET(cpus.nth(nth).ok_or(Errno::EINVAL)?, &mut set);
                check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set))?;
            }
            // A core file would lie among the files that are compared.
            let mut core: libc::rlimit = std::mem::zeroed();
            check(libc::getrlimit(libc::RLIMIT_CORE, &raw mut core))?;
            core.rlim_cur = 0;
            check(libc::setrlimit(libc::RLIMIT_CORE, &raw const core))?;
            let files = (Resource::RLIMIT_NOFILE, self.files.0, self.files.1);
            for &(resource, soft, hard) in [files].iter().chain(state.limits) {
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
        let above = self.plan.above_numbers();
        // SAFETY: `moved` has a place for each descriptor, and nothing else uses it.
        unsafe {
            for (n, (fd, _)) in self.plan.descriptors.iter().enumerate() {
                *moved.add(n) = check(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, above))?;
            }
            for fd in 0..3 {
                libc::close(fd);
            }
            for (n, &(_, number)) in self.plan.descriptors.iter().enumerate() {
                check(libc::dup2(*moved.add(n), number))?;
            }
            let above = libc::c_uint::try_from(above).unwrap_or(3);
            libc::syscall(libc::SYS_close_range, above, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        }
        Ok(())
    }
}
