//! Trims a caller's copy of long output to its budget: the beginning and the end, and between them one line about the
//! left-out part and the command that prints it.
//!
//! Invariants: output within the budget passes unchanged; memory is bounded by the budget; the left-out part is counted
//! exactly, in bytes and in line ends; the shown parts begin and end at lines, unless a line is longer than its part.

use std::collections::VecDeque;

use memchr::{memchr, memchr_iter, memrchr};

use crate::text::count::{self, grouped};
use crate::text::whole::without_torn_end;

/// The most lines that the command in the note prints.
const LINES_NAMED: u64 = 400;

/// The part of the budget for the beginning, in fifths.
const HEAD_FIFTHS: usize = 3;

#[derive(Debug)]
pub struct Trimmer {
    /// The command that prints the rest, as `rexec out 44`. Empty if the journal does not have it.
    handle: String,
    /// The bytes that may still be kept.
    room: usize,
    /// The part of those bytes for the beginning.
    head: usize,
    /// The beginning is complete.
    has_head: bool,
    /// The number of lines that have ended in the beginning.
    lines: u64,
    /// True if nothing has passed yet, or the last byte ended a line.
    is_line_start: bool,
    tail: VecDeque<u8>,
    left_bytes: u64,
    left_lines: u64,
    /// True if the last left-out byte ended a line.
    left_ends_line: bool,
}

impl Trimmer {
    #[must_use]
    pub fn new(budget: usize, handle: String) -> Self {
        Self {
            handle,
            room: budget,
            head: budget / 5 * HEAD_FIFTHS,
            has_head: false,
            lines: 0,
            is_line_start: true,
            tail: VecDeque::new(),
            left_bytes: 0,
            left_lines: 0,
            left_ends_line: false,
        }
    }

    /// Takes output, and appends the part that belongs to the beginning.
    pub fn push(&mut self, output: &[u8], out: &mut Vec<u8>) {
        let mut rest = output;
        if !self.has_head {
            let fit = &output[..output.len().min(self.head)];
            self.has_head = fit.len() < output.len();
            let length = match memrchr(b'\n', fit) {
                _ if !self.has_head => fit.len(),
                Some(end) => end + 1,
                // A begun line is cut at the limit.
                None if self.is_line_start && self.lines > 0 => 0,
                None => without_torn_end(fit).len(),
            };
            let (passed, behind) = output.split_at(length);
            out.extend_from_slice(passed);
            rest = behind;
            self.lines += ends(passed);
            self.is_line_start = passed.last().map_or(self.is_line_start, |&last| last == b'\n');
            (self.head, self.room) = (self.head - length, self.room - length);
        }
        self.keep(rest);
    }

    /// Keeps the end of the output.
    fn keep(&mut self, output: &[u8]) {
        let excess = (self.tail.len() + output.len()).saturating_sub(self.room);
        let old = excess.min(self.tail.len());
        self.leave(old);
        let (left, kept) = output.split_at(excess - old);
        self.count(left);
        self.tail.extend(kept);
    }

    /// Leaves out the first of the kept bytes.
    fn leave(&mut self, length: usize) {
        let left: Vec<u8> = self.tail.drain(..length).collect();
        self.count(&left);
    }

    fn count(&mut self, left: &[u8]) {
        self.left_bytes += left.len() as u64;
        self.left_lines += ends(left);
        self.left_ends_line = left.last().map_or(self.left_ends_line, |&last| last == b'\n');
    }

