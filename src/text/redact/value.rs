//! A value in a text: where it begins and ends, whether it is quoted, and whether it is longer than what was read.

use super::finding::{Finding, Swallow};
use super::mask::shown;
use super::names::SecretKind;
use super::partial_text::{PartialText, Undecided};
use super::plausible::{Form, is_plausible};

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
    pub(super) fn at(text: PartialText<'_>, mut start: usize) -> Result<Option<Self>, Undecided> {
        let Some(mut first) = text.peek(start)? else { return Ok(None) };
        // Python's b"…" and r'…'.
        if matches!(first, b'b' | b'r' | b'u' | b'f')
            && let Some(quote @ (b'"' | b'\'')) = text.peek(start + 1)?
        {
            (first, start) = (quote, start + 1);
        }
        let mut is_escaped = false;
        if first == b'\\'
            && let Some(quote @ (b'"' | b'\'')) = text.peek(start + 1)?
        {
            (first, start, is_escaped) = (quote, start + 1, true);
        }
        let value = match first {
            b'"' | b'\'' | b'`' => Self::quoted(text, start + 1, first, is_escaped)?,
            byte if byte.is_ascii_control() => return Ok(None),
            _ => Self::bare(text, start)?,
        };
        Ok((value.end > value.start).then_some(value))
    }

    fn quoted(text: PartialText<'_>, start: usize, quote: u8, is_escaped: bool) -> Result<Self, Undecided> {
        let mut end = start;
        let goes_on = loop {
            if end - start >= VALUE_BYTES_MAX {
                break true;
            }
            match text.peek(end)? {
                None | Some(b'\n') => break false,
                Some(byte) if byte == quote => break false,
                Some(b'\\') if is_escaped => {
                    if text.peek(end + 1)? == Some(quote) {
                        break false;
                    }
                    end += 1;
                }
                // An escaped byte ends nothing.
                Some(b'\\') => end += if matches!(text.peek(end + 1)?, None | Some(b'\n')) { 1 } else { 2 },
                Some(_) => end += 1,
            }
        };
        Ok(Self { start, end, quote: Some(quote), goes_on })
    }

    fn bare(text: PartialText<'_>, start: usize) -> Result<Self, Undecided> {
        let mut end = start;
        let goes_on = loop {
            if end - start >= VALUE_BYTES_MAX {
                break true;
            }
            let Some(byte) = text.peek(end)? else { break false };
            if !is_bare(byte) {
                break false;
            }
            if byte == b'\\'
                && matches!(text.peek(end + 1)?, None | Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\n' | b'u'))
            {
                break false;
            }
            if matches!(byte, b'&' | b';' | b',' | b'#') && end > start && is_followed_by_name(text, end + 1)? {
                break false;
            }
            end += 1;
        };
        let is_mark = |byte: u8| matches!(byte, b';' | b',' | b')' | b'}' | b']');
        while !goes_on && end > start && is_mark(text.bytes[end - 1]) {
            end -= 1;
        }
        Ok(Self { start, end, quote: None, goes_on })
    }

    /// The value up to the first of these bytes.
    pub(super) fn before(self, text: PartialText<'_>, ends: fn(&u8) -> bool) -> Self {
        match self.bytes(text).iter().position(ends) {
            Some(len) => Self { end: self.start + len, goes_on: false, ..self },
            None => self,
        }
    }

    pub(super) fn bytes<'a>(&self, text: PartialText<'a>) -> &'a [u8] {
        &text.bytes[self.start..self.end]
    }

    /// The part after `Bearer ` or another scheme, if the value begins with one.
    pub(super) fn behind_scheme(&self, text: PartialText<'_>) -> Result<Option<Self>, Undecided> {
        const SCHEMES: [&[u8]; 9] =
            [b"bearer ", b"basic ", b"token ", b"bot ", b"apikey ", b"api-key ", b"negotiate ", b"splunk ", b"ntlm "];
        for scheme in SCHEMES {
            if text.has(self.start, scheme)? {
                let start = text.skip_blanks(self.start + scheme.len())?;
                let end = match self.quote {
                    Some(_) if start < self.end => return Ok(Some(Self { start, ..*self })),
                    Some(_) => self.end,
                    None => return Ok(Some(Self::bare(text, start)?)),
                };
                return Ok(Some(Self { start: end, end, ..*self }));
            }
        }
        Ok(None)
    }

    /// The value up to the end of the line or the next quote.
    pub(super) fn whole_line(self, text: PartialText<'_>) -> Result<Self, Undecided> {
        let mut end = self.end;
        if self.quote.is_some() {
            return Ok(self);
        }
        while end - self.start < VALUE_BYTES_MAX {
            match text.peek(end)? {
                None | Some(b'"' | b'\'' | b'`' | b'\n' | b'\r' | b'\\' | 0x1B) => break,
                Some(_) => end += 1,
            }
        }
        let goes_on = end - self.start >= VALUE_BYTES_MAX;
        // Cookies are separated by blanks, so a longer value goes on to the end of the line.
        Ok(Self { end, goes_on, quote: if goes_on { Some(b'\n') } else { None }, ..self })
    }

    pub(super) fn ends_line(&self, text: PartialText<'_>) -> Result<bool, Undecided> {
        if matches!(text.bytes.get(self.end), Some(b';' | b',' | b')')) {
            return Ok(false);
        }
        let end = text.skip_blanks(self.end)?;
        Ok(matches!(text.peek(end)?, None | Some(b'\n' | b'\r')) || (end > self.end && text.peek(end)? == Some(b'#')))
    }

    pub(super) fn masked(&self, text: PartialText<'_>, name: &[u8], kind: SecretKind, form: Form) -> Option<Finding> {
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

/// Whether an unquoted value can have this byte.
fn is_bare(byte: u8) -> bool {
    !(byte.is_ascii_whitespace() || byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'`' | b'<'))
}

/// Whether `name=`, the next entry of a list, follows.
fn is_followed_by_name(text: PartialText<'_>, start: usize) -> Result<bool, Undecided> {
    for at in start..start + 32 {
        match text.peek(at)? {
            Some(b'=') => return Ok(at > start),
            // `a && b`, `a; b`
            None | Some(b' ' | b'\n' | b'\r' | b'&') => return Ok(at == start),
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') => {}
            Some(_) => return Ok(false),
        }
    }
    Ok(false)
}
