//! How a host ends: asked to leave in three ways, together with its commands, or killed.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use rexec_sh::protocol::wire::{Attributes, Hello, Stdio, encode_run};

use super::leftovers::{rexec, said, start, written};
use crate::support::call::{Calling, Target};
use crate::support::host::{Host, PLAIN, SHUTDOWN, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::terminal::Terminal;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{State, USUAL};

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
    Keys,
}

#[test]
#[ignore = "long: 3 hosts, 16 commands each"]
fn a_host_that_is_told_to_leave_ends_its_commands_and_leaves() {
    for way in [Way::Term, Way::Hup, Way::Keys] {
        let mut host = Host::with(Setup { terminal: true, ..PLAIN });
        let mut callings = load(&host, SCRIPTS.iter().chain(SCRIPTS));
        match way {
            Way::Term => host.signal(Signal::SIGTERM),
            Way::Hup => host.signal(Signal::SIGHUP),
            Way::Keys => {
                let mut keyboard: File = host.terminal.as_ref().expect("a terminal").master_file();
                keyboard.write_all(b"q").expect("a key");
                let is_asked = || host.console_text().contains("end them and the host? y/n");
                assert!(waiting::until_true(PATIENCE, is_asked), "it does not ask");
                keyboard.write_all(b"y").expect("a key");
                // The next press kills what is left. By then the first one must have been read.
                assert!(waiting::until_true(PATIENCE, || !host.socket().exists()), "it has not heard");
                _ = keyboard.write_all(b"\x03");
            }
        }
        for calling in &mut callings {
            let seen = calling.finish(SHUTDOWN).unwrap_or_else(|| panic!("{way:?}: a shim is left waiting"));
            assert!(seen.code() != 0, "{way:?}: a stopped command has not succeeded: {seen:?}");
        }
        host.check_end();
        let journal = host.journal();
        let aborted = journal.of_type("end").filter(|end| end["error"] == "aborted").count();
        assert_eq!(aborted, callings.len(), "{way:?}: {:#?}", journal.records);
    }
}

/// A window that is closed hangs up, and neither keys nor screen are there any more: all that is one request. The grace is
/// two seconds, of which a busy machine may need more, so one success is enough.
#[test]
fn commands_have_their_grace_when_the_window_is_closed() {
    for closes in [true, false] {
        assert!((0..5).any(|_| has_its_grace(closes)), "closed: {closes}");
    }
}

/// Whether a command could clean up before its host ended.
fn has_its_grace(closes: bool) -> bool {
    const SCRIPT: &str =
        "exec 2>/dev/null; trap 'sleep 0.3; echo >> cleaned; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let mut host = Host::with(Setup { terminal: true, is_stuck: true, ..PLAIN });
    let mut callings = load(&host, [SCRIPT].iter());
    if closes {
        host.close_window();
        // What the kernel does not do here, because the test holds the terminal's other side too.
        host.signal(Signal::SIGHUP);
    }
    host.signal(if closes { Signal::SIGHUP } else { Signal::SIGTERM });
    let seen = callings[0].finish(SHUTDOWN).expect("it is told");
    let has_cleaned = host.home.join("cleaned").exists();
    assert_eq!(seen.code() == 3, has_cleaned, "closed: {closes}: {seen:?}");
    host.check_end();
    has_cleaned
}

/// As nohup(1) starts it.
#[test]
fn a_host_that_was_started_to_survive_a_hangup_does() {
    let state = State { ignored: &[Signal::SIGHUP], ..USUAL };
    let host = Host::with(Setup { state, ..PLAIN });
    host.signal(Signal::SIGHUP);
    assert_eq!(host.run("echo on").out(), "on\n");
    host.signal(Signal::SIGHUP);
    assert_eq!(host.run("echo on").out(), "on\n");
    host.finish();
}

/// While one command takes its time to end, nothing new begins. A busy machine may ask when the host has left, so one
/// success is enough.
#[test]
fn a_request_to_a_host_that_ends_is_answered_and_nothing_is_run() {
    assert!((0..10).any(|_| is_answered_at_the_end()), "a caller was told nothing");
}

