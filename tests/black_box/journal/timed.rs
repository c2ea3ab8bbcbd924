//! Recordings: what commands wrote, with its times, beside the journal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rexec_host::journal::frame::{Frame, encode_output, encode_start};
use rexec_host::journal::record::{InputRecord, StartRecord};
use rexec_host::journal::recording::{EventKind, RecordedEvent, line_start, parse_event};
use rexec_host::recorder::Bounds;
use serde_json::Value;

use super::recording::{Home, ends, start};
use crate::support::call::Target;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use std::path::Path;

const MS: Duration = Duration::from_millis(1);

/// The events of the run that this end record is of.
fn events(home: &Path, end: &Value) -> Vec<RecordedEvent> {
    let name = end["recording"].as_str().unwrap_or_else(|| panic!("no recording: {end}"));
    let all = fs::read(home.join(name)).unwrap();
    let [from, to] = [0, 1].map(|at| usize::try_from(end["recording_at"][at].as_u64().unwrap()).unwrap());
    let own = line_start(end["seq"].as_u64().unwrap());
    let lines = all[from..to].split(|&byte| byte == b'\n').filter(|line| line.starts_with(&own));
    lines.map(|line| parse_event(line).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(line)))).collect()
}

/// Whether this stands in a recording.
fn has_recorded(host: &Host, text: &str) -> bool {
    let files = fs::read_dir(host.journal_home().join("raw")).into_iter().flatten().flatten();
    files.map(|file| fs::read_to_string(file.path())).any(|recorded| recorded.is_ok_and(|all| all.contains(text)))
}

fn output(events: &[RecordedEvent]) -> String {
    events.iter().filter(|event| event.kind == EventKind::Output).map(|event| event.text.as_str()).collect()
}

#[test]
fn a_host_records_when_a_command_wrote_what() {
    let host = Host::start();
    let script = "go() { until [ -e $1 ]; do sleep 0.02; done; }; printf 'one\\n'; go 1; printf 'two\\n' >&2; go 2; \
                  printf 'three \\033[1mb\\033[m'";
    let mut call = host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts");
    for (written, gate) in [("one\\r\\n", "1"), ("two\\r\\n", "2")] {
        waiting::wait_until("it is recorded", || has_recorded(&host, written));
        std::thread::sleep(Duration::from_millis(300));
        fs::write(host.home.join(gate), "").expect("a file");
    }
    assert_eq!(call.finish(PATIENCE).expect("it ends").code(), 0);
    assert_eq!(host.run("true").code(), 0);
    let end = host.wait_for("an end", |journal| journal.end_of(script).cloned());
    let events = events(&host.journal_home(), &end);
    assert_eq!((events[0].kind, events[0].text.as_str()), (EventKind::Size, "160x48"));
    let texts: Vec<&str> = events[1..].iter().map(|event| event.text.as_str()).collect();
    assert_eq!(texts, ["one\r\n", "two\r\n", "three \x1b[1mb\x1b[m"]);
    assert!(events.windows(2).skip(1).all(|pair| pair[1].at >= pair[0].at + 250 * MS), "{events:?}");
    let silent = host.wait_for("an end", |journal| journal.end_of("true").cloned());
    assert_eq!(silent.get("recording"), None, "a command without output has no recording");
    host.finish();
}

#[test]
fn a_host_records_nothing_when_told_so() {
    let host = Host::with(Setup { flags: &["--no-record"], ..PLAIN });
    assert_eq!(host.run("echo text").code(), 0);
    let end = host.wait_for("an end", |journal| journal.end_of("echo text").cloned());
    assert!(end.as_object().unwrap().keys().all(|name| !name.starts_with("recording")), "{end}");
    assert!(!host.journal_home().join("raw").exists());
    host.finish();
}

/// A part of what it wrote is in the dead recorder's file, and what the host still has goes to the next one.
#[test]
fn a_recording_goes_on_when_its_recorder_is_killed() {
    let host = Host::start();
    let call = host.call("echo before; while [ ! -e go ]; do sleep 0.02; done; echo after");
    let script = String::from_utf8(call.argv[2].clone()).unwrap();
    let dir = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&call.dir))).unwrap();
    let socket = host.socket();
    let running = std::thread::spawn(move || call.run(crate::support::call::Target::Shim(&socket)));
    waiting::wait_until("live output reaches the file", || has_recorded(&host, "before\\r\\n"));
    host.kill_recorder(&host.recorder());
    fs::write(dir.join("go"), "").unwrap();
    assert_eq!(running.join().unwrap().out(), "before\nafter\n");
    let end = host.wait_for("an end", |journal| journal.end_of(&script).cloned());
    assert_eq!(output(&events(&host.journal_home(), &end)), "before\r\nafter\r\n");
    host.finish();
}

