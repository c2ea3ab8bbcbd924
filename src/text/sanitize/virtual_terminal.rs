//! A terminal without a display: a screen of the program's own size, and the lines that scroll off it.
//!
//! A line that scrolls off the top of the main screen is final, because no program can change it any more. The
//! alternate screen leaves no trace. It differs from a real terminal in two ways: a line feed on the main screen implies a
//! carriage return, so that a program under `stty -opost` does not staircase; and `Row::joined` tells padded rows apart.
//!
//! Invariants: the cursor is within the screen; no row exists below the screen; text leaves only by being sent to the
//! reader or erased by the program, never by a clear or a reset.

use super::grid::{Charsets, Grid, ScreenCursor};
use super::row::Row;
use super::row_sender::RowSender;
use crate::text::csi::Csi;
use crate::text::width::width;

/// The characters for `_` to `~` in the line drawing set.
const LINE_DRAWING: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤',
    '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

#[derive(Debug, Clone)]
pub(crate) struct VirtualTerminal {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) main: Grid,
    pub(crate) alt: Option<Grid>,
    /// Bytes of text written to the present alternate screen, and to those before it.
    pub(crate) alt_bytes: u64,
    pub(crate) withheld_bytes: u64,
    pub(crate) autowrap: bool,
    pub(crate) insert: bool,
    pub(crate) charsets: Charsets,
    /// The last character with a width, for REP.
    pub(crate) last: Option<char>,
    /// Without a sender, a line goes to the reader when it scrolls off.
    pub(crate) sender: Option<RowSender>,
}

impl VirtualTerminal {
    pub(crate) fn new(rows: u16, cols: u16, sender: Option<RowSender>) -> Self {
        Self {
            rows: usize::from(rows.max(1)),
            cols: usize::from(cols.max(1)),
            main: Grid::new(),
            alt: None,
            alt_bytes: 0,
            withheld_bytes: 0,
            autowrap: true,
            insert: false,
            charsets: Charsets::default(),
            last: None,
            sender,
        }
    }

    pub(crate) fn grid(&mut self) -> &mut Grid {
        self.alt.as_mut().unwrap_or(&mut self.main)
    }

    /// The last row that scrolls.
    pub(crate) fn bottom(&mut self) -> usize {
        let last = self.rows - 1;
        self.grid().bottom.unwrap_or(last)
    }

    /// Appends a row that leaves the main screen for good.
    fn row_leaves(sender: &mut Option<RowSender>, row: &mut Row, out: &mut Vec<u8>) {
        match sender {
            Some(sender) => sender.row_leaves(row, out),
            None => {
                row.render(out);
                if !row.joined() {
                    out.push(b'\n');
                }
            }
        }
    }

    pub(crate) fn scroll_up(&mut self, count: usize, out: &mut Vec<u8>) {
        let bottom = self.bottom();
        let Self { main, alt, sender, .. } = self;
        let is_main = alt.is_none();
        let grid = alt.as_mut().unwrap_or(main);
        grid.row_mut(bottom);
        let count = count.min((bottom + 1).saturating_sub(grid.top));
        if grid.top == 0 && is_main {
            grid.rows.iter_mut().take(count).for_each(|row| Self::row_leaves(sender, row, out));
        }
        grid.move_up(grid.top, bottom, count);
    }

    /// Moves the cursor down one row, scrolling at the bottom.
    pub(crate) fn index(&mut self, out: &mut Vec<u8>) {
        let (bottom, last) = (self.bottom(), self.rows - 1);
        let grid = self.grid();
        if grid.cursor.row == bottom {
            self.scroll_up(1, out);
        } else if grid.cursor.row < last {
            grid.cursor.row += 1;
        }
        self.grid().current();
    }

    /// Moves the cursor up one row, scrolling at the top.
    pub(crate) fn reverse_index(&mut self) {
        let bottom = self.bottom();
        let grid = self.grid();
        grid.cursor.wraps = false;
        if grid.cursor.row == grid.top {
            self.scroll_down(1, bottom);
        } else {
            grid.cursor.row = grid.cursor.row.saturating_sub(1);
        }
    }

    pub(crate) fn scroll_down(&mut self, count: usize, bottom: usize) {
        let grid = self.grid();
        grid.row_mut(bottom);
        let top = grid.top;
        grid.move_down(top, bottom, count.min((bottom + 1).saturating_sub(top)));
    }

