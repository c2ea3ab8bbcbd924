//! Finds the output that shows a secret while somebody types it, so that the journal need not keep it.
//!
//! A terminal shows each key where it comes, or its program draws the line anew at each key. Others may write between. So
//! everything counts that is written from the first key to the line end that follows the last one. What stands behind that
//! and is the whole line again counts, too: a program may show it once more, and others may have ended a line before.
//!
//! Invariants: pure, the time is told; the line is in memory only, and only for a moment behind its end; bytes are only
//! marked, never changed.

use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::memmem;

/// What stands for a secret that was typed, where it is not kept.
pub const TYPED: &str = "⟨typed⟩";
/// How long a line may be shown behind its end. Mostly the line has ended on the screen long before.
const SHOWN_LATE: Duration = Duration::from_secs(2);
/// A terminal takes no longer line.
const LINE_BYTES_MAX: usize = 4 << 10;
/// A shorter line is not looked for behind its end: it may be a part of many words.
const AGAIN_BYTES_MIN: usize = 4;

/// What shows the keys.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ShownBy {
    #[default]
    Terminal,
    /// A program that reads keys. It may draw elsewhere, as readline does on standard error.
    Program,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LineState {
    #[default]
    Nothing,
    /// Keys were typed, and not the last one.
    Open,
    /// The last key was typed. The line is shown until it ends there, or until this time.
    Typed(Instant),
    /// It has ended there. It may be shown once more until this time.
    Shown(Instant),
}

/// The secret line that somebody types for a command.
#[derive(Debug, Default)]
pub struct SecretLine {
    /// What was typed, without what was erased.
    text: Vec<u8>,
    state: LineState,
    shown_by: ShownBy,
}

impl SecretLine {
    /// Somebody typed these keys of a secret. `is_end` says that the last of them ends the line.
    pub fn typed(&mut self, keys: &[u8], is_end: bool, shown_by: ShownBy, now: Instant) {
        if self.state != LineState::Open {
            self.text.clear();
        }
        let kept = if is_end { &keys[..keys.len() - 1] } else { keys };
        kept.iter().for_each(|&key| self.take(key));
        self.shown_by = shown_by;
        self.state = if is_end { LineState::Typed(now + SHOWN_LATE) } else { LineState::Open };
    }

    /// Whoever typed has left.
    pub fn person_left(&mut self, now: Instant) {
        if self.state == LineState::Open {
            self.state = LineState::Typed(now + SHOWN_LATE);
        }
    }

    /// Whether what is not written to the terminal may show the line, too.
    #[must_use]
    pub fn is_shown_elsewhere(&self) -> bool {
        self.shown_by == ShownBy::Program
    }

    /// The parts of this output that show the line, in order.
    pub fn find(&mut self, output: &[u8], now: Instant) -> Vec<Range<usize>> {
        if let LineState::Typed(until) | LineState::Shown(until) = self.state
            && until < now
        {
            *self = Self::default();
        }
        let mut from = match self.state {
            LineState::Nothing => return Vec::new(),
            LineState::Open => output.len(),
            LineState::Typed(until) => match memchr::memchr(b'\n', output) {
                None => output.len(),
                Some(at) => {
                    self.state = LineState::Shown(until);
                    at - usize::from(output[..at].ends_with(b"\r"))
                }
            },
            LineState::Shown(_) => 0,
        };
        let mut parts = Vec::new();
        if from > 0 {
            parts.push(0..from);
        }
        while self.text.len() >= AGAIN_BYTES_MIN
            && let Some(at) = memmem::find(&output[from..], &self.text)
        {
            let end = from + at + self.text.len();
            parts.push(from + at..end);
            from = end;
        }
        parts
    }

