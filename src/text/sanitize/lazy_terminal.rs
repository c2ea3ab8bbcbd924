//! Feeds a [`VirtualTerminal`] from the parser, but only when it must.
//!
//! Most output is plain lines, which need no terminal. So plain text is kept as bytes in `pending` while the cursor is at
//! its end, and is laid out in cells only when an editing control comes. Lines that have scrolled off by then are copied
//! from the input to the output.
//!
//! Invariants: `pending` is empty unless the cursor stands at the start of a fresh last row of the main screen with all
//! modes at their defaults, where `pending` is written on layout; it is bounded by [`PENDING_BYTES_MAX`]; no line in it is
//! too long for a row to keep all of its marks.

mod sink;

use std::time::{Duration, Instant};

use super::grid::{Charsets, ScreenCursor};
use super::lines;
use super::row::{EXTRA_BYTES_MAX, Row};
use super::row_sender::RowSender;
use super::virtual_terminal::VirtualTerminal;
use crate::text::width::width;

const PENDING_BYTES_MAX: usize = 16 << 10;

/// The terminal of one stream, and the text that is not laid out yet.
#[derive(Debug, Clone)]
pub(super) struct LazyTerminal {
    terminal: VirtualTerminal,
    pending: Vec<u8>,
    /// Bytes of `pending` that the sender's reader has; whole lines.
    pending_sent: usize,
    /// Bytes of the last line of `pending`, which has no end.
    open_len: usize,
    /// A carriage return follows `pending`, and has no effect if a line feed is next.
    return_seen: bool,
    /// The sender's clock, and the time when the last line of `pending` began, or the first part of it that the reader
    /// lacks.
    now: Option<Instant>,
    pending_at: Option<Instant>,
}

impl LazyTerminal {
    /// With `still`, rows go to the reader as soon as the sender's rules allow; without it, when they scroll off.
    pub(super) fn new(rows: u16, cols: u16, still: Option<Duration>) -> Self {
        Self {
            terminal: VirtualTerminal::new(rows, cols, still.map(RowSender::new)),
            pending: Vec::new(),
            pending_sent: 0,
            open_len: 0,
            return_seen: false,
            now: None,
            pending_at: None,
        }
    }

    pub(super) fn withheld_bytes(&self) -> u64 {
        self.terminal.withheld_bytes + self.terminal.alt_bytes
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

    /// Appends the remaining text. The terminal is as new afterwards, but for the count of withheld bytes.
    #[expect(clippy::cast_possible_truncation, reason = "both came from a u16")]
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.lay_out(out);
        let mut last_screen = Vec::new();
        self.terminal.alt.iter().for_each(|alt| alt.render(&mut last_screen));
        match &mut self.terminal.sender {
            None => self.render(out),
            Some(sender) => {
                sender.send_all(&mut self.terminal.main, out);
                if !last_screen.is_empty() {
                    sender.close_line(out);
                    out.extend_from_slice(&last_screen);
                }
            }
        }
        let terminal = &self.terminal;
        let still = terminal.sender.as_ref().map(RowSender::still);
        let (rows, cols) = (terminal.rows as u16, terminal.cols as u16);
        // A program that did not leave the alternate screen had it appended just now, unless it was blank.
        let blank_bytes = if last_screen.is_empty() { terminal.alt_bytes } else { 0 };
        let withheld_bytes = terminal.withheld_bytes + blank_bytes;
        *self = Self::new(rows, cols, still);
        self.terminal.withheld_bytes = withheld_bytes;
    }

