//! Decides which row of a growing screen a reader that follows along gets, and when.
//!
//! As long as the program has never moved its cursor up, a row is sent when its line feed comes. After that any row may
//! change, so a row is sent when it was held for long enough (see [`super::hold`]), when it scrolls off, or when the
//! program ends. A row that changes after it was sent is sent again; if it is the last one sent and only grew, its new
//! bytes are sent.
//!
//! The reader gets lines. `open` is the row whose line has no end yet.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

use super::grid::Grid;
use super::hold::LineHold;
use super::row::Row;
use super::row_history::RowHistory;

/// The rows that wait, from the top of the screen down. A row does not overtake one above it that changed no later, so
/// lines that were written together are sent in their order.
#[derive(Debug, Default)]
struct Queue(Vec<(Instant, Instant)>);

impl Queue {
    /// Adds a row that last changed at `since` and would be due at `due` on its own. Returns its time.
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

/// The id of the row above the screen's first one.
const ABOVE: u64 = u64::MAX;

/// A row whose line has no end yet, as it was sent.
#[derive(Debug, Clone)]
struct OpenRow {
    id: u64,
    text: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct RowSender {
    still: Duration,
    moved_up: bool,
    /// The reader has the rows already: they are marked as sent and not appended.
    muted: bool,
    last_id: u64,
    open: Option<OpenRow>,
    scratch: Vec<u8>,
}

impl RowSender {
    pub(super) fn new(still: Duration) -> Self {
        Self { still, moved_up: false, muted: false, last_id: 0, open: None, scratch: Vec::new() }
    }

    pub(super) fn still(&self) -> Duration {
        self.still
    }

    pub(super) fn set_moved_up(&mut self) {
        self.moved_up = true;
    }

    pub(super) fn has_moved_up(&self) -> bool {
        self.moved_up
    }

    pub(super) fn has_open_line(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn set_muted(&mut self, muted: bool) {
        self.muted = muted;
    }

    /// Sends a row that leaves the top of the screen and can no longer change.
    pub(super) fn row_leaves(&mut self, row: &mut Row, out: &mut Vec<u8>) {
        self.send(row, Some(ABOVE), true, 0, out);
        if let Some(open) = self.open.as_mut().filter(|open| open.id == row.history.id) {
            open.id = ABOVE;
        }
    }

    /// Sends the rows down to `at`, which the cursor leaves by a line feed, unless rows may still change.
    pub(super) fn line_done(&mut self, rows: &mut VecDeque<Row>, at: usize, out: &mut Vec<u8>) {
        if self.moved_up || at >= rows.len() {
            return;
        }
        let is_done = |row: &Row| {
            let is_open = self.open.as_ref().is_some_and(|open| open.id == row.history.id);
            row.history.is_up_to_date() && !row.joined() && !is_open
        };
        let start = rows.iter().take(at).rposition(is_done).map_or(0, |done| done + 1);
        for at in start..=at {
            self.send_at(rows, at, true, 0, out);
        }
    }

    /// Ends the line whose beginning the reader has.
    pub(super) fn close_line(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.push(b'\n');
        }
    }

    /// Compares each touched row with the last look. One that differs has been unchanged since `now`.
    pub(super) fn look(&mut self, grid: &mut Grid, now: Instant) {
        for at in 0..grid.rows.len() {
            if !grid.rows[at].history.touched {
                continue;
            }
            self.scratch.clear();
            let col = grid.open_col(at);
            grid.rows[at].render_to(col, &mut self.scratch);
            let text = digest(&self.scratch);
            let history = &mut grid.rows[at].history;
            history.touched = false;
            let was_blank = std::mem::replace(&mut history.blank, self.scratch.is_empty());
            if history.seen.replace(text) == Some(text) {
                continue;
            }
            if was_blank || history.sent == Some(text) {
                history.hold.release();
            }
            if history.sent != Some(text) {
                let open = self.open.as_ref().filter(|open| open.id == history.id);
                let grows = open.is_some_and(|open| self.scratch.starts_with(&open.text));
                history.hold.on_changed(&self.scratch, grows, now);
            }
        }
    }

