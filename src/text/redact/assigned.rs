//! Finds secrets by the name in front of them: `NAME=value`, `"name": "value"`, `Name: value`, `--name value`,
//! `?name=value`, `-u user:password`.
//!
//! A place of the text is judged by at most [`CONTEXT`] bytes before it and a bounded number behind it, so that the
//! verdict does not depend on how the text was cut.

use std::ops::Range;

use super::names::{self, Kind, NAME_BYTES_MAX};
use super::plausible::{Form, is_plausible};
use super::stream::{CONTEXT, Secret, Undecided};
use super::swallow::Swallow;

/// What is read of a value before it must have shown what it is; what follows is swallowed.
const VALUE_BYTES_MAX: usize = 1024;
const BLANKS_MAX: usize = 24;
/// The longest type of a declaration.
const TYPE_BYTES_MAX: usize = 40;
const ESCAPE_BYTES_MAX: usize = 16;

type Found = Result<Option<Secret>, Undecided>;

/// A text that may go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    /// It does not go on.
    pub(super) last: bool,
}

impl<'a> Text<'a> {
    /// The byte at a place, or nothing behind the end.
    pub(super) fn peek(self, at: usize) -> Result<Option<u8>, Undecided> {
        match self.bytes.get(at) {
            Some(&byte) => Ok(Some(byte)),
            None if self.last => Ok(None),
            None => Err(Undecided),
        }
    }

