//! The status line: the terminal's last row, below the rows that scroll.
//!
//! It says what runs, what waits for the human, what is left, and which keys do something now (`status_line/wording.rs`).
//! The rows above it are the terminal's scroll region (DECSTBM), so output scrolls as it would without it. A line is drawn
//! between DECSC and DECRC, which keep the cursor and its colours; where the cursor waits behind a full row, the console
//! mends what they lose ([`Console::mend_cursor`](super::Console::mend_cursor)).
//!
//! Invariants: a text is drawn at most every [`limits::STATUS_EVERY`], but for what is typed; a line whose text has not
//! changed is drawn again only when the console has erased it; while nothing runs it has no deadline; [`StatusLine::leave`]
//! leaves no region, and what a killed host has left is replaced.

mod wording;

use std::time::Instant;

use crate::limits;
use crate::text::safe_text::SafeText;
pub use wording::{StatusFacts, StatusRun, Waits};

/// All rows scroll; the cursor stays.
const NO_REGION: &[u8] = b"\x1b7\x1b[r\x1b8";
/// Erases from the cursor to the screen's end, where an earlier status line may stand.
const ERASE_BELOW: &[u8] = b"\x1b[J";
/// Makes sure that the cursor is not in the last row: a line feed that keeps the column, and a step up.
const LEAVE_LAST_ROW: &[u8] = b"\x1bD\x1b[A";

#[derive(Debug)]
struct Drawing {
    text: SafeText,
    at: Instant,
}

#[derive(Debug, Default)]
pub struct StatusLine {
    /// Columns and rows. `None` if there is no status line.
    size: Option<(u16, u16)>,
    /// The region has to be set before the line is drawn.
    needs_region: bool,
    drawing: Option<Drawing>,
    /// The line was erased, although its text may be the same.
    is_erased: bool,
    /// When its facts may first have changed since it was drawn.
    stale: Option<Instant>,
    /// It is drawn no matter how recently it was drawn last.
    is_urgent: bool,
    /// When its times change.
    ticks_at: Option<Instant>,
}

impl StatusLine {
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.size.is_some()
    }

    /// Notes the terminal's size, columns and rows. `None`, or too few rows, switches the line off. Returns whether that
    /// saved and restored the cursor.
    pub fn resize(&mut self, size: Option<(u16, u16)>, now: Instant, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let size = size.filter(|&(columns, rows)| rows >= limits::STATUS_ROWS_MIN && columns > 1);
        if self.size.is_some() && size.is_none() {
            self.leave(out);
        }
        self.size = size;
        self.needs_region = size.is_some();
        self.touch_now(now);
        out.len() > before
    }

    /// Notes that its facts may have changed.
    pub fn touch(&mut self, now: Instant) {
        self.stale = self.stale.or(Some(now));
    }

    /// Notes that the human typed something that it shows.
    pub fn touch_now(&mut self, now: Instant) {
        self.touch(now);
        self.is_urgent = true;
    }

    /// Notes that the console wrote this above it.
    pub fn on_output(&mut self, bytes: &[u8]) {
        let erases = |at: usize| [b"\x1b[".as_slice(), b"\x1b[0"].iter().any(|start| bytes[..at].ends_with(start));
        self.is_erased |= self.is_on() && memchr::memchr_iter(b'J', bytes).any(erases);
    }

    /// Returns true if it is time for [`StatusLine::refresh`].
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|at| now >= at)
    }

    /// When it must be drawn. `None` while nothing changes.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.size?;
        let Some(drawing) = &self.drawing else { return self.stale };
        let next = drawing.at + limits::STATUS_EVERY;
        let stale = self.stale.map(|since| if self.is_urgent { since } else { since.max(next) });
        stale.into_iter().chain(self.ticks_at.map(|at| at.max(next))).min()
    }

    /// The runs that the key answers, if the line with these facts says so.
    #[must_use]
    pub fn named_in(&self, facts: &StatusFacts) -> Vec<u64> {
        self.size.map_or_else(Vec::new, |(columns, _)| facts.named_in(usize::from(columns) - 1))
    }

    /// The held runs on which a key decides, if the line with these facts says so.
    #[must_use]
    pub fn held_in(&self, facts: &StatusFacts) -> Vec<u64> {
        self.size.map_or_else(Vec::new, |(columns, _)| facts.held_in(usize::from(columns) - 1))
    }

    /// Draws the line with new facts. Returns whether that saved and restored the cursor.
    pub fn refresh(&mut self, facts: &StatusFacts, now: Instant, out: &mut Vec<u8>) -> bool {
        let Some((columns, rows)) = self.size else { return false };
        if std::mem::take(&mut self.needs_region) {
            set_region(rows, out);
            self.is_erased = true;
        }
        let text = facts.line(usize::from(columns) - 1).into();
        self.ticks_at = facts.next_tick(now);
        (self.stale, self.is_urgent) = (None, false);
        let is_new = self.drawing.as_ref().is_none_or(|drawing| drawing.text != text);
        self.drawing = Some(Drawing { text, at: now });
        self.is_erased |= is_new;
        self.repair(out)
    }

    /// Draws the line again as it was, if it was erased. Returns whether that saved and restored the cursor.
    pub fn repair(&mut self, out: &mut Vec<u8>) -> bool {
        if let (true, Some((_, rows)), Some(drawing), false) =
            (self.is_erased, self.size, &self.drawing, self.needs_region)
        {
            let place = format!("\x1b7\x1b[{rows};1H\x1b[0;7m");
            let parts = [place.as_bytes(), drawing.text.as_bytes(), b"\x1b[0m\x1b[K\x1b8"];
            parts.into_iter().for_each(|part| out.extend_from_slice(part));
            self.is_erased = false;
            return true;
        }
        false
    }

    /// Gives the last row back, for the host's end or for a program that takes the screen. The next
    /// [`StatusLine::resize`] brings the line back.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        if self.size.take().is_some() && self.drawing.take().is_some() {
            forget_region(out);
        }
    }
}

