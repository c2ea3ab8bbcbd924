//! Reporters that lie, flood or stall, and a FIFO that is full: nothing else suffers from them.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::process::{Child, Stdio};

use nix::libc;
use nix::sys::signal::Signal;
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
pub(crate) fn write(host: &Host, bytes: &[u8]) -> usize {
    let fifo = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(host.home.join("report"));
    let mut fifo = fifo.expect("there is a FIFO");
    bytes.chunks(4096).map_while(|piece| fifo.write(piece).ok()).sum()
}

pub(crate) fn records(key: RunKey, reports: &[Report<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..).zip(reports).for_each(|(number, report)| encode_report(&key, number, report, &mut bytes));
    bytes
}

/// A process that a report may name as its shim, because it has the FIFO open. It does nothing.
#[derive(Debug)]
pub(super) struct Liar {
    process: Child,
    pub(super) place: ShimPlace,
}

impl Liar {
    pub(super) fn start(host: &Host) -> Self {
        let fifo = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(host.home.join("report"));
        let mut sleep = programs::command("sleep");
        sleep.arg("1000").stdin(Stdio::null()).stdout(fifo.expect("there is a FIFO")).stderr(Stdio::null());
        let process = sleep.spawn().expect("sleep");
        let place = ShimPlace { namespace: own_namespace(), pid: process.id().cast_signed(), ..ShimPlace::default() };
        Self { process, place }
    }

    pub(super) fn lives(&mut self) -> bool {
        self.process.try_wait().expect("it is ours").is_none()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.process.kill().expect("it is not reaped");
        self.process.wait().expect("it is ours");
    }
}

pub(crate) fn own_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").expect("/proc").ino()
}

/// The beginning of a report on a command that claims to be this process.
pub(crate) fn beginning(command: &str, place: ShimPlace) -> Vec<u8> {
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

/// Whoever may read it has it open from then on.
#[test]
fn a_fifo_that_another_process_has_changed_is_made_anew_and_that_is_said() {
    let host = Host::start();
    let fifo = host.home.join("report");
    let identity =
        || std::fs::symlink_metadata(&fifo).ok().map(|data| (data.ino(), data.mode() & 0o7777, data.nlink()));
    let changes: [&dyn Fn() -> std::io::Result<()>; 2] =
        [&|| std::fs::set_permissions(&fifo, std::os::unix::fs::PermissionsExt::from_mode(0o600)), &|| {
            std::fs::hard_link(&fifo, host.home.join("another name"))
        }];
    for change in changes {
        let before = identity().expect("there is a FIFO").0;
        change().expect("it is ours");
        let is_new = || identity().is_some_and(|(inode, mode, links)| inode != before && (mode, links) == (0o200, 1));
        assert!(waiting::until_true(PATIENCE, is_new), "{:?} {}", identity(), host.console_text());
    }
    let is_told = || host.console_text().matches("was made anew, and what such a command still reports").count() == 1;
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    std::fs::remove_file(host.home.join("another name")).expect("it is ours");
}

/// The test takes the host's place: it reads what a shim reports.
#[test]
fn no_value_of_a_variable_is_in_a_report_but_those_that_name_an_agent() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let place = host.home.join("taken");
    std::fs::create_dir(&place).expect("the directory is ours");
    std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("it is ours");
    let path = place.join("report");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR).expect("a FIFO");
    let flags = libc::O_NONBLOCK;
    let mut fifo = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).expect("a FIFO");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o200)).expect("it is ours");
    let script = format!(
        "unset REXEC_INSIDE; exec '{}' -c 'echo \"$DEPLOY_TOKEN\"; echo \"$PLAIN_WORD\"; : hunter22hunter22'",
        programs::shims().join("bash").display()
    );
    let call = host.call(&script).env(&format!("REXEC_SOCKET={}/host.sock", place.display()));
    let call = call.env("REXEC_FALLBACK=shell").env("CODEX_THREAD_ID=thread-17").env("PLAIN_WORD=plainwordplain");
    let seen = call.env("DEPLOY_TOKEN=hunter22hunter22").run(Target::Real);
    assert_eq!(seen.out(), "hunter22hunter22\nplainwordplain\n");
    let mut report = vec![0; 256 << 10];
    let length = std::io::Read::read(&mut fifo, &mut report).expect("a report");
    let report = String::from_utf8_lossy(&report[..length]).into_owned();
    assert!(!report.contains("hunter22hunter22"), "{report:?}");
    for part in ["DEPLOY_TOKEN=\0", "PLAIN_WORD=\0", "CODEX_THREAD_ID=thread-17\0", "plainwordplain\n"] {
        assert!(report.contains(part), "{part:?} lacks in {report:?}");
    }
    assert_eq!(report.matches("«redacted:DEPLOY_TOKEN»").count(), 2, "{report:?}");
}

