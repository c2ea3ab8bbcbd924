//! The fast path of both treatments: text with colours and line ends, cleaned in one pass, 64 bytes at a time.
//!
//! A window takes what needs no terminal: text, control sequences that mean nothing to its reader, carriage returns
//! before a line feed. Whatever else ends it, and the parser goes on there as if there were no window.
//!
//! Invariant: the text is valid UTF-8 without C1 code points; a character or sequence that is not whole is not taken.

use std::marker::PhantomData;

use crate::text::scan::{self, WIDE};

/// How much text a window gives at a time. It is written to zeroed memory, which is a waste when little comes, and
/// from 2 KiB on is slow to zero.
const TEXT_BYTES: usize = 2048 - 2 * BLOCK_BYTES;
/// Text is copied in steps of this size, and what was too much is overwritten.
const STEP: usize = WIDE;
/// So much input there must be from the start of a block, for copies and sequences that begin anywhere in it.
const BLOCK_BYTES: usize = WIDE + STEP;
/// So many blocks without anything to do are a long run of text, which others copy faster.
const CLEAN_BLOCKS_MAX: usize = 4;

/// What the reader of a window makes of controls.
pub(super) trait Reading {
    /// A carriage return before other text starts a new line. If not, it is not for the window.
    const RETURN_STARTS_LINE: bool;

    /// Whether a control sequence means nothing, with a carriage return before it or without.
    fn is_nothing(body: &[u8], last: u8, after_return: bool) -> bool;
}

/// What was taken of some input, as text.
#[derive(Debug)]
pub(super) struct Window<R> {
    text: [u8; TEXT_BYTES + BLOCK_BYTES],
    len: usize,
    /// Where the text before the window ended.
    at_line_start: bool,
    pub(super) return_seen: bool,
    pub(super) sequences: u64,
    reading: PhantomData<R>,
}

/// What the window took of a block.
struct Taken {
    bytes: usize,
    /// What comes next is not for the window.
    foreign: bool,
}

impl<R: Reading> Window<R> {
    pub(super) fn new(at_line_start: bool, return_seen: bool) -> Self {
        let text = [0; TEXT_BYTES + BLOCK_BYTES];
        Self { text, len: 0, at_line_start, return_seen, sequences: 0, reading: PhantomData }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// Takes the beginning of `input`, and returns how much that is.
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

    /// Takes a block up to its 64th byte, or up to a character or sequence that goes on behind it. `stops` are the
    /// bytes that are not plain text.
    #[inline]
    fn take(&mut self, block: &[u8; BLOCK_BYTES], stops: u64) -> Taken {
        let mut from = 0;
        if self.return_seen {
            let taken = self.after_return(block, 0);
            if taken.foreign || taken.bytes >= WIDE {
                return taken;
            }
            from = taken.bytes;
        }
        let mut ends = None;
        let mut stops = stops & u64::MAX << from;
        let mut len = self.len;
        // A run is copied where it begins; where it ends is known later.
        self.step(len, block, from);
        while stops != 0 {
            let at = stops.trailing_zeros() as usize;
            let byte = block[at];
            let next = if byte == 0x1B {
                let ends = *ends.get_or_insert_with(|| scan::sequence_ends(wide(block)));
                match sequence_len::<R>(block, ends, at, false) {
                    Some(0) if at > 0 => return self.end(len + at - from, at, false),
                    Some(0) | None => return self.end(len + at - from, at, true),
                    Some(len) => {
                        self.sequences += 1;
                        at + len
                    }
                }
            } else if byte == b'\r' {
                if !matches!(block[at + 1], b'\n' | b'\r') {
                    self.len = len + at - from;
                    let taken = self.after_return(block, at);
                    if taken.foreign || taken.bytes >= WIDE {
                        return taken;
                    }
                    len = self.len;
                    from = taken.bytes;
                    stops &= u64::MAX << from;
                    self.step(len, block, from);
                    continue;
                }
                at + 1
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

    #[inline]
    fn end(&mut self, len: usize, bytes: usize, foreign: bool) -> Taken {
        self.len = len;
        Taken { bytes, foreign }
    }

    /// From a carriage return on: what comes after it decides what it is.
    fn after_return(&mut self, block: &[u8; BLOCK_BYTES], at: usize) -> Taken {
        self.return_seen = true;
        let mut at = at;
        while at < WIDE {
            match block[at] {
                b'\r' => at += 1,
                b'\n' => {
                    self.return_seen = false;
                    return Taken { bytes: at, foreign: false };
                }
                0x1B => {
                    match sequence_len::<R>(block, scan::sequence_ends(wide(block)), at, true) {
                        Some(0) if at > 0 => return Taken { bytes: at, foreign: false },
                        Some(0) | None => return Taken { bytes: at, foreign: true },
                        Some(len) => at += len,
                    }
                    self.sequences += 1;
                }
                b'\t' | b' '..=b'~' if R::RETURN_STARTS_LINE => {
                    self.return_seen = false;
                    if !self.is_at_line_start() {
                        self.text[self.len] = b'\n';
                        self.len += 1;
                    }
                    return Taken { bytes: at, foreign: false };
                }
                _ => return Taken { bytes: at, foreign: true },
            }
        }
        Taken { bytes: at, foreign: false }
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

/// The length of the control sequence at the ESC at `at`, 0 if the block ends before it does; nothing if it is none or
/// means something. `ends` are the bytes that no sequence goes on with.
#[inline]
fn sequence_len<R: Reading>(block: &[u8; BLOCK_BYTES], ends: u64, at: usize, after_return: bool) -> Option<usize> {
    let behind = u64::MAX.checked_shl(at as u32 + 2).unwrap_or(0);
    let end = (ends & behind).trailing_zeros() as usize;
    if end == WIDE {
        return Some(0);
    }
    let last = block[end];
    let is_whole = block[at + 1] == b'[' && matches!(last, 0x40..=0x7E);
    (is_whole && R::is_nothing(&block[at + 2..end], last, after_return)).then_some(end + 1 - at)
}

/// The length of the character that begins at `at`, if it is plainly one: beyond ASCII, whole, no C1 control, and not
/// of those few lead bytes whose next byte is restricted. Else 0.
#[inline]
fn character_len(block: &[u8; BLOCK_BYTES], at: usize) -> usize {
    let is_tail = |at: usize| block[at] & 0xC0 == 0x80;
    match block[at] {
        0xC3..=0xDF if is_tail(at + 1) => 2,
        0xE1..=0xEC | 0xEE | 0xEF if is_tail(at + 1) && is_tail(at + 2) => 3,
        _ => 0,
    }
}
