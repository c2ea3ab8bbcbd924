//! The end of output and the end of a run are two facts: what holds the streams open, and what closes them early.

use std::fs;
use std::path::Path;

use crate::support::call::{Call, Input, Output, Target};
use crate::support::host::Host;
use crate::support::journal::Journal;
use crate::support::procs;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

#[test]
#[ignore = "long: 4 commands of 1 s each"]
fn a_command_that_closes_its_terminal_runs_on() {
    let host = Host::start();
    for mode in ["REXEC_SANITIZE=raw", "REXEC_TTY=never"] {
        let seen =
            host.call("exec >&- 2>&-; sleep 1; echo lived > file; exit 3").env(mode).run(Target::Shim(&host.socket()));
        assert_eq!((seen.code(), seen.out().as_str()), (3, ""), "{mode}");
        assert_eq!(fs::read_to_string(host.home.join("file")).expect("it ran to its end"), "lived\n");
        _ = fs::remove_file(host.home.join("file"));
        let seen =
            host.call("exec >log 2>&1; echo start; sleep 1; echo done").env(mode).run(Target::Shim(&host.socket()));
        assert_eq!(seen.code(), 0);
        assert_eq!(fs::read_to_string(host.home.join("log")).expect("a log"), "start\ndone\n", "{mode}");
    }
}

/// Scripts that leave a server; it writes its pid to `server` and would run for a long time.
const SERVERS: &[&str] = &[
    "sleep 1000 & echo $! > server; echo started",
    "sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > server; echo started",
    "nohup sleep 1000 >/dev/null 2>&1 & echo $! > server; echo started",
    "setsid sleep 1000 & sleep 0.1; echo $! > server; echo started",
    "sleep 1000 & disown; echo $! > server; echo started",
    "coproc sleep 1000; echo $COPROC_PID > server; echo started",
    "(while :; do echo noise; sleep 0.01; done) & echo $! > server; echo started",
    "(while :; do echo noise; done) & echo $! > server; echo started",
];

