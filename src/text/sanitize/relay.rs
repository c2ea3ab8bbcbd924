//! Which rows of a growing screen a reader has been given already.
//!
//! As long as a program has never moved its cursor up, a line is done when its line feed comes. After that any row may
//! change, so a row is given when it stood still for a while, scrolled off, or the program ended. A row that was given
//! and changes is given again; if it is the line the reader saw last and only grew, the reader gets the new bytes.
//!
//! How long a while is, [`Patience`] knows.
//!
//! The reader's stream is made of lines. `open` is the one it has the beginning of.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

use super::grid::Grid;
use super::patience::Patience;
use super::row::Row;

/// What the relay remembers of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Track {
    /// 0 until the relay first dealt with the row.
    id: u64,
    touched: bool,
    /// Text was erased or overwritten since the last look.
    rewritten: bool,
    patience: Patience,
    /// The text at the last look, and since when it has been like this.
    seen: Option<u64>,
    since: Option<Instant>,
    /// The text that the reader has.
    sent: Option<u64>,
    /// Whether the text at the last look was empty.
    blank: bool,
}

impl Track {
    pub(crate) fn touch(&mut self) {
        self.touched = true;
    }

    /// Text that was there is erased or overwritten.
    pub(crate) fn rewrite(&mut self) {
        self.touched = true;
        self.rewritten = true;
    }

    /// Whether the reader was given this row, as it is or as it was.
    pub(crate) fn was_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Whether the reader has the row as it is.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.sent.is_some() && self.sent == self.seen && !self.touched
    }

    /// Whether the reader still has to see what was seen at the last look.
    fn is_news(&self) -> bool {
        self.seen.is_some() && self.seen != self.sent && !self.blank
    }

    /// Whether the reader has another text than was seen at the last look.
    fn differs(&self) -> bool {
        self.seen.is_some() && self.seen != self.sent
    }

    /// Whether text was erased or overwritten since this was last asked.
    pub(crate) fn take_rewritten(&mut self) -> bool {
        std::mem::take(&mut self.rewritten)
    }

    /// The row has other text than at the last look.
    fn changed(&mut self) {
        if self.take_rewritten() {
            self.patience.on_rewritten(self.sent.is_some());
        }
    }
}

/// The rows that wait, from the screen's first one on. A row does not overtake one above it that changed no later, so
/// lines that were written at once are read in their order.
#[derive(Debug, Default)]
struct Queue(Vec<(Instant, Instant)>);

impl Queue {
    /// A row that has been as it is since then and would be due on its own; when it is due behind the others.
    fn push(&mut self, since: Instant, due: Instant) -> Instant {
        let before = self.0.iter().filter(|(earlier, _)| *earlier <= since).map(|&(_, due)| due).max();
        let due = before.map_or(due, |before| due.max(before));
        match self.0.last_mut() {
            Some(last) if last.0 == since => last.1 = due,
            _ => self.0.push((since, due)),
        }
        due
    }
}

/// The row above the screen's first one.
const ABOVE: u64 = u64::MAX;

#[derive(Debug, Clone)]
struct Open {
    id: u64,
    text: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) struct Relay {
    still: Duration,
    moved_up: bool,
    /// Rows are marked as sent without being sent: the reader has them already.
    muted: bool,
    last_id: u64,
    open: Option<Open>,
    scratch: Vec<u8>,
}

impl Relay {
    pub(crate) fn new(still: Duration) -> Self {
        Self { still, moved_up: false, muted: false, last_id: 0, open: None, scratch: Vec::new() }
    }

    pub(crate) fn still(&self) -> Duration {
        self.still
    }

    pub(crate) fn set_moved_up(&mut self) {
        self.moved_up = true;
    }

    pub(crate) fn has_moved_up(&self) -> bool {
        self.moved_up
    }

    pub(crate) fn has_open_line(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn set_muted(&mut self, muted: bool) {
        self.muted = muted;
    }

    /// The row is taken from the top of the screen and will never change again.
    pub(crate) fn row_leaves(&mut self, row: &mut Row, out: &mut Vec<u8>) {
        self.send(row, Some(ABOVE), true, out);
        if let Some(open) = self.open.as_mut().filter(|open| open.id == row.track.id) {
            open.id = ABOVE;
        }
    }

    /// The cursor leaves row `at` by a line feed.
    pub(crate) fn line_done(&mut self, rows: &mut VecDeque<Row>, at: usize, out: &mut Vec<u8>) {
        if self.moved_up || at >= rows.len() {
            return;
        }
        let is_done = |row: &Row| {
            let is_open = self.open.as_ref().is_some_and(|open| open.id == row.track.id);
            row.track.is_up_to_date() && !row.joined() && !is_open
        };
        let start = rows.iter().take(at).rposition(is_done).map_or(0, |done| done + 1);
        for at in start..=at {
            self.send_at(rows, at, true, out);
        }
    }

    /// Ends the line the reader has the beginning of.
    pub(crate) fn close_line(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.push(b'\n');
        }
    }

