//! The records of each command.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rexec_host::journal::frame::{encode_end, encode_output, encode_start};
use rexec_host::journal::record::{RunEnd, Straggler};
use rexec_host::recorder::Bounds;
use serde_json::json;

use super::recording::*;
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::own_process::alone;

#[test]
fn runs_are_written_as_they_end() {
    let home = Home::new();
    let mut recording = home.record(Bounds { record_cap: 0, ..Bounds::default() });
    let path = recording.path.clone();
    recording.start(1);
    recording.start(2);
    recording.output(1, b"one\r\n");
    recording.output(2, b"\x1b[31mtwo\x1b[0m\n");
    let end = RunEnd {
        seq: 2,
        exit: 137,
        signal: Some(9),
        duration_ms: 5,
        bytes: 13,
        error: Some("aborted".into()),
        left: vec![Straggler { pid: 4, comm: "sleep".into(), ports: vec![3000] }],
        ..RunEnd::default()
    };
    recording.send(|out| encode_end(end, out));
    recording.output(2, b"from a straggler");
    recording.end(2);
    recording.end(1);
    recording.end(77);
    assert!(recording.close().is_empty());
    assert_eq!(shape(&path), "open start1 start2 end2 end1 close");
    let records = values(&path);
    assert!(records.iter().all(|record| record["v"] == 1));
    assert_eq!(records[0]["pid"], std::process::id());
    let expected = json!({
        "v": 1, "type": "end", "seq": 2, "whoami": "Claude Code", "dir": "/path/to/repo", "envs": {},
        "exec": ["sh", "-c", "echo 2"], "exit": 137, "output": "two\n", "time": "2026-05-21T09:42:18.123Z",
        "error": "aborted", "command": "echo 2", "shell": "sh", "duration_ms": 5, "queued_ms": 0, "signal": 9,
        "bytes": 13, "left": [{"pid": 4, "comm": "sleep", "ports": [3000]}],
    });
    assert_eq!(records[3], expected);
    assert_eq!((&records[4]["output"], records[4].get("error")), (&json!("one\n"), None));
    assert_eq!(records[5]["commands"], 2);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!((mode(&path), mode(&home.0)), (0o600, 0o700));
}

#[test]
fn a_hundred_interleaved_runs_have_a_record_each() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let path = recording.path.clone();
    (0..100).for_each(|seq| recording.start(seq));
    for round in 0..10 {
        (0..100).for_each(|seq| recording.output(seq, format!("run {seq} round {round}\n").as_bytes()));
    }
    // 37 and 100 have no common factor, so every run ends once, in another order than they start.
    (0..100).for_each(|n| recording.end(n * 37 % 100));
    assert!(recording.close().is_empty());
    let mut records = values(&path);
    assert_eq!(records.len(), 202);
    // An end waits only for its own output, so the ends are in any order.
    records[101..201].sort_by_key(|record| record["seq"].as_u64());
    for (seq, record) in (0..100).zip(&records[101..]) {
        assert_eq!((&record["type"], &record["seq"]), (&json!("end"), &json!(seq)));
        let output: String = (0..10).map(|round| format!("run {seq} round {round}\n")).collect();
        assert_eq!((&record["output"], &record["bytes"]), (&json!(output), &json!(output.len())));
    }
}

#[test]
fn long_output_goes_to_a_raw_file() {
    let home = Home::new();
    let mut recording = home.record(Bounds { record_cap: 0, ..Bounds::default() });
    let path = recording.path.clone();
    let sizes = [65_535, 65_536, 65_537, 10 << 20];
    for (seq, size) in (0..).zip(sizes) {
        recording.start(seq);
        for piece in text_of(size).chunks(99_991) {
            recording.output(seq, piece);
        }
        recording.end_of(seq, size as u64);
    }
    assert!(recording.close().is_empty());
    let ends = ends(&path);
    assert_eq!(ends.len(), sizes.len());
    for (record, size) in ends.iter().zip(sizes) {
        let bytes = text_of(size);
        let shown = record["output"].as_str().unwrap().as_bytes();
        assert_eq!((&record["bytes"], record.get("raw_error")), (&json!(size), None));
        if size <= 65_536 {
            assert!(shown == bytes && record.get("raw").is_none() && record.get("output_omitted").is_none());
            continue;
        }
        assert!(shown == [&bytes[..32 << 10], &bytes[size - (32 << 10)..]].concat());
        assert_eq!((&record["output_omitted"], &record["output_cut"]), (&json!(size - 65_536), &json!(32 << 10)));
        let raw = home.0.join(record["raw"].as_str().unwrap());
        assert!(fs::read(&raw).unwrap() == bytes);
        assert_eq!(fs::metadata(&raw).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::metadata(raw.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    }
    assert_eq!(fs::read_dir(home.0.join("raw")).unwrap().count(), 2);
}

#[test]
fn a_record_has_the_last_state_of_redrawn_output() {
    let host = Host::start();
    let scripts = [
        ("for n in {0..100}; do printf '\\r\\033[Kload %3d %%' $n; done; printf '\\ndone\\r\\n'", "load 100 %\ndone\n"),
        ("for n in {1..50}; do printf 'a %d\\nb %d\\n\\033[2A' $n $n; done; printf '\\n\\n'", "a 50\nb 50\n"),
        ("printf 'one\\033[31m two\\033[0m\\n'", "one two\n"),
        ("printf %s three >&2", "three"),
        // The bytes are more than a record holds, and the text is less.
        ("for n in {1..20000}; do printf '\\rload %d' $n; done", "load 20000"),
    ];
    for (script, expected) in scripts {
        assert_eq!(host.run(script).code(), 0, "{script}");
        let end = host.wait_for("the end", |journal| journal.end_of(script).cloned());
        assert_eq!((&end["output"], end.get("output_omitted")), (&json!(expected), None), "{script}");
        assert_eq!(end.get("raw").is_some(), end["bytes"].as_u64() > Some(65_536), "{script}");
    }
    let end = host.wait_for("the end", |journal| journal.end_of(scripts[4].0).cloned());
    let raw = fs::read_to_string(host.journal_home().join(end["raw"].as_str().unwrap())).unwrap();
    assert_eq!(raw.matches('\r').count(), 20_000);
}

#[test]
fn output_that_never_arrived_is_counted() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let path = recording.path.clone();
    recording.start(1);
    recording.output(1, b"seen\n");
    recording.end_of(1, 1005);
    recording.close();
    let record = &values(&path)[2];
    assert_eq!((&record["output_omitted"], &record["bytes"]), (&json!(1000), &json!(1005)));
}

/// The host dies without reading any status line.
#[test]
fn all_that_a_host_sent_is_written_even_if_it_reads_nothing() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let path = recording.path.clone();
    for seq in 0..50 {
        fs::remove_file(&path).unwrap();
        recording.start(seq);
        wait_until("the file is back", || path.exists());
    }
    (0..50).for_each(|seq| recording.end(seq));
    let Recording { socket, status, recorder, .. } = recording;
    drop((socket, status));
    recorder.join().unwrap();
    assert_eq!(ends(&path).len(), 50);
}

