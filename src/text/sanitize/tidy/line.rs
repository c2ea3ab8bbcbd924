//! The line that is not finished: what is held of it, what of that the reader has, and since when it is as it is.
//!
//! Invariants: a line that nothing edits is held byte for byte; what is held is bounded by [`HELD_BYTES_MAX`] and by the
//! cells of one line; a line that is longer than that is given as it comes.

use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

use super::cells::{COLUMNS_MAX, Cells};
use crate::text::sanitize::patience::Patience;

/// An open line longer than this goes to the reader as it comes, bytes. What is edited afterwards begins a new line.
pub(super) const HELD_BYTES_MAX: usize = 64 << 10;

/// Where given bytes go.
pub(super) type Give<'a> = dyn FnMut(&[u8]) + 'a;

#[derive(Debug, Default)]
pub(super) struct Line {
    /// All that came of the line, without escape sequences; dropped when it becomes too long.
    text: Vec<u8>,
    /// What the editing has made of it; without any, `text` is the line.
    cells: Option<Box<Cells>>,
    /// What of it the reader has.
    given: Vec<u8>,
    /// The reader has the beginning of it, or of what it was.
    is_open: bool,
    /// What the reader has is not part of it any more.
    is_stale: bool,
    /// It was too long to be held.
    is_long: bool,
    /// `text` is not all that came since the reader was given something as it came.
    is_cut: bool,
    /// Carriage returns that came last, and mean nothing before a line feed.
    returns: usize,
    touched_at: Option<Instant>,
    /// The text at the last look, and since when it has been like this.
    seen: Option<u64>,
    since: Option<Instant>,
    patience: Patience,
}

