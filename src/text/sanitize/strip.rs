//! Deletes escape sequences and controls, and holds nothing back.
//!
//! Only carriage returns need a memory: any number of them before a line feed belong to that line feed; before other text
//! they start a new line, unless the output is at a line's start; at the end of the stream they are dropped.

use std::ops::Range;

use super::lines;
use super::window::{BLOCK_BYTES, Reading, Window};
use crate::text::parser::Sink;

/// The state of the output on which the next character depends.
#[derive(Debug, Clone)]
pub(super) struct Strip {
    return_seen: bool,
    at_line_start: bool,
}

impl Default for Strip {
    fn default() -> Self {
        Self { return_seen: false, at_line_start: true }
    }
}

impl Strip {
    pub(super) fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>) -> StripSink<'a> {
        StripSink { strip: self, out }
    }
}

#[derive(Debug)]
pub(super) struct StripSink<'a> {
    strip: &'a mut Strip,
    out: &'a mut Vec<u8>,
}

impl Sink for StripSink<'_> {
    const READS_SEQUENCES: bool = false;
    const PIECE_BYTES: usize = 16 << 10;

    #[inline]
    fn shortcut(&mut self, input: &[u8]) -> usize {
        let mut taken = 0;
        if input.starts_with(b"\r\n") && !self.strip.return_seen {
            taken = lines::take(input, self.out);
            if taken > 0 {
                self.strip.at_line_start = self.out.ends_with(b"\n");
            }
        }
        let mut window = Window::<Deletion>::new(self.strip.at_line_start, self.strip.return_seen);
        taken += window.fill(&input[taken..]);
        self.out.extend_from_slice(window.text());
        *self.strip = Strip { return_seen: window.return_seen, at_line_start: window.is_at_line_start() };
        taken
    }

    #[inline]
    fn text(&mut self, run: &[u8]) {
        if self.strip.return_seen {
            self.strip.return_seen = false;
            if !run.starts_with(b"\n") && !self.strip.at_line_start {
                self.out.push(b'\n');
            }
        }
        self.out.extend_from_slice(run);
        self.strip.at_line_start = run.ends_with(b"\n");
    }

    #[inline]
    fn control(&mut self, byte: u8) {
        match byte {
            b'\r' => self.strip.return_seen = true,
            0x0B | 0x0C => self.text(b"\n"),
            _ => {}
        }
    }

    fn escape(&mut self, _intermediates: &[u8], _last: u8) {}

    fn csi(&mut self, _body: &[u8], _last: u8) {}
}

/// Reads every sequence as nothing.
#[derive(Debug)]
enum Deletion {}

impl Reading for Deletion {
    const RETURN_STARTS_LINE: bool = true;

    #[inline]
    fn has_no_effect(_block: &[u8; BLOCK_BYTES], _body: Range<usize>, _after_return: bool) -> bool {
        true
    }
}
