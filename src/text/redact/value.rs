//! A value in a text: where it begins and ends, whether it is quoted, and whether it is longer than what was read.

use super::finding::{Finding, Swallow};
use super::mask::shown;
use super::names::SecretKind;
use super::plausible::{Form, is_plausible};
use super::searched_text::SearchedText;

/// The most bytes of a value that are read for a verdict; the rest is dropped with it.
const VALUE_BYTES_MAX: usize = 1024;

/// A value as it stands in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) quote: Option<u8>,
    /// The value is longer than what was read.
    pub(super) goes_on: bool,
}

impl Value {
    pub(super) fn at(text: SearchedText<'_>, mut start: usize) -> Option<Self> {
        let mut first = text.peek(start)?;
        // Python's b"…" and r'…'.
        if matches!(first, b'b' | b'r' | b'u' | b'f')
            && let Some(quote @ (b'"' | b'\'')) = text.peek(start + 1)
        {
            (first, start) = (quote, start + 1);
        }
        let mut is_escaped = false;
        if first == b'\\'
            && let Some(quote @ (b'"' | b'\'')) = text.peek(start + 1)
        {
            (first, start, is_escaped) = (quote, start + 1, true);
        }
        let value = match first {
            b'"' | b'\'' | b'`' => Self::quoted(text, start + 1, first, is_escaped),
            byte if byte.is_ascii_control() => return None,
            _ => Self::bare(text, start),
        };
        (value.end > value.start).then_some(value)
    }

    fn quoted(text: SearchedText<'_>, start: usize, quote: u8, is_escaped: bool) -> Self {
        let mut end = start;
        let goes_on = loop {
            if end - start >= VALUE_BYTES_MAX {
                break true;
            }
            match text.peek(end) {
                None | Some(b'\n') => break false,
                Some(byte) if byte == quote => break false,
                Some(b'\\') if is_escaped => {
                    if text.peek(end + 1) == Some(quote) {
                        break false;
                    }
                    end += 1;
                }
                // An escaped byte ends nothing.
                Some(b'\\') => end += if matches!(text.peek(end + 1), None | Some(b'\n')) { 1 } else { 2 },
                Some(_) => end += 1,
            }
        };
        Self { start, end, quote: Some(quote), goes_on }
    }

    fn bare(text: SearchedText<'_>, start: usize) -> Self {
        let mut end = start;
        let goes_on = loop {
            if end - start >= VALUE_BYTES_MAX {
                break true;
            }
            let Some(byte) = text.peek(end) else { break false };
            if !is_bare(byte) {
                break false;
            }
            if byte == b'\\'
                && matches!(text.peek(end + 1), None | Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\n' | b'u'))
            {
                break false;
            }
            if matches!(byte, b'&' | b';' | b',' | b'#') && end > start && is_followed_by_name(text, end + 1) {
                break false;
            }
            end += 1;
        };
        let is_mark = |byte: u8| matches!(byte, b';' | b',' | b')' | b'}' | b']');
        while !goes_on && end > start && is_mark(text.bytes[end - 1]) {
            end -= 1;
        }
        Self { start, end, quote: None, goes_on }
    }

    /// The value up to the first of these bytes.
    pub(super) fn before(self, text: SearchedText<'_>, ends: fn(&u8) -> bool) -> Self {
        match self.bytes(text).iter().position(ends) {
            Some(len) => Self { end: self.start + len, goes_on: false, ..self },
            None => self,
        }
    }

    pub(super) fn bytes<'a>(&self, text: SearchedText<'a>) -> &'a [u8] {
        &text.bytes[self.start..self.end]
    }

    /// The part after `Bearer ` or another scheme, if the value begins with one.
    pub(super) fn behind_scheme(&self, text: SearchedText<'_>) -> Option<Self> {
        const SCHEMES: [&[u8]; 9] =
            [b"bearer ", b"basic ", b"token ", b"bot ", b"apikey ", b"api-key ", b"negotiate ", b"splunk ", b"ntlm "];
        for scheme in SCHEMES {
            if text.has(self.start, scheme) {
                let start = text.skip_blanks(self.start + scheme.len());
                let end = match self.quote {
                    Some(_) if start < self.end => return Some(Self { start, ..*self }),
                    Some(_) => self.end,
                    None => return Some(Self::bare(text, start)),
                };
                return Some(Self { start: end, end, ..*self });
            }
        }
        None
    }

    /// The value up to the end of the line or the next quote.
    pub(super) fn whole_line(self, text: SearchedText<'_>) -> Self {
        let mut end = self.end;
        if self.quote.is_some() {
            return self;
        }
        while end - self.start < VALUE_BYTES_MAX {
            match text.peek(end) {
                None | Some(b'"' | b'\'' | b'`' | b'\n' | b'\r' | b'\\' | 0x1B) => break,
                Some(_) => end += 1,
            }
        }
        let goes_on = end - self.start >= VALUE_BYTES_MAX;
        // Cookies are separated by blanks, so a longer value goes on to the end of the line.
        Self { end, goes_on, quote: if goes_on { Some(b'\n') } else { None }, ..self }
    }

    pub(super) fn ends_line(&self, text: SearchedText<'_>) -> bool {
        if matches!(text.bytes.get(self.end), Some(b';' | b',' | b')')) {
            return false;
        }
        let end = text.skip_blanks(self.end);
        matches!(text.peek(end), None | Some(b'\n' | b'\r')) || (end > self.end && text.peek(end) == Some(b'#'))
    }

    pub(super) fn masked(&self, text: SearchedText<'_>, name: &[u8], kind: SecretKind, form: Form) -> Option<Finding> {
        (self.end > self.start && is_plausible(kind, form, name, self.bytes(text))).then(|| self.secret(name))
    }

    pub(super) fn secret(&self, name: &[u8]) -> Finding {
        let swallow = match (self.goes_on, self.quote) {
            (false, _) => None,
            (true, None) => Some(Swallow::While(is_bare)),
            (true, Some(quote)) => Some(Swallow::Until(quote)),
        };
        let name = name.iter().position(|&byte| byte != b'-').map_or(name, |at| &name[at..]);
        Finding { start: self.start, end: self.end, name: shown(name), swallow }
    }
}

/// Returns true if an unquoted value can have this byte.
fn is_bare(byte: u8) -> bool {
    !(byte.is_ascii_whitespace() || byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'`' | b'<'))
}

/// Returns true if `name=`, the next entry of a list, follows.
fn is_followed_by_name(text: SearchedText<'_>, start: usize) -> bool {
    for at in start..start + 32 {
        match text.peek(at) {
            Some(b'=') => return at > start,
            // `a && b`, `a; b`
            None | Some(b' ' | b'\n' | b'\r' | b'&') => return at == start,
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') => {}
            Some(_) => return false,
        }
    }
    false
}
