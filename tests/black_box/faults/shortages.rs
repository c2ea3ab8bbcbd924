//! Too few descriptors or processes: commands wait for them, nothing spins, and a caller that cannot be served is told
//! so.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::Resource;
use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};

use crate::support::call::{Calling, Target};
use crate::support::crowd::{Gate, WAIT_AT_GATE, codes, quiet, shim};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::journal::Journal;
use crate::support::procs;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{State, USUAL};

/// Longer than everything that a host tries again, many times over.
const QUIET: Duration = Duration::from_secs(1);

/// Sets a soft limit of a host while it runs.
fn set_limit(host: &Host, user: Option<u32>, option: &str) {
    let mut prlimit = programs::command("prlimit");
    prlimit.args([&format!("--pid={}", host.pid()), option]);
    if let Some(user) = user {
        prlimit.uid(user).gid(user);
    }
    assert!(prlimit.status().expect("prlimit is part of util-linux").success(), "{option}");
}

/// Leaves a host so many numbers for new descriptors.
fn leave_descriptors(host: &Host, count: usize) {
    let is_free = |number: &usize| !Path::new(&format!("/proc/{}/fd/{number}", host.pid())).is_symlink();
    let limit = (0..).filter(is_free).nth(count).expect("numbers do not end");
    set_limit(host, None, &format!("--nofile={limit}:"));
}

/// Nothing can happen for a while: a host that tries again and again would use as much of a processor as we do here. One
/// that tries at intervals uses little in any second, also in one in which a busy machine leaves us next to nothing.
fn assert_calm(host: &Host, what: &str) {
    let own = || procs::processor_time_of("/proc/thread-self/stat");
    let begun = Instant::now();
    loop {
        let (before, own_before, started) = (procs::processor_time(host.pid()), own(), Instant::now());
        while started.elapsed() < QUIET {
            std::hint::spin_loop();
        }
        let (used, own, time) = (procs::processor_time(host.pid()) - before, own() - own_before, started.elapsed());
        if own >= Duration::from_millis(200) || begun.elapsed() >= PATIENCE / 6 {
            let is_calm = used <= own / 5 + time / 50 + Duration::from_millis(20);
            assert!(is_calm, "{what}: {used:?} of processor time in {time:?}, where we had {own:?}");
            return;
        }
    }
}

/// Held by a test that leaves descriptors of its user in flight: the kernel's bound is on all of them together.
fn in_flight() -> MutexGuard<'static, ()> {
    static IN_FLIGHT: Mutex<()> = Mutex::new(());
    IN_FLIGHT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The callers have far more descriptors in flight together than the host may have open, which also keeps the host of a
/// plain user from sending any.
#[test]
#[ignore = "long: 200 callers of a host with 64 descriptors"]
fn many_callers_of_a_host_with_few_descriptors_are_served() {
    const CALLERS: usize = 200;
    let limits = &[(Resource::RLIMIT_NOFILE, 64, 64)];
    let Some(user) = programs::user_of_our_own() else { return };
    let _alone = in_flight();
    let host = Host::with(Setup { user, state: State { limits, ..USUAL }, ..PLAIN });
    let mut gate = Gate::new(host.home.path(), user);
    let agent = format!(
        "unset REXEC_INSIDE; for n in {{1..{CALLERS}}}; do '{}' -c '{WAIT_AT_GATE}; exit 7' & pids+=($!); done
        for pid in ${{pids[*]}}; do wait $pid; codes+=($?); done; printf '%s\\n' ${{codes[*]}} | sort | uniq -c",
        programs::shims().join("bash").display()
    );
    let agent = host.call(&agent).env(&format!("REXEC_SOCKET={}", host.socket().display()));
    let mut agent = agent.start(Target::Real).expect("a shell");
    gate.wait_for(5);
    assert_eq!(waiting::until_steady(QUIET / 2, || gate.arrived()), 5, "more than there are descriptors for");
    assert_calm(&host, "a full house");
    gate.let_through(CALLERS);
    let seen = agent.finish(PATIENCE * 2).expect("every call ends");
    assert_eq!((seen.out().trim(), seen.err().as_str()), (&*format!("{CALLERS} 7"), ""));
}

