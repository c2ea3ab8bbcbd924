//! The block of one command: its output that nobody has seen, and how that reaches the terminal.
//!
//! Invariants: what is shown and what is counted is together what the command wrote; output reaches the terminal only
//! through the block's filter, which is reset at the end of each turn; what is not shown is not filtered.

use std::borrow::Cow;
use std::time::Instant;

use super::allowance::Allowance;
use super::backlog::{Backlog, BacklogPiece, BothEnds, Gap};
use super::ending::BlockEnd;
use super::face::{Colours, ConsoleKind, Face, Ink, columns};
use super::filter::{Filter, View};
use super::floor::Candidate;
use super::heading::Heading;
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Consequence, Entry, LeftProcess, Stream};
use crate::core::log::{Item, Taken};
use crate::journal::entry_words::{WAITS, WAITS_UNTIL, console_line};
use crate::limits;
use crate::text::count::{self, grouped};
use crate::text::highlight::Highlighter;
use crate::text::safe_text::SafeText;

#[derive(Debug)]
pub(super) struct CommandBlock {
    pub(super) job: JobId,
    /// `None` once the command's log has its last entry.
    cursor: Option<Cursor>,
    pub(super) heading: Heading,
    pub(super) filter: Filter,
    paint: Option<[Highlighter; Stream::ALL.len()]>,
    backlog: Backlog,
    allowance: Allowance,
    pub(super) has_banner: bool,
    pub(super) ending: Option<(BlockEnd, Instant)>,
    /// It waits for the human, and the console has not shown that yet.
    asks: bool,
    /// A person decides whether it runs.
    pub(super) is_held: bool,
    is_followed: bool,
    left: Box<[LeftProcess]>,
    /// Lines for behind its end.
    behind: Vec<String>,
    written: Gap,
    /// When the oldest unshown output arrived.
    oldest: Option<Instant>,
    /// When it wrote last, or the host made a remark.
    wrote: Instant,
}

impl CommandBlock {
    pub(super) fn new(face: Face, view: View, cursor: Cursor, heading: Heading) -> Self {
        let is_painted =
            face.kind == ConsoleKind::Terminal && view == View::Safe && face.colours == Colours::Highlighted;
        let now = heading.card.at;
        Self {
            job: cursor.job,
            cursor: Some(cursor),
            filter: Filter::new(face, view),
            paint: is_painted.then(|| Stream::ALL.map(|stream| Highlighter::new(stream == Stream::Err))),
            backlog: Backlog::default(),
            allowance: if face.is_text() {
                Allowance::Unlimited
            } else {
                Allowance::new(limits::CONSOLE_LIVE_LINES, now)
            },
            has_banner: false,
            ending: None,
            asks: false,
            is_held: false,
            is_followed: false,
            left: Box::default(),
            behind: Vec::new(),
            written: Gap::default(),
            oldest: None,
            wrote: now,
            heading,
        }
    }

    /// Shows this part of a line before all that comes.
    pub(super) fn begin_with(&mut self, line: &[u8]) {
        if !line.is_empty() {
            let lines = self.backlog.push(Stream::Out, line, self.allowance.lines());
            self.written.add(line.len(), lines);
            self.note_news(self.heading.card.at);
        }
    }

    /// Takes all that is new in the command's log.
    pub(super) fn take(&mut self, engine: &mut Engine, now: Instant) {
        self.allowance.raise(now);
        if let Some(cursor) = self.cursor
            && !engine.read(cursor, |item| self.take_item(item, now))
        {
            self.cursor = None;
            return;
        }
        let has_flood = self.backlog.flood().is_some();
        self.allowance.look(has_flood, self.written.lines, self.wrote, now);
    }

    fn take_item(&mut self, item: &Item<'_>, now: Instant) -> Taken {
        match item {
            Item::Entry(Entry::Output { stream, bytes, .. }) => {
                let lines = self.backlog.push(*stream, bytes, self.allowance.lines());
                self.written.add(bytes.len(), lines);
                self.note_news(now);
            }
            Item::Missed { bytes } => {
                self.written.bytes += bytes;
                self.backlog.miss(*bytes);
                self.note_news(now);
            }
            Item::Entry(Entry::Ended(end)) => self.ending = Some((BlockEnd(end.clone()), now)),
            Item::Entry(Entry::Left(left)) => self.left.clone_from(left),
            Item::Entry(Entry::Over) => return Taken::Last,
            // An agent's look at the shell writes to files of the agent's.
            Item::Entry(Entry::Kept(_)) if self.heading.card.command.is_probe => {}
            Item::Entry(entry) => {
                match console_line(entry, self.job, now) {
                    Some(line) if self.ending.is_none() => self.remark(line, now),
                    Some(line) if self.behind.len() < limits::STRAGGLERS_NAMED_MAX => self.behind.push(line),
                    _ => {}
                }
                match entry {
                    Entry::Waits(_) => self.asks = true,
                    Entry::Judged(judgement) if matches!(judgement.consequence, Consequence::Asked { .. }) => {
                        (self.asks, self.is_held) = (true, true);
                    }
                    Entry::Decided(..) => self.is_held = false,
                    _ => {}
                }
            }
        }
        Taken::All
    }

