//! Guards that their commands stop, kill or signal: a caller that asks for a start or an end gets it, or is told why
//! not.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal::{SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::leftovers::{rexec, said, start, written};
use crate::support::call::{Outcome, Target};
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::procs::{self, Process};
use crate::support::waiting::{self, PATIENCE};

/// A hang guard. The promise is ten seconds.
const ANSWERED: Duration = PATIENCE;

/// Commands that stop their guards, once and for ever, and leave their shell's number in `shell`.
const STOPPERS: [&str; 4] = [
    "kill -STOP $PPID; echo $$ > shell; exec sleep 1000",
    "trap '' TERM; kill -STOP $PPID; echo $$ > shell; while :; do sleep 1; done",
    "setsid sh -c 'while :; do kill -STOP '$PPID'; done' & echo $$ > shell; exec sleep 1000",
    "guard=$PPID; trap '' TERM; echo $$ > shell; while kill -STOP $guard; do :; done; exec sleep 1000",
];

/// Everything that runs below a host for its commands, but their guards.
fn commands(host: &Host) -> Vec<Process> {
    let is_command = |process: &Process| !process.comm.starts_with("rexec-") && !process.is_zombie();
    host.tree().into_iter().filter(is_command).collect()
}

fn are_gone(host: &Host, what: &str) {
    assert!(waiting::until_true(PATIENCE, || commands(host).is_empty()), "{what}: left are {:#?}", host.tree());
}

fn kill_by_number(host: &Host, script: &str) -> Output {
    let seq = host.wait_for("its start", |journal| {
        let start = journal.of_type("start").filter(|start| start["command"] == script).last();
        Some(start?["seq"].to_string())
    });
    rexec(host, &["kill", &seq])
}

#[test]
fn a_command_that_stops_its_guard_is_ended_by_its_number() {
    let host = Host::with(Setup { flags: &["--grace", "0.3"], ..PLAIN });
    for script in STOPPERS {
        let mut calling = start(&host, script);
        let shell = written(&host, "shell");
        let begun = std::time::Instant::now();
        let (code, out, err) = said(&kill_by_number(&host, script));
        assert!(code == Some(0) && out.contains("has ended"), "{script}: {code:?} {out} {err}");
        assert!(begun.elapsed() < ANSWERED, "{script}: after {:?}", begun.elapsed());
        assert!(!shell.is_alive(), "{script}");
        assert!(calling.finish(PATIENCE).is_some(), "{script}: its caller is not told");
        are_gone(&host, script);
        fs::remove_file(host.home.join("shell")).expect("it was written");
    }
    host.finish();
}

#[test]
fn a_command_that_stops_its_guard_ends_with_its_caller() {
    let host = Host::start();
    for script in STOPPERS {
        let calling = start(&host, script);
        let shell = written(&host, "shell");
        calling.warden.signal(SIGKILL);
        assert!(waiting::until_true(PATIENCE, || !shell.is_alive()), "{script}: {:#?}", host.tree());
        are_gone(&host, script);
        fs::remove_file(host.home.join("shell")).expect("it was written");
    }
    host.finish();
}

#[test]
fn a_command_that_stops_its_guard_and_ends_has_its_own_code() {
    let host = Host::start();
    for script in ["kill -STOP $PPID; echo through; exit 7", "echo through; (kill -STOP $PPID; exit 7)"] {
        let seen = host.run(script);
        assert_eq!((seen.code(), seen.out().as_str(), seen.err().as_str()), (7, "through\n", ""), "{script}");
    }
    host.finish();
}

#[test]
#[ignore = "long: 8 hosts whose commands stop their guards"]
fn a_host_that_ends_ends_commands_that_stop_their_guards() {
    for signal in [SIGTERM, SIGKILL] {
        for script in STOPPERS {
            let mut host = Host::start();
            let mut calling = start(&host, script);
            let shell = written(&host, "shell");
            host.wait_for("its start", |journal| journal.of_type("start").next().map(|_| ()));
            if signal == SIGTERM {
                host.signal(signal);
                host.check_gone();
            } else {
                let (_home, mut warden) = host.kill();
                // A program that stops its guard again and again may do so once more at the very end.
                let may_stay = script.contains("while");
                let is_gone = warden.is_empty_within(if may_stay { PATIENCE / 6 } else { PATIENCE }) || may_stay;
                assert!(is_gone, "{script}: {:#?}", warden.tree());
            }
            assert!(!shell.is_alive() || signal == SIGKILL, "{script}");
            assert!(calling.finish(PATIENCE).is_some_and(|seen| seen.code() != 0), "{script}");
        }
    }
}

