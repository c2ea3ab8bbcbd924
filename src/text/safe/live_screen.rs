//! Passes a full-screen program's drawing to the terminal of the person who uses it, except the terminal's last rows:
//! they are the host's.
//!
//! The host has set the margins (DECSTBM) around the program's rows and the cursor between them. No sequence then leads
//! out of them: the filter clamps places, and drops origin mode, left and right margins, wrapping backwards, resets,
//! and everything that fills the screen. If a sequence erases beyond the program's rows, the filter draws the host's
//! row again. It also does so after all output once the program has scrolled fewer rows than it has, because a line
//! feed below these leads on.
//!
//! A terminal keeps one cursor (DECSC), which may be the program's. So the host's row is drawn where the way back is
//! known: if the cursor's place is known, or before a sequence that moves the cursor to an absolute place. Only if
//! neither comes before the output pauses, the host's cursor is saved in place of the program's.
//!
//! Dropped are all string sequences (titles, the clipboard, notifications, images), the bell, and questions to the
//! terminal, except those whose answer only has the cursor's place or the terminal's kind: programs wait for these, and
//! read the answers. Reports of the mouse, the focus and pastes pass.
//!
//! Invariant: [`LiveScreenFilter::end`] switches back every mode that the program switched.

use super::raw::RawFilter;
use crate::text::csi::{self, Csi};
use crate::text::hidden;
use crate::text::parser::{Parser, Sink};

/// The private modes that pass: cursor keys, reverse video, wrapping, the cursor's look, the saved cursor, output in one go
/// (2026), and the reports of mouse, focus and pasted text. The host switches the alternate screen.
const MODES: [u16; 15] = [1, 5, 7, 12, 25, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1048, 2004, 2026];
/// The other modes that pass: insertion, and what a line feed does to the column.
const ANSI_MODES: [u16; 2] = [4, 20];
/// Takes the second character set into use, or the first one again.
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

#[derive(Debug)]
pub struct LiveScreenFilter {
    parser: Parser,
    passed: Passed,
    repair: RawFilter,
}

/// The state that a terminal keeps with a cursor beside its place, if the host's row changes it: the first character
/// set, the use of the second one, and the colours.
#[derive(Debug, Clone)]
struct Pen {
    set: u8,
    is_shifted: bool,
    /// Each kind of rendition that was set or reset since all were, as the numbers that did it, the latest last.
    rendition: Vec<(u16, Vec<u8>)>,
}

#[derive(Debug)]
struct Passed {
    /// The program's rows and columns.
    size: (u16, u16),
    /// The bytes that draw the host's row. They leave the cursor there, and usual characters and colours.
    host_row: Vec<u8>,
    /// Fewer rows scrolled once, so the cursor or a saved one may be below the program's rows.
    has_narrowed: bool,
    /// The host's row may have been erased or drawn over.
    is_spoilt: bool,
    /// Row and column of the cursor, from 1, where they are known.
    place: Option<(u16, u16)>,
    pen: Pen,
    saved: Pen,
    out: Vec<u8>,
}

impl LiveScreenFilter {
    /// The filter for a program that has this many of the terminal's first rows and columns. `host_row` draws the host's row,
    /// and leaves usual characters and colours.
    #[must_use]
    pub fn new(size: (u16, u16), host_row: Vec<u8>) -> Self {
        let passed = Passed {
            size,
            host_row,
            has_narrowed: false,
            is_spoilt: true,
            place: Some((1, 1)),
            pen: Pen::default(),
            saved: Pen::default(),
            out: Vec::new(),
        };
        Self { parser: Parser::default(), passed, repair: RawFilter::new() }
    }

    /// Gives the program this many rows and columns. The host has set margins again, and has put the cursor into the
    /// first place and saved it.
    pub fn resize(&mut self, size: (u16, u16), host_row: Vec<u8>) {
        let saved = self.passed.pen.clone();
        self.passed = Passed { pen: saved.clone(), saved, ..Self::new(size, host_row).passed };
    }

