//! Finds secrets by the name in front of them: `NAME=value`, `"name": "value"`, `Name: value`,
//! `--name=value`, `?name=value`.
//!
//! A verdict about a place depends on at most [`CONTEXT`] bytes before it and a bounded number after it, so it does not
//! depend on how the text was cut.

use std::ops::Range;

use super::command_options;
use super::finding::Finding;
use super::names::{self, NAME_BYTES_MAX, SecretKind};
use super::plausible::Form;
use super::searched_text::{BLANKS_MAX, CONTEXT, SearchedText, without_colour};
use super::value::Value;

/// The longest type in a declaration, in bytes.
const TYPE_BYTES_MAX: usize = 40;

type Found = Option<Finding>;

/// A name, and the text around it.
#[derive(Debug)]
struct Name<'a> {
    text: &'a [u8],
    /// The text before it, as far as a verdict may depend on it.
    before: &'a [u8],
    quoted: bool,
    /// There are blanks between the name and the separator.
    spaced: bool,
    /// `before` begins with the text.
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

    /// Returns true if only blanks or a list's bullet stand before the name on its line.
    fn begins_line(&self) -> bool {
        let line = self.before.iter().rposition(|&byte| byte == b'\n').map(|at| &self.before[at + 1..]);
        let line = line.or(self.is_first.then_some(self.before));
        line.is_some_and(|line| line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'+' | b'\r')))
    }
}

/// Finds the value of the name around this place, if the name is a secret's.
pub(super) fn of_name(text: SearchedText<'_>, at: usize) -> Found {
    if !names::has_word(text.bytes, at) {
        return None;
    }
    let before = text.before(at);
    let start = at - before.iter().rev().take(NAME_BYTES_MAX).take_while(|&&byte| names::is_part(byte)).count();
    let mut end = at;
    while end - at < NAME_BYTES_MAX && text.peek(end).is_some_and(names::is_part) {
        end += 1;
    }
    let is_option = text.bytes[start..].starts_with(b"--") && end - start <= NAME_BYTES_MAX;
    if is_option && text.peek(end) == Some(b' ') {
        return command_options::judge(text, start);
    }
    if let Some(found) = followed(text, start..end) {
        return Some(found);
    }
    let mut next = end;
    for mark in [&b"\\"[..], b"\"'`", b"]"] {
        next += usize::from(text.peek(next).is_some_and(|byte| mark.contains(&byte)));
    }
    next = text.skip_blanks(next);
    let separator = match text.peek(next) {
        Some(b':') if text.peek(next + 1) == Some(b'=') => next + 1,
        Some(b':' | b'=') => next,
        _ => return None,
    };
    if let Some(found) = judge(text, separator) {
        return Some(found);
    }
    // `const password: string = "…"`
    if text.bytes[separator] != b':' || text.peek(separator + 1) != Some(b' ') {
        return None;
    }
    let mut end = separator + 2;
    while end - separator < TYPE_BYTES_MAX {
        match text.peek(end) {
            Some(b'=') => return judge(text, end),
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'&' | b'\'' | b'<' | b'>' | b' ') => {
                end += 1
            }
            _ => return None,
        }
    }
    None
}