impl Line {
    /// Nothing came of it yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.text.is_empty() && self.cells.is_none() && !self.is_open && self.returns == 0
    }

    /// Nothing edits it, and the reader has nothing of it.
    pub(super) fn is_as_it_came(&self) -> bool {
        self.cells.is_none() && !self.is_open && !self.is_long && !self.is_cut && self.returns == 0
    }

    /// Its end has come with the lines behind it.
    pub(super) fn give_as_it_came(&mut self, give: &mut Give<'_>) {
        if !self.text.is_empty() {
            give(&self.text);
            self.reset();
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.cells.is_none()
    }

    /// Text without line feeds, that came at this time.
    pub(super) fn write(&mut self, text: &[u8], now: Option<Instant>, give: &mut Give<'_>) {
        if text.is_empty() {
            return;
        }
        self.touched_at = now;
        if self.returns > 0 {
            self.edit(give);
        }
        self.keep(text);
        if self.cells.is_some() {
            return self.write_cells(text, give);
        }
        if self.is_long {
            give(text);
        } else if self.text.len() > HELD_BYTES_MAX {
            let held = std::mem::take(&mut self.text);
            give(&held[self.given.len()..]);
            (self.is_long, self.is_open) = (true, true);
            self.given = Vec::new();
        }
    }

    /// Remembers what came, as long as it is not too much.
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

    fn write_cells(&mut self, text: &[u8], give: &mut Give<'_>) {
        let mut rest = text;
        while let Some(cells) = &mut self.cells {
            rest = &rest[cells.write(rest)..];
            if rest.is_empty() {
                return;
            }
            // What is behind the last column is edited by itself.
            self.give_state(give);
            self.cells = Some(Box::default());
            (self.given, self.is_stale, self.is_open) = (Vec::new(), false, true);
            self.is_cut = true;
        }
    }

    pub(super) fn carriage_return(&mut self, now: Option<Instant>) {
        self.returns += 1;
        self.touched_at = now;
    }

    pub(super) fn backspace(&mut self, now: Option<Instant>, give: &mut Give<'_>) {
        self.touched_at = now;
        self.edit(give).backspace();
        self.keep(b"\x08");
    }

    /// The line's cells; from now on it is edited.
    pub(super) fn edit(&mut self, give: &mut Give<'_>) -> &mut Cells {
        if self.cells.is_none() {
            self.lay_out(give);
        }
        let returns = std::mem::take(&mut self.returns);
        self.keep(&vec![b'\r'; returns]);
        let cells = self.cells.get_or_insert_default();
        if returns > 0 {
            cells.carriage_return();
        }
        cells
    }

    fn lay_out(&mut self, give: &mut Give<'_>) {
        self.cells = Some(Box::default());
        if self.is_open && self.text.len() > COLUMNS_MAX {
            // The reader has the beginning of what is too wide to be edited: now it has all of it.
            give(&self.text[self.given.len()..]);
            (self.is_long, self.given) = (true, Vec::new());
        }
        if self.is_long {
            (self.is_stale, self.is_cut) = (true, true);
            return;
        }
        let text = std::mem::take(&mut self.text);
        self.write_cells(&text, give);
        self.text = text;
        if let Some(cells) = &mut self.cells {
            cells.take_rewritten();
        }
    }

    /// Whether a sequence that moves within the line or erases in it changes something.
    pub(super) fn is_at_plain_end(&self) -> bool {
        self.cells.is_none() && self.returns == 0
    }

    pub(super) fn touch(&mut self, now: Option<Instant>) {
        self.touched_at = now;
    }

    /// Appends the line as it is now.
    fn render(&self, out: &mut Vec<u8>) {
        match &self.cells {
            Some(cells) => cells.render(out),
            None => out.extend_from_slice(&self.text),
        }
    }

    /// Takes the line's text, if the reader has nothing of it; else finishes it.
    pub(super) fn take_or_finish(&mut self, give: &mut Give<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        if self.is_open {
            self.finish(b"\n", give);
        } else {
            self.render(&mut text);
            text.extend((self.returns > 0).then_some(b'\r'));
            *self = Self::default();
        }
        text
    }

    /// The next line begins.
    fn reset(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        *self = Self { text, ..Self::default() };
    }

    /// The line feed has come, with a carriage return before it or without; the next line begins.
    pub(super) fn finish(&mut self, ending: &[u8], give: &mut Give<'_>) {
        if self.cells.is_some() {
            let mut text = Vec::new();
            self.render(&mut text);
            self.give_text(&text, ending, give);
        } else {
            let from = if self.is_open { self.given.len() } else { 0 };
            if !self.text[from..].is_empty() {
                give(&self.text[from..]);
            }
        }
        give(ending);
        self.reset();
    }

    /// Whether carriage returns came last.
    pub(super) fn has_returned(&self) -> bool {
        self.returns > 0
    }

    /// The stream ends here: gives what the reader does not have.
    pub(super) fn end(&mut self, give: &mut Give<'_>) {
        self.give_state(give);
        *self = Self::default();
    }

    /// What follows is no text: gives what came as it came, where the reader has nothing else of it.
    pub(super) fn end_raw(&mut self, give: &mut Give<'_>) {
        if self.is_open || self.is_cut {
            self.give_state(give);
        } else {
            give(&self.text);
        }
        (0..self.returns).for_each(|_| give(b"\r"));
        *self = Self::default();
    }

    /// Gives the line as it is now.
    pub(super) fn give_state(&mut self, give: &mut Give<'_>) {
        let mut text = Vec::new();
        self.render(&mut text);
        if self.is_long && self.cells.is_none() {
            return;
        }
        if text.is_empty() {
            if self.is_open && (self.is_stale || !self.given.is_empty()) {
                give(b"\n");
                (self.is_open, self.is_stale, self.given) = (false, false, text);
            }
            return;
        }
        self.give_text(&text, b"\n", give);
        (self.given, self.is_open, self.is_stale) = (text, true, false);
        self.patience.on_given();
    }

    /// Gives this text, or what it has more than the reader has.
    fn give_text(&self, text: &[u8], ending: &[u8], give: &mut Give<'_>) {
        if self.is_open && !self.is_stale && text.starts_with(&self.given) {
            if text.len() > self.given.len() {
                give(&text[self.given.len()..]);
            }
        } else if !text.is_empty() {
            if self.is_open || self.is_stale {
                give(ending);
            }
            give(text);
        }
    }

    /// Looks at what was written before this time; gives it if it has stood still for long enough.
    pub(super) fn tick(&mut self, now: Instant, still: Duration, give: &mut Give<'_>) {
        if let Some(at) = self.touched_at.filter(|&at| at < now) {
            self.touched_at = None;
            let mut text = Vec::new();
            self.render(&mut text);
            let mut hasher = DefaultHasher::new();
            hasher.write(&text);
            let digest = hasher.finish();
            if self.seen != Some(digest) {
                if self.cells.as_mut().is_some_and(|cells| cells.take_rewritten()) {
                    self.patience.on_rewritten(self.is_open);
                }
                (self.seen, self.since) = (Some(digest), Some(at));
            }
        }
        if self.due(still).is_some_and(|due| due <= now) && self.touched_at.is_none() {
            self.since = None;
            self.give_state(give);
        }
    }

    /// When it is given, if nothing changes before.
    pub(super) fn due(&self, still: Duration) -> Option<Instant> {
        if self.is_long && self.cells.is_none() || self.is_empty() {
            return None;
        }
        let since = self.touched_at.or(self.since)?;
        let is_parked = self.returns > 0 || self.cells.as_ref().is_some_and(|cells| cells.is_parked());
        Some(since + self.patience.wait(still, is_parked))
    }
}
