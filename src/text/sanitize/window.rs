//! The fast path of `Strip` and `Collapse`: cleans text with colours and line ends in one pass, 64 bytes at a time.
//!
//! A window takes text, control sequences without an effect, and carriage returns before a line feed. At any other byte
//! the window ends, and the parser goes on from there.
//!
//! Invariant: the text is valid UTF-8 without C1 code points; incomplete characters and sequences are not taken.

use std::marker::PhantomData;
use std::ops::Range;

use crate::text::scan::{self, WIDE};

/// Bytes of text per window. The memory is zeroed first, which is a waste if little text comes, and slow from 2 KiB on.
const TEXT_BYTES: usize = 2048 - 2 * BLOCK_BYTES;
/// Bytes copied in one step; excess bytes are overwritten by the next step.
const STEP: usize = WIDE;
/// Bytes of input that a block needs, for copies and sequences that begin anywhere in its first 64 bytes.
pub(super) const BLOCK_BYTES: usize = WIDE + STEP;
/// This many plain blocks in a row are a long run of text, which the parser copies faster.
const CLEAN_BLOCKS_MAX: usize = 4;

/// The meaning of controls in a window.
pub(super) trait Reading {
    /// If true, a carriage return before other text starts a new line; otherwise it ends the window.
    const RETURN_STARTS_LINE: bool;

    /// Returns true if the control sequence has no effect. Its last byte follows `body`; `after_return`: a carriage
    /// return comes before it.
    fn has_no_effect(block: &[u8; BLOCK_BYTES], body: Range<usize>, after_return: bool) -> bool;
}

#[derive(Debug)]
pub(super) struct Window<R> {
    text: [u8; TEXT_BYTES + BLOCK_BYTES],
    len: usize,
    /// True if the text before the window ended a line.
    at_line_start: bool,
    pub(super) return_seen: bool,
    reading: PhantomData<R>,
}

/// The taken part of a block.
struct Taken {
    bytes: usize,
    /// The window ends here.
    foreign: bool,
}