    /// Sets the clock, before the bytes of that time come, and sends the rows that have settled.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        let before = self.now.replace(now).unwrap_or(now);
        let Some(sender) = &self.terminal.sender else { return };
        if now <= before {
            self.now = Some(before);
            return;
        }
        if !self.pending.is_empty() {
            // Only the last line can be unsent.
            if self.open_len == 0 || self.pending_at.is_some_and(|at| now < at + sender.still()) {
                return;
            }
            self.lay_out(out);
        }
        if let Some(sender) = &mut self.terminal.sender {
            sender.look(&mut self.terminal.main, before);
            sender.send_due(&mut self.terminal.main, now, out);
        }
    }

    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        if self.terminal.sender.is_none() || (!self.pending.is_empty() && self.open_len == 0) {
            return;
        }
        self.lay_out(out);
        if let Some(sender) = &mut self.terminal.sender {
            sender.release(&mut self.terminal.main, out);
        }
    }

    /// The time at which the next row must be looked at or sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let sender = self.terminal.sender.as_ref()?;
        if self.pending.is_empty() {
            return sender.deadline(&self.terminal.main, self.now?);
        }
        let at = self.pending_at.filter(|_| self.open_len > 0)?;
        Some(at + sender.still())
    }

    /// Brings the terminal up to date with `pending`.
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
            if let (Some(sender), Some(at)) =
                (&mut self.terminal.sender, self.pending_at.filter(|_| self.pending_at < self.now))
            {
                sender.look(&mut self.terminal.main, at);
            }
        }
        if std::mem::take(&mut self.return_seen) {
            self.terminal.carriage_return();
        }
    }

    fn set_muted(&mut self, muted: bool) {
        if let Some(sender) = &mut self.terminal.sender {
            sender.set_muted(muted);
        }
    }

    /// Returns true if text can be kept as bytes: the cursor is at the start of a fresh last row, and no mode changes
    /// the meaning of text.
    fn is_plain(&self) -> bool {
        let terminal = &self.terminal;
        let grid = &terminal.main;
        let ScreenCursor { row: at, col, .. } = grid.cursor;
        // The most likely reasons come first.
        let sender = || terminal.sender.as_ref().is_none_or(|sender| !sender.has_moved_up() && !sender.has_open_line());
        let place = col == 0 && grid.rows.len() == at + 1 && grid.top == 0 && grid.bottom.is_none();
        let modes = || terminal.alt.is_none() && terminal.autowrap && !terminal.insert && terminal.cols > 1;
        place
            && sender()
            && modes()
            && terminal.charsets == Charsets::default()
            && grid.rows.back().is_some_and(Row::is_fresh)
            && (at == 0 || self.is_closed(&grid.rows[at - 1]))
    }

    /// Returns true if a row is finished: no row continues it, and the sender's reader has it.
    fn is_closed(&self, row: &Row) -> bool {
        !row.wrapped() && (self.terminal.sender.is_none() || row.history.is_up_to_date())
    }

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
            // A line that was begun in cells ends in cells.
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

    /// Adds a run to `pending`. Lines that scroll off are final.
    fn append(&mut self, run: &[u8], open_len: usize, out: &mut Vec<u8>) {
        let keep = self.terminal.rows - 1;
        // Finding the lines that scrolled off costs as much as copying a short run, so it is done once for several.
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
        self.note_grown(open_len, out);
    }

    /// Takes lines that end in CR LF, without copying them twice. Returns the number of bytes.
    fn take_lines(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let before = self.pending.len();
        let taken = lines::take(&input[..input.len().min(PENDING_BYTES_MAX)], &mut self.pending);
        match open_line_after(self.open_len, &self.pending[before..]) {
            Some(open_len) => self.note_grown(open_len, out),
            None => {
                let run = self.pending.split_off(before);
                self.lay_out(out);
                self.terminal.feed(&run, out);
            }
        }
        taken
    }

    /// Continues after `pending` has grown. Its last line, which has no end, now has `open_len` bytes.
    fn note_grown(&mut self, open_len: usize, out: &mut Vec<u8>) {
        if open_len == 0 || self.open_len == 0 {
            self.pending_at = None;
        }
        self.open_len = open_len;
        if self.terminal.sender.is_some() {
            let complete = self.pending.len() - open_len;
            if complete > self.pending_sent {
                self.pending_at = None;
                out.extend_from_slice(&self.pending[self.pending_sent..complete]);
                self.pending_sent = complete;
            }
        }
        self.pending_at = self.pending_at.or(self.now);
        if self.pending.len() > PENDING_BYTES_MAX && !self.shorten(out) {
            self.lay_out(out);
        }
    }

    /// Appends the pending lines that have scrolled off. Returns true if there were any.
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

    /// Scrolls the rows above the cursor off the screen.
    fn scroll_all_off(&mut self, out: &mut Vec<u8>) {
        let count = self.terminal.main.cursor.row;
        if count > 0 {
            self.terminal.scroll_up(count, out);
            let grid = &mut self.terminal.main;
            grid.cursor.row = 0;
            grid.rows.truncate(1);
        }
    }

    /// Remembers the last character of text that is never laid out, for REP.
    fn note_last(&mut self, text: &[u8]) {
        let chars = text.utf8_chunks().next().map_or("", |chunk| chunk.valid()).chars();
        let last = chars.rev().find(|&c| !c.is_control() && width(c) > 0);
        self.terminal.last = last.or(self.terminal.last);
    }
}

/// Returns true if the text surely has a character that REP can repeat: one with a width.
fn has_character(text: &[u8]) -> bool {
    text.iter().any(|b| matches!(b, b' '..=b'~'))
}

/// The length of the last line after `run`; `None` if a line in it is too long to be kept as bytes.
fn open_line_after(open_len: usize, run: &[u8]) -> Option<usize> {
    let (mut open_len, mut rest) = (open_len, run);
    while open_len + rest.len() > EXTRA_BYTES_MAX {
        let window = rest.get(..(EXTRA_BYTES_MAX + 1).checked_sub(open_len)?).unwrap_or(rest);
        rest = &rest[memchr::memrchr(b'\n', window)? + 1..];
        open_len = 0;
    }
    Some(memchr::memrchr(b'\n', rest).map_or(open_len + rest.len(), |at| rest.len() - at - 1))
}

/// The start of the last `keep` complete lines and the open one; `None` if there are no lines before them.
fn start_of_last_lines(text: &[u8], keep: usize) -> Option<usize> {
    let (mut lines, mut end) = (keep, text.len());
    // Counting line feeds is faster than finding each.
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
