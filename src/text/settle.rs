//! A sanitizer for a reader who follows along: when a line is given, not only what it says.
//!
//! A dev server's log line must not wait until it scrolls off a screen, a spinner must not become a thousand lines. So
//! in `Collapse` mode: as long as the program has never moved its cursor up, a complete line is given at once. After
//! that every row is given when it stood still for the settle time, scrolled off, or the stream ended; so is a line
//! that has no end yet. A row that was given and changes is given again once it stands still; if it is the line that
//! was given last and only grew, the new bytes alone are given. Without pauses the whole is what `Collapse` gives.
//!
//! Invariants: the clock is the caller's; bytes that carry the same instant may be split in any way; `tick` at
//! [`Settle::deadline`] gives something or the deadline moves on, so an idle stream never wakes anybody.

use std::time::{Duration, Instant};

use crate::text::parser::Parser;
use crate::text::sanitize::collapse::Collapse;
use crate::text::sanitize::tidy::Tidy;
use crate::text::sanitize::{Mode, Sanitizer, Stats};

/// One stream's filter with a clock; see the module's text.
#[derive(Debug)]
pub struct Settle {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// What is final at once needs no clock.
    Immediate(Sanitizer),
    Tidy(Box<Tidy>),
    Collapse {
        parser: Parser,
        collapse: Box<Collapse>,
    },
}

impl Settle {
    /// A filter at the start of a stream. `still` is how long a row has to stand still.
    pub fn new(mode: Mode, still: Duration) -> Self {
        let kind = match mode {
            Mode::Collapse { rows, cols } => {
                Kind::Collapse { parser: Parser::default(), collapse: Box::new(Collapse::new(rows, cols, Some(still))) }
            }
            Mode::Tidy => Kind::Tidy(Box::new(Tidy::new(still))),
            Mode::Raw | Mode::Strip => Kind::Immediate(Sanitizer::new(mode)),
        };
        Self { kind }
    }

    /// Takes bytes that came at `now` and appends what the reader should be given.
    pub fn push(&mut self, input: &[u8], now: Instant, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Immediate(sanitizer) => sanitizer.push(input, out),
            Kind::Tidy(tidy) => tidy.push(input, now, |bytes| out.extend_from_slice(bytes)),
            Kind::Collapse { parser, collapse } => {
                collapse.tick(now, out);
                parser.push(input, &mut collapse.sink(out));
            }
        }
    }

    /// When to call [`Self::tick`] if no bytes come before.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.kind {
            Kind::Immediate(_) => None,
            Kind::Tidy(tidy) => tidy.deadline(),
            Kind::Collapse { collapse, .. } => collapse.deadline(),
        }
    }

    /// Appends what has stood still until `now`.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Immediate(_) => {}
            Kind::Tidy(tidy) => tidy.tick(now, |bytes| out.extend_from_slice(bytes)),
            Kind::Collapse { collapse, .. } => collapse.tick(now, out),
        }
    }

    /// Something else goes to the same reader: in `Tidy`, appends what is held before it, because pipes have an order.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        if let Kind::Tidy(tidy) = &mut self.kind {
            tidy.release(|bytes| out.extend_from_slice(bytes));
        }
    }

    /// The terminal's size has changed.
    pub fn resize(&mut self, rows: u16, cols: u16, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Immediate(sanitizer) => sanitizer.resize(rows, cols, out),
            // A pipe has no size.
            Kind::Tidy(_) => {}
            Kind::Collapse { collapse, .. } => collapse.resize(rows, cols, out),
        }
    }

    /// Appends the whole screen as it is now, whatever the reader was given of it.
    pub fn live(&self, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Immediate(sanitizer) => sanitizer.live(out),
            Kind::Tidy(_) => {}
            Kind::Collapse { collapse, .. } => collapse.live(out),
        }
    }

    /// Whether a full-screen program has the terminal, of which nothing will be kept.
    pub fn is_full_screen(&self) -> bool {
        matches!(&self.kind, Kind::Collapse { collapse, .. } if collapse.is_alternate())
    }

    /// The stream has ended: appends all that the reader was not given. The filter is as new afterwards.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Immediate(sanitizer) => sanitizer.finish(out),
            Kind::Tidy(tidy) => tidy.finish(|bytes| out.extend_from_slice(bytes)),
            Kind::Collapse { parser, collapse } => {
                parser.finish(&mut collapse.sink(out));
                collapse.finish(out);
            }
        }
    }

    /// What was dropped so far.
    pub fn stats(&self) -> Stats {
        match &self.kind {
            Kind::Immediate(sanitizer) => sanitizer.stats(),
            Kind::Tidy(_) => Stats::default(),
            Kind::Collapse { parser, collapse } => {
                Stats { alt_screen_bytes: collapse.alt_screen_bytes(), ..parser.stats() }
            }
        }
    }
}
