//! What an agent reads of a program's terminal output.
//!
//! A [`Sanitizer`] takes the bytes a program wrote to its terminal, in pieces of any size, and appends text to the
//! caller's buffer. The modes share one grammar (`parser`): `Raw` changes nothing, `Strip` deletes escape sequences
//! and control characters, `Collapse` carries them out on a screen of the program's own size and gives the text that
//! scrolled off it and, at the end, the screen; `Tidy` is for what goes through pipes, and leaves all else as it is.
//!
//! Invariants, of `Strip` and `Collapse`; the last two are of `Tidy`, too:
//! * the output is valid UTF-8 and holds no control character but TAB and LF;
//! * the way the input was split into pushes never shows in the output;
//! * memory is bounded by a constant for any input, and no input panics.

pub(super) mod collapse;
mod grid;
mod lines;
mod patience;
mod relay;
mod row;
mod sequences;
mod strip;
mod terminal;
pub mod tidy;
mod window;

use std::time::{Duration, Instant};

pub use crate::text::parser::Stats;

use crate::text::parser::Parser;
use collapse::Collapse;
use strip::Strip;
use tidy::Tidy;

/// How much of a terminal is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The bytes as they are.
    Raw,
    /// Escape sequences and controls are deleted, redraws become lines of their own.
    Strip,
    /// Escape sequences are deleted and rewritten lines are their last state; all else is byte for byte as it was. For
    /// what goes through pipes.
    Tidy,
    /// Redraws become the text they ended in, as on a terminal of this size.
    Collapse {
        /// Rows of the program's terminal.
        rows: u16,
        /// Columns of the program's terminal.
        cols: u16,
    },
}

/// One stream's filter; see the module's text.
#[derive(Debug)]
pub struct Sanitizer {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Raw,
    Strip {
        parser: Parser,
        strip: Strip,
    },
    /// No time passes: lines are given when they are finished.
    Tidy {
        tidy: Box<Tidy>,
        now: Instant,
    },
    Collapse {
        parser: Parser,
        collapse: Box<Collapse>,
    },
}

impl Sanitizer {
    /// A filter at the start of a stream.
    pub fn new(mode: Mode) -> Self {
        let kind = match mode {
            Mode::Raw => Kind::Raw,
            Mode::Strip => Kind::Strip { parser: Parser::default(), strip: Strip::default() },
            Mode::Tidy => Kind::Tidy { tidy: Box::new(Tidy::new(Duration::from_secs(1))), now: Instant::now() },
            Mode::Collapse { rows, cols } => {
                Kind::Collapse { parser: Parser::default(), collapse: Box::new(Collapse::new(rows, cols, None)) }
            }
        };
        Self { kind }
    }

    /// Takes the next bytes of the stream and appends to `out` the text that is final because of them.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Raw => out.extend_from_slice(input),
            Kind::Strip { parser, strip } => parser.push(input, &mut strip.sink(out)),
            Kind::Tidy { tidy, now } => tidy.push(input, *now, |bytes| out.extend_from_slice(bytes)),
            Kind::Collapse { parser, collapse } => parser.push(input, &mut collapse.sink(out)),
        }
    }

    /// Appends what may still change: the screen in `Collapse`, nothing in `Raw` and `Strip`. What was appended by
    /// `push` so far and this is the text of the stream so far.
    pub fn live(&self, out: &mut Vec<u8>) {
        if let Kind::Collapse { collapse, .. } = &self.kind {
            collapse.live(out);
        }
    }

    /// The terminal's size has changed; lines that no longer fit on the screen are final.
    pub fn resize(&mut self, rows: u16, cols: u16, out: &mut Vec<u8>) {
        if let Kind::Collapse { collapse, .. } = &mut self.kind {
            collapse.resize(rows, cols, out);
        }
    }

    /// Whether a full-screen program has the terminal, of which nothing will be kept.
    pub fn is_full_screen(&self) -> bool {
        matches!(&self.kind, Kind::Collapse { collapse, .. } if collapse.is_alternate())
    }

    /// The stream has ended: appends the text that was still open. The filter is as new afterwards, except for the
    /// statistics.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Raw => {}
            Kind::Strip { parser, strip } => {
                parser.finish(&mut strip.sink(out));
                *strip = Strip::default();
            }
            Kind::Tidy { tidy, .. } => tidy.finish(|bytes| out.extend_from_slice(bytes)),
            Kind::Collapse { parser, collapse } => {
                parser.finish(&mut collapse.sink(out));
                collapse.finish(out);
            }
        }
    }

    /// What was dropped so far.
    pub fn stats(&self) -> Stats {
        match &self.kind {
            Kind::Raw | Kind::Tidy { .. } => Stats::default(),
            Kind::Strip { parser, .. } => parser.stats(),
            Kind::Collapse { parser, collapse } => {
                Stats { alt_screen_bytes: collapse.alt_screen_bytes(), ..parser.stats() }
            }
        }
    }
}