    pub fn push(&mut self, output: &[u8], out: &mut Vec<u8>) {
        self.parser.push(output, &mut self.passed);
        self.passed.is_spoilt |= self.passed.has_narrowed && !self.passed.out.is_empty();
        self.repair.push(&self.passed.out, out);
        self.passed.out.clear();
    }

    /// Draws the host's row if it is due. Call this when the output pauses.
    pub fn pause(&mut self, out: &mut Vec<u8>) {
        let passed = &mut self.passed;
        if !passed.is_spoilt {
            return;
        }
        if passed.place.is_some() {
            passed.draw_host_row();
        } else {
            passed.out.extend_from_slice(b"\x1b7");
            passed.draw_host_row();
            passed.out.extend_from_slice(b"\x1b8");
            passed.saved = passed.pen.clone();
        }
        out.append(&mut passed.out);
    }

    /// Switches back what the program switched, and moves the cursor to a fresh line.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.repair.end_block(out);
    }
}

impl Default for Pen {
    fn default() -> Self {
        Self { set: b'B', is_shifted: false, rendition: Vec::new() }
    }
}

impl Pen {
    fn render(&mut self, csi: &Csi<'_>) {
        let mut numbers = csi.params.split(|&byte| byte == b';');
        while let Some(first) = numbers.next() {
            let number = csi::first_number(first);
            let mut text = first.to_vec();
            if matches!(number, 38 | 48 | 58) && !first.contains(&b':') {
                let how = numbers.next().unwrap_or_default();
                let more = if csi::first_number(how) == 2 { 3 } else { 1 };
                for part in std::iter::once(how).chain(numbers.by_ref().take(more)) {
                    text.push(b';');
                    text.extend_from_slice(part);
                }
            }
            let kind = match number {
                0 => {
                    self.rendition.clear();
                    continue;
                }
                30..=39 | 90..=97 => 39,
                40..=49 | 100..=107 => 49,
                58 | 59 => 59,
                // Unknown ones have no effect.
                other if other < 80 => other,
                _ => continue,
            };
            self.rendition.retain(|(other, _)| *other != kind);
            self.rendition.push((kind, text));
        }
    }

    /// Appends the sequences that restore this pen after usual characters and colours.
    fn take_up(&self, out: &mut Vec<u8>) {
        if self.set != b'B' {
            csi::put_escape(b"(", self.set, out);
        }
        if self.is_shifted {
            out.push(SHIFT_OUT);
        }
        if !self.rendition.is_empty() {
            let all: Vec<&[u8]> = self.rendition.iter().map(|(_, text)| text.as_slice()).collect();
            csi::put(&all.join(&b';'), b'm', out);
        }
    }
}

impl Passed {
    fn set_margins(&mut self, top: u16, bottom: u16) {
        let rows = self.size.0;
        let bottom = if bottom == 0 { rows } else { bottom.min(rows) };
        let top = top.max(1);
        // Terminals differ in what they make of margins without a row between them.
        if top < bottom {
            self.has_narrowed |= bottom < rows;
            csi::put(format!("{top};{bottom}").as_bytes(), b'r', &mut self.out);
            self.place = Some((1, 1));
        }
    }

    fn set_modes(&mut self, prefix: &str, known: &[u16], csi: &Csi<'_>, last: u8) {
        for mode in csi.values().filter(|mode| known.contains(mode)) {
            match (prefix, mode, last) {
                ("?", 1048, b'h') => self.saved = self.pen.clone(),
                ("?", 1048, _) => self.before_restoring(),
                _ => {}
            }
            csi::put(format!("{prefix}{mode}").as_bytes(), last, &mut self.out);
        }
    }

    /// Draws the host's row, and returns to the cursor's place if that is known.
    fn draw_host_row(&mut self) {
        self.is_spoilt = false;
        self.out.extend_from_slice(&self.host_row);
        if let Some((row, column)) = self.place {
            csi::put(format!("{row};{column}").as_bytes(), b'H', &mut self.out);
        }
        self.pen.take_up(&mut self.out);
    }

    /// Draws the host's row if it is due, because the cursor is about to go to an absolute place.
    fn before_leaving(&mut self) {
        if self.is_spoilt {
            self.place = None;
            self.draw_host_row();
        }
    }

