//! When a reader who follows along gets which text, on a scripted clock.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rexec_host::front::output_filter::OutputFilter;
use rexec_host::text::sanitize::{Mode, Sanitizer};

use crate::corpus::run;
use crate::data::{self, sides};
use crate::dice::rounds;
use crate::properties::invent;

const STILL_MS: u64 = 250;
const MODE: Mode = Mode::Collapse { rows: 24, cols: 80 };

/// A stream, its reader's text so far, and a clock that the test moves.
struct Script {
    sanitizer: Sanitizer,
    start: Instant,
    at: u64,
    out: Vec<u8>,
}

impl Script {
    fn new() -> Self {
        let sanitizer = Sanitizer::settling(MODE, Duration::from_millis(STILL_MS));
        Self { sanitizer, start: Instant::now(), at: 0, out: Vec::new() }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.at)
    }

    /// The text that the reader gets for these bytes.
    fn push(&mut self, input: &str) -> String {
        let before = self.out.len();
        self.sanitizer.push_at(input.as_bytes(), self.now(), &mut self.out);
        self.since(before)
    }

    /// The text that the reader gets while `ms` milliseconds pass, from a host that keeps the deadlines.
    fn wait(&mut self, ms: u64) -> String {
        let before = self.out.len();
        let end = self.at + ms;
        let mut wakes = 0;
        while let Some(deadline) = self.sanitizer.deadline() {
            let due = u64::try_from(deadline.duration_since(self.start).as_millis()).unwrap();
            if due > end {
                break;
            }
            self.at = self.at.max(due);
            self.sanitizer.tick(self.now(), &mut self.out);
            wakes += 1;
            assert!(wakes <= 30, "the deadline does not move on");
        }
        self.at = end;
        self.since(before)
    }

    fn finish(&mut self) -> String {
        let before = self.out.len();
        self.sanitizer.finish(&mut self.out);
        self.since(before)
    }

    fn since(&self, before: usize) -> String {
        String::from_utf8(self.out[before..].to_vec()).unwrap()
    }
}

#[test]
fn complete_lines_go_at_once_and_a_partial_one_after_a_while() {
    let mut script = Script::new();
    assert_eq!(script.push("one\ntwo"), "one\n");
    assert_eq!(script.wait(STILL_MS - 1), "");
    assert_eq!(script.wait(1), "two");
    assert_eq!(script.sanitizer.deadline(), None, "nothing to wait for");
    assert_eq!(script.push(" and"), "");
    assert_eq!(script.wait(STILL_MS - 1), "");
    assert_eq!(script.push(" more"), "");
    assert_eq!(script.wait(1), " and more", "counted from the first byte that the reader lacks");
    assert_eq!(script.push(" words"), "");
    assert_eq!(script.wait(STILL_MS - 1), "");
    assert_eq!(script.push(" yet"), "");
    assert_eq!(script.wait(1), " words yet");
    assert_eq!(script.push("\nthree\n"), "\nthree\n");
    assert_eq!(script.sanitizer.deadline(), None);
    assert_eq!(script.push("four"), "");
    assert_eq!(script.finish(), "four");
}

#[test]
fn a_prompt_is_shown_and_its_answer_continues_the_line() {
    let mut script = Script::new();
    script.push("\x1b[1mPassword: \x1b[0m");
    assert_eq!(script.wait(1000), "Password: ");
    assert_eq!(script.push("ok\nwelcome\n"), "ok\nwelcome\n");
    assert_eq!(script.finish(), "");
}

#[test]
fn a_progress_bar_is_its_last_state() {
    let mut script = Script::new();
    for percent in 0..100 {
        let given = script.push(&format!("\rdownloading {percent}%")) + &script.wait(40);
        let state = format!("{}downloading {percent}%", if percent == 49 { "" } else { "\n" });
        let is_due = matches!(percent, 49 | 99);
        assert_eq!(given, if is_due { state } else { String::new() }, "one state in two seconds");
    }
    assert_eq!(script.push("\rdownloading 100%\ndone\n"), "\ndownloading 100%\ndone\n");
    assert_eq!(script.finish(), "");
}

