//! One of the terminal's two screens, main and alternate: its rows and its cursor.
//!
//! A row comes into being when the cursor reaches it. Rows that do not exist yet are blank.

use std::collections::VecDeque;

use super::row::Row;

#[derive(Debug, Clone, Default)]
pub(crate) struct Grid {
    pub(crate) rows: VecDeque<Row>,
    pub(crate) cursor: ScreenCursor,
    pub(crate) saved: Option<(ScreenCursor, Charsets)>,
    /// The first row that scrolls.
    pub(crate) top: usize,
    /// The last row that scrolls, if it is not the screen's last one.
    pub(crate) bottom: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScreenCursor {
    pub(crate) row: usize,
    pub(crate) col: usize,
    /// The last column is written, so the next character goes to the next row.
    pub(crate) wraps: bool,
}

/// The two character sets, and the one in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charsets {
    pub(crate) sets: [u8; 2],
    pub(crate) used: usize,
}

impl Default for Charsets {
    fn default() -> Self {
        Self { sets: *b"BB", used: 0 }
    }
}

impl Charsets {
    pub(crate) fn is_line_drawing(&self) -> bool {
        self.sets[self.used] == b'0'
    }
}

impl Grid {
    pub(crate) fn new() -> Self {
        Self { rows: VecDeque::from([Row::default()]), ..Self::default() }
    }

    pub(crate) fn row_mut(&mut self, at: usize) -> &mut Row {
        if self.rows.len() <= at {
            self.rows.resize_with(at + 1, Row::default);
        }
        &mut self.rows[at]
    }

    pub(crate) fn current(&mut self) -> &mut Row {
        self.row_mut(self.cursor.row)
    }

    /// Moves the rows from `top` to `bottom` up by `count`; those at the top give way to blank ones at the bottom.
    pub(crate) fn move_up(&mut self, top: usize, bottom: usize, count: usize) {
        if (top, count) == (0, 1) && bottom + 1 == self.rows.len() {
            if let Some(mut row) = self.rows.pop_front() {
                row.reset();
                self.rows.push_back(row);
            }
            return;
        }
        let region = &mut self.rows.make_contiguous()[top..=bottom];
        region[..count].iter_mut().for_each(Row::reset);
        region.rotate_left(count);
    }

    /// Moves the rows from `top` to `bottom` down by `count`; those at the bottom give way to blank ones at the top.
    pub(crate) fn move_down(&mut self, top: usize, bottom: usize, count: usize) {
        let region = &mut self.rows.make_contiguous()[top..=bottom];
        region.rotate_right(count);
        region[..count].iter_mut().for_each(Row::reset);
    }

    /// The column before which blanks of this row are text: the cursor's, if it is in the row.
    pub(crate) fn open_col(&self, at: usize) -> usize {
        if self.cursor.row == at { self.cursor.col } else { 0 }
    }

    /// Returns true if the cursor is at the start of this row's text, which is about to be overwritten.
    pub(crate) fn is_parked_at(&self, at: usize) -> bool {
        let ScreenCursor { row, col, wraps } = self.cursor;
        (row, col, wraps) == (at, 0, false) && !self.rows[at].is_empty()
    }

    /// Erases the rows below this one. Rows that a reader got stay as blank ones, because they may be drawn again.
    pub(crate) fn erase_below(&mut self, at: usize) {
        while self.rows.len() > at + 1 && self.rows.back().is_some_and(|row| !row.history.was_sent()) {
            self.rows.pop_back();
        }
        self.rows.iter_mut().skip(at + 1).for_each(Row::clear);
    }

    /// The number of rows down to the cursor or to the last row that is not blank.
    pub(crate) fn live_rows(&self) -> usize {
        let mut count = self.rows.len();
        while count > self.cursor.row + 1 && self.rows[count - 1].is_empty() {
            count -= 1;
        }
        count
    }

    /// Appends the screen's text; the last row is a line without an end.
    pub(crate) fn render(&self, out: &mut Vec<u8>) {
        let count = self.live_rows();
        for (at, row) in self.rows.iter().take(count).enumerate() {
            row.render(out);
            if at + 1 < count && !row.joined() {
                out.push(b'\n');
            }
        }
    }
}
