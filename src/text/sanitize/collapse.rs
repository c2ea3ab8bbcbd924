//! Feeds a [`Terminal`] from the parser, lazily.
//!
//! Most output is plain lines, and for those a terminal is a detour: so clean text is kept as bytes (`pending`) for as
//! long as the cursor is at the end of it, and laid out in cells only when an editing control comes. Lines that would
//! have scrolled off by then are copied from the input to the output as they are.
//!
//! Invariants: `pending` is empty unless the cursor stands at the start of a fresh last row of the main screen with all
//! modes at their defaults, and is to be written from there; it is bounded by [`PENDING_BYTES_MAX`]; no line in it is
//! so long that a row could not keep all of its marks.

mod sink;

use std::time::{Duration, Instant};

use super::grid::{Charsets, Cursor};
use super::relay::Relay;
use super::row::{EXTRA_BYTES_MAX, Row};
use super::terminal::Terminal;
use crate::text::width::width;

const PENDING_BYTES_MAX: usize = 16 << 10;

/// The terminal of one stream, with what is not laid out yet.
#[derive(Debug, Clone)]
pub(crate) struct Collapse {
    terminal: Terminal,
    pending: Vec<u8>,
    /// How much of `pending` the relay's reader has; whole lines.
    pending_sent: usize,
    /// How long the last, open line of `pending` is.
    open_len: usize,
    /// A carriage return after `pending` that a line feed would make pointless.
    return_seen: bool,
    /// The relay's time, and when `pending` last grew.
    now: Option<Instant>,
    pending_at: Option<Instant>,
}

impl Collapse {
    /// With `still`, rows are given away as soon as `relay`'s rules allow, else when they scroll off.
    pub(crate) fn new(rows: u16, cols: u16, still: Option<Duration>) -> Self {
        Self {
            terminal: Terminal::new(rows, cols, still.map(Relay::new)),
            pending: Vec::new(),
            pending_sent: 0,
            open_len: 0,
            return_seen: false,
            now: None,
            pending_at: None,
        }
    }

    pub(crate) fn alt_screen_bytes(&self) -> u64 {
        self.terminal.withheld_bytes + self.terminal.alt_bytes
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.terminal.alt.is_some()
    }

    /// Appends all text that is not final yet.
    pub(crate) fn live(&self, out: &mut Vec<u8>) {
        if self.pending.is_empty() && !self.return_seen {
            return self.render(out);
        }
        let mut copy = self.clone();
        copy.lay_out(out);
        copy.render(out);
    }

    fn render(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.terminal.main.render(out);
        let Some(alt) = &self.terminal.alt else { return };
        let middle = out.len();
        let in_line = middle > start && out[middle - 1] != b'\n';
        if in_line {
            out.push(b'\n');
        }
        let before = out.len();
        alt.render(out);
        if out.len() == before {
            out.truncate(middle);
        }
    }

    pub(crate) fn resize(&mut self, rows: u16, cols: u16, out: &mut Vec<u8>) {
        self.lay_out(out);
        self.terminal.resize(rows, cols, out);
    }