/// Finds the value after a name and a blank, a tag's end or the word `value`: `password X`, `password is X`,
/// `password -> X`, `| password | X |`, `<password>X<`, `define("PASSWORD", "X")`, `"name": "DB_PASSWORD", "value": "X"`.
fn followed(text: SearchedText<'_>, name: Range<usize>) -> Found {
    /// The most bytes from the name to the word.
    const GAP_BYTES_MAX: usize = 40;
    let (start, end) = (name.start, name.end);
    let name = &text.bytes[name];
    // The look at the place costs less than that at the name and the value.
    let masked = |at, form, kind: Option<SecretKind>| {
        let Some(of_name @ (SecretKind::Password | SecretKind::Token)) = names::kind(name) else { return None };
        Value::at(text, at).and_then(|value| value.masked(text, name, kind.unwrap_or(of_name), form))
    };
    match text.peek(end) {
        Some(b'>') if text.before(start).ends_with(b"<") => return masked(end + 1, Form::Line, None),
        Some(b'"' | b'\'') if is_set(text.before(start)) && text.peek(end + 1) == Some(b',') => {
            let value = text.skip_blanks(end + 2);
            if matches!(text.peek(value), Some(b'"' | b'\'')) {
                return masked(value, Form::Quoted, None);
            }
        }
        Some(b'"' | b'\'' | b',' | b'\n' | b'\r') => {}
        Some(b' ' | b'\t') if !name.starts_with(b"-") => {
            let (value, announces) = behind_joint(text, end);
            if announces
                && Value::at(text, value).is_some_and(|value| value.ends_line(text))
                && let Some(found) = masked(value, Form::Line, None)
            {
                return Some(found);
            }
            // In a sentence, only a value that is not like a word counts.
            if is_no_word(text, value)
                && let Some(found) = masked(value, Form::Spaced, Some(SecretKind::Token))
            {
                return Some(found);
            }
        }
        _ => return None,
    }
    let mut at = end;
    while at - end < GAP_BYTES_MAX && matches!(text.peek(at), Some(b'"' | b'\'' | b',' | b' ' | b'\n' | b'\r')) {
        at += 1;
    }
    if !text.has(at, b"value") {
        return None;
    }
    at += b"value".len();
    at += usize::from(matches!(text.peek(at), Some(b'"' | b'\'')));
    at = text.skip_blanks(at);
    match text.peek(at) {
        Some(b':' | b'=') => masked(text.skip_blanks(at + 1), Form::Quoted, None),
        _ => None,
    }
}

/// The place behind what joins a name and its value in a sentence or a table: `password is: X`, `password -> X`,
/// `| password | X |`. Says also whether it announces a value, as a colon does.
fn behind_joint(text: SearchedText<'_>, end: usize) -> (usize, bool) {
    const JOINTS: [&[u8]; 7] = [b"is: ", b"is ", b"-> ", "→ ".as_bytes(), b"| ", "│ ".as_bytes(), b"=> "];
    let at = text.skip_blanks(end);
    for joint in JOINTS {
        if text.has(at, joint) {
            return (text.skip_blanks(at + joint.len()), joint == JOINTS[0]);
        }
    }
    // More blanks than one make columns, in which other things may stand.
    let is_column = text.bytes.get(end) == Some(&b'\t');
    (if is_column { at } else { end + 1 }, false)
}

/// Returns true if these bytes end with a call that sets what its first argument names.
fn is_set(before: &[u8]) -> bool {
    const CALLS: [&[u8]; 8] =
        [b"define", b"setenv", b"putenv", b"setdefault", b"setitem", b"setproperty", b".set", b".put"];
    let Some((b'"' | b'\'', before)) = before.split_last() else { return false };
    let Some(before) = before.trim_ascii_end().strip_suffix(b"(") else { return false };
    CALLS
        .iter()
        .any(|call| before.len() >= call.len() && before[before.len() - call.len()..].eq_ignore_ascii_case(call))
}

/// Returns true if the word at this place has a digit and is not an option.
fn is_no_word(text: SearchedText<'_>, start: usize) -> bool {
    for at in start..start + NAME_BYTES_MAX {
        match text.peek(at) {
            Some(b'-') if at == start => return false,
            Some(byte) if byte.is_ascii_digit() => return true,
            Some(byte) if byte.is_ascii_graphic() => {}
            _ => return false,
        }
    }
    false
}

/// Finds the secret after the `=` or `:` at this place.
fn judge(text: SearchedText<'_>, at: usize) -> Found {
    let separator = text.bytes[at];
    let before = text.before(at);
    let mut name = Name::at_end_of(before, separator)?;
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
    let kind = kind?;
    let mut start = at + 1;
    let mut is_arrow = false;
    match (separator, text.peek(start)) {
        (b'=', Some(b'=' | b'~')) | (b':', Some(b'=' | b':')) => return None,
        (b'=', Some(b'>')) => (start, is_arrow) = (start + 1, true),
        _ => {}
    }
    let gap = start;
    start = text.skip_blanks(start);
    let assignment = Assignment { separator, gap: start - gap, kind };
    let value = Value::at(text, start)?;
    // `${NAME:?message}`
    if name.before.ends_with(b"${") && value.bytes(text).starts_with(b"?") {
        return None;
    }
    if is_arrow && value.quote.is_none() {
        return None;
    }
    assignment.judge(text, &name, value)
}