/// How often the console says this.
fn said(host: &Host, text: &str) -> usize {
    host.console_text().matches(text).count()
}

#[test]
fn a_full_disk_below_recordings_fails_no_command_and_no_record() {
    if !nix::unistd::geteuid().is_root() {
        return programs::skipped("only root can mount a small file system");
    }
    let home = TempDir::new(None);
    let place = home.join("journal/raw");
    fs::create_dir_all(&place).expect("a directory");
    fs::set_permissions(home.join("journal"), fs::Permissions::from_mode(0o700)).expect("ours");
    if let Err(error) = mount(Some("tmpfs"), &place, Some("tmpfs"), MsFlags::empty(), Some("size=32k,mode=0700")) {
        return programs::skipped(&format!("a small file system cannot be mounted: {error}"));
    }
    let host = Host::in_dir(home, PLAIN);
    for n in 0..40 {
        let seen = host.run(&format!("seq {n} {}; exit {n}", n + 500));
        let expected: String = (n..=n + 500).map(|line| format!("{line}\n")).collect();
        assert_eq!((seen.code(), seen.out(), seen.err()), (n, expected, String::new()));
    }
    let last = host.wait_for("all ends", |journal| {
        let is_whole = journal.of_type("end").count() == 40;
        journal.of_type("end").last().filter(|_| is_whole).cloned()
    });
    assert!(last["recording_error"].as_str().is_some() && last["output"].as_str().unwrap().contains("500\n"), "{last}");
    waiting::wait_until("it is told", || said(&host, "recordings cannot be written: ") > 0);
    assert_eq!(said(&host, "recordings cannot be written: "), 1, "{}", host.console_text());
    let home = host.leave();
    umount2(&place, MntFlags::MNT_DETACH).expect("we mounted it");
    drop(home);
}

#[test]
fn a_recording_whose_file_is_removed_costs_itself_and_is_told_once() {
    let host = Host::start();
    let call = host.call("echo before; while [ ! -e go ]; do sleep 0.02; done; echo after");
    let script = String::from_utf8(call.argv[2].clone()).unwrap();
    let mut running = call.start(Target::Shim(&host.socket())).expect("the shim starts");
    let files =
        || fs::read_dir(host.journal_home().join("raw")).into_iter().flatten().flatten().map(|file| file.path());
    waiting::wait_until("live output reaches the file", || has_recorded(&host, "before\\r\\n"));
    files().for_each(|path| fs::remove_file(path).expect("ours"));
    fs::write(host.home.join("go"), "").unwrap();
    assert_eq!(running.finish(PATIENCE).expect("it ends").out(), "before\nafter\n");
    let end = host.wait_for("an end", |journal| journal.end_of(&script).cloned());
    assert_eq!(
        (&end["output"], &end["recording_error"]),
        (&"before\nafter\n".into(), &"their file was removed".into())
    );
    assert_eq!(host.run("echo next").out(), "next\n");
    let next = host.wait_for("an end", |journal| journal.end_of("echo next").cloned());
    assert_eq!(output(&events(&host.journal_home(), &next)), "next\r\n");
    waiting::wait_until("both are told", || said(&host, "recordings are written again") == 1);
    assert_eq!(said(&host, "recordings cannot be written: their file was removed"), 1);
    host.finish();
}

#[test]
fn sizes_are_recorded_in_order_with_the_output() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let start = StartRecord { window: Some((24, 80)), relayed: true, ..start(1) };
    recording.send(|out| encode_start(&start, [], out));
    recording.send(|out| encode_output(1, 0, 5 * MS, b"one\n", out));
    recording.send(|out| Frame::Resized { seq: 1, at: 70 * MS, window: (30, 100) }.encode(out));
    recording.send(|out| encode_output(1, 0, 90 * MS, b"two\n", out));
    recording.end_of(1, 8);
    let path = recording.path.clone();
    assert!(recording.close().is_empty());
    let events = events(&home.0, &ends(&path)[0]);
    let seen: Vec<_> = events.iter().map(|event| (event.at.as_millis(), event.text.as_str())).collect();
    assert_eq!(seen, [(0, "80x24"), (5, "one\n"), (70, "100x30"), (90, "two\n")]);
}

