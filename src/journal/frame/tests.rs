//! Frames through the decoder, and the largest of them.

use super::*;
use crate::journal::record::PublishedCard;
use crate::journal::record::{EndRecord, GateRecord, LINE_BYTES_MAX, Straggler, line};

fn drain(decoder: &mut Decoder) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(frame) = decoder.next_frame() {
        seen.extend(frame.ok().map(|frame| format!("{frame:?}")));
    }
    seen
}

/// A frame of each kind.
fn frames() -> [Frame<'static>; 13] {
    let at = Duration::from_micros(1_234_567);
    let input = InputRecord { seq: 7, bytes: 3, from: "rexec send".into(), ..InputRecord::default() };
    [
        Frame::Entries { seq: 7, entries: b"API_KEY=\xff\0" },
        Frame::Start { has_entries: true, start: start("ls") },
        Frame::Output { seq: 7, stream: 2, at, bytes: b"a\x00\xff" },
        Frame::Output { seq: u64::MAX, stream: 0, at: Duration::ZERO, bytes: b"" },
        Frame::Resized { seq: 7, at, window: (24, 80) },
        Frame::Mark { seq: 7, mark: 1 },
        Frame::Lost { seq: 7, bytes: 1 << 40 },
        Frame::Input { at, input: Box::new(input) },
        Frame::End(Box::new(RunEnd { seq: 7, exit: 3, ..RunEnd::default() })),
        Frame::Unseen(Box::default()),
        Frame::Destroyed(Box::default()),
        Frame::Projects(b"{}"),
        Frame::Dropped(3),
    ]
}

fn start(command: &str) -> Box<StartRecord> {
    let card = PublishedCard { seq: 7, command: command.into(), ..PublishedCard::default() };
    Box::new(StartRecord { card, ..StartRecord::default() })
}

#[test]
fn any_split_gives_the_same_frames() {
    let mut stream = Vec::new();
    frames().iter().for_each(|frame| frame.encode(&mut stream));
    stream.extend_from_slice(&[99, 2, 0, 0, 0, b'h', b'i']);
    Frame::Close.encode(&mut stream);
    let expected: Vec<String> = frames().iter().chain([&Frame::Close]).map(|frame| format!("{frame:?}")).collect();
    for kind in Frame::KINDS {
        assert!(frames().iter().chain([&Frame::Close]).any(|frame| frame.kind() == *kind), "no frame of kind {kind}");
    }
    for at in 0..=stream.len() {
        let mut decoder = Decoder::default();
        decoder.feed(&stream[..at]);
        let mut seen = drain(&mut decoder);
        decoder.feed(&stream[at..]);
        seen.extend(drain(&mut decoder));
        assert_eq!(seen, expected, "split at {at}");
    }
}

#[test]
fn a_frame_that_is_cut_or_too_long_for_its_fields_is_passed_over() {
    let mut decoder = Decoder::default();
    let mut stream = vec![5, 15, 0, 0, 0];
    stream.extend_from_slice(&[0; 15]);
    stream.extend_from_slice(&[11, 9, 0, 0, 0]);
    stream.extend_from_slice(&[0; 9]);
    stream.extend_from_slice(&[8, 2, 0, 0, 0, b'{', b'x']);
    decoder.feed(&stream);
    for _ in 0..3 {
        assert!(matches!(decoder.next_frame(), Some(Err(WireError::Malformed(_)))));
    }
    assert_eq!(decoder.next_frame(), None);
}

#[test]
fn a_frame_that_is_too_long_is_skipped_and_not_stored() {
    let length = 100 << 20;
    let mut decoder = Decoder::default();
    let mut header = vec![3];
    header.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    decoder.feed(&header);
    assert!(decoder.next_frame().is_none());
    let zeros = vec![0; 1 << 20];
    for _ in 0..100 {
        decoder.feed(&zeros);
        assert!(decoder.next_frame().is_none() && decoder.buffer.capacity() < 1 << 20);
    }
    decoder.feed(&[12, 0, 0, 0, 0]);
    assert_eq!(decoder.next_frame(), Some(Ok(Frame::Close)));
}

