//! Pure deletion: escape sequences and controls vanish, nothing is held back and nothing is looked up again.
//!
//! The one rule with a memory is the carriage return: any number of CR before a line feed belong to that line feed; a
//! CR before other text starts a new line, unless the output is at a line's start anyway; a CR at the end is nothing.

use crate::text::parser::Sink;
use crate::text::scan::{self, WIDE};

/// What of the output so far decides how the next character appears.
#[derive(Debug)]
pub(crate) struct Strip {
    return_seen: bool,
    at_line_start: bool,
}

impl Default for Strip {
    fn default() -> Self {
        Self { return_seen: false, at_line_start: true }
    }
}

impl Strip {
    pub(crate) fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>) -> StripSink<'a> {
        StripSink { strip: self, out }
    }
}

#[derive(Debug)]
pub(crate) struct StripSink<'a> {
    strip: &'a mut Strip,
    out: &'a mut Vec<u8>,
}

impl Sink for StripSink<'_> {
    const READS_SEQUENCES: bool = false;

    #[inline]
    fn shortcut(&mut self, input: &[u8]) -> (usize, u64) {
        self.coloured(input)
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

/// How much input the shortcut takes at a time: it writes into zeroed memory, and zeroing more than it fills is a waste.
const WINDOW_BYTES: usize = 2048;
/// Text is copied in steps of this size, and what was too much is overwritten.
const STEP: usize = WIDE;
/// So much input there must be from the start of a block, for copies that begin anywhere in it.
const BLOCK_BYTES: usize = WIDE + STEP;

impl StripSink<'_> {
    /// Short runs of text between colours and carriage returns, 64 bytes at a time. Whatever is neither ends it: long
    /// runs, characters that are not ASCII, other controls, sequences that are not whole.
    fn coloured(&mut self, input: &[u8]) -> (usize, u64) {
        let input = &input[..input.len().min(WINDOW_BYTES)];
        let start = self.out.len();
        self.out.resize(start + input.len() + BLOCK_BYTES, 0);
        let mut window = Window { out: &mut self.out[start..], len: 0, at_line_start: self.strip.at_line_start };
        let (mut at, mut sequences) = (0, 0);
        let mut returned = self.strip.return_seen;
        let mut clean = 0;
        let mut padded = [0; BLOCK_BYTES];
        'block: while at < input.len() {
            let base = at;
            let block = match input[at..].first_chunk::<BLOCK_BYTES>() {
                Some(block) => block,
                None => {
                    // Padded with NUL, where the loop ends.
                    padded.fill(0);
                    padded[..input.len() - at].copy_from_slice(&input[at..]);
                    &padded
                }
            };
            let wide = block.first_chunk().expect("a block is wider");
            let odd = scan::odd_bytes(wide);
            let mut finals = None;
            let mut pos = 0;
            loop {
                let stops = odd & u64::MAX << pos;
                let end = stops.trailing_zeros() as usize;
                if end > pos {
                    if returned {
                        returned = false;
                        window.new_line(block[pos]);
                    }
                    window.copy(block, pos, end);
                }
                at = base + end;
                if end == WIDE {
                    clean = if pos == 0 { clean + 1 } else { 0 };
                    if clean == 2 {
                        break 'block;
                    }
                    continue 'block;
                }
                match block[end] {
                    b'\n' => {
                        returned = false;
                        window.put(b'\n');
                    }
                    b'\r' if block[end + 1] == b'\n' => {
                        returned = false;
                        window.put(b'\n');
                        at += 1;
                    }
                    b'\r' => returned = true,
                    b'\t' => {
                        if returned {
                            returned = false;
                            window.new_line(b'\t');
                        }
                        window.put(b'\t');
                    }
                    0x1B => {
                        let finals = *finals.get_or_insert_with(|| scan::last_bytes(wide));
                        let ends = (finals | odd) & u64::MAX.checked_shl(end as u32 + 2).unwrap_or(0);
                        let last = ends.trailing_zeros() as usize;
                        if last == WIDE {
                            if end == 0 {
                                // Longer than a block.
                                break 'block;
                            }
                            continue 'block;
                        }
                        if block[end + 1] != b'[' || finals >> last & 1 == 0 {
                            break 'block;
                        }
                        sequences += 1;
                        at = base + last;
                    }
                    _ => break 'block,
                }
                at += 1;
                pos = at - base;
                if pos >= WIDE {
                    continue 'block;
                }
            }
        }
        if window.len > 0 {
            self.strip.at_line_start = window.out[window.len - 1] == b'\n';
        }
        self.strip.return_seen = returned;
        let len = start + window.len;
        self.out.truncate(len);
        (at, sequences)
    }
}

/// The output of one shortcut, with room behind it.
struct Window<'a> {
    out: &'a mut [u8],
    len: usize,
    /// Where the output was before the window.
    at_line_start: bool,
}

impl Window<'_> {
    /// A carriage return came before `next`.
    #[inline]
    fn new_line(&mut self, next: u8) {
        let is_start = if self.len == 0 { self.at_line_start } else { self.out[self.len - 1] == b'\n' };
        if next != b'\n' && !is_start {
            self.out[self.len] = b'\n';
            self.len += 1;
        }
    }

    #[inline]
    fn put(&mut self, byte: u8) {
        self.out[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn copy(&mut self, block: &[u8; BLOCK_BYTES], from: usize, to: usize) {
        self.out[self.len..][..STEP].copy_from_slice(&block[from..][..STEP]);
        self.len += to - from;
    }
}
