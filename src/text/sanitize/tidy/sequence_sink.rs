//! Carries out the sequences that did not come in one piece.

use super::Tidy;
use crate::text::parser::Sink;

/// Passes the parser's findings inside sequences to the filter.
pub(super) struct SequenceSink<'a> {
    pub(super) tidy: &'a mut Tidy,
    pub(super) out: &'a mut Vec<u8>,
}

impl Sink for SequenceSink<'_> {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        self.tidy.plain(run, self.out);
    }

    fn control(&mut self, byte: u8) {
        let (line, now) = (&mut self.tidy.line, self.tidy.now);
        match byte {
            b'\r' => line.carriage_return(self.out),
            0x08 => line.backspace(now, self.out),
            _ => line.write(&[byte], now, self.out),
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            (b"", b'M') => self.tidy.climb(b"\x1bM", self.out),
            (b"", b'7' | b'8') => {
                let last = if last == b'7' { b's' } else { b'u' };
                self.tidy.control_sequence(b"", last, self.out);
            }
            _ => {}
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        self.tidy.control_sequence(body, last, self.out);
    }
}
