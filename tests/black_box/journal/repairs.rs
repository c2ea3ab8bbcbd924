//! Repairing journals whose host or recorder died.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rexec_host::cli::list;
use rexec_host::journal::frame::{encode_end, encode_output, encode_start};
use rexec_host::journal::reader::Record;
use rexec_host::journal::record::RunEnd;
use rexec_host::recorder::{Bounds, Session, journals, serve};
use serde_json::json;

use super::recording::*;
use crate::support::own_process::only;
use crate::support::programs;

#[test]
fn a_host_that_dies_in_the_middle_of_a_frame_leaves_a_lost_run() {
    let home = Home::new();
    let mut recording = home.record_for_the_dead();
    let path = recording.path.clone();
    recording.start(1);
    recording.start(2);
    recording.end(1);
    let mut frame = Vec::new();
    encode_end(RunEnd { seq: 2, ..RunEnd::default() }, &mut frame);
    recording.socket.write_all(&frame[..frame.len() - 1]).unwrap();
    assert!(recording.vanish().is_empty());
    assert_eq!(shape(&path), "open start1 start2 end1");
    let mut again = home.record(Bounds::default());
    assert_eq!(again.status(), "1 command of an earlier host has no end and is marked as lost");
    assert_eq!(shape(&path), "open start1 start2 end1 lost2 close");
    let lost = &values(&path)[4];
    assert_eq!((&lost["command"], &lost["whoami"]), (&json!("echo 2"), &json!("Claude Code")));
    let path = again.path.clone();
    again.close();
    assert_eq!(shape(&path), "open close");
}

/// A journal is cut at many places. No whole line is lost, and every line but the torn one is a record.
#[test]
#[ignore = "long: repairs a journal cut at every 11th byte"]
fn a_torn_journal_is_repaired() {
    let home = Home::new();
    let mut recording = home.record_for_the_dead();
    let sample = recording.path.clone();
    recording.start(1);
    recording.start(2);
    recording.output(2, "Grüße \"quoted\"\n".as_bytes());
    recording.end(2);
    recording.start(3);
    recording.end(3);
    recording.end(1);
    recording.close();
    let whole = fs::read(&sample).unwrap();
    fs::remove_file(&sample).unwrap();
    let first_line = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let torn = home.0.join("2026-01-01-00:00:00.jsonl");
    // The newest journal is repaired first, so once this one is repaired, the other has had its turn.
    let older = home.0.join("2025-01-01-00:00:00.jsonl");
    let repair = || {
        fs::write(&older, &whole[..first_line]).unwrap();
        let recording = home.record(Bounds::default());
        wait_until("both are repaired", || shape(&older) == "open close");
        let own = recording.path.clone();
        recording.close();
        fs::remove_file(own).unwrap();
    };
    // Around every line's end, and at places in between.
    let is_near_an_end = |cut: usize| whole[cut.saturating_sub(3)..(cut + 3).min(whole.len())].contains(&b'\n');
    for cut in (1..whole.len()).filter(|&cut| cut % 11 == 0 || is_near_an_end(cut)) {
        fs::write(&torn, &whole[..cut]).unwrap();
        repair();
        let text = fs::read(&torn).unwrap();
        if cut < first_line {
            assert!(text == whole[..cut], "a file without a journal's first line is left alone, cut at {cut}");
            continue;
        }
        assert!(text.starts_with(&whole[..cut]), "cut at {cut}");
        let (records, unparsable) = read(&torn);
        assert!(unparsable <= 1, "cut at {cut}");
        assert!(matches!(records.last(), Some(Record::Close(_))), "cut at {cut}");
        check_runs(&records);
        // A second repair changes nothing.
        if cut % 16 == 0 {
            repair();
            assert_eq!(fs::read(&torn).unwrap(), text, "cut at {cut}");
        }
    }
}