    /// What a verdict about this place may look back on.
    pub(super) fn before(self, at: usize) -> &'a [u8] {
        &self.bytes[at.saturating_sub(CONTEXT)..at]
    }

    /// Whether the text goes on with these bytes, in capitals or not.
    pub(super) fn has(self, at: usize, word: &[u8]) -> Result<bool, Undecided> {
        for (offset, byte) in word.iter().enumerate() {
            match self.peek(at + offset)? {
                Some(there) if there.eq_ignore_ascii_case(byte) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Behind blanks and colours on the same line.
    fn skip_blanks(self, at: usize) -> Result<usize, Undecided> {
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

/// A name, with what it stands in.
#[derive(Debug)]
struct Name<'a> {
    text: &'a [u8],
    /// What stands before it, as far as it may be looked at.
    before: &'a [u8],
    quoted: bool,
    /// Blanks between it and the separator.
    spaced: bool,
    /// Nothing stands before `before`.
    is_first: bool,
}

impl<'a> Name<'a> {
    /// The name at the end of these bytes.
    fn at_end_of(bytes: &'a [u8], separator: u8) -> Option<Self> {
        let mut rest = bytes;
        if separator == b'=' {
            rest = match rest.last()? {
                b'=' | b'!' | b'<' | b'>' | b'+' | b'~' | b'/' | b'*' | b'|' | b'&' | b'^' => return None,
                // `name := value`
                b':' => &rest[..rest.len() - 1],
                _ => rest,
            };
        }
        rest = without_colour(rest);
        let blanks = rest.iter().rev().take(BLANKS_MAX).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        rest = without_colour(&rest[..rest.len() - blanks]);
        if let [inner @ .., b']'] = rest {
            rest = inner;
        }
        let mut quoted = false;
        if let [inner @ .., b'"' | b'\'' | b'`'] = rest {
            quoted = true;
            rest = inner.strip_suffix(b"\\").unwrap_or(inner);
        }
        let len = rest.iter().rev().take(NAME_BYTES_MAX).take_while(|&&byte| names::is_part(byte)).count();
        let (before, mut text) = rest.split_at(rest.len() - len);
        // A colour's end, an escape's: `\e[1mTOKEN=`, `\nTOKEN=`
        if before.ends_with(b"\x1B[") {
            text = &text[text.iter().position(|&byte| byte == b'm').map_or(0, |at| at + 1)..];
        } else if before.ends_with(b"\\") && matches!(text.first(), Some(b'n' | b't' | b'r')) {
            text = &text[1..];
        }
        // `java -Dpassword=…`, `gradle -Ptoken=…`
        if let [b'-', b'D' | b'P', name @ ..] = text {
            text = name;
        }
        (!text.is_empty()).then_some(Self { text, before, quoted, spaced: blanks > 0, is_first: bytes.len() < CONTEXT })
    }

    fn is_variable(&self) -> bool {
        !self.spaced && !self.quoted && self.text.iter().all(|byte| !byte.is_ascii_lowercase() && *byte != b'-')
    }

    /// Whether only blanks, or what marks an entry of a list, stand before it on its line.
    fn begins_line(&self) -> bool {
        let line = self.before.iter().rposition(|&byte| byte == b'\n').map(|at| &self.before[at + 1..]);
        let line = line.or(self.is_first.then_some(self.before));
        line.is_some_and(|line| line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'+' | b'\r')))
    }
}

/// Without an escape sequence at the end.
pub(super) fn without_colour(bytes: &[u8]) -> &[u8] {
    let Some(inner) = bytes.strip_suffix(b"m") else { return bytes };
    let parameters =
        inner.iter().rev().take(ESCAPE_BYTES_MAX).take_while(|b| b.is_ascii_digit() || **b == b';').count();
    inner[..inner.len() - parameters].strip_suffix(b"\x1B[").unwrap_or(bytes)
}

/// The secret of the name that has this place in it, if it is a secret's and has a value.
pub(super) fn of_name(text: Text<'_>, at: usize) -> Found {
    // Short words end where they end: `pat` is one, and `path` is not.
    let rest = &text.bytes[at..];
    let begins = |three: &[u8; 3]| three.iter().zip(rest).all(|(a, b)| *a == b'_' || a.eq_ignore_ascii_case(b));
    if !names::THREES.iter().any(begins) {
        return Ok(None);
    }
    let short = match rest.first_chunk::<3>().map(|three| three.map(|byte| byte.to_ascii_lowercase())) {
        Some([b'p', b'w', b'd' | b'o']) => None,
        Some([b'p', b'w', _]) => Some(2),
        Some([b'p', b'a', b't'] | [b'p', b'i', b'n'] | [b'o', b't', b'p'] | [b's', b'i', b'd' | b'g']) => Some(3),
        _ => None,
    };
    if let Some(len) = short
        && rest.get(len).is_some_and(u8::is_ascii_lowercase)
        && !text.has(at, b"signature")?
    {
        return Ok(None);
    }
    let before = text.before(at);
    let start = at - before.iter().rev().take(NAME_BYTES_MAX).take_while(|&&byte| names::is_part(byte)).count();
    let mut end = at;
    while end - at < NAME_BYTES_MAX && text.peek(end)?.is_some_and(names::is_part) {
        end += 1;
    }
    let is_option = text.bytes[start..].starts_with(b"--") && end - start <= NAME_BYTES_MAX;
    if is_option && text.peek(end)? == Some(b' ') {
        return option(text, start);
    }
    if let Some(found) = followed(text, start..end)? {
        return Ok(Some(found));
    }
    let mut next = end;
    for mark in [&b"\\"[..], b"\"'`", b"]"] {
        next += usize::from(text.peek(next)?.is_some_and(|byte| mark.contains(&byte)));
    }
    next = text.skip_blanks(next)?;
    let separator = match text.peek(next)? {
        Some(b':') if text.peek(next + 1)? == Some(b'=') => next + 1,
        Some(b':' | b'=') => next,
        _ => return Ok(None),
    };
    if let Some(found) = judge(text, separator)? {
        return Ok(Some(found));
    }
    // `const password: string = "…"`
    if text.bytes[separator] != b':' || text.peek(separator + 1)? != Some(b' ') {
        return Ok(None);
    }
    let mut end = separator + 2;
    while end - separator < TYPE_BYTES_MAX {
        match text.peek(end)? {
            Some(b'=') => return judge(text, end),
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'&' | b'\'' | b'<' | b'>' | b' ') => {
                end += 1
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// The secret of a name that nothing but a blank, a tag's end or the word `value` stands behind: `password X`,
/// `password is X`, `<password>X<`, `"name": "DB_PASSWORD", "value": "X"`.
fn followed(text: Text<'_>, name: Range<usize>) -> Found {
    /// From the name to the word.
    const GAP_BYTES_MAX: usize = 40;
    let (end, before) = (name.end, text.before(name.start));
    if !matches!(text.peek(end)?, Some(b'>' | b' ' | b'"' | b'\'' | b',' | b'\n' | b'\r')) {
        return Ok(None);
    }
    let name = &text.bytes[name];
    let Some(kind @ (Kind::Password | Kind::Token)) = names::kind(name) else { return Ok(None) };
    let masked = |start, form, kind| {
        Ok(Value::at(text, start)?
            .and_then(|value| value.masked(text, name, kind, form))
            .filter(|found| found.start > end))
    };
    match text.peek(end)? {
        Some(b'>') if before.ends_with(b"<") => return masked(end + 1, Form::Line, kind),
        Some(b' ') if !name.starts_with(b"-") => {
            let is = if text.has(end, b" is ")? { 3 } else { 0 };
            // In a sentence, only what no word is like.
            let start = end + is + 1;
            if text.peek(start)? != Some(b'-')
                && let Some(found) = masked(start, Form::Spaced, Kind::Token)?
            {
                return Ok(Some(found));
            }
        }
        _ => {}
    }
    let mut at = end;
    while at - end < GAP_BYTES_MAX && matches!(text.peek(at)?, Some(b'"' | b'\'' | b',' | b' ' | b'\n' | b'\r')) {
        at += 1;
    }
    if at == end || !text.has(at, b"value")? {
        return Ok(None);
    }
    at += b"value".len();
    at += usize::from(matches!(text.peek(at)?, Some(b'"' | b'\'')));
    at = text.skip_blanks(at)?;
    match text.peek(at)? {
        Some(b':' | b'=') => masked(text.skip_blanks(at + 1)?, Form::Quoted, kind),
        _ => Ok(None),
    }
}

/// The secret behind `=` or `:`, if there is one.
fn judge(text: Text<'_>, at: usize) -> Found {
    let separator = text.bytes[at];
    let before = text.before(at);
    let Some(mut name) = Name::at_end_of(before, separator) else { return Ok(None) };
    let mut kind = names::kind(name.text);
    if kind.is_none() && separator == b'=' && name.spaced && before.contains(&b':') {
        // `const password: string = "…"`
        let is_type =
            |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'&' | b'\'' | b'<' | b'>' | b' ');
        let rest = &before[..before.len() - before.iter().rev().take_while(is_type).count()];
        if let Some(declared) = rest.strip_suffix(b":").and_then(|rest| Name::at_end_of(rest, b':')) {
            kind = names::kind(declared.text);
            name = Name { spaced: true, ..declared };
        }
    }
    let Some(kind) = kind else { return Ok(None) };
    let mut start = at + 1;
    let mut is_arrow = false;
    match (separator, text.peek(start)?) {
        (b'=', Some(b'=' | b'~')) | (b':', Some(b'=' | b':')) => return Ok(None),
        (b'=', Some(b'>')) => (start, is_arrow) = (start + 1, true),
        _ => {}
    }
    let gap = start;
    start = text.skip_blanks(start)?;
    let place = Place { separator, gap: start - gap, kind };
    let Some(value) = Value::at(text, start)? else { return Ok(None) };
    // `${NAME:?message}`
    if name.before.ends_with(b"${") && value.bytes(text).starts_with(b"?") {
        return Ok(None);
    }
    if is_arrow && value.quote.is_none() {
        return Ok(None);
    }
    place.judge(text, &name, value)
}

/// Where a value was found.
struct Place {
    separator: u8,
    /// Bytes between separator and value.
    gap: usize,
    kind: Kind,
}

impl Place {
    fn judge(&self, text: Text<'_>, name: &Name<'_>, value: Value) -> Found {
        let mut kind = self.kind;
        let mut value = value;
        if matches!(kind, Kind::Authorization | Kind::Token | Kind::Weak)
            && let Some(behind) = value.behind_scheme(text)?
        {
            value = behind;
            let is_sentence = kind == Kind::Weak && value.bytes(text).iter().all(u8::is_ascii_lowercase);
            if is_sentence && !value.ends_line(text)? {
                return Ok(None);
            }
            return Ok(value.masked(text, name.text, Kind::Token, Form::Header));
        }
        if kind == Kind::Cookie {
            value = value.whole_line(text)?;
            if value.bytes(text).contains(&b'=') && !value.bytes(text).starts_with(b"$") {
                return Ok(Some(value.secret(name.text)));
            }
            kind = Kind::Weak;
        }
        let form = self.form(text, name, &value)?;
        if form == Form::Query && !name.text.starts_with(b"-") {
            value = value.before(text, |byte| matches!(byte, b'&' | b'#'));
        }
        Ok(value.masked(text, name.text, kind, form))
    }

    fn form(&self, text: Text<'_>, name: &Name<'_>, value: &Value) -> Result<Form, Undecided> {
        let is_tight = self.gap == 0 && !name.spaced;
        if self.separator == b'=' && is_tight {
            if matches!(name.before.last(), Some(b'?' | b'&')) || name.text.starts_with(b"--") {
                return Ok(Form::Query);
            }
            if name.is_variable() {
                return Ok(Form::Variable);
            }
            return Ok(if value.quote.is_some() { Form::Quoted } else { Form::Assigned });
        }
        if value.quote.is_some() {
            return Ok(Form::Quoted);
        }
        if self.separator == b':' && is_tight && !name.quoted {
            // `openssl -passin pass:…`
            let is_source = name.text == b"pass" && name.before.last().is_none_or(u8::is_ascii_whitespace);
            return Ok(if is_source { Form::Variable } else { Form::Spaced });
        }
        let is_header = name.text.contains(&b'-') && name.text[0].is_ascii_alphabetic() && self.separator == b':';
        if is_header && (name.text[0].is_ascii_uppercase() || name.text.starts_with(b"x-")) {
            return Ok(Form::Header);
        }
        let is_alone = !name.quoted && name.begins_line() && value.ends_line(text)?;
        Ok(if is_alone { Form::Line } else { Form::Spaced })
    }
}

/// A value as it stands in the text.
#[derive(Debug, Clone, Copy)]
struct Value {
    start: usize,
    end: usize,
    quote: Option<u8>,
    /// It is longer than what was read.
    goes_on: bool,
}

impl Value {
    fn at(text: Text<'_>, mut start: usize) -> Result<Option<Self>, Undecided> {
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

    fn quoted(text: Text<'_>, start: usize, quote: u8, is_escaped: bool) -> Result<Self, Undecided> {
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
                // Two bytes, of which the second ends nothing.
                Some(b'\\') => end += if matches!(text.peek(end + 1)?, None | Some(b'\n')) { 1 } else { 2 },
                Some(_) => end += 1,
            }
        };
        Ok(Self { start, end, quote: Some(quote), goes_on })
    }

    fn bare(text: Text<'_>, start: usize) -> Result<Self, Undecided> {
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

    /// Up to the first of these bytes.
    fn before(self, text: Text<'_>, ends: fn(&u8) -> bool) -> Self {
        match self.bytes(text).iter().position(ends) {
            Some(len) => Self { end: self.start + len, goes_on: false, ..self },
            None => self,
        }
    }

    fn bytes<'a>(&self, text: Text<'a>) -> &'a [u8] {
        &text.bytes[self.start..self.end]
    }

    /// What follows `Bearer ` and the like, if the value begins so.
    fn behind_scheme(&self, text: Text<'_>) -> Result<Option<Self>, Undecided> {
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

    /// With everything up to the line's end or the next quote.
    fn whole_line(self, text: Text<'_>) -> Result<Self, Undecided> {
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
        // Cookies are separated by blanks: what is longer goes on to the line's end.
        Ok(Self { end, goes_on, quote: if goes_on { Some(b'\n') } else { None }, ..self })
    }

    fn ends_line(&self, text: Text<'_>) -> Result<bool, Undecided> {
        if matches!(text.bytes.get(self.end), Some(b';' | b',' | b')')) {
            return Ok(false);
        }
        let end = text.skip_blanks(self.end)?;
        Ok(matches!(text.peek(end)?, None | Some(b'\n' | b'\r')) || (end > self.end && text.peek(end)? == Some(b'#')))
    }

    fn masked(&self, text: Text<'_>, name: &[u8], kind: Kind, form: Form) -> Option<Secret> {
        (self.end > self.start && is_plausible(kind, form, name, self.bytes(text))).then(|| self.secret(name))
    }

    fn secret(&self, name: &[u8]) -> Secret {
        let swallow = match (self.goes_on, self.quote) {
            (false, _) => None,
            (true, None) => Some(Swallow::While(is_bare)),
            (true, Some(quote)) => Some(Swallow::Until(quote)),
        };
        let name = name.iter().position(|&byte| byte != b'-').map_or(name, |at| &name[at..]);
        Secret { start: self.start, end: self.end, name: super::shown(name), swallow }
    }
}

/// Bytes of a value without quotes.
fn is_bare(byte: u8) -> bool {
    !(byte.is_ascii_whitespace() || byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'`' | b'<'))
}

/// Whether the next entry of a list follows: `name=`.
fn is_followed_by_name(text: Text<'_>, start: usize) -> Result<bool, Undecided> {
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

/// The secret behind an option that begins here: `--token value`, `-u user:password`, `sshpass -p password`.
pub(super) fn option(text: Text<'_>, at: usize) -> Found {
    let mut end = at + 1;
    while end - at <= NAME_BYTES_MAX {
        match text.peek(end)? {
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') => end += 1,
            _ => break,
        }
        // `-uuser:password`, `-ppassword`
        if end == at + 2 && matches!(text.bytes[at + 1], b'u' | b'p' | b'a' | b'U') {
            break;
        }
    }
    let name = &text.bytes[at..end];
    let is_short = name.len() == 2;
    if !is_short && !name.starts_with(b"--") {
        return Ok(None);
    }
    let line = text.before(at);
    let kind = match option_kind(name, line) {
        Some(kind) => kind,
        None => return Ok(None),
    };
    let is_glued = match text.peek(end)? {
        Some(b' ') => false,
        Some(b'=') | None => return Ok(None),
        Some(byte) if is_short && !byte.is_ascii_whitespace() => true,
        Some(_) => return Ok(None),
    };
    if matches!(kind, OptionKind::Glued) && !is_glued {
        return Ok(None);
    }
    let start = end + usize::from(!is_glued);
    // What helps is set apart further.
    if matches!(text.peek(start)?, Some(b' ' | b'-') | None) {
        return Ok(None);
    }
    let Some(value) = Value::at(text, start)? else { return Ok(None) };
    Ok(kind.masked(text, name, value, is_short))
}

/// What an option's value is.
#[derive(Debug, Clone, Copy)]
pub(super) enum OptionKind {
    Secret(Kind),
    /// `user:password`
    User,
    /// A password without a blank before it.
    Glued,
}

/// What the option of this name takes, `line` being what stands before it.
fn option_kind(name: &[u8], line: &[u8]) -> Option<OptionKind> {
    let start = line.iter().rposition(|byte| matches!(byte, b'\n' | b'|' | b';')).map_or(0, |at| at + 1);
    let command = |names: &[&[u8]]| {
        line[start..].split(|byte| matches!(byte, b' ' | b'/' | b'\t')).any(|word| names.contains(&word))
    };
    match name {
        b"-u" | b"-U" | b"--user" | b"--proxy-user" | b"--creds" => Some(OptionKind::User),
        b"-p" if command(&[b"sshpass"]) => Some(OptionKind::Secret(Kind::Password)),
        // With a blank behind it, the next word is a database.
        b"-p" if command(&[b"mysql", b"mysqldump", b"mysqladmin", b"mariadb", b"mariadb-dump"]) => {
            Some(OptionKind::Glued)
        }
        b"-p" if command(&[b"docker", b"podman", b"helm", b"skopeo", b"buildah", b"az"]) && command(&[b"login"]) => {
            Some(OptionKind::Secret(Kind::Password))
        }
        b"-a" if command(&[b"http", b"https", b"xh"]) => Some(OptionKind::User),
        b"-a" if command(&[b"redis-cli"]) => Some(OptionKind::Secret(Kind::Password)),
        [b'-', b'-', ..] => match names::kind(name)? {
            Kind::Cookie => Some(OptionKind::Secret(Kind::Weak)),
            kind => Some(OptionKind::Secret(kind)),
        },
        _ => None,
    }
}

impl OptionKind {
    fn masked(self, text: Text<'_>, name: &[u8], value: Value, is_short: bool) -> Option<Secret> {
        match self {
            Self::Glued => value.masked(text, b"PASSWORD", Kind::Password, Form::Argument),
            Self::Secret(kind) => {
                let form = if is_short || value.quote.is_some() { Form::Argument } else { Form::Option };
                let name = if is_short { b"PASSWORD" } else { name };
                value.masked(text, name, kind, form)
            }
            Self::User => {
                let is_end = |byte: &u8| *byte == b':' || (name == b"-U" && *byte == b'%');
                let colon = value.bytes(text).iter().position(is_end)?;
                let (user, password) = (&value.bytes(text)[..colon], value.start + colon + 1);
                let is_same = &text.bytes[password..value.end] == user;
                let is_id = user.iter().all(u8::is_ascii_digit) || matches!(user, b"http" | b"https" | b"file");
                if is_same || is_id {
                    return None;
                }
                Value { start: password, ..value }.masked(text, b"PASSWORD", Kind::Password, Form::Argument)
            }
        }
    }
}

/// The secret in an argument, `previous` being those before it: from this place on, and its name.
pub(super) fn argument(previous: &[&[u8]], argument: &[u8]) -> Option<(usize, String)> {
    let text = Text { bytes: argument, last: true };
    let value = |start| Value { start, end: argument.len(), quote: None, goes_on: false };
    let line = |before: &[&[u8]]| before.join(&b' ');
    let found = if let Some(rest) = argument.strip_prefix(b"-p")
        && !rest.is_empty()
    {
        let kind = option_kind(b"-p", &line(previous)).filter(|kind| matches!(kind, OptionKind::Glued))?;
        kind.masked(text, b"-p", value(2), true)
    } else {
        let (&name, before) = previous.split_last()?;
        // `aws configure set aws_secret_access_key …`
        if let Some(Kind::Password | Kind::Token) = names::kind(name).filter(|_| names::is_name(name)) {
            let found = value(0).masked(text, name, Kind::Token, Form::Spaced)?;
            return Some((found.start, found.name));
        }
        if !name.starts_with(b"-") || name.contains(&b'=') || argument.starts_with(b"-") {
            return None;
        }
        match option_kind(name, &line(before))? {
            OptionKind::Glued => None,
            OptionKind::Secret(kind) => {
                let name = if name.len() == 2 { b"PASSWORD" } else { name };
                value(0).masked(text, name, kind, Form::Argument)
            }
            OptionKind::User => OptionKind::User.masked(text, name, value(0), true),
        }
    }?;
    Some((found.start, found.name))
}
