//! Finds the output that shows a secret while somebody types it, so that the journal need not keep it.
//!
//! A terminal shows each key where it comes, or its program draws the line anew at each key. Others may write between,
//! and end lines. So all output counts, from the first key to the line end after the last one that shows the rest of
//! the line. A later copy of the whole line counts, too: a program may show it once more.
//!
//! Invariants: pure, the caller passes the time; the line is in memory only, and only for a moment after its end; bytes
//! are only marked, never changed.

use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::memmem;

/// The text that replaces a typed secret where it is not kept.
pub const TYPED: &str = "⟨typed⟩";
/// The time after its end in which a line may be shown. Mostly the line has ended on the screen long before.
const SHOWN_LATE: Duration = Duration::from_secs(2);
/// A terminal takes no longer line.
const LINE_BYTES_MAX: usize = 4 << 10;
/// The beginning of a written line that is searched for a part of the typed one.
const HEAD_BYTES: usize = 256;
/// A shorter line is not searched for after its end: it may be a part of many words.
const AGAIN_BYTES_MIN: usize = 4;
/// A shorter beginning of a line is not marked at the end of output, where the rest may follow.
const BEGINNING_BYTES_MIN: usize = 2;

/// The writer that shows the keys.
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
    /// The line has ended there. It may be shown once more until this time.
    Shown(Instant),
}

/// The secret line that somebody types for a command.
#[derive(Debug, Default)]
pub struct SecretLine {
    /// The typed text, without erased characters.
    text: Vec<u8>,
    /// The bytes that a terminal writes for the same keys.
    echo: Vec<u8>,
    state: LineState,
    shown_by: ShownBy,
    written: Written,
    /// The number of first bytes of the text with which the last output ended, in which a later copy was searched for.
    begun_again: usize,
}

/// The line that is being written while somebody types, and how much of the typed one stood in the lines before it.
#[derive(Debug, Default)]
struct Written {
    /// Its first bytes.
    head: Vec<u8>,
    /// Its last ones, as many as a terminal takes.
    tail: Vec<u8>,
    /// The number of first bytes of the typed line that have been shown at least, one part after the other.
    shown: usize,
}

impl Written {
    fn push(&mut self, output: &[u8]) {
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&output[..output.len().min(room)]);
        self.tail.extend_from_slice(&output[output.len().saturating_sub(LINE_BYTES_MAX)..]);
        if self.tail.len() > 2 * LINE_BYTES_MAX {
            self.tail.drain(..self.tail.len() - LINE_BYTES_MAX);
        }
    }

    /// Ends the line. Returns true if it completes the showing of `echo`.
    ///
    /// A writer that breaks into it writes whole lines, so a further part of it begins a line, and the last part ends
    /// one.
    fn ends(&mut self, echo: &[u8]) -> bool {
        let tail = self.tail.strip_suffix(b"\r").unwrap_or(&self.tail);
        let last = common(tail.iter().rev(), echo.iter().rev());
        self.shown = self.begun(echo);
        let is_last = last > 0 && echo.len() - last <= self.shown;
        self.head.clear();
        self.tail.clear();
        is_last || self.shown == echo.len()
    }

    /// The number of first bytes of `echo` shown by now, with the beginning of this line.
    fn begun(&self, echo: &[u8]) -> usize {
        let ends = (0..=self.shown.min(echo.len())).map(|from| from + common(self.head.iter(), echo[from..].iter()));
        ends.max().unwrap_or(0)
    }
}

/// The length of the common beginning.
fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

impl SecretLine {
    /// Takes keys of a secret. `is_end`: the last of them ends the line.
    pub fn typed(&mut self, keys: &[u8], is_end: bool, shown_by: ShownBy, now: Instant) {
        if self.state != LineState::Open {
            *self = Self::default();
        }
        let kept = if is_end { &keys[..keys.len() - 1] } else { keys };
        kept.iter().for_each(|&key| self.take(key));
        self.shown_by = shown_by;
        self.state = if is_end { LineState::Typed(now + SHOWN_LATE) } else { LineState::Open };
    }

