//! Passes every byte to the terminal, and repairs the terminal afterwards.
//!
//! [`RawFilter`] records which modes a run changed, and whether it moved the cursor. Only changed modes are reset, because
//! resetting margins or the origin mode moves the cursor, and resetting colours loses the human's; then the cursor goes to
//! the last line. The title is saved beforehand, because it cannot be restored otherwise.

use crate::text::csi::Csi;
use crate::text::parser::{Parser, Sink};

const KEEP_TITLE: &[u8] = b"\x1b[22;0t";
const START: &[u8] = b"\x18\x1b\\";
const END: &[u8] = b"\x1b[23;0t\x1b[0m";
const TO_BOTTOM: &[u8] = b"\x1b[999;1H";

/// The changes that are reset, in this order.
const RESETS: [(Touched, &[u8]); 38] = [
    (Touched::Private(1049), b"\x1b[?1049l"),
    (Touched::Private(25), b"\x1b[?25h"),
    (Touched::Private(9), b"\x1b[?9l"),
    (Touched::Private(1000), b"\x1b[?1000l"),
    (Touched::Private(1002), b"\x1b[?1002l"),
    (Touched::Private(1003), b"\x1b[?1003l"),
    (Touched::Private(1005), b"\x1b[?1005l"),
    (Touched::Private(1006), b"\x1b[?1006l"),
    (Touched::Private(1015), b"\x1b[?1015l"),
    (Touched::Private(1016), b"\x1b[?1016l"),
    (Touched::Private(1004), b"\x1b[?1004l"),
    (Touched::Private(2004), b"\x1b[?2004l"),
    (Touched::Private(2026), b"\x1b[?2026l"),
    (Touched::Private(2031), b"\x1b[?2031l"),
    (Touched::Private(2048), b"\x1b[?2048l"),
    (Touched::Private(5), b"\x1b[?5l"),
    (Touched::Private(7), b"\x1b[?7h"),
    (Touched::Private(6), b"\x1b[?6l"),
    (Touched::Private(69), b"\x1b[?69l"),
    (Touched::Margins, b"\x1b[r"),
    (Touched::Mode(2), b"\x1b[2l"),
    (Touched::Mode(4), b"\x1b[4l"),
    (Touched::Mode(12), b"\x1b[12h"),
    (Touched::Mode(20), b"\x1b[20l"),
    (Touched::Keypad, b"\x1b>"),
    (Touched::Private(1), b"\x1b[?1l"),
    (Touched::ModifiedKeys, b"\x1b[>4m"),
    (Touched::KittyKeys, b"\x1b[=0u\x1b[<99u"),
    (Touched::Charset, b"\x1b(B\x0f"),
    (Touched::Coding, b"\x1b%G"),
    (Touched::CursorShape, b"\x1b[0 q"),
    (Touched::Tabs, b"\x1b[?5W"),
    (Touched::Osc(4), b"\x1b]104\x1b\\"),
    (Touched::Osc(8), b"\x1b]8;;\x1b\\"),
    (Touched::Osc(10), b"\x1b]110\x1b\\"),
    (Touched::Osc(11), b"\x1b]111\x1b\\"),
    (Touched::Osc(12), b"\x1b]112\x1b\\"),
    (Touched::Osc(22), b"\x1b]22;\x1b\\"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    /// `CSI ? n h` or its like.
    Private(u16),
    /// `CSI n h` or its like.
    Mode(u16),
    Osc(u32),
    Margins,
    Keypad,
    ModifiedKeys,
    KittyKeys,
    Charset,
    Coding,
    CursorShape,
    Tabs,
}

#[derive(Debug, Default)]
pub struct RawFilter {
    parser: Parser,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Seen {
    /// One bit for each entry of [`RESETS`].
    dirty: u64,
    has_title_kept: bool,
    /// The cursor may be anywhere.
    moved: bool,
    in_line: bool,
}

impl RawFilter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the next bytes unchanged.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.seen.has_title_kept, true) {
            out.extend_from_slice(KEEP_TITLE);
        }
        self.parser.push(input, &mut self.seen);
        out.extend_from_slice(input);
    }

    /// Ends the block: resets what was changed, and moves the cursor to a fresh line.
    pub fn end_block(&mut self, out: &mut Vec<u8>) {
        if !self.seen.has_title_kept {
            return;
        }
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

    /// Returns true if the block can end here without splitting a line, a character or a sequence.
    pub fn at_line_start(&self) -> bool {
        self.parser.is_at_rest() && !self.seen.in_line && !self.seen.moved
    }
}