    pub(crate) fn line_feed(&mut self, out: &mut Vec<u8>) {
        if self.alt.is_none() {
            let at = self.main.cursor.row;
            if let Some(sender) = &mut self.sender {
                sender.line_done(&mut self.main.rows, at, out);
            }
            self.main.cursor.col = 0;
        }
        self.grid().cursor.wraps = false;
        self.index(out);
    }

    pub(crate) fn carriage_return(&mut self) {
        let cursor = &mut self.grid().cursor;
        cursor.col = 0;
        cursor.wraps = false;
    }

    pub(crate) fn backspace(&mut self) {
        let cursor = &mut self.grid().cursor;
        cursor.col = cursor.col.saturating_sub(1);
        cursor.wraps = false;
    }

    pub(crate) fn tab(&mut self) {
        let last = self.cols - 1;
        let grid = self.grid();
        let ScreenCursor { col, wraps, .. } = grid.cursor;
        let stop = ((col / 8 + 1) * 8).min(last);
        let row = grid.current();
        if wraps || stop <= col {
            if row.len() <= col + 1 {
                row.keep_tab();
            }
            return;
        }
        // A TAB moves over existing text; at the end of the text it is text.
        if col >= row.len() {
            row.write_tab(col, stop);
        }
        grid.cursor.col = stop;
    }

    /// Writes text from the parser: valid UTF-8 with TAB and LF.
    pub(crate) fn feed(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        while let Some(&byte) = rest.first() {
            let len = match byte {
                b'\n' => {
                    self.line_feed(out);
                    1
                }
                b'\t' => {
                    self.tab();
                    1
                }
                b' '..=b'~' => {
                    let len = rest.iter().position(|b| !matches!(b, b' '..=b'~')).unwrap_or(rest.len());
                    self.ascii(&rest[..len], out);
                    len
                }
                _ => {
                    let (c, len) = decode(rest);
                    self.character(c, out);
                    len
                }
            };
            rest = &rest[len..];
        }
    }

    fn ascii(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if self.insert || self.charsets.is_line_drawing() {
            for &byte in text {
                self.character(char::from(byte), out);
            }
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            self.wrap_if_due(1, out);
            let cols = self.cols;
            let grid = self.grid();
            let col = grid.cursor.col;
            let (now, later) = rest.split_at(rest.len().min(cols - col));
            grid.current().write_ascii(col, now);
            self.advance(now.len());
            rest = later;
        }
        self.last = text.last().map(|&byte| char::from(byte));
    }

    pub(crate) fn character(&mut self, c: char, out: &mut Vec<u8>) {
        let c = match u32::from(c).checked_sub(u32::from('_')) {
            Some(at) if self.charsets.is_line_drawing() => *LINE_DRAWING.get(at as usize).unwrap_or(&c),
            _ => c,
        };
        let columns = width(c);
        if columns == 0 {
            return self.mark(c);
        }
        self.last = Some(c);
        self.wrap_if_due(columns, out);
        let (cols, insert) = (self.cols, self.insert);
        let grid = self.grid();
        let col = grid.cursor.col;
        let row = grid.current();
        if insert {
            row.insert(col, columns, cols);
        }
        row.write_char(col, c, columns);
        self.advance(columns);
    }

    /// Adds a zero-width character to the one before the cursor.
    fn mark(&mut self, c: char) {
        let grid = self.grid();
        let ScreenCursor { col, wraps, .. } = grid.cursor;
        let at = if wraps { Some(col) } else { col.checked_sub(1) };
        grid.current().add_mark(at, c);
    }

    fn wrap_if_due(&mut self, columns: usize, out: &mut Vec<u8>) {
        let (cols, autowrap) = (self.cols, self.autowrap);
        let grid = self.grid();
        let does_not_fit = columns == 2 && grid.cursor.col + 1 == cols;
        if !grid.cursor.wraps && !does_not_fit {
            return;
        }
        grid.cursor.wraps = false;
        if autowrap {
            grid.current().set_wrapped();
            self.index(out);
            self.grid().cursor.col = 0;
        } else if columns == 2 {
            grid.cursor.col = cols.saturating_sub(2);
        }
    }

    fn advance(&mut self, columns: usize) {
        let cols = self.cols;
        let cursor = &mut self.grid().cursor;
        cursor.col += columns;
        if cursor.col >= cols {
            cursor.col = cols - 1;
            cursor.wraps = true;
        }
    }

