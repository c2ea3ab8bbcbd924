//! Limits that many commands reach together, or that a recorder reaches when it reads nothing.

use std::fs;
use std::process::Child;
use std::time::Instant;

use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::call::Target;
use crate::support::crowd::{answer, ask, ask_in_json, codes, quiet, shim};
use crate::support::host::{Host, PLAIN, SHUTDOWN, Setup};
use crate::support::journal::Journal;
use crate::support::procs::{self, Process};
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{State, USUAL};

/// Ended commands of which something runs on are watched, up to a bound; what they left lives in any case.
#[test]
#[ignore = "long: 260 commands that leave something running"]
fn the_oldest_of_too_many_left_terminals_is_closed() {
    const COMMANDS: usize = 260;
    const WATCHED: usize = 256;
    let host = Host::start();
    let script = "sleep 1000 & echo $! >> pids";
    for _ in 0..COMMANDS / 20 {
        let mut shims: Vec<Child> = (0..20).map(|_| quiet(&host, script)).collect();
        assert!(codes(&mut shims).iter().all(|code| *code == Some(0)));
    }
    let pids = fs::read_to_string(host.home.join("pids")).expect("pids");
    let left: Vec<Process> = pids.lines().filter_map(|pid| Process::of(pid.parse().ok()?)).collect();
    let closed = || host.console_text().matches("too many commands left processes running: the terminal of #").count();
    assert!(waiting::until_true(PATIENCE, || closed() == COMMANDS - WATCHED), "{} are closed", closed());
    let terminals = || procs::descriptor_list(host.pid()).iter().filter(|fd| fd.ends_with("/dev/ptmx")).count();
    // Those of the guards in reserve too.
    assert!(waiting::until_true(PATIENCE, || terminals() <= WATCHED + 2), "{} terminals are open", terminals());
    assert_eq!(host.run("echo on").out(), "on\n");
    assert_eq!(left.iter().filter(|process| process.is_alive()).count(), COMMANDS, "what is left over lives");
    left.iter().for_each(|process| process.signal(Signal::SIGKILL));
}

#[test]
fn of_many_processes_that_are_left_some_are_named() {
    let host = Host::start();
    let script = "for n in {1..40}; do sleep 1000 >/dev/null 2>&1 & done; jobs -p > pids";
    assert_eq!(host.run(script).code(), 0);
    let end = host.wait_for("its end", |journal| journal.end_of(script).cloned());
    assert_eq!(end["left"].as_array().map(Vec::len), Some(16), "{end}");
    for pid in fs::read_to_string(host.home.join("pids")).expect("pids").lines() {
        Process::of(pid.parse().expect("a pid")).expect("it lives").signal(Signal::SIGKILL);
    }
}

/// The soft limit on the descriptors of a process.
fn descriptor_limit(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_ascii_whitespace().next()?.parse().ok()
}

#[test]
fn a_host_raises_its_limit_on_descriptors_and_leaves_commands_their_own() {
    let limits = &[(Resource::RLIMIT_NOFILE, 100, 2_000)];
    let host = Host::with(Setup { state: State { limits, ..USUAL }, ..PLAIN });
    assert_eq!(descriptor_limit(host.pid()), Some(2_000));
    let mut call = host.call("ulimit -n");
    call.state = State { limits: &[(Resource::RLIMIT_NOFILE, 50, 60)], ..USUAL };
    assert_eq!(call.run(Target::Shim(&host.socket())).out(), "50\n");
}

/// What a person is told of commands is short, however long they are.
#[test]
fn long_words_are_cut_for_ps() {
    const MOST: usize = 256;
    let host = Host::start();
    let [whoami, dir, command] = ["w", "d", "c"].map(|letter| letter.repeat(200));
    let dir = host.home.join(&dir).join(&dir);
    fs::create_dir_all(&dir).expect("a directory");
    let exec = ["sh", "-c", "echo >> ready; exec sleep 1000", &command, &command];
    let request = json!({ "whoami": whoami.repeat(2), "dir": dir, "exec": exec });
    let caller = ask_in_json(&host, &request);
    assert!(waiting::until_true(PATIENCE, || dir.join("ready").exists()), "it never started");
    let list = answer(ask_in_json(&host, &json!({ "action": "list" })));
    let run = &list["runs"][0];
    assert_eq!(run["whoami"], format!("{}…", &whoami[..23]));
    assert_eq!(run["dir"], dir.to_str().expect("UTF-8")[..MOST]);
    assert_eq!(run["command"].as_str().map(str::len), Some(MOST), "{run}");
    drop(caller);
}

