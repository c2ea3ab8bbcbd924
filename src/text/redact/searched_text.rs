//! The text that is searched, as the finders of secrets read it. More of it may come.

use std::cell::Cell;

/// How many bytes before a place a verdict may depend on.
pub(super) const CONTEXT: usize = 128;
/// The most blanks between a name and its value.
pub(super) const BLANKS_MAX: usize = 24;
const ESCAPE_BYTES_MAX: usize = 16;

/// A text that remembers whether a finder looked behind its end: if more may come, such a verdict is not certain.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchedText<'a> {
    pub(super) bytes: &'a [u8],
    is_short: &'a Cell<bool>,
}

impl<'a> SearchedText<'a> {
    pub(super) fn new(bytes: &'a [u8], is_short: &'a Cell<bool>) -> Self {
        Self { bytes, is_short }
    }

    /// The byte at a place; `None` past the end.
    pub(super) fn peek(self, at: usize) -> Option<u8> {
        let byte = self.bytes.get(at).copied();
        if byte.is_none() {
            self.is_short.set(true);
        }
        byte
    }

    /// The bytes before a place on which a verdict may depend.
    pub(super) fn before(self, at: usize) -> &'a [u8] {
        &self.bytes[at.saturating_sub(CONTEXT)..at]
    }

    /// Returns true if these bytes stand at a place, in any case.
    pub(super) fn has(self, at: usize, word: &[u8]) -> bool {
        (at..).zip(word).all(|(at, byte)| self.peek(at).is_some_and(|there| there.eq_ignore_ascii_case(byte)))
    }

    /// The place after blanks and colours on the same line.
    pub(super) fn skip_blanks(self, at: usize) -> usize {
        let mut end = at;
        while end - at < BLANKS_MAX + ESCAPE_BYTES_MAX {
            match self.peek(end) {
                Some(b' ' | b'\t') => end += 1,
                Some(0x1B) if self.peek(end + 1) == Some(b'[') => {
                    end += 2;
                    while matches!(self.peek(end), Some(b'0'..=b'9' | b';')) && end - at < 2 * BLANKS_MAX {
                        end += 1;
                    }
                    end += usize::from(self.peek(end).is_some_and(|byte| byte.is_ascii_alphabetic()));
                }
                _ => break,
            }
        }
        end
    }
}

/// The bytes without a colour sequence at their end.
pub(super) fn without_colour(bytes: &[u8]) -> &[u8] {
    let Some(inner) = bytes.strip_suffix(b"m") else { return bytes };
    let parameters =
        inner.iter().rev().take(ESCAPE_BYTES_MAX).take_while(|b| b.is_ascii_digit() || **b == b';').count();
    inner[..inner.len() - parameters].strip_suffix(b"\x1B[").unwrap_or(bytes)
}