/// Nothing but KILL and STOP has an effect on a guard.
#[test]
fn a_guard_survives_its_commands_signals() {
    let host = Host::start();
    let script = "for s in HUP INT QUIT ABRT PIPE ALRM TERM USR1 USR2 TSTP TTIN TTOU XCPU PROF VTALRM IO PWR; do
                      [ $s = ABRT ] || kill -$s $PPID; done; sleep 0.1; echo on; exit 3";
    for _ in 0..3 {
        let seen = host.run(script);
        assert_eq!((seen.code(), seen.out().as_str(), seen.err().as_str()), (3, "on\n", ""));
    }
    // As a service manager does to the whole group of a unit, or init at shutdown.
    let script = "trap 'sleep 0.3; echo cleaned; exit 4' TERM; echo ready; while :; do sleep 0.01; done";
    let mut calling = start(&host, script);
    assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
    host.tree().iter().for_each(|process| process.signal(SIGTERM));
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.code(), seen.out().as_str()), (4, "ready\ncleaned\n"), "{}", seen.err());
    host.finish();
}

/// The guards that wait for a command.
fn reserve(host: &Host) -> Vec<Process> {
    let is_spare = |child: &Process| child.comm == "rexec-guard" && procs::children(child.pid).is_empty();
    procs::children(host.pid()).into_iter().filter(is_spare).collect()
}

#[test]
fn stopped_guards_in_reserve_delay_no_command() {
    let host = Host::start();
    for n in 0..6 {
        let stopped = || Some(reserve(&host)).filter(|guards| guards.len() == 2);
        let guards = waiting::until(PATIENCE, stopped).expect("a reserve");
        guards.iter().for_each(|guard| guard.signal(SIGSTOP));
        let seen = host.run(&format!("echo >> ran-{n}; echo on; exit 5"));
        assert_eq!((seen.code(), seen.out().as_str(), seen.err().as_str()), (5, "on\n", ""));
        assert_eq!(fs::metadata(host.home.join(&format!("ran-{n}"))).expect("a file").len(), 1, "it ran once");
    }
    host.finish();
}

/// A guard that is stopped again and again, before it can do anything: it is killed, and another one gets the command.
#[test]
fn a_guard_that_never_begins_is_replaced_and_the_command_runs_once() {
    let host = Host::start();
    let guards = waiting::until(PATIENCE, || Some(reserve(&host)).filter(|guards| guards.len() == 2)).expect("two");
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for guard in &guards {
                    _ = kill(Pid::from_raw(guard.pid), SIGSTOP);
                }
            }
        });
        let seen = host.call("echo >> ran; echo on; exit 5").start(Target::Shim(&host.socket())).expect("a shim");
        let seen = { seen }.finish(PATIENCE);
        is_over.store(true, Ordering::Relaxed);
        seen
    });
    // The one that ran it may have been stopped before it told the host that it is free.
    guards.iter().for_each(|guard| _ = kill(Pid::from_raw(guard.pid), SIGCONT));
    let seen = seen.expect("it ends");
    let ran = fs::metadata(host.home.join("ran")).map_or(0, |data| data.len());
    match seen.code() {
        5 => assert_eq!((ran, seen.out().as_str()), (1, "on\n"), "{}", seen.err()),
        // It had begun, or so it seemed: nobody knows what it did.
        125 => assert!(ran <= 1 && seen.err().contains("unknown"), "{}", seen.err()),
        other => panic!("{other}: {}", seen.err()),
    }
    host.finish();
}

/// Its outputs are at their end with its shell, of which only the guard can tell. A caller that lets go of them could not be
/// told that the guard went away.
#[test]
fn a_command_whose_guard_stands_still_at_its_end_is_not_over_in_silence() {
    let host = Host::with(MIRROR);
    for guard_dies in [false, true] {
        let mut calling = start(&host, "echo $$ > shell; until [ -e go ]; do sleep 0.01; done; exit 3");
        let shell = written(&host, "shell");
        let guard = Process::of(shell.parent).expect("its guard");
        guard.signal(SIGSTOP);
        fs::write(host.home.join("go"), "").expect("a file");
        let stdout = calling.stdout.as_ref().expect("a pipe");
        assert!(waiting::until_true(PATIENCE, || stdout.has_ended()), "{:#?}", host.tree());
        if guard_dies {
            guard.signal(SIGKILL);
        }
        let seen = calling.finish(PATIENCE).unwrap_or_else(|| panic!("it hangs: {:#?}", host.tree()));
        assert_eq!((seen.code(), seen.err().as_str()), (3, ""), "{guard_dies}");
        fs::remove_file(host.home.join("go")).expect("ours");
    }
    host.finish();
}

