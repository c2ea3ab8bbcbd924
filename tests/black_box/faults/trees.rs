//! Process trees that resist: processes that cannot be killed, guards that are killed, and process numbers that are
//! used again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rexec_host::limits::LET_GO_PATIENCE;
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::{CallerStream, FromHost, FromShim, encode_output};
use serde_json::json;

use super::peers::{connect, request, send};

use crate::support::call::{Calling, Target};
use crate::support::crowd::{Gate, WAIT_AT_GATE, quiet};
use crate::support::dice::Dice;
use crate::support::host::{Host, MIRROR, PLAIN, SHUTDOWN, Setup};
use crate::support::own_process::alone;
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// A process of root's below a host of another user.
struct Withstander {
    host: Host,
    calling: Calling,
    process: Process,
}

impl Withstander {
    /// Starts it with the right to become root, as sudo has it; `None` when we cannot give that.
    fn start(before: &str) -> Option<Self> {
        let Some(user) = programs::another_user() else {
            programs::skipped("only root can give the right to become root");
            return None;
        };
        let host = Host::with(Setup { user: Some(user), ..PLAIN });
        let become_root = host.home.join("become-root");
        programs::write(&become_root, &fs::read("/usr/bin/setpriv").expect("setpriv is part of util-linux"));
        fs::set_permissions(&become_root, fs::Permissions::from_mode(0o4755)).expect("ours");
        let script = format!("echo started; {before}./become-root --reuid 0 sh -c 'echo $$ > pid; exec sleep 1000'");
        let calling = host.call(&script).start(Target::Shim(&host.socket())).expect("a shim");
        let pid = || fs::read_to_string(host.home.join("pid")).ok()?.trim().parse().ok();
        let is_roots = |process: &Process| process.comm == "sleep" && owner(process.pid) == Some(0);
        let process = waiting::until(PATIENCE, || Process::of(pid()?).filter(is_roots)).expect("it becomes root's");
        Some(Self { host, calling, process })
    }

    /// Ends it, as only root can.
    fn end(&self) {
        self.process.signal(Signal::SIGKILL);
    }
}

fn owner(pid: i32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}")).ok().map(|data| data.uid())
}

#[test]
#[ignore = "long: waits out 7 s of killing in vain"]
fn what_cannot_be_killed_is_named() {
    let cases = [("exec ", 125), ("trap '' TERM; sleep 1000 & ", 137)];
    let all: Vec<Withstander> = cases.iter().filter_map(|(before, _)| Withstander::start(before)).collect();
    all.iter().for_each(|it| it.calling.warden.signal(Signal::SIGKILL));
    for (it, (_, code)) in all.iter().zip(cases) {
        let pid = it.process.pid;
        // The promise is 7 s after the caller's end.
        let end = it.host.wait_for("its end", |journal| journal.of_type("end").next().cloned());
        assert_eq!((end["exit"].as_i64(), &end["unkillable"]), (Some(code), &json!([pid])), "{end}");
        let line = format!("… #1: sleep (process {pid}) cannot be killed");
        assert!(waiting::until_true(PATIENCE, || it.host.console_text().contains(&line)), "{}", it.host.console_text());
        assert!(it.process.is_alive());
        assert_eq!(it.host.run("echo on").out(), "on\n");
        it.end();
    }
}

/// The whole shutdown has a bound, five seconds.
#[test]
#[ignore = "long: waits out the 5 s of a shutdown"]
fn a_host_leaves_although_something_cannot_be_killed() {
    let Some(mut it) = Withstander::start("") else { return };
    it.host.signal(Signal::SIGTERM);
    assert!(it.host.warden.wait(SHUTDOWN).is_some(), "the host waits for what it cannot kill");
    assert!(it.process.is_alive());
    let seen = it.calling.finish(PATIENCE).expect("the caller is let go");
    assert_eq!(seen.code(), 125, "{seen:?}");
    it.end();
    it.host.check_gone();
    // Nobody has seen its end; the next host will say that it is lost.
    let journal = it.host.journal();
    assert_eq!((journal.of_type("start").count(), journal.of_type("end").count()), (1, 0), "{journal:#?}");
}

