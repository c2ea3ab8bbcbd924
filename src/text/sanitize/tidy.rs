//! The filter for pipes: it deletes escape sequences and the earlier states of rewritten lines.
//!
//! A program that writes to a pipe means its bytes. So a line without ESC, BS or a CR before other text passes byte for
//! byte. Of a rewritten line only its last state is appended: when the line ends, when it was held for long enough
//! ([`super::hold`]), or at the end of the stream. After the first cursor movement upwards even finished lines may change, so the rest of the stream is read
//! as on a terminal ([`Collapse`]). After the first NUL or the first byte that cannot be UTF-8 the stream is not text, and
//! the rest passes unchanged.
//!
//! Invariants: how bytes of one moment were split never shows; nothing but the last line of a piece is held back; memory
//! is bounded.

mod cells;
mod open_line;
mod return_ended;
mod sequence_sink;

use std::time::{Duration, Instant};

use open_line::OpenLine;
use sequence_sink::SequenceSink;

use super::collapse::Collapse;
use crate::text::csi::Csi;
use crate::text::parser::Parser;
use crate::text::{scan, utf8};

/// Rows and columns of the terminal on which a stream is read once it has moved its cursor up.
const SCREEN: (u16, u16) = (48, 4096);
/// A longer sequence is a string, and is then read many bytes at a time.
const SEQUENCE_BYTES: usize = 300;
/// Bytes read and copied at a time, few enough to stay in the processor's cache in between.
const PIECE_BYTES: usize = 16 << 10;

#[derive(Debug, Clone)]
pub(super) struct Tidy {
    still: Duration,
    now: Option<Instant>,
    parser: Parser,
    sequence_bytes: usize,
    line: OpenLine,
    /// Reads the stream from the first movement upwards on.
    screen: Option<Box<Collapse>>,
    /// The last finished line ended in CR LF. Lines after a movement upwards get the same ending.
    has_returns: bool,
    is_raw: bool,
    /// The first bytes of an incomplete character, and their time.
    partial: Vec<u8>,
    partial_at: Option<Instant>,
}

/// The place where a piece of the stream ceases to be text.
enum TextEnd {
    None,
    /// An incomplete character begins at this byte.
    Partial(usize),
    /// Binary data begins at this byte.
    Binary(usize),
}

/// The reason why a byte inside a sequence is not text.
enum NotText {
    /// It begins an incomplete character.
    Incomplete,
    Binary,
}

impl Tidy {
    /// A filter at the start of a stream. `still` is the settle time of lines without an end.
    pub(super) fn new(still: Duration) -> Self {
        Self {
            still,
            now: None,
            parser: Parser::default(),
            sequence_bytes: 0,
            line: OpenLine::default(),
            screen: None,
            has_returns: false,
            is_raw: false,
            partial: Vec::new(),
            partial_at: None,
        }
    }

