//! What an agent reads of a program's terminal output.
//!
//! A [`Sanitizer`] takes the bytes a program wrote to its terminal, in pieces of any size, and appends text to the
//! caller's buffer. Three modes share one grammar (`parser`): `Raw` changes nothing, `Strip` deletes escape sequences
//! and control characters.
//!
//! Invariants, of every mode but `Raw`:
//! * the output is valid UTF-8 and holds no control character but TAB and LF;
//! * the way the input was split into pushes never shows in the output;
//! * memory is bounded by a constant for any input, and no input panics.

mod strip;

pub use crate::text::parser::Stats;

use crate::text::parser::Parser;
use strip::Strip;

/// How much of a terminal is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The bytes as they are.
    Raw,
    /// Escape sequences and controls are deleted, redraws become lines of their own.
    Strip,
}

/// One stream's filter; see the module's text.
#[derive(Debug)]
pub struct Sanitizer {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Raw,
    Strip { parser: Parser, strip: Strip },
}

impl Sanitizer {
    /// A filter at the start of a stream.
    pub fn new(mode: Mode) -> Self {
        let kind = match mode {
            Mode::Raw => Kind::Raw,
            Mode::Strip => Kind::Strip { parser: Parser::default(), strip: Strip::default() },
        };
        Self { kind }
    }

    /// Takes the next bytes of the stream and appends to `out` the text that is final because of them.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Raw => out.extend_from_slice(input),
            Kind::Strip { parser, strip } => parser.push(input, &mut strip.sink(out)),
        }
    }

    /// Appends what may still change: nothing in `Raw` and `Strip`.
    pub fn live(&self, _out: &mut Vec<u8>) {}

    /// Tells the filter that the terminal's size changed.
    pub fn resize(&mut self, _rows: u16, _cols: u16) {}

    /// The stream has ended: appends the text that was still open. The filter is as new afterwards, except for the
    /// statistics.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Raw => {}
            Kind::Strip { parser, strip } => {
                parser.finish(&mut strip.sink(out));
                *strip = Strip::default();
            }
        }
    }

    /// What was dropped so far.
    pub fn stats(&self) -> Stats {
        match &self.kind {
            Kind::Raw => Stats::default(),
            Kind::Strip { parser, .. } => parser.stats(),
        }
    }
}
