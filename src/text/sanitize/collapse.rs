//! The parser and the virtual terminal of one stream.

use std::time::{Duration, Instant};

use super::lazy_terminal::LazyTerminal;
use crate::text::parser::Parser;

#[derive(Debug, Clone)]
pub(super) struct Collapse {
    parser: Parser,
    terminal: LazyTerminal,
}

impl Collapse {
    /// With `still`, rows are appended as soon as [`super::row_sender`] allows; without it, when they scroll off.
    pub(super) fn new(rows: u16, cols: u16, still: Option<Duration>) -> Self {
        Self { parser: Parser::default(), terminal: LazyTerminal::new(rows, cols, still) }
    }

    pub(super) fn push(&mut self, input: &[u8], now: Option<Instant>, out: &mut Vec<u8>) {
        if let Some(now) = now {
            self.terminal.tick(now, out);
        }
        self.parser.push(input, &mut self.terminal.sink(out));
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.terminal.deadline()
    }

    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.terminal.tick(now, out);
    }

    /// Appends the rows that the reader lacks, whether or not they have settled.
    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        self.terminal.release(out);
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.parser.finish(&mut self.terminal.sink(out));
        self.terminal.finish(out);
    }

    pub(super) fn withheld_bytes(&self) -> u64 {
        self.terminal.withheld_bytes()
    }
}
