//! The cursor's place within the lines of a block.

use super::depth::Depth;
use super::heights::Heights;
use super::near_bar::NearBar;
use super::output::move_by;
use super::row_edge::RowEdge;
use super::wrapped_line::WrappedLine;
use crate::text::hidden::RowPosition;

/// The cursor of a block, and the known facts about the block's lines. Lines are the command's; on the terminal a line
/// may take several rows.
#[derive(Debug)]
pub(super) struct BlockCursor {
    /// The cursor's line, counted from the block's first one.
    pub(super) line_number: u32,
    pub(super) last_line: u32,
    pub(super) at_column_0: bool,
    pub(super) is_last_line_blank: bool,
    pub(super) line: WrappedLine,
    pub(super) heights: Heights,
    pub(super) depth: Depth,
    pub(super) row_position: RowPosition,
    pub(super) edge: RowEdge,
    pub(super) near_bar: NearBar,
}

impl Default for BlockCursor {
    fn default() -> Self {
        Self {
            line_number: 0,
            last_line: 0,
            at_column_0: true,
            is_last_line_blank: true,
            line: WrappedLine::default(),
            heights: Heights::default(),
            depth: Depth::default(),
            row_position: RowPosition::default(),
            edge: RowEdge::new(),
            near_bar: NearBar::default(),
        }
    }
}

impl BlockCursor {
    /// Returns true if the cursor is on the block's last line, and that is blank.
    pub(super) fn is_fresh(&self) -> bool {
        self.line_number == self.last_line && self.at_column_0 && self.is_last_line_blank
    }

    /// The number of rows from the cursor's row down to the last row of `line`, which is not above the cursor's.
    pub(super) fn rows_below(&self, line: u32) -> u32 {
        self.line.rows_below() + self.heights.sum(self.line_number + 1..line + 1)
    }

    /// Moves the cursor to the first row of another line.
    pub(super) fn enter(&mut self, line: u32, to_column_0: bool) {
        self.line_number = line;
        self.near_bar.row_is_unknown();
        self.at_column_0 |= to_column_0;
        self.line.entered(self.heights.get(line), self.at_column_0);
    }

    pub(super) fn line_feed(&mut self, out: &mut Vec<u8>) {
        self.heights.set(self.line_number, self.line.rows());
        let below = self.line.rows_below();
        if below > 0 {
            move_by(out, below, b'B');
        }
        out.push(b'\n');
        self.depth.line_feed(&self.line, below);
        self.row_position.moved_to_column(0);
        self.edge.moved_to_column(0);
        self.line.ended();
        self.line_number = self.line_number.saturating_add(1);
        self.near_bar.row_begins();
        if self.line_number > self.last_line {
            self.last_line = self.line_number;
            self.is_last_line_blank = true;
        } else {
            self.near_bar.row_is_unknown();
            self.line.entered(self.heights.get(self.line_number), true);
        }
        self.at_column_0 = true;
    }

    pub(super) fn printed(&mut self) {
        self.at_column_0 = false;
        self.is_last_line_blank &= self.line_number != self.last_line;
    }

    pub(super) fn erased_line(&mut self) {
        self.is_last_line_blank |= self.line_number == self.last_line;
    }
}