/// A killed guard costs its own command, and no other.
#[test]
fn guards_that_are_killed_take_their_own_commands_only() {
    const COMMANDS: usize = 20;
    let host = Host::start();
    let mut gate = Gate::new(host.home.path(), None);
    let start = |n: usize| {
        let tree = format!("setsid sh -c 'echo $$ >> pids-{n}; exec sleep 1000' & echo $$ $PPID >> pids-{n}");
        let script =
            format!("{tree}; until [ $(wc -w < pids-{n}) = 3 ]; do sleep 0.01; done; {WAIT_AT_GATE}; kill $!; exit 7");
        host.call(&script).start(Target::Shim(&host.socket())).expect("a shim")
    };
    let mut callings: Vec<Calling> = (0..COMMANDS).map(start).collect();
    gate.wait_for(COMMANDS);
    let tree = |n: usize| -> Vec<Process> {
        let text = fs::read_to_string(host.home.join(&format!("pids-{n}"))).expect("pids");
        text.split_ascii_whitespace().filter_map(|pid| Process::of(pid.parse().ok()?)).collect()
    };
    let mut dice = Dice::new(11);
    let struck: BTreeSet<usize> = (0..COMMANDS / 2).map(|_| dice.below(COMMANDS)).collect();
    for &n in &struck {
        let tree = tree(n);
        assert_eq!(tree.len(), 3, "{tree:#?}");
        tree.iter().filter(|process| process.comm == "rexec-guard").for_each(|guard| guard.signal(Signal::SIGKILL));
        let is_gone = || tree.iter().all(|process| !process.is_alive());
        assert!(waiting::until_true(PATIENCE, is_gone), "orphans of {n}: {:#?}", host.tree());
    }
    gate.let_through(COMMANDS - struck.len());
    for (n, calling) in callings.iter_mut().enumerate() {
        let seen = calling.finish(PATIENCE).expect("it ends");
        if struck.contains(&n) {
            assert!(seen.code() == 125 && seen.err().contains("guard went away"), "{seen:?}");
        } else {
            assert_eq!((seen.code(), seen.err().as_str()), (7, ""), "{n} was not struck");
        }
    }
    let lost = || host.journal().of_type("end").filter(|end| end["error"] == "lost").count();
    assert!(waiting::until_true(PATIENCE, || lost() == struck.len()), "{} of {}", lost(), struck.len());
}

/// A process that forks and ends before it is seen leaves a child which was not there when the host looked.
#[test]
fn what_forks_and_ends_again_and_again_ends_with_its_killed_guard() {
    let host = Host::with(MIRROR);
    let script = "f() { f & }; f & f & f & f & echo $PPID > guard; exec sleep 1000";
    for round in 0..waiting::size(8, 80) {
        let mut calling = host.call(script).start(Target::Shim(&host.socket())).expect("a shim");
        let path = host.home.join("guard");
        let guard = || Process::of(fs::read_to_string(&path).ok()?.trim().parse().ok()?);
        waiting::until(PATIENCE, guard).expect("its guard").signal(Signal::SIGKILL);
        assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 125);
        let left = || host.tree().into_iter().filter(|process| process.comm == "bash").collect::<Vec<_>>();
        assert!(waiting::until_true(PATIENCE, || left().is_empty()), "after {round}: {:#?}", left());
        fs::remove_file(&path).expect("it was written");
    }
}

/// A guard without descriptors sees nothing below it. The host takes its place.
#[test]
#[ignore = "long: waits out the 5 s that a guard has"]
fn a_guard_that_can_open_nothing_is_ended_with_its_tree() {
    if !programs::has("prlimit") {
        return programs::skipped("there is no prlimit");
    }
    let host = Host::start();
    let tree = "trap '' TERM; setsid sleep 1000 & sleep 1000";
    let script = format!("prlimit --pid $PPID --nofile=4:4; {tree}");
    let mut calling = host.call(&script).start(Target::Shim(&host.socket())).expect("a shim");
    let sleepers = || host.tree().into_iter().filter(|process| process.comm == "sleep").collect::<Vec<_>>();
    let sleepers = waiting::until(PATIENCE, || Some(sleepers()).filter(|all| all.len() == 2)).expect("both");
    let status = programs::command(programs::rexec()).args(["kill", "1"]).env("REXEC_SOCKET", host.socket()).status();
    assert!(status.expect("rexec").success());
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 125);
    assert!(waiting::until_true(PATIENCE, || !sleepers.iter().any(Process::is_alive)), "{sleepers:#?}");
}