/// accept(2) fails with EMFILE, and no event tells when that has changed.
#[test]
fn a_host_without_descriptors_lets_callers_wait() {
    let host = Host::start();
    leave_descriptors(&host, 0);
    let mut shims: Vec<Child> = (0..5).map(|n| quiet(&host, &format!("exit {n}"))).collect();
    assert_calm(&host, "no descriptor for a caller");
    assert!(shims.iter_mut().all(|shim| shim.try_wait().expect("a child").is_none()), "they were turned away");
    set_limit(&host, None, "--nofile=1000:");
    assert_eq!(codes(&mut shims), [0, 1, 2, 3, 4].map(Some));
}

/// A connection is let in, but the descriptors that come over it are lost: the command cannot be run, and did not.
#[test]
fn a_caller_whose_descriptors_get_lost_is_told() {
    let host = Host::start();
    leave_descriptors(&host, 1);
    let output = shim(&host, "echo > ran").output().expect("a shim");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(text.starts_with("rexec: the host is busy") && text.contains("\nhint: "), "{text}");
    assert!(!host.home.join("ran").exists());
    set_limit(&host, None, "--nofile=1000:");
    assert_eq!(host.run("echo well").out(), "well\n");
}

/// Whether system calls can be made to fail.
fn can_inject() -> bool {
    let works = || programs::command("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    programs::has("strace")
        && (works().is_ok_and(|status| status.success()) || {
            programs::skipped("strace may not trace");
            false
        })
}

#[test]
fn callers_wait_out_a_system_without_descriptors() {
    if !can_inject() {
        return;
    }
    let wrapper = &["strace", "-qq", "-o/dev/null", "-etrace=accept4", "-einject=accept4:error=ENFILE:when=1+2"];
    let host = Host::with(Setup { wrapper, ..PLAIN });
    let started = Instant::now();
    for n in 0..10 {
        assert_eq!(host.run(&format!("exit {n}")).code(), n);
    }
    assert!(started.elapsed() >= Duration::from_millis(500), "no call has failed");
}

/// What fails before a guard has the command is tried again; a command that a guard has is never given to another.
#[test]
fn no_command_runs_twice() {
    if !can_inject() {
        return;
    }
    let wrapper = &["strace", "-qq", "-o/dev/null", "-etrace=epoll_ctl", "-einject=epoll_ctl:error=ENOSPC:when=20+7"];
    let host = Host::with(Setup { wrapper, flags: &["--no-pty"], ..PLAIN });
    for n in 0..waiting::size(20, 200) {
        let output = shim(&host, &format!("echo >> ran-{n}; exit 7")).output().expect("a shim");
        let ran = fs::metadata(host.home.join(&format!("ran-{n}"))).map_or(0, |data| data.len());
        let text = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(7) => assert_eq!(ran, 1, "command {n}"),
            Some(125) => assert_eq!(ran, 0, "command {n}: {text}"),
            other => panic!("command {n}: {other:?}: {text}"),
        }
    }
    let has_waited = |end: &&serde_json::Value| end["queued_ms"].as_u64() >= Some(90);
    host.wait_for("a second try", |journal| journal.of_type("end").find(has_waited).map(|_| ()));
    _ = host.leave();
}

/// A guard for which a signal is queued serves no other command.
const ENDS_ITS_GUARD: &str = "kill -s RTMIN $PPID";

fn nproc_host() -> Option<(Host, Option<u32>)> {
    let user = programs::plain_user()?;
    let host = Host::with(Setup { user, ..PLAIN });
    wait_for_reserve(&host);
    Some((host, user))
}

/// Waits until the host has its guards in reserve. One that is just being forked still has the host's name.
fn wait_for_reserve(host: &Host) {
    let is_full = || host.tree().iter().filter(|process| process.comm == "rexec-guard").count() == 2;
    assert!(waiting::until_true(PATIENCE, is_full), "{:#?}", host.tree());
}

/// Processes that take all that a user may have who may have this many. They end with this.
struct Crowd(Vec<Child>);

impl Crowd {
    fn of(user: Option<u32>, count: u64) -> Self {
        let mut sleep = programs::command("sleep");
        sleep.arg("1000");
        if let Some(user) = user {
            sleep.uid(user).gid(user);
        }
        Self((0..count).map(|_| sleep.spawn().expect("a process of the test's own")).collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| _ = child.kill());
        self.0.iter_mut().for_each(|child| _ = child.wait());
    }
}

