//! Many runs, much output, slow readers: every byte arrives, and the host stays small.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::call::Target;
use crate::support::crowd::{Gate, WAIT_AT_GATE, codes, quiet, shim};
use crate::support::dice::Dice;
use crate::support::host::Host;
use crate::support::journal::Journal;
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::reader::read_some;
use crate::support::waiting::{self, PATIENCE};

/// Processes that keep the processors busy while a test runs.
struct Hogs(Vec<Child>);

impl Hogs {
    fn new(count: usize) -> Self {
        let hog =
            || programs::command("/bin/sh").args(["-c", "while kill -0 $PPID; do :; done"]).spawn().expect("a shell");
        Self((0..count).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            _ = hog.kill();
            _ = hog.wait();
        }
    }
}

#[test]
#[ignore = "long: 1,000 commands on busy processors"]
fn the_last_byte_arrives() {
    let host = Host::start();
    let hogs = Hogs::new(2);
    let rounds = Mutex::new(0..waiting::size(200, 10_000));
    let work = || loop {
        let Some(round) = rounds.lock().expect("no round panics").next() else { break };
        let mut dice = Dice::new(u64::try_from(round).expect("a small number"));
        let length = 1 + dice.below(8_000);
        let bytes = dice.bytes(length, b'!', b'~').into_iter().filter(|byte| *byte != b'\'').collect::<Vec<_>>();
        let text = String::from_utf8(bytes).expect("text");
        let output = shim(&host, &format!("printf %s '{text}'")).output().expect("the shim starts");
        assert!(
            output.stdout == text.as_bytes() && output.status.success(),
            "round {round}: {} of {} bytes, {:?}",
            output.stdout.len(),
            text.len(),
            output
        );
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    drop(hogs);
    let count = waiting::size(200, 10_000);
    assert!(waiting::until_true(PATIENCE, || host.journal().of_type("end").count() == count));
}

#[test]
#[ignore = "long: 50 rounds of 1 MB"]
fn a_long_tail_arrives() {
    let host = Host::start();
    for round in 0..waiting::size(12, 200) {
        let mut command = shim(&host, "head -c 1000000 /dev/zero | tr '\\0' x; echo end");
        if round % 2 == 0 {
            command.env("REXEC_TTY", "never");
        }
        let output = command.output().expect("the shim starts");
        assert_eq!(output.stdout.len(), 1_000_004, "round {round}");
        assert!(output.stdout.ends_with(b"xend\n"));
    }
}

#[test]
#[ignore = "long: 1,000 commands"]
fn a_thousand_commands_in_a_row_succeed() {
    let host = Host::start();
    for round in 0..1_000 {
        let output = shim(&host, "/bin/echo hi").output().expect("the shim starts");
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(0), b"hi\n".as_slice()),
            "round {round}: {output:?}"
        );
    }
}

/// A thousand run at once, the others wait for them in order of arrival.
#[test]
#[ignore = "long: 1,050 commands at once"]
fn more_commands_than_may_run_wait_for_the_others() {
    const RUNNING: usize = 1_000;
    const WAITING: usize = 50;
    let (_, descriptors) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    if descriptors < 7_000 {
        return programs::skipped(&format!("{descriptors} descriptors are too few for a thousand commands at once"));
    }
    let host = Host::start();
    let mut gate = Gate::new(host.home.path(), None);
    let script = format!("{WAIT_AT_GATE}; exit 7");
    let mut shims: Vec<Child> = (0..RUNNING + WAITING).map(|_| quiet(&host, &script)).collect();
    gate.wait_for(RUNNING);
    let every_start = |journal: &Journal| (journal.of_type("start").count() == RUNNING + WAITING).then_some(());
    host.wait_for("every start", every_start);
    assert_eq!(waiting::until_steady(Duration::from_millis(300), || gate.arrived()), RUNNING, "at the gate");
    gate.let_through(1);
    gate.wait_for(RUNNING + 1);
    gate.let_through(RUNNING + WAITING - 1);
    let wrong: Vec<_> = codes(&mut shims).into_iter().filter(|code| *code != Some(7)).collect();
    assert!(wrong.is_empty(), "{} differ: {:?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    let every_end = |journal: &Journal| (journal.of_type("end").count() == RUNNING + WAITING).then_some(());
    host.wait_for("every end", every_end);
    let has_queued = |end: &&Value| end["queued_ms"].as_u64().is_some_and(|queued| queued >= 300);
    let journal = host.journal();
    let queued: Vec<_> = journal.of_type("end").filter(has_queued).map(|end| end["seq"].as_u64()).collect();
    assert!(queued.len() >= WAITING, "{} commands have waited", queued.len());
    let peak = procs::most_data(host.pid());
    assert!(peak <= 84 << 20, "at most {peak} bytes");
}

#[test]
#[ignore = "long: 130 MiB of output"]
fn much_output_costs_no_memory_and_is_exact() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let idle = procs::data(host.pid());
    for (tty, megabytes) in [("auto", waiting::size(30, 100)), ("never", 100)] {
        let bytes = megabytes << 20;
        let script = format!("seq 1 100000000 | head -c {bytes} | tee >(cksum > sum)  ; wait");
        let mut command = shim(&host, &script);
        if tty == "never" {
            command.env("REXEC_TTY", "never");
        }
        let out = fs::File::create(host.home.join("out")).expect("a file");
        let status = command.stdout(out).stderr(Stdio::null()).status().expect("the shim starts");
        assert!(status.success());
        let sum = programs::command("cksum").stdin(fs::File::open(host.home.join("out")).expect("the file")).output();
        let expected = || fs::read(host.home.join("sum")).ok().filter(|sum| !sum.is_empty());
        let expected = waiting::until(PATIENCE, expected).expect("a sum");
        assert_eq!(String::from_utf8_lossy(&sum.expect("cksum").stdout), String::from_utf8_lossy(&expected), "{tty}");
    }
    let peak = procs::most_data(host.pid());
    assert!(peak <= idle + (8 << 20), "idle {idle} bytes, peak {peak} bytes");
}

