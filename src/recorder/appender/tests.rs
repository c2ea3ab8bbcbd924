//! The records that a full queue gives up, and those that a successor does not write again.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::journal::record::{EndRecord, PublishedCard, RunEnd, StartRecord};
use crate::recorder::home::JournalHome;

fn says(news: &[RecorderStatus]) -> Vec<&str> {
    news.iter()
        .filter_map(|status| if let RecorderStatus::Say(text) = status { Some(text.as_str()) } else { None })
        .collect()
}

#[test]
fn the_oldest_records_go_when_memory_is_full() {
    let home = std::env::temp_dir().join(format!("rexec-appender-{}", std::process::id()));
    let uid = fs::metadata("/proc/self").unwrap().uid();
    JournalHome::of_test(&home);
    let now = Instant::now();
    let queue_bytes = 3 * 600;
    let bounds = Bounds { queue_bytes, retry: Duration::from_secs(5), ..Bounds::default() };
    let (mut appender, _) = Appender::new(Session::new(&home, uid, std::process::id()), &bounds);
    assert!(says(&appender.take_news()).is_empty());
    // A file in the directory's place stands for every disk that fails.
    fs::remove_dir_all(&home).unwrap();
    fs::write(&home, "in the way").unwrap();
    for seq in 0..10 {
        appender.push(
            Unwritten::Start(Rc::new(StartRecord {
                card: PublishedCard { seq, command: "0123456789".into(), ..PublishedCard::default() },
                ..StartRecord::default()
            })),
            now,
        );
        assert!(appender.queue.bytes <= queue_bytes);
    }
    let news = appender.take_news();
    let notices = says(&news);
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].starts_with("journal was removed: ") && notices[1].starts_with("journal cannot be written: "));
    assert_eq!(appender.take_done().starts, (0..7).collect::<Vec<_>>(), "those that are counted");
    appender.tick(now + Duration::from_secs(4));
    assert!(appender.take_news().is_empty());
    fs::remove_file(&home).unwrap();
    appender.tick(now + Duration::from_secs(5));
    assert_eq!(says(&appender.take_news()), ["journal is written again"]);
    let text = fs::read_to_string(appender.volume().unwrap().path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0].contains("\"open\"") && lines[1].contains("\"count\":7"));
    assert!(lines[2].contains("\"seq\":7") && lines[4].contains("\"seq\":9"));
    assert_eq!(appender.take_done().starts, [7, 8, 9]);
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn what_a_file_has_that_stays_locked_is_not_written_again() {
    let home = std::env::temp_dir().join(format!("rexec-appender-locked-{}", std::process::id()));
    let uid = fs::metadata("/proc/self").unwrap().uid();
    JournalHome::of_test(&home);
    let (now, bounds) = (Instant::now(), Bounds::default());
    let mut session = Session::new(&home, uid, std::process::id());
    let (mut before, _) = Appender::new(session.clone(), &bounds);
    let start = |seq| StartRecord { card: PublishedCard { seq, ..PublishedCard::default() }, ..StartRecord::default() };
    let end = RunEnd { seq: 1, ..RunEnd::default() };
    before.push(Unwritten::Start(Rc::new(start(1))), now);
    before.push(Unwritten::End(Box::new(EndRecord { start: start(1), end, ..EndRecord::default() })), now);
    before.push(Unwritten::Start(Rc::new(start(2))), now);
    let name = before.volume().unwrap().name().to_owned();
    session.on_file(&name);
    // The one before is still there and holds its lock.
    let (after, known) = Appender::new(session, &bounds);
    assert_eq!((known.ended, known.open), (BTreeSet::from([1]), BTreeSet::new()), "a new file has no starts yet");
    assert_ne!(after.volume().unwrap().name(), name);
    let open = names::first_line(&fs::File::open(after.volume().unwrap().path()).unwrap()).unwrap();
    assert_eq!(open.continues, Some(name));
    fs::remove_dir_all(&home).unwrap();
}

/// Where no new file can be made, the old one goes on and grows. The next record tries again.
#[test]
fn a_file_goes_on_while_no_other_one_can_be_made() {
    let home = std::env::temp_dir().join(format!("rexec-appender-rotated-{}", std::process::id()));
    let uid = JournalHome::of_test(&home).uid;
    let now = Instant::now();
    let bounds = Bounds { file_bytes: 600, ..Bounds::default() };
    let (mut appender, _) = Appender::new(Session::new(&home, uid, std::process::id()), &bounds);
    let start = |seq| StartRecord {
        card: PublishedCard { seq, command: "0123456789".repeat(20), ..PublishedCard::default() },
        ..StartRecord::default()
    };
    let end = |seq| {
        let end = RunEnd { seq, ..RunEnd::default() };
        Unwritten::End(Box::new(EndRecord { start: start(seq), end, ..EndRecord::default() }))
    };
    let text = |appender: &Appender| fs::read_to_string(appender.volume().unwrap().path()).unwrap();
    let mode = |mode| fs::set_permissions(&home, fs::Permissions::from_mode(mode)).unwrap();
    let first = appender.volume().unwrap().path().to_owned();
    // In a directory that is open to others, no file is made, also not by root.
    mode(0o777);
    for seq in 1..=4 {
        appender.push(Unwritten::Start(Rc::new(start(seq))), now);
    }
    appender.push(end(1), now);
    assert_eq!(says(&appender.take_news()), Vec::<&str>::new(), "nothing is lost, so nothing is told");
    assert!(!appender.is_failing() && appender.volume().unwrap().path() == first);
    let old = text(&appender);
    assert!(old.len() > 1_200 && !old.contains("\"close\""), "{old}");
    assert_eq!(old.matches("\"type\":\"start\"").count(), 4, "{old}");
    mode(0o700);
    appender.push(end(2), now);
    let second = appender.volume().unwrap();
    let open = names::first_line(&fs::File::open(second.path()).unwrap()).unwrap();
    let name = first.file_stem().unwrap().to_str().unwrap();
    assert_eq!((second.path() != first, open.continues.as_deref()), (true, Some(name)));
    let old = fs::read_to_string(&first).unwrap();
    assert!(old.ends_with(&format!("\"next\":\"{}\"}}\n", second.name())), "{old}");
    let new = text(&appender);
    let seqs = |kind: &str| -> Vec<u64> {
        let records = new.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        records.filter(|record| record["type"] == kind).map(|record| record["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!((seqs("start"), seqs("end")), (vec![2, 3, 4], vec![2]), "what ran is in the new file: {new}");
    assert_eq!(appender.take_done().ends, [1, 2]);
    fs::remove_dir_all(&home).unwrap();
}
