//! What goes through pipes, without what no reader of text wants: escape sequences, and the states of lines that are
//! rewritten.
//!
//! A program that writes to a pipe means its bytes. So a line without ESC, BS and bare CR passes byte for byte, whatever
//! else it holds. A line that is rewritten is its last state, given when it is finished, when it has stood still for a
//! while, or at the end. From the first cursor movement upwards on, lines may be rewritten after they were finished, and
//! the stream is read as on a terminal ([`Settle`]). From the first NUL or the first byte that cannot be UTF-8 on, it is
//! no text, and passes as it is.
//!
//! Invariants: bytes that carry the same instant may be split in any way; what passes is handed on as a slice of the
//! input and never copied here, but for the line that a piece ends in; memory is bounded.

mod cells;
mod line;

use std::time::{Duration, Instant};

use line::{Give, Line};

use super::Mode;
use crate::text::csi::Csi;
use crate::text::parser::{Parser, Sink};
use crate::text::scan;
use crate::text::settle::Settle;
use crate::text::utf8;

/// The terminal that a stream is read on once it has moved upwards.
const SCREEN: Mode = Mode::Collapse { rows: 48, cols: 4096 };
/// A sequence longer than this is a string, which is read many bytes at a time.
const SEQUENCE_BYTES: usize = 300;

/// One stream's filter with a clock; see the module's text.
#[derive(Debug)]
pub struct Tidy {
    still: Duration,
    now: Option<Instant>,
    parser: Parser,
    sequence_bytes: usize,
    line: Line,
    /// Since the first movement upwards.
    screen: Option<Box<Settle>>,
    /// The last line that was finished ended in CR LF. What comes after a movement upwards ends in the same way.
    has_returns: bool,
    is_raw: bool,
    /// A character that is not whole yet.
    partial: Vec<u8>,
}

/// How a piece of the stream ends.
enum End {
    /// It is all text.
    Text,
    /// Here begins a character that is not whole.
    Partial(usize),
    /// Here begins what is no text.
    Raw(usize),
}

impl Tidy {
    /// A filter at the start of a stream. `still` is how long a line has to stand still before it is given unfinished.
    #[must_use]
    pub fn new(still: Duration) -> Self {
        Self {
            still,
            now: None,
            parser: Parser::default(),
            sequence_bytes: 0,
            line: Line::default(),
            screen: None,
            has_returns: false,
            is_raw: false,
            partial: Vec::new(),
        }
    }

    /// Takes bytes that came at `now` and hands on what the reader should be given.
    pub fn push(&mut self, input: &[u8], now: Instant, mut give: impl FnMut(&[u8])) {
        self.advance(now, &mut give);
        let mut rest = input;
        while !self.partial.is_empty() && !rest.is_empty() && !self.is_raw {
            // At most three bytes come this way.
            let mut bytes = std::mem::take(&mut self.partial);
            bytes.push(rest[0]);
            rest = &rest[1..];
            self.take(&bytes, &mut give);
        }
        if !rest.is_empty() {
            self.take(rest, &mut give);
        }
    }

    /// Time has passed: hands on what has stood still until `now`.
    pub fn tick(&mut self, now: Instant, mut give: impl FnMut(&[u8])) {
        self.advance(now, &mut give);
    }

