//! Output with its times as lines of a recording's file.

use super::super::bounds::Bounds;
use super::super::home::JournalHome;
use super::super::output_directory::OutputDirectory;
use super::*;
use crate::journal::recording::parse_event;
use std::path::PathBuf;

const MS: Duration = Duration::from_millis(1);

struct Scratch(PathBuf, OutputFiles);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let home = std::env::temp_dir().join(format!("rexec-timed-{}-{name}", std::process::id()));
        let place = JournalHome::of_test(&home);
        let files = OutputFiles::new(OutputDirectory::new(place, "2026-05-21-09:42:18", &Bounds::default()));
        Scratch(home, files)
    }

    /// Ends the recording. Returns its events, and what the record says.
    fn finish(&mut self, timed: TimedOutput) -> (Vec<(u128, &'static str, String)>, RecordedOutput) {
        let mut output = RecordedOutput::default();
        timed.finish(&mut self.1, &mut output);
        let all = output.recording.as_ref().map(|name| std::fs::read(self.0.join(name)).unwrap()).unwrap_or_default();
        let (from, to) = output.recording_at.unwrap_or_default();
        let part = &all[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()];
        let lines = part.split_inclusive(|&byte| byte == b'\n');
        let events = lines.map(|line| parse_event(line).unwrap());
        (events.map(|event| (event.at.as_millis(), event.kind.word(), event.text)).collect(), output)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn event(at: u128, kind: &'static str, text: &str) -> (u128, &'static str, String) {
    (at, kind, text.to_owned())
}

#[test]
fn output_becomes_events_with_the_times_at_which_it_came() {
    let mut scratch = Scratch::new("times");
    let mut timed = TimedOutput::new(7, 1000, (48, 160), false);
    for (at, text) in [(3, "one\n"), (5, "two\n"), (40, "three"), (900, "\r\nfour\r"), (950, "\nfive")] {
        timed.push(text.as_bytes(), at * MS);
    }
    timed.resize((24, 80), 960 * MS);
    let (events, output) = scratch.finish(timed);
    assert_eq!(
        events,
        [
            event(0, "r", "160x48"),
            event(3, "o", "one\r\ntwo\r\n"),
            event(40, "o", "three"),
            event(900, "o", "\r\nfour\r"),
            event(950, "o", "\nfive"),
            event(960, "r", "80x24"),
        ]
    );
    assert_eq!((output.recording_omitted, output.recording_error), (None, None));
}

#[test]
fn characters_and_escape_sequences_stay_whole_and_have_the_time_of_their_last_byte() {
    let mut scratch = Scratch::new("whole");
    let mut timed = TimedOutput::new(7, 1000, (48, 160), true);
    for (at, bytes) in [(0, b"a\x1b[3".as_slice()), (100, b"1mred\xe6"), (200, b"\x97"), (300, b"\xa5\n\xe6\x97")] {
        timed.push(bytes, at * MS);
    }
    let (events, _) = scratch.finish(timed);
    let expected =
        [event(0, "r", "160x48"), event(0, "o", "a"), event(100, "o", "\x1b[31mred"), event(300, "o", "日\n\u{fffd}")];
    assert_eq!(events, expected);
}

#[test]
fn a_recording_ends_at_its_cap_and_says_how_much_more_there_was() {
    let mut scratch = Scratch::new("cap");
    let mut timed = TimedOutput::new(7, 10, (48, 160), false);
    timed.push(&[b'x'; 8], MS);
    timed.push(&[b'y'; 8], 50 * MS);
    timed.push(&[b'z'; 8], 90 * MS);
    let (events, output) = scratch.finish(timed);
    assert_eq!(output.recording_omitted, Some(14));
    assert_eq!(events[1..3], [event(1, "o", "xxxxxxxx"), event(50, "o", "yy")]);
    assert_eq!(events[3], event(90, "m", "rexec: 14 bytes more are not recorded"));
    let mut none = TimedOutput::new(8, 0, (48, 160), false);
    none.push(b"text", MS);
    none.lose(5);
    assert_eq!(scratch.finish(none), (Vec::new(), RecordedOutput::default()));
}

#[test]
fn runs_share_a_file_and_each_has_its_part() {
    let mut scratch = Scratch::new("parts");
    let mut runs: Vec<TimedOutput> = (0..3).map(|seq| TimedOutput::new(seq, 1000, (48, 160), false)).collect();
    for round in 0..4_u32 {
        for run in &mut runs {
            run.push(b"text\n", round * 100 * MS);
            run.flush(true, &mut scratch.1);
        }
    }
    let mut named = std::collections::BTreeSet::new();
    for (seq, run) in runs.into_iter().enumerate() {
        let mut output = RecordedOutput::default();
        run.finish(&mut scratch.1, &mut output);
        let name = output.recording.unwrap();
        let all = std::fs::read_to_string(scratch.0.join(&name)).unwrap();
        let (from, to) = output.recording_at.unwrap();
        let part = &all[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()];
        assert_eq!(part.lines().filter(|line| line.starts_with(&format!("[{seq},"))).count(), 5);
        assert_eq!(all.lines().filter(|line| line.starts_with(&format!("[{seq},"))).count(), 5);
        named.insert(name);
    }
    assert_eq!(named.len(), 1);
}

/// They take another way.
#[test]
fn short_lines_are_recorded_like_long_ones() {
    let mut scratch = Scratch::new("short");
    let record = |scratch: &mut Scratch, pieces: &[&[u8]]| {
        let mut timed = TimedOutput::new(7, 1 << 20, (48, 160), false);
        pieces.iter().for_each(|piece| timed.push(piece, MS));
        scratch.finish(timed).0.into_iter().map(|(_, _, text)| text).collect::<String>()
    };
    let short: [&[u8]; 4] = [b"y\ny\r", b"\n\n", b"y\r\n\ry\n", b"\n"];
    assert_eq!(record(&mut scratch, &short), "160x48y\r\ny\r\n\r\ny\r\n\ry\r\n\r\n");
    let long = [format!("{}\n", "y".repeat(40)), format!("{}\r\n", "z".repeat(40))].concat();
    let expected = format!("160x48{}\r\n{}\r\n", "y".repeat(40), "z".repeat(40));
    assert_eq!(record(&mut scratch, &[long.as_bytes()]), expected);
}
