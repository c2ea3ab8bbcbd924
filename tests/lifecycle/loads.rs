//! Many runs, much output, slow readers: everything exact, and the host stays small.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::call::{Target, usual_env};
use crate::support::dice::Dice;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::procs;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{State, USUAL};

/// Processes that keep the processors busy while a test runs.
struct Hogs(Vec<Child>);

impl Hogs {
    fn new(count: usize) -> Self {
        let hog = || Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
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

/// A shim without a warden, for when there are many of them.
fn shim(host: &Host, script: &str) -> Command {
    use std::os::unix::ffi::OsStringExt;
    let mut command = Command::new(programs::shims().join("bash"));
    command.args(["-c", script]).stdin(Stdio::null()).current_dir(host.home.path()).env_clear();
    for entry in usual_env(host.home.path()) {
        let text = String::from_utf8(entry).expect("the usual environment is text");
        let (name, value) = text.split_once('=').expect("an entry");
        command.env(name, std::ffi::OsString::from_vec(value.into()));
    }
    command.env("REXEC_SOCKET", host.socket()).env("REXEC_SANITIZE", "raw");
    command
}

#[test]
fn the_last_byte_arrives() {
    let host = Host::start();
    let hogs = Hogs::new(2);
    let rounds = Mutex::new(0..waiting::size(1_000, 10_000));
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
    let count = waiting::size(1_000, 10_000);
    assert!(waiting::until_true(PATIENCE, || host.journal().of_type("end").count() == count));
}

#[test]
fn a_long_tail_arrives() {
    let host = Host::start();
    for round in 0..waiting::size(50, 200) {
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

#[test]
fn a_thousand_commands_at_once_return_their_codes() {
    let host = Host::start();
    let start = |_| shim(&host, "sleep 1; exit 7").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shim");
    let mut shims: Vec<Child> = (0..1_000).map(start).collect();
    let codes: Vec<Option<i32>> = shims.iter_mut().map(|shim| shim.wait().expect("a child").code()).collect();
    let wrong: Vec<_> = codes.iter().filter(|code| **code != Some(7)).collect();
    assert!(wrong.is_empty(), "{} of 1,000 differ: {:?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    assert!(waiting::until_true(PATIENCE, || host.journal().of_type("end").count() == 1_000));
}

#[test]
fn much_output_costs_no_memory_and_is_exact() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let idle = procs::memory(host.pid(), "VmRSS");
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
        let sum = Command::new("cksum").stdin(fs::File::open(host.home.join("out")).expect("the file")).output();
        let expected = || fs::read(host.home.join("sum")).ok().filter(|sum| !sum.is_empty());
        let expected = waiting::until(PATIENCE, expected).expect("a sum");
        assert_eq!(String::from_utf8_lossy(&sum.expect("cksum").stdout), String::from_utf8_lossy(&expected), "{tty}");
    }
    let peak = procs::memory(host.pid(), "VmHWM");
    assert!(peak <= idle + (8 << 20), "idle {idle} bytes, peak {peak} bytes");
}

#[test]
fn a_slow_reader_slows_only_its_own_command() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let idle = procs::memory(host.pid(), "VmRSS");
    let mut slow = host.call("yes").env("REXEC_SANITIZE=raw").start(Target::Shim(&host.socket())).expect("a shim");
    assert!(slow.stdout.as_ref().expect("a pipe").wait_for(b"y\n", PATIENCE));
    slow.warden.signal(Signal::SIGSTOP);
    for round in 0..50 {
        assert_eq!(host.run(&format!("echo {round}")).out(), format!("{round}\n"));
    }
    let now = procs::memory(host.pid(), "VmHWM");
    assert!(now <= idle + (8 << 20), "idle {idle} bytes, with a stopped reader {now} bytes");
    slow.warden.signal(Signal::SIGKILL);
    slow.warden.signal(Signal::SIGCONT);
    assert!(slow.warden.wait(PATIENCE).is_some());
}

/// The bounds on the time after a command's end are for streams that others hold open, not for slow readers.
#[test]
fn a_slow_reader_gets_everything() {
    let host = Host::start();
    let read = |(tty, bytes, pause): (&str, usize, u64)| {
        let mut command = shim(&host, "head -c 1000000 /dev/zero | tr '\\0' x; echo end");
        command.env("REXEC_TTY", tty).stdout(Stdio::piped());
        let mut shim = command.spawn().expect("the shim starts");
        let (mut stdout, mut buffer, mut count) = (shim.stdout.take().expect("a pipe"), vec![0; bytes], 0);
        while let Ok(taken @ 1..) = stdout.read(&mut buffer) {
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

/// Beyond what its descriptors allow, a host may turn callers away; it must say so, and be well afterwards.
#[test]
fn a_host_with_few_descriptors_serves_or_tells() {
    let limits = &[(nix::sys::resource::Resource::RLIMIT_NOFILE, 64, 64)];
    let host = Host::with(Setup { state: State { limits, ..USUAL }, ..PLAIN });
    let start =
        |_| shim(&host, "sleep 0.1; exit 7").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a shim");
    let shims: Vec<Child> = (0..100).map(start).collect();
    let mut served = 0;
    for shim in shims {
        let output = shim.wait_with_output().expect("a child");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(7) => served += 1,
            Some(125) => assert!(text.starts_with("rexec: ") && text.contains("\nhint: "), "{text}"),
            other => panic!("{other:?}: {text}"),
        }
    }
    assert!(served > 0);
    assert_eq!(host.run("echo well").out(), "well\n");
}