    /// Appends everything that was not appended yet, and is as new.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.lay_out(out);
        let mut last_screen = Vec::new();
        self.terminal.alt.iter().for_each(|alt| alt.render(&mut last_screen));
        match &mut self.terminal.relay {
            None => self.render(out),
            Some(relay) => {
                relay.send_all(&mut self.terminal.main, out);
                if !last_screen.is_empty() {
                    relay.close_line(out);
                    out.extend_from_slice(&last_screen);
                }
            }
        }
        let terminal = &self.terminal;
        let still = terminal.relay.as_ref().map(Relay::still);
        let (rows, cols) = (terminal.rows as u16, terminal.cols as u16);
        // The screen of a program that did not leave it was given just now, unless there is nothing on it.
        let blank_bytes = if last_screen.is_empty() { terminal.alt_bytes } else { 0 };
        let withheld_bytes = terminal.withheld_bytes + blank_bytes;
        *self = Self::new(rows, cols, still);
        self.terminal.withheld_bytes = withheld_bytes;
    }

    /// Tells the time, before any bytes that come at it: what stood still until now is sent.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        let before = self.now.replace(now).unwrap_or(now);
        let Some(relay) = &self.terminal.relay else { return };
        if now <= before {
            self.now = Some(before);
            return;
        }
        if !self.pending.is_empty() {
            // Only the open line can be unsent, and it grew when `pending` did.
            if self.open_len == 0 || self.pending_at.is_some_and(|at| now < at + relay.still()) {
                return;
            }
            self.lay_out(out);
        }
        if let Some(relay) = &mut self.terminal.relay {
            relay.look(&mut self.terminal.main.rows, before);
            relay.send_due(&mut self.terminal.main, now, out);
        }
    }

    /// When `tick` will have something to send, if no bytes come before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let relay = self.terminal.relay.as_ref()?;
        if self.pending.is_empty() {
            return relay.deadline(&self.terminal.main, self.now?);
        }
        let at = self.pending_at.filter(|_| self.open_len > 0)?;
        Some(at + relay.still())
    }

    /// Lays out what is pending, so that the terminal is up to date.
    fn lay_out(&mut self, out: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            self.shorten(out);
            let pending = std::mem::take(&mut self.pending);
            let (sent, unsent) = pending.split_at(self.pending_sent);
            self.set_muted(true);
            self.terminal.feed(sent, out);
            self.set_muted(false);
            self.terminal.feed(unsent, out);
            self.pending = pending;
            self.pending.clear();
            self.pending_sent = 0;
            self.open_len = 0;
            if let (Some(relay), Some(at)) =
                (&mut self.terminal.relay, self.pending_at.filter(|_| self.pending_at < self.now))
            {
                relay.look(&mut self.terminal.main.rows, at);
            }
        }
        if std::mem::take(&mut self.return_seen) {
            self.terminal.carriage_return();
        }
    }

    fn set_muted(&mut self, muted: bool) {
        if let Some(relay) = &mut self.terminal.relay {
            relay.set_muted(muted);
        }
    }

    /// Whether text written now could be kept as it is: the cursor is at the start of a fresh last row, and no mode
    /// makes text mean anything but itself.
    fn is_plain(&self) -> bool {
        let terminal = &self.terminal;
        let grid = &terminal.main;
        let Cursor { row: at, col, .. } = grid.cursor;
        // The likeliest reasons first.
        let relay = || terminal.relay.as_ref().is_none_or(|relay| !relay.has_moved_up() && !relay.has_open_line());
        let place = col == 0 && grid.rows.len() == at + 1 && grid.top == 0 && grid.bottom.is_none();
        let modes = || terminal.alt.is_none() && terminal.autowrap && !terminal.insert && terminal.cols > 1;
        place
            && relay()
            && modes()
            && terminal.charsets == Charsets::default()
            && grid.rows.back().is_some_and(Row::is_fresh)
            && (at == 0 || self.is_closed(&grid.rows[at - 1]))
    }

    /// Whether a row says all it has to say: it is not continued, and the relay's reader has it.
    fn is_closed(&self, row: &Row) -> bool {
        !row.wrapped() && (self.terminal.relay.is_none() || row.track.is_up_to_date())
    }

    /// Text at the cursor.
    fn text(&mut self, run: &[u8], out: &mut Vec<u8>) {
        if self.return_seen {
            if run[0] == b'\n' {
                self.return_seen = false;
            } else {
                self.lay_out(out);
            }
        }
        let mut run = run;
        if self.pending.is_empty() && !self.is_plain() {
            // The line that was begun is finished in cells.
            let line = memchr::memchr(b'\n', run).map_or(run.len(), |at| at + 1);
            self.terminal.feed(&run[..line], out);
            run = &run[line..];
            if run.is_empty() {
                return;
            }
            if !self.is_plain() {
                return self.terminal.feed(run, out);
            }
        }
        match open_line_after(self.open_len, run) {
            Some(open_len) => self.append(run, open_len, out),
            None => {
                self.lay_out(out);
                self.terminal.feed(run, out);
            }
        }
    }

    /// Adds a run to what is pending; lines that have scrolled off by it are final.
    fn append(&mut self, run: &[u8], open_len: usize, out: &mut Vec<u8>) {
        let keep = self.terminal.rows - 1;
        // To find what has scrolled off costs as much as to copy a short run, so that is done once for several.
        let is_long = run.len() > PENDING_BYTES_MAX / 2;
        if let Some(cut) = is_long.then(|| start_of_last_lines(run, keep)).flatten() {
            self.scroll_all_off(out);
            out.extend_from_slice(&self.pending[self.pending_sent..]);
            out.extend_from_slice(&run[..cut]);
            if !has_character(&run[cut..]) {
                let pending = std::mem::take(&mut self.pending);
                self.note_last(&pending);
                self.note_last(&run[..cut]);
                self.pending = pending;
            }
            self.pending.clear();
            self.pending_sent = 0;
            self.pending.extend_from_slice(&run[cut..]);
        } else {
            self.pending.extend_from_slice(run);
        }
        self.open_len = open_len;
        self.pending_at = self.now;
        if self.terminal.relay.is_some() {
            let complete = self.pending.len() - open_len;
            if complete > self.pending_sent {
                out.extend_from_slice(&self.pending[self.pending_sent..complete]);
                self.pending_sent = complete;
            }
        }
        if self.pending.len() > PENDING_BYTES_MAX && !self.shorten(out) {
            self.lay_out(out);
        }
    }

    /// Gives away the pending lines that have scrolled off; whether there are any.
    fn shorten(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(cut) = start_of_last_lines(&self.pending, self.terminal.rows - 1) else { return false };
        self.scroll_all_off(out);
        if cut > self.pending_sent {
            out.extend_from_slice(&self.pending[self.pending_sent..cut]);
        }
        self.pending_sent = self.pending_sent.saturating_sub(cut);
        if !has_character(&self.pending[cut..]) {
            let pending = std::mem::take(&mut self.pending);
            self.note_last(&pending[..cut]);
            self.pending = pending;
        }
        self.pending.drain(..cut);
        true
    }

    /// The rows above the cursor's leave the screen.
    fn scroll_all_off(&mut self, out: &mut Vec<u8>) {
        let count = self.terminal.main.cursor.row;
        if count > 0 {
            self.terminal.scroll_up(count, out);
            let grid = &mut self.terminal.main;
            grid.cursor.row = 0;
            grid.rows.truncate(1);
        }
    }

    /// Remembers the last character of text that is never laid out. What comes after it may have a later one.
    fn note_last(&mut self, text: &[u8]) {
        let chars = text.utf8_chunks().next().map_or("", |chunk| chunk.valid()).chars();
        let last = chars.rev().find(|&c| !c.is_control() && width(c) > 0);
        self.terminal.last = last.or(self.terminal.last);
    }
}

