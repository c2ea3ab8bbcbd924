//! The command of a sandboxed caller runs inside that sandbox, in the real shell, and never in the host.

#![expect(unsafe_code, reason = "seccomp and Landlock have no safe interface")]

mod blind;
mod outputs;
mod relays;
mod report_control;
mod report_marks;
mod report_names;
pub(crate) mod reporters;
mod reports;
mod rpc_clients;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(crate) use reports::{caged, can_run};

use crate::faults::peers::{request, send};
use crate::support::call::{Outcome, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::own_process::only;
use crate::support::procs;
use crate::support::programs;
use nix::libc;
use rexec_sh::protocol::wire::{Decoded, FromHost, HELLO_BYTES};

struct Sandbox {
    /// What puts the shim into the sandbox; `@` is [`enter`].
    enter: &'static str,
    /// A command that prints `inside` when the sandbox holds.
    probe: &'static str,
    /// What the console says it is.
    why: &'static str,
    needs_root: bool,
}

const TABLE: &[Sandbox] = &[
    Sandbox {
        enter: "setpriv --no-new-privs",
        probe: "grep -q 'NoNewPrivs:.1' /proc/self/status && echo inside",
        why: "no_new_privs",
        needs_root: false,
    },
    Sandbox {
        enter: "@ seccomp",
        probe: "grep -q 'Seccomp_filters:.1' /proc/self/status && echo inside",
        why: "seccomp filter",
        needs_root: false,
    },
    Sandbox {
        enter: "@ landlock",
        probe: "(echo >>$HOME/no) 2>/dev/null || echo inside",
        why: "no_new_privs",
        needs_root: false,
    },
    Sandbox {
        enter: "unshare --user",
        probe: "test $(readlink /proc/self/ns/user) != $OUTSIDE_USER && echo inside",
        why: "other user namespace",
        needs_root: false,
    },
    Sandbox {
        enter: "unshare --user --map-root-user --net --mount --pid --fork",
        probe: "test $(readlink /proc/self/ns/net) != $OUTSIDE_NET && echo inside",
        why: "other user namespace",
        needs_root: false,
    },
    Sandbox {
        enter: "bwrap --dev-bind / / --unshare-net",
        probe: "test $(readlink /proc/self/ns/net) != $OUTSIDE_NET && echo inside",
        why: "",
        needs_root: false,
    },
    Sandbox {
        enter: "unshare --net",
        probe: "test $(readlink /proc/self/ns/net) != $OUTSIDE_NET && echo inside",
        why: "other network namespace",
        needs_root: true,
    },
    Sandbox {
        enter: "unshare --ipc",
        probe: "test $(readlink /proc/self/ns/ipc) != $OUTSIDE_IPC && echo inside",
        why: "other ipc namespace",
        needs_root: true,
    },
    Sandbox {
        enter: "unshare --uts",
        probe: "test $(readlink /proc/self/ns/uts) != $OUTSIDE_UTS && echo inside",
        why: "other uts namespace",
        needs_root: true,
    },
    Sandbox {
        enter: "unshare --mount",
        probe: "test $(readlink /proc/self/ns/mnt) != $OUTSIDE_MNT && echo inside",
        why: "other mount namespace",
        needs_root: true,
    },
    Sandbox {
        enter: "unshare --pid --fork",
        probe: "test $$ -lt 5 && echo inside",
        why: "other pid namespace",
        needs_root: true,
    },
    Sandbox {
        enter: "unshare --pid",
        probe: "test $(sh -c 'echo $$') -lt 5 && echo inside",
        why: "",
        needs_root: true,
    },
    Sandbox {
        enter: "setpriv --bounding-set=-all",
        probe: "grep -q 'CapBnd:.0000000000000000' /proc/self/status && echo inside",
        why: "other capabilities",
        needs_root: true,
    },
    Sandbox {
        enter: "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace",
        probe: "test $(grep CapBnd /proc/self/status | cut -f 2) != $OUTSIDE_BND && echo inside",
        why: "other capabilities",
        needs_root: true,
    },
    Sandbox {
        enter: "setpriv --groups=4242",
        probe: "id -G | grep -q 4242 && echo inside",
        why: "other groups",
        needs_root: true,
    },
];

/// The variable that makes this binary [`enter`].
const MODE: &str = "REXEC_TEST_MODE";

/// The users that hosts and callers run as.
fn users() -> Vec<Option<u32>> {
    [None].into_iter().chain(programs::another_user().map(Some)).collect()
}

/// This binary, told to be nothing but [`enter`], which its first test is when [`MODE`] says what to enter.
fn helper() -> String {
    let me = std::env::current_exe().expect("a test is a file");
    let test = "sandbox::commands_of_sandboxed_callers_stay_inside";
    format!("'{}' {} --test-threads=1 9>&1 >/dev/null", me.display(), only(test).join(" "))
}

/// Whether a host in this place looks at its callers at all.
pub(crate) fn has_sight() -> bool {
    let sees = !crate::support::host::has_no_new_privs();
    if !sees {
        programs::skipped("everything here has no_new_privs, so that no host can tell its callers apart");
    }
    sees
}

fn run(host: &Host, sandbox: &Sandbox) -> Outcome {
    let shim = programs::shims().join("bash");
    let enter = |what: &str| match sandbox.enter.strip_prefix("@ ") {
        Some(mode) => format!("REXEC_TEST_MODE={mode} REXEC_TEST_EXEC='{what}' {}", helper()),
        None => format!("{} {what}", sandbox.enter),
    };
    let script = format!(
        "for n in net uts mnt user ipc; do export OUTSIDE_${{n^^}}=$(readlink /proc/self/ns/$n); done
        export OUTSIDE_BND=$(grep CapBnd /proc/self/status | cut -f 2)
        {} 2>/dev/null || exit 77
        unset REXEC_INSIDE
        cat >go <<'END'\nunset REXEC_TEST_MODE REXEC_TEST_EXEC; exec '{}' -c \"$PROBE\"\nEND
        exec {}",
        enter("true"),
        shim.display(),
        enter("bash go").replace("REXEC_TEST_MODE", "env REXEC_TEST_MODE"),
    );
    let call = host.call(&script).env(&format!("REXEC_SOCKET={}", host.socket().display()));
    call.env(&format!("PROBE={}", sandbox.probe)).env("REXEC_WHOAMI=caged").run(Target::Real)
}

#[test]
#[ignore = "long: 15 kinds of sandbox, as every user"]
fn commands_of_sandboxed_callers_stay_inside() {
    if let Ok(mode) = std::env::var(MODE) {
        return enter(&mode);
    }
    if !has_sight() {
        return;
    }
    let mut wrong = Vec::new();
    for user in users() {
        let host = Host::with(Setup { user, flags: &["--no-reports"], ..PLAIN });
        let is_root = user.is_none() && nix::unistd::geteuid().is_root();
        for sandbox in TABLE.iter().filter(|sandbox| is_root || !sandbox.needs_root) {
            let tool = sandbox.enter.split(' ').next().expect("a program");
            if tool != "@" && !programs::has(tool) {
                continue;
            }
            let seen = run(&host, sandbox);
            if seen.code() == 77 {
                programs::skipped(&format!("{} cannot be had here", sandbox.enter));
                continue;
            }
            let line = format!("… caged is sandboxed ({}", sandbox.why);
            let is_it = |last: &str| {
                last.starts_with(&line) && last.ends_with(sandbox.probe) && last.contains("): its command runs in its ")
            };
            let has_told = || host.console_text().lines().last().is_some_and(is_it);
            let tells = crate::support::waiting::until_true(crate::support::waiting::PATIENCE, has_told);
            if (seen.out().as_str(), seen.err().as_str(), seen.code(), tells) != ("inside\n", "", 0, true) {
                wrong.push(format!("{} {user:?}: {seen:?}\n{}", sandbox.enter, host.console_text()));
            }
        }
        assert_eq!(host.run("echo outside").out(), "outside\n");
        host.wait_for("the one command", |journal| journal.end_of("echo outside").cloned());
        assert_eq!(host.journal().of_type("start").count(), 1, "{:#?}", host.journal());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_caller_is_looked_at_when_its_command_has_come() {
    if !has_sight() {
        return;
    }
    for user in users() {
        let host = Host::with(Setup { user, ..PLAIN });
        let ask = |mode: &str| {
            let call = host.call(&format!("exec {}", helper()));
            let call = call.env(&format!("REXEC_TEST_SOCKET={}", host.socket().display()));
            call.env(&format!("REXEC_TEST_MODE={mode}")).run(Target::Real).out()
        };
        assert!(ask("late nothing").contains("\"exit\":0,\"output\":\"outside\\n\""), "{}", ask("late nothing"));
        host.wait_for("the first command", |journal| journal.of_type("end").next().map(|_| ()));
        let before = host.journal().of_type("start").count();
        let root_only = if user.is_none() && nix::unistd::geteuid().is_root() { &["late chroot"][..] } else { &[] };
        for mode in ["late seccomp", "late no_new_privs", "late death", "late handover"].iter().chain(root_only) {
            let seen = ask(mode);
            assert!(seen.contains("\"error\":\"refused\"") && seen.contains("is sandboxed"), "{mode}: {seen}");
            assert!(!seen.contains("outside\\n"), "{mode}: {seen}");
        }
        assert_eq!(host.run("echo here").out(), "here\n");
        host.wait_for("the last command", |journal| journal.end_of("echo here").cloned());
        assert_eq!(host.journal().of_type("start").count(), before + 1, "{:#?}", host.journal());
    }
}

/// For two seconds the host remembers whom it has refused, because a report may follow.
#[test]
#[ignore = "long: 16 requests of 7 MB"]
fn what_was_asked_from_a_sandbox_is_not_kept() {
    if !has_sight() {
        return;
    }
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let before = procs::data(host.pid());
    let script = format!("for n in {{1..16}}; do {} || exit; done; echo all were refused", helper());
    let call = host.call(&script).env("REXEC_TEST_MODE=late much");
    let seen = call.env(&format!("REXEC_TEST_SOCKET={}", host.socket().display())).run(Target::Real);
    assert_eq!(seen.out(), "all were refused\n", "{}", seen.err());
    let peak = procs::most_data(host.pid());
    // The one that is read, with what its copies take.
    assert!(peak <= before + (64 << 20), "{before} bytes before, at most {peak}");
}

#[test]
fn a_host_that_is_told_so_runs_everything() {
    let host = Host::with(Setup { flags: &["--allow-sandboxed"], ..PLAIN });
    let sandbox = &TABLE[0];
    assert_eq!(run(&host, sandbox).code(), 1, "the probe found itself outside");
    host.wait_for("the command", |journal| journal.end_of(sandbox.probe).cloned());
}

#[test]
fn a_host_without_sight_says_so_and_runs_nothing() {
    if !has_sight() || !programs::has("setpriv") {
        return;
    }
    let host = Host::with(Setup { wrapper: &["setpriv", "--no-new-privs"], flags: &["--no-reports"], ..PLAIN });
    let text = host.console_text();
    assert!(text.contains("(this host has no_new_privs)") && text.contains("--allow-sandboxed"), "{text}");
    let seen = host.run("grep NoNewPrivs /proc/self/status");
    assert_eq!((seen.out().as_str(), seen.err().as_str()), ("NoNewPrivs:\t0\n", ""), "it ran at its caller's");
    assert_eq!(host.journal().of_type("start").count(), 0);
}

/// What this binary is when it is started again to enter a sandbox, or to call from one by itself.
fn enter(mode: &str) {
    nix::unistd::dup2_stdout(std::io::stderr()).expect("a descriptor");
    if let Some(change) = mode.strip_prefix("late ") {
        return call_late(change);
    }
    if !confine(mode) {
        std::process::exit(77);
    }
    let words = std::env::var("REXEC_TEST_EXEC").expect("what to execute");
    // SAFETY: the shell redirected 9 to the caller's output, and nothing else here knows of it.
    _ = nix::unistd::dup2_stdout(unsafe { std::os::fd::BorrowedFd::borrow_raw(9) });
    panic!("{}", Command::new("bash").args(["-c", &format!("exec 9>&-; exec {words}")]).exec());
}

/// Enters a sandbox, unless the kernel has none of that kind.
fn confine(mode: &str) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    match mode {
        "nothing" => true,
        "no_new_privs" => nix::sys::prctl::set_no_new_privs().is_ok(),
        // A process with CAP_SYS_ADMIN may add a filter without no_new_privs.
        "seccomp" => (is_root || nix::sys::prctl::set_no_new_privs().is_ok()) && allow_everything(),
        "landlock" => nix::sys::prctl::set_no_new_privs().is_ok() && forbid_writing(),
        "chroot" => nix::unistd::chroot("/usr").is_ok(),
        other => panic!("{other} is not a sandbox"),
    }
}

/// A filter that lets every call pass is a filter all the same.
fn allow_everything() -> bool {
    let mut allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
    // SAFETY: the kernel copies a program of one instruction.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0 }
}

/// Landlock without a rule: no file may be made (bit 8).
fn forbid_writing() -> bool {
    let handled: u64 = 1 << 8;
    // SAFETY: the kernel reads the eight bytes that it is told of, and gives a descriptor.
    let rules = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, 8_usize, 0) };
    // SAFETY: the call takes numbers.
    rules >= 0 && unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) } == 0
}

