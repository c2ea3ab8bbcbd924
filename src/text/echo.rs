//! Finds in what a terminal shows the keys that somebody has typed there, so that the journal need not keep them.
//!
//! A terminal with ECHO shows each key where it comes, between whatever programs write at the same time. A terminal without
//! it may have it again at the moment when the key arrives, because its program has just given up waiting. A program that
//! reads keys, not lines, shows them itself, and may draw them again and again: all that it writes before the end of the
//! line counts as keys.
//!
//! Invariants: pure, the time is told; the keys are in memory only, and only until their line ends and the terminal has
//! shown them; bytes are only marked, never changed.

use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::memmem;

/// What stands for keys that were typed, where they are not kept.
pub const TYPED: &str = "⟨typed⟩";
/// How long a key without ECHO may be on its way to a terminal that has it again by then.
const ON_ITS_WAY: Duration = Duration::from_millis(250);
/// How long a program may take to show a line that has its end. Mostly it ends the line on the screen long before.
const DRAWN_LATE: Duration = Duration::from_secs(2);
/// The most keys that wait to be shown. A terminal takes no more in one line.
const KEYS_MAX: usize = 4 << 10;

/// ^R: the terminal shows the whole line once more (VREPRINT, termios(3)).
const REPRINT: u8 = 0x12;
/// A shorter line is not looked for in what a program writes behind its end.
const AGAIN_BYTES_MIN: usize = 4;

/// Whether the terminal shows a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Showing {
    /// It has ECHO.
    Certain,
    /// It may have ECHO when the key arrives, or its program shows the keys itself.
    Possible,
}

/// Whether a program that reads keys draws a line of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum DrawnLine {
    #[default]
    Nothing,
    /// The line has no end yet.
    Line,
    /// Its end was typed. The program shows it until it ends the line, or until this time.
    End(Instant),
    /// It has ended the line. It may show it once more until this time.
    Again(Instant),
}

/// The line that somebody types, with what was erased taken out.
#[derive(Debug, Default)]
struct TypedText(Vec<u8>);

impl TypedText {
    fn typed(&mut self, key: u8) {
        match key {
            b'\r' | b'\n' | 0x03 | 0x04 | 0x15 => self.0.clear(),
            0x08 | 0x7f => self.erase(),
            0x17 => {
                let is_blank = |text: &Vec<u8>| text.last().is_some_and(u8::is_ascii_whitespace);
                while is_blank(&self.0) {
                    self.0.pop();
                }
                while !self.0.is_empty() && !is_blank(&self.0) {
                    self.0.pop();
                }
            }
            0x20.. if self.0.len() < KEYS_MAX => self.0.push(key),
            _ => {}
        }
    }

    /// Takes the last character away, with its continuation bytes (UTF-8).
    fn erase(&mut self) {
        while self.0.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }
}

/// The keys that a terminal has not shown yet.
#[derive(Debug, Default)]
pub struct TypedEcho {
    certain: Vec<u8>,
    /// The line as it is by now.
    line: TypedText,
    drawing: DrawnLine,
    possible: Vec<u8>,
    /// When the last possible one was typed.
    possible_at: Option<Instant>,
}

impl TypedEcho {
    /// Somebody typed these keys at a terminal that reads lines.
    pub fn typed(&mut self, keys: &[u8], showing: Showing, now: Instant) {
        let shown = match showing {
            Showing::Certain => &mut self.certain,
            Showing::Possible => {
                if self.is_late(now) {
                    self.possible.clear();
                }
                self.possible_at = Some(now);
                &mut self.possible
            }
        };
        for &key in keys {
            self.line.typed(key);
            match key {
                // The end of a line is no secret, and erasing shows nothing of what was erased.
                b'\r' | b'\n' | b'\t' | 0x08 | 0x7f => {}
                // ^D, ^Q, ^S, ^U, ^V and ^W: a terminal that reads lines takes them, and shows no `^U` for them.
                0x04 | 0x11 | 0x13 | 0x15..=0x17 => {}
                0..0x20 => shown.extend([b'^', key ^ 0x40]),
                _ => shown.push(key),
            }
            if key == REPRINT && showing == Showing::Certain {
                shown.extend_from_slice(&self.line.0);
            }
        }
        let surplus = shown.len().saturating_sub(KEYS_MAX);
        shown.drain(..surplus);
    }