/// Whether callers of a host that ends were told so.
fn is_answered_at_the_end() -> bool {
    let mut host = Host::start();
    let mut last = load(&host, ["trap 'sleep 1; exit 3' TERM; echo ready; while :; do sleep 0.01; done"].iter());
    let connect = || {
        let stream = UnixStream::connect(host.socket()).expect("a host");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    };
    let (mut silent, mut greeted) = (connect(), connect());
    greeted.write_all(&Hello::OURS.encode()).expect("it takes bytes");
    // What was asked before is answered: by then both have been let in.
    assert_eq!(host.run("echo on").out(), "on\n");
    host.signal(Signal::SIGTERM);
    assert!(waiting::until_true(PATIENCE, || !host.socket().exists()), "{}", host.console_text());
    let mut request = Hello::OURS.encode().to_vec();
    let attributes = Attributes { stdio: Stdio { stdout: true, ..Stdio::default() }, ..Attributes::default() };
    let argv = [c"bash", c"-c", c"echo >> ran"].into_iter();
    encode_run(&attributes, (b"late", c"/bin/bash"), argv, std::iter::empty(), &mut request).expect("it fits");
    _ = silent.write_all(&request);
    let are_told = [&mut silent, &mut greeted].map(|stream| {
        let mut words = Vec::new();
        _ = stream.read_to_end(&mut words);
        let text = String::from_utf8_lossy(&words);
        text.contains("the host is ending; nothing was run") && text.contains("hint: ")
    });
    let code = last[0].finish(PATIENCE).map(|seen| seen.code());
    host.check_end();
    assert!(!host.home.join("ran").exists(), "it ran");
    are_told == [true; 2] && code == Some(3)
}

/// The bound on the whole end is five seconds, and a silent peer must not use them up. A busy machine may, so one success
/// is enough.
#[test]
fn a_peer_that_only_said_hello_is_not_waited_for() {
    let is_quick = (0..10).any(|_| {
        let mut host = Host::start();
        let mut peer = UnixStream::connect(host.socket()).expect("a host");
        peer.write_all(&Hello::OURS.encode()).expect("it takes bytes");
        assert_eq!(host.run("echo on").out(), "on\n");
        host.signal(Signal::SIGTERM);
        let is_quick = host.warden.wait(Duration::from_secs(4)).is_some();
        host.check_end();
        is_quick
    });
    assert!(is_quick, "it is waited for");
}

/// What a person wants ended is ended before the host leaves.
#[test]
fn what_a_person_wants_ended_ends_before_the_host() {
    let mut host = Host::with(Setup { flags: &["--grace", "60"], ..PLAIN });
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > server; while :; do sleep 1; done' >/dev/null 2>&1 & \
                  until [ -s server ]; do :; done";
    assert_eq!(host.run(script).code(), 0);
    let server = super::leftovers::written(&host, "server");
    let seq = host.wait_for("its end", |journal| Some(journal.end_of(script)?["seq"].to_string()));
    std::thread::scope(|scope| {
        let killing = scope.spawn(|| super::leftovers::rexec(&host, &["kill", &seq]));
        let is_stopping = || super::leftovers::said(&super::leftovers::rexec(&host, &["ps"])).1.contains("stopping");
        assert!(waiting::until_true(PATIENCE, is_stopping));
        host.signal(Signal::SIGTERM);
        let killed = super::leftovers::said(&killing.join().expect("no panic"));
        assert_eq!(killed.0, Some(0), "{killed:?}");
    });
    assert!(!server.is_alive(), "it outlives the host");
    host.check_end();
}

/// An alarm, a timer, a soft limit of processor time, a number mistyped: every command would end by it, and the terminal
/// stay as the host has it.
#[test]
fn a_host_survives_signals_that_mean_nothing_to_it() {
    let host = Host::start();
    for signal in Signal::iterator() {
        let ends = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGKILL];
        let faults = [Signal::SIGILL, Signal::SIGABRT, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGSEGV];
        if !ends.into_iter().chain(faults).chain([Signal::SIGSTOP]).any(|other| other == signal) {
            host.signal(signal);
            assert_eq!(host.run("echo on").out(), "on\n", "{signal}");
        }
    }
    host.finish();
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

/// Its shell gives the terminal modes in which ^C would end the host, and with it all commands.
#[test]
fn a_host_that_was_stopped_takes_its_terminal_over_again() {
    let shells = Terminal::new(120, 40).modes();
    let mut host = Host::with(Setup { terminal: true, ..PLAIN });
    let modes = |host: &Host| host.terminal.as_ref().expect("a terminal").modes();
    waiting::wait_until("the host has the terminal", || modes(&host) != shells);
    let taken = modes(&host);
    host.stop();
    host.terminal.as_ref().expect("a terminal").set_modes(&shells);
    host.signal(Signal::SIGCONT);
    waiting::wait_until("the host has the terminal again", || modes(&host) == taken);
    assert_eq!(host.run("echo on").out(), "on\n");
    host.signal(Signal::SIGTERM);
    host.check_end();
    assert_eq!(modes(&host), shells);
}