#[test]
fn a_bar_that_pauses_is_appended_again() {
    let mut script = Script::new();
    script.push("10%");
    assert_eq!(script.wait(300), "10%");
    script.push("\r20%");
    assert_eq!(script.wait(8 * STILL_MS - 1), "", "the words are those that the reader has");
    assert_eq!(script.wait(1), "\n20%");
    script.push("\rGo on? ");
    assert_eq!(script.wait(2 * STILL_MS - 1), "");
    assert_eq!(script.wait(1), "\nGo on? ", "other words, with the blank before the cursor");
    script.push("\r\x1b[K20%");
    assert_eq!(script.wait(2 * STILL_MS), "\n20%");
    assert_eq!(script.push("\r20%"), "");
    assert_eq!(script.wait(3000), "", "the same text again is not sent");
    script.push("\r\x1b[K");
    assert_eq!(script.wait(300), "");
    assert_eq!(script.push("done\n"), "\ndone\n");
    assert_eq!(script.finish(), "");
}

#[test]
fn rows_that_are_redrawn_wait_until_they_stand_still() {
    let mut script = Script::new();
    assert_eq!(script.push("* build\n* test\n"), "* build\n* test\n", "no line has ever been redrawn");
    for (at, frame) in "|/-\\|/-\\|/".chars().enumerate() {
        let build = if at < 3 { frame } else { 'v' };
        let given = script.push(&format!("\x1b[2A\x1b[K{build} build\n\x1b[K{frame} test\n"));
        let late = script.wait(80);
        // The first row has its last text from the third frame on, although it is drawn again with each frame.
        assert_eq!(format!("{given}{late}"), if at == 9 { "v build\n" } else { "" }, "frame {at}");
    }
    script.push("\x1b[A\x1b[Kv test\n");
    assert_eq!(script.wait(1000), "v test\n");
    assert_eq!(script.sanitizer.deadline(), None);
    assert_eq!(script.finish(), "");
}

/// Progress bars as different tools draw them: the bytes before and after the text of a state.
const BARS: [(&str, &str); 6] =
    [("\r", ""), ("", "\r"), ("\r\x1b[K", ""), ("\x1b[2K\x1b[1G", ""), ("", "\x1b[1G\x1b[0K"), ("\x1b[A\x1b[2K", "\n")];

/// The most lines of a bar with sixty states, one in so many milliseconds: one line in two seconds, the first, the
/// last and a blank one.
fn bar_lines_max(period: u64) -> usize {
    usize::try_from(60 * period / (8 * STILL_MS)).unwrap() + 3
}

#[test]
fn a_slow_bar_is_one_line_in_two_seconds_at_most() {
    for period in [2000, 1000, 500, 250, 100] {
        for (before, after) in BARS {
            let mut script = Script::new();
            script.push("begin\n\n");
            for n in 0..60 {
                script.push(&format!("{before}state {n} of 60{after}"));
                script.wait(period);
            }
            script.push("\r\x1b[Kend\n");
            script.finish();
            let text = String::from_utf8(script.out).unwrap();
            let lines = text.lines().count() - 2;
            assert!(
                lines <= bar_lines_max(period),
                "{lines} lines at one state in {period} ms, {before:?} {after:?}: {text}"
            );
            assert!(text.ends_with("\nend\n"), "{text}");
        }
    }
}

#[test]
fn several_bars_that_are_erased_and_drawn_again_are_one_line_each_in_two_seconds_at_most() {
    for period in [2000, 1000, 500, 250, 100] {
        for erase in ["\x1b[3A\x1b[J", "\x1b[2K\x1b[A\x1b[2K\x1b[A\x1b[2K\x1b[A\x1b[2K\x1b[G"] {
            let mut script = Script::new();
            script.push("\n\n\n");
            for n in 0..60 {
                script.push(&format!("{erase}a {n}\nthe same\nb {n}\n"));
                script.wait(period);
            }
            script.finish();
            let text = String::from_utf8(script.out).unwrap();
            for name in ["a ", "b "] {
                let lines = text.lines().filter(|line| line.starts_with(name)).count();
                assert!(lines <= bar_lines_max(period), "{lines} lines at one state in {period} ms, {erase:?}: {text}");
            }
            assert_eq!(text.matches("the same").count(), 1, "{text}");
            assert!(text.contains("a 59") && text.contains("b 59"), "{text}");
        }
    }
}

