//! The line that has no end yet: its text, the part that the reader has, and the time at which it gets the rest.
//!
//! A stream without line feeds may be a text whose lines end in CR alone ([`super::return_ended`]). When the reader
//! would get the first part of such a text, it gets that byte for byte, and the rest as it comes.
//!
//! Invariants: a line that nothing edits is kept byte for byte; at most [`HELD_BYTES_MAX`] bytes and the cells of one
//! line are kept; a longer line goes to the reader as it comes.

use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

use super::cells::{COLUMNS_MAX, Cells};
use super::return_ended::is_return_ended;
use crate::text::sanitize::hold::LineHold;
use crate::text::sanitize::row_sender::is_short_of_blanks;

/// An open line of more bytes than this goes to the reader as it comes. An edit of it then begins a new line.
const HELD_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Clone, Default)]
pub(super) struct OpenLine {
    /// All bytes of the line except escape sequences; empty once the line is too long.
    text: Vec<u8>,
    /// The line as edited; `text` is the line until the first edit.
    cells: Option<Box<Cells>>,
    given: Vec<u8>,
    /// The reader has the beginning of the line, or of an earlier state.
    is_open: bool,
    /// The part that the reader has is no longer in the line.
    is_stale: bool,
    /// The line is too long to be kept.
    is_long: bool,
    /// `text` misses bytes that came after the first edit.
    is_cut: bool,
    /// An edit other than a carriage return changed the line.
    is_drawn: bool,
    /// A line feed came before.
    follows_line: bool,
    /// The line is text whose lines end in CR alone, and the reader has all of it.
    passes_returns: bool,
    /// Carriage returns at the end of the input. They mean nothing before a line feed.
    returns: usize,
    /// The time of the last write to the cells, until the next look.
    touched_at: Option<Instant>,
    /// A hash of the text at the last look.
    seen: Option<u64>,
    hold: LineHold,
}

