//! The system calls of the host's thread, while agents, prompts, floods, kills, a server that does not answer and a
//! terminal that nobody reads want it at once: it makes no call that is not on a list, and sleeps in its poll alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::closing::hang_closes;
use crate::support::call::Target;
use crate::support::crowd::{answer, ask_in_json};
use crate::support::file_server::FileServer;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{PATIENCE, wait_until};

/// Where the loop sleeps.
const SLEEPS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// What it does with descriptors that do not block, with memory, with processes and with what the kernel knows.
const CALLS: &str = "\
    accept4 brk clock_gettime clone clone3 close close_range dup dup3 epoll_ctl eventfd2 exit exit_group fchmod fcntl fstat \
    ftruncate futex getdents64 geteuid getpgid getpid getrandom getsid getsockopt getuid inotify_add_watch inotify_init1 \
    inotify_rm_watch ioctl kill lseek lstat madvise memfd_create mmap mprotect mremap munmap newfstatat open openat \
    pidfd_open pidfd_send_signal pipe2 prctl pread64 prlimit64 pwrite64 read readlink readlinkat recvfrom recvmsg \
    restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn sched_yield sendmsg sendto setsockopt shutdown sigaltstack \
    signalfd4 socket socketpair stat statx tgkill unlink unlinkat write writev";

/// Calls that wait unless they are told not to: what shows that they were.
const TOLD: &[(&str, &str)] =
    &[("wait4", "WNOHANG"), ("waitid", "WNOHANG"), ("flock", "LOCK_UN"), ("ppoll", "tv_sec=0, tv_nsec=0")];

/// It waits for a new guard's word that it has descriptors of its own. That takes less than this, seconds.
const BIRTH: (&str, f64) = ("poll", 0.15);
/// No other call takes longer than this, seconds.
const CALL: f64 = 0.5;

/// Files that may be opened or looked at by name: those of the kernel, and those beside the host's socket.
fn may_be_named(line: &str, home: &str) -> bool {
    const BY_NAME: [&str; 9] =
        ["open", "stat", "lstat", "newfstatat", "access", "faccessat", "readlink", "unlink", "rename"];
    const KERNELS: [&str; 5] = ["/proc", "/dev/ptmx", "/dev/null", "/etc/localtime", "/usr/share/zoneinfo"];
    let Some(path) = line.split('"').nth(1).filter(|_| BY_NAME.iter().any(|call| line.starts_with(call))) else {
        return true;
    };
    let is_relative = !path.starts_with('/');
    is_relative || path.starts_with(home) || KERNELS.iter().any(|kernels| path.starts_with(kernels))
}

/// How long a call took, seconds, as `strace -T` says it.
fn seconds(line: &str) -> f64 {
    let time = line.strip_suffix('>').and_then(|line| line.rsplit_once('<'));
    time.and_then(|(_, time)| time.parse().ok()).unwrap_or(0.0)
}

fn listed(host: &Host) -> Vec<Value> {
    answer(ask_in_json(host, &json!({"action": "list"})))["runs"].as_array().cloned().unwrap_or_default()
}

/// What keeps a host busy, up to the end of its terminal.
fn keep_busy(host: &mut Host) {
    for script in ["echo hi; exit 3", "seq 1 300000", "sleep 0.2 & echo left", "cd /; nosuchprogram-zz"] {
        host.run(script);
    }
    let start = |host: &Host, script: &str| host.call(script).start(Target::Shim(&host.socket())).expect("a shim");
    let state = |host: &Host, seq: &Value, state: &str| {
        listed(host).iter().any(|run| run["seq"] == *seq && run["state"] == state)
    };
    let last = |host: &Host, script: &str| {
        host.wait_for("its start", |journal| {
            journal.of_type("start").find(|start| start["command"] == script).map(|start| start["seq"].clone())
        })
    };
    let asks = "read -r x </dev/tty; echo \"<$x>\"";
    let mut asking = start(host, asks);
    let seq = last(host, asks);
    wait_until("it waits for an answer", || state(host, &seq, "waiting"));
    answer(ask_in_json(host, &json!({"action": "send", "seq": seq, "text": "ann\n"})));
    assert_eq!(asking.finish(PATIENCE).expect("it ends").out(), "<ann>\n");

    let stubborn = "trap '' TERM; echo ready; sleep 1000";
    let mut killed = start(host, stubborn);
    assert!(killed.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
    let seq = last(host, stubborn);
    for action in ["pause", "resume", "kill", "kill"] {
        answer(ask_in_json(host, &json!({"action": action, "seq": seq})));
    }
    killed.finish(PATIENCE).expect("it ends");

    let server = FileServer::start();
    if let Some(server) = &server {
        hang_closes(host, server, 4);
        wait_until("somebody waits for the server", || server.waiting() > 0);
    }
    let flood = "seq 1 100000; seq 1 100000 >&2";
    let mut floods: Vec<_> = (0..4).map(|_| start(host, flood)).collect();
    assert_eq!(host.run("echo on").out(), "on\n");
    floods.iter_mut().for_each(|flood| _ = flood.finish(PATIENCE).expect("it ends"));
    drop(server);
    host.wait_idle();
    let mut left = start(host, "sleep 1000");
    last(host, "sleep 1000");
    host.close_window();
    left.finish(PATIENCE).expect("it ends with the host");
    host.check_gone();
}

#[test]
#[ignore = "long: a busy host below strace"]
fn the_loop_makes_no_call_that_waits_outside_of_its_poll() {
    let place = TempDir::new(None);
    let trace = place.join("trace");
    let works = programs::command("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        return programs::skipped("strace(1) cannot trace anything here");
    }
    let file: &'static str = Box::leak(trace.display().to_string().into_boxed_str());
    let wrapper: &'static [&'static str] = Box::leak(Box::new(["strace", "-qq", "-T", "-s", "200", "-o", file]));
    let flags = &["--prompts", "ask", "--prompt-wait", "300"];
    let mut host = Host::with(Setup { wrapper, flags, terminal: true, is_stuck: true, ..MIRROR });
    let home = host.home.path().display().to_string();
    let begun = fs::read_to_string(&trace).expect("a trace").lines().count();
    keep_busy(&mut host);
    let text = fs::read_to_string(&trace).expect("a trace");
    let known: BTreeSet<&str> = CALLS.split_ascii_whitespace().collect();
    let mut wrong = BTreeMap::new();
    let is_call = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
    for line in text.lines().skip(begun).filter(is_call) {
        let name = line.split('(').next().unwrap_or_default();
        let sleeps = SLEEPS.contains(&name);
        let told = TOLD.iter().find(|(call, _)| *call == name);
        let longest = if name == BIRTH.0 { BIRTH.1 } else { CALL };
        let is_right =
            sleeps || name == BIRTH.0 || told.map_or_else(|| known.contains(name), |(_, words)| line.contains(words));
        if !is_right || !may_be_named(line, &home) || (!sleeps && seconds(line) > longest) {
            wrong.entry(name).or_insert(line);
        }
    }
    assert!(text.lines().count() > begun + 100, "nothing was traced");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
