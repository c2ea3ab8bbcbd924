//! The console that passes every byte, and repairs the terminal afterwards.
//!
//! [`RawFilter`] only watches: which modes a run switched on, and whether it took the cursor away. Blindly resetting
//! everything would do harm, because resetting margins or the origin mode sends the cursor home; so only what was
//! touched is reset, and then the cursor goes to the last line.

use crate::text::csi::Csi;
use crate::text::parser::{Parser, Sink};

/// Resets every mode this module knows, for the one who does not know what was touched. Leaves the cursor on a fresh
/// line at the bottom.
pub const RAW_RESET: &[u8] = b"\x18\x1b\\\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\
\x1b[?1015l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[4l\x1b[?7h\x1b[?6l\x1b[r\x1b>\x1b[?1l\x1b(B\x0f\x1b[0m\x1b[999;1H\r\n";

const START: &[u8] = b"\x18\x1b\\";
const END: &[u8] = b"\x1b[0m";
const TO_BOTTOM: &[u8] = b"\x1b[999;1H";

/// What can be dirty, in the order in which it is reset.
const RESETS: [(Touched, &[u8]); 18] = [
    (Touched::Private(1049), b"\x1b[?1049l"),
    (Touched::Private(25), b"\x1b[?25h"),
    (Touched::Private(1000), b"\x1b[?1000l"),
    (Touched::Private(1002), b"\x1b[?1002l"),
    (Touched::Private(1003), b"\x1b[?1003l"),
    (Touched::Private(1005), b"\x1b[?1005l"),
    (Touched::Private(1006), b"\x1b[?1006l"),
    (Touched::Private(1015), b"\x1b[?1015l"),
    (Touched::Private(1004), b"\x1b[?1004l"),
    (Touched::Private(2004), b"\x1b[?2004l"),
    (Touched::Private(2026), b"\x1b[?2026l"),
    (Touched::Insert, b"\x1b[4l"),
    (Touched::Private(7), b"\x1b[?7h"),
    (Touched::Private(6), b"\x1b[?6l"),
    (Touched::Margins, b"\x1b[r"),
    (Touched::Keypad, b"\x1b>"),
    (Touched::Private(1), b"\x1b[?1l"),
    (Touched::Charset, b"\x1b(B\x0f"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    Private(u16),
    Insert,
    Margins,
    Keypad,
    Charset,
}

/// The watcher of one run; see the module's text.
#[derive(Debug, Default)]
pub struct RawFilter {
    parser: Parser,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Seen {
    /// One bit for each entry of [`RESETS`].
    dirty: u32,
    /// The cursor may be anywhere on the screen.
    moved: bool,
    in_line: bool,
}

impl RawFilter {
    /// A filter at the start of a block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the next bytes as they are.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.parser.push(input, &mut self.seen);
        out.extend_from_slice(input);
    }

    /// Ends the block: resets what was touched, with the cursor on a fresh line afterwards.
    pub fn end_block(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(START);
        for (at, (_, reset)) in RESETS.iter().enumerate() {
            if self.seen.dirty & 1 << at != 0 {
                out.extend_from_slice(reset);
            }
        }
        out.extend_from_slice(END);
        if self.seen.moved {
            out.extend_from_slice(TO_BOTTOM);
        }
        if self.seen.moved || self.seen.in_line {
            out.extend_from_slice(b"\r\n");
        }
        *self = Self::default();
    }

    /// Whether the block could end here without cutting a line, a character or a sequence in two.
    pub fn at_line_start(&self) -> bool {
        self.parser.is_at_rest() && !self.seen.in_line && !self.seen.moved
    }
}

impl Seen {
    fn touch(&mut self, what: Touched) {
        if let Some(at) = RESETS.iter().position(|(known, _)| *known == what) {
            self.dirty |= 1 << at;
        }
        self.moved |= matches!(what, Touched::Private(6 | 1049) | Touched::Margins);
    }
}

impl Sink for Seen {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        self.in_line = !run.ends_with(b"\n");
    }

    fn control(&mut self, byte: u8) {
        match byte {
            0x0B | 0x0C => self.in_line = false,
            0x0E | 0x0F => self.touch(Touched::Charset),
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            ([], b'=' | b'>') => self.touch(Touched::Keypad),
            ([b'(' | b')' | b'*' | b'+' | b'-' | b'.' | b'/' | b'%', ..], _)
            | ([], b'n' | b'o' | b'|' | b'}' | b'~') => {
                self.touch(Touched::Charset);
            }
            ([], b'8' | b'D' | b'M' | b'c') => self.moved = true,
            _ => {}
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h' | b'l' | b'r') => {
                for mode in csi.values() {
                    // The three ways into the other screen have one way out.
                    self.touch(Touched::Private(if matches!(mode, 47 | 1047) { 1049 } else { mode }));
                }
            }
            (None, [], b'h' | b'l') if csi.values().any(|mode| mode == 4) => self.touch(Touched::Insert),
            (None, [], b'r') => self.touch(Touched::Margins),
            (None, [], b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'e' | b'f' | b'k' | b'u' | b'J') => self.moved = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(input: &[u8]) -> String {
        let mut filter = RawFilter::new();
        let mut out = Vec::new();
        filter.push(input, &mut out);
        assert_eq!(out, input);
        out.clear();
        filter.end_block(&mut out);
        String::from_utf8(out).unwrap().replace('\x1b', "^")
    }

    #[test]
    fn only_what_was_touched_is_reset() {
        assert_eq!(after(b"text\n"), "\x18^\\^[0m");
        assert_eq!(after(b"text"), "\x18^\\^[0m\r\n");
        assert_eq!(after(b"\x1b[?25l\n"), "\x18^\\^[?25h^[0m");
        assert_eq!(after(b"\x1b[?1049h\x1b[?2004h"), "\x18^\\^[?1049l^[?2004l^[0m^[999;1H\r\n");
        assert_eq!(after(b"\x1b[2;8r\x1b(0"), "\x18^\\^[r^(B\x0f^[0m^[999;1H\r\n");
        assert_eq!(after(b"\x1b[2A"), "\x18^\\^[0m^[999;1H\r\n");
    }

    #[test]
    fn the_constant_is_every_reset_in_order() {
        let parts: Vec<u8> = RESETS.iter().flat_map(|(_, reset)| reset.iter().copied()).collect();
        assert_eq!([START, &parts, END, TO_BOTTOM, b"\r\n"].concat(), RAW_RESET);
    }
}