impl OpenLine {
    /// Returns true if the line has no bytes yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.text.is_empty() && self.cells.is_none() && !self.is_open && self.returns == 0
    }

    /// Returns true if nothing edits the line and the reader has none of it.
    pub(super) fn is_as_it_came(&self) -> bool {
        self.cells.is_none() && !self.is_open && !self.is_long && !self.is_cut && self.returns == 0
    }

    /// Records that lines pass before the next one begins.
    pub(super) fn follow_lines(&mut self) {
        self.follows_line = true;
    }

    /// Appends the text, because the rest of the line follows in one piece with the lines after it.
    pub(super) fn give_as_it_came(&mut self, out: &mut Vec<u8>) {
        if !self.text.is_empty() {
            out.extend_from_slice(&self.text);
            self.reset();
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.cells.is_none()
    }

    /// Takes text without line feeds.
    pub(super) fn write(&mut self, text: &[u8], now: Option<Instant>, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        if self.returns > 0 {
            self.edit(out);
        }
        if self.cells.is_some() {
            return self.write_edited(text, now, out);
        }
        self.keep(text);
        if self.is_long {
            out.extend_from_slice(text);
        } else if self.text.len() > HELD_BYTES_MAX {
            let held = std::mem::take(&mut self.text);
            out.extend_from_slice(&held[self.given.len()..]);
            self.pass_on();
        } else if let Some(now) = now {
            self.hold.on_touched(now);
        }
    }

    /// Passes the rest of the line as it comes; the reader has the line so far.
    fn pass_on(&mut self) {
        (self.is_long, self.is_open) = (true, true);
        self.given = Vec::new();
        self.hold.release();
    }

    /// Writes text after an edit. Text that does not fit decides what becomes of the line.
    fn write_edited(&mut self, text: &[u8], now: Option<Instant>, out: &mut Vec<u8>) {
        self.touched_at = now;
        let room =
            if self.is_long || self.is_cut { text.len() } else { HELD_BYTES_MAX.saturating_sub(self.text.len()) };
        let (text, rest) = text.split_at(text.len().min(room));
        self.keep(text);
        self.write_cells(text, out);
        if rest.is_empty() {
            return;
        }
        if self.give_return_ended(out) {
            return out.extend_from_slice(rest);
        }
        self.is_cut = true;
        self.write_cells(rest, out);
    }

    /// Adds to `text` up to the limit.
    fn keep(&mut self, text: &[u8]) {
        if self.is_long || self.is_cut {
            return;
        }
        if self.cells.is_some() && self.text.len() + text.len() > HELD_BYTES_MAX {
            self.is_cut = true;
        } else {
            self.text.extend_from_slice(text);
        }
    }

    /// Appends a text whose lines end in CR alone as it came, if the line is one and the reader has none of it.
    fn give_return_ended(&mut self, out: &mut Vec<u8>) -> bool {
        let is_whole = !(self.is_open || self.is_cut || self.is_long || self.is_drawn || self.follows_line);
        let (is_ended, is_of_one_moment) = (self.returns > 0, self.is_of_one_moment());
        if !is_whole || self.cells.is_none() || !is_return_ended(&self.text, is_ended, is_of_one_moment) {
            return false;
        }
        out.append(&mut self.text);
        out.extend(std::iter::repeat_n(b'\r', std::mem::take(&mut self.returns)));
        self.cells = None;
        self.touched_at = None;
        self.passes_returns = true;
        self.pass_on();
        true
    }

    /// Returns true if all known changes of the line came in one moment.
    fn is_of_one_moment(&self) -> bool {
        let mut hold = self.hold;
        self.touched_at.into_iter().for_each(|at| hold.on_touched(at));
        hold.is_of_one_moment()
    }

    fn write_cells(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        while let Some(cells) = &mut self.cells {
            rest = &rest[cells.write(rest)..];
            if rest.is_empty() {
                return;
            }
            // Text past the last column is edited on its own.
            self.give_shown(out);
            self.cells = Some(Box::default());
            (self.given, self.is_stale, self.is_open) = (Vec::new(), false, true);
            self.is_cut = true;
        }
    }

    pub(super) fn carriage_return(&mut self, out: &mut Vec<u8>) {
        if self.passes_returns {
            return out.push(b'\r');
        }
        self.returns += 1;
    }

    pub(super) fn backspace(&mut self, now: Option<Instant>, out: &mut Vec<u8>) {
        self.draw(now, out).backspace();
        self.keep(b"\x08");
    }

    /// The line's cells, for an edit other than a carriage return.
    pub(super) fn draw(&mut self, now: Option<Instant>, out: &mut Vec<u8>) -> &mut Cells {
        (self.is_drawn, self.touched_at) = (true, now);
        self.edit(out)
    }

    fn edit(&mut self, out: &mut Vec<u8>) -> &mut Cells {
        self.passes_returns = false;
        self.hold.on_edited();
        if self.cells.is_none() {
            self.lay_out(out);
        }
        let returns = std::mem::take(&mut self.returns);
        self.keep(&vec![b'\r'; returns]);
        let cells = self.cells.get_or_insert_default();
        if returns > 0 {
            cells.carriage_return();
        }
        cells
    }

    fn lay_out(&mut self, out: &mut Vec<u8>) {
        self.cells = Some(Box::default());
        if self.is_open && self.text.len() > COLUMNS_MAX {
            // The line is too wide to edit, and the reader has its beginning: the reader gets the rest of it.
            out.extend_from_slice(&self.text[self.given.len()..]);
            (self.is_long, self.given) = (true, Vec::new());
        }
        if self.is_long {
            (self.is_stale, self.is_cut) = (true, true);
            return;
        }
        let text = std::mem::take(&mut self.text);
        self.write_cells(&text, out);
        self.text = text;
    }

    /// Returns true if the cursor is at the end of unedited text, where an erasure has no effect.
    pub(super) fn is_at_plain_end(&self) -> bool {
        self.cells.is_none() && self.returns == 0
    }

    /// Appends the text so far.
    fn render_open(&self, out: &mut Vec<u8>) {
        match &self.cells {
            Some(cells) => cells.render_open(out),
            None => out.extend_from_slice(&self.text),
        }
    }

    /// Appends the text of the line if it ends here.
    fn render(&self, out: &mut Vec<u8>) {
        match &self.cells {
            Some(cells) => cells.render(out),
            None => out.extend_from_slice(&self.text),
        }
    }

    /// Takes the line's text if the reader has none of it; otherwise finishes the line.
    pub(super) fn take_or_finish(&mut self, out: &mut Vec<u8>) -> Vec<u8> {
        let mut text = Vec::new();
        if self.is_open {
            self.finish(b"\n", out);
        } else {
            self.render(&mut text);
            text.extend((self.returns > 0).then_some(b'\r'));
            *self = Self::default();
        }
        text
    }

    /// Begins the next line, in the same memory.
    fn reset(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        *self = Self { text, follows_line: self.follows_line, ..Self::default() };
    }

    /// Ends the line with LF or CR LF, and begins the next one.
    pub(super) fn finish(&mut self, ending: &[u8], out: &mut Vec<u8>) {
        if self.cells.is_some() {
            let mut text = Vec::new();
            self.render(&mut text);
            self.give_text(&text, ending, out);
        } else {
            let from = if self.is_open { self.given.len() } else { 0 };
            if !self.text[from..].is_empty() {
                out.extend_from_slice(&self.text[from..]);
            }
        }
        out.extend_from_slice(ending);
        self.follows_line = true;
        self.reset();
    }

    /// Returns true if the input ends in carriage returns.
    pub(super) fn has_returned(&self) -> bool {
        self.returns > 0
    }

    /// Ends the stream, and gives the reader the rest of the line.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.give_state(out);
        *self = Self::default();
    }

    /// Gives the reader the bytes as they came, unless it has an edited state of them, because binary data follows.
    pub(super) fn end_raw(&mut self, out: &mut Vec<u8>) {
        if self.is_open || self.is_cut {
            self.give_state(out);
        } else {
            out.extend_from_slice(&self.text);
        }
        out.extend(std::iter::repeat_n(b'\r', self.returns));
        *self = Self::default();
    }

    /// Gives the reader the line's present text.
    pub(super) fn give_state(&mut self, out: &mut Vec<u8>) {
        if !self.give_return_ended(out) {
            self.give_shown(out);
        }
    }

    fn give_shown(&mut self, out: &mut Vec<u8>) {
        if self.is_long && self.cells.is_none() {
            return;
        }
        let mut text = Vec::new();
        self.render_open(&mut text);
        self.touched_at = None;
        if text.is_empty() {
            if self.is_open && (self.is_stale || !self.given.is_empty()) {
                out.extend_from_slice(b"\n");
                (self.is_open, self.is_stale, self.given) = (false, false, text);
            }
            return self.hold.release();
        }
        self.give_text(&text, b"\n", out);
        self.hold.on_given(&text);
        (self.given, self.is_open, self.is_stale) = (text, true, false);
    }

    /// Returns true if the reader's text may be the beginning of the line.
    fn has_reader(&self) -> bool {
        self.is_open && !self.is_stale
    }

    /// Returns true if the text begins with the reader's one.
    fn grows(&self, text: &[u8]) -> bool {
        self.has_reader() && text.starts_with(&self.given)
    }

    /// Appends `text`, or only its new end if the reader has the beginning.
    fn give_text(&self, text: &[u8], ending: &[u8], out: &mut Vec<u8>) {
        if self.grows(text) {
            return out.extend_from_slice(&text[self.given.len()..]);
        }
        if !text.is_empty() && (!self.has_reader() || !is_short_of_blanks(text, &self.given)) {
            if self.is_open || self.is_stale {
                out.extend_from_slice(ending);
            }
            out.extend_from_slice(text);
        }
    }

    /// Compares the text with that of the last look, and gives it to the reader if it is held for long enough.
    pub(super) fn tick(&mut self, now: Instant, still: Duration, out: &mut Vec<u8>) {
        if let Some(at) = self.touched_at.take_if(|at| *at < now) {
            self.look(at);
        }
        if self.due(still).is_some_and(|due| due <= now) && self.touched_at.is_none() {
            self.give_state(out);
        }
    }

    /// Looks at a line whose cells were written to at this time.
    fn look(&mut self, at: Instant) {
        let mut text = Vec::new();
        self.render_open(&mut text);
        let mut hasher = DefaultHasher::new();
        hasher.write(&text);
        let digest = hasher.finish();
        if self.seen.replace(digest) == Some(digest) {
            return;
        }
        if self.has_reader() && text == self.given {
            self.hold.release();
        } else {
            self.hold.on_changed(&text, self.grows(&text), at);
        }
    }

    /// The time at which the reader gets the line.
    pub(super) fn due(&self, still: Duration) -> Option<Instant> {
        if self.is_long && self.cells.is_none() || self.is_empty() {
            return None;
        }
        let is_parked = self.returns > 0 || self.cells.as_ref().is_some_and(|cells| cells.is_parked());
        match self.touched_at {
            Some(at) => self.hold.due_if_touched(at, still, is_parked),
            None => self.hold.due(still, is_parked),
        }
    }
}
