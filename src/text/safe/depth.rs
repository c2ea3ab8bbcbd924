//! The distance of the cursor from the block's first row.
//!
//! A command that overwrites its own lines, and moves that end at the screen's edge, make the count of lines too high; and
//! the rows above the block are not the command's. So rows are counted, too.
//!
//! Invariant: counts are lower bounds, whatever the terminal and wherever its edges are.

use super::wrapped_line::WrappedLine;

#[derive(Debug, Default)]
pub(super) struct Depth {
    /// Rows from the block's first one to the one in which the line began.
    start: u32,
    /// Rows from the block's first one to the lowest one that was certainly reached.
    lowest: u32,
}

impl Depth {
    /// The number of rows that the cursor may go up within the block.
    pub(super) fn above(&self, line: &WrappedLine) -> u32 {
        self.start.saturating_add(line.rows_above())
    }

    /// The number of rows that the cursor can certainly go down, wherever the screen ends.
    pub(super) fn below(&mut self, line: &WrappedLine) -> u32 {
        self.lowest = self.lowest.max(self.start.saturating_add(line.rows_to_end()));
        self.lowest.saturating_sub(self.above(line))
    }

    /// Moves the cursor up from this line, by no more rows than are [`above`](Self::above).
    pub(super) fn went_up(&mut self, line: &WrappedLine, rows: u32) {
        self.below(line);
        self.start = self.above(line).saturating_sub(rows);
    }

    /// Moves the cursor down from this line, by `rows` unless the screen ends before.
    pub(super) fn went_down(&mut self, line: &WrappedLine, rows: u32) {
        let sure = rows.min(self.below(line));
        self.start = self.above(line).saturating_add(sure);
    }

    /// Moves the cursor down by `rows` and then by a line feed, which no edge stops.
    pub(super) fn line_feed(&mut self, line: &WrappedLine, rows: u32) {
        self.went_down(line, rows);
        self.start = self.start.saturating_add(1);
        self.lowest = self.lowest.max(self.start);
    }

    /// Takes the cursor's row for the first one, because the terminal's width changed and it may have wrapped all lines anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
