//! The current line, if it is wider than the terminal.
//!
//! A command's terminal may be wider than the human's. A long line then takes several rows, and a carriage return goes to
//! the start of the last one, so that each redraw of a progress bar would leave rows behind. [`WrappedLine`] counts the
//! rows of the line, and moves the cursor to where the command means it to be.
//!
//! Invariant: counts are lower bounds (a character on whose width terminals differ counts the least; nothing counts after a
//! move that is not followed), so the cursor never gets above the first row of the line.

use super::output::move_by;
use crate::text::width::width;

/// Joins the characters on both sides into one picture, on some terminals.
const JOINER: char = '\u{200D}';
/// Makes the picture before it a narrow sign, on some terminals.
const AS_TEXT: char = '\u{FE0E}';

/// The columns that a character takes on any terminal, at least.
#[expect(clippy::cast_possible_truncation, reason = "a character has two columns at most")]
fn least_width(c: char) -> u32 {
    let is_sure = match c {
        // Latin, Greek, Cyrillic; punctuation, arrows, mathematics, boxes, blocks, braille, and other symbols.
        '\u{AD}' => false,
        // Marks that some terminals put in the column before.
        '\u{FF9E}' | '\u{FF9F}' => false,
        ' '..='\u{58F}' | '\u{1E00}'..='\u{1FFF}' | '\u{2010}'..='\u{2BFF}' => true,
        // The scripts of East Asia, and the forms of Latin that fit them.
        '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}' | '\u{FF01}'..='\u{FFDC}' => true,
        // Powerline symbols.
        '\u{E0A0}'..='\u{E0D4}' => true,
        // Old emoji, without skin tones, which change the emoji before them.
        '\u{1F3FB}'..='\u{1F3FF}' => false,
        '\u{1F300}'..='\u{1F64F}' | '\u{1F680}'..='\u{1F6C5}' | '\u{1F7E0}'..='\u{1F7EB}' => true,
        '\u{1F90D}'..='\u{1F9FF}' => true,
        _ => false,
    };
    let columns = if is_sure { width(c) } else { 0 };
    // Some of these are wide as emoji and narrow as text.
    if matches!(c, '\u{2010}'..='\u{2BFF}') { columns.min(1) as u32 } else { columns as u32 }
}

/// The columns of a character that is equally wide on every terminal; `None` for another one.
pub(super) fn sure_width(c: char) -> Option<u32> {
    let least = least_width(c);
    (least > 0 && usize::try_from(least) == Ok(width(c))).then_some(least)
}

#[derive(Debug, Default)]
pub(super) struct WrappedLine {
    /// The terminal's width; 0 if unknown, and then each line counts as one row.
    columns: u32,
    /// Columns from the line's start to the cursor, and to the farthest place that it has reached.
    at: u32,
    end: u32,
    /// Rows of the line when the cursor left it.
    rows_before: u32,
    /// The last character joins the next one.
    is_joining: bool,
    /// The last character counts as two columns.
    is_wide: bool,
    /// A carriage return is pending. It goes to the start of the line, not only of the row, unless the line ends.
    is_returning: bool,
    /// The cursor's place is unknown until the next line.
    is_lost: bool,
    /// The command has switched off wrapping.
    is_cut: bool,
}

impl WrappedLine {
    /// Sets the terminal's width. Returns true if it changed.
    pub(super) fn resize(&mut self, columns: u16) -> bool {
        let is_other = self.columns != u32::from(columns);
        if is_other && self.end > 0 {
            // A terminal may or may not wrap the line anew.
            self.lose();
        }
        self.columns = columns.into();
        is_other
    }

    /// The number of rows of the line.
    pub(super) fn rows(&self) -> u32 {
        (self.row_of(self.end) + 1).max(self.rows_before)
    }

    /// The number of rows of the line above the cursor's.
    pub(super) fn rows_above(&self) -> u32 {
        self.row_of(self.at)
    }

    /// The number of rows from the line's first one to the last one that was certainly written.
    pub(super) fn rows_to_end(&self) -> u32 {
        self.row_of(self.end.max(self.at))
    }

    /// The number of rows of the line below the cursor's.
    pub(super) fn rows_below(&self) -> u32 {
        self.rows() - 1 - self.row_of(self.at)
    }

    /// The row of a column. The cursor leaves a full row only with the next character.
    fn row_of(&self, at: u32) -> u32 {
        at.saturating_sub(1).checked_div(self.columns).unwrap_or(0)
    }

    /// Records printed text, without line feeds.
    pub(super) fn printed(&mut self, text: &[u8]) {
        if self.columns == 0 || self.is_lost || self.is_cut {
            return;
        }
        for (n, word) in text.split(|&byte| byte == b'\t').enumerate() {
            if n > 0 {
                self.moved_right();
            }
            self.advance(word);
            self.end = self.end.max(self.at);
        }
    }

    fn advance(&mut self, word: &[u8]) {
        if word.is_ascii() {
            let count = word.iter().filter(|byte| matches!(byte, b' '..=b'~')).count();
            self.at = self.at.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
            self.is_joining &= word.is_empty();
            return;
        }
        for c in word.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            let is_joined = std::mem::replace(&mut self.is_joining, c == JOINER);
            if c == AS_TEXT && std::mem::take(&mut self.is_wide) {
                // On a terminal that shows it as text, it is a column narrower, or does not begin a row.
                self.at = self.at.saturating_sub(2);
            }
            let columns = if is_joined { 0 } else { least_width(c) };
            self.is_wide = columns == 2;
            if columns == 2 && self.at % self.columns == self.columns - 1 {
                // It does not fit into the row.
                self.at += 1;
            }
            self.at = self.at.saturating_add(columns);
        }
    }

    pub(super) fn carriage_return(&mut self) {
        self.is_returning = true;
    }

    /// Carries out a pending carriage return, because the line goes on.
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

    /// Records a move to the right within the row, which may be none. In a full row, the next character may then stay in it.
    pub(super) fn moved_right(&mut self) {
        if self.at > 0 && self.at.checked_rem(self.columns) == Some(0) {
            self.at -= 1;
        }
    }

    /// Records a move within the row to an unknown column.
    pub(super) fn moved_in_row(&mut self) {
        self.at = self.row_of(self.at) * self.columns;
    }

    /// Records that the line is erased right of the cursor; if the line is the block's last one, also its rows below.
    pub(super) fn cut(&mut self, is_last: bool) {
        self.end = self.at;
        if is_last {
            self.rows_before = 0;
        }
    }

    /// Moves the cursor from another line to the first row of this one, which has `rows`. Unless it is in the first column,
    /// its column is unknown, because the count of the other line is only a lower bound.
    pub(super) fn entered(&mut self, rows: u32, at_column_0: bool) {
        *self = Self { rows_before: rows, is_lost: !at_column_0, ..self.fresh() };
    }

    /// Moves the cursor to the next line.
    pub(super) fn ended(&mut self) {
        *self = self.fresh();
    }

    fn fresh(&self) -> Self {
        Self { columns: self.columns, is_cut: self.is_cut, ..Self::default() }
    }

    /// Records that the cursor is at an unknown place.
    pub(super) fn lose(&mut self) {
        self.ended();
        self.is_lost = true;
    }

    pub(super) fn wrap(&mut self, wraps: bool) {
        self.lose();
        self.is_cut = !wraps;
    }

    /// Ends the block, and with it the modes of its command.
    pub(super) fn block_ended(&mut self) {
        *self = Self { columns: self.columns, ..Self::default() };
    }
}