/// What follows may be the password, so the masks hold the prompt back.
#[test]
fn a_prompt_is_recorded_with_its_own_time() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    recording.send(|out| encode_start(&StartRecord { relayed: true, ..start(1) }, [], out));
    let typed = InputRecord { seq: 1, bytes: 5, hidden: true, ..InputRecord::default() };
    recording.send(|out| encode_output(1, 0, 50 * MS, b"one\n", out));
    recording.send(|out| encode_output(1, 0, 1_000 * MS, b"two\nPassword: ", out));
    recording.send(|out| Frame::Input { at: 3_000 * MS, input: Box::new(typed) }.encode(out));
    recording.send(|out| encode_output(1, 0, 4_000 * MS, b"\ntoken=", out));
    recording.send(|out| encode_output(1, 0, 5_000 * MS, b"ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3\n", out));
    recording.end_of(1, 70);
    let path = recording.path.clone();
    assert!(recording.close().is_empty());
    let events = events(&home.0, &ends(&path)[0]);
    let mut seen: Vec<(u128, String)> = Vec::new();
    for event in &events[1..] {
        match seen.last_mut().filter(|(at, _)| *at == event.at.as_millis() && event.kind == EventKind::Output) {
            Some((_, text)) => text.push_str(&event.text),
            None => seen.push((event.at.as_millis(), event.text.clone())),
        }
    }
    let seen: Vec<(u128, &str)> = seen.iter().map(|(at, text)| (*at, text.as_str())).collect();
    let typed = "5 bytes typed, not shown";
    let expected = [(50, "one\n"), (1_000, "two\nPassword: "), (3_000, typed), (4_000, "\ntoken=")];
    assert_eq!(seen[..4], expected);
    assert!(seen[4].0 == 5_000 && seen[4].1.starts_with("«redacted:") && !seen[4].1.contains("aB3"), "{seen:?}");
}

#[test]
fn a_recording_that_cannot_be_written_costs_neither_the_run_nor_its_record() {
    let home = Home::new();
    fs::write(home.0.join("raw"), "in the way").unwrap();
    let mut recording = home.record(Bounds::default());
    for seq in 1..=3 {
        recording.start(seq);
        recording.output(seq, b"text\n");
        recording.end_of(seq, 5);
        recording.wait_for_end(seq);
    }
    fs::remove_file(home.0.join("raw")).unwrap();
    recording.start(4);
    recording.output(4, b"text\n");
    recording.end_of(4, 5);
    let path = recording.path.clone();
    let said = recording.close();
    assert_eq!(
        said,
        [
            "recordings cannot be written: not a directory; commands and the journal go on",
            "recordings are written again"
        ]
    );
    let ends = ends(&path);
    assert_eq!(ends.len(), 4);
    for end in &ends[..3] {
        assert_eq!((&end["output"], &end["recording_error"]), (&"text\n".into(), &"not a directory".into()));
    }
    assert_eq!(output(&events(&home.0, &ends[3])), "text\r\n");
}

/// 100 MB are counted, and only the beginning is recorded.
#[test]
fn a_long_output_is_recorded_up_to_the_cap() {
    let home = Home::new();
    let cap = 100_000;
    let mut recording = home.record(Bounds { record_cap: cap, ..Bounds::default() });
    recording.start(1);
    (0..100).for_each(|_| recording.output(1, &[b'x'; 4096]));
    recording.end_of(1, 409_600);
    let path = recording.path.clone();
    assert!(recording.close().is_empty());
    let end = &ends(&path)[0];
    assert_eq!(end["recording_omitted"].as_u64(), Some(409_600 - cap));
    let events = events(&home.0, end);
    assert_eq!(output(&events).len() as u64, cap);
    assert_eq!(events.last().unwrap().text, "rexec: 309600 bytes more are not recorded");
}

/// Old recordings make room for new ones, together with raw files.
#[test]
fn recordings_keep_within_the_quota() {
    let home = Home::new();
    fs::create_dir(home.0.join("raw")).unwrap();
    let old = home.0.join("raw/2026-05-20-09:42:18.rec");
    fs::write(&old, vec![b'x'; 60_000]).unwrap();
    let mut recording = home.record(Bounds { raw_bytes: 100_000, ..Bounds::default() });
    assert!(old.exists());
    recording.start(1);
    (0..15).for_each(|_| recording.output(1, &[b'y'; 4096]));
    recording.end_of(1, 15 * 4096);
    recording.wait_for_end(1);
    let path = recording.path.clone();
    assert!(recording.close().is_empty());
    assert!(!old.exists(), "the oldest goes first");
    assert_eq!(ends(&path)[0].get("recording_error"), None);
}
