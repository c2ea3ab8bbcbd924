//! The right edge of the terminal, after an exactly full row.
//!
//! There the cursor waits for the next character, and only that one goes to the next row. Many terminals (tmux, screen,
//! the Linux console) forget this when a program saves and restores the cursor, as the host does to draw its status
//! line. The next character would then overwrite the last one. Writing the last character once more makes any terminal
//! wait again, provided that its colours are still on: so colours after a full row are held back until something
//! follows.
//!
//! Invariant: a character is written again only where it certainly stands, on every terminal.

use super::output::write;
use super::wrapped_line::sure_width;
use crate::text::width::width;

/// The most bytes of a character with its marks, and of colours that are held back. Beyond it the column counts as unknown.
const BYTES_MAX: usize = 256;

/// The filling of the current row.
#[derive(Debug, Default)]
pub(super) struct RowEdge {
    /// The terminal's width; 0 if unknown.
    columns: u32,
    /// Columns of the row to the left of the cursor, unless unknown.
    column: Option<u32>,
    last: String,
    /// Colours that came after a full row.
    held: Vec<u8>,
    /// The command has switched off wrapping.
    is_cut: bool,
}

impl RowEdge {
    /// The row at the start of a block.
    pub(super) fn new() -> Self {
        Self { column: Some(0), ..Self::default() }
    }

    pub(super) fn resize(&mut self, columns: u16) {
        if self.columns != u32::from(columns) && self.column != Some(0) {
            // A terminal may or may not wrap the row anew.
            self.column = None;
        }
        self.columns = columns.into();
    }

    /// The column of the row in which the next character stands, unless unknown.
    pub(super) fn next_column(&self) -> Option<u32> {
        if self.is_full() { Some(0) } else { self.column }
    }

    /// The part of a text that stands in this row, and the rest.
    pub(super) fn split_row<'a>(&self, text: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let Some(column) = self.next_column().filter(|_| self.columns > 1 && !self.is_cut) else { return (text, b"") };
        let room = usize::try_from(self.columns.saturating_sub(column)).unwrap_or(usize::MAX);
        let known = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let mut used = 0;
        let end = known.char_indices().find(|&(_, c)| {
            used += width(c);
            used > room
        });
        end.filter(|&(at, _)| at > 0).map_or((text, b"".as_slice()), |(at, _)| text.split_at(at))
    }

    /// Returns true if the cursor waits after a full row.
    pub(super) fn is_full(&self) -> bool {
        self.columns > 1 && !self.is_cut && self.column == Some(self.columns)
    }

    /// Records printed text, without line feeds.
    pub(super) fn printed(&mut self, text: &[u8]) {
        if self.columns < 2 || self.is_cut {
            return;
        }
        if text.iter().all(|byte| matches!(byte, b' '..=b'~'))
            && let (Some(column), Some(&last)) = (self.column, text.last())
        {
            let count = u32::try_from(text.len()).unwrap_or(u32::MAX);
            self.column = column.checked_add(count).map(|end| (end - 1) % self.columns + 1);
            self.last = char::from(last).to_string();
            return;
        }
        text.utf8_chunks().for_each(|chunk| {
            chunk.valid().chars().for_each(|c| self.printed_char(c));
            if !chunk.invalid().is_empty() {
                self.column = None;
            }
        });
    }

    fn printed_char(&mut self, c: char) {
        let Some(column) = self.column else { return };
        if c == '\t' {
            // Behind a full row, terminals differ.
            let stop = (column / 8 + 1) * 8;
            self.column = (column < self.columns).then(|| stop.min(self.columns - 1));
        } else if matches!(c, '\u{300}'..='\u{36F}') && column > 0 && self.last.len() < BYTES_MAX {
            self.last.push(c);
        } else if let Some(columns) = sure_width(c) {
            let end = column + columns;
            self.column = Some(if end > self.columns { columns } else { end });
            self.last.clear();
            self.last.push(c);
        } else {
            self.column = None;
        }
    }

    /// Moves the cursor to this column of the row, or to the last one.
    pub(super) fn moved_to_column(&mut self, column: u32) {
        self.column = Some(if self.columns == 0 { column } else { column.min(self.columns - 1) });
    }

    /// Moves the cursor within the row, to the left if `columns` is negative.
    pub(super) fn moved_by(&mut self, columns: i64) {
        if let Some(column) = self.column {
            let from = i64::from(if self.is_full() { self.columns - 1 } else { column });
            self.moved_to_column(u32::try_from((from + columns).max(0)).unwrap_or(u32::MAX));
        }
    }

    /// Records an operation after which terminals differ in whether the cursor still waits.
    pub(super) fn touched(&mut self) {
        self.column = self.column.filter(|_| !self.is_full());
    }

    /// Records that the column is unknown.
    pub(super) fn lose(&mut self) {
        self.column = None;
    }

    pub(super) fn wrap(&mut self, wraps: bool) {
        (self.column, self.is_cut) = (None, !wraps);
    }

    /// Ends the block, and with it the modes of its command.
    pub(super) fn block_ended(&mut self) {
        *self = Self { columns: self.columns, ..Self::new() };
    }

    /// The buffer for colours that come here: after a full row they wait.
    pub(super) fn for_colours<'a>(&'a mut self, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        if !self.is_full() {
            return out;
        }
        if self.held.len() > BYTES_MAX {
            self.release(out);
            self.lose();
            return out;
        }
        &mut self.held
    }

    /// Appends the held colours, because something follows.
    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
    }

    /// Makes the terminal wait after the full row again, once the cursor was saved and restored.
    pub(super) fn write_last(&self, out: &mut Vec<u8>) {
        if self.is_full()
            && let Some(first) = self.last.chars().next()
        {
            let columns = u32::try_from(width(first)).unwrap_or(1);
            write(out, self.columns + 1 - columns, b"\x1b[", b'G');
            out.extend_from_slice(self.last.as_bytes());
        }
    }
}
