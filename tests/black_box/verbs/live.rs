//! Verbs about commands that run: pause, resume, kill with a signal, status.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::support::call::{Calling, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// What rexec prints beside this host, and its exit code.
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn rexec(host: &Host, args: &[&str]) -> Said {
    let mut command = Command::new(programs::rexec());
    command.args(args).env_clear().env("PATH", programs::PATH).stdin(Stdio::null());
    command.env("REXEC_SOCKET", host.socket()).env("REXEC_HOME", host.journal_home());
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Said { code: status.code().expect("it exits"), out: text(stdout), err: text(stderr) }
}

fn start(host: &Host, name: &str, script: &str) -> Calling {
    let call = host.call(script).env(&format!("REXEC_WHOAMI={name}"));
    call.start(Target::Shim(&host.socket())).expect("the shim starts")
}

/// The processes whose numbers the command has written into `pids`, once there are this many.
fn processes(host: &Host, count: usize) -> Vec<Process> {
    let pids = || {
        let text = fs::read_to_string(host.home.join("pids")).unwrap_or_default();
        let found: Vec<Process> =
            text.split_ascii_whitespace().filter_map(|pid| Process::of(pid.parse().ok()?)).collect();
        (found.len() >= count).then_some(found)
    };
    waiting::until(PATIENCE, pids).expect("the command starts")
}

fn state(process: &Process) -> char {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

const TREE: &str = "echo $$ >>pids; sleep 1000 & echo $! >>pids; setsid sh -c 'echo $$ >>pids; sleep 1000; :' & \
                    (kill -STOP $BASHPID) & echo $! >>pids; until test -e go; do sleep 0.05; done; echo went on; kill %1";

#[test]
fn a_paused_command_stands_still_and_goes_on_where_it_was() {
    let host = Host::start();
    let mut calling = start(&host, "Ann", TREE);
    let tree = processes(&host, 4);
    let stopped = &tree[2..];
    assert!(waiting::until_true(PATIENCE, || stopped.iter().any(|process| state(process) == 'T')));
    let said = rexec(&host, &["pause", "#1"]);
    assert_eq!((said.code, said.out.as_str()), (0, "#1 is paused\n"), "{}", said.err);
    assert!(tree.iter().all(|process| state(process) == 'T'));
    assert!(rexec(&host, &["ps"]).out.contains("paused"));
    assert_eq!(rexec(&host, &["status", "--short"]).out, "1 run, 1 paused\n");
    fs::write(host.home.join("go"), "").expect("a file");
    assert!(rexec(&host, &["pause", "--all"]).err.contains("nothing runs that can be paused"));
    assert!(tree.iter().all(|process| state(process) == 'T'), "it noticed the file");
    let said = rexec(&host, &["resume", "--agent", "ann"]);
    assert_eq!((said.code, said.out.as_str()), (0, "#1 goes on\n"), "{}", said.err);
    let (mut out, mut code) = (String::new(), 0);
    // What the command itself stopped stays so, and is hung up at its end.
    waiting::wait_until("its end", || {
        let outcome = calling.finish_early(PATIENCE);
        outcome.is_some_and(|seen| {
            (out, code) = (seen.out(), seen.code());
            true
        })
    });
    assert_eq!((out.as_str(), code), ("went on\n", 0));
    assert!(host.console_text().contains("#1 is paused: you asked"), "{}", host.console_text());
    let said = rexec(&host, &["kill", "1"]);
    assert!(said.code == 0 || said.err.contains("no command #1 runs"), "{}", said.err);
    host.finish();
}

#[test]
fn a_paused_command_can_be_ended_by_a_person_and_by_its_caller() {
    let host = Host::start();
    let mut first = start(&host, "Ann", "echo $$ >>pids; sleep 1000; :");
    let tree = processes(&host, 1);
    assert_eq!(rexec(&host, &["pause", "1"]).code, 0);
    assert_eq!(rexec(&host, &["kill", "1"]).out, "#1 has ended\n");
    assert_eq!(first.finish(PATIENCE).expect("it ends").code(), 143);
    assert!(!tree[0].is_alive());
    fs::remove_file(host.home.join("pids")).expect("the file");
    let second = start(&host, "Ann", "echo $$ >>pids; setsid sleep 1000 & echo $! >>pids; wait");
    let tree = processes(&host, 2);
    assert_eq!(rexec(&host, &["pause", "2"]).code, 0);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(second.pid()), nix::sys::signal::Signal::SIGKILL).expect("ours");
    assert!(waiting::until_true(PATIENCE, || !tree.iter().any(Process::is_alive)), "{:?}", host.tree());
    drop(second);
    host.finish();
}

#[test]
fn a_signal_reaches_the_command_and_what_it_left() {
    let host = Host::with(Setup { flags: &["--grace", "60"], ..PLAIN });
    let mut calling =
        start(&host, "Ann", "trap 'echo hup' HUP; trap '' TERM; echo $$ >>pids; while :; do sleep 0.1; done");
    processes(&host, 1);
    assert_eq!(rexec(&host, &["kill", "--signal", "SIGHUP", "1"]).out, "#1 got the signal\n");
    // It ignores SIGTERM and the grace is long, so only SIGKILL ends it in time.
    let said = rexec(&host, &["kill", "-s", "9", "1"]);
    assert_eq!((said.code, said.out.as_str()), (0, "#1 has ended\n"), "{}", said.err);
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 137);
    fs::remove_file(host.home.join("pids")).expect("the file");
    assert_eq!(
        host.run("(trap 'echo usr1 >>heard; exit' USR1; echo $BASHPID >>pids; while :; do sleep 0.05; done) &").code(),
        0
    );
    let left = processes(&host, 1);
    assert_eq!(rexec(&host, &["kill", "--signal", "usr1", "2"]).code, 0);
    assert!(waiting::until_true(PATIENCE, || !left[0].is_alive()));
    let said = rexec(&host, &["kill", "--signal", "INT", "77"]);
    assert_eq!((said.code, said.err.contains("no command #77 runs")), (1, true), "{}", said.err);
    host.finish();
}

#[test]
fn the_status_says_what_runs_and_how_commands_ended() {
    let host = Host::start();
    assert_eq!(rexec(&host, &["status", "--short"]).out, "idle\n");
    assert_eq!(host.run("exit 3").code(), 3);
    assert_eq!(host.run("exit 0").code(), 0);
    let calling = start(&host, "Ann", "echo $$ >>pids; sleep 1000; :");
    processes(&host, 1);
    let status = rexec(&host, &["status", "--json"]).out;
    let value: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let counts = ["commands", "failed", "running", "paused", "left"].map(|name| value[name].as_u64());
    assert_eq!(counts, [Some(3), Some(1), Some(1), Some(0), Some(0)], "{status}");
    assert_eq!((&value["last"]["seq"], &value["last"]["exit"]), (&2.into(), &0.into()), "{status}");
    let said = rexec(&host, &["status"]).out;
    assert!(said.contains("1 run: Ann\n3 commands, 1 failed; #2 of"), "{said}");
    assert_eq!(rexec(&host, &["kill", "--all"]).code, 0);
    drop(calling);
    let socket = host.socket();
    host.finish();
    let gone = Command::new(programs::rexec()).args(["status", "--short"]).env("REXEC_SOCKET", socket).output();
    let gone = gone.expect("the program starts");
    assert_eq!((gone.status.code(), gone.stdout.as_slice(), gone.stderr.as_slice()), (Some(127), &b""[..], &b""[..]));
}