    /// Sends the rows that were held for long enough. Blank rows wait for text below them, because most are about to be drawn.
    pub(super) fn send_due(&mut self, grid: &mut Grid, now: Instant, out: &mut Vec<u8>) {
        let count = grid.live_rows();
        let (mut blanks, mut queue) = (0, Queue::default());
        for at in 0..count {
            let history = grid.rows[at].history;
            let due = history.hold.due(self.still, grid.is_parked_at(at));
            let is_due = history
                .hold
                .last()
                .zip(due)
                .is_some_and(|(since, due)| now >= if history.is_news() { queue.push(since, due) } else { due });
            if history.touched || !history.differs() || !is_due {
                // A row that was neither written nor sent counts as settled.
                let untouched = !history.touched && history.seen.is_none() && history.sent.is_none();
                blanks = if untouched && grid.rows[at].is_empty() { blanks + 1 } else { 0 };
            } else if history.blank {
                blanks = if history.sent.is_none() { blanks + 1 } else { 0 };
            } else {
                for at in at - blanks..=at {
                    let col = grid.open_col(at);
                    self.send_at(&mut grid.rows, at, at + 1 < count, col, out);
                }
                blanks = 0;
            }
        }
    }

    /// The time at which the next row must be looked at or sent. `touched_at` is the time of all changes since the last
    /// look.
    pub(super) fn deadline(&self, grid: &Grid, touched_at: Instant) -> Option<Instant> {
        let mut queue = Queue::default();
        let due = grid.rows.iter().enumerate().filter_map(|(at, Row { history, .. })| {
            let is_parked = grid.is_parked_at(at);
            // A touched row may have the same text again, and has then been unchanged for longer.
            match (history.is_news(), history.touched) {
                (true, true) => history.hold.due_if_touched(touched_at, self.still, is_parked),
                (true, false) => Some(queue.push(history.hold.last()?, history.hold.due(self.still, is_parked)?)),
                (false, true) => LineHold::default().due_if_touched(touched_at, self.still, is_parked),
                (false, false) => None,
            }
        });
        due.min()
    }

    pub(super) fn send_all(&mut self, grid: &mut Grid, out: &mut Vec<u8>) {
        let count = grid.live_rows();
        for at in 0..count {
            self.send_at(&mut grid.rows, at, at + 1 < count, 0, out);
        }
    }

    /// Sends every row that the reader lacks, in the midst of the stream.
    pub(super) fn release(&mut self, grid: &mut Grid, out: &mut Vec<u8>) {
        if !grid.rows.iter().any(|row| row.history.touched || row.history.is_news()) {
            return;
        }
        let count = grid.live_rows();
        for at in 0..count {
            let col = grid.open_col(at);
            self.send_at(&mut grid.rows, at, at + 1 < count, col, out);
        }
    }

    fn send_at(&mut self, rows: &mut VecDeque<Row>, at: usize, complete: bool, col: usize, out: &mut Vec<u8>) {
        let above = match at {
            0 => Some(ABOVE),
            _ => rows[at - 1].joined().then_some(rows[at - 1].history.id),
        };
        self.send(&mut rows[at], above, complete, col, out);
    }

    /// Sends a row, unless the reader has its present state. `above` is the id of the row that it continues, if any. Blanks
    /// before column `col` are text.
    fn send(&mut self, row: &mut Row, above: Option<u64>, complete: bool, col: usize, out: &mut Vec<u8>) {
        if row.history.id == 0 {
            self.last_id += 1;
            row.history.id = self.last_id;
        }
        self.scratch.clear();
        row.render_to(col, &mut self.scratch);
        let text = digest(&self.scratch);
        let ends = complete && !row.joined();
        let open = self.open.as_ref();
        let is_open = open.is_some_and(|open| open.id == row.history.id);
        let continues = open.is_some_and(|open| Some(open.id) == above);
        let known = row.history.sent == Some(text);
        let erased = self.scratch.is_empty() && (row.history.sent.is_some() || !(ends || continues));
        if (known || erased) && !(is_open && ends) {
            return;
        }
        row.history = RowHistory { sent: Some(text), seen: Some(text), touched: false, ..row.history };
        row.history.hold.on_given(&self.scratch);
        if self.muted {
            self.open = None;
            return;
        }
        if erased {
            // The line whose beginning the reader has was erased.
            return self.close_line(out);
        }
        match &self.open {
            Some(open) if is_open && self.scratch.starts_with(&open.text) => {
                out.extend_from_slice(&self.scratch[open.text.len()..]);
            }
            // The cursor has left the blanks after the text, which the reader has.
            Some(open) if is_open && is_short_of_blanks(&self.scratch, &open.text) => {}
            Some(_) if !continues => {
                out.push(b'\n');
                out.extend_from_slice(&self.scratch);
            }
            _ => out.extend_from_slice(&self.scratch),
        }
        self.open = (!ends).then(|| OpenRow { id: row.history.id, text: self.scratch.clone() });
        if ends {
            out.push(b'\n');
        }
    }
}

/// Returns true if a text lacks only the blanks at the end of `given`.
pub(super) fn is_short_of_blanks(text: &[u8], given: &[u8]) -> bool {
    given.strip_prefix(text).is_some_and(|blanks| blanks.iter().all(|&byte| byte == b' '))
}

fn digest(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}
