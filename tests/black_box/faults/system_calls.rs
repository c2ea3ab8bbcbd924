//! The system calls of the host's thread: a list of those that its loop may make. None of them waits, as it makes them, but
//! those that its poll sleeps in.
//!
//! How long each takes is not judged here, where a tracer and other tests have the processors: `support::host_watch` looks
//! at every host of the tests for that.

use std::collections::BTreeSet;
use std::fs;

use crate::sandbox::{caged, can_run, rexec};
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::PATIENCE;

/// Where the loop sleeps.
const SLEEPS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// What it does with descriptors that do not block, with memory, with processes and with what the kernel knows.
const CALLS: &str = "\
    accept accept4 arch_prctl bind brk clock_gettime clone clone3 close close_range dup dup2 dup3 epoll_create1 epoll_ctl \
    eventfd2 exit exit_group faccessat faccessat2 access fchmod fchmodat chmod fcntl fstat ftruncate getdents64 \
    getegid geteuid getgid getpeername getpgid getpgrp getpid getppid getpriority getrandom getrlimit getsid getsockname \
    getsockopt gettid getuid inotify_add_watch inotify_init1 inotify_rm_watch ioctl ioprio_get keyctl kill listen lseek lstat \
    madvise memfd_create mkdir mkdirat mknod mknodat mmap mprotect mremap munmap newfstatat open openat openat2 personality pidfd_open \
    pidfd_send_signal pipe2 prctl pread64 prlimit64 pwrite64 read readlink readlinkat recvfrom recvmmsg recvmsg rename \
    renameat renameat2 rmdir rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait sched_getaffinity sched_getattr \
    sched_getparam sched_getscheduler sendmsg sendto setpgid setsockopt shutdown sigaltstack signalfd4 socket socketpair \
    splice stat statx sysinfo tgkill timerfd_create timerfd_settime umask uname unlink unlinkat write writev restart_syscall";

/// Calls that wait unless they are told not to: what shows that they were.
const TOLD: &[(&str, &str)] = &[
    ("wait4", "WNOHANG"),
    ("waitid", "WNOHANG"),
    ("flock", "LOCK_NB"),
    ("poll", ", 0)"),
    ("ppoll", "tv_sec=0, tv_nsec=0"),
];

/// Files that may be opened or looked at by name: those of the kernel, and those beside the host's socket.
fn may_be_named(line: &str, home: &str) -> bool {
    const BY_NAME: [&str; 9] =
        ["open", "stat", "lstat", "newfstatat", "access", "faccessat", "readlink", "unlink", "rename"];
    const KERNELS: [&str; 4] = ["/proc", "/dev/ptmx", "/dev/null", "/etc/localtime"];
    let Some(path) = line.split('"').nth(1).filter(|_| BY_NAME.iter().any(|call| line.starts_with(call))) else {
        return true;
    };
    let is_relative = !path.starts_with('/');
    is_relative || path.starts_with(home) || KERNELS.iter().any(|kernels| path.starts_with(kernels))
}

#[test]
fn the_loop_makes_no_system_call_that_may_wait() {
    let place = TempDir::new(None);
    let trace = place.join("trace");
    let works = std::process::Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        return programs::skipped("strace(1) cannot trace anything here");
    }
    let file: &'static str = Box::leak(trace.display().to_string().into_boxed_str());
    let wrapper: &'static [&'static str] = Box::leak(Box::new(["strace", "-qq", "-s", "200", "-o", file]));
    let host = Host::with(Setup { wrapper, ..MIRROR });
    let home = host.home.path().display().to_string();
    let begun = fs::read_to_string(&trace).expect("a trace").lines().count();
    for script in ["echo hi; exit 3", "seq 1 300000 | tail -n 1", "sleep 0.2 & echo left", "cd /; nosuchprogram-zz"] {
        host.run(script);
    }
    if can_run() {
        caged(&host, "echo caged; sleep 0.1").run(Target::Real);
    }
    let mut long =
        host.call("trap '' TERM; echo ready; sleep 1000").start(Target::Shim(&host.socket())).expect("a shim");
    assert!(long.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
    let seq =
        host.wait_for("its start", |journal| journal.of_type("start").last().map(|start| start["seq"].to_string()));
    for words in [&["ps", "-v"][..], &["status"], &["services"], &["pause", &seq], &["resume", &seq], &["kill", &seq]] {
        rexec(&host, words);
    }
    long.finish(PATIENCE).expect("it ends");
    host.wait_idle();
    let text = fs::read_to_string(&trace).expect("a trace");
    let mut wrong = BTreeSet::new();
    let known: BTreeSet<&str> = CALLS.split_ascii_whitespace().chain(SLEEPS.iter().copied()).collect();
    for line in text.lines().skip(begun).filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase())) {
        let name = line.split('(').next().unwrap_or_default();
        let told = TOLD.iter().find(|(call, _)| *call == name);
        let is_right = told.map_or_else(|| known.contains(name), |(_, words)| line.contains(words));
        if !is_right || !may_be_named(line, &home) {
            wrong.insert(line.to_owned());
        }
    }
    assert!(text.lines().count() > begun + 100, "nothing was traced");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
