//! Passes what a full-screen program draws to the terminal of a person who uses it, and nothing that reaches beyond the
//! program's screen. The terminal is repaired afterwards.
//!
//! The terminal has rows below the program's that belong to the host. No sequence places the cursor there, scrolling
//! stays within the program's rows, the host's bar is shown by its code point, and [`FullScreenFilter::take_spoilt`]
//! says when the host's rows must be drawn again: after an erasure; after anything that is drawn while the program
//! scrolls fewer rows than it has, because a line feed below these leads to the next row; and behind a cursor that was
//! saved there. Dropped are all string sequences (titles, the clipboard, images), a full reset, and questions to the
//! terminal, but for those whose answer only says where the cursor is and which terminal it is: programs wait for
//! these, and read the answers. Mouse, focus and paste reports pass.
//!
//! Invariant: whatever the program switched is switched back by [`FullScreenFilter::end`].

use super::raw::RawFilter;
use crate::text::csi::{self, Csi};
use crate::text::hidden;
use crate::text::parser::{Parser, Sink};

/// The private modes that pass: cursor keys, reverse video, wrapping, the cursor's look, the saved cursor, output in one go
/// (2026), and the reports of mouse, focus and pasted text. The host switches the alternate screen, and origin and the left
/// and right margins would lead beyond the program's rows or columns.
const MODES: [u16; 16] = [1, 5, 7, 12, 25, 45, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1048, 2004, 2026];

/// Of these, the one that saves the cursor and puts it back.
const SAVED_CURSOR: u16 = 1048;

/// The filter of one program.
#[derive(Debug)]
pub struct FullScreenFilter {
    parser: Parser,
    passed: Passed,
    repair: RawFilter,
}

#[derive(Debug, Default)]
struct Passed {
    /// The rows below the program's may have been erased or drawn over.
    is_spoilt: bool,
    rows: u16,
    /// The last row that scrolls.
    bottom: u16,
    /// Fewer rows scrolled once than the program has, so that it may have saved a cursor below its rows.
    has_narrowed: bool,
    /// The cursor was put back where it was saved, and not placed since.
    is_astray: bool,
    out: Vec<u8>,
}

impl FullScreenFilter {
    /// The filter for a program that has the terminal's first rows, this many.
    #[must_use]
    pub fn new(rows: u16) -> Self {
        let passed = Passed { rows, bottom: rows, ..Passed::default() };
        Self { parser: Parser::default(), passed, repair: RawFilter::new() }
    }

    /// Whether what passed since the last call may have reached the rows below the program's.
    pub fn take_spoilt(&mut self) -> bool {
        std::mem::take(&mut self.passed.is_spoilt)
    }

    /// The program has this many rows from now on.
    pub fn resize(&mut self, rows: u16) {
        (self.passed.rows, self.passed.bottom) = (rows, rows);
    }

    /// Takes output, and appends what may be shown.
    pub fn push(&mut self, output: &[u8], out: &mut Vec<u8>) {
        self.passed.is_spoilt |= self.passed.bottom < self.passed.rows || self.passed.is_astray;
        self.parser.push(output, &mut self.passed);
        self.passed.is_spoilt |= self.passed.is_astray;
        self.repair.push(&self.passed.out, out);
        self.passed.out.clear();
    }

    /// Switches back what the program switched, and moves the cursor to a fresh line.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.repair.end_block(out);
    }
}

impl Passed {
    fn put_csi(&mut self, body: &[u8], last: u8) {
        self.out.extend_from_slice(b"\x1b[");
        self.out.extend_from_slice(body);
        self.out.push(last);
    }

    fn set_margins(&mut self, top: u16, bottom: u16) {
        let bottom = if bottom == 0 { self.rows } else { bottom.min(self.rows) };
        let top = top.max(1);
        // Terminals differ in what they make of margins without a row between them.
        if top < bottom {
            self.bottom = bottom;
            self.has_narrowed |= bottom < self.rows;
            self.is_spoilt |= bottom < self.rows;
            // The cursor goes to the first row.
            self.is_astray = false;
            self.put_csi(format!("{top};{bottom}").as_bytes(), b'r');
        }
    }

    fn set_modes(&mut self, csi: &Csi<'_>, last: u8) {
        for mode in csi.values().filter(|mode| MODES.contains(mode)).collect::<Vec<_>>() {
            self.is_astray |= mode == SAVED_CURSOR && last == b'l' && self.has_narrowed;
            self.put_csi(format!("?{mode}").as_bytes(), last);
        }
    }

    /// The program moves the cursor to a place: the nearest one within its rows.
    fn place(&mut self, csi: &Csi<'_>, last: u8) {
        self.is_astray = false;
        let row = csi.count(0).min(self.rows);
        match last {
            b'd' => self.put_csi(row.to_string().as_bytes(), last),
            _ => self.put_csi(format!("{row};{}", csi.count(1)).as_bytes(), last),
        }
    }
}

