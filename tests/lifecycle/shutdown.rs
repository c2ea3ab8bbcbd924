//! How a host ends: asked to leave in three ways, with its commands, or killed.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;

use crate::support::call::{Calling, Target};
use crate::support::host::{Host, PLAIN, SHUTDOWN, Setup};
use crate::support::terminal::Terminal;
use crate::support::waiting::{self, PATIENCE};

const SCRIPTS: &[&str] = &[
    "echo ready; sleep 1000",
    "trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done",
    "echo ready; setsid sleep 1000 & wait",
    "set -m; echo ready; sleep 1000 & wait",
    "echo ready; yes > /dev/null",
    "echo ready; (trap '' TERM; sleep 1000) | cat",
    "echo ready; kill -STOP $$; sleep 1000",
    "echo ready; exec >&- 2>&-; sleep 1000",
];

/// Starts these commands and waits until all of them run.
fn load<'a>(host: &Host, scripts: impl Iterator<Item = &'a &'a str>) -> Vec<Calling> {
    let start = |script: &'a &'a str| {
        let calling = host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts");
        assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE), "{script}");
        calling
    };
    let callings: Vec<Calling> = scripts.map(start).collect();
    // A record is written beside the command, not before it.
    host.wait_for("every start", |journal| (journal.of_type("start").count() == callings.len()).then_some(()));
    callings
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Term,
    Hup,
    Interrupt,
}

#[test]
fn a_host_that_is_told_to_leave_ends_its_commands_and_leaves() {
    for way in [Way::Term, Way::Hup, Way::Interrupt] {
        let mut host = Host::with(Setup { terminal: true, ..PLAIN });
        let mut callings = load(&host, SCRIPTS.iter().chain(SCRIPTS));
        match way {
            Way::Term => host.signal(Signal::SIGTERM),
            Way::Hup => host.signal(Signal::SIGHUP),
            Way::Interrupt => {
                let mut keyboard: File = host.terminal.as_ref().expect("a terminal").master_file();
                keyboard.write_all(b"\x03").expect("a key");
                // One press may ask for a second one.
                std::thread::sleep(Duration::from_millis(200));
                _ = keyboard.write_all(b"\x03");
            }
        }
        for calling in &mut callings {
            let seen = calling.finish(SHUTDOWN).unwrap_or_else(|| panic!("{way:?}: a shim is left waiting"));
            assert!(seen.code() != 0, "{way:?}: a stopped command is no success: {seen:?}");
        }
        host.check_end();
        let journal = host.journal();
        let aborted = journal.of_type("end").filter(|end| end["error"] == "aborted").count();
        assert_eq!(aborted, callings.len(), "{way:?}: {:#?}", journal.records);
    }
}

#[test]
fn the_terminal_is_as_it_was() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        let before = Terminal::new(120, 40).modes();
        let mut host = Host::with(Setup { terminal: true, ..PLAIN });
        assert_eq!(host.run("printf '\\033[?1049h\\033[31m'; stty raw </dev/tty; exit 3").code(), 3);
        host.wait_idle();
        host.signal(signal);
        host.check_end();
        assert_eq!(host.terminal.as_ref().expect("a terminal").modes(), before, "{signal}");
    }
}

#[test]
fn nothing_of_a_killed_hosts_runs_is_left() {
    let host = Host::start();
    // Without the busy one, which would only slow everybody else down.
    let scripts = SCRIPTS.iter().filter(|script| !script.contains("yes")).cycle().take(100);
    let mut callings = load(&host, scripts);
    let (home, mut warden) = host.kill();
    // The promise is 3 s on an idle machine.
    assert!(warden.is_empty_within(Duration::from_secs(8)), "left are {:#?}", warden.tree());
    for calling in &mut callings {
        let seen = calling.finish(PATIENCE).expect("the shim ends");
        assert_eq!(seen.code(), 125, "{seen:?}");
        let text = seen.err();
        assert!(text.starts_with("rexec: ") && text.lines().count() <= 2, "one sentence and a hint: {text}");
    }
    let next = Host::in_dir(home, PLAIN);
    let lost = || next.journal().of_type("lost").count() == callings.len();
    assert!(waiting::until_true(PATIENCE, lost), "{:#?}", next.journal());
    assert_eq!(next.run("echo again").out(), "again\n");
}

#[test]
fn what_was_left_in_the_background_outlives_a_killed_host() {
    let host = Host::start();
    let path = host.home.join("later");
    assert_eq!(host.run("(sleep 1; echo alive > later) >/dev/null 2>&1 & echo started").out(), "started\n");
    let (home, mut warden) = host.kill();
    assert!(waiting::until_true(PATIENCE, || path.exists()), "it died with the host");
    assert!(warden.is_empty_within(PATIENCE));
    drop(home);
}

#[test]
fn the_flags_of_inherited_descriptors_stay() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut host = Host::with(Setup { terminal: true, ..PLAIN });
        let terminal = host.terminal.as_ref().expect("a terminal").slave();
        let before = fcntl(&terminal, FcntlArg::F_GETFL).expect("flags");
        assert!(!OFlag::from_bits_retain(before).contains(OFlag::O_NONBLOCK), "the host has set it");
        assert_eq!(host.run("echo x").out(), "x\n");
        let during = fcntl(&terminal, FcntlArg::F_GETFL).expect("flags");
        if signal == Signal::SIGKILL {
            _ = host.kill();
        } else {
            host.wait_idle();
            host.signal(signal);
            host.check_end();
        }
        let after = fcntl(&terminal, FcntlArg::F_GETFL).expect("flags");
        assert_eq!((during, after), (before, before), "{signal}");
    }
}