    /// Restores the saved cursor's pen.
    fn before_restoring(&mut self) {
        self.before_leaving();
        self.place = None;
        self.pen = self.saved.clone();
    }
}

impl Sink for Passed {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        let columns = u16::try_from(run.len()).ok().filter(|_| run.iter().all(|byte| matches!(byte, b' '..=b'~')));
        // After a full row the cursor waits; a move to its place would not restore that.
        let column = |at: u16| Some(at.checked_add(columns?)?).filter(|&column| column <= self.size.1);
        self.place = self.place.and_then(|(row, at)| Some((row, column(at)?)));
        hidden::show(run, false, &mut self.out);
    }

    fn control(&mut self, byte: u8) {
        if csi::draws(byte) {
            match byte {
                SHIFT_OUT => self.pen.is_shifted = true,
                SHIFT_IN => self.pen.is_shifted = false,
                _ => self.place = None,
            }
            self.out.push(byte);
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        // Lines of double size stay so when something else is written there, and the alignment pattern fills the screen.
        if !csi::escape_draws(intermediates, last) || intermediates == b"#" {
            return;
        }
        match (intermediates, last) {
            (b"(", set) => self.pen.set = set,
            ([], b'7') => self.saved = self.pen.clone(),
            ([], b'8') => self.before_restoring(),
            ([], b'D' | b'E' | b'M') => self.place = None,
            _ => {}
        }
        csi::put_escape(intermediates, last, &mut self.out);
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h' | b'l') => self.set_modes("?", &MODES, &csi, last),
            (None, [], b'h' | b'l') => self.set_modes("", &ANSI_MODES, &csi, last),
            (None, [], b'r') => self.set_margins(csi.value(0), csi.value(1)),
            (None, [], b'H' | b'f') => {
                self.before_leaving();
                let (row, column) = (csi.count(0).min(self.size.0), csi.count(1));
                self.place = Some((row, column.min(self.size.1)));
                csi::put(format!("{row};{column}").as_bytes(), last, &mut self.out);
            }
            (None, [], b'd') => {
                let row = csi.count(0).min(self.size.0);
                self.place = self.place.map(|(_, column)| (row, column));
                csi::put(row.to_string().as_bytes(), last, &mut self.out);
            }
            // Unlike this one, a move down ends at the lower margin on every terminal.
            (None, [], b'e') => {
                self.place = None;
                csi::put(body, b'B', &mut self.out);
            }
            (None, [], b'n') if matches!(csi.value(0), 5 | 6) => csi::put(body, last, &mut self.out),
            (None | Some(b'>'), [], b'c') => csi::put(body, last, &mut self.out),
            // With more numbers than one this is another function of old terminals.
            (None, [], b'T') if csi.values().count() > 1 => {}
            // The scrollback is the human's.
            (None | Some(b'?'), [], b'J') if csi.value(0) != 3 => {
                csi::put(body, last, &mut self.out);
                self.is_spoilt = true;
                if self.place.is_some() {
                    self.draw_host_row();
                }
            }
            (None, [], b'm') => {
                self.pen.render(&csi);
                csi::put(body, last, &mut self.out);
            }
            (None, [], b's') => {
                self.saved = self.pen.clone();
                csi::put(body, last, &mut self.out);
            }
            (None, [], b'u') => {
                self.before_restoring();
                csi::put(body, last, &mut self.out);
            }
            (None, [], b'A'..=b'G' | b'I' | b'L' | b'M' | b'Z' | b'`' | b'a' | b'b') => {
                self.place = None;
                csi::put(body, last, &mut self.out);
            }
            (None, [], b'@' | b'K' | b'P' | b'S' | b'T' | b'X' | b'g')
            | (Some(b'?'), [], b'K')
            | (None, [b' '], b'q') => {
                csi::put(body, last, &mut self.out);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &[u8] = b"<host>";

    fn filter() -> LiveScreenFilter {
        let mut filter = LiveScreenFilter::new((23, 80), HOST.to_vec());
        filter.pause(&mut Vec::new());
        filter
    }

    fn text(out: Vec<u8>) -> String {
        String::from_utf8(out).unwrap().replace("\x1b[22;0t", "").replace('\x1b', "^")
    }

    /// What passes, byte by byte, up to a pause.
    fn shown(output: &str) -> String {
        let (mut filter, mut out) = (filter(), Vec::new());
        output.as_bytes().chunks(1).for_each(|byte| filter.push(byte, &mut out));
        filter.pause(&mut out);
        text(out)
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
            assert_eq!(shown(output), expected, "{output:?}");
        }
    }

    #[test]
    fn the_cursor_comes_back_from_the_hosts_row_without_being_kept() {
        for (output, expected) in [
            // Where it is known, at once.
            ("\x1b[H\x1b[2Jx", "^[1;1H^[2J<host>^[1;1Hx"),
            ("\x1b[9;79Hx\x1b[J", "^[9;79Hx^[J<host>^[9;80H"),
            ("\x1b[9;5H\x1b[3d\x1b[?1J", "^[9;5H^[3d^[?1J<host>^[3;5H"),
            // With what it writes in.
            ("\x1b[1;31m\x1b(0\x0e\x1b[2;2H\x1b[J", "^[1;31m^(0\x0e^[2;2H^[J<host>^[2;2H^(0\x0e^[1;31m"),
            (
                "\x1b[31;38;5;9;1m\x1b[0;4:3;48:2::1:2:3m\x1b[H\x1b[J",
                "^[31;38;5;9;1m^[0;4:3;48:2::1:2:3m^[1;1H^[J<host>^[1;1H^[4:3;48:2::1:2:3m",
            ),
            (
                "\x1b[31;1m\x1b[38;2;1;2;3;22m\x1b[m\x1b[95m\x1b[H\x1b[J",
                "^[31;1m^[38;2;1;2;3;22m^[m^[95m^[1;1H^[J<host>^[1;1H^[95m",
            ),
            // Where it is not known, before a sequence that moves it anywhere.
            ("é\x1b[2Jx\x1b[3;4Hy", "é^[2Jx<host>^[3;4Hy"),
            ("\x1b7é\x1b[2Jx\x1b8y", "^7é^[2Jx<host>^8y"),
            ("\x1b[sé\x1b[2Jx\x1b[uy", "^[sé^[2Jx<host>^[uy"),
            ("\x1b[?1048hé\x1b[2Jx\x1b[?1048ly", "^[?1048hé^[2Jx<host>^[?1048ly"),
            // The kept cursor brings its colours.
            ("\x1b[31m\x1b7\x1b[32m\x1b8\x1b[H\x1b[J", "^[31m^7^[32m^8^[1;1H^[J<host>^[1;1H^[31m"),
            // Behind a full row it waits in a way that nothing else brings back.
            ("\x1b[1;79Hxy\x1b[J", "^[1;79Hxy^[J^7<host>^8"),
        ] {
            assert_eq!(shown(output), expected, "{output:?}");
        }
    }

    #[test]
    fn what_may_have_reached_the_hosts_rows_has_them_drawn_again() {
        // Below the rows that scroll, a line feed goes on to the next row, where a cursor can be saved for later.
        let mut filter = filter();
        let mut is_drawn = |output: &str| {
            let mut out = Vec::new();
            filter.push(output.as_bytes(), &mut out);
            filter.pause(&mut out);
            text(out).contains("<host>")
        };
        assert!(!is_drawn("\x1b[2;23r\x1b[23Hx\ny"));
        assert!(is_drawn("\x1b[2;9r\x1b[23Hx\n\x1b7") && is_drawn("drawn") && !is_drawn(""));
        assert!(is_drawn("\x1b[r\x1b8") && is_drawn("drawn"));
        filter.resize((30, 80), HOST.to_vec());
        filter.pause(&mut Vec::new());
        filter.push(b"drawn", &mut Vec::new());
        assert!(!filter.passed.is_spoilt);
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
            assert_eq!(shown(beyond), "", "{beyond:?}");
        }
        assert_eq!(shown("\x1b[6n\x1b[c\x1b[>c"), "^[6n^[c^[>c", "programs wait for the answers");
    }

    #[test]
    fn the_terminal_is_repaired() {
        let mut filter = filter();
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
