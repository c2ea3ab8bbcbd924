//! The recorder's frames: cutting the stream elsewhere changes nothing, and the journal has whole lines whatever comes.

use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rexec_host::journal::frame::{Decoder, FRAME_BYTES_MAX, Frame, encode_end, encode_output, encode_start};
use rexec_host::journal::record::{PublishedCard, RunEnd, StartRecord};
use rexec_host::recorder::{Bounds, Session, serve};

use super::mutation::mutated;
use crate::support::dice::{Dice, rounds};
use crate::support::journal::Journal;
use crate::support::temp::TempDir;
use crate::support::waiting;

fn stream(dice: &mut Dice) -> Vec<u8> {
    let mut stream = Vec::new();
    for seq in 0..1 + dice.below(5) as u64 {
        let start = StartRecord {
            card: PublishedCard { seq, command: "a command".into(), ..PublishedCard::default() },
            exec: vec!["sh".into()],
            ..StartRecord::default()
        };
        match dice.below(2) {
            0 => encode_start(&start, [], &mut stream),
            _ => encode_start(&start, [&b"API_KEY=0123456789abcdef"[..], b"PATH=/bin"], &mut stream),
        }
        for _ in 0..dice.below(4) {
            let count = dice.below(200);
            encode_output(seq, 0, Duration::ZERO, &dice.bytes(count, 0, 255), &mut stream);
        }
        if dice.below(60) == 0 {
            // A frame that is too long, with all its bytes: the frames behind it count again.
            let length = FRAME_BYTES_MAX + 1 + dice.below(1000);
            stream.push(3);
            stream.extend_from_slice(&u32::try_from(length).expect("small").to_le_bytes());
            stream.resize(stream.len() + length, b'x');
        }
        if dice.below(3) > 0 {
            encode_end(RunEnd { seq, exit: 3, ..RunEnd::default() }, &mut stream);
        }
    }
    if dice.below(2) == 0 {
        Frame::Close.encode(&mut stream);
    }
    stream
}

fn frames(pieces: &[&[u8]]) -> Vec<String> {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for piece in pieces {
        decoder.feed(piece);
        while let Some(frame) = decoder.next_frame() {
            frames.push(format!("{frame:?}"));
        }
    }
    frames
}

#[test]
fn frames_are_the_same_however_the_stream_is_cut() {
    rounds(waiting::size(1_200, 25_000) as u64, |dice| {
        let stream = stream(dice);
        let stream = mutated(dice, &stream);
        assert_eq!(frames(&dice.pieces(&stream)), frames(&[&stream]), "{}", stream.escape_ascii());
    });
}

#[test]
fn a_journal_has_whole_lines_whatever_the_recorder_gets() {
    let uid = nix::unistd::geteuid().as_raw();
    rounds(waiting::size(90, 750) as u64, |dice| {
        let home = TempDir::new(None);
        let session = Session::new(home.path(), uid, std::process::id());
        session.prepare().expect("a directory of our own");
        let (mut near, far) = UnixStream::pair().expect("a pair of sockets");
        let recorder = std::thread::spawn(move || serve(session, far, Bounds::default()));
        let stream = stream(dice);
        let stream = mutated(dice, &stream);
        for piece in dice.pieces(&stream) {
            near.write_all(piece).expect("the recorder takes everything");
        }
        near.shutdown(Shutdown::Write).expect("a socket");
        recorder.join().expect("no recorder panics");
        let journal = Journal::read(home.path());
        assert!(journal.bad.is_empty(), "{:?} of {}", journal.bad, stream.escape_ascii());
        // The recorder believes every frame, but no run ends twice.
        let ends = journal.of_type("end").count();
        assert!(ends <= journal.of_type("start").count(), "{:#?}", journal.records);
        let secrets = fs::read_dir(home.path()).expect("the directory").flatten();
        let mut texts = secrets.filter_map(|entry| fs::read(entry.path()).ok());
        assert!(texts.all(|text| memchr::memmem::find(&text, b"0123456789abcdef").is_none()), "a secret was written");
    });
}
