//! Passes what a full-screen program draws, for a replay: nothing that makes the terminal answer, and nothing that
//! reaches beyond its screen. The terminal is repaired afterwards.
//!
//! Dropped are questions to the terminal, because the answers would be typed into the human's shell; all string sequences
//! (titles, the clipboard, images); mouse, focus and paste reports; and a full reset. On a terminal with more rows than
//! the program had, scrolling stays within the program's rows.
//!
//! A program that was killed leaves its last picture in the alternate screen, and switching back would take the picture
//! away. [`FullScreenFilter::keeping`] has it drawn on the normal screen instead, below what was there. So it does with the
//! pictures of a program that draws on the normal screen, such as top.
//!
//! Invariant: whatever the program switched is switched back by [`FullScreenFilter::end`].

use super::raw::RawFilter;
use crate::text::csi::{self, Csi};
use crate::text::parser::{Parser, Sink};

/// The alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];
/// A program that moves the cursor to a place of the normal screen this often draws pictures there. clear(1) moves once.
const PLACINGS_MIN: u32 = 2;

/// The filter of one replay.
#[derive(Debug)]
pub struct FullScreenFilter {
    parser: Parser,
    passed: Passed,
    repair: RawFilter,
}

#[derive(Debug, Default)]
struct Passed {
    rows: u16,
    out: Vec<u8>,
    is_alternate: bool,
    /// How many times the program has entered the alternate screen.
    visits: u32,
    /// How many times it has moved the cursor to a place of the normal screen.
    placings: u32,
    kept: Option<LastPicture>,
    /// The rows of the terminal that shows it.
    terminal_rows: u16,
}

/// The picture that a program leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastPicture {
    /// It is drawn in this visit of the alternate screen, the first is 1, because the program does not return from it.
    Visit(u32),
    /// The program draws on the normal screen.
    Normal,
}

impl FullScreenFilter {
    /// The filter for a program that had this many rows.
    #[must_use]
    pub fn new(rows: u16) -> Self {
        let passed = Passed { rows, ..Passed::default() };
        Self { parser: Parser::default(), passed, repair: RawFilter::new() }
    }

    /// The same filter, which draws this picture on the normal screen of a terminal that has so many rows.
    #[must_use]
    pub fn keeping(mut self, picture: Option<LastPicture>, terminal_rows: u16) -> Self {
        (self.passed.kept, self.passed.terminal_rows) = (picture, terminal_rows);
        self
    }

    /// The picture that is left if the output ends here.
    #[must_use]
    pub fn last_picture(&self) -> Option<LastPicture> {
        let Passed { is_alternate, visits, placings, .. } = self.passed;
        match (is_alternate, visits) {
            (true, _) => Some(LastPicture::Visit(visits)),
            (false, 0) if placings >= PLACINGS_MIN => Some(LastPicture::Normal),
            (false, _) => None,
        }
    }

    /// Whether the output was that of a full-screen program.
    #[must_use]
    pub fn has_drawn(&self) -> bool {
        self.passed.visits > 0 || self.last_picture().is_some()
    }

    /// The program has this many rows from now on.
    pub fn resize(&mut self, rows: u16) {
        self.passed.rows = rows;
    }

    /// Takes output, and appends what may be shown.
    pub fn push(&mut self, output: &[u8], out: &mut Vec<u8>) {
        self.parser.push(output, &mut self.passed);
        self.repair.push(&self.passed.out, out);
        self.passed.out.clear();
    }

    /// Switches back what the program switched, and moves the cursor to a fresh line.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.repair.end_block(out);
    }
}

impl Passed {
    fn set_margins(&mut self, top: u16, bottom: u16) {
        let bottom = if bottom == 0 { self.rows } else { bottom };
        csi::put(format!("{};{bottom}", top.max(1)).as_bytes(), b'r', &mut self.out);
    }

    fn set_modes(&mut self, csi: &Csi<'_>, last: u8) {
        for mode in csi.values().filter(|mode| csi::DRAWING_MODES.contains(mode)) {
            if ALTERNATE.contains(&mode) {
                self.switch_screen(mode, last);
            } else {
                csi::put(format!("?{mode}").as_bytes(), last, &mut self.out);
            }
        }
    }

    fn switch_screen(&mut self, mode: u16, last: u8) {
        let is_on = last == b'h';
        let enters = is_on && !self.is_alternate;
        self.visits += u32::from(enters);
        self.is_alternate = is_on;
        let keeps = is_on && self.kept == Some(LastPicture::Visit(self.visits));
        if keeps && enters {
            self.begin_picture();
        } else if !keeps {
            csi::put(format!("?{mode}").as_bytes(), last, &mut self.out);
        }
        if is_on {
            self.set_margins(1, 0);
        }
    }

    /// Clears the normal screen. Line feeds move what is shown into the scrollback on every terminal.
    fn begin_picture(&mut self) {
        self.out.extend_from_slice(b"\x1b7\x1b[r\x1b8");
        self.out.resize(self.out.len() + usize::from(self.terminal_rows), b'\n');
        self.out.extend_from_slice(b"\x1b[H\x1b[J");
    }