    /// Makes everything on the screen final, because the screen is about to be cleared.
    pub(crate) fn flush_rows(&mut self, out: &mut Vec<u8>) {
        if self.alt.is_none() {
            let count = self.main.rows.iter().rposition(|row| !row.is_empty()).map_or(0, |at| at + 1);
            let mut joined = false;
            for row in self.main.rows.iter_mut().take(count) {
                Self::row_leaves(&mut self.sender, row, out);
                joined = row.joined();
            }
            match &mut self.sender {
                Some(sender) => sender.close_line(out),
                None if joined => out.push(b'\n'),
                None => {}
            }
        }
        self.grid().rows.clear();
    }

    /// Repeats the last character, for one line at most, so that eight bytes cannot fill a screen.
    pub(crate) fn repeat(&mut self, count: usize, out: &mut Vec<u8>) {
        let Some(c) = self.last else { return };
        for _ in 0..count.min(self.cols) {
            self.character(c, out);
        }
    }

    pub(crate) fn save_cursor(&mut self) {
        let charsets = self.charsets;
        let grid = self.grid();
        grid.saved = Some((grid.cursor, charsets));
    }

    pub(crate) fn restore_cursor(&mut self) {
        let (rows, cols) = (self.rows, self.cols);
        let grid = self.grid();
        let Some((mut cursor, charsets)) = grid.saved else {
            grid.cursor = ScreenCursor::default();
            return;
        };
        // The screen may have shrunk since.
        cursor.row = cursor.row.min(rows - 1);
        cursor.col = cursor.col.min(cols - 1);
        grid.cursor = cursor;
        self.charsets = charsets;
    }

    pub(crate) fn enter_alternate(&mut self, save: bool) {
        if self.alt.is_some() {
            return;
        }
        if save {
            self.save_cursor();
        }
        let cursor = ScreenCursor { wraps: false, ..self.main.cursor };
        self.alt = Some(Grid { cursor, ..Grid::default() });
    }

    pub(crate) fn leave_alternate(&mut self, restore: bool) {
        let Some(alt) = self.alt.take() else { return };
        self.withheld_bytes += std::mem::take(&mut self.alt_bytes);
        if restore {
            self.restore_cursor();
        } else {
            self.main.cursor = ScreenCursor { wraps: false, ..alt.cursor };
        }
    }

    /// Carries out RIS, the full reset.
    pub(crate) fn reset(&mut self, out: &mut Vec<u8>) {
        self.leave_alternate(false);
        self.flush_rows(out);
        let fresh = Self::new(1, 1, self.sender.take());
        *self = Self { rows: self.rows, cols: self.cols, withheld_bytes: self.withheld_bytes, ..fresh };
    }

    /// Carries out DECSTR, the reset of the modes.
    pub(crate) fn soft_reset(&mut self) {
        self.autowrap = true;
        self.insert = false;
        self.charsets = Charsets::default();
        let grid = self.grid();
        grid.top = 0;
        grid.bottom = None;
    }

    /// Returns true if a private mode affects the text. Most affect keys, the mouse or the cursor's looks.
    pub(crate) fn knows_private_mode(mode: u16) -> bool {
        matches!(mode, 7 | 47 | 1047..=1049)
    }

    pub(crate) fn set_private_modes(&mut self, csi: &Csi<'_>, on: bool) {
        for mode in csi.values() {
            match (mode, on) {
                (7, _) => self.autowrap = on,
                (1048, true) => self.save_cursor(),
                (1048, false) => self.restore_cursor(),
                (47 | 1047 | 1049, true) => self.enter_alternate(mode == 1049),
                (47 | 1047 | 1049, false) => self.leave_alternate(mode == 1049),
                _ => {}
            }
        }
    }
}

/// The first character of `text` and its length. `text` is valid UTF-8 and does not begin with ASCII.
fn decode(text: &[u8]) -> (char, usize) {
    let bits = |at: usize| u32::from(text[at] & 0x3F);
    let (code, len) = match text[0] {
        lead @ ..0xE0 => (u32::from(lead & 0x1F) << 6 | bits(1), 2),
        lead @ 0xE0..0xF0 => (u32::from(lead & 0x0F) << 12 | bits(1) << 6 | bits(2), 3),
        lead => (u32::from(lead & 0x07) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3), 4),
    };
    (char::from_u32(code).expect("the parser passes on valid UTF-8"), len)
}
