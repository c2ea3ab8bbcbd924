//! What belongs to a secret behind the part that told it, and is not shown either.

use super::keys::KeyBody;

/// What goes on after a mask without being shown.
#[derive(Debug, Clone)]
pub(super) enum Swallow {
    /// Bytes of the token's alphabet.
    While(fn(u8) -> bool),
    /// Everything before this byte or the line's end.
    Until(u8),
    Key(KeyBody),
}

impl Swallow {
    /// How much of the text goes, and whether more may; nothing if that depends on bytes that are not there yet.
    pub(super) fn take(&mut self, text: &[u8], last: bool) -> Option<(usize, bool)> {
        let len = match self {
            Self::While(is_part) => text.iter().take_while(|&&byte| is_part(byte)).count(),
            Self::Until(end) => text.iter().take_while(|&&byte| byte != *end && byte != b'\n').count(),
            Self::Key(body) => return body.take(text, last),
        };
        Some((len, len == text.len()))
    }
}