    /// When to call [`Self::tick`] if no bytes come before.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.screen {
            Some(screen) => screen.deadline(),
            None => self.line.due(self.still),
        }
    }

    /// Something else is about to be given to the same reader: hands on what is held before it.
    pub fn release(&mut self, mut give: impl FnMut(&[u8])) {
        if self.screen.is_none() {
            self.line.give_state(&mut give);
        }
    }

    /// The stream has ended: hands on all that the reader was not given. The filter is as new afterwards.
    pub fn finish(&mut self, mut give: impl FnMut(&[u8])) {
        let mut text = Vec::new();
        if let Some(screen) = &mut self.screen {
            screen.finish(&mut text);
        }
        self.give_screen(&text, &mut give);
        if self.partial.is_empty() {
            self.line.end(&mut give);
        } else {
            self.line.end_raw(&mut give);
            give(&self.partial);
        }
        *self = Self::new(self.still);
    }

    fn advance(&mut self, now: Instant, give: &mut Give<'_>) {
        if self.now.is_some_and(|before| now <= before) {
            return;
        }
        self.now = Some(now);
        match &mut self.screen {
            None => self.line.tick(now, self.still, give),
            Some(screen) => {
                let mut text = Vec::new();
                screen.tick(now, &mut text);
                self.give_screen(&text, give);
            }
        }
    }

    fn give_screen(&self, text: &[u8], give: &mut Give<'_>) {
        if !self.has_returns {
            return give(text);
        }
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    give(line);
                    give(b"\r\n");
                }
                None => give(line),
            }
        }
    }

    /// Takes bytes, up to one where the stream ceases to be text.
    fn take(&mut self, input: &[u8], give: &mut Give<'_>) {
        if self.is_raw {
            return give(input);
        }
        match self.read(input, give) {
            End::Text => {}
            End::Partial(at) => self.partial.extend_from_slice(&input[at..]),
            End::Raw(at) => {
                self.is_raw = true;
                let mut text = Vec::new();
                if let Some(screen) = &mut self.screen {
                    screen.finish(&mut text);
                }
                self.give_screen(&text, give);
                self.line.end_raw(give);
                give(&input[at..]);
            }
        }
    }

    fn read(&mut self, input: &[u8], give: &mut Give<'_>) -> End {
        // What is before `at` was looked at, what is before `from` was dealt with.
        let is_plain = self.screen.is_none() && self.parser.is_at_rest();
        let (mut from, mut at) = (0, if is_plain { scan::plain_len(input) } else { 0 });
        while at < input.len() {
            if self.screen.is_some() {
                return self.read_screen(from, input, give);
            }
            if !self.parser.is_at_rest() {
                match self.read_sequence(&input[at..], give) {
                    Ok(taken) => at += taken,
                    Err(End::Partial(more)) => return End::Partial(at + more),
                    Err(End::Raw(more)) => return End::Raw(at + more),
                    Err(End::Text) => return End::Text,
                }
                from = at;
                continue;
            }
            let run = scan::unedited_run(&input[at..]);
            if !run.ascii {
                let (valid, is_cut) = utf8::valid_len(&input[at..at + run.len]);
                if valid < run.len {
                    let end = at + valid;
                    self.plain(&input[from..end], give);
                    return if is_cut && at + run.len == input.len() { End::Partial(end) } else { End::Raw(end) };
                }
            }
            at += run.len;
            let Some(&byte) = input.get(at) else { break };
            self.plain(&input[from..at], give);
            match byte {
                b'\r' => self.line.carriage_return(self.now),
                0x08 => self.line.backspace(self.now, give),
                0x1B => at += self.escape(&input[at..], give),
                _ => return End::Raw(at),
            }
            at += usize::from(byte != 0x1B);
            from = at;
        }
        if self.screen.is_none() && self.parser.is_at_rest() {
            self.plain(&input[from..], give);
        }
        End::Text
    }

    /// Text whose lines nothing edits, but perhaps the one that was begun.
    fn plain(&mut self, text: &[u8], give: &mut Give<'_>) {
        let mut rest = text;
        if self.line.is_as_it_came() {
            if memchr::memrchr(b'\n', rest).is_some() {
                self.line.give_as_it_came(give);
            }
        } else if !self.line.is_fresh() {
            let Some(end) = memchr::memchr(b'\n', rest) else { return self.line.write(rest, self.now, give) };
            let line = &rest[..end];
            rest = &rest[end + 1..];
            let bare = line.strip_suffix(b"\r");
            self.has_returns = bare.is_some() || (line.is_empty() && self.line.has_returned());
            self.line.write(bare.unwrap_or(line), self.now, give);
            self.line.finish(if self.has_returns { b"\r\n" } else { b"\n" }, give);
        }
        let Some(end) = memchr::memrchr(b'\n', rest) else { return self.line.write(rest, self.now, give) };
        let (lines, open) = rest.split_at(end + 1);
        self.has_returns = lines.ends_with(b"\r\n");
        give(lines);
        self.line.write(open, self.now, give);
    }

    /// An ESC; tells how much of what follows is dealt with. Most are whole control sequences.
    fn escape(&mut self, input: &[u8], give: &mut Give<'_>) -> usize {
        if input.get(1) == Some(&b'[') {
            let body = &input[2..];
            let end = body.iter().take(64).position(|byte| !matches!(byte, 0x20..=0x3F));
            if let Some(end) = end.filter(|&end| matches!(body[end], 0x40..=0x7E)) {
                self.control_sequence(&body[..end], body[end], give);
                return end + 3;
            }
        }
        self.feed_parser(&input[..1], give);
        1
    }

    /// The inside of a sequence; tells how much of it is dealt with.
    fn read_sequence(&mut self, input: &[u8], give: &mut Give<'_>) -> Result<usize, End> {
        let is_long = self.sequence_bytes > SEQUENCE_BYTES;
        let len = match input[0] {
            0 => return Err(End::Raw(0)),
            0x80.. => {
                let chunk = input[..input.len().min(4)].utf8_chunks().next();
                let whole = chunk.map_or("", |chunk| chunk.valid()).chars().next().map_or(0, char::len_utf8);
                let is_cut = std::str::from_utf8(&input[..input.len().min(4)])
                    .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none());
                match (whole, is_cut) {
                    (0, true) => return Err(End::Partial(0)),
                    (0, false) => return Err(End::Raw(0)),
                    _ => whole,
                }
            }
            0x20..=0x7E if is_long => input.iter().take_while(|byte| matches!(byte, 0x20..=0x7E)).count(),
            _ => 1,
        };
        self.feed_parser(&input[..len], give);
        Ok(len)
    }

    fn feed_parser(&mut self, bytes: &[u8], give: &mut Give<'_>) {
        let mut parser = std::mem::take(&mut self.parser);
        parser.push(bytes, &mut Findings { tidy: self, give });
        self.sequence_bytes = if parser.is_at_rest() { 0 } else { self.sequence_bytes + bytes.len() };
        self.parser = parser;
    }

    fn control_sequence(&mut self, body: &[u8], last: u8, give: &mut Give<'_>) {
        if last == b'm' {
            return;
        }
        let Some(csi) = Csi::parse(body).filter(|csi| csi.private.is_none() && csi.intermediates.is_empty()) else {
            return;
        };
        let erases_behind = matches!(last, b'K' | b'J' | b'P' | b'X' | b'@') && csi.value(0) != 1 && csi.value(0) != 2;
        match last {
            b'A' | b'F' => self.climb(&[b"\x1b[", body, &[last]].concat(), give),
            b'H' | b'f' | b'd' if !self.line.is_fresh() => self.climb(&[b"\x1b[", body, &[last]].concat(), give),
            _ if erases_behind && self.line.is_at_plain_end() => {}
            b'G' | b'`' | b'C' | b'a' | b'D' | b'E' | b'K' | b'J' | b'X' | b'P' | b'@' | b's' | b'u' => {
                self.line.edit(give).control_sequence(&csi, last);
                self.line.touch(self.now);
            }
            _ => {}
        }
    }

    /// The cursor goes upwards, or somewhere: from here on the stream is read as on a terminal.
    fn climb(&mut self, sequence: &[u8], give: &mut Give<'_>) {
        let text = self.line.take_or_finish(give);
        let mut screen = Box::new(Settle::new(SCREEN, self.still));
        let mut out = Vec::new();
        if let Some(now) = self.now {
            screen.push(&text, now, &mut out);
            screen.push(sequence, now, &mut out);
        }
        self.give_screen(&out, give);
        self.screen = Some(screen);
    }

    fn read_screen(&mut self, from: usize, input: &[u8], give: &mut Give<'_>) -> End {
        let rest = &input[from..];
        let rest = &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())];
        let (valid, is_cut) = utf8::valid_len(rest);
        let is_cut = is_cut && from + rest.len() == input.len();
        let mut text = Vec::new();
        if let (Some(screen), Some(now)) = (&mut self.screen, self.now) {
            screen.push(&rest[..valid], now, &mut text);
        }
        self.give_screen(&text, give);
        match from + valid {
            end if end == input.len() => End::Text,
            end if is_cut => End::Partial(end),
            end => End::Raw(end),
        }
    }
}

/// What the parser finds in sequences that did not come in one piece.
struct Findings<'a, 'b> {
    tidy: &'a mut Tidy,
    give: &'a mut Give<'b>,
}

impl Sink for Findings<'_, '_> {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        self.tidy.plain(run, self.give);
    }

    fn control(&mut self, byte: u8) {
        let (line, now) = (&mut self.tidy.line, self.tidy.now);
        match byte {
            b'\r' => line.carriage_return(now),
            0x08 => line.backspace(now, self.give),
            _ => line.write(&[byte], now, self.give),
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            (b"", b'M') => self.tidy.climb(b"\x1bM", self.give),
            (b"", b'7' | b'8') => {
                let last = if last == b'7' { b's' } else { b'u' };
                self.tidy.control_sequence(b"", last, self.give);
            }
            _ => {}
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        self.tidy.control_sequence(body, last, self.give);
    }
}