/// Lets all rows scroll again, and erases what stands below the cursor: a status line, this host's or one that was
/// killed.
pub fn forget_region(out: &mut Vec<u8>) {
    [NO_REGION, ERASE_BELOW].into_iter().for_each(|part| out.extend_from_slice(part));
}

/// Lets all rows but the last one scroll. Terminals differ in what a new size does to an old region, and where it moves
/// the old line: in any case below the cursor.
fn set_region(rows: u16, out: &mut Vec<u8>) {
    forget_region(out);
    out.extend_from_slice(LEAVE_LAST_ROW);
    out.extend_from_slice(format!("\x1b7\x1b[1;{}r\x1b8", rows - 1).as_bytes());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn drawn(line: &mut StatusLine, facts: &StatusFacts, now: Instant) -> String {
        let mut out = Vec::new();
        if line.is_due(now) {
            line.refresh(facts, now, &mut out);
        }
        line.repair(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn sized(size: (u16, u16)) -> StatusLine {
        let mut line = StatusLine::default();
        line.resize(Some(size), Instant::now(), &mut Vec::new());
        line
    }

    #[test]
    fn it_is_drawn_when_its_text_changes_and_not_too_often() {
        let now = Instant::now() + Duration::from_secs(1);
        let mut line = sized((80, 24));
        let mut facts = StatusFacts { agents: 1, ..StatusFacts::default() };
        let first = drawn(&mut line, &facts, now);
        assert!(
            first.starts_with("\x1b7\x1b[r\x1b8\x1b[J\x1bD\x1b[A\x1b7\x1b[1;23r\x1b8\x1b7\x1b[24;1H\x1b[0;7m"),
            "{first:?}"
        );
        assert!(first.ends_with("\x1b[0m\x1b[K\x1b8"));
        assert_eq!(line.deadline(), None, "nothing runs");
        line.touch(now);
        assert_eq!(line.deadline(), Some(now + limits::STATUS_EVERY));
        let later = now + limits::STATUS_EVERY;
        assert_eq!(drawn(&mut line, &facts, later), "", "nothing has changed");
        facts.agents = 2;
        line.touch(now);
        assert_eq!(drawn(&mut line, &facts, later), "");
        line.touch_now(now);
        assert!(drawn(&mut line, &facts, later).contains("2 agents"));
    }

    #[test]
    fn it_comes_back_at_once_when_the_console_erases_it() {
        let now = Instant::now() + Duration::from_secs(1);
        let mut line = sized((80, 24));
        drawn(&mut line, &StatusFacts::default(), now);
        for (output, is_erased) in [(b"J\x1b[1J\x1b[K".as_slice(), false), (b"a\x1b[Jb", true), (b"\x1b[0J", true)] {
            line.on_output(output);
            assert_eq!(drawn(&mut line, &StatusFacts::default(), now).is_empty(), !is_erased, "{output:?}");
        }
    }

    #[test]
    fn a_small_screen_has_none_and_the_region_goes_with_it() {
        let now = Instant::now() + Duration::from_secs(1);
        let mut line = sized((80, 24));
        drawn(&mut line, &StatusFacts::default(), now);
        let mut out = Vec::new();
        line.resize(Some((80, 5)), now, &mut out);
        assert_eq!(out, b"\x1b7\x1b[r\x1b8\x1b[J");
        assert!(!line.is_on() && line.deadline().is_none());
        assert_eq!(drawn(&mut line, &StatusFacts::default(), now), "");
        line.resize(Some((80, 24)), now, &mut out);
        assert!(drawn(&mut line, &StatusFacts::default(), now).contains("\x1b[1;23r"));
        out.clear();
        line.leave(&mut out);
        line.leave(&mut out);
        assert_eq!(out, b"\x1b7\x1b[r\x1b8\x1b[J", "once");
    }
}