    /// Somebody typed these keys for a program that reads keys. `is_end` says that the last of them ends a line.
    pub fn typed_at_program(&mut self, keys: &[u8], is_end: bool, now: Instant) {
        if self.drawing != DrawnLine::Line {
            self.line.0.clear();
        }
        let kept = if is_end { &keys[..keys.len() - 1] } else { keys };
        kept.iter().for_each(|&key| self.line.typed(key));
        self.drawing = if is_end { DrawnLine::End(now + DRAWN_LATE) } else { DrawnLine::Line };
    }

    /// Whoever typed has left.
    pub fn person_left(&mut self, now: Instant) {
        if self.drawing == DrawnLine::Line {
            self.drawing = DrawnLine::End(now + DRAWN_LATE);
        }
    }

    /// A program has read what was typed: what the terminal did not show of it by now, it never does.
    pub fn line_is_read(&mut self) {
        self.possible.clear();
    }

    /// The parts of this output that are keys, in order.
    pub fn find(&mut self, output: &[u8], now: Instant) -> Vec<Range<usize>> {
        if self.is_late(now) {
            self.possible.clear();
        }
        let mut parts = self.find_drawn(output, now);
        if self.drawing != DrawnLine::Nothing {
            return parts;
        }
        if !self.certain.is_empty() {
            self.find_certain(output, &mut parts);
        }
        if parts.is_empty() && !self.possible.is_empty() {
            parts.extend(self.find_possible(output));
        }
        parts
    }

    fn is_late(&self, now: Instant) -> bool {
        self.possible_at.is_some_and(|at| now.saturating_duration_since(at) > ON_ITS_WAY)
    }

    /// The parts of this output, which need not be the terminal's, that a program draws of what it reads: all that it
    /// writes up to the end of the line.
    pub fn find_drawn(&mut self, output: &[u8], now: Instant) -> Vec<Range<usize>> {
        if let DrawnLine::End(until) | DrawnLine::Again(until) = self.drawing
            && until < now
        {
            self.drawing = DrawnLine::Nothing;
        }
        if self.drawing == DrawnLine::Nothing {
            return Vec::new();
        }
        let newline = memchr::memchr(b'\n', output);
        let mut parts = Vec::new();
        let mut from = match (self.drawing, newline) {
            (DrawnLine::Again(_), _) => 0,
            (DrawnLine::End(until), Some(at)) => {
                self.drawing = DrawnLine::Again(until);
                at - usize::from(output[..at].ends_with(b"\r"))
            }
            _ => output.len(),
        };
        if from > 0 {
            parts.push(0..from);
        }
        let line = &self.line.0;
        while line.len() >= AGAIN_BYTES_MIN
            && let Some(at) = memmem::find(&output[from..], line)
        {
            parts.push(from + at..from + at + line.len());
            from += at + line.len();
        }
        parts
    }

