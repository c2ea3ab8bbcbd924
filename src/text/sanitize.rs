//! Turns a program's terminal output into the text that an agent reads.
//!
//! A [`Sanitizer`] takes the bytes of one stream, in pieces of any size, and appends text to the caller's buffer. Its
//! [`Mode`] decides how:
//!
//! * `Raw` changes nothing.
//! * `Strip` deletes escape sequences and control characters.
//! * `Collapse` carries them out on a virtual terminal of the program's own size. The text is what scrolls off that
//!   terminal and what is on it in the end.
//! * `Tidy` is for pipes. It deletes escape sequences, keeps only the last state of a rewritten line, and passes all other
//!   bytes unchanged.
//!
//! A reader that follows along must not wait for a dev server's log line until it scrolls off a screen, and must not
//! see each frame of a spinner. [`Sanitizer::settling`] is for such a reader. In `Collapse` mode it appends a complete
//! line at once, as long as the program has never moved its cursor up. From then on it appends a row when `hold`
//! releases it, when it scrolls off, or when the stream ends. The same holds for a line without an end. A row that
//! changes after it was appended is held and appended again; if it is the last line and only grew, only the new bytes
//! are. `Tidy` treats its last line likewise.
//!
//! Invariants:
//! * the output of `Strip` and `Collapse` is valid UTF-8, and its only control characters are TAB and LF;
//! * how the input was split into pieces never shows in the output, if pieces of one moment carry the same time;
//! * memory is bounded by a constant for any input, and no input panics;
//! * the clock is the caller's. A call of `tick` at the deadline appends something or moves the deadline on, so an idle
//!   stream never wakes its host.

mod collapse;
mod grid;
mod hold;
mod lazy_terminal;
mod lines;
mod row;
mod row_history;
mod row_sender;
mod sequences;
mod strip;
mod tidy;
mod virtual_terminal;
mod window;

use std::time::{Duration, Instant};

use crate::text::parser::Parser;
use collapse::Collapse;
use strip::Strip;
use tidy::Tidy;

/// The way in which terminal output becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Raw,
    /// Without escape sequences and control characters. Each state of a rewritten line is a line.
    Strip,
    /// Without escape sequences and earlier states of rewritten lines; all other bytes are unchanged. For pipes.
    Tidy,
    /// The text as a terminal of this size would end up with it.
    Collapse {
        rows: u16,
        cols: u16,
    },
}

#[derive(Debug, Clone)]
pub struct Sanitizer {
    filter: ModeFilter,
}

#[derive(Debug, Clone)]
enum ModeFilter {
    Raw,
    Strip { parser: Parser, strip: Strip },
    Tidy(Box<Tidy>),
    Collapse(Box<Collapse>),
}

impl Sanitizer {
    /// A filter for a reader that comes later: text is appended once it can no longer change.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self::with_settle_time(mode, None)
    }

    /// A filter for a reader that follows along. Unfinished text that only grows is held for the time `still` at most.
    #[must_use]
    pub fn settling(mode: Mode, still: Duration) -> Self {
        Self::with_settle_time(mode, Some(still))
    }

    fn with_settle_time(mode: Mode, still: Option<Duration>) -> Self {
        let filter = match mode {
            Mode::Raw => ModeFilter::Raw,
            Mode::Strip => ModeFilter::Strip { parser: Parser::default(), strip: Strip::default() },
            // Without a clock no time passes, so any settle time will do.
            Mode::Tidy => ModeFilter::Tidy(Box::new(Tidy::new(still.unwrap_or(Duration::from_secs(1))))),
            Mode::Collapse { rows, cols } => ModeFilter::Collapse(Box::new(Collapse::new(rows, cols, still))),
        };
        Self { filter }
    }

    /// Takes the next bytes of the stream, as if they came together with those before them. Appends text to `out`.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.take(input, None, out);
    }

    /// Takes bytes that came at `now`. Appends text to `out`.
    pub fn push_at(&mut self, input: &[u8], now: Instant, out: &mut Vec<u8>) {
        self.take(input, Some(now), out);
    }

    fn take(&mut self, input: &[u8], now: Option<Instant>, out: &mut Vec<u8>) {
        match &mut self.filter {
            ModeFilter::Raw => out.extend_from_slice(input),
            ModeFilter::Strip { parser, strip } => parser.push(input, &mut strip.sink(out)),
            ModeFilter::Tidy(tidy) => tidy.push(input, now, out),
            ModeFilter::Collapse(collapse) => collapse.push(input, now, out),
        }
    }

    /// The time for the next call of [`Self::tick`] if no bytes come before.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.filter {
            ModeFilter::Raw | ModeFilter::Strip { .. } => None,
            ModeFilter::Tidy(tidy) => tidy.deadline(),
            ModeFilter::Collapse(collapse) => collapse.deadline(),
        }
    }

    /// Appends the text that has settled by `now`.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        match &mut self.filter {
            ModeFilter::Raw | ModeFilter::Strip { .. } => {}
            ModeFilter::Tidy(tidy) => tidy.tick(now, out),
            ModeFilter::Collapse(collapse) => collapse.tick(now, out),
        }
    }

    /// Appends the held text, because bytes of another stream are about to go to the same reader.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        match &mut self.filter {
            ModeFilter::Raw | ModeFilter::Strip { .. } => {}
            ModeFilter::Tidy(tidy) => tidy.release(out),
            ModeFilter::Collapse(collapse) => collapse.release(out),
        }
    }

    /// Ends the stream: appends the remaining text. Afterwards the filter is as new, but for the count of withheld
    /// bytes.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.filter {
            ModeFilter::Raw => {}
            ModeFilter::Strip { parser, strip } => {
                parser.finish(&mut strip.sink(out));
                *strip = Strip::default();
            }
            ModeFilter::Tidy(tidy) => tidy.finish(out),
            ModeFilter::Collapse(collapse) => collapse.finish(out),
        }
    }

    /// The bytes of text that full-screen programs drew and that were not appended. Counted in `Collapse` only.
    #[must_use]
    pub fn withheld_bytes(&self) -> u64 {
        match &self.filter {
            ModeFilter::Collapse(collapse) => collapse.withheld_bytes(),
            _ => 0,
        }
    }
}