impl Sink for Passed {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        hidden::show(run, false, &mut self.out);
    }

    fn control(&mut self, byte: u8) {
        if csi::draws(byte) {
            self.out.push(byte);
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        // The alignment pattern fills the whole screen.
        let fills = (intermediates, last) == (b"#", b'8');
        if csi::escape_draws(intermediates, last) && !fills {
            self.is_astray |= last == b'8' && intermediates.is_empty() && self.has_narrowed;
            self.out.push(0x1b);
            self.out.extend_from_slice(intermediates);
            self.out.push(last);
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h' | b'l') => self.set_modes(&csi, last),
            (None, [], b'h' | b'l') => {
                let modes: Vec<u16> = csi.values().filter(|mode| matches!(mode, 4 | 20)).collect();
                modes.iter().for_each(|mode| self.put_csi(mode.to_string().as_bytes(), last));
            }
            (None, [], b'r') => self.set_margins(csi.value(0), csi.value(1)),
            (None, [], b'H' | b'd' | b'f') => self.place(&csi, last),
            // Unlike this one, a move down ends at the lower margin on every terminal.
            (None, [], b'e') => self.put_csi(body, b'B'),
            (None, [], b'n') if matches!(csi.value(0), 5 | 6) => self.put_csi(body, last),
            (None | Some(b'>'), [], b'c') => self.put_csi(body, last),
            // With more numbers than one this is another function of old terminals.
            (None, [], b'T') if csi.values().count() > 1 => {}
            // The scrollback is the human's.
            (_, [], b'J') if csi.value(0) == 3 => {}
            (None | Some(b'?'), [], b'J') => {
                self.is_spoilt = true;
                self.put_csi(body, last);
            }
            (None, [], b'u') => {
                self.is_astray |= self.has_narrowed;
                self.put_csi(body, last);
            }
            (None, [], b'@'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'Z' | b'`' | b'a' | b'b' | b'g')
            | (None, [], b'm' | b's')
            | (Some(b'?'), [], b'K')
            | (None, [b' '], b'q') => self.put_csi(body, last),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_a_person_uses_never_reaches_the_hosts_row() {
        let shown = |output: &str| {
            let mut filter = FullScreenFilter::new(23);
            let mut out = Vec::new();
            output.as_bytes().chunks(1).for_each(|byte| filter.push(byte, &mut out));
            let out = String::from_utf8(out).unwrap().replace("\x1b[22;0t", "").replace('\x1b', "^");
            (out, filter.take_spoilt())
        };
        for (output, expected) in [
            ("\x1b[24;5Hx\x1b[99dy\x1b[Hz\x1b[;7f", "^[23;5Hx^[23dy^[1;1Hz^[1;7f"),
            ("\x1b[5;24r\x1b[r\x1b[30;40r\x1b[9;2r\x1b[99e", "^[5;23r^[1;23r^[99B"),
            ("▌ your keys\u{202e}", "⟨258C⟩ your keys⟨202E⟩"),
            ("\x1b[?1049h\x1b[?47l\x1b[?6h\x1b[?69h\x1b[?25l\x1b[?1006h", "^[?25l^[?1006h"),
            ("\x1b#8\x1bc\x1b[!p\x1b]0;title\x07\x1b]52;c;QQ==\x07\x1b]777;notify;a;b\x07\x1b]9;a\x1b\\\x07", ""),
            ("\x1bP+q544e\x1b\\\x1b_Gx\x1b\\\x1b[21t\x1b[2h\x1b[4;2h\x1b[1;2;3;4;5T", "^[4h"),
            ("\x1b[6n\x1b[c\x1b[>c\x1b[?6n\x1b[15n", "^[6n^[c^[>c"),
        ] {
            assert_eq!(shown(output), (expected.to_owned(), false), "{output:?}");
        }
        for erases in ["\x1b[J", "\x1b[2J", "\x1b[?1J"] {
            assert_eq!(shown(erases), (erases.replace('\x1b', "^"), true));
        }
        // A cursor that was saved below the program's rows is put back there.
        for (save, restore) in [("\x1b7", "\x1b8"), ("\x1b[s", "\x1b[u"), ("\x1b[?1048h", "\x1b[?1048l")] {
            let mut filter = FullScreenFilter::new(23);
            let mut out = Vec::new();
            let mut is_spoilt = |output: &str| {
                filter.push(output.as_bytes(), &mut out);
                filter.take_spoilt()
            };
            assert!(is_spoilt(&format!("\x1b[2;9r\x1b[23H\n{save}")));
            assert!(is_spoilt(&format!("\x1b[r{restore}")) && is_spoilt("drawn"));
            assert!(is_spoilt("\x1b[H") && !is_spoilt("drawn"));
        }
        // Below the rows that scroll, a line feed goes on to the next row.
        assert_eq!(shown("\x1b[2;9r\x1b[23Hx\ny"), ("^[2;9r^[23;1Hx\ny".to_owned(), true));
    }

    #[test]
    fn the_terminal_is_repaired() {
        let mut filter = FullScreenFilter::new(24);
        let mut out = Vec::new();
        filter.push(b"\x1b[2;9r\x1b[?25l\x1b[31mdraws", &mut out);
        out.clear();
        filter.end(&mut out);
        let out = String::from_utf8(out).unwrap();
        for part in ["\x1b[?25h", "\x1b[r", "\x1b[0m"] {
            assert!(out.contains(part), "{part:?} is not in {out:?}");
        }
    }
}