/// 8 runs write 64 MiB of output.
#[test]
fn the_recorders_memory_is_bounded() {
    alone("journal::records::the_recorders_memory_is_bounded", &["env"], || {
        let home = Home::new();
        let mut recording = home.record(Bounds { raw_bytes: 1 << 20, ..Bounds::default() });
        let path = recording.path.clone();
        // Code is memory too, once it has run.
        recording.start(8);
        (0..2).for_each(|_| recording.output(8, &[b'x'; 64 << 10]));
        recording.end(8);
        recording.fence();
        (0..8).for_each(|seq| recording.start(seq));
        let peak = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let mut frames = Vec::new();
        (0..8).for_each(|seq| encode_output(seq, 1, Duration::ZERO, &[b'x'; 64 << 10], &mut frames));
        let before = peak();
        (0..32).for_each(|_| recording.socket.write_all(&frames).unwrap());
        (0..8).for_each(|seq| recording.end(seq));
        recording.close();
        assert!(peak() - before < 8 << 10, "{} KiB", peak() - before);
        let ends = ends(&path);
        let run = ends.iter().find(|end| end["seq"] == 0).unwrap();
        assert_eq!(run["bytes"], 2 << 20);
        assert!(run["raw_error"].as_str().unwrap().contains("no more room"));
        let files = fs::read_dir(home.0.join("raw")).unwrap();
        assert!(files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>() <= 1 << 20);
    });
}

#[test]
fn bytes_that_are_not_utf8_are_kept_in_base64() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let path = recording.path.clone();
    let mut odd = start(1);
    odd.set_exec([&b"sh"[..], b"-c", b"echo \xff"].into_iter());
    odd.set_dir(b"/tmp/\xe4");
    recording.send(|out| encode_start(&odd, [], out));
    recording.output(1, b"\xff\xc3\n");
    recording.end(1);
    recording.close();
    let records = values(&path);
    for record in &records[1..3] {
        assert_eq!(record["exec"], json!(["sh", "-c", "echo \u{fffd}"]));
        assert_eq!(record["exec_b64"], json!(["c2g=", "LWM=", "ZWNobyD/"]));
        assert_eq!((&record["dir"], &record["dir_b64"]), (&json!("/tmp/\u{fffd}"), &json!("L3RtcC/k")));
    }
    assert_eq!(records[2]["output"], "\u{fffd}\u{fffd}\n");
}

#[test]
fn a_record_counts_what_the_caller_got() {
    let host = Host::with(Setup { flags: &["--redact-agents"], ..MIRROR });
    let socket = host.socket();
    for (script, entry) in [
        ("echo plain; echo more >&2", "A=b"),
        ("printf '\\033[31mred\\033[0m\\n10%%\\r20%%\\n'", "A=b"),
        ("seq 1 5000", "REXEC_BUDGET=1K"),
        ("echo $API_TOKEN $API_TOKEN", "API_TOKEN=very-much-hidden"),
    ] {
        // A turn of the host that takes too long leaves the count out.
        let (outcome, end) = (0..20)
            .map(|_| {
                let before = host.journal().of_type("end").count();
                let outcome = host.call(script).env(entry).run(Target::Shim(&socket));
                let end = host.wait_for("the end", |journal| journal.of_type("end").nth(before).cloned());
                (outcome, end)
            })
            .find(|(_, end)| !end["received"].is_null())
            .expect("a count");
        let got = outcome.out().len() + outcome.err().len();
        assert_eq!(end["received"], got, "{script}: {outcome:?} {end}");
        assert!(!script.contains("seq") || end["bytes"].as_u64() > end["received"].as_u64(), "{end}");
        assert_eq!(end["hidden"].as_u64().unwrap_or(0), if script.contains("TOKEN") { 2 } else { 0 }, "{end}");
    }
}
