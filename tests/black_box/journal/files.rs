//! The files of a journal: a new one when one is long or damaged, and never another program's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use std::time::SystemTime;

use rexec_host::cli::{list, print};
use rexec_host::journal::frame::{Frame, encode_output, encode_start};
use rexec_host::journal::reader::{JournalReader, Record};
use rexec_host::recorder::{Bounds, journals};
use rexec_host::text::redact::Redactor;
use serde_json::json;

use super::recording::*;

/// Each file is complete in itself but for the runs that have not ended.
#[test]
#[ignore = "long: 160 runs, each awaited"]
fn a_long_journal_goes_on_in_new_files() {
    const RUNS: u64 = 160;
    let home = Home::new();
    let file_bytes = 64 << 10;
    let mut recording = home.record(Bounds { file_bytes, ..Bounds::default() });
    // The first run lasts as long as the journal.
    recording.start(1);
    for seq in 2..RUNS {
        recording.start(seq);
        recording.output(seq, &[b'x'; 1000]);
        recording.end(seq);
        recording.wait_for_end(seq);
    }
    recording.end(1);
    assert!(recording.close().is_empty());
    let mut files = journals(&home.0).unwrap();
    files.reverse();
    assert!(files.len() > 2, "{files:?}");
    let mut ends = BTreeMap::new();
    for (at, (name, path)) in files.iter().enumerate() {
        let length = fs::metadata(path).unwrap().len();
        assert!(length <= file_bytes + 1024, "{name} has {length} bytes");
        let records = values(path);
        let is_last = at + 1 == files.len();
        let next = (!is_last).then(|| json!(files[at + 1].0));
        assert_eq!(
            (&records.last().unwrap()["type"], records.last().unwrap().get("next")),
            (&json!("close"), next.as_ref())
        );
        assert_eq!(records[0].get("continues"), at.checked_sub(1).map(|at| json!(files[at].0)).as_ref());
        assert_eq!(
            (&records[1]["type"], &records[1]["seq"]),
            (&json!("start"), &json!(1)),
            "every file has the start of a run under way"
        );
        for record in records.iter().filter(|record| record["type"] == "end") {
            *ends.entry(record["seq"].as_u64().unwrap()).or_insert(0) += 1;
        }
        let mut out = Vec::new();
        print::print(&home.0, name, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.contains("… it goes on in "), !is_last, "{text}");
    }
    assert!(ends.len() as u64 == RUNS - 1 && ends.values().all(|&count| count == 1));
    let mut listed = Vec::new();
    list::list(&home.0, usize::MAX, &mut listed).unwrap();
    let listed = String::from_utf8(listed).unwrap();
    let counts = listed.lines().map(|line| line.split_once("commands=").unwrap().1.parse::<u64>().unwrap());
    // A run under way when a file ends counts in the next one, too: the first always, and any other that had just
    // begun.
    let (sum, others) = (counts.sum::<u64>(), files.len() as u64 - 1);
    assert!((RUNS - 1 + others..=RUNS - 1 + 2 * others).contains(&sum), "{listed}");
}

/// Neither counting the runs of a large file nor repairing it reads more than its end.
#[test]
#[ignore = "long: a journal of 4,000 runs"]
fn the_end_of_a_large_journal_is_enough() {
    let home = Home::new();
    let mut recording = home.record_for_the_dead();
    let path = recording.path.clone();
    for seq in 1..=4000 {
        recording.start(seq);
        recording.output(seq, &[b'x'; 1000]);
        if seq != 7 && seq != 3999 {
            recording.end(seq);
        }
        // Starts overtake output. Without this, a slow machine could have all of them before the file's middle.
        if seq % 100 == 0 {
            recording.wait_for_end(seq);
        }
    }
    recording.vanish();
    let mut file = File::open(&path).unwrap();
    let marks = JournalReader::new(file.try_clone().unwrap()).count();
    assert!(marks > 4000);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.matches("\n{\"v\":1,\"type\":\"mark\",").count() > 3);
    // The part before the last mark is not even read.
    let middle = text.len() as u64 / 2;
    File::options().write(true).open(&path).unwrap().write_all_at(&vec![b'#'; 400_000], middle).unwrap();
    let mut listed = Vec::new();
    list::list(&home.0, 1, &mut listed).unwrap();
    assert!(String::from_utf8(listed).unwrap().ends_with(" commands=4000\n"));
    let mut next = home.record(Bounds::default());
    assert_eq!(next.status(), "2 commands of an earlier host have no end and are marked as lost");
    next.close();
    file = File::open(&path).unwrap();
    let lost = |entry| {
        if let Ok(Record::Lost(lost)) = entry { Some((lost.start.card.seq, lost.start.card.command)) } else { None }
    };
    let lost: Vec<_> = JournalReader::new(file).filter_map(lost).collect();
    assert_eq!(lost, [(7, "echo 7".to_owned()), (3999, "echo 3999".to_owned())]);
}