/// What a killed guard leaves is a child of the host; not all of the host's children are such.
#[test]
fn a_killed_guard_takes_no_human_s_command_and_no_guard_in_reserve_along() {
    const NOTE: &str = "echo on its way; sleep 1000";
    let flags = &["--prompts", "ask", "--prompt-wait", "300", "--notify", NOTE];
    let host = Host::with(Setup { terminal: true, flags, ..MIRROR });
    let mut asks = host.call("read -p 'name? ' x </dev/tty").start(Target::Shim(&host.socket())).expect("a shim");
    let script = "setsid sleep 999 & echo $PPID >pid; sleep 999";
    let mut runs = host.call(script).start(Target::Shim(&host.socket())).expect("a shim");
    let named = |words: &str| host.tree().into_iter().filter(|process| process.command() == words).collect::<Vec<_>>();
    let note = waiting::until(PATIENCE, || named("sleep 1000").pop()).expect("the human's command");
    assert!(waiting::until_true(PATIENCE, || named("sleep 999").len() == 2), "{:#?}", host.tree());
    let free = || {
        let guards = procs::children(host.pid()).into_iter().filter(|child| child.comm == "rexec-guard");
        guards.filter(|guard| procs::children(guard.pid).is_empty()).collect::<Vec<_>>()
    };
    let free = waiting::until(PATIENCE, || Some(free()).filter(|guards| !guards.is_empty())).expect("one in reserve");
    let guard = fs::read_to_string(host.home.join("pid")).expect("a file").trim().parse().ok();
    guard.and_then(Process::of).expect("its guard").signal(Signal::SIGKILL);
    assert_eq!(runs.finish(PATIENCE).expect("it ends").code(), 125);
    assert!(waiting::until_true(PATIENCE, || named("sleep 999").is_empty()), "{:#?}", host.tree());
    assert!(note.is_alive() && free.iter().all(Process::is_alive), "{:#?}", host.tree());
    note.signal(Signal::SIGKILL);
    asks.warden.signal(Signal::SIGTERM);
    assert!(asks.finish(PATIENCE).is_some());
}

/// A guard that waits for its caller's shim has begun with nothing: another one gets the command, which runs once. A busy
/// machine may be too slow for that, so one success is enough.
#[test]
fn a_command_whose_guard_is_killed_before_it_begins_goes_to_another() {
    let host = Host::start();
    assert!((0..10).any(|n| is_begun_again(&host, &host.home.join(&format!("ran-{n}")))), "no guard waited");
}

/// Kills the guard of a command whose shim, played here, still holds what the command may let go of. Returns whether it
/// was in time.
fn is_begun_again(host: &Host, ran: &Path) -> bool {
    let mut stream = connect(host);
    let place = File::open("/").expect("a directory");
    let request = request(&format!("echo once >> {}; echo done", ran.display()), 0);
    let sent = Instant::now();
    send(&stream, &request, &[place.as_raw_fd(), place.as_raw_fd()]).expect("it takes bytes");
    let is_waiting = |guard: &Process| guard.comm == "rexec-guard" && procs::is_polling(guard.pid);
    let waiting = || procs::children(host.pid()).into_iter().find(is_waiting);
    let Some(guard) = waiting::until(LET_GO_PATIENCE, waiting) else { return false };
    guard.signal(Signal::SIGKILL);
    let is_in_time = sent.elapsed() < LET_GO_PATIENCE;
    assert!(waiting::until_true(PATIENCE, || !guard.is_alive()));
    let mut let_go = Vec::new();
    FromShim::LetGo.encode(&mut let_go);
    _ = stream.write_all(&let_go);
    let mut told = Vec::new();
    stream.read_to_end(&mut told).expect("an answer");
    if is_in_time {
        let (mut done, mut exit) = (Vec::new(), Vec::new());
        encode_output(CallerStream::Out, b"done\n", &mut done);
        FromHost::Exit(Exit::Code(0)).encode(&mut exit);
        let has = |frame: &[u8]| told.windows(frame.len()).any(|bytes| bytes == frame);
        assert!(has(&done) && told.ends_with(&exit), "{}", told.escape_ascii());
        assert_eq!(fs::read_to_string(ran).expect("it ran"), "once\n");
    }
    is_in_time
}

