//! How far below the block's first row the cursor stands.
//!
//! Lines that a command writes over lines of its own, and moves that end at the screen's edge, make what is known of
//! the lines too high, and what is above the block is not the command's. So the rows themselves are counted, too.
//!
//! Invariant: what is counted is a lower bound, whatever the terminal and wherever its edges are.

use super::line::Line;

#[derive(Debug, Default)]
pub(super) struct Depth {
    /// Rows from the block's first one to that in which the line began, as far as it is counted.
    start: u32,
    /// Rows to the lowest one that was certainly reached.
    lowest: u32,
}

impl Depth {
    /// The rows that the cursor may go up within the block.
    pub(super) fn above(&self, line: &Line) -> u32 {
        self.start.saturating_add(line.rows_above())
    }

    /// The rows that it can certainly go down, wherever the screen ends.
    pub(super) fn below(&mut self, line: &Line) -> u32 {
        self.lowest = self.lowest.max(self.start.saturating_add(line.rows_to_end()));
        self.lowest.saturating_sub(self.above(line))
    }

    /// The cursor leaves this line upwards, by no more rows than there are [`above`](Self::above).
    pub(super) fn went_up(&mut self, line: &Line, rows: u32) {
        self.below(line);
        self.start = self.above(line).saturating_sub(rows);
    }

    /// The cursor leaves this line downwards, by this many rows unless the screen ends before.
    pub(super) fn went_down(&mut self, line: &Line, rows: u32) {
        let sure = rows.min(self.below(line));
        self.start = self.above(line).saturating_add(sure);
    }

    /// A line feed, which no edge stops, after a move downwards.
    pub(super) fn line_feed(&mut self, line: &Line, rows: u32) {
        self.went_down(line, rows);
        self.start = self.start.saturating_add(1);
        self.lowest = self.lowest.max(self.start);
    }

    /// The terminal has another width, and may have broken all lines anew: the cursor's row counts as the first one.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
