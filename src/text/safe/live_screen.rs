//! Passes what a full-screen program draws to the terminal of a person who uses it, but for its last rows, which are the
//! host's.
//!
//! The host has set the margins (DECSTBM) around the program's rows and the cursor between them. No sequence then leads out
//! of them: places are clamped, and dropped are origin mode, left and right margins, wrapping backwards, resets, and all
//! that fills the screen. Where a sequence erases beyond the program's rows, [`LiveScreenFilter::take_spoilt`] says that the
//! host's rows must be drawn again. So it does for all that follows once the program has scrolled fewer rows than it has,
//! because a line feed below these leads on.
//!
//! Dropped are all string sequences (titles, the clipboard, notifications, images), the bell, and questions to the
//! terminal, but for those whose answer only says where the cursor is and which terminal it is: programs wait for these,
//! and read the answers. Reports of the mouse, the focus and pastes pass.
//!
//! Invariant: whatever the program switched is switched back by [`LiveScreenFilter::end`].

use super::raw::RawFilter;
use crate::text::csi::{self, Csi};
use crate::text::hidden;
use crate::text::parser::{Parser, Sink};

/// The private modes that pass: cursor keys, reverse video, wrapping, the cursor's look, the saved cursor, output in one go
/// (2026), and the reports of mouse, focus and pasted text. The host switches the alternate screen.
const MODES: [u16; 15] = [1, 5, 7, 12, 25, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1048, 2004, 2026];
/// The other modes that pass: insertion, and what a line feed does to the column.
const ANSI_MODES: [u16; 2] = [4, 20];

/// The filter of one program.
#[derive(Debug)]
pub struct LiveScreenFilter {
    parser: Parser,
    passed: Passed,
    repair: RawFilter,
}

#[derive(Debug)]
struct Passed {
    /// The program's rows.
    rows: u16,
    /// Fewer rows scrolled once, so the cursor, or one that is saved, may be below the program's rows.
    has_narrowed: bool,
    /// The host's rows may have been erased or drawn over.
    is_spoilt: bool,
    out: Vec<u8>,
}

impl LiveScreenFilter {
    /// The filter for a program that has the terminal's first rows, this many.
    #[must_use]
    pub fn new(rows: u16) -> Self {
        let passed = Passed { rows, has_narrowed: false, is_spoilt: false, out: Vec::new() };
        Self { parser: Parser::default(), passed, repair: RawFilter::new() }
    }

    /// The program has this many rows from now on, and the host has set margins and cursor again.
    pub fn resize(&mut self, rows: u16) {
        (self.passed.rows, self.passed.has_narrowed) = (rows, false);
    }

    /// Takes output, and appends what may be shown.
    pub fn push(&mut self, output: &[u8], out: &mut Vec<u8>) {
        self.parser.push(output, &mut self.passed);
        self.passed.is_spoilt |= self.passed.has_narrowed && !self.passed.out.is_empty();
        self.repair.push(&self.passed.out, out);
        self.passed.out.clear();
    }

    /// Whether what passed since the last call may have reached the host's rows.
    pub fn take_spoilt(&mut self) -> bool {
        std::mem::take(&mut self.passed.is_spoilt)
    }

    /// Switches back what the program switched, and moves the cursor to a fresh line.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.repair.end_block(out);
    }
}

impl Passed {
    fn set_margins(&mut self, top: u16, bottom: u16) {
        let bottom = if bottom == 0 { self.rows } else { bottom.min(self.rows) };
        let top = top.max(1);
        // Terminals differ in what they make of margins without a row between them.
        if top < bottom {
            self.has_narrowed |= bottom < self.rows;
            csi::put(format!("{top};{bottom}").as_bytes(), b'r', &mut self.out);
        }
    }

