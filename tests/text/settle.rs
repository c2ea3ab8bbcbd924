//! When a reader who follows along is given what, on a scripted clock.

use std::time::{Duration, Instant};

use rexec_host::text::sanitize::Mode;
use rexec_host::text::settle::Settle;

use crate::corpus::run;
use crate::data::{self, sides};
use crate::dice::rounds;
use crate::properties::invent;

const STILL_MS: u64 = 250;
const MODE: Mode = Mode::Collapse { rows: 24, cols: 80 };

/// A stream, its reader's text so far, and a clock that stands still by itself.
struct Script {
    settle: Settle,
    start: Instant,
    at: u64,
    out: Vec<u8>,
}

impl Script {
    fn new() -> Self {
        let settle = Settle::new(MODE, Duration::from_millis(STILL_MS));
        Self { settle, start: Instant::now(), at: 0, out: Vec::new() }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.at)
    }

    /// What the reader is given for these bytes.
    fn push(&mut self, input: &str) -> String {
        let before = self.out.len();
        self.settle.push(input.as_bytes(), self.now(), &mut self.out);
        self.since(before)
    }

    /// What the reader is given while so many milliseconds pass, with a host that keeps the deadlines.
    fn wait(&mut self, ms: u64) -> String {
        let before = self.out.len();
        let end = self.at + ms;
        let mut wakes = 0;
        while let Some(deadline) = self.settle.deadline() {
            let due = u64::try_from(deadline.duration_since(self.start).as_millis()).unwrap();
            if due > end {
                break;
            }
            self.at = self.at.max(due);
            self.settle.tick(self.now(), &mut self.out);
            wakes += 1;
            assert!(wakes <= 30, "the deadline does not move on");
        }
        self.at = end;
        self.since(before)
    }

    fn finish(&mut self) -> String {
        let before = self.out.len();
        self.settle.finish(&mut self.out);
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
    assert_eq!(script.settle.deadline(), None, "nothing to wait for");
    assert_eq!(script.push(" and more"), "");
    assert_eq!(script.wait(STILL_MS), " and more");
    assert_eq!(script.push("\nthree\n"), "\nthree\n");
    assert_eq!(script.settle.deadline(), None);
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
        assert_eq!(script.push(&format!("\rdownloading {percent}%")), "");
        assert_eq!(script.wait(40), "");
    }
    assert_eq!(script.push("\rdownloading 100%\ndone\n"), "downloading 100%\ndone\n");
    assert_eq!(script.finish(), "");
}

#[test]
fn a_bar_that_pauses_is_given_and_given_again() {
    let mut script = Script::new();
    script.push("10%");
    assert_eq!(script.wait(300), "10%");
    script.push("\r20%");
    assert_eq!(script.wait(300), "\n20%");
    assert_eq!(script.push("\r20%"), "");
    assert_eq!(script.wait(300), "", "the same text again is no news");
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
        // The first row is done after the third frame, and stands still although it is drawn again and again.
        assert_eq!(format!("{given}{late}"), if at == 6 { "v build\n" } else { "" }, "frame {at}");
    }
    script.push("\x1b[A\x1b[Kv test\n");
    assert_eq!(script.wait(1000), "v test\n");
    assert_eq!(script.settle.deadline(), None);
    assert_eq!(script.finish(), "");
}

#[test]
fn after_an_upward_move_lines_wait_or_scroll_off() {
    let mut script = Script::new();
    script.push("a\n\x1b[A\x1b[Kb\n");
    assert_eq!(script.push("log\n"), "");
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
    assert_eq!(script.wait(300), "one\n\n\ntwo\n");
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
    assert!(script.settle.is_full_screen());
    assert_eq!(script.wait(1000), "");
    assert_eq!(script.push("\x1b[?1049lafter\n"), "after\n");
    assert_eq!(script.finish(), "");
    assert_eq!(script.settle.stats().alt_screen_bytes, 4);
}

#[test]
fn a_full_screen_program_that_was_killed_leaves_its_last_screen() {
    let mut script = Script::new();
    assert_eq!(script.push("\x1b[?1049hone\x1b[?1049l\x1b[?1049htwo"), "");
    assert_eq!(script.finish(), "two");
    assert_eq!(script.settle.stats().alt_screen_bytes, 3);
    assert_eq!(script.push("\x1b[?1049hfour\x1b[2J"), "");
    assert_eq!(script.finish(), "");
    assert_eq!(script.settle.stats().alt_screen_bytes, 7);
}

#[test]
fn without_pauses_and_upward_moves_it_is_the_collapsed_text() {
    for case in data::all() {
        let mode = Mode::Collapse { rows: case.rows, cols: case.cols };
        let mut settle = Settle::new(mode, Duration::from_millis(STILL_MS));
        let (now, mut out) = (Instant::now(), Vec::new());
        for piece in case.input.chunks(100) {
            settle.push(piece, now, &mut out);
        }
        settle.finish(&mut out);
        let moves_up = case.input.windows(2).any(|pair| pair[0] == 0x1b && pair[1] != b'[')
            || case.input.split(|&b| b == 0x1b).skip(1).any(|part| {
                let last = part.iter().skip(1).find(|b| (0x40..=0x7e).contains(*b));
                !matches!(last, Some(b'm' | b'K' | b'C' | b'D' | b'G' | b'P' | b'X' | b'@'))
            });
        if !moves_up {
            assert!(out == case.collapse, "{}: {}", case.id, sides(&out, &case.collapse));
        }
    }
}

#[test]
fn bytes_of_one_instant_may_be_split_anyhow_and_nothing_is_lost() {
    let seeds = data::all();
    rounds(1500, |random| {
        let start = Instant::now();
        let mode = Mode::Collapse { rows: 24, cols: 4000 };
        let wider = Mode::Collapse { rows: 24, cols: 60_000 };
        let mut whole = Settle::new(mode, Duration::from_millis(STILL_MS));
        let mut split = Settle::new(mode, Duration::from_millis(STILL_MS));
        let (mut left, mut right, mut all, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut script = Vec::new();
        for _ in 0..random.below(8) {
            let input = [invent(random, &seeds), b"\n".to_vec()].concat();
            let now = start + Duration::from_millis(at);
            whole.push(&input, now, &mut left);
            for piece in random.pieces(&input) {
                split.push(piece, now, &mut right);
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
            // A line that wrapped may have been given row by row.
            return;
        }
        let given = String::from_utf8(left).unwrap();
        for word in final_text.split('\n').filter(|line| line.len() < 2000) {
            assert!(given.contains(word), "{word:?} of {final_text:?} is not in {given:?} from {script:?}");
        }
    });
}
