//! The part of a program's output that may reach the human's terminal.
//!
//! A terminal is a program with a command language: the reply to a query is typed into the human's shell, a title or a
//! clipboard string outlives the run, and a mode that is left on breaks the next run. So [`SafeFilter`] has an allow list:
//! it passes text, TAB, LF, CR, BS, colours, moves within the lines of the block, erasing at the cursor, and the two modes
//! that [`SafeFilter::end_block`] restores. It drops everything else, also what is drawn on the alternate screen: without
//! its moves that would be fragments, and nothing of it stays on a terminal either. Such text is counted.
//!
//! Invariants:
//! * the cursor never leaves the block's own lines, so no earlier line of the console can be changed;
//! * no row begins like the host's: the host's bar and invisible characters are shown by their code points;
//! * after `end_block` the terminal is as before the block, with the cursor at the start of a fresh line;
//! * how the input was split never shows; memory is bounded; only an incomplete character is held back.
//!
//! [`raw::RawFilter`] passes all bytes, and repairs the terminal afterwards.

mod block_cursor;
mod depth;
mod heights;
mod line_cut;
pub mod live_screen;
mod near_bar;
mod output;
pub mod raw;
mod row_edge;
mod sgr;
mod wrapped_line;

pub use sgr::HEADER_SGR;

use crate::text::csi::Csi;
use crate::text::hidden;
use crate::text::parser::{Parser, Sink};
use block_cursor::BlockCursor;
use line_cut::LineCut;
use output::{move_by, write};

/// Ends an incomplete sequence, then undoes what the filter lets through. Does not move the cursor.
pub const BLOCK_RESET: &[u8] = b"\x18\x1b\\\x1b[0m\x1b[?25h\x1b[?7h";

/// Erases the screen below the block, so that text of a command that misled the cursor does not stand by the host's rows.
const ERASE_BELOW: &[u8] = b"\x1b[J";

/// The most rows or columns that one sequence may move.
const MOVE_MAX: u16 = 9_999;

/// The filter of one run; see the module's text.
#[derive(Debug, Default)]
pub struct SafeFilter {
    parser: Parser,
    block: BlockCursor,
    alternate: Alternate,
    is_colourless: bool,
    cut: LineCut,
}

/// The alternate screen that the program draws on.
#[derive(Debug, Default)]
struct Alternate {
    is_on: bool,
    hidden_bytes: u64,
}

impl SafeFilter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the terminal's width; 0 if unknown.
    pub fn resize(&mut self, columns: u16) {
        self.block.row_position.resize(columns);
        self.block.edge.resize(columns);
        if self.block.line.resize(columns) {
            self.block.heights.forget();
            self.block.depth.forget();
        }
    }

    /// Lets colours and attributes pass (the default), or drops them.
    pub fn keep_colours(&mut self, keep: bool) {
        self.is_colourless = !keep;
    }

    /// Sets the most columns of a line; 0 for no bound, as at first. The rest of a longer line is counted.
    pub fn cut_lines(&mut self, columns: u32) {
        self.cut.set(columns);
    }

    /// Takes the next bytes, and appends those that may be shown.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let Self { parser, block, alternate, is_colourless, cut } = self;
        parser.push(input, &mut SafeSink { block, alternate, is_colourless: *is_colourless, cut, out });
    }

    /// Ends the block: drops incomplete sequences, resets the terminal, and moves the cursor to a fresh line.
    pub fn end_block(&mut self, out: &mut Vec<u8>) {
        let Self { parser, block, alternate, is_colourless, cut } = self;
        let mut sink = SafeSink { block, alternate, is_colourless: *is_colourless, cut, out };
        parser.finish(&mut sink);
        sink.note_cut();
        sink.cut.moved_to_column(0);
        self.block.edge.release(out);
        out.extend_from_slice(BLOCK_RESET);
        let below = self.block.rows_below(self.block.last_line);
        if below > 0 {
            move_by(out, below, b'B');
        }
        if below > 0 || !self.block.is_fresh() {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(ERASE_BELOW);
        let mut line = std::mem::take(&mut self.block.line);
        line.block_ended();
        let mut row_position = std::mem::take(&mut self.block.row_position);
        row_position.moved_to_column(0);
        let mut edge = std::mem::take(&mut self.block.edge);
        edge.block_ended();
        self.block = BlockCursor { line, row_position, edge, ..BlockCursor::default() };
    }

    /// Writes the last character again after the cursor was saved and restored: many terminals then forget that the
    /// next character after a full row belongs to the next row.
    pub fn mend_cursor(&self, out: &mut Vec<u8>) {
        self.block.edge.write_last(out);
    }

    /// Returns the number of bytes of hidden text (drawn on the alternate screen) since the last call.
    pub fn take_hidden_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.alternate.hidden_bytes)
    }

    /// Returns true if the block can end here without splitting a line, a character or a sequence.
    pub fn at_line_start(&self) -> bool {
        self.parser.is_at_rest() && self.block.is_fresh()
    }
}

