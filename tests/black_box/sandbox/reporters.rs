//! Reporters that lie, flood or stall, and a FIFO that is full: nothing else suffers from them.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::process::Stdio;

use nix::libc;
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::report::{Beginning, PAYLOAD_BYTES_MAX, Report, RunKey, ShimPlace, encode_report};
use rexec_sh::protocol::wire::{Attributes, CallerStream, encode_run};

use super::has_sight;
use super::reports::{begin, caged, ended};
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::procs;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// Writes to the FIFO as anybody of this user can, without waiting. Returns how much it took.
fn write(host: &Host, bytes: &[u8]) -> usize {
    let fifo = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(host.home.join("report"));
    let mut fifo = fifo.expect("there is a FIFO");
    bytes.chunks(4096).map_while(|piece| fifo.write(piece).ok()).sum()
}

fn records(key: RunKey, reports: &[Report<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..).zip(reports).for_each(|(number, report)| encode_report(&key, number, report, &mut bytes));
    bytes
}

/// The beginning of a report on a command that claims to be this process.
fn beginning(command: &str, place: ShimPlace) -> Vec<u8> {
    let (mut frame, mut bytes) = (Vec::new(), Vec::new());
    let text = std::ffi::CString::new(command).expect("no NUL");
    let argv = [c"bash", c"-c", &text];
    encode_run(&Attributes::default(), (b"liar", c"/bin/bash"), argv.into_iter(), [].into_iter(), &mut frame)
        .expect("it is short");
    Beginning { place, dir: b"/", frame: &frame }.encode(&mut bytes);
    bytes
}

fn is_honest_one_seen(host: &Host, word: &str) {
    let script = format!(
        "unset REXEC_INSIDE; exec setpriv --no-new-privs '{}' -c 'echo {word}'",
        programs::shims().join("bash").display()
    );
    let call = host.call(&script).env(&format!("REXEC_SOCKET={}", host.socket().display()));
    let seen = call.run(Target::Real);
    assert_eq!((seen.out(), seen.code()), (format!("{word}\n"), 0));
    host.wait_for("the honest command", |journal| journal.end_of(&format!("echo {word}")).cloned());
}

fn can_run() -> bool {
    has_sight() && programs::has("setpriv")
}

#[test]
fn only_its_user_can_write_reports_and_nobody_can_read_them() {
    let host = Host::start();
    let found = std::fs::symlink_metadata(host.home.join("report")).expect("there is a FIFO");
    assert_eq!((found.mode() & 0o7777, found.uid()), (0o200, nix::unistd::geteuid().as_raw()));
    std::fs::remove_file(host.home.join("report")).expect("it is ours");
    let is_back = || host.home.join("report").exists();
    assert!(waiting::until_true(PATIENCE, is_back), "it is made again");
}

#[test]
fn forged_records_are_ignored_and_named_once() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let header = &records([1; 16], &[Report::End(Exit::Code(0))])[..36];
    let begun = beginning("echo forged", ShimPlace::default());
    let out_of_turn = records(
        [2; 16],
        &[Report::Begin { piece: &begun, is_last: true }, Report::Begin { piece: b"again", is_last: true }],
    );
    for forged in [&b"no record at all"[..], header, &[0x1f; 5000], &out_of_turn, &header[..8]] {
        write(&host, forged);
        is_honest_one_seen(&host, "honest");
    }
    let text = host.console_text();
    assert_eq!(text.matches("forged reports").count(), 1, "{text}");
}

/// A flood may take the place of honest output; it takes neither the host nor a command.
#[test]
fn a_flood_leaves_the_host_alone() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let begun = beginning("a flood", ShimPlace::default());
    let key = [3; 16];
    let mut reports = vec![Report::Begin { piece: &begun, is_last: true }];
    let line = [b'x'; 4000];
    reports.extend(std::iter::repeat_n(Report::Output { stream: CallerStream::Out, bytes: &line }, 200));
    let bytes = records(key, &reports);
    for _ in 0..40 {
        write(&host, &bytes);
        write(&host, &[0x1f; 100_000]);
    }
    assert_eq!(host.run("echo served").out(), "served\n");
    is_honest_one_seen(&host, "seen");
    let end = records(key, &[Report::End(Exit::Code(0)); 300]);
    let is_over = || {
        write(&host, &end[end.len() - 37..]);
        host.journal().end_of("a flood").is_some()
    };
    assert!(waiting::until_true(PATIENCE, is_over));
}

/// A report that stops in mid-sentence is forgotten, and one that names a process of somebody else's harms nobody.
#[test]
fn a_report_on_another_process_gives_nobody_a_way_to_end_it() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let mut other = programs::command("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("sleep");
    let namespace = std::fs::metadata("/proc/self/ns/pid").expect("/proc").ino();
    let pid = i32::try_from(other.id()).expect("a pid");
    let place = ShimPlace { namespace, pid, ..ShimPlace::default() };
    let begun = beginning("innocent", place);
    write(&host, &records([4; 16], &[Report::Begin { piece: &begun[..20], is_last: false }]));
    write(&host, &records([5; 16], &[Report::Begin { piece: &begun, is_last: true }]));
    let start = host.wait_for("the start", |journal| journal.of_type("start").next().cloned());
    assert_eq!((start["command"].as_str(), start["whoami"].as_str()), (Some("innocent"), Some("liar")));
    let mut kill = programs::command(programs::rexec());
    let said = kill.args(["kill", "1"]).env("REXEC_SOCKET", host.socket()).output().expect("it starts");
    assert!(!said.status.success(), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stderr).contains("cannot be found"), "{said:?}");
    assert!(other.try_wait().expect("it is ours").is_none(), "it was killed");
    host.wait_for("its end", |journal| journal.end_of("innocent").filter(|end| end["error"] == "lost").cloned());
    assert!(other.try_wait().expect("it is ours").is_none(), "it was killed");
    other.kill().expect("it lives");
    other.wait().expect("it is ours");
}

