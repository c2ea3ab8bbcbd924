//! `rexec tail`: the console on other terminals, and what one command writes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::live::{processes, rexec, start};
use crate::support::host::Host;
use crate::support::procs;
use crate::support::programs;
use crate::support::reader::read_some;
use crate::support::waiting::{self, PATIENCE};

/// `rexec tail` with its output in a file.
fn tail(host: &Host, name: &str, args: &[&str]) -> Child {
    let out = fs::File::create(host.home.join(name)).expect("a file");
    let mut command = programs::command(programs::rexec());
    command
        .arg("tail")
        .args(args)
        .env_clear()
        .env("REXEC_SOCKET", host.socket())
        .env("REXEC_HOME", host.journal_home());
    command.stdin(Stdio::null()).stdout(out).stderr(Stdio::inherit()).spawn().expect("the program starts")
}

fn shown(host: &Host, name: &str) -> String {
    fs::read_to_string(host.home.join(name)).unwrap_or_default()
}

fn wait_for(host: &Host, name: &str, text: &str) {
    let is_there = || shown(host, name).contains(text);
    assert!(waiting::until_true(PATIENCE, is_there), "{name} lacks {text}: {}", shown(host, name));
}

/// A connection that watches, and has read that it does.
fn watcher(host: &Host, columns: u16) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(host.socket()).expect("the host listens");
    writeln!(stream, r#"{{"action":"watch","look":"terminal","columns":{columns}}}"#).expect("it listens");
    let mut line = String::new();
    // One byte at a time, because what follows is the console's.
    BufReader::with_capacity(1, &stream).read_line(&mut line).expect("an answer");
    (stream, line)
}

#[test]
fn the_console_is_on_another_terminal_too() {
    let host = Host::start();
    let running = start(&host, "Ann", "echo $$ >>pids; echo before; until test -e go; do sleep 0.05; done; echo after");
    processes(&host, 1);
    let (mut all, mut one) = (tail(&host, "all", &[]), tail(&host, "one", &["-f", "1"]));
    wait_for(&host, "all", "$ echo $$ >>pids");
    wait_for(&host, "one", "$ echo $$ >>pids");
    assert_eq!(host.run("echo other").out(), "other\n");
    wait_for(&host, "all", "\nother\n");
    assert_eq!(rexec(&host, &["pause", "1"]).code, 0);
    wait_for(&host, "all", "#1 is paused: you asked");
    assert_eq!(rexec(&host, &["resume", "1"]).code, 0);
    fs::write(host.home.join("go"), "").expect("a file");
    assert!(one.wait().expect("it ends with its command").success());
    wait_for(&host, "all", "after\n");
    let one = shown(&host, "one");
    assert!(one.contains("after\n") && !one.contains("other") && !one.contains("paused"), "{one}");
    host.wait_for("its end", |journal| journal.of_type("end").find(|end| end["seq"] == 1).map(|_| ()));
    assert_eq!(rexec(&host, &["tail", "-n", "1", "1"]).out, "after\n");
    assert_eq!(rexec(&host, &["tail", "-f", "1"]).out, "before\nafter\n", "it has ended");
    assert_eq!(rexec(&host, &["tail", "77"]).code, 3);
    kill(Pid::from_raw(all.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert!(all.wait().expect("it leaves").success());
    drop(running);
    host.finish();
}

#[test]
#[ignore = "long: 30 commands of 300 KB each"]
fn a_watcher_that_reads_nothing_holds_up_nothing_and_a_fifth_one_is_told() {
    let host = Host::start();
    let watchers: Vec<_> = (0..4).map(|_| watcher(&host, 80)).collect();
    assert!(watchers.iter().all(|(_, line)| line.starts_with(r#"{"result":"watch""#)), "{watchers:?}");
    let (_, refused) = watcher(&host, 80);
    assert!(refused.contains("4 others watch this host already"), "{refused}");
    for round in 0..3 {
        // Far more than sockets and queues hold, in blocks that are shown whole.
        let script = format!("echo {round}; for i in $(seq 100); do head -c 3000 /dev/zero | tr '\\0' x; echo; done");
        let many: Vec<_> = (0..10).map(|_| start(&host, "Ann", &script)).collect();
        for mut calling in many {
            let seen = calling.finish(3 * PATIENCE).expect("it ends");
            assert_eq!((seen.code(), seen.out().len()), (0, 2 + 300_100));
        }
    }
    let kib = procs::memory(host.pid()) >> 10;
    assert!(kib < 108_000, "the host has {kib} KiB");
    drop(watchers);
    let mut again = None;
    waiting::wait_until("there is room again", || {
        let (stream, line) = watcher(&host, 40);
        again = line.starts_with(r#"{"result":"watch""#).then_some(stream);
        again.is_some()
    });
    assert_eq!(host.run("echo to be seen").out(), "to be seen\n");
    let mut stream = again.expect("a watcher");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut text = Vec::new();
    waiting::wait_until("the row", || {
        let mut bytes = [0; 4096];
        let length = read_some(&mut stream, &mut bytes).expect("more of the console");
        text.extend_from_slice(&bytes[..length]);
        String::from_utf8_lossy(&text).contains("to be seen")
    });
    // The host does not wait for those who watch.
    drop(host.end_by(Signal::SIGTERM));
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the end");
}