impl<R: Reading> Window<R> {
    pub(super) fn new(at_line_start: bool, return_seen: bool) -> Self {
        let text = [0; TEXT_BYTES + BLOCK_BYTES];
        Self { text, len: 0, at_line_start, return_seen, reading: PhantomData }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// Takes the beginning of `input`. Returns the number of bytes.
    #[inline]
    pub(super) fn fill(&mut self, input: &[u8]) -> usize {
        let mut padded = [0; BLOCK_BYTES];
        let (mut at, mut clean_blocks) = (0, 0);
        while at < input.len() && self.len <= TEXT_BYTES && clean_blocks < CLEAN_BLOCKS_MAX {
            let block = input[at..].first_chunk::<BLOCK_BYTES>().unwrap_or_else(|| {
                // Padded with NUL, where the input ends.
                padded.fill(0);
                padded[..input.len() - at].copy_from_slice(&input[at..]);
                &padded
            });
            let stops = scan::stop_bytes(wide(block));
            if stops == 0 && !self.return_seen {
                self.step(self.len, block, 0);
                self.len += WIDE;
                at += WIDE;
                clean_blocks += 1;
                continue;
            }
            let taken = self.take(block, stops);
            clean_blocks = 0;
            at += taken.bytes;
            if taken.foreign {
                break;
            }
        }
        at
    }

    /// Takes a block up to its 64th byte, or up to a character or sequence that crosses it. `stops` has a bit for each byte
    /// that is not plain text.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a block has 64 bytes")]
    fn take(&mut self, block: &[u8; BLOCK_BYTES], stops: u64) -> Taken {
        let mut ends = None;
        let mut from = 0;
        if self.return_seen {
            let taken = self.after_return(block, 0, &mut ends);
            if taken.foreign || taken.bytes >= WIDE {
                return taken;
            }
            from = taken.bytes;
        }
        let mut stops = stops & u64::MAX << from;
        let mut len = self.len;
        // The run is copied before its end is known.
        self.step(len, block, from);
        while stops != 0 {
            let at = stops.trailing_zeros() as usize;
            let byte = block[at];
            let next = if byte == 0x1B {
                match sequence_len::<R>(block, &mut ends, at, false) {
                    Some(0) if at > 0 => return self.end(len + at - from, at, false),
                    Some(0) | None => return self.end(len + at - from, at, true),
                    Some(len) => at + len,
                }
            } else if byte == b'\r' {
                if matches!(block[at + 1], b'\n' | b'\r') {
                    at + 1
                } else {
                    self.len = len + at - from;
                    match self.lone_return(block, at, &mut ends) {
                        Ok(next) => (from, len) = (next, self.len),
                        Err(taken) => return taken,
                    }
                    if from >= WIDE {
                        return self.end(len, from, false);
                    }
                    stops &= u64::MAX << from;
                    self.step(len, block, from);
                    continue;
                }
            } else {
                let bytes = character_len(block, at);
                if bytes == 0 || at + bytes > WIDE {
                    return self.end(len + at - from, at, bytes == 0);
                }
                stops &= u64::MAX.checked_shl((at + bytes) as u32).unwrap_or(0);
                continue;
            };
            len += at - from;
            from = next;
            if from >= WIDE {
                return self.end(len, WIDE, false);
            }
            stops &= u64::MAX << from;
            self.step(len, block, from);
        }
        self.end(len + WIDE - from, WIDE, false)
    }

    /// Takes a carriage return without a line feed right after it. Returns the place after it, or the taken part if the
    /// window ends.
    #[inline]
    fn lone_return(&mut self, block: &[u8; BLOCK_BYTES], at: usize, ends: &mut Option<u64>) -> Result<usize, Taken> {
        if R::RETURN_STARTS_LINE && matches!(block[at + 1], b' '..=b'~') {
            self.len = self.start_line(self.len);
            return Ok(at + 1);
        }
        let taken = self.after_return(block, at, ends);
        if taken.foreign { Err(taken) } else { Ok(taken.bytes) }
    }

    #[inline]
    fn end(&mut self, len: usize, bytes: usize, foreign: bool) -> Taken {
        self.len = len;
        Taken { bytes, foreign }
    }

    /// Takes carriage returns; the bytes after them decide their meaning.
    fn after_return(&mut self, block: &[u8; BLOCK_BYTES], at: usize, ends: &mut Option<u64>) -> Taken {
        self.return_seen = true;
        let mut at = at;
        while at < WIDE {
            match block[at] {
                b'\r' => at += 1,
                b'\n' => {
                    self.return_seen = false;
                    return Taken { bytes: at, foreign: false };
                }
                0x1B => match sequence_len::<R>(block, ends, at, true) {
                    Some(0) if at > 0 => return Taken { bytes: at, foreign: false },
                    Some(0) | None => return Taken { bytes: at, foreign: true },
                    Some(len) => at += len,
                },
                b'\t' | b' '..=b'~' if R::RETURN_STARTS_LINE => {
                    self.return_seen = false;
                    self.len = self.start_line(self.len);
                    return Taken { bytes: at, foreign: false };
                }
                _ => return Taken { bytes: at, foreign: true },
            }
        }
        Taken { bytes: at, foreign: false }
    }

    /// Begins a line at `len`, unless a line begins there already. Returns the new length.
    #[inline]
    fn start_line(&mut self, len: usize) -> usize {
        let is_started = len.checked_sub(1).map_or(self.at_line_start, |last| self.text[last] == b'\n');
        self.text[len] = b'\n';
        len + usize::from(!is_started)
    }

    pub(super) fn is_at_line_start(&self) -> bool {
        self.len.checked_sub(1).map_or(self.at_line_start, |last| self.text[last] == b'\n')
    }

    #[inline]
    fn step(&mut self, len: usize, block: &[u8; BLOCK_BYTES], from: usize) {
        self.text[len..][..STEP].copy_from_slice(&block[from..][..STEP]);
    }
}

fn wide(block: &[u8; BLOCK_BYTES]) -> &[u8; WIDE] {
    block.first_chunk().expect("a block is wider")
}

/// The length of the control sequence at the ESC at `at`; 0 if it crosses the block's end; `None` if it is not a complete
/// control sequence or has an effect. `ends` caches the bytes that end a sequence.
#[inline]
fn sequence_len<R: Reading>(
    block: &[u8; BLOCK_BYTES],
    ends: &mut Option<u64>,
    at: usize,
    after_return: bool,
) -> Option<usize> {
    let ends = *ends.get_or_insert_with(|| scan::sequence_ends(wide(block)));
    let end = (ends & u64::MAX << 2 << at).trailing_zeros() as usize;
    if end == WIDE {
        return Some(0);
    }
    let is_whole = block[at + 1] == b'[' && matches!(block[end], 0x40..=0x7E);
    (is_whole && R::has_no_effect(block, at + 2..end, after_return)).then_some(end + 1 - at)
}

/// The length of the non-ASCII character at `at`, if it is complete, not a C1 control, and its lead byte does not restrict
/// the next one. Otherwise 0.
#[inline]
fn character_len(block: &[u8; BLOCK_BYTES], at: usize) -> usize {
    let is_tail = |at: usize| block[at] & 0xC0 == 0x80;
    match block[at] {
        0xC3..=0xDF if is_tail(at + 1) => 2,
        0xE1..=0xEC | 0xEE | 0xEF if is_tail(at + 1) && is_tail(at + 2) => 3,
        _ => 0,
    }
}
