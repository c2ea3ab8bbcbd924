//! SIGKILL of the shim kills the whole tree of its command; other signals to the shim reach the command.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::signal::Signal::{
    SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, SIGKILL, SIGPIPE, SIGPROF, SIGPWR, SIGQUIT,
    SIGSEGV, SIGSTKFLT, SIGSYS, SIGTERM, SIGTRAP, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

use crate::exec::rexec;
use crate::support::call::{Calling, Outcome, Target};
use crate::support::crowd;
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::procs::{self, Process};
use crate::support::waiting::{self, PATIENCE};

/// A hang guard. The promise is 2.5 s on an idle machine.
const GONE: Duration = PATIENCE;

/// Ways to escape from the one who kills a process group. Each writes the pids of what must die into `pids`.
const ESCAPES: &[(&str, &str)] = &[
    ("plain", "echo $$ >> pids; sleep 1000 & echo $! >> pids; wait"),
    ("a pipeline", "echo $$ >> pids; sh -c 'echo $$ >> pids; sleep 1000' | (echo $BASHPID >> pids; cat)"),
    ("TERM ignored", "trap '' TERM; echo $$ >> pids; sleep 1000 & echo $! >> pids; wait"),
    ("job control", "set -m; echo $$ >> pids; sleep 1000 & echo $! >> pids; sleep 1000 & echo $! >> pids; wait"),
    ("a session of its own", "echo $$ >> pids; setsid sh -c 'echo $$ >> pids; sleep 1000; :' & sleep 1000"),
    (
        "a session without descriptors",
        "echo $$ >> pids; setsid sh -c 'echo $$ >> pids; exec <&- >&- 2>&-; sleep 1000; :' & sleep 1000",
    ),
    (
        "a double fork",
        "echo $$ >> pids; ( setsid sh -c 'echo $$ >> pids; trap \"\" HUP; sleep 1000; :' >/dev/null 2>&1 & ) ; sleep 1000",
    ),
    (
        "no environment",
        "echo $$ >> pids; env -i /usr/bin/setsid /bin/sh -c 'echo $$ >> pids; sleep 1000; :' & sleep 1000",
    ),
    (
        "a respawner",
        "echo $$ >> pids; f() { setsid sh -c 'echo $$ >> pids; sleep 0.05; :' </dev/null >/dev/null 2>&1; f & }; f & sleep 1000",
    ),
    ("stopped", "echo $$ >> pids; sleep 1000 & echo $! >> pids; kill -STOP $!; kill -STOP $$; sleep 1000"),
];