    /// Ends the line, because the typist has left.
    pub fn person_left(&mut self, now: Instant) {
        if self.state == LineState::Open {
            self.state = LineState::Typed(now + SHOWN_LATE);
        }
    }

    /// Returns true if output to other places than the terminal may show the line, too.
    #[must_use]
    pub fn is_shown_elsewhere(&self) -> bool {
        self.shown_by == ShownBy::Program
    }

    /// Finds the parts of this output that show the line, in order.
    pub fn find(&mut self, output: &[u8], now: Instant) -> Vec<Range<usize>> {
        if let LineState::Typed(until) | LineState::Shown(until) = self.state
            && until < now
        {
            *self = Self::default();
        }
        let mut from = match self.state {
            LineState::Nothing => return Vec::new(),
            LineState::Open => {
                self.end(output);
                output.len()
            }
            LineState::Typed(until) => match self.end(output) {
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
        let begun = std::mem::take(&mut self.begun_again);
        if self.text.len() < AGAIN_BYTES_MIN {
            return parts;
        }
        if from == 0
            && let Some(end) = self.rest_of_copy(begun, output)
        {
            parts.push(0..end);
            from = end;
        }
        while let Some(at) = memmem::find(&output[from..], &self.text) {
            let end = from + at + self.text.len();
            parts.push(from + at..end);
            from = end;
        }
        let most = (output.len() - from).min(self.text.len() - 1);
        self.begun_again = (1..=most).rev().find(|&bytes| output.ends_with(&self.text[..bytes])).unwrap_or(0);
        if self.begun_again >= BEGINNING_BYTES_MIN {
            parts.push(output.len() - self.begun_again..output.len());
        }
        parts
    }

    /// Where a copy ends in this output of which the last one had the first bytes.
    fn rest_of_copy(&self, begun: usize, output: &[u8]) -> Option<usize> {
        let rest = output.len().min(self.text.len() - 1);
        let joined = [&self.text[..begun], &output[..rest]].concat();
        let end = memmem::find(&joined, &self.text)? + self.text.len();
        end.checked_sub(begun).filter(|&end| end > 0)
    }

    /// Takes written output. Returns the place of the line end after which nothing more of the typed line comes.
    fn end(&mut self, output: &[u8]) -> Option<usize> {
        let mut from = 0;
        for at in memchr::memchr_iter(b'\n', output) {
            self.written.push(&output[from..at]);
            let is_whole = self.written.ends(&self.echo);
            // A terminal shows each key. A program need not: it shows nothing, or stars.
            let is_shown = self.shown_by == ShownBy::Terminal || self.written.shown > 0;
            if self.state != LineState::Open && (is_whole || !is_shown) {
                return Some(at);
            }
            from = at + 1;
        }
        self.written.push(&output[from..]);
        None
    }

    fn take(&mut self, key: u8) {
        let ends_in_blank = |text: &[u8]| text.last().map(u8::is_ascii_whitespace);
        match key {
            // ^U
            0x15 => while self.erase() {},
            0x08 | 0x7f => _ = self.erase(),
            // ^W
            0x17 => {
                while ends_in_blank(&self.text) == Some(true) {
                    self.erase();
                }
                while ends_in_blank(&self.text) == Some(false) {
                    self.erase();
                }
            }
            // ^R
            0x12 => self.echo.clone_from(&self.text),
            0x20.. if self.text.len() < LINE_BYTES_MAX => {
                self.text.push(key);
                self.shows(&[key]);
            }
            _ => {}
        }
    }

    /// Removes the last character, with its continuation bytes (UTF-8). Returns false if there is none.
    fn erase(&mut self) -> bool {
        if self.text.is_empty() {
            return false;
        }
        while self.text.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
        self.shows(b"\x08 \x08");
        true
    }

    fn shows(&mut self, bytes: &[u8]) {
        if self.echo.len() < LINE_BYTES_MAX {
            self.echo.extend_from_slice(bytes);
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
    fn a_later_copy_is_found_in_pieces() {
        let now = Instant::now();
        for at in 1..7 {
            let mut line = line("hunter2\r", now);
            assert_eq!(marked(&mut line, "hunter2\r\nread ", now), "⟨typed⟩\r\nread ");
            let (first, rest) = "hunter2".split_at(at);
            let seen = marked(&mut line, &format!("\x1b[C{first}"), now);
            let begins = if at < BEGINNING_BYTES_MIN { first } else { TYPED };
            assert_eq!(seen, format!("\x1b[C{begins}"));
            assert_eq!(marked(&mut line, &format!("{rest}\r\n"), now), "⟨typed⟩\r\n");
            assert_eq!(marked(&mut line, &format!("{rest}\r\n"), now), format!("{rest}\r\n"), "it has ended");
        }
        let mut line = line("abcabd\r", now);
        assert_eq!(marked(&mut line, "abcabd\r\nabcabc", now), "⟨typed⟩\r\nabc⟨typed⟩");
        assert_eq!(marked(&mut line, "abd", now), "⟨typed⟩", "the latest beginning counts");
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
            "⟨typed⟩\r\nread ⟨typed⟩\r\n"
        );
        assert_eq!(marked(&mut line("hun", now), "hu|\r\nbuilt\r\n|n", now), "⟨typed⟩");
        let mut again = line("x\x15hunted two \x17\x7f\x7f\x7fer2\r", now);
        let rubout = "\x08 \x08";
        let shown = format!("x{rubout}hunted two {}er2\r\nhunter2", rubout.repeat(7));
        assert_eq!(marked(&mut again, &shown, now), "⟨typed⟩\r\n⟨typed⟩");
        assert_eq!(marked(&mut SecretLine::default(), "hunter2\r\n", now), "hunter2\r\n");
        assert_eq!(marked(&mut line("abc\r", now), "abc\r\nabcde", now), "⟨typed⟩\r\nabcde");
    }

    #[test]
    fn what_others_write_into_a_line_does_not_end_it() {
        let now = Instant::now();
        for others in ["\r\nunit built\r\n", "tests ran\r\n", "\r\nge-units\r\n\r\nunit 2\r\n"] {
            for (at, then) in (0..8).flat_map(|at| (at..8).map(move |then| (at, then))) {
                let (first, rest) = "orange-7".split_at(at);
                let (second, third) = rest.split_at(then - at);
                let output = format!("{first}{others}{second}{others}{third}\r\nread 8\r\n");
                // All at once, byte by byte, and with the first keys read before the last one is typed.
                assert_eq!(marked(&mut line("orange-7\r", now), &output, now), "⟨typed⟩\r\nread 8\r\n", "{output:?}");
                let mut each = line("orange-7\r", now);
                let seen: String = output.split_inclusive(|_| true).map(|byte| marked(&mut each, byte, now)).collect();
                assert_eq!(seen.replace(TYPED, ""), "\r\nread 8\r\n".replacen('\r', "", 1), "{output:?}");
                let mut late = line("orange-7", now);
                assert_eq!(marked(&mut late, &format!("{first}{others}"), now), TYPED);
                late.typed(b"\r", true, ShownBy::Terminal, now);
                let rest = format!("{second}{others}{third}\r\nread 8\r\n");
                assert_eq!(marked(&mut late, &rest, now), "⟨typed⟩\r\nread 8\r\n", "{output:?}");
            }
        }
        let mut edited = line("oranhe\x7f\x7fge-7\r", now);
        let output = "oranhe\x08 \x08\r\nbuilt\r\n\x08 \x08ge-7\r\nread";
        assert_eq!(marked(&mut edited, output, now), "⟨typed⟩\r\nread");
        let mut stars = line("orange-7\r", now);
        stars.shown_by = ShownBy::Program;
        assert_eq!(marked(&mut stars, "********\r\nread", now), "⟨typed⟩\r\nread");
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