/// What proves the password in a header of the scheme Digest, RFC 7616.
fn digest_response(text: SearchedText<'_>, start: usize) -> Option<Value> {
    const HEADER_BYTES_MAX: usize = 1024;
    const FIELD: &[u8] = b"response=";
    if !text.has(start, b"digest ") {
        return None;
    }
    for at in start..start + HEADER_BYTES_MAX {
        match text.peek(at) {
            None | Some(b'\n') => break,
            Some(b'r' | b'R') if text.has(at, FIELD) => {
                let quotes = [b'\\', b'"'].into_iter();
                let mut value = at + FIELD.len();
                for quote in quotes {
                    value += usize::from(text.peek(value) == Some(quote));
                }
                let mut end = value;
                while end - value < 128 && text.peek(end).is_some_and(|byte| byte.is_ascii_hexdigit()) {
                    end += 1;
                }
                return (end - value >= 32).then_some(Value { start: value, end, quote: None, goes_on: false });
            }
            Some(_) => {}
        }
    }
    None
}

/// The connection between a name and its value.
struct Assignment {
    separator: u8,
    /// Bytes between the separator and the value.
    gap: usize,
    kind: SecretKind,
}

impl Assignment {
    fn judge(&self, text: SearchedText<'_>, name: &Name<'_>, value: Value) -> Found {
        let mut kind = self.kind;
        let mut value = value;
        if kind == SecretKind::Authorization
            && let Some(response) = digest_response(text, value.start)
        {
            return Some(response.secret(name.text));
        }
        if matches!(kind, SecretKind::Authorization | SecretKind::Token | SecretKind::Weak)
            && let Some(behind) = value.behind_scheme(text)
        {
            value = behind;
            let is_sentence = kind == SecretKind::Weak && value.bytes(text).iter().all(u8::is_ascii_lowercase);
            if is_sentence && !value.ends_line(text) {
                return None;
            }
            return value.masked(text, name.text, SecretKind::Token, Form::Header);
        }
        if kind == SecretKind::Cookie {
            value = value.whole_line(text);
            if value.bytes(text).contains(&b'=') && !value.bytes(text).starts_with(b"$") {
                return Some(value.secret(name.text));
            }
            kind = SecretKind::Weak;
        }
        let form = self.form(text, name, &value);
        if form == Form::Query && !name.text.starts_with(b"-") {
            value = value.before(text, |byte| matches!(byte, b'&' | b'#'));
        }
        value.masked(text, name.text, kind, form)
    }

    fn form(&self, text: SearchedText<'_>, name: &Name<'_>, value: &Value) -> Form {
        let is_tight = self.gap == 0 && !name.spaced;
        if self.separator == b'=' && is_tight {
            if matches!(name.before.last(), Some(b'?' | b'&')) || name.text.starts_with(b"--") {
                return Form::Query;
            }
            if name.is_variable() {
                return Form::Variable;
            }
            return if value.quote.is_some() { Form::Quoted } else { Form::Assigned };
        }
        if value.quote.is_some() {
            return Form::Quoted;
        }
        if self.separator == b':' && is_tight && !name.quoted {
            // `openssl -passin pass:…`
            let is_source = name.text == b"pass" && name.before.last().is_none_or(u8::is_ascii_whitespace);
            return if is_source { Form::Variable } else { Form::Spaced };
        }
        let is_header = name.text.contains(&b'-') && name.text[0].is_ascii_alphabetic() && self.separator == b':';
        if is_header && (name.text[0].is_ascii_uppercase() || name.text.starts_with(b"x-")) {
            return Form::Header;
        }
        let is_alone = !name.quoted && name.begins_line() && value.ends_line(text);
        if is_alone { Form::Line } else { Form::Spaced }
    }
}