    /// The program moves the cursor to a place.
    fn place(&mut self, body: &[u8], last: u8) {
        if !self.is_alternate {
            self.placings += 1;
            if self.placings == 1 && self.kept == Some(LastPicture::Normal) {
                self.begin_picture();
                self.set_margins(1, 0);
            }
        }
        csi::put(body, last, &mut self.out);
    }
}

impl Sink for Passed {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        self.out.extend_from_slice(run);
    }

    fn control(&mut self, byte: u8) {
        if csi::draws(byte) {
            self.out.push(byte);
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        if csi::escape_draws(intermediates, last) {
            csi::put_escape(intermediates, last, &mut self.out);
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h' | b'l') => self.set_modes(&csi, last),
            (None, [], b'r') => self.set_margins(csi.value(0), csi.value(1)),
            (None, [], b'H' | b'd' | b'f') => self.place(body, last),
            // The scrollback is the human's.
            (_, [], b'J') if csi.value(0) == 3 => {}
            (None, [], b'@'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'Z' | b'`' | b'a' | b'b' | b'e' | b'g' | b'h')
            | (None, [], b'l' | b'm' | b's' | b'u')
            | (Some(b'?'), [], b'J' | b'K')
            | (None, [b' '], b'q') => csi::put(body, last, &mut self.out),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> String {
        let mut filter = FullScreenFilter::new(24);
        let mut out = Vec::new();
        filter.push(output.as_bytes(), &mut out);
        // Before the first output the title is saved.
        String::from_utf8(out).unwrap().replace("\x1b[22;0t", "").replace('\x1b', "^")
    }

    #[test]
    fn what_draws_passes_and_what_asks_does_not() {
        assert_eq!(shown("\x1b[2J\x1b[5;7Hvi\x1b[1;31m~\x1b[m\r\n\x1b[K"), "^[2J^[5;7Hvi^[1;31m~^[m\r\n^[K");
        assert_eq!(shown("\x1b[?1049h\x1b[?1006;25h\x1b[r"), "^[?1049h^[1;24r^[?25h^[1;24r");
        for question in [
            "\x1b[c",
            "\x1b[>c",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[18t",
            "\x1b[>q",
            "\x1b[?u",
            "\x1b[?25$p",
            "\x05",
            "\x1bZ",
            "\x1b]11;?\x07",
            "\x1b]52;c;?\x07",
            "\x1bP+q544e\x1b\\",
            "\x1b[x",
            "\x1bc",
            "\x1b[?1000h",
            "\x1b[?2004h",
            "\x1b]0;title\x07",
            "\x1b[8;10;10t",
            "\x07",
            "\x1b_Gx\x1b\\",
            "\x1b[?996n",
            "\x1b[?2048h",
            "\x1b[3J",
        ] {
            assert_eq!(shown(question), "", "{question:?}");
        }
    }

    #[test]
    fn the_last_picture_stays_on_the_normal_screen() {
        let first = "\x1b[?1049hone\x1b[?1049lback\r\n";
        let second = "\x1b[?1049h\x1b[2;3Htwo";
        let output = format!("{first}{second}");
        let mut whole = FullScreenFilter::new(24);
        whole.push(first.as_bytes(), &mut Vec::new());
        assert_eq!(whole.last_picture(), None);
        whole.push(second.as_bytes(), &mut Vec::new());
        let picture = whole.last_picture();
        assert_eq!(picture, Some(LastPicture::Visit(2)));

        let mut kept = FullScreenFilter::new(24).keeping(picture, 3);
        let mut out = Vec::new();
        output.as_bytes().chunks(5).for_each(|part| kept.push(part, &mut out));
        kept.end(&mut out);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.matches("\x1b[?1049h").count(), 1, "{out:?}");
        assert!(out.contains("back\r\n\x1b7\x1b[r\x1b8\n\n\n\x1b[H\x1b[J\x1b[1;24r\x1b[2;3Htwo"), "{out:?}");
    }

    #[test]
    fn a_program_that_draws_on_the_normal_screen_begins_on_an_empty_one() {
        let mut whole = FullScreenFilter::new(24);
        whole.push(b"made\r\n\x1b[H\x1b[2J\x1b[3J", &mut Vec::new());
        assert!(!whole.has_drawn(), "clear(1) draws nothing");
        whole.push(b"one\x1b[Htwo", &mut Vec::new());
        assert!(whole.has_drawn());
        let mut kept = FullScreenFilter::new(24).keeping(whole.last_picture(), 2);
        let mut out = Vec::new();
        kept.push(b"made\r\n\x1b[Hone\x1b[Htwo", &mut out);
        let out = String::from_utf8(out).unwrap();
        let drawn = "made\r\n\x1b7\x1b[r\x1b8\n\n\x1b[H\x1b[J\x1b[1;24r\x1b[Hone\x1b[Htwo";
        assert!(out.ends_with(drawn), "{out:?}");
    }

    #[test]
    fn the_terminal_is_repaired() {
        let mut filter = FullScreenFilter::new(24);
        let mut out = Vec::new();
        filter.push(b"\x1b[?1049h\x1b[?25l\x1b[31mdraws", &mut out);
        out.clear();
        filter.end(&mut out);
        let out = String::from_utf8(out).unwrap();
        for part in ["\x1b[?1049l", "\x1b[?25h", "\x1b[r", "\x1b[0m"] {
            assert!(out.contains(part), "{part:?} is not in {out:?}");
        }
    }
}
