//! Private keys: from their first line to their last one, or to the first line that cannot be part of a key.

use super::finding::{Finding, Swallow};
use super::key_body::{KEY_HEADER_BYTES_MAX, KeyBody, agrees};
use super::partial_text::{PartialText, Undecided};

/// The beginning of a private key's first line.
pub(super) const START: &[u8] = b"-----BEGIN ";

/// Finds the first line of a private key at this place.
pub(super) fn judge(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    let PartialText { bytes, last } = text;
    let undecided = || if last { Ok(None) } else { Err(Undecided) };
    let bytes = &bytes[at..];
    if !agrees(START, bytes) {
        return Ok(None);
    }
    let Some(rest) = bytes.strip_prefix(START) else { return undecided() };
    let kind = rest.iter().take(KEY_HEADER_BYTES_MAX).take_while(|b| b.is_ascii_uppercase() || **b == b' ').count();
    let dashes = rest[kind..].iter().take(5).take_while(|&&byte| byte == b'-').count();
    if dashes == 5 {
        let kind = &rest[..kind];
        if !kind.ends_with(b"PRIVATE KEY") && !kind.ends_with(b"PRIVATE KEY BLOCK") {
            return Ok(None);
        }
        let end = at + START.len() + kind.len() + 5;
        let swallow = Some(Swallow::Key(KeyBody::default()));
        return Ok(Some(Finding { start: at, end, name: "PRIVATE_KEY".to_owned(), swallow }));
    }
    if kind + dashes == rest.len() && kind < KEY_HEADER_BYTES_MAX { undecided() } else { Ok(None) }
}