#[test]
fn the_largest_fields_still_fit_a_frame_and_a_line() {
    for unit in ["\u{1}", "\"", "x", "\u{10ffff}"] {
        let long = unit.repeat(240 << 10);
        let start = StartRecord {
            card: PublishedCard {
                command: long.clone(),
                dir: long.clone(),
                whoami: long.clone(),
                shell: long.clone(),
                time: long.clone(),
                ..PublishedCard::default()
            },
            exec: vec![long.clone(), long.clone()],
            exec_b64: Some(vec!["A".repeat(190 << 10)]),
            dir_b64: Some("A".repeat(30 << 10)),
            envs: (0..9999).map(|n| (n.to_string(), "\u{1}".repeat(9))).collect(),
            ..StartRecord::default()
        };
        let mut stream = Vec::new();
        encode_start(&start, [], &mut stream);
        assert!(stream.len() < FRAME_BYTES_MAX, "{}", stream.len());
        let mut decoder = Decoder::default();
        decoder.feed(&stream);
        let Some(Ok(Frame::Start { start: fitted, .. })) = decoder.next_frame() else { panic!("no start") };
        assert!(fitted.clipped && fitted.card.command.ends_with('…') && fitted.exec_b64.is_some());
        let left = Straggler { pid: i32::MIN, comm: unit.repeat(99), ports: vec![u16::MAX; 4] };
        let end = RunEnd {
            error: Some(long.clone()),
            left: vec![left; 999],
            unkillable: vec![i32::MIN; 9999],
            gate: Some(GateRecord {
                r#do: long.clone(),
                rule: Some(long.clone()),
                leaf: long.clone(),
                by: long.clone(),
                after_ms: Some(u64::MAX),
            }),
            ..RunEnd::default()
        };
        let end = end.fitted().unwrap();
        let mut record = EndRecord { start: *fitted, end, ..EndRecord::default() };
        record.output.text = "\u{fffd}".repeat(64 << 10);
        let whole = line("end", &record);
        assert!(whole.len() <= LINE_BYTES_MAX, "{}", whole.len());
        record.output.text = "\u{fffd}".repeat(400 << 10);
        assert!(record.line().len() <= LINE_BYTES_MAX);
    }
}

#[test]
fn only_secrets_are_sent_and_any_amount_of_them() {
    let value = "v".repeat(120 << 10);
    let mut environment: Vec<String> = (0..20).map(|n| format!("KEY_{n}={value}")).collect();
    let sent = environment.clone();
    environment.extend(["PATH=/usr/bin:/bin", "SHORT_KEY=1234567", "NOTHING", "PWD=/srv/me/project"].map(String::from));
    environment.push(format!("HUGE_KEY={value}{value}"));
    let mut stream = Vec::new();
    encode_start(&StartRecord::default(), environment.iter().map(String::as_bytes), &mut stream);
    let mut decoder = Decoder::default();
    decoder.feed(&stream);
    let mut received = Vec::new();
    loop {
        match decoder.next_frame() {
            Some(Ok(Frame::Entries { seq: 0, entries })) => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                received.extend(variables(entries).map(|(name, value)| format!("{}={}", text(name), text(value))));
            }
            Some(Ok(Frame::Start { has_entries: true, .. })) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(received == sent && decoder.next_frame().is_none());
    stream.clear();
    encode_start(&StartRecord::default(), [&b"PATH=/usr/bin:/bin"[..]], &mut stream);
    decoder.feed(&stream);
    assert!(matches!(decoder.next_frame(), Some(Ok(Frame::Start { has_entries: false, .. }))));
    stream.clear();
    let all = StartRecord { environment_sent: true, ..StartRecord::default() };
    encode_start(&all, [&b"PATH=/bin"[..], b"NOTHING"], &mut stream);
    decoder.feed(&stream);
    assert_eq!(decoder.next_frame(), Some(Ok(Frame::Entries { seq: 0, entries: b"PATH=/bin\0NOTHING\0" })));
}

#[test]
fn an_ordinary_start_is_not_touched() {
    let mut start = StartRecord {
        card: PublishedCard { command: "x".repeat(131_071), ..PublishedCard::default() },
        ..StartRecord::default()
    };
    start.set_exec([&b"sh"[..], b"-c", &[b'x'; 131_071]].into_iter());
    start.set_dir(b"/tmp");
    assert_eq!((start.fitted(), &start.exec_b64, &start.dir_b64), (None, &None, &None));
    start.set_exec([&b"sh"[..], b"-c", &[0xff; 131_071]].into_iter());
    start.set_dir(b"/tmp/\xe4");
    assert_eq!(start.dir_b64.as_deref(), Some("L3RtcC/k"));
    let fitted = start.fitted().unwrap();
    assert_eq!(fitted.exec_b64, start.exec_b64);
}