/// A line that the program is about to overwrite, or has overwritten before, must stay unchanged for longer.
#[test]
fn what_stood_still_for_a_moment_before_it_was_erased_costs_nothing() {
    let mut script = Script::new();
    for n in 0..10 {
        script.push(&format!("    Building [      ] {n}/10: crate-{n}{:30}\r", ""));
        assert_eq!(script.wait(1500), "", "the cursor is back at its start");
        assert_eq!(script.push(&format!("\x1b[K   Compiling crate-{n}\n")), format!("   Compiling crate-{n}\n"));
    }
    for frame in ["⠋", "⠙", "⠹"] {
        script.push(&format!("\x1b[2K\x1b[1G{frame} installing"));
        assert_eq!(script.wait(if frame == "⠋" { 80 } else { 450 }), "", "rewritten before it was ever given");
    }
    assert_eq!(script.push("\x1b[2K\x1b[1Gadded 360 packages\n"), "added 360 packages\n");
    assert_eq!(script.finish(), "");
}

/// The backoff is per line.
#[test]
fn a_prompt_below_a_slow_bar_does_not_wait_longer() {
    let mut script = Script::new();
    for n in 0..20 {
        script.push(&format!("\r{n} of 20"));
        script.wait(2000);
    }
    script.push("\ngo on? ");
    assert_eq!(script.wait(STILL_MS), "go on? ");
}

#[test]
fn after_an_upward_move_lines_wait_or_scroll_off() {
    let mut script = Script::new();
    script.push("a\n\x1b[A\x1b[Kb\n");
    assert_eq!(script.push("log\n"), "");
    assert_eq!(script.wait(250), "", "a line waits for those above it");
    assert_eq!(script.wait(250), "b\nlog\n");
    let lines: String = (0..30).map(|n| format!("line {n}\n")).collect();
    let given = script.push(&lines);
    assert_eq!(given, (0..7).map(|n| format!("line {n}\n")).collect::<String>(), "23 rows and the cursor's stay");
    assert_eq!(script.finish(), (7..30).map(|n| format!("line {n}\n")).collect::<String>());
}

#[test]
fn blank_rows_come_with_the_text_below_them() {
    let mut script = Script::new();
    script.push("x\n\x1b[A");
    script.push("\x1b[Kone\n\n\ntwo\n\n");
    assert_eq!(script.wait(500), "one\n\n\ntwo\n");
    script.push("three\n");
    assert_eq!(script.wait(300), "\nthree\n");
    script.push("\n\n");
    assert_eq!(script.wait(300), "");
    assert_eq!(script.finish(), "\n\n");
}

#[test]
fn a_full_screen_program_leaves_only_what_was_before_and_after() {
    let mut script = Script::new();
    assert_eq!(script.push("before\n\x1b[?1049h\x1b[Hmenu"), "before\n");
    assert_eq!(script.wait(1000), "");
    assert_eq!(script.push("\x1b[?1049lafter\n"), "after\n");
    assert_eq!(script.finish(), "");
    assert_eq!(script.sanitizer.withheld_bytes(), 4);
}

#[test]
fn a_full_screen_program_that_was_killed_leaves_its_last_screen() {
    let mut script = Script::new();
    assert_eq!(script.push("\x1b[?1049hone\x1b[?1049l\x1b[?1049htwo"), "");
    assert_eq!(script.finish(), "two");
    assert_eq!(script.sanitizer.withheld_bytes(), 3);
    assert_eq!(script.push("\x1b[?1049hfour\x1b[2J"), "");
    assert_eq!(script.finish(), "");
    assert_eq!(script.sanitizer.withheld_bytes(), 7);
}

/// The text that an agent gets of a stream without pauses, through the host's own treatment.
fn treated(mode: Mode, input: &[u8]) -> Vec<u8> {
    let (mut treatment, now, mut out) = (OutputFilter::new(mode, None), Instant::now(), Vec::new());
    for piece in input.chunks(100) {
        treatment.push(piece, now, &mut out);
    }
    treatment.finish(&mut out);
    out
}