#[test]
#[ignore = "long: 100 commands beside slow readers"]
fn a_slow_reader_slows_only_its_own_command() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let idle = procs::data(host.pid());
    for mode in ["REXEC_SANITIZE=raw", "REXEC_TTY=never"] {
        let mut slow = host.call("yes").env(mode).start(Target::Shim(&host.socket())).expect("a shim");
        assert!(slow.stdout.as_ref().expect("a pipe").wait_for(b"y\n", PATIENCE));
        slow.warden.signal(Signal::SIGSTOP);
        assert!(waiting::until_true(PATIENCE, || Process::of(slow.pid()).is_some_and(|shim| shim.state == 'T')));
        let before = procs::written(host.tree().iter().find(|process| process.comm == "yes").expect("it runs").pid);
        let yes = procs::wait_until_held(host.pid(), "yes");
        let used = procs::processor_time(yes.pid);
        for round in 0..20 {
            assert_eq!(host.run(&format!("echo {round}")).out(), format!("{round}\n"));
        }
        assert_eq!(procs::processor_time(yes.pid), used, "{mode}: it is not held back");
        // 128 KiB wait for the connection and as much in the log, each with one more read of 128 KiB; beside the
        // kernel's buffers.
        let ahead = procs::written(yes.pid) - before;
        assert!(ahead <= 1 << 20, "{mode}: {ahead} bytes ahead of its reader");
        let now = procs::most_data(host.pid());
        assert!(now <= idle + (8 << 20), "{mode}: idle {idle} bytes, with a stopped reader {now} bytes");
        slow.warden.signal(Signal::SIGKILL);
        assert!(slow.warden.wait(PATIENCE).is_some());
        assert!(waiting::until_true(PATIENCE, || !yes.is_alive()), "{mode}: it runs on");
    }
}

/// The bounds on the time after a command's end are for streams that others hold open, not for slow readers.
#[test]
#[ignore = "long: 1 MB for a slow reader"]
fn a_slow_reader_gets_everything() {
    let host = Host::start();
    let read = |(tty, bytes, pause): (&str, usize, u64)| {
        let mut command = shim(&host, "head -c 1000000 /dev/zero | tr '\\0' x; echo end");
        command.env("REXEC_TTY", tty).stdout(Stdio::piped());
        let mut shim = command.spawn().expect("the shim starts");
        let (mut stdout, mut buffer, mut count) = (shim.stdout.take().expect("a pipe"), vec![0; bytes], 0);
        while let Ok(taken @ 1..) = read_some(&mut stdout, &mut buffer) {
            count += taken;
            std::thread::sleep(Duration::from_millis(pause));
        }
        assert!(shim.wait().expect("a child").success());
        count
    };
    let cases = [("never", 16 << 10, 50), ("never", 64 << 10, 250), ("auto", 16 << 10, 50), ("auto", 64 << 10, 250)];
    let all = [cases, cases, cases].concat();
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let readers: Vec<_> = all.iter().map(|&case| scope.spawn(move || read(case))).collect();
        readers.into_iter().map(|reader| reader.join().expect("a reader")).collect()
    });
    let wrong: Vec<_> = all.iter().zip(&counts).filter(|(_, count)| **count != 1_000_004).collect();
    assert!(wrong.is_empty(), "of 1,000,004 bytes arrived: {wrong:?}");
}