    fn set_modes(&mut self, prefix: &str, known: &[u16], csi: &Csi<'_>, last: u8) {
        for mode in csi.values().filter(|mode| known.contains(mode)) {
            csi::put(format!("{prefix}{mode}").as_bytes(), last, &mut self.out);
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
        // Lines of double size stay so when something else is written there, and the alignment pattern fills the screen.
        if csi::escape_draws(intermediates, last) && intermediates != b"#" {
            csi::put_escape(intermediates, last, &mut self.out);
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h' | b'l') => self.set_modes("?", &MODES, &csi, last),
            (None, [], b'h' | b'l') => self.set_modes("", &ANSI_MODES, &csi, last),
            (None, [], b'r') => self.set_margins(csi.value(0), csi.value(1)),
            (None, [], b'H' | b'f') => {
                csi::put(format!("{};{}", csi.count(0).min(self.rows), csi.count(1)).as_bytes(), last, &mut self.out);
            }
            (None, [], b'd') => csi::put(csi.count(0).min(self.rows).to_string().as_bytes(), last, &mut self.out),
            // Unlike this one, a move down ends at the lower margin on every terminal.
            (None, [], b'e') => csi::put(body, b'B', &mut self.out),
            (None, [], b'n') if matches!(csi.value(0), 5 | 6) => csi::put(body, last, &mut self.out),
            (None | Some(b'>'), [], b'c') => csi::put(body, last, &mut self.out),
            // With more numbers than one this is another function of old terminals.
            (None, [], b'T') if csi.values().count() > 1 => {}
            // The scrollback is the human's.
            (None | Some(b'?'), [], b'J') if csi.value(0) != 3 => {
                self.is_spoilt = true;
                csi::put(body, last, &mut self.out);
            }
            (None, [], b'@'..=b'I' | b'K'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'Z' | b'`' | b'a' | b'b' | b'g')
            | (None, [], b'm' | b's' | b'u')
            | (Some(b'?'), [], b'K')
            | (None, [b' '], b'q') => csi::put(body, last, &mut self.out),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes, byte by byte, and whether the host's rows are drawn again behind it.
    fn shown(output: &str) -> (String, bool) {
        let mut filter = LiveScreenFilter::new(23);
        let mut out = Vec::new();
        output.as_bytes().chunks(1).for_each(|byte| filter.push(byte, &mut out));
        (String::from_utf8(out).unwrap().replace("\x1b[22;0t", "").replace('\x1b', "^"), filter.take_spoilt())
    }

    #[test]
    fn no_sequence_leads_to_the_hosts_rows() {
        for (output, expected) in [
            ("\x1b[5;7Hvi\x1b[1;31m~\x1b[m\r\n\x1b[K", "^[5;7Hvi^[1;31m~^[m\r\n^[K"),
            ("\x1b[24;5Hx\x1b[99dy\x1b[Hz\x1b[;7f", "^[23;5Hx^[23dy^[1;1Hz^[1;7f"),
            ("\x1b[65536;1H\x1b[24:1;1H\x1b[0024d", "^[23;1H^[23;1H^[23d"),
            ("\x1b[5;24r\x1b[r\x1b[30;40r\x1b[9;2r\x1b[99e", "^[5;23r^[1;23r^[99B"),
            ("▌ your keys\u{202e}", "⟨258C⟩ your keys⟨202E⟩"),
            ("\x1b[?1049h\x1b[?47l\x1b[?6h\x1b[?69h\x1b[?45;1045h\x1b[?25;6l\x1b[?1006h", "^[?25l^[?1006h"),
            ("\x1b#8\x1b#6\x1bc\x1b[!p\x1b[2h\x1b[4;2h\x1b[1;2;3;4;5T\x1b[3J\x1b[?3J", "^[4h"),
        ] {
            assert_eq!(shown(output), (expected.to_owned(), false), "{output:?}");
        }
    }

    #[test]
    fn what_may_have_reached_the_hosts_rows_has_them_drawn_again() {
        for erases in ["\x1b[J", "\x1b[2J", "\x1b[?1J"] {
            assert_eq!(shown(erases), (erases.replace('\x1b', "^"), true));
        }
        // Below the rows that scroll, a line feed goes on to the next row, where a cursor can be saved for later.
        let mut filter = LiveScreenFilter::new(23);
        let mut is_spoilt = |output: &str| {
            filter.push(output.as_bytes(), &mut Vec::new());
            filter.take_spoilt()
        };
        assert!(!is_spoilt("\x1b[2;23r\x1b[23Hx\ny"));
        assert!(is_spoilt("\x1b[2;9r\x1b[23Hx\n\x1b7") && is_spoilt("drawn") && !is_spoilt(""));
        assert!(is_spoilt("\x1b[r\x1b8") && is_spoilt("drawn"));
        filter.resize(30);
        filter.push(b"drawn", &mut Vec::new());
        assert!(!filter.take_spoilt());
    }

    #[test]
    fn nothing_reaches_beyond_the_screen() {
        for beyond in [
            "\x1b]0;title\x07",
            "\x1b]52;c;QQ==\x07",
            "\x1b]777;notify;a;b\x07",
            "\x1b]9;a\x1b\\",
            "\x1bP+q544e\x1b\\",
            "\x1b_Gx\x1b\\",
            "\x1b[8;10;10t",
            "\x1b[21t",
            "\x1b[?6n\x1b[15n\x1b[=c\x1b[x\x1b[>q\x1b[?u\x1b[?25$p\x05\x1bZ",
            "\x1b[5i",
            "\x07",
        ] {
            assert_eq!(shown(beyond), (String::new(), false), "{beyond:?}");
        }
        assert_eq!(shown("\x1b[6n\x1b[c\x1b[>c").0, "^[6n^[c^[>c", "programs wait for the answers");
    }

    #[test]
    fn the_terminal_is_repaired() {
        let mut filter = LiveScreenFilter::new(24);
        let mut out = Vec::new();
        filter.push(b"\x1b[2;9r\x1b[?25l\x1b[?1003h\x1b[31mdraws", &mut out);
        out.clear();
        filter.end(&mut out);
        let out = String::from_utf8(out).unwrap();
        for part in ["\x1b[?25h", "\x1b[r", "\x1b[?1003l", "\x1b[0m"] {
            assert!(out.contains(part), "{part:?} is not in {out:?}");
        }
    }
}
