//! A secret that was found, and the bytes after it that belong to it.

use super::key_body::KeyBody;

/// A secret in a text, as places in that text.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The name in the mask.
    pub(super) name: String,
    /// The bytes after `end` that belong to the secret.
    pub(super) swallow: Option<Swallow>,
}

/// The bytes after a mask that are dropped.
#[derive(Debug, Clone)]
pub(super) enum Swallow {
    /// Bytes of the token's alphabet.
    While(fn(u8) -> bool),
    /// Bytes before this one, up to the end of the line.
    Until(u8),
    /// The body of a private key.
    Key(KeyBody),
}

impl Swallow {
    /// The number of bytes to drop, and whether more may follow; `None` if more bytes are needed to tell.
    pub(super) fn take(&mut self, text: &[u8], last: bool) -> Option<(usize, bool)> {
        let len = match self {
            Self::While(is_part) => text.iter().take_while(|&&byte| is_part(byte)).count(),
            Self::Until(end) => text.iter().take_while(|&&byte| byte != *end && byte != b'\n').count(),
            Self::Key(body) => return body.take(text, last),
        };
        Some((len, len == text.len()))
    }
}