    /// Takes bytes that came at `now`, or together with those before them.
    pub(super) fn push(&mut self, input: &[u8], now: Option<Instant>, out: &mut Vec<u8>) {
        if let Some(now) = now {
            self.tick(now, out);
        }
        let mut rest = input;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(if self.is_raw { rest.len() } else { rest.len().min(PIECE_BYTES) });
            rest = behind;
            self.take_piece(piece, out);
        }
    }

    fn take_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let mut rest = piece;
        while !self.partial.is_empty() && !rest.is_empty() && !self.is_raw {
            // A character has at most three bytes left.
            let mut bytes = std::mem::take(&mut self.partial);
            bytes.push(rest[0]);
            rest = &rest[1..];
            self.take(&bytes, out);
            self.partial_at = self.partial_at.filter(|_| !self.partial.is_empty());
        }
        if !rest.is_empty() {
            self.take(rest, out);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let line = match &self.screen {
            Some(screen) => screen.deadline(),
            None => self.line.due(self.still),
        };
        line.into_iter().chain(self.partial_at.map(|at| at + self.still)).min()
    }

    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        match &mut self.screen {
            None => self.line.give_state(out),
            Some(screen) => {
                let mut text = Vec::new();
                screen.release(&mut text);
                self.append_screen(&text, out);
            }
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.finish_screen(out);
        if self.partial.is_empty() {
            self.line.end(out);
        } else {
            self.line.end_raw(out);
            out.extend_from_slice(&self.partial);
        }
        *self = Self::new(self.still);
    }

    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.now.is_some_and(|before| now <= before) {
            return;
        }
        self.now = Some(now);
        if self.partial_at.is_some_and(|at| at + self.still <= now) {
            // Its rest would have come with it.
            let bytes = std::mem::take(&mut self.partial);
            return self.turn_raw(&bytes, out);
        }
        match &mut self.screen {
            None => self.line.tick(now, self.still, out),
            Some(screen) => {
                let mut text = Vec::new();
                screen.tick(now, &mut text);
                self.append_screen(&text, out);
            }
        }
    }

    fn finish_screen(&mut self, out: &mut Vec<u8>) {
        if let Some(screen) = &mut self.screen {
            let mut text = Vec::new();
            screen.finish(&mut text);
            self.append_screen(&text, out);
        }
    }

    /// Appends text from the terminal, with the line endings that the stream had before.
    fn append_screen(&self, text: &[u8], out: &mut Vec<u8>) {
        if !self.has_returns {
            return out.extend_from_slice(text);
        }
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    out.extend_from_slice(line);
                    out.extend_from_slice(b"\r\n");
                }
                None => out.extend_from_slice(line),
            }
        }
    }

    /// Takes bytes; those after the last text byte pass unchanged or wait for the next piece.
    fn take(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if self.is_raw {
            return out.extend_from_slice(input);
        }
        match self.read(input, out) {
            TextEnd::None => {}
            TextEnd::Partial(at) => {
                self.partial.extend_from_slice(&input[at..]);
                self.partial_at = self.partial_at.or(self.now);
            }
            TextEnd::Binary(at) => self.turn_raw(&input[at..], out),
        }
    }

    /// Passes the stream as binary data from these bytes on.
    fn turn_raw(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        (self.is_raw, self.partial_at) = (true, None);
        self.finish_screen(out);
        self.line.end_raw(out);
        out.extend_from_slice(bytes);
    }

    fn read(&mut self, input: &[u8], out: &mut Vec<u8>) -> TextEnd {
        // Bytes before `at` were read, and those before `from` are done.
        let is_plain = self.screen.is_none() && self.parser.is_at_rest();
        let (mut from, mut at) = (0, if is_plain { scan::plain_len(input) } else { 0 });
        // The text before skipped colours. They have no effect, so the text around them is taken as one.
        let mut before = Vec::new();
        while at < input.len() {
            if self.screen.is_some() {
                return self.read_screen(from, input, out);
            }
            if !self.parser.is_at_rest() {
                match self.read_sequence(&input[at..], out) {
                    Ok(taken) => at += taken,
                    Err(NotText::Incomplete) => return TextEnd::Partial(at),
                    Err(NotText::Binary) => return TextEnd::Binary(at),
                }
                from = at;
                continue;
            }
            let run = scan::unedited_run(&input[at..]);
            if !run.ascii {
                let (valid, is_cut) = utf8::valid_len(&input[at..at + run.len]);
                if valid < run.len {
                    let end = at + valid;
                    self.plain_behind(&mut before, &input[from..end], out);
                    return if is_cut && at + run.len == input.len() {
                        TextEnd::Partial(end)
                    } else {
                        TextEnd::Binary(end)
                    };
                }
            }
            at += run.len;
            let Some(&byte) = input.get(at) else { break };
            if byte == 0x1B
                && let Some(body) = body_len(&input[at..])
                && input[at + body + 2] == b'm'
            {
                before.extend_from_slice(&input[from..at]);
                at += body + 3;
                from = at;
                continue;
            }
            self.plain_behind(&mut before, &input[from..at], out);
            match byte {
                b'\r' => self.line.carriage_return(out),
                0x08 => self.line.backspace(self.now, out),
                0x1B => at += self.escape(&input[at..], out),
                _ => return TextEnd::Binary(at),
            }
            at += usize::from(byte != 0x1B);
            from = at;
        }
        if self.screen.is_none() && self.parser.is_at_rest() {
            self.plain_behind(&mut before, &input[from..], out);
        }
        TextEnd::None
    }

    /// Takes the text `before` and the text after it.
    fn plain_behind(&mut self, before: &mut Vec<u8>, text: &[u8], out: &mut Vec<u8>) {
        if before.is_empty() {
            return self.plain(text, out);
        }
        before.extend_from_slice(text);
        self.plain(before, out);
        before.clear();
    }

    /// Takes text in which nothing edits a line; the open line before it may have been edited.
    fn plain(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        if self.line.is_as_it_came() {
            if memchr::memrchr(b'\n', rest).is_some() {
                self.line.give_as_it_came(out);
            }
        } else if !self.line.is_fresh() {
            let Some(end) = memchr::memchr(b'\n', rest) else { return self.line.write(rest, self.now, out) };
            let line = &rest[..end];
            rest = &rest[end + 1..];
            let bare = line.strip_suffix(b"\r");
            self.has_returns = bare.is_some() || (line.is_empty() && self.line.has_returned());
            self.line.write(bare.unwrap_or(line), self.now, out);
            self.line.finish(if self.has_returns { b"\r\n" } else { b"\n" }, out);
        }
        let Some(end) = memchr::memrchr(b'\n', rest) else { return self.line.write(rest, self.now, out) };
        let (lines, open) = rest.split_at(end + 1);
        self.has_returns = lines.ends_with(b"\r\n");
        self.line.follow_lines();
        out.extend_from_slice(lines);
        self.line.write(open, self.now, out);
    }

    /// Takes an ESC, with its control sequence if that is complete. Returns the number of bytes.
    fn escape(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        if let Some(body) = body_len(input) {
            self.control_sequence(&input[2..][..body], input[body + 2], out);
            return body + 3;
        }
        self.feed_parser(&input[..1], out);
        1
    }

    /// Reads bytes inside a sequence. Returns their number.
    fn read_sequence(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, NotText> {
        let is_long = self.sequence_bytes > SEQUENCE_BYTES;
        let len = match input[0] {
            0 => return Err(NotText::Binary),
            lead @ 0x80.. => {
                let len = lead.leading_ones().max(2) as usize;
                match std::str::from_utf8(&input[..input.len().min(len)]) {
                    Ok(_) => len,
                    Err(error) if error.error_len().is_none() => return Err(NotText::Incomplete),
                    Err(_) => return Err(NotText::Binary),
                }
            }
            0x20..=0x7E if is_long => input.iter().take_while(|byte| matches!(byte, 0x20..=0x7E)).count(),
            _ => 1,
        };
        self.feed_parser(&input[..len], out);
        Ok(len)
    }

    fn feed_parser(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut parser = std::mem::take(&mut self.parser);
        parser.push(bytes, &mut SequenceSink { tidy: self, out });
        self.sequence_bytes = if parser.is_at_rest() { 0 } else { self.sequence_bytes + bytes.len() };
        self.parser = parser;
    }

    fn control_sequence(&mut self, body: &[u8], last: u8, out: &mut Vec<u8>) {
        if last == b'm' {
            return;
        }
        let Some(csi) = Csi::parse(body).filter(|csi| csi.private.is_none() && csi.intermediates.is_empty()) else {
            return;
        };
        let erases_behind = matches!(last, b'K' | b'J' | b'P' | b'X' | b'@') && csi.value(0) != 1 && csi.value(0) != 2;
        match last {
            b'A' | b'F' => self.climb(&[b"\x1b[", body, &[last]].concat(), out),
            b'H' | b'f' | b'd' if !self.line.is_fresh() => self.climb(&[b"\x1b[", body, &[last]].concat(), out),
            _ if erases_behind && self.line.is_at_plain_end() => {}
            b'G' | b'`' | b'C' | b'a' | b'D' | b'E' | b'K' | b'J' | b'X' | b'P' | b'@' | b's' | b'u' => {
                self.line.draw(self.now, out).control_sequence(&csi, last);
            }
            _ => {}
        }
    }

    /// Reads the stream as on a terminal from here on, because the cursor moves to another line.
    fn climb(&mut self, sequence: &[u8], out: &mut Vec<u8>) {
        let text = self.line.take_or_finish(out);
        let mut screen = Box::new(Collapse::new(SCREEN.0, SCREEN.1, Some(self.still)));
        let mut shown = Vec::new();
        screen.push(&text, self.now, &mut shown);
        screen.push(sequence, self.now, &mut shown);
        self.append_screen(&shown, out);
        self.screen = Some(screen);
    }

    fn read_screen(&mut self, from: usize, input: &[u8], out: &mut Vec<u8>) -> TextEnd {
        let rest = &input[from..];
        let rest = &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())];
        let (valid, is_cut) = utf8::valid_len(rest);
        let is_cut = is_cut && from + rest.len() == input.len();
        let mut text = Vec::new();
        if let Some(screen) = &mut self.screen {
            screen.push(&rest[..valid], self.now, &mut text);
        }
        self.append_screen(&text, out);
        match from + valid {
            end if end == input.len() => TextEnd::None,
            end if is_cut => TextEnd::Partial(end),
            end => TextEnd::Binary(end),
        }
    }
}

/// The length of the bytes between `ESC [` and the last byte of a complete control sequence.
#[inline]
fn body_len(input: &[u8]) -> Option<usize> {
    let body = input.strip_prefix(b"\x1b[")?;
    let end = body.iter().take(64).position(|byte| !matches!(byte, 0x20..=0x3F))?;
    matches!(body[end], 0x40..=0x7E).then_some(end)
}