/// How many processes, threads included, a user has.
fn tasks_of(user: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let own = processes.filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == user));
    own.map(|entry| fs::read_dir(entry.path().join("task")).map_or(0, |tasks| tasks.count() as u64)).sum()
}

/// Starts commands of which more than the guards in reserve can serve need a fork, which fails.
fn start_beyond_reserve(host: &Host, user: Option<u32>) -> Vec<Calling> {
    set_limit(host, user, "--nproc=1:");
    let start = |n| {
        host.call(&format!("{ENDS_ITS_GUARD}; echo {n}; exit 7")).start(Target::Shim(&host.socket())).expect("a shim")
    };
    let callings = (0..5).map(start).collect();
    let is_known = |journal: &Journal| (journal.of_type("start").count() == 5).then_some(());
    host.wait_for("every start", is_known);
    host.wait_for("those of the reserve", |journal| (journal.of_type("end").count() == 2).then_some(()));
    callings
}

#[test]
fn commands_wait_for_processes() {
    let Some((host, user)) = nproc_host() else { return };
    let mut callings = start_beyond_reserve(&host, user);
    assert_calm(&host, "no process for a guard");
    assert_eq!(host.journal().of_type("end").count(), 2, "there was room for more than the reserve");
    set_limit(&host, user, "--nproc=10000:");
    for (n, calling) in callings.iter_mut().enumerate() {
        let seen = calling.finish(PATIENCE).expect("it is served");
        assert_eq!((seen.code(), seen.out(), seen.err()), (7, format!("{n}\n"), String::new()));
    }
    let has_waited = |journal: &Journal| {
        let ends = journal.of_type("end").filter(|end| end["queued_ms"].as_u64() >= Some(500));
        (ends.count() == 3).then_some(())
    };
    host.wait_for("how long they waited", has_waited);
}

/// A start that succeeds says nothing about what another one waits for.
#[test]
fn a_command_that_waits_for_a_process_gets_it_although_another_one_has_started_meanwhile() {
    let Some((host, user)) = nproc_host() else { return };
    if !programs::has("script") {
        return;
    }
    set_limit(&host, user, "--nproc=1:");
    // One at its caller's terminal needs a guard of its own. Others take those in reserve.
    let shim = programs::shims().join("bash");
    let at_terminal =
        format!("unset REXEC_INSIDE; exec script -qec \"'{}' -c 'echo served; exit 7'\" /dev/null", shim.display());
    let call = host.call(&at_terminal).env(&format!("REXEC_SOCKET={}", host.socket().display()));
    let mut waits = call.start(Target::Real).expect("a shell");
    host.wait_for("its start", |journal| (journal.of_type("start").count() == 1).then_some(()));
    let mut server = start_and_wait(&host, "echo > begun; until [ -e go ]; do sleep 0.02; done", 2);
    waiting::wait_until("the other one begins", || host.home.join("begun").exists());
    set_limit(&host, user, "--nproc=10000:");
    let seen = waits.finish(PATIENCE).expect("it is served while the other one runs");
    assert!(seen.code() == 7 && seen.out().contains("served\r\n"), "{seen:?}");
    fs::write(host.home.join("go"), "").expect("a file");
    assert_eq!(server.finish(PATIENCE).map(|seen| seen.code()), Some(0));
}

