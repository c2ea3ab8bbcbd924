//! The cells of a line that the program edits, and its cursor.
//!
//! Invariant: cursor and text are within [`COLUMNS_MAX`] columns.

use crate::text::csi::Csi;
use crate::text::sanitize::row::Row;
use crate::text::width::width;

/// Columns of the widest line that is edited as a whole. Text past them begins a new stretch, edited on its own.
pub(super) const COLUMNS_MAX: usize = 4096;

#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    row: Row,
    col: usize,
    saved: usize,
}

impl Cells {
    /// Appends the text of the finished line.
    pub(super) fn render(&self, out: &mut Vec<u8>) {
        self.row.render(out);
    }

    /// Appends the present text, with its blanks before the cursor.
    pub(super) fn render_open(&self, out: &mut Vec<u8>) {
        self.row.render_to(self.col, out);
    }

    /// Returns true if the cursor is at the start of text that is about to be overwritten.
    pub(super) fn is_parked(&self) -> bool {
        self.col == 0 && !self.row.is_empty()
    }

    pub(super) fn carriage_return(&mut self) {
        self.col = 0;
    }

    pub(super) fn backspace(&mut self) {
        self.col = self.col.saturating_sub(1);
    }

    /// Writes valid UTF-8 without line feeds. Returns the number of bytes that fit.
    pub(super) fn write(&mut self, text: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let rest = &text[at..];
            if matches!(byte, b' '..=b'~') {
                let len = rest.iter().position(|byte| !matches!(byte, b' '..=b'~')).unwrap_or(rest.len());
                let len = len.min(COLUMNS_MAX - self.col);
                if len == 0 {
                    return at;
                }
                self.row.write_ascii(self.col, &rest[..len]);
                self.col += len;
                at += len;
                continue;
            }
            let Some(c) = first_char(rest) else { return text.len() };
            if !self.put(c) {
                return at;
            }
            at += c.len_utf8();
        }
        at
    }

    /// Writes one character. Returns false if it does not fit.
    fn put(&mut self, c: char) -> bool {
        if c == '\t' {
            return self.tab();
        }
        let columns = if c.is_ascii_control() { 0 } else { width(c) };
        if columns == 0 {
            self.row.add_mark(self.col.checked_sub(1), c);
            return true;
        }
        if self.col + columns > COLUMNS_MAX {
            return false;
        }
        self.row.write_char(self.col, c, columns);
        self.col += columns;
        true
    }

    /// Moves over existing text; at its end, the TAB becomes text. Returns false if it does not fit.
    fn tab(&mut self) -> bool {
        let stop = (self.col / 8 + 1) * 8;
        if stop > COLUMNS_MAX {
            return false;
        }
        if self.col >= self.row.len() {
            self.row.write_tab(self.col, stop);
        }
        self.col = stop;
        true
    }

    /// Carries out sequences that stay within the line, and ignores others.
    pub(super) fn control_sequence(&mut self, csi: &Csi<'_>, last: u8) {
        let count = usize::from(csi.count(0));
        match (last, csi.value(0)) {
            (b'G' | b'`', _) => self.col = count - 1,
            (b'C' | b'a', _) => self.col += count,
            (b'D', _) => self.col = self.col.saturating_sub(count),
            (b'E', _) => self.col = 0,
            (b'K' | b'J', 0) => self.row.truncate(self.col),
            (b'K' | b'J', 1) => self.row.blank(0, self.col + 1),
            (b'K', 2) => self.row.clear(),
            (b'X', _) => self.row.blank(self.col, self.col + count),
            (b'P', _) => self.row.delete(self.col, count),
            (b'@', _) => self.row.insert(self.col, count, COLUMNS_MAX),
            (b's', _) => self.saved = self.col,
            (b'u', _) => self.col = self.saved,
            _ => {}
        }
        self.col = self.col.min(COLUMNS_MAX - 1);
    }
}

fn first_char(text: &[u8]) -> Option<char> {
    text.get(..text.len().min(4))?.utf8_chunks().next()?.valid().chars().next()
}
