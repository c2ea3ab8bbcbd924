//! What a command leaves running is named, listed, and ended when a person asks. What the caller's own shell would have
//! lost to a kill is killed.

use std::process::Output;
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::{self, Signal::SIGKILL};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd;

use crate::support::call::{Calling, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

pub(super) fn rexec(host: &Host, args: &[&str]) -> Output {
    let mut command = programs::command(programs::rexec());
    command.args(args).env_clear().env("REXEC_SOCKET", host.socket());
    command.output().expect("rexec runs")
}

pub(super) fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub(super) fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

/// The process whose number a script wrote into this file.
pub(super) fn written(host: &Host, file: &str) -> Process {
    let read = || Process::of(std::fs::read_to_string(host.home.join(file)).ok()?.trim().parse().ok()?);
    waiting::until(PATIENCE, read).unwrap_or_else(|| panic!("nothing in {file}"))
}

#[test]
fn what_is_left_running_is_named_listed_and_ended() {
    let host = Host::start();
    let script = "sleep 1000 >/dev/null 2>&1 & echo $! > server; echo started";
    assert_eq!(host.run(script).out(), "started\n");
    let server = written(&host, "server");
    let end = host.wait_for("its end", |journal| journal.end_of(script).cloned());
    assert_eq!((end["left_count"].as_u64(), end["left"][0]["pid"].as_i64()), (Some(1), Some(server.pid.into())));
    let line = format!("({})", server.pid);
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains(&line)), "{}", host.console_text());
    let (code, list, _) = said(&rexec(&host, &["ps", "-v"]));
    assert!(code == Some(0) && list.contains("left") && list.contains(&format!(" {}  sleep ", server.pid)), "{list}");
    let seq = end["seq"].to_string();
    assert_eq!(said(&rexec(&host, &["kill", &seq])), (Some(0), format!("#{seq} has ended\n"), String::new()));
    assert!(!server.is_alive());
    assert!(said(&rexec(&host, &["ps"])).1.starts_with("nothing runs · host up "));
    host.finish();
}

/// A process of the first command in a session of its own, which gets no SIGHUP from the kernel when its guard dies; and
/// that guard.
fn left_and_its_guard(host: &Host) -> (Process, Process) {
    assert_eq!(host.run("setsid sleep 1000 >/dev/null 2>&1 & echo $! >left; echo $PPID >guard").code(), 0);
    (written(host, "left"), written(host, "guard"))
}

fn is_stopped(process: &Process) -> bool {
    Process::of(process.pid).is_some_and(|now| now.state == 'T')
}

/// A guard that dies takes with it what it knew of the pause.
#[test]
fn what_was_paused_goes_on_when_it_is_resumed_although_its_guard_is_dead() {
    let host = Host::start();
    let (left, guard) = left_and_its_guard(&host);
    assert_eq!(said(&rexec(&host, &["pause", "1"])).0, Some(0));
    waiting::wait_until("a pause", || is_stopped(&left));
    guard.signal(SIGKILL);
    waiting::wait_until("the end of its guard", || !guard.is_alive());
    assert_eq!(said(&rexec(&host, &["resume", "1"])).0, Some(0));
    waiting::wait_until("what was paused to go on", || left.is_alive() && !is_stopped(&left));
    let (code, _, err) = said(&rexec(&host, &["resume", "1"]));
    assert!(code == Some(1) && err.contains("#1 is not paused"), "{err}");
    assert_eq!(said(&rexec(&host, &["kill", "1"])).0, Some(0));
    host.finish();
}

/// A process that stands still under ptrace(2), where no signal but SIGKILL has it go on.
struct Held(unistd::Pid);

impl Held {
    fn at_once(process: &Process) -> Self {
        let pid = unistd::Pid::from_raw(process.pid);
        ptrace::seize(pid, ptrace::Options::empty()).expect("it can be traced");
        ptrace::interrupt(pid).expect("it is traced");
        assert!(matches!(waitpid(pid, None), Ok(WaitStatus::PtraceEvent(..))), "it stands still");
        Self(pid)
    }

    fn kill(self) {
        signal::kill(self.0, SIGKILL).expect("it can be killed");
        assert!(matches!(waitpid(self.0, None), Ok(WaitStatus::Signaled(..))), "it is dead");
    }
}

