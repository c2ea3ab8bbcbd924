//! The line that is being written, where it is wider than the terminal.
//!
//! A command's terminal may be wider than the human's. There its long lines take several rows, and a carriage return
//! leads to the start of the last of them, so that each redraw of a progress bar would leave rows behind. [`Line`] knows
//! how many rows the line takes, and leads the cursor to where the command means it to be.
//!
//! Invariant: what is counted is a lower bound (of characters on whose width terminals differ, the least; nothing after
//! moves that are not followed), so the cursor is never led above the line's own first row, whatever the terminal.

use super::move_by;
use crate::text::width::width;

/// Makes one picture of the characters on both sides of it, where a terminal can.
const JOINER: char = '\u{200D}';
/// Makes a narrow sign of the picture before it, where a terminal can.
const AS_TEXT: char = '\u{FE0E}';

/// The columns that a character takes on any terminal.
fn least_width(c: char) -> u32 {
    let is_sure = match c {
        // Latin, Greek, Cyrillic; punctuation, arrows, mathematics, boxes, blocks, braille, and other symbols.
        '\u{AD}' => false,
        // Marks that some terminals put into the column before.
        '\u{FF9E}' | '\u{FF9F}' => false,
        ' '..='\u{58F}' | '\u{1E00}'..='\u{1FFF}' | '\u{2010}'..='\u{2BFF}' => true,
        // The scripts of East Asia, and the forms of Latin that fit them.
        '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}' | '\u{FF01}'..='\u{FFDC}' => true,
        // What prompts are made of.
        '\u{E0A0}'..='\u{E0D4}' => true,
        // Pictures of the first years, but the tones of skin, which change the one before.
        '\u{1F3FB}'..='\u{1F3FF}' => false,
        '\u{1F300}'..='\u{1F64F}' | '\u{1F680}'..='\u{1F6C5}' | '\u{1F7E0}'..='\u{1F7EB}' => true,
        '\u{1F90D}'..='\u{1F9FF}' => true,
        _ => false,
    };
    let columns = if is_sure { width(c) } else { 0 };
    // Some of these are wide as pictures and narrow as signs.
    if matches!(c, '\u{2010}'..='\u{2BFF}') { columns.min(1) as u32 } else { columns as u32 }
}

#[derive(Debug, Default)]
pub(super) struct Line {
    /// The terminal's width; 0 when it is not known, and then every line counts as one row.
    columns: u32,
    /// Characters from the line's start to the cursor, and to the farthest place where it was.
    at: u32,
    end: u32,
    /// Rows that the line had when the cursor left it.
    rows_before: u32,
    /// The last character glues the next one to it.
    is_joining: bool,
    /// The last character counts as two columns.
    is_wide: bool,
    /// A carriage return leads to the start of the line and not only of the row, unless the line ends there.
    is_returning: bool,
    /// Nothing is known until the next line.
    is_lost: bool,
    /// Lines end at the terminal's edge, by wish of the command.
    is_cut: bool,
}

impl Line {
    /// The terminal's width is this now; whether it was another one.
    pub(super) fn resize(&mut self, columns: u16) -> bool {
        let is_other = self.columns != u32::from(columns);
        if is_other && self.end > 0 {
            // A terminal may or may not break the line anew.
            self.lose();
        }
        self.columns = columns.into();
        is_other
    }

    /// The rows of the line.
    pub(super) fn rows(&self) -> u32 {
        (self.row_of(self.end) + 1).max(self.rows_before)
    }

    /// The rows of the line above the cursor's.
    pub(super) fn rows_above(&self) -> u32 {
        self.row_of(self.at)
    }

    /// The rows between its first one and the last one that was certainly written.
    pub(super) fn rows_to_end(&self) -> u32 {
        self.row_of(self.end.max(self.at))
    }

    /// The rows of the line below the cursor's.
    pub(super) fn rows_below(&self) -> u32 {
        self.rows() - 1 - self.row_of(self.at)
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
                // Where a terminal takes the picture for text, it takes a column less, or does not begin a row.
                self.at = self.at.saturating_sub(2);
            }
            let columns = if is_joined { 0 } else { least_width(c) };
            self.is_wide = columns == 2;
            if columns == 2 && self.at % self.columns == self.columns - 1 {
                // It does not fit into the row any more.
                self.at += 1;
            }
            self.at = self.at.saturating_add(columns);
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

    /// What is right of the cursor is gone, and with it the rows below where the line is the last one.
    pub(super) fn cut(&mut self, is_last: bool) {
        self.end = self.at;
        if is_last {
            self.rows_before = 0;
        }
    }

    /// The cursor has come from another line of the block to the first row of this one, which has so many. Unless it
    /// stands in the first column, nobody knows where: what is counted of the other line is only a lower bound.
    pub(super) fn entered(&mut self, rows: u32, at_column_0: bool) {
        *self = Self { rows_before: rows, is_lost: !at_column_0, ..self.fresh() };
    }

    /// The cursor has left for the next line.
    pub(super) fn ended(&mut self) {
        *self = self.fresh();
    }

    fn fresh(&self) -> Self {
        Self { columns: self.columns, is_cut: self.is_cut, ..Self::default() }
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