    /// All keys together if they stand there, else one by one, with what a program writes between them.
    fn find_certain(&mut self, output: &[u8], parts: &mut Vec<Range<usize>>) {
        if let Some(at) = memmem::find(output, &self.certain) {
            parts.push(at..at + self.certain.len());
            return self.certain.clear();
        }
        let mut found = 0;
        for (at, byte) in output.iter().enumerate() {
            if self.certain.get(found) != Some(byte) {
                continue;
            }
            found += 1;
            match parts.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => parts.push(at..at + 1),
            }
        }
        self.certain.drain(..found);
    }

    /// The last of the keys, at one end of the output: the first ones came before the terminal had ECHO again.
    fn find_possible(&mut self, output: &[u8]) -> Option<Range<usize>> {
        let text = output.trim_ascii_end();
        let start = (output.len() - output.trim_ascii_start().len()).min(text.len());
        for from in 0..self.possible.len() {
            let keys = &self.possible[from..];
            let place = if output[start..].starts_with(keys) {
                start..start + keys.len()
            } else if text.ends_with(keys) {
                text.len() - keys.len()..text.len()
            } else {
                continue;
            };
            self.possible.clear();
            return Some(place);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output with the keys in it marked.
    fn marked(echo: &mut TypedEcho, output: &str, now: Instant) -> String {
        let mut text = String::new();
        let mut from = 0;
        for part in echo.find(output.as_bytes(), now) {
            text += &output[from..part.start];
            text += TYPED;
            from = part.end;
        }
        text + &output[from..]
    }

    fn echo(keys: &str, showing: Showing, now: Instant) -> TypedEcho {
        let mut echo = TypedEcho::default();
        echo.typed(keys.as_bytes(), showing, now);
        echo
    }

    #[test]
    fn what_is_shown_of_keys_is_found_however_it_comes() {
        let now = Instant::now();
        let typed = || echo("hunter2\r", Showing::Certain, now);
        assert_eq!(marked(&mut typed(), "hunter2\r\nhunter2 read\r\n", now), "⟨typed⟩\r\nhunter2 read\r\n");
        assert_eq!(marked(&mut typed(), "sh: hunter2\r\n", now), "sh: ⟨typed⟩\r\n");
        for at in 1..7 {
            let (first, rest) = "hunter2".split_at(at);
            let mut echo = typed();
            let seen = marked(&mut echo, first, now) + &marked(&mut echo, &format!("{rest}\r\nread"), now);
            assert_eq!(seen, "⟨typed⟩⟨typed⟩\r\nread");
        }
        assert_eq!(marked(&mut typed(), "hun|.|ter2\r\n", now), "⟨typed⟩|.|⟨typed⟩\r\n");
        assert_eq!(marked(&mut echo("a\x03", Showing::Certain, now), "a^C\r\n", now), "⟨typed⟩\r\n");
        // ^U takes a line back, and ^D ends one: the terminal shows neither.
        assert_eq!(
            marked(&mut echo("hunt\x15hunter2\r", Showing::Certain, now), "hunt\u{8} \u{8}hunter2\r\n", now),
            "⟨typed⟩\u{8} \u{8}⟨typed⟩\r\n"
        );
        let mut two = echo("first\x04", Showing::Certain, now);
        two.typed(b"second\r", Showing::Certain, now);
        assert_eq!(marked(&mut two, "first", now) + &marked(&mut two, "second\r\n", now), "⟨typed⟩⟨typed⟩\r\n");
        let mut again = echo("hunted\x7f\x7fer2\x12\r", Showing::Certain, now);
        let shown = "hunted\u{8} \u{8}\u{8} \u{8}er2^R\r\nhunter2\r\nread hunter2\r\n";
        let seen = marked(&mut again, shown, now);
        assert!(!seen.contains("\nhunter2") && seen.ends_with("read hunter2\r\n"), "{seen}");
        let mut nothing = TypedEcho::default();
        assert_eq!(marked(&mut nothing, "hunter2\r\n", now), "hunter2\r\n");
    }

    #[test]
    fn a_program_that_draws_a_line_shows_nothing_of_it_before_its_end() {
        let now = Instant::now();
        let mut echo = TypedEcho::default();
        let mut seen = String::new();
        for (at, key) in "tok-7x".bytes().enumerate() {
            echo.typed_at_program(&[key], false, now);
            seen += &marked(&mut echo, &format!("\r\x1b[K> {}", &"tok-7x"[..=at]), now + 9 * DRAWN_LATE);
        }
        echo.typed_at_program(b"\r", true, now);
        seen += &marked(&mut echo, "\r\x1b[K> tok-7x\r\ngot tok-7x\r\n", now);
        assert_eq!(seen, format!("{}\r\ngot ⟨typed⟩\r\n", TYPED.repeat(7)));
        assert_eq!(marked(&mut echo, "tok-7x\n", now + 2 * DRAWN_LATE), "tok-7x\n");

        echo.typed_at_program(b"another-1\r", true, now);
        assert_eq!(marked(&mut echo, "done\r\n", now + 2 * DRAWN_LATE), "done\r\n", "it shows no keys");
        echo.typed_at_program(b"gone", false, now);
        echo.person_left(now);
        assert_eq!(marked(&mut echo, "gone", now) + &marked(&mut echo, "on", now + 2 * DRAWN_LATE), "⟨typed⟩on");
    }

    #[test]
    fn a_terminal_that_shows_keys_again_shows_none_that_came_before() {
        let now = Instant::now();
        let typed = || echo("hunter2", Showing::Possible, now);
        assert_eq!(marked(&mut typed(), "r2", now), "⟨typed⟩");
        assert_eq!(marked(&mut typed(), "\r\ngave up r2", now), "\r\ngave up ⟨typed⟩");
        assert_eq!(marked(&mut typed(), "ter2\r\ngave up\r\n", now), "⟨typed⟩\r\ngave up\r\n");
        assert_eq!(marked(&mut typed(), "\r\nread hunter\r\n", now), "\r\nread hunter\r\n");
        assert_eq!(marked(&mut typed(), "hunter2", now + 2 * ON_ITS_WAY), "hunter2", "it is none of the keys");
        let mut read = typed();
        read.line_is_read();
        assert_eq!(marked(&mut read, "hunter2", now), "hunter2");
    }
}
