//! Failures that hosts of this kind are prone to, and that an earlier one had.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::call::Target;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{State, USUAL};

/// A hang guard. The promise is 2.5 s on an idle machine.
const GONE: Duration = PATIENCE;

/// Asks in JSON; the answer, or nothing if the host ends the connection without one.
fn ask(host: &Host, request: &Value) -> Option<Value> {
    let mut socket = UnixStream::connect(host.socket()).expect("a host");
    socket.write_all(format!("{request}\n").as_bytes()).expect("it takes a line");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an answer in time");
    (!answer.is_empty()).then(|| serde_json::from_slice(&answer).expect("a line of JSON"))
}

fn request(exec: &[&str]) -> Value {
    json!({"whoami": "Me", "dir": "/", "exec": exec})
}

/// What becomes of a command's terminal says nothing about the command: it can be ended all the same.
#[test]
fn a_command_that_lets_go_of_its_terminal_can_still_be_ended() {
    let scripts = [
        "echo $$ > pid; exec nohup sleep 1000",
        "echo $$ > pid; trap '' HUP; exec >/dev/null 2>&1 </dev/null; sleep 1000; :",
        "setsid sleep 1000 & echo $! > pid; exec sleep 1000 >&- 2>&- <&-",
        "exec </dev/null >/dev/null 2>&1; setsid --wait sh -c 'trap \"\" HUP TERM; echo $$ > pid; sleep 1000; :'",
    ];
    let host = Host::start();
    let path = host.home.join("pid");
    let started = |script: &str| {
        let process = || Process::of(fs::read_to_string(&path).ok()?.trim().parse().ok()?);
        let process = waiting::until(PATIENCE, process).unwrap_or_else(|| panic!("{script} never started"));
        fs::remove_file(&path).expect("it was read");
        process
    };
    for script in scripts {
        let calling = host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts");
        let process = started(script);
        calling.warden.signal(Signal::SIGKILL);
        assert!(waiting::until_true(GONE, || !process.is_alive()), "{script}: {:#?}", host.tree());

        let mut request = request(&["/bin/bash", "-c", script]);
        request["dir"] = host.home.path().to_str().expect("a path in UTF-8").into();
        let mut socket = UnixStream::connect(host.socket()).expect("a host");
        socket.write_all(format!("{request}\n").as_bytes()).expect("it takes a line");
        let process = started(script);
        socket.write_all(b"{\"action\":\"abort\"}\n").expect("it takes a line");
        let mut answer = String::new();
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket.read_to_string(&mut answer).expect("an answer in time");
        assert!(answer.contains("\"error\":\"aborted\""), "{script}: {answer}");
        assert!(waiting::until_true(GONE, || !process.is_alive()), "{script}: {:#?}", host.tree());
    }
}

/// A request that is turned away has no number that the journal would wait for.
#[test]
fn bad_requests_leave_no_gap_in_the_journal() {
    let host = Host::start();
    let bad = [
        json!({"whoami": "Me", "dir": "/", "exec": ["true"], "envs": {"A=B": "c"}}),
        json!({"whoami": "Me", "dir": "/", "exec": ["true"], "envs": {"": "c"}}),
        json!({"whoami": "Me", "dir": "/", "exec": ["tr\0ue"]}),
        json!({"whoami": "Me", "dir": "/", "exec": []}),
        json!({"whoami": "Me", "dir": "/"}),
        json!({"whoami": "Me", "dir": "/no/such/place", "exec": ["true"]}),
        json!({"whoami": "Me", "dir": "/", "exec": ["no-such-program-anywhere"]}),
        json!({"action": "no such action"}),
    ];
    for request in &bad {
        // Some callers do not even listen to the answer.
        let mut deaf = UnixStream::connect(host.socket()).expect("a host");
        deaf.shutdown(Shutdown::Read).expect("a socket");
        _ = deaf.write_all(format!("{request}\n").as_bytes());
        let answer = ask(&host, request).unwrap_or_default();
        assert!(answer["error"].is_string() && answer["exit"] != 0, "{request}: {answer}");
        let command = format!("echo after '{}'", request.to_string().replace('\'', ""));
        assert_eq!(host.run(&command).code(), 0);
        let end = host.wait_for("the next command", |journal| journal.end_of(&command).cloned());
        assert_eq!(end["exit"], 0);
    }
    assert_eq!(ask(&host, &request(&["/bin/echo", "well"])), Some(json!({"exit": 0, "output": "well\n"})));
    // The rest is checked at the host's end: every start has its end.
    host.finish();
}