/// A host whose recorder is stopped.
fn with_stopped_recorder() -> (Host, Process) {
    let host = Host::with(Setup { pipe: true, ..PLAIN });
    assert_eq!(host.run("echo warm").out(), "warm\n");
    host.wait_for("the first end", |journal| journal.of_type("end").next().map(|_| ()));
    let recorder = host.recorder();
    recorder.signal(Signal::SIGSTOP);
    (host, recorder)
}

/// A recorder that takes nothing holds commands up for a second, once; then output is left out of the journal, and
/// counted.
#[test]
fn a_stopped_recorder_costs_no_command_anything() {
    const BYTES: u64 = 3_000_000;
    let (host, recorder) = with_stopped_recorder();
    let before = procs::data(host.pid());
    let script = format!("head -c {BYTES} /dev/zero | tr '\\0' x");
    let started = Instant::now();
    for _ in 0..3 {
        let output = shim(&host, &script).output().expect("a shim");
        assert_eq!((output.stdout.len() as u64, output.status.code()), (BYTES, Some(0)));
    }
    assert!(started.elapsed() < PATIENCE, "they waited for the recorder: {:?}", started.elapsed());
    let peak = procs::most_data(host.pid());
    assert!(peak <= before + (8 << 20), "{before} bytes before, at most {peak}");
    recorder.signal(Signal::SIGCONT);
    let ends = |journal: &Journal| {
        let ends: Vec<Value> =
            journal.of_type("end").filter(|end| end["command"] == script.as_str()).cloned().collect();
        (ends.len() == 3).then_some(ends)
    };
    for end in host.wait_for("three ends", ends) {
        assert_eq!(end["bytes"], BYTES, "what was left out is counted");
        assert!(end["output_omitted"].as_u64().is_some_and(|omitted| omitted > 0), "{}", end["output_omitted"]);
    }
    assert_eq!(host.run("echo again").out(), "again\n");
}

/// Records are what is kept longest; in the end even they are given up, and the person is told how many.
#[test]
#[ignore = "long: 300 commands of 100 KB each"]
fn records_are_given_up_in_the_end() {
    const COMMANDS: usize = 300;
    let (host, recorder) = with_stopped_recorder();
    let before = procs::data(host.pid());
    // A start and an end hold the command, once as words and once as text.
    let long = "x".repeat(100_000);
    for _ in 0..COMMANDS {
        assert_eq!(answer(ask(&host, &["no-such-program", &long]))["exit"], 127);
    }
    let peak = procs::most_data(host.pid());
    assert!(peak <= before + (120 << 20), "{before} bytes before, at most {peak}");
    recorder.signal(Signal::SIGCONT);
    // Told as they are given up, so more than once.
    let lacking = || {
        let text = host.console_text();
        let told = text.split("… the journal lacks ").skip(1).filter_map(|rest| rest.split_once(" record"));
        told.map(|(count, _)| count.parse::<usize>().expect("a number")).sum::<usize>()
    };
    let records = || {
        let journal = host.journal();
        journal.of_type("start").count() + journal.of_type("end").count()
    };
    let all = 2 * (COMMANDS + 1);
    waiting::wait_until_grown("each record is written or told as lacking", all, PATIENCE, || records() + lacking());
    let records = records();
    assert_eq!(records + lacking(), all);
    assert!(records > 20, "{records}");
    _ = host.leave();
}

/// The end of a host waits for its recorder, but not for ever.
#[test]
fn a_stopped_recorder_keeps_no_host() {
    let (mut host, recorder) = with_stopped_recorder();
    assert_eq!(host.run("echo on").out(), "on\n");
    host.signal(Signal::SIGTERM);
    assert!(host.warden.wait(SHUTDOWN).is_some(), "the host waits for its recorder");
    assert!(recorder.is_alive());
    recorder.signal(Signal::SIGCONT);
    // What it was given it still writes.
    host.check_end();
    assert_eq!(host.journal().of_type("end").count(), 2);
}
