//! Frames through the decoder, and the largest of them.

use super::*;
use crate::journal::record::{EndRecord, LINE_BYTES_MAX, Straggler, line};

const AT: Duration = Duration::from_micros(1_234_567);

fn drain(decoder: &mut Decoder) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(frame) = decoder.next_frame() {
        seen.push(format!("{frame:?}"));
    }
    seen
}

#[test]
fn any_split_gives_the_same_frames() {
    let mut stream = Vec::new();
    let start = StartRecord { seq: 7, command: "ls".into(), ..StartRecord::default() };
    encode_start(&start, [], &mut stream);
    encode_output(7, 2, AT, b"a\x00\xff", &mut stream);
    encode_output(7, 2, AT, b"", &mut stream);
    encode_resized(7, AT, (24, 80), &mut stream);
    stream.extend_from_slice(&[99, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'h', b'i']);
    encode_end(&RunEnd { seq: 7, exit: 3, ..RunEnd::default() }, &mut stream);
    encode_close(&mut stream);

    let mut whole = Decoder::default();
    whole.feed(&stream);
    let expected = drain(&mut whole);
    assert_eq!(expected.len(), 5, "all but the one of an unknown kind");
    assert_eq!(expected[1], format!("{:?}", Frame::Output { seq: 7, stream: 2, at: AT, bytes: b"a\x00\xff" }));
    assert_eq!(expected[2], format!("{:?}", Frame::Resized { seq: 7, at: AT, window: (24, 80) }));
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
fn a_frame_that_is_too_long_is_skipped_and_not_stored() {
    let length = 100 << 20;
    let mut decoder = Decoder::default();
    let mut header = vec![OUTPUT, 1, 0, 0, 0, 0, 0, 0, 0];
    header.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    decoder.feed(&header);
    assert!(decoder.next_frame().is_none());
    let zeros = vec![0; 1 << 20];
    for _ in 0..100 {
        decoder.feed(&zeros);
        assert!(decoder.next_frame().is_none() && decoder.buffer.capacity() < 1 << 20);
    }
    let mut close = Vec::new();
    encode_close(&mut close);
    decoder.feed(&close);
    assert_eq!(decoder.next_frame(), Some(Frame::Close));
}

#[test]
fn the_largest_fields_still_fit_a_frame_and_a_line() {
    for unit in ["\u{1}", "\"", "x", "\u{10ffff}"] {
        let long = unit.repeat(240 << 10);
        let start = StartRecord {
            command: long.clone(),
            exec: vec![long.clone(), long.clone()],
            exec_b64: Some(vec!["A".repeat(190 << 10)]),
            dir: long.clone(),
            whoami: long.clone(),
            shell: long.clone(),
            time: long.clone(),
            dir_b64: Some("A".repeat(30 << 10)),
            envs: (0..9999).map(|n| (n.to_string(), "\u{1}".repeat(9))).collect(),
            ..StartRecord::default()
        };
        let mut stream = Vec::new();
        encode_start(&start, [], &mut stream);
        assert!(stream.len() < FRAME_BYTES_MAX, "{}", stream.len());
        let mut decoder = Decoder::default();
        decoder.feed(&stream);
        let Some(Frame::Start { start: fitted, .. }) = decoder.next_frame() else { panic!("no start") };
        assert!(fitted.clipped && fitted.command.ends_with('…') && fitted.exec_b64.is_some());
        let left = Straggler { pid: i32::MIN, comm: unit.repeat(99), ports: vec![u16::MAX; 4] };
        let end = RunEnd {
            error: Some(long.clone()),
            left: vec![left; 999],
            unkillable: vec![i32::MIN; 9999],
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
            Some(Frame::Secrets { seq: 0, entries }) => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                received.extend(secrets(entries).map(|(name, value)| format!("{}={}", text(name), text(value))));
            }
            Some(Frame::Start { has_secrets: true, .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(received == sent && decoder.next_frame().is_none());
    stream.clear();
    encode_start(&StartRecord::default(), [&b"PATH=/usr/bin:/bin"[..]], &mut stream);
    decoder.feed(&stream);
    assert!(matches!(decoder.next_frame(), Some(Frame::Start { has_secrets: false, .. })));
}

#[test]
fn an_ordinary_start_is_not_touched() {
    let mut start = StartRecord { command: "x".repeat(131_071), ..StartRecord::default() };
    start.set_exec([&b"sh"[..], b"-c", &[b'x'; 131_071]].into_iter());
    start.set_dir(b"/tmp");
    assert_eq!((start.fitted(), &start.exec_b64, &start.dir_b64), (None, &None, &None));
    start.set_exec([&b"sh"[..], b"-c", &[0xff; 131_071]].into_iter());
    start.set_dir(b"/tmp/\xe4");
    assert_eq!(start.dir_b64.as_deref(), Some("L3RtcC/k"));
    let fitted = start.fitted().unwrap();
    assert_eq!(fitted.exec_b64, start.exec_b64);
}
