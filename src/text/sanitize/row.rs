//! One row of the screen: its cells, and how it reads as text.
//!
//! In a row that was only ever written from left to right, trailing blanks and TABs are data. An edit makes the row
//! *dirty*: its trailing blanks are then what an erasure left behind.
//!
//! Invariants: the cells of a wide character or a TAB are one head followed by its tails, and no edit leaves half of
//! such a group; zero-width marks are bounded by [`EXTRA_BYTES_MAX`], so a row's memory is bounded by its columns.

use super::row_history::RowHistory;

/// The most bytes of zero-width marks, and TABs at the right margin, in one row. A line of no more bytes loses none.
pub(crate) const EXTRA_BYTES_MAX: usize = 4096;

/// A character, or an index into the row's clusters, with flags above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell(u32);

/// The cell belongs to the group whose head is to its left.
const TAIL: u32 = 1 << 31;
/// The cell is the first one of a wide character or a TAB.
const HEAD: u32 = 1 << 30;
/// The low bits are an index into `Row::clusters`.
const CLUSTER: u32 = 1 << 29;
const VALUE: u32 = CLUSTER - 1;
const BLANK: Cell = Cell(b' ' as u32);

#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    cells: Vec<Cell>,
    /// Marks that came before the first cell.
    prefix: Vec<u8>,
    /// Characters with marks; cells that were overwritten leave theirs behind until the next compaction.
    clusters: Vec<Vec<u8>>,
    extra_bytes: usize,
    wrapped: bool,
    dirty: bool,
    /// Some cell is not a single ASCII character.
    mixed: bool,
    pub(super) history: RowHistory,
}

impl Row {
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Makes the row new, in the same memory.
    pub(crate) fn reset(&mut self) {
        self.cells.clear();
        self.prefix.clear();
        self.clusters.clear();
        self.extra_bytes = 0;
        self.wrapped = false;
        self.dirty = false;
        self.mixed = false;
        self.history = RowHistory::default();
    }

    /// Returns true if the row was never written.
    pub(crate) fn is_fresh(&self) -> bool {
        self.cells.is_empty() && self.prefix.is_empty() && !self.wrapped && !self.dirty
    }

    pub(crate) fn set_wrapped(&mut self) {
        self.wrapped = true;
        self.history.touch();
    }

    pub(crate) fn wrapped(&self) -> bool {
        self.wrapped
    }

    /// The next row is erased as a whole and no longer continues this one.
    pub(crate) fn set_unwrapped(&mut self) {
        if self.wrapped {
            self.wrapped = false;
            self.history.touch();
        }
    }

    /// Returns true if the next row continues this one's line after a soft wrap. A redrawn row that is padded with
    /// blanks up to the margin is a line of its own: tools that let a full-width bar wrap mean two lines.
    pub(crate) fn joined(&self) -> bool {
        self.wrapped && !(self.dirty && self.cells.ends_with(&[BLANK, BLANK]))
    }

