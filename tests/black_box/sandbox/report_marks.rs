//! What a sandboxed command knows of its report: enough to name its run, too little to write for it.

use std::time::Instant;

use nix::sys::signal::Signal;
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::report::{Report, RunMark, ShimPlace, marked_run};

use super::reporters::{beginning, own_namespace, records, write};
use super::reports::{begin, caged, can_run, ended, rexec};
use crate::support::call::{Call, Calling, Target};
use crate::support::host::{Host, MIRROR};
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

#[test]
fn a_sandboxed_command_cannot_end_its_own_report() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "echo mark=$REXEC_REPORTED; while ! test -e done; do sleep .02; done; echo real; exit 7";
    let (mut calling, seq) = begin(&host, script);
    let reader = calling.stdout.as_ref().expect("a pipe");
    assert!(waiting::until_true(PATIENCE, || reader.so_far().ends_with(b"\n")), "it never began");
    let said = String::from_utf8_lossy(&reader.so_far()).into_owned();
    let value = said.trim_end().strip_prefix("mark=").expect("it has said so");
    let key = marked_run(value.as_bytes());
    assert_ne!(key, [0; 16], "{said}");
    write(&host, &records(key, &[Report::End(Exit::Code(0)); 20]));
    let is_listed = || rexec(&host, &["ps"]).contains("mark=$REXEC_REPORTED");
    // The host has read the records before it serves whoever came later.
    assert_eq!(host.run("echo served").out(), "served\n");
    assert!(is_listed(), "{}", rexec(&host, &["ps"]));
    assert!(host.journal().end_of(script).is_none(), "{:#?}", host.journal());
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 7);
    let end = ended(&host, script);
    assert_eq!((end["exit"].as_i64(), end["seq"].as_u64()), (Some(7), Some(seq)), "{end:#}");
    assert!(end["output"].as_str().is_some_and(|output| output.ends_with("real\n")), "{end:#}");
}

#[test]
fn a_sandboxed_command_that_has_killed_its_shim_stays_listed_and_can_be_ended() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "setsid bash -c 'while ! test -e go; do sleep .02; done; kill -9 $1; echo > gone; exec sleep 1000' \
                  x $PPID & echo u'p'; wait";
    let (mut calling, seq) = begin(&host, script);
    assert!(waiting::until_true(PATIENCE, || host.console_text().lines().any(|line| line.ends_with("up"))));
    let rest = procs::descendants(calling.pid());
    let rest = rest.into_iter().find(|child| child.command().starts_with("bash -c while")).expect("what goes on");
    std::fs::write(host.home.join("go"), "").expect("the directory is ours");
    assert!(waiting::until_true(PATIENCE, || host.home.join("gone").exists()));
    calling.finish(PATIENCE).expect("its shim was killed");
    assert!(rexec(&host, &["ps"]).contains("setsid bash"), "{}", rexec(&host, &["ps"]));
    assert!(host.journal().end_of(script).is_none());
    let said = rexec(&host, &["kill", &seq.to_string()]);
    assert!(!rest.is_alive(), "{said}");
    let end = ended(&host, script);
    assert_eq!(end["seq"].as_u64(), Some(seq), "{end:#}");
}

/// Starts a sandboxed command while others fill the room for reports, until one is not listed. Returns its mark.
fn begin_unlisted(host: &Host, script: &str) -> (Calling, RunMark) {
    let elsewhere = |at: i32| ShimPlace { namespace: 1, pid: at, began: 1, ..ShimPlace::default() };
    let mut keys = 0_u128..;
    // Mostly there is room for it.
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let calling = caged(host, script).start(Target::Real).expect("it starts");
        let said = || String::from_utf8_lossy(&calling.stdout.as_ref().expect("a pipe").so_far()).into_owned();
        let has_said = || {
            for at in 1..200 {
                let key = keys.next().expect("there are many").to_le_bytes();
                let piece = &beginning("crowd", elsewhere(at));
                write(host, &records(key, &[Report::Begin { piece, is_last: true }]));
            }
            said().ends_with('\n')
        };
        assert!(waiting::until_true(PATIENCE, has_said), "it never began");
        // The host has read everything before it serves whoever came later.
        host.run("true");
        let mark = said().trim_end().strip_prefix("mark=").map(|value| marked_run(value.as_bytes()));
        let is_listed = rexec(host, &["ps"]).contains("mark=$REXEC_REPORTED");
        match mark.filter(|mark| !is_listed && *mark != RunMark::default()) {
            Some(mark) => return (calling, mark),
            None => Process::of(calling.pid()).into_iter().for_each(|shim| {
                procs::descendants(shim.pid).iter().chain([&shim]).for_each(|process| process.signal(Signal::SIGKILL));
            }),
        }
    }
    panic!("each one is listed: {}", host.console_text());
}

#[test]
fn no_forged_report_takes_the_place_of_one_that_found_no_room() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "echo mark=$REXEC_REPORTED; while ! test -e done; do sleep .02; done; exit 7";
    let (mut calling, mark) = begin_unlisted(&host, script);
    let shim = Process::of(calling.pid()).expect("its shim");
    let place =
        ShimPlace { namespace: own_namespace(), pid: shim.pid, began: shim.start, mark, ..ShimPlace::default() };
    let piece = &beginning("innocent words", place);
    let mut keys = (7..).map(|key: u128| key.to_le_bytes());
    let start = host.wait_for("the forged run", |journal| {
        let start = journal.of_type("start").find(|start| start["command"].as_str() == Some("innocent words")).cloned();
        if start.is_none() {
            // The crowd may still be in its way.
            let key = keys.next().expect("there are many");
            write(&host, &records(key, &[Report::Begin { piece, is_last: true }]));
        }
        start
    });
    let seq = start["seq"].to_string();
    for order in [&["kill", &seq][..], &["pause", &seq], &["kill", "--signal", "KILL", &seq]] {
        let said = rexec(&host, order);
        assert!(said.contains("its process cannot be found"), "{order:?}: {said}");
    }
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 7);
}

/// As `rexec help commands` says of every command.
#[test]
fn a_sandboxed_command_has_the_environment_of_every_other_one() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let shim = programs::shims().join("bash");
    let script = "echo $SHELL; env | grep -o '^[A-Z_]*=' | sort; echo ${DROPPED-gone} $KEPT";
    let seen_by = |call: Call| {
        let call = call.env(&format!("SHELL={}", shim.display())).env("REXEC_WHOAMI=me").env("REXEC_ENV_DROP=DROP*");
        call.env("DROPPED=1").env("KEPT=kept").run(Target::Real).out()
    };
    let outside = host.call(&format!("unset REXEC_INSIDE; exec '{}' -c \"$SCRIPT\"", shim.display()));
    let outside = outside.env(&format!("REXEC_SOCKET={}", host.socket().display())).env(&format!("SCRIPT={script}"));
    let outside = seen_by(outside);
    let within = seen_by(caged(&host, script));
    assert!(within.contains("REXEC_REPORTED=\n") && within.ends_with("\ngone kept\n"), "{within}");
    assert_eq!(within.replace("REXEC_REPORTED=\n", ""), outside);
    assert!(!outside.contains(shim.to_str().expect("text")), "{outside}");
    // A shell below that is called by its path belongs to the run, and so to the host that it began with.
    let nested = format!("'{}' -c 'echo nested'", shim.display());
    let seen = caged(&host, &nested).run(Target::Real);
    assert_eq!((seen.out().as_str(), seen.err().as_str()), ("nested\n", ""));
    ended(&host, &nested);
    assert_eq!(host.journal().of_type("start").count(), 3, "{:#?}", host.journal());
}
