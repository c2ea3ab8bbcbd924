//! Private keys: from their first line to their last one, or to the first line that cannot be part of a key.

use super::finding::{Finding, Swallow};
use super::key_body::{KEY_HEADER_BYTES_MAX, KeyBody};
use super::searched_text::SearchedText;

/// The beginning of a private key's first line.
pub(super) const START: &[u8] = b"-----BEGIN ";

/// Finds the first line of a private key at this place.
pub(super) fn judge(text: SearchedText<'_>, at: usize) -> Option<Finding> {
    let kind = at + START.len();
    if (at..).zip(START).any(|(at, &byte)| text.peek(at) != Some(byte)) {
        return None;
    }
    let is_kind = |byte: u8| byte.is_ascii_uppercase() || byte == b' ';
    let dashes = (kind..=kind + KEY_HEADER_BYTES_MAX).find(|&at| !text.peek(at).is_some_and(is_kind))?;
    if (dashes..dashes + 5).any(|at| text.peek(at) != Some(b'-')) {
        return None;
    }
    let kind = &text.bytes[kind..dashes];
    let is_private = kind.ends_with(b"PRIVATE KEY") || kind.ends_with(b"PRIVATE KEY BLOCK");
    is_private.then(|| Finding {
        start: at,
        end: dashes + 5,
        name: "PRIVATE_KEY".to_owned(),
        swallow: Some(Swallow::Key(KeyBody::default())),
    })
}