#[test]
fn forged_records_are_ignored_and_named_once() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let header = &records([1; 16], &[Report::End(Exit::Code(0))])[..36];
    let liar = Liar::start(&host);
    let begun = beginning("echo forged", liar.place);
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
    let liar = Liar::start(&host);
    let begun = beginning("a flood", liar.place);
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
    drop(liar);
    assert!(waiting::until_true(PATIENCE, || host.journal().end_of("a flood").is_some()));
}

/// A report that stops in mid-sentence is forgotten, and one that names a process of somebody else's harms nobody.
#[test]
fn a_report_on_another_process_gives_nobody_a_way_to_end_it() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let mut other = programs::command("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("sleep");
    let place = ShimPlace { namespace: own_namespace(), pid: other.id().cast_signed(), ..ShimPlace::default() };
    let begun = beginning("innocent", place);
    write(&host, &records([4; 16], &[Report::Begin { piece: &begun[..20], is_last: false }]));
    write(&host, &records([5; 16], &[Report::Begin { piece: &begun, is_last: true }]));
    let is_told = || host.console_text().matches("rexec-sh is not there: such reports are ignored").count() == 1;
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    is_honest_one_seen(&host, "behind");
    assert_eq!(host.journal().of_type("start").count(), 1, "it became a command: {:#?}", host.journal());
    assert!(!host.console_text().contains("innocent"), "{}", host.console_text());
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
    let liars: Vec<Liar> = (0..RUNS).map(|_| Liar::start(&host)).collect();
    let piece = [b'x'; PAYLOAD_BYTES_MAX];
    for number in 0..60 {
        for run in 0..RUNS {
            let mark = [run + 1; 16];
            let begun = beginning("a flood", ShimPlace { mark, ..liars[usize::from(run)].place });
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
    let mut number = 0_u128;
    // The host finds all of them together. A busy one may take longer than a second for so many, so there are new ones
    // each time.
    let mut is_named = || {
        let liars: Vec<Liar> = (0..90).map(|_| Liar::start(&host)).collect();
        host.signal(Signal::SIGSTOP);
        for liar in liars.iter().cycle().take(240) {
            number += 1 << 96;
            let begun = beginning("one of many", liar.place);
            let whole = [Report::Begin { piece: &begun, is_last: true }, Report::End(Exit::Code(0))];
            write(&host, &records(number.to_be_bytes(), &whole));
        }
        host.signal(Signal::SIGCONT);
        let named = "more than 200 sandboxed commands begin in a second: others run unseen";
        waiting::until_true(std::time::Duration::from_secs(2), || host.console_text().contains(named))
    };
    if !(0..8).any(|_| is_named()) {
        let journal = host.journal();
        let mut begun = BTreeMap::new();
        for start in journal.of_type("start") {
            *begun.entry(&start["time"].as_str().expect("a time")[..19]).or_insert(0) += 1;
        }
        // Of a host that never began more in a second, nothing is left out.
        assert!((1..=200).contains(&begun.values().copied().max().unwrap_or(0)), "{begun:?}\n{}", host.console_text());
        return;
    }
    // In a later second there is room for others again.
    let is_seen = || {
        assert_eq!(caged(&host, "echo honest").run(Target::Real).out(), "honest\n");
        waiting::until_true(std::time::Duration::from_secs(1), || host.journal().end_of("echo honest").is_some())
    };
    assert!(waiting::until_true(PATIENCE, is_seen), "{}", host.console_text());
    assert_eq!(host.console_text().matches("begin in a second").count(), 1);
}

/// Each report names a process that cannot be found by its number alone. One look at all processes serves many of them.
#[test]
fn reports_on_processes_that_are_not_there_cost_the_host_little() {
    const PROCESSES: usize = 300;
    const REPORTS: u128 = 300;
    let host = Host::start();
    let script = format!("for i in $(seq {PROCESSES}); do sleep 1000 & done; echo ready; wait");
    let crowd = host.call(&script).start(Target::Real).expect("it starts");
    assert!(crowd.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE), "they never began");
    let before = procs::processor_time(host.pid());
    for number in 1..=REPORTS {
        let place = ShimPlace { namespace: own_namespace() - 1, pid: 4_000_000, ..ShimPlace::default() };
        let begun = beginning("not there", place);
        let whole = [Report::Begin { piece: &begun, is_last: true }, Report::End(Exit::Code(0))];
        write(&host, &records((number << 96).to_be_bytes(), &whole));
        if number % 10 == 0 {
            assert_eq!(host.run("echo served").out(), "served\n");
        }
    }
    let spent = procs::processor_time(host.pid()) - before;
    // One look at each process for each report would be several times as much.
    assert!(spent.as_millis() < 2_000, "{spent:?} for {REPORTS} reports");
    host.run("true");
    assert!(!host.console_text().contains("not there\n"), "{}", host.console_text());
    drop(crowd);
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