    /// The number of cells of the text.
    fn text_len(&self) -> usize {
        if !self.dirty || self.joined() {
            return self.cells.len();
        }
        self.cells.iter().rposition(|&cell| cell != BLANK).map_or(0, |at| at + 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prefix.is_empty() && self.text_len() == 0
    }

    pub(crate) fn render(&self, out: &mut Vec<u8>) {
        self.render_to(0, out);
    }

    /// As [`Self::render`], with the blanks after the text up to column `col`, where the cursor is: a prompt ends in
    /// one.
    #[expect(clippy::cast_possible_truncation, reason = "the caller knows that the row is ASCII")]
    pub(crate) fn render_to(&self, col: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        let cells = match self.text_len() {
            0 => &[],
            len => &self.cells[..len.max(col.min(self.cells.len()))],
        };
        if !self.mixed {
            out.extend(cells.iter().map(|cell| cell.0 as u8));
            return;
        }
        for cell in cells {
            if cell.0 & TAIL != 0 {
                continue;
            }
            match self.cluster(*cell) {
                Some(cluster) => out.extend_from_slice(cluster),
                None => push_char(out, cell.char()),
            }
        }
    }

    fn cluster(&self, cell: Cell) -> Option<&[u8]> {
        (cell.0 & CLUSTER != 0).then(|| self.clusters[(cell.0 & VALUE) as usize].as_slice())
    }

    /// Blanks the group that contains cell `at`, before the cell changes.
    fn ungroup(&mut self, at: usize) {
        if !self.mixed || self.cells.get(at).is_none_or(|cell| cell.0 & (HEAD | TAIL) == 0) {
            return;
        }
        let mut start = at;
        while self.cells[start].0 & TAIL != 0 {
            start -= 1;
        }
        let tails = self.cells[start + 1..].iter().take_while(|cell| cell.0 & TAIL != 0).count();
        self.cells[start..=start + tails].fill(BLANK);
    }

    /// Makes the row at least `len` cells long. Added blanks make it dirty.
    fn pad(&mut self, len: usize) {
        if self.cells.len() < len {
            self.dirty = true;
            self.cells.resize(len, BLANK);
        }
    }

    fn overwrite(&mut self, at: usize, end: usize) {
        self.history.touch();
        self.pad(at);
        let end = end.min(self.cells.len());
        if at < end {
            self.history.rewrite();
            self.dirty = true;
            self.ungroup(at);
            self.ungroup(end - 1);
        }
    }

    /// Writes printable ASCII characters from column `at`.
    pub(crate) fn write_ascii(&mut self, at: usize, text: &[u8]) {
        self.overwrite(at, at + text.len());
        let over = (self.cells.len() - at).min(text.len());
        let (old, new) = text.split_at(over);
        for (cell, &byte) in self.cells[at..at + over].iter_mut().zip(old) {
            *cell = Cell(byte.into());
        }
        self.cells.extend(new.iter().map(|&byte| Cell(byte.into())));
    }

    /// Writes a character of one or two columns.
    pub(crate) fn write_char(&mut self, at: usize, c: char, columns: usize) {
        self.overwrite(at, at + columns);
        self.mixed |= !c.is_ascii() || columns == 2;
        let head = if columns == 2 { HEAD } else { 0 };
        self.put(at, Cell(u32::from(c) | head));
        if columns == 2 {
            self.put(at + 1, Cell(TAIL));
        }
    }

    fn put(&mut self, at: usize, cell: Cell) {
        match self.cells.get_mut(at) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
    }

    /// Writes a TAB at the end of the row's text, from column `at` to before `stop`.
    pub(crate) fn write_tab(&mut self, at: usize, stop: usize) {
        self.history.touch();
        self.pad(at);
        self.mixed = true;
        self.cells.push(Cell(u32::from('\t') | HEAD));
        self.cells.resize(stop, Cell(TAIL));
    }

    /// Adds a zero-width mark to cell `at`, or before all cells.
    #[expect(clippy::cast_possible_truncation, reason = "a row has fewer clusters than columns")]
    pub(crate) fn add_mark(&mut self, at: Option<usize>, mark: char) {
        self.history.touch();
        if let Some(at) = at {
            self.pad(at + 1);
        }
        if self.extra_bytes + mark.len_utf8() > EXTRA_BYTES_MAX {
            self.compact();
            if self.extra_bytes + mark.len_utf8() > EXTRA_BYTES_MAX {
                return;
            }
        }
        self.extra_bytes += mark.len_utf8();
        let Some(mut at) = at else { return push_char(&mut self.prefix, mark) };
        while self.cells[at].0 & TAIL != 0 {
            at -= 1;
        }
        let cell = self.cells[at];
        if cell.0 & CLUSTER != 0 {
            return push_char(&mut self.clusters[(cell.0 & VALUE) as usize], mark);
        }
        if self.clusters.len() > 2 * self.cells.len() + 8 {
            self.compact();
        }
        let mut cluster = Vec::with_capacity(8);
        push_char(&mut cluster, cell.char());
        push_char(&mut cluster, mark);
        self.mixed = true;
        self.cells[at] = Cell(self.clusters.len() as u32 | CLUSTER | (cell.0 & HEAD));
        self.clusters.push(cluster);
    }

    /// Drops the clusters whose cells were overwritten.
    #[expect(clippy::cast_possible_truncation, reason = "a row has fewer clusters than columns")]
    fn compact(&mut self) {
        let mut kept = Vec::new();
        let mut bytes = self.prefix.len();
        for cell in self.cells.iter_mut().filter(|cell| cell.0 & CLUSTER != 0) {
            let cluster = std::mem::take(&mut self.clusters[(cell.0 & VALUE) as usize]);
            bytes += cluster.len() - 1;
            *cell = Cell(kept.len() as u32 | CLUSTER | (cell.0 & HEAD));
            kept.push(cluster);
        }
        self.clusters = kept;
        self.extra_bytes = bytes;
    }

    /// Keeps a TAB at the right margin as text, although it moves nothing.
    pub(crate) fn keep_tab(&mut self) {
        if !self.cells.is_empty() {
            self.add_mark(Some(self.cells.len() - 1), '\t');
        }
    }

    pub(crate) fn blank(&mut self, from: usize, to: usize) {
        let to = to.min(self.cells.len());
        if from >= to {
            return;
        }
        self.overwrite(from, to);
        self.cells[from..to].fill(BLANK);
    }

    /// Erases from column `at` to the end.
    pub(crate) fn truncate(&mut self, at: usize) {
        self.history.touch();
        if at < self.cells.len() {
            self.history.rewrite();
            self.ungroup(at);
            self.cells.truncate(at);
            self.dirty = true;
        }
        self.wrapped = false;
    }

    pub(crate) fn clear(&mut self) {
        self.history.touch();
        if !self.cells.is_empty() {
            self.history.rewrite();
            self.dirty = true;
        }
        self.cells.clear();
        self.prefix.clear();
        self.clusters.clear();
        self.extra_bytes = 0;
        self.mixed = false;
        self.wrapped = false;
    }

    /// Moves the cells from column `at` on to the right by `count`. Cells that pass `columns` are lost.
    pub(crate) fn insert(&mut self, at: usize, count: usize, columns: usize) {
        if at >= self.cells.len() {
            return;
        }
        self.history.rewrite();
        self.ungroup(at);
        self.dirty = true;
        self.cells.splice(at..at, std::iter::repeat_n(BLANK, count.min(columns)));
        if self.cells.len() > columns {
            self.ungroup(columns);
            self.cells.truncate(columns);
        }
    }

    /// Removes `count` cells from column `at`.
    pub(crate) fn delete(&mut self, at: usize, count: usize) {
        if at >= self.cells.len() {
            return;
        }
        self.history.rewrite();
        let end = at.saturating_add(count).min(self.cells.len());
        self.ungroup(at);
        self.ungroup(end - 1);
        self.cells.drain(at..end);
        self.dirty = true;
    }
}

impl Cell {
    fn char(self) -> char {
        char::from_u32(self.0 & VALUE).unwrap_or(' ')
    }
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