/// Guards in reserve are made again, and a command whose guard has just died gets another.
#[test]
fn guards_in_reserve_are_replaced() {
    let host = Host::start();
    let reserve = || host.tree().into_iter().filter(|process| process.comm == "rexec-guard").collect::<Vec<_>>();
    for _ in 0..waiting::size(2, 8) {
        let full = || Some(reserve()).filter(|guards| guards.len() == 2);
        let guards = waiting::until(PATIENCE, full).unwrap_or_else(|| panic!("{:#?}", reserve()));
        guards.iter().for_each(|guard| guard.signal(Signal::SIGKILL));
        assert!(waiting::until_true(PATIENCE, || guards.iter().all(|guard| !guard.is_alive())), "{guards:#?}");
        let seen = host.run("echo on");
        assert_eq!((seen.code(), seen.out().as_str()), (0, "on\n"), "{}", seen.err());
        let is_full = || reserve().iter().filter(|guard| !guards.contains(guard)).count() == 2;
        assert!(waiting::until_true(PATIENCE, is_full), "{:#?}", reserve());
    }
}

/// Whether a namespace of process numbers has a bound of its own. Before Linux 6.14 the bound is everybody's.
fn has_own_numbers() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut version = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let has = (version.next(), version.next()) >= (Some(6), Some(14)) && nix::unistd::geteuid().is_root();
    if !has {
        programs::skipped("a bound on process numbers of our own needs Linux 6.14 and root");
    }
    has
}

/// Processes that nobody may signal, one after the other, so that they get numbers as soon as those are free.
fn watch_canaries(is_over: &AtomicBool, numbers: &Mutex<BTreeSet<u32>>) -> usize {
    let mut hit = 0;
    let deadline = Instant::now() + 4 * PATIENCE;
    while !is_over.load(Ordering::Relaxed) && Instant::now() < deadline {
        let canary = programs::command("/bin/sleep").arg("0.05").stdin(Stdio::null()).spawn();
        // There may be no number left at the moment.
        let Ok(mut canary) = canary else { continue };
        numbers.lock().expect("no canary panics").insert(canary.id());
        hit += usize::from(!canary.wait().expect("a child").success());
    }
    hit
}

#[test]
#[ignore = "long: 25 rounds of hunts"]
fn no_process_outside_of_a_command_is_signalled() {
    if has_own_numbers() {
        let wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
        alone("faults::trees::no_process_outside_of_a_command_is_signalled", &wrapper, reuse_numbers);
    }
}

/// Commands come and go among few process numbers, beside processes that nobody may signal.
fn reuse_numbers() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    // The first 300 are not given again.
    fs::write("/proc/sys/kernel/pid_max", "420").expect("the namespace is ours");
    let (is_over, canaries) = (AtomicBool::new(false), Mutex::new(BTreeSet::new()));
    let mut used = BTreeSet::new();
    let hits: usize = std::thread::scope(|scope| {
        let watch = || watch_canaries(&is_over, &canaries);
        let watches: Vec<_> = (0..6).map(|_| scope.spawn(watch)).collect();
        for round in 0..waiting::size(25, 250) {
            // Those that ignore TERM are hunted.
            let script = "trap '' TERM; echo $$ >> pids; sleep 1000 & echo $! >> pids
                setsid sh -c 'echo $$ >> pids; sleep 1000; :' & wait";
            let mut shims: Vec<Child> = (0..4).map(|_| quiet(&host, script)).collect();
            let pids = || pids_in(&host.home.join("pids"));
            assert!(waiting::until_true(PATIENCE, || pids().len() >= 12), "round {round}: {:?}", pids());
            used.extend(pids());
            for shim in &mut shims {
                _ = kill(Pid::from_raw(shim.id().cast_signed()), Signal::SIGKILL);
                _ = shim.wait();
            }
            let is_gone = || host.journal().of_type("end").count() == 1 + 4 * (round + 1);
            assert!(waiting::until_true(PATIENCE, is_gone), "round {round}: {:#?}", host.tree());
            _ = fs::remove_file(host.home.join("pids"));
        }
        is_over.store(true, Ordering::Relaxed);
        watches.into_iter().map(|watch| watch.join().expect("no canary panics")).sum()
    });
    assert_eq!(hits, 0, "processes of nobody's were signalled");
    let shared = canaries.lock().expect("no canary panics").intersection(&used).count();
    assert!(shared > 20, "only {shared} numbers were used by both");
}

fn pids_in(path: &Path) -> BTreeSet<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