/// The host stands still, so that nobody reads.
#[test]
fn a_full_fifo_holds_up_no_command() {
    if !can_run() {
        return;
    }
    let host = Host::with(Setup { flags: &["--allow-sandboxed"], ..PLAIN });
    let fifo = host.home.join("report");
    host.stop();
    while write(&host, &[0; 4096]) > 0 {}
    let cage = format!(
        "unset REXEC_INSIDE; exec '{}' -c 'seq 1 200000 | tail -n 1; exit 6'",
        programs::shims().join("bash").display()
    );
    // Where no socket is, the shim runs the command itself, and finds the FIFO all the same.
    let place = host.home.join("empty");
    std::fs::create_dir(&place).expect("the directory is ours");
    std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("it is ours");
    std::fs::hard_link(&fifo, place.join("report")).expect("the same file system");
    let call = host.call(&cage).env(&format!("REXEC_SOCKET={}/host.sock", place.display())).env("REXEC_FALLBACK=shell");
    let seen = call.run(Target::Real);
    host.signal(nix::sys::signal::Signal::SIGCONT);
    assert_eq!((seen.out().as_str(), seen.err().as_str(), seen.code()), ("200000\n", "", 6));
    is_back(&host);
}

/// Beginnings that never end, and output of commands that never end, from many writers at full speed.
#[test]
#[ignore = "long: 4,800 reports of the greatest size"]
fn a_flood_of_reports_costs_the_host_little_memory() {
    const RUNS: u8 = 80;
    let host = Host::start();
    let before = procs::data(host.pid());
    let begun = beginning("a flood", ShimPlace::default());
    let piece = [b'x'; PAYLOAD_BYTES_MAX];
    for number in 0..60 {
        for run in 0..RUNS {
            let report = match (run % 2, number) {
                (0, _) => Report::Begin { piece: &piece, is_last: false },
                (_, 0) => Report::Begin { piece: &begun, is_last: true },
                _ => Report::Output { stream: CallerStream::Out, bytes: &piece },
            };
            let mut record = Vec::new();
            encode_report(&[run; 16], number, &report, &mut record);
            assert!(waiting::until_true(PATIENCE, || write(&host, &record) > 0), "the host reads no more");
        }
    }
    let peak = procs::most_data(host.pid());
    // 40 beginnings of 256 KiB, and the logs of 40 commands of 128 KiB.
    assert!(peak < before + (40 << 20), "{before} bytes before, at most {peak}");
    assert_eq!(host.run("echo served").out(), "served\n");
}

/// Each of them would cost a row of the console and two lines of the journal.
#[test]
fn a_flood_of_beginnings_is_bounded_and_named_once() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let begun = beginning("one of many", ShimPlace::default());
    let mut number = 0_u128;
    let is_named = || {
        for _ in 0..1_000 {
            number += 1;
            let whole = [Report::Begin { piece: &begun, is_last: true }, Report::End(Exit::Code(0))];
            write(&host, &records(number.to_be_bytes(), &whole));
        }
        host.console_text().contains("more than 200 sandboxed commands begin in a second: others run unseen")
    };
    assert!(waiting::until_true(PATIENCE, is_named), "{}", host.console_text());
    // In a later second there is room for others again.
    let is_seen = || {
        assert_eq!(caged(&host, "echo honest").run(Target::Real).out(), "honest\n");
        waiting::until_true(std::time::Duration::from_secs(1), || host.journal().end_of("echo honest").is_some())
    };
    assert!(waiting::until_true(PATIENCE, is_seen), "{}", host.console_text());
    assert_eq!(host.console_text().matches("begin in a second").count(), 1);
}

/// What the command writes at last, and how it ends, is told as soon as there is room.
#[test]
fn the_end_of_a_command_is_reported_although_the_fifo_was_full() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script =
        "echo fir\"\"st; while ! test -e done; do sleep .01; done; seq 1 300000; echo err >&2; echo last; exit 6";
    let (mut calling, _) = begin(&host, script);
    let is_shown = || host.console_text().contains("first");
    assert!(waiting::until_true(PATIENCE, is_shown), "{}", host.console_text());
    host.stop();
    while write(&host, &[0; 4096]) > 0 {}
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    let seen = calling.finish(PATIENCE).expect("it ends although nobody reads");
    assert!(seen.code() == 6 && seen.out().ends_with("\n300000\nlast\n") && seen.err() == "err\n");
    host.signal(nix::sys::signal::Signal::SIGCONT);
    let end = ended(&host, script);
    let length = seen.stdout.len() + seen.stderr.len();
    assert_eq!((end["exit"].as_u64(), end["bytes"].as_u64()), (Some(6), u64::try_from(length).ok()), "{end:#}");
    let text = end["output"].as_str().expect("it is text");
    assert!(text.starts_with("first\n") && text.contains("\n300000\nlast\n") && text.contains("err\n"), "{end:#}");
}

fn is_back(host: &Host) {
    assert_eq!(host.run("echo back").out(), "back\n");
    std::fs::remove_dir_all(host.home.join("empty")).expect("it is ours");
}