/// A host that does not hear of it cannot pass a signal on, so the call ends as the shell would have.
#[test]
fn a_call_ends_by_its_signals_although_the_host_is_stopped() {
    let host = Host::start();
    let mut running = start(&host, "trap '' TERM INT HUP QUIT; echo $$ > shell; while :; do sleep 0.1; done");
    let shell = written(&host, "shell");
    host.stop();
    let mut calls = Vec::new();
    for (n, signal) in [SIGTERM, SIGINT, SIGHUP, SIGQUIT].into_iter().enumerate() {
        let calling = start(&host, &format!("echo >> ran-{n}"));
        // It has sent its request once it waits in poll(2), and takes signals from then on.
        assert!(waiting::until_true(PATIENCE, || procs::is_polling(calling.pid())), "{n}: the request is sent");
        calls.push((n, signal, calling));
    }
    running.warden.signal(SIGTERM);
    calls.iter().for_each(|(_, signal, calling)| calling.warden.signal(*signal));
    for (n, signal, calling) in &mut calls {
        let seen: Outcome = calling.finish(PATIENCE).unwrap_or_else(|| panic!("{n}: {signal} has no effect"));
        assert_eq!((seen.code(), seen.out().as_str()), (128 + *signal as i32, ""), "{signal}: {}", seen.err());
    }
    assert_eq!(running.finish(PATIENCE).map(|seen| seen.code()), Some(128 + SIGTERM as i32));
    host.signal(SIGCONT);
    assert!(waiting::until_true(PATIENCE, || !shell.is_alive()), "{:#?}", host.tree());
    assert_eq!(host.run("echo on").out(), "on\n");
    let ran: BTreeSet<usize> = (0..4).filter(|n| host.home.join(&format!("ran-{n}")).exists()).collect();
    assert!(ran.is_empty(), "{ran:?} ran although their callers were gone");
    host.finish();
}

/// Request and signal are read in one go. What comes before the start ends the command as it would end its shell.
#[test]
fn a_signal_that_comes_with_the_request_is_not_lost() {
    let host = Host::start();
    host.stop();
    let mut calling = start(&host, "echo >> ran");
    let waits = || procs::is_polling(calling.pid());
    assert!(waiting::until_true(PATIENCE, waits), "the request is sent");
    let slept = procs::sleeps(calling.pid());
    calling.warden.signal(SIGTERM);
    let has_told = || procs::sleeps(calling.pid()) > slept && waits();
    assert!(waiting::until_true(PATIENCE, has_told), "the signal is sent");
    host.signal(SIGCONT);
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.code(), seen.err().as_str()), (128 + SIGTERM as i32, ""));
    assert_eq!(host.run("echo on").out(), "on\n");
    assert!(!host.home.join("ran").exists(), "it ran");
    host.finish();
}

/// A trap may take its time: a host that runs says that it has heard.
#[test]
fn a_trap_may_take_longer_than_a_host_has_to_hear() {
    let host = Host::start();
    let script = "trap 'sleep 3; echo cleaned; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let mut calling = start(&host, script);
    assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
    calling.warden.signal(SIGTERM);
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.code(), seen.out().as_str()), (7, "ready\ncleaned\n"), "{}", seen.err());
    host.finish();
}

/// An answer that takes longer than anybody waits says how long.
#[test]
#[ignore = "long: waits out the 9 s for an answer"]
fn a_caller_that_ends_a_command_is_told_a_long_grace() {
    let host = Host::with(Setup { flags: &["--grace", "600"], ..PLAIN });
    let script = "trap '' TERM; echo $$ > shell; while :; do sleep 1; done";
    let mut calling = start(&host, script);
    let shell = written(&host, "shell");
    let (code, out, err) = said(&kill_by_number(&host, script));
    assert!(code == Some(1) && out.is_empty() && err.contains("has not ended yet") && err.contains("hint: "), "{err}");
    assert!(shell.is_alive());
    assert_eq!(said(&kill_by_number(&host, script)).0, Some(0));
    assert!(!shell.is_alive() && calling.finish(PATIENCE).is_some());
    host.finish();
}
