//! Private keys: from their first line to their last one, or to what cannot be a part of a key.

use super::stream::{Secret, Undecided};
use super::swallow::Swallow;
use super::text::Text;

/// A line of base64 that is at least this long is part of a key.
const KEY_LINE_BYTES_MIN: usize = 20;
const KEY_HEADER_BYTES_MAX: usize = 128;
/// How a private key's first line begins.
pub(super) const START: &[u8] = b"-----BEGIN ";

/// The lines between a private key's first and last one.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyBody {
    /// Within a line of base64 that is long enough.
    in_line: bool,
    seen_line: bool,
    seen_short: bool,
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Whether the text starts with `start`, as far as it goes.
fn agrees(start: &[u8], text: &[u8]) -> bool {
    let len = start.len().min(text.len());
    start[..len] == text[..len]
}

/// The first line of a private key.
pub(super) fn judge(text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
    let Text { bytes, last } = text;
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
        return Ok(Some(Secret { start: at, end, name: "PRIVATE_KEY".to_owned(), swallow }));
    }
    if kind + dashes == rest.len() && kind < KEY_HEADER_BYTES_MAX { undecided() } else { Ok(None) }
}

impl KeyBody {
    /// One line of the body, or a part of one. A key's lines are base64, or headers such as `Proc-Type: 4,ENCRYPTED`;
    /// anything else was never part of the key, and the key without an end is over.
    pub(super) fn take(&mut self, text: &[u8], last: bool) -> Option<(usize, bool)> {
        let blank = line_break(text);
        if blank > 0 {
            self.in_line = false;
            // A lone backslash may be the first half of a quoted line feed.
            return if blank == text.len() && text.ends_with(b"\\") && !last { None } else { Some((blank, true)) };
        }
        let len = text.iter().take_while(|&&byte| is_base64(byte)).count();
        if self.in_line && len > 0 {
            return Some((len, true));
        }
        if len >= KEY_LINE_BYTES_MIN {
            self.in_line = true;
            self.seen_line = true;
            return Some((len, true));
        }
        if len == text.len() && !last {
            return None;
        }
        if let Some(end) = self.end_line(text, last) {
            return end;
        }
        if let Some(header) = self.header(text, len, last) {
            return header;
        }
        // One short line may come last.
        let after = &text[len..];
        if after == b"\\" && !last {
            return None;
        }
        let is_last_line = len > 0 && self.seen_line && !self.seen_short && (after.is_empty() || line_break(after) > 0);
        self.seen_short = true;
        Some(if is_last_line { (len, true) } else { (0, false) })
    }

    /// `-----END … PRIVATE KEY-----`, after which the key is over.
    fn end_line(&self, text: &[u8], last: bool) -> Option<Option<(usize, bool)>> {
        const END: &[u8] = b"-----END ";
        if !agrees(END, text) {
            return None;
        }
        let Some(rest) = text.strip_prefix(END) else { return if last { None } else { Some(None) } };
        let kind = rest.iter().take(KEY_HEADER_BYTES_MAX).take_while(|&&byte| byte != b'-' && byte != b'\n').count();
        let dashes = rest[kind..].iter().take(5).take_while(|&&byte| byte == b'-').count();
        if dashes < 5 && kind + dashes == rest.len() && kind < KEY_HEADER_BYTES_MAX && !last {
            return Some(None);
        }
        Some(Some((END.len() + kind + dashes, false)))
    }

    /// `Name: value` before the first line of base64, or the checksum line of a PGP key.
    fn header(&self, text: &[u8], len: usize, last: bool) -> Option<Option<(usize, bool)>> {
        if self.seen_line {
            return None;
        }
        let name =
            text.iter().take(KEY_HEADER_BYTES_MAX).take_while(|&&b| b.is_ascii_alphabetic() || b == b'-').count();
        if name < len || name == 0 || name == KEY_HEADER_BYTES_MAX {
            return None;
        }
        match text.get(name..name + 2) {
            Some(b": ") => {}
            Some(_) => return None,
            None if last || !agrees(b": ", &text[name..]) => return None,
            None => return Some(None),
        }
        match text.iter().take(KEY_HEADER_BYTES_MAX).position(|&byte| byte == b'\n') {
            Some(end) => Some(Some((end, true))),
            None if text.len() >= KEY_HEADER_BYTES_MAX || last => None,
            None => Some(None),
        }
    }
}

/// Line ends and indentation at the start of the text, also line ends as they are spelled in quoted text.
fn line_break(text: &[u8]) -> usize {
    let mut len = 0;
    loop {
        match &text[len..] {
            [b'\n' | b'\r' | b' ' | b'\t', ..] => len += 1,
            [b'\\', b'n' | b'r', ..] => len += 2,
            // May become one of the above.
            [b'\\'] => return len + 1,
            _ => return len,
        }
    }
}