/// There is a terminal, and nobody at it: a program that asks there is not waited for, whoever called.
#[test]
fn nothing_waits_for_somebody_at_the_terminal() {
    let host = Host::start();
    for (program, exec) in [
        ("sh", vec!["/bin/sh", "-c", "read x </dev/tty; echo $?"]),
        ("less", vec!["less", "/etc/services"]),
        ("less", vec!["/bin/sh", "-c", "seq 1 1000 | less; echo end"]),
        ("git", vec!["git", "--paginate", "help", "-a"]),
    ] {
        if programs::has(program) {
            let answer = ask(&host, &request(&exec)).unwrap_or_else(|| panic!("no answer to {exec:?}"));
            assert!(answer["exit"].is_u64(), "{exec:?}: {answer}");
        }
    }
    if programs::has("less") {
        for name in ["bash", "sh"] {
            let call =
                crate::support::call::Call { name, ..host.call("less /etc/services /etc/passwd; man 1 ls | less") };
            let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
            assert!(calling.finish(PATIENCE).is_some(), "less waits: {:#?}", host.tree());
        }
    }
}

/// Idle callers use up the descriptors: those that come then wait, the host waits as well, and both go on later.
#[test]
#[ignore = "long: waits out the 5 s for a greeting"]
fn idle_callers_cost_nothing_but_their_descriptors() {
    let limits = &[(Resource::RLIMIT_NOFILE, 64, 64)];
    let host = Host::with(Setup { state: State { limits, ..USUAL }, ..PLAIN });
    let idle: Vec<UnixStream> = (0..200).filter_map(|_| UnixStream::connect(host.socket()).ok()).collect();
    assert!(idle.len() > 64, "only {} callers were let in or wait", idle.len());
    let (before, start) = (procs::processor_time(host.pid()), Instant::now());
    // A caller that says nothing is let go after five seconds; until then all of them are there.
    let mut first = &idle[0];
    first.set_read_timeout(Some(PATIENCE)).expect("a socket");
    first.read_to_end(&mut Vec::new()).expect("the host lets go of it");
    let (used, time) = (procs::processor_time(host.pid()) - before, start.elapsed());
    assert!(used < time / 5, "{used:?} of {time:?} while nothing happens");
    assert_eq!(host.errors(), "");
    drop(idle);
    assert_eq!(host.run("echo well").out(), "well\n");
}

/// A host that cannot fork says so to its callers, once it has waited for a process in vain, and lives.
#[test]
#[ignore = "long: waits out 10 s without a process, twice"]
fn want_of_processes_ends_no_host() {
    if programs::another_user().is_none() {
        return programs::skipped("only root can give a host a user of its own");
    }
    // Nobody else may have processes of this user.
    let user = Some(1_000_000 + std::process::id());
    let limits = &[(Resource::RLIMIT_NPROC, 8, 8)];
    let host = Host::with(Setup { user, state: State { limits, ..USUAL }, ..PLAIN });
    let mut told = 0;
    for _ in 0..2 {
        let seen = host.run("echo ran");
        let is_told = seen.code() == 125 && seen.err().starts_with("rexec: ") && seen.err().contains("\nhint: ");
        assert!(is_told || (seen.code() == 0 && seen.out() == "ran\n"), "{seen:?}");
        told += u32::from(is_told);
    }
    assert!(told > 0, "it had processes enough");
    assert_eq!(host.errors(), "");
    host.finish();
}

/// A target directory may be made by anybody, with any name; only what rustc knows is taken for a triple.
#[test]
fn the_programs_are_found_whatever_made_the_target_directory() {
    use programs::{Built, place_of};
    let triples = ["x86_64-unknown-linux-gnu".to_owned(), "x86_64-unknown-linux-musl".to_owned()];
    for (binary, target_dir, triple, profile) in [
        ("/w/target/debug/rexec", "/w/target", None, "dev"),
        ("/a workspace/target/release/rexec", "/a workspace/target", None, "release"),
        ("/elsewhere/my-linux-builds/debug/rexec", "/elsewhere/my-linux-builds", None, "dev"),
        ("/w/target/x86_64-unknown-linux-musl/debug/rexec", "/w/target", Some("x86_64-unknown-linux-musl"), "dev"),
        ("/x86_64-unknown-linux-gnu/t/quick/rexec", "/x86_64-unknown-linux-gnu/t", None, "quick"),
    ] {
        let expected = Built { target_dir: target_dir.as_ref(), triple, profile };
        assert_eq!(place_of(binary.as_ref(), &triples), expected, "{binary}");
    }
    let triple = "aarch64-unknown-linux-gnu".to_owned();
    let path = format!("/w/target/{triple}/debug/rexec");
    assert!(programs::known_triples().contains(&triple), "rustc names its targets, {triple} among them");
    assert_eq!(place_of(path.as_ref(), &programs::known_triples()).triple, Some(triple.as_str()));
}