    /// Appends the end of the output, after a line about the left-out part.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.left_bytes > 0 {
            self.cut_to_line();
            if !self.is_line_start {
                out.push(b'\n');
            }
            out.extend_from_slice(self.words().as_bytes());
        }
        out.extend(self.tail.drain(..));
    }

    /// Leaves out the rest of a line or character whose beginning is left out.
    fn cut_to_line(&mut self) {
        if self.left_ends_line {
            return;
        }
        let tail = self.tail.make_contiguous();
        let length = match memchr(b'\n', tail) {
            Some(end) if end + 1 < tail.len() => end + 1,
            _ => tail.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count(),
        };
        self.leave(length);
    }

    fn words(&self) -> String {
        let (bytes, from) = (count::size(self.left_bytes), self.lines + 1);
        let what = match self.left_lines {
            0 => bytes,
            1 => format!("1 line ({bytes})"),
            lines => format!("{} lines ({bytes})", grouped(lines)),
        };
        let to = from + self.left_lines.clamp(1, LINES_NAMED) - 1;
        match self.handle.as_str() {
            "" => format!("… rexec: {what} left out …\n"),
            handle => format!("… rexec: {what} left out; {handle} --lines {from}:{to} | --grep TEXT …\n"),
        }
    }
}

fn ends(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trimmed(budget: usize, output: &[u8], piece: usize) -> String {
        let (mut trimmer, mut out) = (Trimmer::new(budget, "rexec out 7".to_owned()), Vec::new());
        for piece in output.chunks(piece) {
            trimmer.push(piece, &mut out);
            assert!(trimmer.tail.len() <= budget && out.len() <= budget);
        }
        trimmer.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn output_within_the_budget_is_unchanged() {
        let text: Vec<u8> = (0..100).map(|n| if n % 7 == 6 { b'\n' } else { b'x' }).collect();
        for length in 0..=100 {
            for piece in [1, 3, 100] {
                assert_eq!(trimmed(100, &text[..length], piece).as_bytes(), &text[..length]);
            }
        }
    }

    #[test]
    fn both_ends_are_whole_lines_and_the_rest_is_counted() {
        let text: String = (1..=1000).map(|n| format!("line {n:04}\n")).collect();
        for piece in [1, 7, 10, 64, 10_000] {
            let seen = trimmed(100, text.as_bytes(), piece);
            let head: String = (1..=6).map(|n| format!("line {n:04}\n")).collect();
            let tail: String = (997..=1000).map(|n| format!("line {n:04}\n")).collect();
            let words = "… rexec: 990 lines (9.9 kB) left out; rexec out 7 --lines 7:406 | --grep TEXT …\n";
            assert_eq!(seen, format!("{head}{words}{tail}"), "{piece}");
        }
    }

    #[test]
    fn lines_longer_than_the_budget_are_cut_between_characters() {
        let line = "é".repeat(500);
        for piece in [1, 2, 3, 1000] {
            let seen = trimmed(101, line.as_bytes(), piece);
            let (head, rest) = seen.split_once("\n… rexec: ").unwrap();
            let (words, tail) = rest.split_once('\n').unwrap();
            assert!(head.chars().chain(tail.chars()).all(|c| c == 'é'), "{seen}");
            let left = 1000 - head.len() - tail.len();
            assert_eq!(words, format!("{left} bytes left out; rexec out 7 --lines 1:1 | --grep TEXT …"));
            assert!(head.len() >= 58 && tail.len() >= 38, "{seen}");
        }
    }

    /// What is shown and what is counted is what was written.
    #[test]
    fn nothing_is_lost_without_being_counted() {
        let text: Vec<u8> = (0..3000_usize).map(|n| if n * n % 31 == 4 { b'\n' } else { b'a' }).collect();
        for length in (0..3000).step_by(17) {
            for budget in [50, 333, 1024] {
                let mut out = Vec::new();
                let mut trimmer = Trimmer::new(budget, String::new());
                text[..length].chunks(11).for_each(|piece| trimmer.push(piece, &mut out));
                let head = out.len();
                assert_eq!(&text[..head], out);
                trimmer.finish(&mut out);
                let left = usize::try_from(trimmer.left_bytes).unwrap();
                let tail = &text[head + left..length];
                assert!(out.ends_with(tail));
                let all = ends(&text[..length]);
                assert_eq!(trimmer.lines + trimmer.left_lines + ends(tail), all);
                assert!(head + tail.len() <= budget || left == 0);
            }
        }
    }
}