#[test]
fn nothing_of_a_killed_hosts_runs_is_left() {
    let host = Host::start();
    // Without the busy one, which would only slow everybody else down.
    let scripts = SCRIPTS.iter().filter(|script| !script.contains("yes")).cycle().take(waiting::size(30, 100));
    let mut callings = load(&host, scripts.clone());
    let (home, mut warden) = host.kill();
    assert!(warden.is_empty_within(PATIENCE), "left are {:#?}", warden.tree());
    for (calling, script) in callings.iter_mut().zip(scripts) {
        let seen = calling.finish(PATIENCE).expect("the shim ends");
        assert_eq!(seen.code(), 125, "{seen:?}");
        let text = seen.err();
        // The command may have given up the way to its caller.
        let is_silent = text.is_empty() && script.contains("2>&-");
        assert!(
            is_silent || text.starts_with("rexec: ") && text.lines().count() <= 2,
            "one sentence and a hint: {text}"
        );
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

/// The shell goes at SIGTERM, so its guard has nothing to watch any more but what does not.
#[test]
fn a_tree_that_is_being_ended_ends_although_the_host_is_killed_meanwhile() {
    let host = Host::with(Setup { flags: &["--grace", "60"], ..PLAIN });
    let script = "(trap '' TERM HUP; exec sleep 1000) & echo $! >deaf; \
                  setsid sh -c 'trap \"\" TERM HUP; echo $$ >daemon; exec sleep 1000' & echo $$ >shell; wait";
    let mut calling = start(&host, script);
    let [deaf, daemon, shell] = ["deaf", "daemon", "shell"].map(|file| written(&host, file));
    waiting::wait_until("programs that are deaf", || {
        [&deaf, &daemon].iter().all(|process| Process::of(process.pid).is_some_and(|now| now.comm == "sleep"))
    });
    let mut asked = programs::command(programs::rexec());
    let asked = asked.args(["kill", "1"]).env_clear().env("REXEC_SOCKET", host.socket());
    let mut asked = asked.stderr(std::process::Stdio::null()).spawn().expect("rexec runs");
    waiting::wait_until("the end of the shell", || !shell.is_alive());
    let (home, mut warden) = host.kill();
    assert!(warden.is_empty_within(PATIENCE), "{:#?}", warden.tree());
    assert!(!deaf.is_alive() && !daemon.is_alive());
    asked.wait().expect("it ends with the host");
    calling.finish(PATIENCE).expect("it is told");
    drop(home);
}

#[test]
fn what_is_paused_goes_on_when_the_host_ends() {
    // In a session of its own it gets no SIGHUP from the kernel when its guard dies.
    let stopped = |process: &Process| Process::of(process.pid).is_some_and(|now| now.state == 'T');
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        for has_guard in [true, false] {
            if !has_guard && signal == Signal::SIGKILL {
                // Nobody is left who knows what was paused.
                continue;
            }
            let host = Host::start();
            assert_eq!(host.run("setsid sleep 1000 >/dev/null 2>&1 & echo $! >left; echo $PPID >guard").code(), 0);
            let (left, guard) = (written(&host, "left"), written(&host, "guard"));
            assert_eq!(said(&rexec(&host, &["pause", "1"])).0, Some(0));
            waiting::wait_until("a pause", || stopped(&left));
            if !has_guard {
                guard.signal(Signal::SIGKILL);
                let is_adopted = || Process::of(left.pid).is_some_and(|left| left.parent == host.pid());
                waiting::wait_until("another parent", is_adopted);
                waiting::wait_until("a look at it", || said(&rexec(&host, &["ps", "-v"])).1.contains(" sleep "));
            }
            let (home, mut warden) = host.end_by(signal);
            waiting::wait_until("what was paused to go on", || left.is_alive() && !stopped(&left));
            left.signal(Signal::SIGKILL);
            assert!(warden.is_empty_within(PATIENCE), "{signal}: {:#?}", warden.tree());
            drop(home);
        }
    }
}
