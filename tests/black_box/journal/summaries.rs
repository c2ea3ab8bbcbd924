//! The summaries beside journals: they make answers fast, and never other than without them.

use std::fs;
use std::path::{Path, PathBuf};

use rexec_host::recorder::Bounds;

use super::recording::*;
use crate::history::reading::said;
use crate::history::samples::Sample;

fn summaries(home: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(home).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "summary")).collect();
    paths.sort();
    paths
}

/// Two sessions, of which one has two files: runs that end in the second file, and one that never ends.
fn sample(home: &Path) {
    let runs = |mut sample: Sample, seqs: std::ops::Range<u64>| {
        let filler = "x".repeat(2_000);
        for seq in seqs {
            let fields =
                format!("\"exit\":{},\"output\":\"{filler}\",\"duration_ms\":{seq}", u64::from(seq % 700 == 9));
            sample = sample.run(seq, &format!("echo {seq}"), &fields);
        }
        sample
    };
    let close = "{\"v\":1,\"type\":\"close\",\"time\":\"2026-05-21T12:00:00.000Z\"}";
    runs(Sample::new("2026-05-20-17:03:55"), 1..40).line(close).write(home);
    let first = runs(Sample::new("2026-05-21-09:42:18").start(1, "ends later").start(2, "never ends"), 3..1_500);
    let second = first.continues("2026-05-21-09:42:18-2").start(1, "ends later").start(2, "never ends");
    first.line(close).write(home);
    let second = runs(second, 1_500..2_000).end(1, "ends later", "\"exit\":7").line("garbage");
    runs(second, 2_000..2_100).line(close).write(home);
}

/// What becomes of a summary, with another one at hand.
type Shape = fn(&[u8], &[u8]) -> Vec<u8>;

const QUESTIONS: [&[&str]; 14] = [
    &["show", "1", "--json"],
    &["show", "2", "--json"],
    &["show", "9", "--json"],
    &["show", "1499", "--json"],
    &["show", "1500", "--json"],
    &["show", "2099", "--json"],
    &["show", "2100", "--json"],
    &["show", "-2101", "--json"],
    &["show", "2026-05-20:39", "--json"],
    &["log", "--failed", "-n", "all", "--json"],
    &["log", "--failed", "-n", "2", "--json"],
    &["log", "--since", "2026-05-21T10:58:30Z", "-n", "all", "--json"],
    &["log", "--slow", "2098ms", "--json"],
    &["log", "--agent", "nobody", "--json"],
];

fn answers(home: &Path) -> Vec<(String, i32)> {
    QUESTIONS.iter().map(|question| said(home, question)).collect()
}

#[test]
#[ignore = "long: 14 questions, 6 times each"]
fn a_summary_changes_no_answer_whatever_state_it_is_in() {
    let home = Home::new();
    let home_path = home.0.clone();
    let home_path = home_path.as_path();
    sample(home_path);
    let without = answers(home_path);
    assert!(without.iter().take(6).all(|(_, code)| *code == 0), "{without:?}");

    // A recorder summarizes what dead hosts left, and its own file at its end.
    let recording = home.record(Bounds::default());
    let own = recording.path.clone();
    wait_until("three summaries", || summaries(home_path).len() == 3);
    recording.close();
    assert!(own.with_extension("summary").is_file());
    fs::remove_file(own.with_extension("summary")).unwrap();
    fs::remove_file(own).unwrap();
    let good: Vec<(PathBuf, Vec<u8>)> =
        summaries(home_path).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    assert_eq!(answers(home_path), without);

    let shapes: [Shape; 4] = [
        |own, _| own[..own.len() / 3].to_vec(),
        |_, other| other.to_vec(),
        |own, _| own.iter().map(|byte| if *byte == b'9' { b'8' } else { *byte }).collect(),
        |_, _| Vec::new(),
    ];
    for shape in shapes {
        for (at, (path, own)) in good.iter().enumerate() {
            fs::write(path, shape(own, &good[(at + 1) % good.len()].1)).unwrap();
        }
        assert_eq!(answers(home_path), without);
    }
    good.iter().for_each(|(path, own)| fs::write(path, own).unwrap());
    // Of a file that has grown, the summary is of the beginning.
    let grown = home_path.join("2026-05-21-09:42:18-2.jsonl");
    let more = Sample::new("x").run(5_000, "new", "\"exit\":0");
    fs::write(&grown, [fs::read(&grown).unwrap(), more.text.into_bytes()].concat()).unwrap();
    assert!(said(home_path, &["show", "5000"]).0.contains("$ new"));
    assert!(said(home_path, &["show", "1"]).0.contains("exit 7"));
}