/// A guard that stands still has its orders in its socket when it is killed, so it never obeys them.
#[test]
fn a_pause_and_its_end_hold_although_the_guard_dies_with_the_order() {
    for is_resumed in [false, true] {
        let host = Host::start();
        let (left, guard) = left_and_its_guard(&host);
        if is_resumed {
            assert_eq!(said(&rexec(&host, &["pause", "1"])).0, Some(0));
            waiting::wait_until("a pause", || is_stopped(&left));
        }
        let held = Held::at_once(&guard);
        // A pause says that something still goes on.
        let (verb, code) = if is_resumed { ("resume", 0) } else { ("pause", 1) };
        assert_eq!(said(&rexec(&host, &[verb, "1"])).0, Some(code));
        assert_eq!(is_stopped(&left), is_resumed, "the guard heard nothing yet");
        held.kill();
        waiting::wait_until("the order to hold", || left.is_alive() && is_stopped(&left) != is_resumed);
        assert_eq!(said(&rexec(&host, &["kill", "1"])).0, Some(0));
        assert!(!left.is_alive());
        host.finish();
    }
}

#[test]
fn a_command_is_ended_by_its_number_and_its_caller_told() {
    let host = Host::with(Setup { flags: &["--grace", "60"], ..PLAIN });
    let mut calling = start(&host, "trap '' TERM; echo $$ > shell; while :; do sleep 1; done");
    let shell = written(&host, "shell");
    let seq = host.wait_for("its start", |journal| Some(journal.of_type("start").next()?["seq"].to_string()));
    assert!(said(&rexec(&host, &["ps"])).1.contains("running"));
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| rexec(&host, &["kill", &seq]));
        let is_stopping = || said(&rexec(&host, &["ps"])).1.contains("stopping");
        assert!(waiting::until_true(PATIENCE, is_stopping));
        // The grace is a minute: asked again, it is killed at once.
        assert_eq!(said(&rexec(&host, &["kill", &format!("#{seq}")])).0, Some(0));
        first.join().expect("no panic")
    });
    assert_eq!(said(&first), (Some(0), format!("#{seq} has ended\n"), String::new()));
    assert!(!shell.is_alive());
    assert_eq!(calling.finish(PATIENCE).expect("an answer").code(), 128 + 9);
    let (code, out, err) = said(&rexec(&host, &["kill", &seq]));
    assert!(code == Some(3) && out.is_empty() && err.contains(&format!("#{seq}")) && err.contains("hint: "), "{err}");
    host.finish();
}

#[test]
fn what_does_not_end_by_itself_is_killed_after_the_grace() {
    let host = Host::with(Setup { flags: &["--grace", "0.3"], ..PLAIN });
    let stubborn = "setsid sh -c 'trap \"\" TERM; echo $$ > server; while :; do sleep 1; done' >/dev/null 2>&1 & \
                    until [ -s server ]; do :; done";
    assert_eq!(host.run(stubborn).code(), 0);
    let server = written(&host, "server");
    let seq = host.wait_for("its end", |journal| Some(journal.end_of(stubborn)?["seq"].to_string()));
    assert_eq!(said(&rexec(&host, &["kill", &seq])).0, Some(0));
    assert!(!server.is_alive());
    host.finish();
}

/// Killing the guard of left-over processes does not hide them.
#[test]
fn what_is_left_running_without_its_guard_is_listed_and_ended() {
    let host = Host::with(Setup { flags: &["--grace", "0.3"], ..PLAIN });
    let other = "sleep 1000 >/dev/null 2>&1 & echo $! > other";
    assert_eq!(host.run(other).code(), 0);
    let other = written(&host, "other");
    let scripts = [
        "sleep 1000 >/dev/null 2>&1 & echo $PPID > guard; echo $! > server",
        "setsid sh -c 'trap \"\" TERM; echo $$ > server; while :; do sleep 1; done' >/dev/null 2>&1 & \
         echo $PPID > guard; until [ -s server ]; do :; done",
    ];
    for script in scripts {
        assert_eq!(host.run(script).code(), 0);
        let (guard, server) = (written(&host, "guard"), written(&host, "server"));
        let seq = host.wait_for("its end", |journal| Some(journal.end_of(script)?["seq"].to_string()));
        guard.signal(SIGKILL);
        let is_adopted = || Process::of(server.pid).is_some_and(|server| server.parent == host.pid());
        assert!(waiting::until_true(PATIENCE, is_adopted), "{:#?}", host.tree());
        let named = format!(" {}  ", server.pid);
        let is_listed = |list: &str| list.contains("left") && list.contains(&named);
        let list = || said(&rexec(&host, &["ps", "-v"])).1;
        assert!(waiting::until_true(PATIENCE, || is_listed(&list())), "{script}: {}", list());
        assert!(server.is_alive(), "{script}: it was killed unasked");
        assert_eq!(said(&rexec(&host, &["kill", &seq])), (Some(0), format!("#{seq} has ended\n"), String::new()));
        assert!(!server.is_alive() && !list().contains(&named), "{script}");
        for file in ["guard", "server"] {
            std::fs::remove_file(host.home.join(file)).expect("it was written");
        }
    }
    assert!(other.is_alive(), "it is another command's");
    other.signal(SIGKILL);
    host.finish();
}