/// The recorder is killed at any moment while 64 runs are under way.
#[test]
fn a_recorder_that_is_killed_leaves_a_journal_that_can_be_repaired() {
    const NAME: &str = "journal::repairs::a_recorder_that_is_killed_leaves_a_journal_that_can_be_repaired";
    const HOME: &str = "REXEC_JOURNAL_TEST_HOME";
    if let Some(home) = std::env::var_os(HOME) {
        let home = PathBuf::from(home);
        let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
        let uid = fs::metadata(&home).unwrap().uid();
        return serve(Session::new(&home, uid, DEAD), socket, Bounds::default());
    }
    for round in 0..crate::support::waiting::size(6, 60) as u64 {
        let home = Home::new();
        let (mut socket, theirs) = UnixStream::pair().unwrap();
        let mut recorder = Command::new(std::env::current_exe().unwrap())
            .args(only(NAME))
            .env(HOME, &home.0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let host = thread::spawn(move || {
            for seq in 0_u64.. {
                let mut frames = Vec::new();
                encode_start(&start(seq), [], &mut frames);
                let output = "some output\n".repeat(usize::try_from(seq).unwrap() % 999);
                encode_output(seq, 1, Duration::ZERO, output.as_bytes(), &mut frames);
                if let Some(seq) = seq.checked_sub(64) {
                    encode_end(RunEnd { seq, ..RunEnd::default() }, &mut frames);
                }
                if socket.write_all(&frames).is_err() {
                    return;
                }
            }
        });
        let journal = || journals(&home.0).unwrap().pop().map(|(_, path)| path);
        let length = || journal().and_then(|path| fs::metadata(path).ok()).map_or(0, |data| data.len());
        wait_until("the recorder has written", || length() > 60_000 + round * 7919);
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        host.join().unwrap();
        let killed = journal().unwrap();
        let next = home.record(Bounds::default());
        wait_until("it is closed", || shape_ends(&killed, "close"));
        next.close();
        let (records, unparsable) = read(&killed);
        assert!(unparsable <= 1 && records.len() > 100);
        check_runs(&records);
    }
}

#[test]
fn journals_of_one_second_get_numbers() {
    let home = Home::new();
    let mut all = Vec::new();
    while !all.iter().any(|opened: &Recording| opened.path.to_string_lossy().ends_with("-3.jsonl")) {
        assert!(all.len() < 200);
        all.push(home.record(Bounds::default()));
    }
    // The host of each still lives, so none was closed by the next.
    assert!(all.iter().all(|opened| shape(&opened.path) == "open"));
    let mut listed = Vec::new();
    list::list(&home.0, usize::MAX, &mut listed).unwrap();
    let newest_first = all.iter().rev().map(|opened| opened.path.file_stem().unwrap().to_str().unwrap());
    let expected: String = newest_first.map(|name| format!("{name} commands=0\n")).collect();
    assert_eq!(String::from_utf8(listed).unwrap(), expected);
}

#[test]
fn a_journal_in_use_is_left_alone() {
    let home = Home::new();
    let mut first = home.record(Bounds::default());
    let path = first.path.clone();
    first.start_and_wait(1, 2);
    let second = home.record(Bounds::default());
    first.end(1);
    first.close();
    second.close();
    assert_eq!(shape(&path), "open start1 end1 close");
}

/// A host was killed, and its recorder still writes what it was sent. The next host waits for that.
#[test]
fn a_journal_that_a_recorder_still_writes_is_repaired_later() {
    let home = Home::new();
    let mut gone = programs::command("true").spawn().unwrap();
    gone.wait().unwrap();
    let path = home.0.join("2026-01-01-00:00:00.jsonl");
    let mut recorder = File::options().create_new(true).append(true).open(&path).unwrap();
    recorder.lock().unwrap();
    let open = json!({"v": 1, "type": "open", "pid": gone.id()});
    writeln!(recorder, "{open}\n{}", json!({"v": 1, "type": "start", "seq": 1})).unwrap();
    // The newest journal is repaired first, so once this one is repaired, the other was found in use.
    let older = home.0.join("2025-01-01-00:00:00.jsonl");
    fs::write(&older, format!("{open}\n")).unwrap();
    let next = home.record(Bounds::default());
    wait_until("the older one is closed", || shape_ends(&older, "close"));
    writeln!(recorder, "{}", json!({"v": 1, "type": "end", "seq": 1})).unwrap();
    drop(recorder);
    wait_until("it is closed", || shape_ends(&path, "close"));
    assert!(next.close().is_empty());
    assert_eq!(shape(&path), "open start1 end1 close");
}
