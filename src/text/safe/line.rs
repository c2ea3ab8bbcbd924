//! The line that is being written, where it is wider than the terminal.
//!
//! A command's terminal may be wider than the human's. There its long lines take several rows, and a carriage return
//! leads to the start of the last of them, so that each redraw of a progress bar would leave rows behind. [`Line`] knows
//! how many rows the line takes, and leads the cursor to where the command means it to be.
//!
//! Invariant: what is counted is a lower bound (printable ASCII only, and nothing after moves that are not followed), so
//! the cursor is never led above the line's own first row, whatever a terminal makes of other characters.

use super::move_by;

#[derive(Debug, Default)]
pub(super) struct Line {
    /// The terminal's width; 0 when it is not known, and then every line counts as one row.
    columns: u32,
    /// Characters from the line's start to the cursor, and to the farthest place where it was.
    at: u32,
    end: u32,
    /// A carriage return leads to the start of the line and not only of the row, unless the line ends there.
    is_returning: bool,
    /// Nothing is known until the next line.
    is_lost: bool,
    /// Lines end at the terminal's edge, by wish of the command.
    is_cut: bool,
}

impl Line {
    pub(super) fn resize(&mut self, columns: u16) {
        if self.columns != u32::from(columns) && self.end > 0 {
            // A terminal may or may not break the line anew.
            self.lose();
        }
        self.columns = columns.into();
    }

    /// The rows of the line.
    pub(super) fn rows(&self) -> u32 {
        self.row_of(self.end) + 1
    }

    /// The rows of the line below the cursor's.
    pub(super) fn rows_below(&self) -> u32 {
        self.row_of(self.end) - self.row_of(self.at)
    }

    /// A full row is left only with the next character.
    fn row_of(&self, at: u32) -> u32 {
        at.saturating_sub(1).checked_div(self.columns).unwrap_or(0)
    }

    /// Text without line feeds is printed.
    pub(super) fn printed(&mut self, text: &[u8]) {
        if self.columns == 0 || self.is_lost || self.is_cut {
            return;
        }
        for (n, word) in text.split(|&byte| byte == b'\t').enumerate() {
            if n > 0 {
                self.moved_right();
            }
            let count = word.iter().filter(|byte| matches!(byte, b' '..=b'~')).count();
            self.at = self.at.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
            self.end = self.end.max(self.at);
        }
    }

    pub(super) fn carriage_return(&mut self) {
        self.is_returning = true;
    }

    /// Something follows that is not the line's end: carries a carriage return out.
    pub(super) fn go_on(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.is_returning) {
            return;
        }
        let row = self.row_of(self.at);
        if row > 0 {
            move_by(out, row, b'A');
        }
        self.at = 0;
    }

    /// The cursor moves to the right within its row, or not at all. In a full row it may not wait any more for the next
    /// character to leave it.
    pub(super) fn moved_right(&mut self) {
        if self.at > 0 && self.at.checked_rem(self.columns) == Some(0) {
            self.at -= 1;
        }
    }

    /// The cursor moves within its row, nobody counts where to.
    pub(super) fn moved_in_row(&mut self) {
        self.at = self.row_of(self.at) * self.columns;
    }

    /// What is right of the cursor and below is gone.
    pub(super) fn cut(&mut self) {
        self.end = self.at;
    }

    /// The cursor has left for the next line.
    pub(super) fn ended(&mut self) {
        *self = Self { columns: self.columns, is_cut: self.is_cut, ..Self::default() };
    }

    /// The cursor is somewhere in the block.
    pub(super) fn lose(&mut self) {
        self.ended();
        self.is_lost = true;
    }

    /// Lines are to wrap, or to be cut.
    pub(super) fn wrap(&mut self, wraps: bool) {
        self.lose();
        self.is_cut = !wraps;
    }

    /// The block has ended, and with it what its command wished.
    pub(super) fn block_ended(&mut self) {
        *self = Self { columns: self.columns, ..Self::default() };
    }
}