#[test]
#[ignore = "long: 16 servers, one after the other"]
fn servers_in_the_background_delay_nothing_and_live() {
    let host = Host::start();
    for script in SERVERS {
        for mode in ["REXEC_SANITIZE=strip", "REXEC_TTY=never"] {
            let call = host.call(script).env(mode);
            let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
            let seen = calling.finish(PATIENCE).unwrap_or_else(|| panic!("{script} ({mode}) does not return"));
            assert!(seen.out().starts_with("started\n") || seen.out().contains("noise"), "{script}: {}", seen.out());
            assert_eq!(seen.code(), 0, "{script}");
            let pid: i32 = fs::read_to_string(host.home.join("server")).expect("a pid").trim().parse().expect("a pid");
            let server = procs::Process::of(pid).unwrap_or_else(|| panic!("{script} ({mode}): the server is gone"));
            let again = host.run("echo next");
            assert_eq!(again.out(), "next\n");
            assert!(server.is_alive(), "{script} ({mode}): the server died");
            let end = host.wait_for("its end", |journal| journal.end_of(script).cloned());
            assert!(end["left"].as_array().is_some_and(|left| !left.is_empty()), "{script}: {end}");
            server.signal(nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// What they write within 200 ms after their shell's end. A busy machine may be late with that: the script tells how late.
#[test]
fn process_substitutions_lose_nothing() {
    let host = Host::start();
    let time = |name: &str| {
        let read = || fs::read_to_string(host.home.join(name)).ok()?.trim().parse::<f64>().ok();
        waiting::until(PATIENCE, read).unwrap_or_else(|| panic!("no {name}"))
    };
    let mut whole = 0;
    for round in 0..waiting::size(20, 300) {
        let script = format!(
            "seq 1 20 > >(sleep 0.0{}; cat; echo $EPOCHREALTIME >new; mv new wrote); echo $EPOCHREALTIME >left",
            round % 5
        );
        let mode = ["REXEC_SANITIZE=raw", "REXEC_TTY=never"][round % 2];
        let seen = host.call(&script).env(mode).run(Target::Shim(&host.socket()));
        let late = time("wrote") - time("left");
        let is_whole = seen.out().lines().count() == 20;
        assert!(is_whole || late > 0.15, "round {round}: {script} ({mode}), {late} s: {:?}", seen.out());
        whole += usize::from(is_whole);
        fs::remove_file(host.home.join("wrote")).expect("it was read");
    }
    assert!(whole > 0, "the machine was too slow for all of them");
}

#[test]
fn sigpipe_is_default_inside() {
    let host = Host::start();
    for mode in ["REXEC_SANITIZE=strip", "REXEC_TTY=never"] {
        let seen = host.call("yes | head -1; echo ${PIPESTATUS[*]}").env(mode).run(Target::Shim(&host.socket()));
        assert_eq!((seen.out().as_str(), seen.err().as_str()), ("y\n141 0\n", ""));
    }
}

#[test]
fn a_reader_that_leaves_ends_a_command_that_writes() {
    let host = Host::start();
    for mode in ["REXEC_SANITIZE=raw", "REXEC_TTY=never"] {
        let call = Call { output: Output::Head(4000), ..host.call("yes") }.env(mode);
        let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
        let seen = calling.finish(PATIENCE).unwrap_or_else(|| panic!("yes runs on ({mode})"));
        assert_eq!((seen.out().lines().count(), seen.code()), (2000, 141), "{mode}");
    }
}

/// The two descriptors fare each for itself, as on the real shell.
#[test]
#[ignore = "long: 18 commands of 0.3 s each"]
fn what_becomes_of_stderr_is_nothing_to_stdout() {
    let host = Host::start();
    let inner = "for n in 1 2 3; do echo out $n; sh -c \"echo err $n >&2\"; sleep 0.1; done; exit 3";
    for redirect in ["2>/dev/full", "2> >(head -n 1 >/dev/null)", "2>&-"] {
        for mode in ["REXEC_SANITIZE=strip", "REXEC_SANITIZE=collapse", "REXEC_TTY=never"] {
            let run = |shell: &Path| {
                // Only a shell can redirect like that.
                let script = format!("env -u REXEC_INSIDE {} -c '{inner}' {redirect}; echo $?", shell.display());
                let call = Call::bash(&script, host.home.path()).env(mode);
                call.env(&format!("REXEC_SOCKET={}", host.socket().display())).run(Target::Real)
            };
            let (real, ours) = (run(Path::new("/bin/bash")), run(&programs::shims().join("bash")));
            assert_eq!((ours.out(), ours.err()), (real.out(), real.err()), "{redirect} {mode}");
            assert_eq!(real.out(), "out 1\nout 2\nout 3\n3\n");
        }
    }
    host.wait_for("nine ends", |journal: &Journal| (journal.of_type("end").count() == 9).then_some(()));
}

#[test]
fn an_input_that_never_ends_holds_nothing_up() {
    let host = Host::start();
    let call = Call { input: Input::Silent, ..host.call("echo x; exit 4") };
    assert_eq!(call.run(Target::Shim(&host.socket())).code(), 4);
}

#[test]
fn runs_know_nothing_of_each_others_descriptors() {
    let host = Host::start();
    let run = || {
        let seen = host.call("sleep 0.2; for n in /proc/$$/fd/*; do echo ${n##*/}; done").env("REXEC_SANITIZE=raw");
        seen.run(Target::Shim(&host.socket())).out()
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..50).map(|_| scope.spawn(run)).collect();
        for run in runs {
            let seen = run.join().expect("a run");
            // The shell has a descriptor for the directory while it reads it.
            assert_eq!(seen.lines().filter(|fd| !["0", "1", "2", "3"].contains(fd)).count(), 0, "{seen}");
        }
    });
    assert!(waiting::until_true(PATIENCE, || host.journal().of_type("end").count() == 50));
}