/// Whether the text surely has a character with a width, which is then the one that REP repeats.
fn has_character(text: &[u8]) -> bool {
    text.iter().any(|b| matches!(b, b' '..=b'~'))
}

/// How long the open line is after `run`, or nothing if a line on the way is too long to be kept as bytes.
fn open_line_after(open_len: usize, run: &[u8]) -> Option<usize> {
    let (mut open_len, mut rest) = (open_len, run);
    while open_len + rest.len() > EXTRA_BYTES_MAX {
        let window = rest.get(..(EXTRA_BYTES_MAX + 1).checked_sub(open_len)?).unwrap_or(rest);
        rest = &rest[memchr::memrchr(b'\n', window)? + 1..];
        open_len = 0;
    }
    Some(memchr::memrchr(b'\n', rest).map_or(open_len + rest.len(), |at| rest.len() - at - 1))
}

/// Where the last `keep` complete lines and the open one begin, if there are lines before them.
fn start_of_last_lines(text: &[u8], keep: usize) -> Option<usize> {
    let (mut lines, mut end) = (keep, text.len());
    // Counting is faster than finding each.
    while let Some(chunk) = text[..end].last_chunk::<128>() {
        let count = usize::from(chunk.iter().map(|&byte| u8::from(byte == b'\n')).sum::<u8>());
        if count > lines {
            break;
        }
        lines -= count;
        end -= chunk.len();
    }
    memchr::memrchr_iter(b'\n', &text[..end]).nth(lines).map(|at| at + 1)
}