    /// Looks at every row that was touched; what differs from the last look has been so since `at`.
    pub(crate) fn look(&mut self, rows: &mut VecDeque<Row>, at: Instant) {
        for row in rows.iter_mut().filter(|row| row.track.touched) {
            self.scratch.clear();
            row.render(&mut self.scratch);
            let text = digest(&self.scratch);
            let track = &mut row.track;
            track.touched = false;
            track.blank = self.scratch.is_empty();
            if track.seen != Some(text) {
                track.changed();
                track.seen = Some(text);
                track.since = Some(at);
            }
        }
    }

    /// Sends the rows that stood still long enough. Blank rows wait for text below them: most are about to be drawn.
    pub(crate) fn send_due(&mut self, grid: &mut Grid, now: Instant, out: &mut Vec<u8>) {
        let count = grid.live_rows();
        let (mut blanks, mut queue) = (0, Queue::default());
        for at in 0..count {
            let track = grid.rows[at].track;
            let is_due = track.since.is_some_and(|since| {
                let due = since + track.patience.wait(self.still, grid.is_parked_at(at));
                now >= if track.is_news() { queue.push(since, due) } else { due }
            });
            if track.touched || !track.differs() || !is_due {
                // A row the reader never saw and nobody wrote is as good as one that stands still.
                let untouched = !track.touched && track.seen.is_none() && track.sent.is_none();
                blanks = if untouched && grid.rows[at].is_empty() { blanks + 1 } else { 0 };
            } else if track.blank {
                blanks = if track.sent.is_none() { blanks + 1 } else { 0 };
            } else {
                for at in at - blanks..=at {
                    self.send_at(&mut grid.rows, at, at + 1 < count, out);
                }
                blanks = 0;
            }
        }
    }

    /// When the next row will have stood still long enough; `touched_at` is when rows were last written.
    pub(crate) fn deadline(&self, grid: &Grid, touched_at: Instant) -> Option<Instant> {
        let mut queue = Queue::default();
        let due = grid.rows.iter().enumerate().filter_map(|(at, Row { track, .. })| {
            // A row that was written may be as it was before, and then it stands still for longer already.
            let seen = if track.is_news() { track.since } else { None };
            let touched = track.touched.then_some(touched_at);
            let since = seen.or(touched)?;
            Some(queue.push(since, since + track.patience.wait(self.still, grid.is_parked_at(at))))
        });
        due.min()
    }

    /// The program has ended: sends every row that the reader does not have.
    pub(crate) fn send_all(&mut self, grid: &mut Grid, out: &mut Vec<u8>) {
        let count = grid.live_rows();
        for at in 0..count {
            self.send_at(&mut grid.rows, at, at + 1 < count, out);
        }
    }

    fn send_at(&mut self, rows: &mut VecDeque<Row>, at: usize, complete: bool, out: &mut Vec<u8>) {
        let above = match at {
            0 => Some(ABOVE),
            _ => rows[at - 1].joined().then_some(rows[at - 1].track.id),
        };
        self.send(&mut rows[at], above, complete, out);
    }

    /// Sends a row, unless the reader has it as it is. `above` is the row that this one continues, if it does.
    fn send(&mut self, row: &mut Row, above: Option<u64>, complete: bool, out: &mut Vec<u8>) {
        if row.track.id == 0 {
            self.last_id += 1;
            row.track.id = self.last_id;
        }
        self.scratch.clear();
        row.render(&mut self.scratch);
        let text = digest(&self.scratch);
        let ends = complete && !row.joined();
        let open = self.open.as_ref();
        let is_open = open.is_some_and(|open| open.id == row.track.id);
        let continues = open.is_some_and(|open| Some(open.id) == above);
        let known = row.track.sent == Some(text);
        let erased = self.scratch.is_empty() && (row.track.sent.is_some() || !(ends || continues));
        if (known || erased) && !(is_open && ends) {
            return;
        }
        row.track = Track { sent: Some(text), seen: Some(text), touched: false, rewritten: false, ..row.track };
        row.track.patience.on_given();
        if self.muted {
            self.open = None;
            return;
        }
        if erased {
            // Nothing is left of the line that the reader has the beginning of.
            return self.close_line(out);
        }
        match &self.open {
            Some(open) if is_open && self.scratch.starts_with(&open.text) => {
                out.extend_from_slice(&self.scratch[open.text.len()..]);
            }
            Some(_) if !continues => {
                out.push(b'\n');
                out.extend_from_slice(&self.scratch);
            }
            _ => out.extend_from_slice(&self.scratch),
        }
        self.open = (!ends).then(|| Open { id: row.track.id, text: self.scratch.clone() });
        if ends {
            out.push(b'\n');
        }
    }
}

fn digest(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}
