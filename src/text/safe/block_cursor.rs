//! Where the cursor is within the lines of a block.

use super::depth::Depth;
use super::heights::Heights;
use super::output::move_by;
use super::wrapped_line::WrappedLine;
use crate::text::hidden::RowPosition;

/// The cursor of a block, and what it knows of the block's lines. `row` counts lines of the command, not rows of the
/// terminal.
#[derive(Debug)]
pub(super) struct BlockCursor {
    /// The cursor's line, counted from the block's first one.
    pub(super) row: u32,
    pub(super) last_row: u32,
    pub(super) at_column_0: bool,
    pub(super) last_row_blank: bool,
    pub(super) line: WrappedLine,
    pub(super) heights: Heights,
    pub(super) depth: Depth,
    pub(super) row_position: RowPosition,
}

impl Default for BlockCursor {
    fn default() -> Self {
        Self {
            row: 0,
            last_row: 0,
            at_column_0: true,
            last_row_blank: true,
            line: WrappedLine::default(),
            heights: Heights::default(),
            depth: Depth::default(),
            row_position: RowPosition::default(),
        }
    }
}

impl BlockCursor {
    /// Whether the cursor is on the block's last line, and that is blank.
    pub(super) fn is_fresh(&self) -> bool {
        self.row == self.last_row && self.at_column_0 && self.last_row_blank
    }

    /// The number of rows from the cursor's row down to the last row of `line`, which is not above the cursor's.
    pub(super) fn rows_below(&self, line: u32) -> u32 {
        self.line.rows_below() + self.heights.sum(self.row + 1..line + 1)
    }

    /// Moves the cursor to the first row of another line.
    pub(super) fn enter(&mut self, line: u32, to_column_0: bool) {
        self.row = line;
        self.at_column_0 |= to_column_0;
        self.line.entered(self.heights.get(line), self.at_column_0);
    }

    pub(super) fn line_feed(&mut self, out: &mut Vec<u8>) {
        self.heights.set(self.row, self.line.rows());
        let below = self.line.rows_below();
        if below > 0 {
            move_by(out, below, b'B');
        }
        out.push(b'\n');
        self.depth.line_feed(&self.line, below);
        self.row_position.moved_to_column(0);
        self.line.ended();
        self.row = self.row.saturating_add(1);
        if self.row > self.last_row {
            self.last_row = self.row;
            self.last_row_blank = true;
        } else {
            self.line.entered(self.heights.get(self.row), true);
        }
        self.at_column_0 = true;
    }

    pub(super) fn printed(&mut self) {
        self.at_column_0 = false;
        self.last_row_blank &= self.row != self.last_row;
    }

    pub(super) fn erased_line(&mut self) {
        self.last_row_blank |= self.row == self.last_row;
    }
}