/// What is asked of a command that waits is done at once, and it never runs.
#[test]
fn a_command_that_waits_can_be_ended() {
    let Some((host, user)) = nproc_host() else { return };
    set_limit(&host, user, "--nproc=1:");
    let last = |n| format!("{ENDS_ITS_GUARD}; echo {n}");
    let mut reserve = (0..2).map(|n| start_and_wait(&host, &last(n), n + 1)).collect::<Vec<_>>();
    assert!(reserve.iter_mut().all(|calling| calling.finish(PATIENCE).is_some_and(|seen| seen.code() == 0)));
    let has_guards = || procs::children(host.pid()).iter().any(|child| child.comm == "rexec-guard");
    waiting::wait_until("the end of their guards", || !has_guards());
    let mut count = 2;
    for (signal, code) in [(SIGTERM, 143), (SIGINT, 130), (SIGHUP, 129), (SIGUSR1, 138)] {
        count += 1;
        let script = format!("echo >> ran; echo {signal}");
        let mut calling = start_and_wait(&host, &script, count);
        calling.warden.signal(signal);
        let seen = calling.finish(PATIENCE).expect("it ends");
        assert_eq!((seen.code(), seen.out(), seen.err()), (code, String::new(), String::new()), "{signal}");
        let end = host.wait_for("its end", |journal| journal.end_of(&script).cloned());
        assert_eq!((end["exit"].as_i64(), end["signal"].as_i64()), (Some(code.into()), Some(signal as i64)), "{end}");
    }
    // bash ignores QUIT from its start, and what a caller ignores is not sent at all.
    let mut quit = start_and_wait(&host, "echo on", count + 1);
    quit.warden.signal(SIGQUIT);
    let mut stopped = start_and_wait(&host, "echo >> ran", count + 2);
    assert_eq!(rexec(&host, user, &["kill", &(count + 2).to_string()]), Some(0));
    let seen = stopped.finish(PATIENCE).expect("it is told");
    assert!(seen.code() == 125 && seen.err().starts_with("rexec: a person stopped the command"), "{seen:?}");
    set_limit(&host, user, "--nproc=10000:");
    assert_eq!(quit.finish(PATIENCE).map(|seen| (seen.code(), seen.out())), Some((0, "on\n".to_owned())));
    assert!(!host.home.join("ran").exists(), "one of them ran");
}

/// The exit code of `rexec`, run as the host's user.
fn rexec(host: &Host, user: Option<u32>, args: &[&str]) -> Option<i32> {
    let mut command = programs::command(programs::rexec());
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.args(args).env("REXEC_SOCKET", host.socket()).output().expect("rexec").status.code()
}

/// Starts a command, the host's n-th, and waits until the host has it.
fn start_and_wait(host: &Host, script: &str, count: usize) -> Calling {
    let calling = host.call(script).start(Target::Shim(&host.socket())).expect("a shim");
    host.wait_for("its start", |journal| (journal.of_type("start").count() == count).then_some(()));
    calling
}

/// A host with guards in reserve, whose user has 200 processes more at the most.
fn host_of_few_processes(user: Option<u32>) -> Host {
    let most = tasks_of(user.unwrap_or_else(|| nix::unistd::geteuid().as_raw())) + 200;
    let limits: &[(Resource, u64, u64)] = vec![(Resource::RLIMIT_NPROC, most, most)].leak();
    let host = Host::with(Setup { user, state: State { limits, ..USUAL }, ..PLAIN });
    wait_for_reserve(&host);
    host
}

#[test]
fn a_host_is_calm_while_a_guard_waits_for_a_process() {
    let Some(user) = programs::user_of_our_own() else { return };
    let _alone = in_flight();
    let host = host_of_few_processes(user);
    let crowd = Crowd::of(user, 300);
    let mut waiting = start_and_wait(&host, "echo on", 1);
    assert_calm(&host, "no process for a shell");
    drop(crowd);
    waiting.finish(PATIENCE).expect("it is served, or was given up because this took long");
}

/// A guard that cannot make a process tries again, and may be told to end or to pause the command meanwhile.
#[test]
fn commands_wait_for_a_process_of_their_own() {
    let Some(user) = programs::user_of_our_own() else { return };
    let _alone = in_flight();
    let host = host_of_few_processes(user);
    let crowd = Crowd::of(user, 300);
    let script = "until [ -e go ]; do sleep 0.02; done; echo through; exit 7";
    let mut through = start_and_wait(&host, script, 1);
    let mut ended = start_and_wait(&host, "echo >> ran", 2);
    ended.warden.signal(SIGTERM);
    assert_eq!(ended.finish(PATIENCE).map(|seen| seen.code()), Some(143));
    assert_eq!(rexec(&host, user, &["pause", "1"]), Some(0));
    drop(crowd);
    let is_stopped = || host.tree().iter().any(|process| process.comm == "bash" && process.state == 'T');
    waiting::wait_until("it begins, and is stopped at once", is_stopped);
    fs::write(host.home.join("go"), "").expect("a file");
    assert_eq!(rexec(&host, user, &["resume", "1"]), Some(0));
    let seen = through.finish(PATIENCE).expect("it is served");
    assert_eq!((seen.code(), seen.out().as_str(), seen.err().as_str()), (7, "through\n", ""));
    assert!(!host.home.join("ran").exists(), "it ran");
}