/// One that ends by itself is forgotten.
#[test]
fn what_ends_without_its_guard_is_forgotten() {
    let host = Host::start();
    assert_eq!(host.run("sleep 1000 >/dev/null 2>&1 & echo $PPID > guard; echo $! > server").code(), 0);
    let (guard, server) = (written(&host, "guard"), written(&host, "server"));
    guard.signal(SIGKILL);
    assert!(waiting::until_true(PATIENCE, || Process::of(server.pid).is_some_and(|now| now.parent == host.pid())));
    server.signal(SIGKILL);
    assert!(waiting::until_true(PATIENCE, || said(&rexec(&host, &["ps"])).1.starts_with("nothing runs ")));
    host.finish();
}

#[test]
fn a_sandboxed_caller_sees_and_ends_nothing() {
    if !programs::has("setpriv") {
        return programs::skipped("setpriv is not there");
    }
    let host = Host::start();
    let calling = start(&host, "echo $$ > shell; exec sleep 1000");
    let shell = written(&host, "shell");
    for args in [&["ps"][..], &["kill", "1"]] {
        let mut command = programs::command("setpriv");
        command.arg("--no-new-privs").arg(programs::rexec()).args(args);
        let (code, out, err) = said(&command.env("REXEC_SOCKET", host.socket()).output().expect("setpriv runs"));
        assert!(code == Some(1) && out.is_empty() && err.contains("sandboxed"), "{args:?}: {code:?} {out} {err}");
    }
    assert!(shell.is_alive());
    calling.warden.signal(SIGKILL);
    host.finish();
}

#[test]
fn what_codex_would_kill_is_killed() {
    let host = Host::start();
    let script = "sleep 1000 >/dev/null 2>&1 & echo $! > member; \
                  setsid sh -c 'echo $$ > server; exec sleep 1000' >/dev/null 2>&1 & \
                  until [ -s server ]; do :; done; echo late > >(sleep 0.05; cat)";
    // What the group writes soon. A busy machine may be late with that, so one success is enough.
    let is_there = (0..20).any(|_| {
        _ = std::fs::remove_file(host.home.join("server"));
        let seen = host.call(script).env("CODEX_CI=1").run(Target::Shim(&host.socket()));
        assert_eq!(seen.code(), 0, "{seen:?}");
        let is_there = seen.out() == "late\n";
        if !is_there {
            written(&host, "server").signal(SIGKILL);
        }
        is_there
    });
    assert!(is_there, "output of the group comes before its end");
    let server = written(&host, "server");
    let member = std::fs::read_to_string(host.home.join("member")).expect("a pid").trim().parse().expect("a pid");
    assert!(waiting::until_true(PATIENCE, || Process::of(member).is_none_or(|process| process.is_zombie())));
    assert!(server.is_alive(), "what left the group lives");
    let is_its = |end: &&serde_json::Value| end["left"][0]["pid"].as_i64() == Some(server.pid.into());
    let end = host.wait_for("its end", |journal| journal.of_type("end").find(is_its).cloned());
    assert_eq!((end["left_count"].as_u64(), end["left"][0]["pid"].as_i64()), (Some(1), Some(server.pid.into())));
    server.signal(SIGKILL);
    std::fs::remove_file(host.home.join("server")).expect("it was written");
    assert_eq!(host.run(script).code(), 0);
    for left in ["member", "server"].map(|file| written(&host, file)) {
        assert!(left.is_alive(), "any other caller's group lives on");
        left.signal(SIGKILL);
    }
    host.finish();
}

#[test]
fn what_leaves_codexs_group_in_time_lives() {
    let host = Host::start();
    // The guard, which kills the group, stands still until the server has left it, after the shell's end. The host may
    // continue the guard too soon, so one success is enough.
    let script = "P=$$ G=$PPID; (while grep -q ') [^Z]' /proc/$P/stat; do sleep 0.01; done; \
                  exec setsid sh -c \"echo \\$\\$ > server; kill -CONT $G; exec sleep 1000\") >/dev/null 2>&1 & \
                  kill -STOP $PPID";
    let server = (0..40).find_map(|_| {
        assert_eq!(host.call(script).env("CODEX_CI=1").run(Target::Shim(&host.socket())).code(), 0);
        let read = || Process::of(std::fs::read_to_string(host.home.join("server")).ok()?.trim().parse().ok()?);
        waiting::until(Duration::from_secs(1), read)
    });
    let server = server.expect("it has left the group");
    assert!(server.is_alive());
    // Servers that were given up may live, too.
    host.tree().iter().filter(|process| process.comm == "sleep").for_each(|late| late.signal(SIGKILL));
    host.finish();
}
