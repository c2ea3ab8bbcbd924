//! Cuts long lines: the part beyond some rows of the terminal is counted instead of shown.
//!
//! Invariant: the shown part and the counted one are together the whole input.

use crate::text::count::left_out;
use crate::text::width::width;

/// The bound on the lines of a block.
#[derive(Debug, Default)]
pub(super) struct LineCut {
    /// The most columns of a line; 0 for no bound.
    columns: u32,
    /// Columns from the start of the line to the cursor.
    used: u32,
    /// The bytes left out of the current line.
    bytes: u64,
}

impl LineCut {
    /// Sets the most columns of a line; 0 for no bound.
    pub(super) fn set(&mut self, columns: u32) {
        self.columns = columns;
    }

    pub(super) fn moved_to_column(&mut self, column: u32) {
        self.used = column;
    }

    pub(super) fn moved_left(&mut self, columns: u32) {
        self.used = self.used.saturating_sub(columns);
    }

    /// The part of a text without line feeds that may be shown at the cursor. The rest is counted.
    pub(super) fn part<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        if self.columns == 0 {
            return text;
        }
        let room = usize::try_from(self.columns.saturating_sub(self.used)).unwrap_or(usize::MAX);
        let (fits, used) =
            if text.is_ascii() { (room.min(text.len()), room.min(text.len())) } else { fitting(text, room) };
        self.used = self.used.saturating_add(u32::try_from(used).unwrap_or(u32::MAX));
        self.bytes += (text.len() - fits) as u64;
        &text[..fits]
    }

    /// Returns the note about the left-out part of the line, once. After full rows it stands in a row of its own.
    pub(super) fn take_note(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.bytes);
        let note = || left_out(bytes);
        (bytes > 0).then(|| if self.used < self.columns { note() } else { note().trim_start().to_owned() })
    }
}

/// The number of bytes that fit into `room` columns, and the number of columns that these take.
fn fitting(text: &[u8], room: usize) -> (usize, usize) {
    let (mut used, mut end) = (0, 0);
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if used + width(c) > room {
                return (end, used);
            }
            used += width(c);
            end += c.len_utf8();
        }
        end += chunk.invalid().len();
    }
    (end, used)
}