/// Sends a long request, and its last byte from a sandbox: the host has all of it when it looks at its caller.
fn ask_for_much(mut socket: UnixStream) {
    let null = std::fs::File::open("/dev/null").expect("a file");
    let dir = std::fs::File::open("/").expect("a directory");
    let request = request(&"x".repeat(7 << 20), 0);
    let (last, before) = request.split_last().expect("it has bytes");
    let sent = send(&socket, before, &[dir.as_raw_fd(), null.as_raw_fd()]).expect("it takes bytes");
    socket.write_all(&before[sent..]).expect("it takes bytes");
    assert!(confine("no_new_privs"));
    socket.write_all(&[*last]).expect("it takes bytes");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an answer");
    let told = FromHost::decode(&answer[HELLO_BYTES..]);
    assert!(matches!(told, Ok(Decoded::Item(FromHost::Refuse, _))), "{}", answer.escape_ascii());
}

/// Connects, then changes, then asks.
fn call_late(change: &str) {
    let socket = std::env::var_os("REXEC_TEST_SOCKET").expect("a socket");
    let mut socket = UnixStream::connect(socket).expect("a host listens");
    // SAFETY: the shell redirected 9 to the caller's output, and nothing else here knows of it.
    let out = unsafe { std::os::fd::BorrowedFd::borrow_raw(9) }.try_clone_to_owned().expect("a descriptor");
    let request = r#"{"whoami":"late","dir":"/","exec":["echo","outside"]}"#;
    if change == "much" {
        return ask_for_much(socket);
    }
    if change == "death" {
        let script = format!(
            "while test -d /proc/{0} && ! grep -q 'State:.Z' /proc/{0}/status; do sleep .02; done; echo '{request}' >&0; head -n 1",
            std::process::id()
        );
        let socket = programs::command("bash").args(["-c", &script]).stdin(OwnedFd::from(socket)).stdout(out).spawn();
        socket.expect("a shell");
        std::process::exit(0);
    }
    if change == "handover" {
        // The process that connected is not in a sandbox and lives on. The one that asks over its connection is.
        let mut child = programs::command("setpriv");
        child.args(["--no-new-privs", "bash", "-c", &format!("echo '{request}' >&0; head -n 1")]);
        let status = child.stdin(OwnedFd::from(socket)).stdout(out).status();
        assert!(status.expect("setpriv").success());
        return;
    }
    assert!(confine(change), "{change}");
    socket.write_all(format!("{request}\n").as_bytes()).expect("the host takes it");
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).expect("the host answers");
    std::fs::File::from(out).write_all(answer.as_bytes()).expect("the caller reads");
}