    fn remark(&mut self, line: String, now: Instant) {
        self.backlog.remark(&SafeText::from(line));
        self.note_news(now);
    }

    fn note_news(&mut self, now: Instant) {
        self.wrote = now;
        self.oldest.get_or_insert(now);
    }

    /// The place in the command's log, until that has its last entry.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// The output that is only counted for now, while more comes than anybody could read.
    pub(super) fn flood(&self) -> Option<Gap> {
        self.backlog.flood().filter(|_| self.allowance.is_flooded())
    }

    /// When to check again whether the flood is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.allowance.deadline().filter(|_| self.ending.is_none())
    }

    /// Lifts the bound on the lines that are shown as they come, or sets it again.
    pub(super) fn follow(&mut self, is_followed: bool, columns: u16) {
        if self.is_followed != is_followed {
            self.filter.cut_lines(!is_followed, columns);
            let limited = Allowance::new(limits::CONSOLE_TAIL_LINES, self.wrote);
            self.allowance = if is_followed { Allowance::Unlimited } else { limited };
            self.is_followed = is_followed;
        }
    }

    pub(super) fn resize(&mut self, columns: u16) {
        self.filter.resize(columns);
        self.filter.cut_lines(!self.is_followed, columns);
    }

    /// The block's claim to the floor.
    pub(super) fn candidate(&self) -> Candidate {
        // A flood does not come back as long as it goes on, but its beginning is shown.
        let is_only_counted = self.flood().is_some() && (self.has_banner || !self.backlog.has_head());
        let lines = if is_only_counted { 0 } else { self.backlog.lines() };
        let since = self.oldest.unwrap_or(self.heading.card.at);
        let ended = self.ending.as_ref().map(|&(_, at)| at);
        let unfolds = self.heading.card.at + limits::PROBE_TIME_MAX;
        Candidate {
            job: self.job,
            has_banner: self.has_banner,
            urgent: ended.or(self.oldest.filter(|_| self.is_followed || self.asks)),
            lines,
            since: if self.is_folded() { since.max(unfolds) } else { since },
        }
    }

    pub(super) fn wrote(&self) -> Instant {
        self.wrote
    }

    /// Returns true if an agent only looks at the shell, and nothing about it is worth reading so far.
    fn is_folded(&self) -> bool {
        let is_small = self.written.bytes <= limits::PROBE_BYTES_MAX as u64 && !self.backlog.has_remark();
        let is_well =
            self.ending.as_ref().is_none_or(|(ending, _)| ending.is_well() && ending.0.took <= limits::PROBE_TIME_MAX);
        let is_only_row = self.left.is_empty() && self.behind.is_empty();
        self.heading.card.command.is_probe && !self.has_banner && is_small && is_well && is_only_row
    }

    /// Shows the output since the last call that may be shown live. Returns true if there was any.
    pub(super) fn show_live(&mut self, face: Face, out: &mut Vec<u8>) -> bool {
        if self.flood().is_none() && self.backlog.flood().is_some() {
            // The flood is over, or there is no bound.
            let excerpt = self.backlog.take(limits::CONSOLE_TAIL_LINES);
            self.show_excerpt(face, &excerpt, out);
        } else if self.backlog.has_head() {
            let (pieces, lines) = self.backlog.take_head();
            self.allowance.spend(lines);
            pieces.iter().for_each(|piece| self.show_piece(face, piece, out));
        } else {
            return false;
        }
        (self.oldest, self.asks) = (None, false);
        true
    }

    /// Shows the last lines of what came while others had the floor.
    pub(super) fn show_last(&mut self, face: Face, out: &mut Vec<u8>) {
        let excerpt = match self.allowance {
            Allowance::Unlimited => self.backlog.take(limits::CONSOLE_TAIL_LINES),
            Allowance::Limited { .. } => self.backlog.take_last(limits::CONSOLE_COMEBACK_LINES),
        };
        self.allowance.spend(limits::CONSOLE_COMEBACK_LINES);
        self.show_excerpt(face, &excerpt, out);
        (self.oldest, self.asks) = (None, false);
    }

    /// Lines that came and were not shown yet.
    pub(super) fn lines_waiting(&self) -> u64 {
        self.backlog.lines()
    }

    fn show_excerpt(&mut self, face: Face, excerpt: &BothEnds, out: &mut Vec<u8>) {
        excerpt.head.iter().for_each(|piece| self.show_piece(face, piece, out));
        if excerpt.gap != Gap::default() {
            self.filter.end_turn(out);
            face.remark(Ink::Dim, not_shown(face, self.job, excerpt.gap), out);
        }
        excerpt.tail.iter().for_each(|piece| self.show_piece(face, piece, out));
    }

    fn show_piece(&mut self, face: Face, piece: &BacklogPiece, out: &mut Vec<u8>) {
        let Some(stream) = piece.stream else {
            self.filter.end_turn(out);
            let text = String::from_utf8_lossy(&piece.bytes);
            return match text.starts_with(WAITS) {
                true => face.remark(Ink::Yellow, with_keys(face, &text).into_owned(), out),
                false => face.remark(Ink::Dim, text.into_owned(), out),
            };
        };
        match &mut self.paint {
            Some(paint) => {
                let mut painted = Vec::with_capacity(piece.bytes.len());
                paint[stream as usize].push(&piece.bytes, &mut painted);
                self.filter.push(&painted, out);
            }
            None => self.filter.push(&piece.bytes, out),
        }
    }

    /// Ends the turn, and shows how much of its output is not on the screen.
    pub(super) fn end_turn(&mut self, face: Face, out: &mut Vec<u8>) {
        self.filter.end_turn(out);
        let hidden = self.filter.take_hidden_bytes();
        if hidden > 0 {
            let line = format!("… a full-screen program drew {}, not shown", count::bytes(hidden));
            face.remark(Ink::Dim, line, out);
        }
    }

    /// Shows in one row a command that ended before it was shown, if there is nothing more to it. Returns true if it
    /// did.
    pub(super) fn show_in_one_row(&self, face: Face, out: &mut Vec<u8>) -> bool {
        let Some((ending, _)) = self.ending.as_ref().filter(|_| !self.has_banner) else { return false };
        let (ink, words) = ending.words(self.written.lines);
        if self.is_folded() {
            self.heading.show_folded(face, (ink, &words), out);
        } else if self.backlog.is_empty() && self.left.is_empty() && !face.is_text() && ending.is_short() {
            self.heading.show(face, Some((ink, &words)), out);
            self.show_behind(face, out);
        } else {
            return false;
        }
        true
    }

    /// Shows the rest of a command that has ended, and how it ended.
    pub(super) fn close(&mut self, face: Face, out: &mut Vec<u8>) {
        let excerpt = self.backlog.take(limits::CONSOLE_TAIL_LINES);
        self.show_excerpt(face, &excerpt, out);
        self.end_turn(face, out);
        if let Some((ending, _)) = &self.ending {
            ending.show(face, self.written.lines, &self.left, out);
        }
        self.show_behind(face, out);
    }

    fn show_behind(&self, face: Face, out: &mut Vec<u8>) {
        self.behind.iter().for_each(|line| face.remark(Ink::Dim, line.clone(), out));
    }

    /// The memory that waits in the block, bytes.
    pub(super) fn weight(&self) -> usize {
        self.backlog.weight()
    }

    /// Counts the beginning of what waits, or all of it, instead of keeping it. Returns how many bytes that frees.
    pub(super) fn shed(&mut self, everything: bool) -> usize {
        let before = self.backlog.weight();
        self.backlog.give_up_head();
        if everything {
            self.backlog.miss(0);
        }
        before - self.backlog.weight()
    }
}

/// The row that stands for output that is not shown.
fn not_shown(face: Face, job: JobId, gap: Gap) -> String {
    let lines = if gap.lines == 1 { "line" } else { "lines" };
    let number = |number: u64| if face.is_text() { number.to_string() } else { grouped(number) };
    match (gap.lines, gap.bytes) {
        (0, bytes) => format!("… {} bytes not shown · rexec out {}", number(bytes), job.0),
        (count, bytes) => {
            let size = if face.is_text() { count::bytes(bytes) } else { count::size(bytes) };
            format!("… {} {lines} ({size}) not shown · rexec out {}", number(count), job.0)
        }
    }
}

/// Adds the keys that do something about it, if there is a keyboard and room for them.
fn with_keys<'a>(face: Face, line: &'a str) -> Cow<'a, str> {
    let Some(at) = line.rfind(WAITS_UNTIL).filter(|_| face.has_keys) else { return Cow::Borrowed(line) };
    let lines = ["   i answer · ^C stop it", "   i answer"].map(|keys| [&line[..at], keys, &line[at..]].concat());
    lines.into_iter().find(|line| columns(line) <= face.room()).map_or(Cow::Borrowed(line), Cow::Owned)
}