struct SafeSink<'a> {
    block: &'a mut BlockCursor,
    alternate: &'a mut Alternate,
    is_colourless: bool,
    cut: &'a mut LineCut,
    out: &'a mut Vec<u8>,
}

impl Sink for SafeSink<'_> {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        if self.alternate.is_on {
            self.alternate.hidden_bytes += run.len() as u64;
            return;
        }
        self.block.edge.release(self.out);
        for part in run.split_inclusive(|&b| b == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let is_line = text.len() < part.len();
            let part = self.cut.part(text);
            self.print(part);
            if is_line {
                self.note_cut();
                self.cut.moved_to_column(0);
                self.block.line_feed(self.out);
            }
        }
    }

    fn control(&mut self, byte: u8) {
        self.block.edge.release(self.out);
        match byte {
            _ if self.alternate.is_on => {}
            b'\r' => {
                self.note_cut();
                self.cut.moved_to_column(0);
                self.block.at_column_0 = true;
                self.block.near_bar.moved();
                self.block.row_position.moved_to_column(0);
                self.block.edge.moved_to_column(0);
                self.block.line.carriage_return();
                self.out.push(byte);
            }
            0x08 => {
                self.block.line.go_on(self.out);
                self.block.line.moved_in_row();
                self.block.near_bar.moved();
                self.block.row_position.moved_left();
                self.block.edge.moved_by(-1);
                self.cut.moved_left(1);
                self.out.push(byte);
            }
            0x0B | 0x0C => {
                self.note_cut();
                self.cut.moved_to_column(0);
                self.block.line_feed(self.out);
            }
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        // A hard reset also leaves the alternate screen.
        self.alternate.is_on &= (intermediates, last) != (b"", b'c');
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates) {
            (None, []) => self.plain_csi(&csi, last),
            (Some(b'?'), []) if matches!(last, b'h' | b'l') => {
                for mode in csi.values() {
                    match mode {
                        7 | 25 => self.mode(mode, last),
                        47 | 1047 | 1049 => self.alternate.is_on = last == b'h',
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

impl SafeSink<'_> {
    fn print(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if !self.block.near_bar.reads(text) {
            return self.put(text);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (row, next) = self.block.edge.split_row(rest);
            rest = next;
            match self.block.near_bar.printed(row, self.block.edge.next_column()) {
                None => self.put(row),
                Some((at, added)) => {
                    [&row[..at], added.as_bytes(), &row[at..]].into_iter().for_each(|part| self.put(part))
                }
            }
        }
    }

    fn put(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.block.line.go_on(self.out);
        let start = self.out.len();
        hidden::show_in(text, &mut self.block.row_position, self.out);
        self.block.line.printed(&self.out[start..]);
        self.block.edge.printed(&self.out[start..]);
        self.block.printed();
    }

    /// Writes at the end of a line how much of it is left out.
    fn note_cut(&mut self) {
        if let Some(note) = self.cut.take_note() {
            self.print(note.as_bytes());
        }
    }

    fn mode(&mut self, mode: u16, last: u8) {
        if mode == 7 {
            self.block.row_position.moved_left();
            self.block.line.go_on(self.out);
            self.block.line.wrap(last == b'h');
            self.block.edge.wrap(last == b'h');
        }
        self.block.edge.release(self.out);
        write(self.out, mode.into(), b"\x1b[?", last);
    }

    fn plain_csi(&mut self, csi: &Csi<'_>, last: u8) {
        if last == b'm' {
            if !self.is_colourless {
                self.block.near_bar.coloured(csi.values());
                sgr::filter(csi.params, self.block.edge.for_colours(self.out));
            }
            return;
        }
        if self.alternate.is_on || csi.values().count() > 1 || csi.params.contains(&b':') {
            return;
        }
        self.block.edge.release(self.out);
        self.block.line.go_on(self.out);
        match last {
            b'K' => self.erase_line(csi.value(0)),
            b'J' if csi.value(0) == 0 => self.erase_below(),
            b'G' | b'C' | b'D' => self.move_in_row(csi.count(0).min(MOVE_MAX), last),
            b'A' | b'F' => self.move_up(csi.count(0).min(MOVE_MAX).into(), last),
            b'B' | b'E' => self.move_down(csi.count(0).min(MOVE_MAX).into(), last),
            _ => {}
        }
    }

    fn move_in_row(&mut self, count: u16, last: u8) {
        self.block.near_bar.moved();
        move_by(self.out, count.into(), last);
        match last {
            b'G' => {
                self.cut.moved_to_column(u32::from(count) - 1);
                self.block.row_position.moved_to_column(u32::from(count) - 1);
                self.block.edge.moved_to_column(u32::from(count) - 1);
            }
            b'C' => {
                self.block.row_position.moved_right(count.into());
                self.block.edge.moved_by(count.into());
            }
            _ => {
                self.block.edge.moved_by(-i64::from(count));
                self.cut.moved_left(count.into());
                self.block.row_position.moved_left();
            }
        }
        match (last, count) {
            (b'G', 1) => {
                self.block.at_column_0 = true;
                return self.block.line.carriage_return();
            }
            (b'C', _) => {
                self.block.at_column_0 = false;
                return self.block.line.moved_right();
            }
            (b'G', _) => self.block.at_column_0 = false,
            // The end of a move to the left is unknown; at worst the block gets a blank line too many.
            _ => {}
        }
        self.block.line.moved_in_row();
    }

    fn erase_line(&mut self, what: u16) {
        if what > 2 {
            return;
        }
        self.block.row_position.touched();
        self.block.edge.touched();
        self.block.near_bar.erased();
        if what == 2 || (what == 0 && self.block.at_column_0) {
            self.block.erased_line();
        }
        let is_last = self.block.line_number == self.block.last_line;
        let below = self.block.line.rows_below().min(self.block.depth.below(&self.block.line));
        match (what, is_last && self.block.line.rows() > 1) {
            (0, true) => self.out.extend_from_slice(b"\x1b[0J"),
            (2, true) => self.out.extend_from_slice(b"\x1b[1K\x1b[0J"),
            _ => write(self.out, what.into(), b"\x1b[", b'K'),
        }
        if !is_last && what != 1 && below > 0 {
            (0..below).for_each(|_| self.out.extend_from_slice(b"\x1b[1B\x1b[2K"));
            move_by(self.out, below, b'A');
        }
        if what != 1 {
            self.block.line.cut(is_last);
        }
        self.block.line.moved_right();
    }

    /// Erases the lines below, and the rest of this one.
    fn erase_below(&mut self) {
        if self.block.line_number == self.block.last_line {
            return self.erase_line(0);
        }
        self.block.last_line = self.block.line_number;
        self.block.is_last_line_blank = self.block.at_column_0;
        self.block.heights.truncate_after(self.block.line_number);
        self.block.edge.touched();
        self.block.line.cut(true);
        self.out.extend_from_slice(b"\x1b[0J");
    }

    /// Moves up, to the block's first line at most. `F` ends in the first column, `A` keeps the column.
    fn move_up(&mut self, count: u32, last: u8) {
        let block = &mut *self.block;
        let line = block.line_number - count.min(block.line_number);
        let rows = if line < block.line_number {
            block.line.rows_above() + block.heights.sum(line..block.line_number)
        } else {
            0
        };
        self.go_to(line, rows, b'A', last == b'F');
    }

    /// Moves down, to the block's last line at most.
    fn move_down(&mut self, count: u32, last: u8) {
        let block = &mut *self.block;
        let line = block.line_number + count.min(block.last_line - block.line_number);
        let rows = if line > block.line_number { block.rows_below(line - 1) + 1 } else { 0 };
        self.go_to(line, rows, b'B', last == b'E');
    }

    fn go_to(&mut self, line: u32, mut rows: u32, last: u8, to_column_0: bool) {
        if line != self.block.line_number {
            let BlockCursor { depth, line: left, .. } = &mut *self.block;
            if last == b'A' {
                rows = rows.min(depth.above(left));
                depth.went_up(left, rows);
            } else {
                depth.went_down(left, rows);
            }
            self.block.heights.set(self.block.line_number, self.block.line.rows());
            self.block.enter(line, to_column_0);
        } else if to_column_0 {
            self.block.line.carriage_return();
        }
        self.move_rows(rows, last, to_column_0);
    }

    fn move_rows(&mut self, rows: u32, last: u8, to_column_0: bool) {
        if rows > 0 {
            move_by(self.out, rows, last);
            self.block.edge.touched();
        }
        if to_column_0 {
            self.block.at_column_0 = true;
            self.cut.moved_to_column(0);
            self.block.row_position.moved_to_column(0);
            self.block.edge.moved_to_column(0);
            self.out.push(b'\r');
        }
    }
}