/// The sequences that repair a terminal whose changes nobody recorded: they reset the modes that make it useless to a
/// shell.
#[must_use]
pub fn repairs() -> Vec<u8> {
    let is_harmful = |what: Touched| match what {
        Touched::Private(mode) => ![6, 69, 1049].contains(&mode),
        Touched::Mode(mode) => mode == 4,
        Touched::Keypad | Touched::ModifiedKeys | Touched::KittyKeys | Touched::Charset => true,
        Touched::Osc(_) | Touched::Margins | Touched::Coding | Touched::CursorShape | Touched::Tabs => false,
    };
    let resets = RESETS.iter().filter(|(what, _)| is_harmful(*what)).flat_map(|(_, reset)| *reset);
    START.iter().chain(resets).chain(b"\x1b[0m").copied().collect()
}

impl Seen {
    fn touch(&mut self, what: Touched) {
        if let Some(at) = RESETS.iter().position(|(known, _)| *known == what) {
            self.dirty |= 1 << at;
        }
        self.moved |= matches!(what, Touched::Private(6 | 69 | 1049) | Touched::Margins);
    }

    fn private_mode(&mut self, mode: u16) {
        self.touch(match mode {
            // These modes enter the same screen.
            47 | 1047 => Touched::Private(1049),
            66 => Touched::Keypad,
            _ => Touched::Private(mode),
        });
    }

    /// Records a soft or hard reset, whose effects differ between terminals.
    fn reset(&mut self) {
        for what in [Touched::Private(25), Touched::Private(7)] {
            self.touch(what);
        }
        self.moved = true;
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
            ([b'%', ..], _) => self.touch(Touched::Coding),
            ([b'(' | b')' | b'*' | b'+' | b'-' | b'.' | b'/', ..], _) | ([], b'n' | b'o' | b'|' | b'}' | b'~') => {
                self.touch(Touched::Charset);
            }
            ([], b'H') => self.touch(Touched::Tabs),
            ([], b'c') => self.reset(),
            ([], b'8' | b'D' | b'M') | ([b'#'], b'8') => self.moved = true,
            _ => {}
        }
    }

    fn osc(&mut self, number: u32) {
        self.touch(Touched::Osc(number));
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h' | b'l' | b'r') => csi.values().for_each(|mode| self.private_mode(mode)),
            (Some(b'?'), [], b'W') => self.touch(Touched::Tabs),
            (Some(b'>'), [], b'm' | b'n') => self.touch(Touched::ModifiedKeys),
            (Some(b'>' | b'=' | b'<'), [], b'u') => self.touch(Touched::KittyKeys),
            (None, [b' '], b'q') => self.touch(Touched::CursorShape),
            (None, [b'!'], b'p') => self.reset(),
            (None, [], b'h' | b'l') => csi.values().for_each(|mode| self.touch(Touched::Mode(mode))),
            (None, [], b'g' | b'W') => self.touch(Touched::Tabs),
            (None, [], b'r') => self.touch(Touched::Margins),
            (None, [], b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'e' | b'f' | b'k' | b'u' | b'J' | b'L' | b'M') => {
                self.moved = true;
            }
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
        assert_eq!(out, [KEEP_TITLE, input].concat());
        out.clear();
        filter.end_block(&mut out);
        let end = String::from_utf8(out).unwrap();
        let end = end.strip_prefix("\x18\x1b\\").expect("it begins with the end of anything unfinished");
        end.replace("\x1b[23;0t\x1b[0m", "|").replace('\x1b', "^")
    }

    #[test]
    fn only_what_was_touched_is_reset() {
        for (input, expected) in [
            (&b"text\n"[..], "|"),
            (b"text", "|\r\n"),
            (b"\x1b[?25l\n", "^[?25h|"),
            (b"\x1b[?1049h\x1b[?2004h", "^[?1049l^[?2004l|^[999;1H\r\n"),
            (b"\x1b[2;8r\x1b(0", "^[r^(B\x0f|^[999;1H\r\n"),
            (b"\x1b[2A", "|^[999;1H\r\n"),
            (b"\x1b]4;1;#000\x07\x1b]8;;x\x1b\\\n", "^]104^\\^]8;;^\\|"),
            (b"\x1b]0;title\x07\x1b]52;c;QUJD\x07", "|"),
            (b"\x1b[20;4h\x1b[3 q\x1b[>1u\x1b[>4;2m", "^[4l^[20l^[>4m^[=0u^[<99u^[0 q|"),
            (b"\x1b#8", "|^[999;1H\r\n"),
        ] {
            assert_eq!(after(input), expected, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn a_turn_without_output_leaves_the_terminal_alone() {
        let mut out = Vec::new();
        RawFilter::new().end_block(&mut out);
        assert_eq!(out, b"");
    }
}