fn pids(host: &Host) -> Vec<i32> {
    let text = fs::read_to_string(host.home.join("pids")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

#[test]
fn killing_the_shim_kills_every_tree() {
    let host = Host::start();
    for (name, script) in ESCAPES {
        _ = fs::remove_file(host.home.join("pids"));
        let bystander = start(&host, "sleep 0.2; echo untouched");
        let calling = start(&host, script);
        assert!(waiting::until_true(PATIENCE, || pids(&host).len() >= 2), "{name} never started");
        let tree: Vec<Process> = pids(&host).into_iter().filter_map(Process::of).collect();
        calling.warden.signal(SIGKILL);
        let is_gone = || {
            let left = pids(&host).into_iter().filter_map(Process::of).filter(|now| !now.is_zombie());
            tree.iter().all(|process| !process.is_alive()) && left.count() == 0
        };
        assert!(waiting::until_true(GONE, is_gone), "{name}: left are {:#?}", host.tree());
        let mut bystander = bystander;
        let seen = bystander.finish(PATIENCE).expect("other runs end as they would");
        assert_eq!((seen.out().as_str(), seen.code()), ("untouched\n", 0), "beside {name}");
    }
    let aborted = || host.journal().of_type("end").filter(|end| end["error"] == "aborted").count();
    assert!(waiting::until_true(PATIENCE, || aborted() == ESCAPES.len()), "{:#?}", host.journal());
}

/// What a script with traps says and returns when its group is signalled, by the real shell or by the shim.
fn signalled(host: &Host, script: &str, signal: Signal, target: Target<'_>) -> Outcome {
    let mut calling = host.call(script).start(target).expect("it starts");
    let stdout = calling.stdout.as_ref().expect("a pipe");
    assert!(stdout.wait_for(b"ready\n", PATIENCE), "it never became ready");
    calling.warden.signal_group(signal);
    calling.finish(PATIENCE).unwrap_or_else(|| panic!("{script} hangs after {signal}: {:#?}", host.tree()))
}

#[test]
fn signals_reach_the_command() {
    let host = Host::start();
    let mut wrong = Vec::new();
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2] {
        let name = signal.as_str().trim_start_matches("SIG");
        let trap = format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.01; done");
        // A shell that gets INT just as its child ends well takes it for the child's, and goes on.
        let plain = "echo ready; while :; do sleep 1000; done".to_owned();
        // The program says itself that it is there: before, the shell would take the signal.
        let exec = "echo ready >word; exec tail -f word".to_owned();
        let survive =
            format!("trap 'echo got {name}; n=1' {name}; echo ready; until [ $n ]; do sleep 0.01; done; echo on");
        // A shell ignores QUIT, whoever runs it.
        let scripts = if signal == SIGQUIT { vec![trap, exec, survive] } else { vec![trap, plain, exec, survive] };
        for script in scripts {
            let theirs = signalled(&host, &script, signal, Target::Real);
            let ours = signalled(&host, &format!("{script} "), signal, Target::Shim(&host.socket()));
            if (theirs.code(), theirs.out()) != (ours.code(), ours.out()) {
                wrong.push(format!(
                    "{name}: {script}\n  real {} {:?}\n  shim {} {:?} {}",
                    theirs.code(),
                    theirs.out(),
                    ours.code(),
                    ours.out(),
                    ours.err()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn signals_that_shells_seldom_get_reach_the_command() {
    let host = Host::start();
    let signals = [
        SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGIO, SIGPIPE, SIGPROF, SIGPWR, SIGSEGV, SIGSTKFLT, SIGSYS, SIGTRAP,
        SIGURG, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
    ];
    for signal in signals {
        let name = signal.as_str().trim_start_matches("SIG");
        let trap = format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.01; done");
        let plain = "ulimit -c 0; echo ready; while :; do sleep 1000; done".to_owned();
        let is_ignored = matches!(signal, SIGURG | SIGWINCH);
        for script in [Some(trap), (!is_ignored).then_some(plain)].into_iter().flatten() {
            let theirs = signalled(&host, &script, signal, Target::Real);
            let ours = signalled(&host, &script, signal, Target::Shim(&host.socket()));
            assert_eq!((theirs.code(), theirs.out()), (ours.code(), ours.out()), "{name}: {script}: {}", ours.err());
        }
    }
}

#[test]
fn a_stubborn_command_is_killed_after_all() {
    let host = Host::start();
    let calling =
        start(&host, "trap '' TERM INT HUP; echo $$ >> pids; echo $BASHPID >> pids; while :; do sleep 0.1; done");
    assert!(waiting::until_true(PATIENCE, || pids(&host).len() >= 2));
    let shell = Process::of(pids(&host)[0]).expect("it runs");
    calling.warden.signal(SIGTERM);
    calling.warden.signal(SIGKILL);
    assert!(waiting::until_true(GONE, || !shell.is_alive()), "{:#?}", host.tree());
}

/// Takes a moment to clean up when it is told to end. It says nothing: who writes to a host that is gone dies of that.
const CLEANS: &str =
    "exec 2>/dev/null; trap 'sleep 0.05; echo >> cleaned; exit' TERM; echo ready; while :; do sleep 0.01; done";

/// It is killed soon after it was told to end. A busy machine may be late with that, so one success is enough.
#[test]
fn a_command_whose_caller_is_killed_may_clean_up() {
    let host = Host::start();
    let cleans = (1..=50).any(|round| {
        let calling = start(&host, CLEANS);
        assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
        calling.warden.signal(SIGKILL);
        host.wait_for("its end", |journal| (journal.of_type("end").count() == round).then_some(()));
        host.home.join("cleaned").exists()
    });
    assert!(cleans, "it was killed at once");
}

/// The same when its host is killed.
#[test]
fn a_command_whose_host_is_killed_may_clean_up() {
    let cleans = (0..30).any(|_| {
        let host = Host::start();
        let mut calling = start(&host, CLEANS);
        assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
        let (home, mut warden) = host.kill();
        assert!(warden.is_empty_within(PATIENCE), "{:#?}", warden.tree());
        assert_eq!(calling.finish(PATIENCE).map(|seen| seen.code()), Some(125));
        home.join("cleaned").exists()
    });
    assert!(cleans, "it was killed at once");
}

#[test]
fn a_killed_guard_takes_its_own_command_only() {
    let host = Host::start();
    let mut lost = start(&host, "echo $$ >> pids; echo $PPID >> pids; echo ready; sleep 1000");
    let mut other = start(&host, "echo ready; sleep 2; echo through; exit 3");
    for calling in [&lost, &other] {
        assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
    }
    let [shell, guard] = pids(&host)[..] else { panic!("two pids") };
    let (shell, guard) = (Process::of(shell).expect("it runs"), Process::of(guard).expect("it runs"));
    guard.signal(SIGKILL);
    let seen = lost.finish(PATIENCE).expect("the shim is told");
    assert_eq!(seen.code(), 125, "{seen:?}");
    assert!(seen.err().starts_with("rexec: ") && seen.err().contains("\nhint: "), "{}", seen.err());
    assert!(waiting::until_true(GONE, || !shell.is_alive()), "{:#?}", host.tree());
    let seen = other.finish(PATIENCE).expect("the other one ends");
    assert_eq!((seen.out().as_str(), seen.code()), ("ready\nthrough\n", 3));
}

/// What the host's own process had started before it became the host is nobody's orphan.
#[test]
fn what_was_there_before_the_host_survives_a_killed_guard() {
    let wrapper = &["sh", "-c", "sleep 1000 & echo $! > kin; (setsid sleep 1001 & echo $! > kin2); exec \"$0\" \"$@\""];
    let host = Host::with(Setup { wrapper, ..PLAIN });
    let kin = ["kin", "kin2"].map(|file| super::leftovers::written(&host, file));
    for script in
        ["echo $PPID > guard; echo ready; sleep 1000", "echo $PPID > guard; echo ready; setsid sleep 1000 & wait"]
    {
        let mut lost = start(&host, script);
        assert!(lost.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
        super::leftovers::written(&host, "guard").signal(SIGKILL);
        assert_eq!(lost.finish(PATIENCE).map(|seen| seen.code()), Some(125));
        let is_its = |process: &Process| process.comm == "sleep" && kin.iter().all(|kin| kin.pid != process.pid);
        assert!(waiting::until_true(PATIENCE, || !host.tree().iter().any(is_its)), "{:#?}", host.tree());
        assert!(kin.iter().all(Process::is_alive), "{script}: {:#?}", host.tree());
    }
    kin.iter().for_each(|kin| kin.signal(SIGKILL));
    _ = host.end_by(SIGTERM);
}

#[test]
fn a_stopped_host_only_delays() {
    let host = Host::start();
    let mut before = start(&host, "echo ready; sleep 0.1; echo done; exit 3");
    assert!(before.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
    host.stop();
    let mut after = start(&host, "echo late; exit 4");
    let waits = || procs::is_polling(after.pid()) && host.tree().iter().all(|process| process.comm != "bash");
    assert!(waiting::until_true(PATIENCE, waits), "one has ended, the other waits: {:#?}", host.tree());
    host.signal(Signal::SIGCONT);
    assert_eq!(before.finish(PATIENCE).map(|seen| (seen.code(), seen.out())), Some((3, "ready\ndone\n".to_owned())));
    assert_eq!(after.finish(PATIENCE).map(|seen| (seen.code(), seen.out())), Some((4, "late\n".to_owned())));
}

#[test]
fn a_stopped_call_stops_its_command_and_goes_on_later() {
    let host = Host::start();
    let mut calling = start(
        &host,
        "echo $$ >> pids; echo $$ >> pids; echo ready; while :; do sleep 0.02; test -e go && break; done; echo done",
    );
    assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE));
    let pid = pids(&host)[0];
    calling.warden.signal(Signal::SIGTSTP);
    let is = |pid: i32, state: char| Process::of(pid).is_some_and(|now| now.state == state);
    assert!(waiting::until_true(PATIENCE, || is(pid, 'T') && is(calling.pid(), 'T')), "{:?}", host.tree());
    fs::write(host.home.join("go"), "").expect("a file");
    calling.warden.signal(Signal::SIGCONT);
    let seen = calling.finish(PATIENCE).expect("it goes on");
    assert_eq!((seen.code(), seen.out().as_str()), (0, "ready\ndone\n"));
}

/// Only a stop at the terminal is the host's business; one that was asked for lasts until somebody continues it.
#[test]
#[ignore = "long: watches 2 commands stay stopped for 2 s"]
fn a_command_that_stops_itself_stays_stopped() {
    let host = Host::start();
    for script in ["echo ready; kill -STOP $$; echo on", "echo ready; sh -c 'kill -STOP $$; echo on'"] {
        let mut calling = start(&host, script);
        let stdout = calling.stdout.as_ref().expect("a pipe");
        assert!(stdout.wait_for(b"ready\n", PATIENCE));
        waiting::wait_until("the stop", || host.tree().iter().any(|process| process.state == 'T'));
        // Far beyond the pause after which the host looks for groups that wait at the terminal.
        assert!(!stdout.wait_for(b"on\n", Duration::from_secs(2)), "{script}: it was continued");
        let stopped: Vec<Process> = host.tree().into_iter().filter(|process| process.state == 'T').collect();
        assert_eq!(stopped.len(), 1, "{script}: {:#?}", host.tree());
        stopped[0].signal(Signal::SIGCONT);
        let seen = calling.finish(PATIENCE).expect("it goes on");
        assert_eq!((seen.out().as_str(), seen.err().as_str(), seen.code()), ("ready\non\n", "", 0), "{script}");
    }
}

#[test]
fn what_outlives_the_signal_that_ended_its_shell_is_killed_with_the_rest_of_the_group() {
    const SCRIPT: &str = "(trap '' TERM INT; echo $BASHPID >> pids; exec sleep 1000) & \
                          setsid sh -c 'trap \"\" TERM; echo $$ >> pids; exec sleep 1000' & \
                          while [ $(wc -l < pids) -lt 2 ]; do sleep 0.02; done; echo ready; sleep 1000";
    let host = Host::with(Setup { flags: &["--grace", "0.3"], ..MIRROR });
    for (signal, code) in [(SIGTERM, 143), (SIGINT, 130)] {
        fs::write(host.home.join("pids"), "").expect("a file");
        let mut calling = start(&host, SCRIPT);
        // A shell that is interrupted while it waits for a child that ends well goes on.
        let stdout = calling.stdout.as_ref().expect("a pipe");
        assert!(stdout.wait_for(b"ready\n", PATIENCE), "it never started");
        let found: Vec<Process> = pids(&host).into_iter().filter_map(Process::of).collect();
        let (apart, member): (Vec<&Process>, _) = found.iter().partition(|process| process.session == process.pid);
        assert_eq!((apart.len(), member.len()), (1, 1), "{found:#?}");
        calling.warden.signal_group(signal);
        let outcome = calling.finish_early(PATIENCE).expect("it ends");
        assert_eq!(outcome.code(), code, "{outcome:?}");
        assert!(waiting::until_true(GONE, || !member[0].is_alive()), "{signal} left it alive");
        assert!(apart[0].is_alive(), "what has left the group lives on, as without rexec");
        apart[0].signal(SIGKILL);
    }
}

/// A shell that dies of a signal waits for no reader: what its pipe has no room for was never written.
#[test]
fn a_command_that_dies_of_a_signal_does_not_wait_for_a_reader() {
    let host = Host::with(PLAIN);
    let shim = || crowd::shim(&host, "exec yes");
    let exec = || rexec(&host, &["exec", "yes"]);
    let died = |signal| (None, Some(signal as i32));
    let exited = |signal| (Some(128 + signal as i32), None);
    for (mut command, signal, end) in [
        (shim(), SIGTERM, died(SIGTERM)),
        (shim(), SIGHUP, died(SIGHUP)),
        (exec(), SIGTERM, exited(SIGTERM)),
        (exec(), SIGHUP, exited(SIGHUP)),
    ] {
        let mut shim = command.stdout(Stdio::piped()).spawn().expect("a shim");
        let writer = procs::wait_until_held(host.pid(), "yes");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(shim.id().cast_signed()), signal).expect("ours");
        let ended = waiting::until(PATIENCE, || shim.try_wait().expect("a child"));
        let Some(status) = ended else {
            writer.signal(SIGKILL);
            let _ = shim.kill();
            panic!("it waits for a reader after {signal}");
        };
        assert_eq!((status.code(), status.signal()), end);
        let mut out = Vec::new();
        shim.stdout.take().expect("a pipe").read_to_end(&mut out).expect("it ends");
        // A full pipe of 16 pages, of which two that follow each other have more than one page of bytes.
        assert!(out.len() >= 32 << 10 && out.starts_with(b"y\ny\n"), "{} bytes", out.len());
    }
    host.finish();
}

/// The plain client gives up after five seconds whatever happens, so it has to be faster once among several times.
#[test]
fn a_plain_client_that_is_ended_does_not_wait_for_a_reader() {
    let host = Host::with(PLAIN);
    let ends_soon = || {
        let mut command = rexec(&host, &["--whoami", "Ann", "--dir", "/", "--", "yes"]);
        let mut client = command.stdout(Stdio::piped()).spawn().expect("a client");
        procs::wait_until_held(host.pid(), "yes");
        let since = Instant::now();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(client.id().cast_signed()), SIGTERM).expect("ours");
        assert_eq!(client.wait().expect("a child").code(), Some(143));
        since.elapsed() < Duration::from_secs(4)
    };
    assert!((0..5).any(|_| ends_soon()), "it waits for a reader");
    host.finish();
}

/// Only the death of the command ends the wait: what a shell writes after a signal that it has caught is not lost.
#[test]
fn a_command_that_catches_a_signal_waits_for_a_reader() {
    let host = Host::with(PLAIN);
    let script = "trap 'echo bye; exit 3' TERM; (trap '' TERM; exec seq 1000000)";
    let mut shim = crowd::shim(&host, script).stdout(Stdio::piped()).spawn().expect("a shim");
    procs::wait_until_held(host.pid(), "seq");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(shim.id().cast_signed()), SIGTERM).expect("ours");
    // Longer than the patience with a reader of what died.
    let has_ended = waiting::until_true(Duration::from_secs(1), || shim.try_wait().expect("a child").is_some());
    assert!(!has_ended, "its output is lost");
    let mut out = String::new();
    shim.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    assert!(out.ends_with("\n1000000\nbye\n") && out.len() == 6_888_896 + 4, "{} bytes", out.len());
    assert_eq!(shim.wait().expect("a child").code(), Some(3));
    host.finish();
}