    fn take(&mut self, key: u8) {
        let is_blank = |text: &Vec<u8>| text.last().is_some_and(u8::is_ascii_whitespace);
        match key {
            // ^U
            0x15 => self.text.clear(),
            // The last character, with its continuation bytes (UTF-8).
            0x08 | 0x7f => while self.text.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            // ^W
            0x17 => {
                while is_blank(&self.text) {
                    self.text.pop();
                }
                while !self.text.is_empty() && !is_blank(&self.text) {
                    self.text.pop();
                }
            }
            0x20.. if self.text.len() < LINE_BYTES_MAX => self.text.push(key),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output with the secret in it marked.
    fn marked(line: &mut SecretLine, output: &str, now: Instant) -> String {
        let (mut text, mut from) = (String::new(), 0);
        for part in line.find(output.as_bytes(), now) {
            text += &output[from..part.start];
            text += TYPED;
            from = part.end;
        }
        text + &output[from..]
    }

    fn line(keys: &str, now: Instant) -> SecretLine {
        let mut line = SecretLine::default();
        line.typed(keys.as_bytes(), keys.ends_with('\r'), ShownBy::Terminal, now);
        line
    }

    #[test]
    fn what_shows_a_line_is_found_however_it_comes() {
        let now = Instant::now();
        let typed = || line("hunter2\r", now);
        assert_eq!(marked(&mut typed(), "hunter2\r\nread\r\n", now), "⟨typed⟩\r\nread\r\n");
        for at in 1..7 {
            let (first, rest) = "hunter2".split_at(at);
            let mut line = typed();
            let seen = marked(&mut line, first, now) + &marked(&mut line, &format!("{rest}\r\nread"), now);
            assert_eq!(seen, "⟨typed⟩⟨typed⟩\r\nread");
        }
        assert_eq!(
            marked(&mut typed(), "\r\nbuilt\r\nhunter2\r\nread hunter2\r\n", now),
            "\r\nbuilt\r\n⟨typed⟩\r\nread ⟨typed⟩\r\n"
        );
        assert_eq!(marked(&mut line("hun", now), "hu|\r\nbuilt\r\n|n", now), "⟨typed⟩");
        let mut again = line("x\x15hunted two \x17\x7f\x7f\x7fer2\r", now);
        assert_eq!(marked(&mut again, "x\r\nhunter2", now), "⟨typed⟩\r\n⟨typed⟩");
        assert_eq!(marked(&mut SecretLine::default(), "hunter2\r\n", now), "hunter2\r\n");
        assert_eq!(marked(&mut line("abc\r", now), "abc\r\nabcde", now), "⟨typed⟩\r\nabcde");
    }

    #[test]
    fn a_line_that_is_drawn_anew_at_each_key_is_found_up_to_its_end() {
        let now = Instant::now();
        let mut line = SecretLine::default();
        let mut seen = String::new();
        for (at, key) in "tok-7x".bytes().enumerate() {
            line.typed(&[key], false, ShownBy::Program, now);
            seen += &marked(&mut line, &format!("\r\x1b[K> {}", &"tok-7x"[..=at]), now + 9 * SHOWN_LATE);
        }
        line.typed(b"\r", true, ShownBy::Program, now);
        seen += &marked(&mut line, "\r\x1b[K> tok-7x\r\ngot tok-7x\r\n", now);
        assert_eq!(seen, format!("{}\r\ngot ⟨typed⟩\r\n", TYPED.repeat(7)));
        assert_eq!(marked(&mut line, "tok-7x\n", now + 2 * SHOWN_LATE), "tok-7x\n");
    }

    #[test]
    fn a_line_without_an_end_counts_until_its_person_has_left() {
        let now = Instant::now();
        let mut gone = line("gone", now);
        gone.person_left(now);
        assert_eq!(marked(&mut gone, "gone", now) + &marked(&mut gone, "on", now + 2 * SHOWN_LATE), "⟨typed⟩on");
        assert_eq!(
            marked(&mut line("hidden\r", now), "done\r\n", now + 2 * SHOWN_LATE),
            "done\r\n",
            "nothing shows it"
        );
    }
}