#[test]
#[ignore = "long: waits out 30 s without a process"]
fn commands_do_not_wait_for_ever() {
    let Some((host, user)) = nproc_host() else { return };
    let mut callings = start_beyond_reserve(&host, user);
    let mut told = 0;
    for calling in &mut callings {
        // The bound is 30 s.
        let seen = calling.finish(PATIENCE * 2).expect("it is answered");
        if seen.code() == 7 {
            continue;
        }
        told += 1;
        let text = seen.err();
        assert_eq!((seen.code(), seen.out().as_str()), (125, ""), "{text}");
        let sentence = "rexec: the command cannot be started: Resource temporarily unavailable\nhint: ";
        assert!(text.starts_with(sentence), "{text}");
    }
    assert_eq!(told, 3);
    set_limit(&host, user, "--nproc=10000:");
    assert_eq!(host.run("echo well").out(), "well\n");
}

/// The kernel bounds what a user's processes have sent and nobody has received, and a stopped host receives nothing.
#[test]
fn callers_of_a_stopped_host_wait() {
    const CALLERS: usize = 60;
    let Some(user) = programs::user_of_our_own() else { return };
    let _alone = in_flight();
    let host = Host::with(Setup { user, ..PLAIN });
    host.signal(nix::sys::signal::Signal::SIGSTOP);
    let limits = &[(Resource::RLIMIT_NOFILE, 40, 40)];
    let start = |n| {
        let mut call = host.call(&format!("exit {n}"));
        call.state = State { limits, ..USUAL };
        call.start(Target::Shim(&host.socket())).expect("a shim")
    };
    // A caller that has sent its command waits in poll(2) for an answer, and one that could not for a moment only: its
    // sleeps are counted. It gives up after five seconds, so the host goes on as soon as one waits.
    let mut callings: Vec<Calling> = Vec::new();
    let has_paused = |calling: &Calling| procs::sleeps(calling.pid()) > 20;
    for n in 0..CALLERS {
        if callings.iter().any(has_paused) {
            break;
        }
        callings.push(start(n));
    }
    let one_waits = waiting::until_true(PATIENCE, || callings.iter().any(has_paused));
    assert!(one_waits, "all of them could send");
    host.signal(nix::sys::signal::Signal::SIGCONT);
    for (n, calling) in callings.iter_mut().enumerate() {
        let seen = calling.finish(PATIENCE).expect("it is served");
        assert_eq!((seen.code(), seen.err()), (i32::try_from(n).expect("small"), String::new()), "caller {n}");
    }
}

/// The shell itself cannot be executed: the codes are those of a shell that cannot execute a program.
#[test]
fn a_shell_that_cannot_be_executed_is_told() {
    let host = Host::start();
    let cases: [(&str, &[u8], i32, &str); 2] = [
        ("script", b"#!/nonexistent/interpreter\n", 127, "not found"),
        ("rubbish", b"\x7fELF\0\0\0\0", 126, "Exec format error"),
    ];
    for (name, bytes, code, words) in cases {
        let path = host.home.join(name);
        programs::write(&path, bytes);
        let path = path.to_str().expect("a path in UTF-8");
        let theirs = programs::command("/bin/bash").args(["-c", path]).output().expect("bash");
        let ours = host.call("echo ran").env(&format!("REXEC_SHELL={path}")).run(Target::Shim(&host.socket()));
        assert_eq!((theirs.status.code(), ours.code(), ours.out().as_str()), (Some(code), code, ""), "{}", ours.err());
        let sentence = format!("rexec: {path}: {words}\nhint: ");
        assert!(ours.err().starts_with(&sentence), "{}", ours.err());
        let end = host.wait_for("its end", |journal| journal.of_type("end").find(|end| end["shell"] == path).cloned());
        assert_eq!(end["exit"], code, "{end}");
    }
}