#[test]
fn files_of_other_programs_are_left_alone() {
    let home = Home::new();
    let journal = "{\"v\":1,\"type\":\"open\",\"pid\":4194305}\n{\"v\":1,\"type\":\"start\",\"seq\":1}\n";
    let others = [
        ("notes.jsonl", journal),
        ("2026-01-01.jsonl", journal),
        ("2026-01-01-00:00:00-02.jsonl", journal),
        ("2026-01-01-00:00:01.jsonl", "{\"role\":\"user\",\"content\":\"hello\"}\n"),
        ("2026-01-01-00:00:02.jsonl", "{\"v\":1,\"type\":\"start\",\"seq\":1}\n"),
        ("2026-01-01-00:00:03.jsonl", "{\"v\":1,\"type\":\"open\""),
        ("2026-01-01-00:00:04.jsonl", ""),
        ("2026-01-01-00:00:05.txt", journal),
    ];
    for (name, text) in others {
        fs::write(home.0.join(name), text).unwrap();
    }
    let old = SystemTime::now() - std::time::Duration::from_secs(99 * 24 * 60 * 60);
    fs::create_dir(home.0.join("raw")).unwrap();
    for name in ["dump.out", "2026-01-01-1.out"] {
        let file = File::create(home.0.join("raw").join(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    // The newest journal is repaired first, so once this one is repaired, the others have had their turn.
    let ours = home.0.join("2025-01-01-00:00:00.jsonl");
    fs::write(&ours, journal).unwrap();
    let recording = home.record(Bounds::default());
    wait_until("ours is repaired", || shape_ends(&ours, "close"));
    recording.close();
    assert_eq!(shape(&ours), "open start1 lost1 close");
    for (name, text) in others {
        assert_eq!(fs::read_to_string(home.0.join(name)).unwrap(), text, "{name}");
    }
    assert_eq!(fs::read_dir(home.0.join("raw")).unwrap().count(), 2);
}

#[test]
fn a_truncated_or_replaced_journal_goes_on_in_another_file() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let first = recording.path.clone();
    recording.start_and_wait(1, 2);
    File::options().write(true).open(&first).unwrap().set_len(0).unwrap();
    recording.start(2);
    assert!(recording.status().starts_with("journal was truncated: "));
    let second = recording.current();
    wait_until("the starts are written", || has_lines(&second, 3));
    fs::rename(&second, home.0.join("moved")).unwrap();
    fs::write(&second, "mine").unwrap();
    recording.end(1);
    assert!(recording.status().starts_with("journal was replaced by another file: "));
    let third = recording.current();
    recording.end(2);
    recording.close();
    assert_eq!(fs::read(&first).unwrap(), b"");
    assert_eq!(fs::read(&second).unwrap(), b"mine");
    assert_eq!(shape(&third), "open start1 start2 end1 end2 close");
}

/// Of an output that is longer than the cap, only the middle is left out.
#[test]
fn a_raw_file_has_both_ends_of_its_output() {
    let home = Home::new();
    let cap = 1 << 17;
    let mut recording = home.record(Bounds { raw_cap: cap, ..Bounds::default() });
    let path = recording.path.clone();
    let sizes = [200_000, 1 << 18, (1 << 18) + 1, 1_000_003];
    for (seq, size) in (1..).zip(sizes) {
        recording.start(seq);
        text_of(size).chunks(9_973).for_each(|piece| recording.output(seq, piece));
        recording.end_of(seq, size as u64);
    }
    recording.close();
    for (end, size) in ends(&path).iter().zip(sizes) {
        let kept = fs::read(home.0.join(end["raw"].as_str().unwrap())).unwrap();
        let (all, cap) = (text_of(size), usize::try_from(cap).unwrap());
        assert_eq!(end["raw_bytes"], kept.len());
        if size <= 2 * cap {
            assert!(kept == all && end.get("raw_omitted").is_none());
        } else {
            assert_eq!((&end["raw_omitted"], &end["raw_cut"]), (&json!(size - 2 * cap), &json!(cap)));
            assert!(kept == [&all[..cap], &all[size - cap..]].concat());
        }
    }
    let home = Home::new();
    let mut recording = home.record(Bounds { raw_cap: 0, record_cap: 0, ..Bounds::default() });
    let path = recording.path.clone();
    recording.start(1);
    recording.output(1, &text_of(200_000));
    recording.end(1);
    recording.close();
    let end = &values(&path)[2];
    assert_eq!((end.get("raw"), end.get("raw_error"), &end["output_omitted"]), (None, None, &json!(200_000 - 65_536)));
    assert!(!home.0.join("raw").exists());
}

/// Of a flood the recorder does not look at the middle. The ends are what they would be otherwise.
#[test]
fn a_raw_file_has_both_ends_of_a_flood_and_no_secret_of_it() {
    let (cap, size) = (1 << 17, 1_300_003);
    let token = format!("found ghp_{}\n", "aB3dE5gH7j".repeat(3));
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", "MIIEvQIBADANBgkqh\n".repeat(200));
    let secret = |n: usize| if n.is_multiple_of(700) { &key } else { &token };
    let plain = text_of(size);
    let secrets: String = (0..).map(secret).flat_map(|text| text.chars()).take(size).collect();
    let home = Home::new();
    let mut recording = home.record(Bounds { raw_cap: cap, record_cap: 0, ..Bounds::default() });
    let path = recording.path.clone();
    for (seq, text) in (1..).zip([&plain[..], secrets.as_bytes()]) {
        recording.start(seq);
        text.chunks(60_013).for_each(|piece| recording.output(seq, piece));
        recording.end_of(seq, size as u64);
    }
    recording.close();
    let cap = usize::try_from(cap).unwrap();
    for (end, text) in ends(&path).iter().zip([&plain[..], secrets.as_bytes()]) {
        let mut all = Vec::new();
        Redactor::default().redact(text, &mut all);
        let kept = fs::read(home.0.join(end["raw"].as_str().unwrap())).unwrap();
        assert!(kept == [&all[..cap], &all[all.len() - cap..]].concat(), "{end}");
        assert_eq!((&end["raw_cut"], &end["raw_bytes"], &end["bytes"]), (&json!(cap), &json!(2 * cap), &json!(size)));
    }
    let end = &ends(&path)[0];
    let kept = end["output"].as_str().unwrap();
    assert!(plain.ends_with(&kept.as_bytes()[usize::try_from(end["output_cut"].as_u64().unwrap()).unwrap()..]));
    assert_eq!((&end["raw_omitted"], &end["output_omitted"]), (&json!(size - 2 * cap), &json!(size - kept.len())));
}

/// An agent's wrapper of 38 KB is the same for every command but for the command in it.
#[test]
#[ignore = "long: 100 wrappers of 38 KB"]
fn a_long_wrapper_is_written_once_per_file() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let path = recording.path.clone();
    let wrapper = |n: u64| format!("{}\nexec '/bin/bash' -c 'echo {n}'", "export NAME=value;\n".repeat(2_000));
    for seq in 1..=100 {
        let mut start = start(seq);
        start.exec = vec!["bash".into(), "-c".into(), wrapper(seq)];
        recording.send(|out| encode_start(&start, [], out));
        recording.end(seq);
    }
    recording.close();
    let length = fs::metadata(&path).unwrap().len();
    assert!(length < 300_000, "{length} bytes for 100 commands");
    let seqs = JournalReader::new(File::open(&path).unwrap()).filter_map(|record| match record.unwrap() {
        Record::Start(start) => Some((start.card.seq, start.exec)),
        Record::End(end) => Some((end.start.card.seq, end.start.exec)),
        _ => None,
    });
    let mut count = 0;
    for (seq, exec) in seqs {
        assert!(exec == ["bash", "-c", &wrapper(seq)], "{seq}");
        count += 1;
    }
    assert_eq!(count, 200);
    // Without the text, the records are still read.
    let text = fs::read_to_string(&path).unwrap();
    let without: String =
        text.lines().filter(|line| !line.contains("\"type\":\"text\"")).map(|line| format!("{line}\n")).collect();
    fs::write(&path, without).unwrap();
    let (records, unparsable) = read(&path);
    assert_eq!((records.len(), unparsable), (202, 0));
}

/// The next recorder does not write again what the file has, even if it was not acknowledged.
#[test]
fn the_next_recorder_goes_on_in_the_same_file() {
    let home = Home::new();
    let mut first = home.record(Bounds::default());
    let path = first.path.clone();
    (1..=3).for_each(|seq| first.start(seq));
    first.output(2, b"gone");
    first.end(1);
    wait_until("they are written", || has_lines(&path, 5));
    // The host has read no acknowledgement.
    let session = first.session.clone();
    first.vanish();
    File::options().append(true).open(&path).unwrap().write_at(b"{\"v\":1,\"type\":\"end\",\"seq\":3,", 0).unwrap();
    let mut next = Recording::new(session, Bounds::default());
    assert_eq!(next.path, path);
    (1..=3).for_each(|seq| next.start(seq));
    next.send(|out| Frame::Lost { seq: 2, bytes: 4 }.encode(out));
    (1..=3).for_each(|seq| {
        next.output(seq, b"more\n");
        next.end_of(seq, if seq == 2 { 9 } else { 5 });
    });
    next.start(4);
    next.send(|out| encode_output(4, 1, Duration::ZERO, b"new\n", out));
    next.end(4);
    assert_eq!(
        next.status(),
        "the journal lacks 4 bytes of output of 1 command: they were lost with a recorder that died"
    );
    next.close();
    let (records, unparsable) = read(&path);
    assert_eq!(unparsable, 1, "the torn line");
    check_runs(&records);
    let run = |seq| {
        records.iter().find_map(|record| match record {
            Record::End(end) if end.start.card.seq == seq => Some(end),
            _ => None,
        })
    };
    let second = run(2).unwrap();
    assert_eq!((second.output.text.as_str(), second.output.lost, second.output.cut), ("more\n", Some(4), Some(0)));
    assert_eq!(run(3).unwrap().output.lost, None);
    assert_eq!(records.len(), 2 + 8);
}
