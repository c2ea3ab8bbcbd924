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
        let Strip { return_seen, at_line_start } = *self.strip;
        let out = &mut self.out[start..];
        let mut window = Window { out, len: 0, at_line_start, return_seen, sequences: 0 };
        let mut padded = [0; BLOCK_BYTES];
        let (mut at, mut clean_blocks) = (0, 0);
        while at < input.len() && clean_blocks < 2 {
            let block = input[at..].first_chunk::<BLOCK_BYTES>().unwrap_or_else(|| {
                // Padded with NUL, where the window ends.
                padded.fill(0);
                padded[..input.len() - at].copy_from_slice(&input[at..]);
                &padded
            });
            let taken = window.take(block);
            clean_blocks = if taken.clean { clean_blocks + 1 } else { 0 };
            at += taken.bytes;
            if taken.foreign {
                break;
            }
        }
        let Window { len, return_seen, sequences, .. } = window;
        if let Some(&last) = len.checked_sub(1).map(|last| &self.out[start + last]) {
            self.strip.at_line_start = last == b'\n';
        }
        self.strip.return_seen = return_seen;
        self.out.truncate(start + len);
        (at, sequences)
    }
}

/// The output of one shortcut, with room behind it.
struct Window<'a> {
    out: &'a mut [u8],
    len: usize,
    /// Where the output was before the window.
    at_line_start: bool,
    return_seen: bool,
    sequences: u64,
}

/// What the window took of a block.
struct Taken {
    bytes: usize,
    /// All of it was one run of text.
    clean: bool,
    /// What comes next is not for the window.
    foreign: bool,
}

impl Window<'_> {
    /// Takes text, line ends and sequences up to the block's 64th byte, or up to a sequence that goes on behind it.
    #[inline]
    fn take(&mut self, block: &[u8; BLOCK_BYTES]) -> Taken {
        let wide = block.first_chunk().expect("a block is wider");
        let odd = scan::odd_bytes(wide);
        // Needed only where there are sequences.
        let mut last = None;
        let mut bytes = 0;
        while bytes < WIDE {
            let end = (odd & u64::MAX << bytes).trailing_zeros() as usize;
            if end > bytes {
                self.copy(block, bytes, end);
            }
            if end == WIDE {
                return Taken { bytes: end, clean: bytes == 0, foreign: false };
            }
            bytes = end;
            let byte = block[bytes];
            if byte == 0x1B {
                let last = *last.get_or_insert_with(|| scan::last_bytes(wide));
                match plain_csi(block, odd, last, bytes) {
                    Some(0) if bytes > 0 => break,
                    Some(0) | None => return Taken { bytes, clean: false, foreign: true },
                    Some(len) => bytes += len,
                }
                self.sequences += 1;
            } else if byte == b'\r' {
                self.return_seen = true;
                bytes += 1;
            } else if byte == b'\n' {
                self.return_seen = false;
                self.put(byte);
                bytes += 1;
            } else if byte == b'\t' {
                self.new_line_if_due();
                self.put(byte);
                bytes += 1;
            } else {
                return Taken { bytes, clean: false, foreign: true };
            }
        }
        Taken { bytes, clean: false, foreign: false }
    }

    /// Before text: a carriage return that no line feed followed starts a line.
    #[inline]
    fn new_line_if_due(&mut self) {
        if self.return_seen {
            self.return_seen = false;
            let is_start = if self.len == 0 { self.at_line_start } else { self.out[self.len - 1] == b'\n' };
            if !is_start {
                self.put(b'\n');
            }
        }
    }

    #[inline]
    fn put(&mut self, byte: u8) {
        self.out[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn copy(&mut self, block: &[u8; BLOCK_BYTES], from: usize, to: usize) {
        self.new_line_if_due();
        self.out[self.len..][..STEP].copy_from_slice(&block[from..][..STEP]);
        self.len += to - from;
    }
}

/// The length of the control sequence at the ESC at `at`: nothing if it is none or not a plain one, 0 if the block ends
/// before it does. `odd` and `last` say which bytes are not printable, and which may end it.
#[inline]
fn plain_csi(block: &[u8; BLOCK_BYTES], odd: u64, last: u64, at: usize) -> Option<usize> {
    let behind = u64::MAX.checked_shl(at as u32 + 2).unwrap_or(0);
    let end = ((last | odd) & behind).trailing_zeros() as usize;
    if end == WIDE {
        return Some(0);
    }
    (block[at + 1] == b'[' && last >> end & 1 == 1).then(|| end + 1 - at)
}