/// Every line that was on the screen or had scrolled off it, after any byte.
fn lines_ever(mode: Mode, input: &[u8]) -> HashSet<Vec<u8>> {
    let (mut sanitizer, mut out, mut ever) = (Sanitizer::new(mode), Vec::new(), HashSet::new());
    for byte in input {
        sanitizer.push(std::slice::from_ref(byte), &mut out);
        if matches!(byte, b'\n' | b'A'..=b'Z' | 0x0B | 0x0C) {
            let mut text = out.clone();
            sanitizer.clone().finish(&mut text);
            ever.extend(text.split(|&byte| byte == b'\n').rev().take(50).map(<[u8]>::to_vec));
        }
    }
    ever
}

#[test]
fn an_agent_gets_the_collapsed_text_of_every_case() {
    let (mut compared, mut equal) = (0, 0);
    for case in data::all() {
        let mode = Mode::Collapse { rows: case.rows, cols: case.cols };
        let given = treated(mode, &case.input);
        compared += 1;
        if given == case.collapse {
            equal += 1;
            continue;
        }
        // Complete lines were appended at once, and again when the program changed them. So the whole text is there,
        // and each extra line was on the screen once.
        let mut extra: HashMap<&[u8], usize> = HashMap::new();
        for line in given.split(|&byte| byte == b'\n') {
            *extra.entry(line).or_default() += 1;
        }
        let unbroken: Vec<u8> = given.iter().copied().filter(|&byte| byte != b'\n').collect();
        for line in case.collapse.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match extra.get_mut(line).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                // A line that wraps may have been appended row by row.
                None if memchr::memmem::find(&unbroken, line).is_some() => {}
                None => panic!("{}: {:?} is missing", case.id, String::from_utf8_lossy(line)),
            }
        }
        let ever = lines_ever(mode, &case.input);
        extra.retain(|line, count| *count > 0 && !line.is_empty());
        for line in extra.keys() {
            let was_there = ever.iter().any(|there| memchr::memmem::find(there, line).is_some());
            assert!(was_there, "{}: {:?} was never there", case.id, String::from_utf8_lossy(line));
        }
        assert!(extra.values().sum::<usize>() < usize::from(case.rows), "{}: {extra:?}", case.id);
    }
    assert_eq!((compared, equal), (596, 469), "all are compared; those that never move up are equal byte for byte");
}

#[test]
fn bytes_of_one_moment_may_be_split_anywhere_and_nothing_is_lost() {
    let seeds = data::all();
    let mut compared = 0;
    let all = rounds(1500, |random| {
        let start = Instant::now();
        let mode = Mode::Collapse { rows: 24, cols: 4000 };
        let wider = Mode::Collapse { rows: 24, cols: 60_000 };
        let mut whole = Sanitizer::settling(mode, Duration::from_millis(STILL_MS));
        let mut split = Sanitizer::settling(mode, Duration::from_millis(STILL_MS));
        let (mut left, mut right, mut all, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut script = Vec::new();
        for _ in 0..random.below(8) {
            let input = [invent(random, &seeds), b"\n".to_vec()].concat();
            let now = start + Duration::from_millis(at);
            whole.push_at(&input, now, &mut left);
            for piece in random.pieces(&input) {
                split.push_at(piece, now, &mut right);
            }
            all.extend_from_slice(&input);
            script.push((at, String::from_utf8_lossy(&input).into_owned()));
            at += [1, 40, 249, 250, 700][random.below(5)];
            if random.below(2) == 0 {
                let now = start + Duration::from_millis(at);
                whole.tick(now, &mut left);
                split.tick(now, &mut right);
            }
        }
        whole.finish(&mut left);
        split.finish(&mut right);
        assert!(left == right, "{script:?} {}", sides(&left, &right));
        let final_text = String::from_utf8(run(mode, [all.as_slice()])).unwrap();
        if final_text.as_bytes() != run(wider, [all.as_slice()]) {
            // A line that wrapped may have been appended row by row.
            return;
        }
        let given = String::from_utf8(left).unwrap();
        for word in final_text.split('\n').filter(|line| line.len() < 2000) {
            assert!(given.contains(word), "{word:?} of {final_text:?} is not in {given:?} from {script:?}");
        }
        compared += 1;
    });
    assert!(compared * 10 > all * 9, "{compared} of {all}");
}
