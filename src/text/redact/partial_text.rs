//! The beginning of a text of which more may come, as the finders of secrets read it.

/// How many bytes before a place a verdict may depend on.
pub(super) const CONTEXT: usize = 128;
/// The most blanks between a name and its value.
pub(super) const BLANKS_MAX: usize = 24;
const ESCAPE_BYTES_MAX: usize = 16;

/// The verdict depends on bytes that have not come yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Undecided;

/// A text of which more may come.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartialText<'a> {
    pub(super) bytes: &'a [u8],
    /// No more will come.
    pub(super) last: bool,
}

impl<'a> PartialText<'a> {
    /// The byte at a place; `None` past the end of the whole text.
    pub(super) fn peek(self, at: usize) -> Result<Option<u8>, Undecided> {
        match self.bytes.get(at) {
            Some(&byte) => Ok(Some(byte)),
            None if self.last => Ok(None),
            None => Err(Undecided),
        }
    }

    /// The bytes before a place on which a verdict may depend.
    pub(super) fn before(self, at: usize) -> &'a [u8] {
        &self.bytes[at.saturating_sub(CONTEXT)..at]
    }

    /// Whether these bytes stand at a place, in any case.
    pub(super) fn has(self, at: usize, word: &[u8]) -> Result<bool, Undecided> {
        for (offset, byte) in word.iter().enumerate() {
            match self.peek(at + offset)? {
                Some(there) if there.eq_ignore_ascii_case(byte) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The place after blanks and colours on the same line.
    pub(super) fn skip_blanks(self, at: usize) -> Result<usize, Undecided> {
        let mut end = at;
        while end - at < BLANKS_MAX + ESCAPE_BYTES_MAX {
            match self.peek(end)? {
                Some(b' ' | b'\t') => end += 1,
                Some(0x1B) if self.peek(end + 1)? == Some(b'[') => {
                    end += 2;
                    while matches!(self.peek(end)?, Some(b'0'..=b'9' | b';')) && end - at < 2 * BLANKS_MAX {
                        end += 1;
                    }
                    end += usize::from(self.peek(end)?.is_some_and(|byte| byte.is_ascii_alphabetic()));
                }
                _ => break,
            }
        }
        Ok(end)
    }
}

/// The bytes without a colour sequence at their end.
pub(super) fn without_colour(bytes: &[u8]) -> &[u8] {
    let Some(inner) = bytes.strip_suffix(b"m") else { return bytes };
    let parameters =
        inner.iter().rev().take(ESCAPE_BYTES_MAX).take_while(|b| b.is_ascii_digit() || **b == b';').count();
    inner[..inner.len() - parameters].strip_suffix(b"\x1B[").unwrap_or(bytes)
}
