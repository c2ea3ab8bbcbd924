//! Finds tokens by their shape, whatever variable or file they come from.
//!
//! Each shape has a start, a length and an alphabet, as its issuer documents them, that ordinary words do not have. The
//! verdict needs a bounded number of bytes; more bytes of the same alphabet belong to the token. Shapes with a fixed start
//! are in [`super::prefixed`], the others in [`SHAPES`].

use std::sync::LazyLock;

use super::finding::{Finding, Swallow};
use super::key_body::KeyBody;
use super::names::SecretKind;
use super::phrases;
use super::plausible::Form;
use super::prefixed::{Alphabet, BY_FIRST, PREFIXED, Prefixed, is_token};
use super::searched_text::{SearchedText, without_colour};
use super::value::Value;

/// The longest first part of a JSON web token, in bytes.
const JWT_HEAD_BYTES_MAX: usize = 2048;
/// The length of an Airtable token's identifier.
const AIRTABLE_ID: usize = 14;
/// The longest field of a line in `.pgpass`, in bytes.
const PGPASS_FIELD_BYTES_MAX: usize = 64;

const ALPHANUMERICS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";

type TokenFound = Option<Finding>;

/// How rare the first bytes of a shape are in other text; [`super::anchors`] looks for each kind in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rarity {
    /// The first four bytes together.
    Four,
    /// The first two or three, because one is a sign.
    Sign,
    /// Words of other languages and of wallets.
    Phrase(u8),
}

/// A shape without a fixed start.
pub(super) struct Shape {
    /// The bytes that may stand at the first places.
    pub(super) begin: &'static [&'static [u8]],
    pub(super) rarity: Rarity,
    /// It is where a word begins.
    is_word: bool,
    judge: fn(SearchedText<'_>, usize) -> TokenFound,
}

const fn word(begin: &'static [&'static [u8]], judge: fn(SearchedText<'_>, usize) -> TokenFound) -> Shape {
    Shape { begin, rarity: Rarity::Four, is_word: true, judge }
}

const fn sign(begin: &'static [&'static [u8]], judge: fn(SearchedText<'_>, usize) -> TokenFound) -> Shape {
    Shape { begin, rarity: Rarity::Sign, is_word: false, judge }
}

const fn phrase(kind: u8, begin: &'static [&'static [u8]]) -> Shape {
    // Those of the first kind are whole words.
    Shape { begin, rarity: Rarity::Phrase(kind), is_word: kind == 0, judge: phrases::judge }
}

/// What is looked for at a place that begins so.
pub(super) static SHAPES: &[Shape] = &[
    word(&[b"e", b"y", b"J"], jwt),
    word(&[b"A", b"KSB", b"I", b"A"], aws),
    word(&[b"bB", b"a", b"s", b"iI", b"cC"], bearer),
    word(&[b"MNO", b"DTjz", b"AEIMQUYcgk", ALPHANUMERICS], discord),
    word(&[b"p", b"a", b"t", ALPHANUMERICS, ALPHANUMERICS, ALPHANUMERICS], airtable),
    sign(&[b"12", b"/", DIGITS, DIGITS, DIGITS], asana),
    sign(&[b"6", b"~", ALPHANUMERICS], openshift),
    sign(&[b"Q", b"~", ALPHANUMERICS], azure),
    sign(&[b":", b"56", b"4", b"3", DIGITS], pgpass),
    sign(&[b":", b"*", b":"], pgpass),
    sign(&[b"-", b"S", b"e", b"c", b"u"], secure_string),
    word(&[b"P", b"r", b"i", b"v", b"a", b"t", b"e", b"-", b"L"], putty),
    phrase(0, &[b"mM", b"oO", b"tT", b" _dD", b"dDeE"]),
    phrase(0, &[b"mM", b"nN", b"eE", b"mM", b"oO"]),
    phrase(1, &[b"pP", b"hH", b"rR", b"aA", b"sS"]),
    phrase(1, &[b"sS", b"eE", b"\xC3", b"\xB1\x91"]),
    phrase(1, &[b"sS", b"eE", b"nN", b"aA", b" :=\"'"]),
    phrase(1, &[b"\xD0", b"\xBF\x9F", b"\xD0", b"\xB0", b"\xD1"]),
    phrase(1, &[b"\xE5", b"\xAF", b"\x86", b"\xE7"]),
    phrase(1, &[b"\xE3", b"\x83", b"\x91", b"\xE3", b"\x82"]),
];

static BY_BEGIN: LazyLock<Vec<Vec<&Shape>>> = LazyLock::new(|| {
    let with = |byte: u8| SHAPES.iter().filter(|shape| shape.begin[0].contains(&byte)).collect();
    (0..=u8::MAX).map(with).collect()
});

impl Shape {
    /// Returns true if it may begin there, as far as the text goes.
    fn may_begin(&self, text: &[u8], at: usize) -> bool {
        self.begin.iter().zip(&text[at..]).all(|(class, byte)| class.contains(byte))
            && (!self.is_word || starts_word(&text[..at]))
    }
}

/// For each token of which four bytes are rare, those that may stand at its first places.
pub(super) fn rare_starts() -> impl Iterator<Item = Vec<Vec<u8>>> {
    starts().filter(|classes| {
        let is_other = |shape: &Shape| shape.begin.iter().zip(classes).all(|(a, b)| **a == **b);
        let is_sign = classes[0] == b"$";
        !is_sign && !SHAPES.iter().any(|shape| shape.rarity != Rarity::Four && is_other(shape))
    })
}

/// For each token, the bytes that may stand at its first places; without Telegram's, which begin with a number.
pub(super) fn starts() -> impl Iterator<Item = Vec<Vec<u8>>> {
    let known = PREFIXED.iter().map(|token| {
        let is_part = token.alphabet.is_part();
        let alphabet: Vec<u8> = (0..=u8::MAX).filter(|&byte| is_part(byte)).collect();
        let behind = if token.start.len() < 3 { 2 } else { 1 };
        token.start.iter().map(|&byte| vec![byte]).chain(vec![alphabet; behind]).collect::<Vec<_>>()
    });
    known.chain(SHAPES.iter().map(|shape| shape.begin.iter().map(|class| class.to_vec()).collect()))
}

/// Returns true if a token may begin at this place, as far as the text goes.
#[inline]
pub(super) fn may_begin(text: &[u8], at: usize) -> bool {
    let rest = &text[at..];
    let first = usize::from(rest[0]);
    let is_known = || BY_FIRST[first].iter().any(|begin| begin.agrees(rest)) && starts_word(&text[..at]);
    BY_BEGIN[first].iter().any(|shape| shape.may_begin(text, at)) || is_known()
}

/// Returns true if a word can start after these bytes: not after a letter or digit, unless that ends a colour or an
/// escape.
fn starts_word(before: &[u8]) -> bool {
    match before {
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'n' | b'r' | b't'] | [.., b'%', _, _] | [] => true,
        _ => without_colour(before).len() < before.len(),
    }
}

/// Finds the token that begins at this place.
pub(super) fn judge(text: SearchedText<'_>, at: usize) -> TokenFound {
    let (Some(first), Some(_)) = (text.peek(at), text.peek(at + 1)) else { return None };
    if starts_word(text.before(at)) {
        // Within base64, only starts with a sign are reliable.
        let in_base64 = matches!(text.before(at).last(), Some(b'+' | b'/'));
        let is_apart = |token: &Prefixed| !in_base64 || !token.start.iter().all(u8::is_ascii_alphanumeric);
        let known = BY_FIRST[usize::from(first)].iter().filter(|begin| begin.agrees(&text.bytes[at..]));
        for token in known.map(|begin| begin.token).filter(|token| is_apart(token)) {
            if let Some(found) = token.judge(text, at) {
                return Some(found);
            }
        }
    }
    if matches!(first, b'b' | b'B')
        && starts_word(text.before(at))
        && let Some(found) = bearer(text, at)
    {
        return Some(found);
    }
    for shape in BY_BEGIN[usize::from(first)].iter().filter(|shape| shape.may_begin(text.bytes, at)) {
        if let Some(found) = (shape.judge)(text, at) {
            return Some(found);
        }
    }
    None
}

fn is_jwt(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

/// The number of bytes from `at` on for which `is` holds, up to `max`.
fn count(text: SearchedText<'_>, at: usize, max: usize, is: fn(u8) -> bool) -> usize {
    let mut len = 0;
    while len < max && text.peek(at + len).is_some_and(is) {
        len += 1;
    }
    len
}

fn secret(start: usize, end: usize, name: &str, alphabet: Option<fn(u8) -> bool>) -> Option<Finding> {
    Some(Finding { start, end, name: name.to_owned(), swallow: alphabet.map(Swallow::While) })
}

/// Finds an AWS key id: exactly 20 capitals and digits.
fn aws(text: SearchedText<'_>, at: usize) -> TokenFound {
    const LEN: usize = 20;
    let len = count(text, at, LEN, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let is_known = [&b"AKIA"[..], b"ASIA", b"ABIA"].iter().any(|start| text.bytes[at..].starts_with(start));
    if len < LEN || !is_known {
        return None;
    }
    let is_longer = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'/' | b'=');
    if text.peek(at + LEN).is_some_and(is_longer) { None } else { secret(at, at + LEN, "AWS_KEY_ID", None) }
}

/// Finds a JSON web token: two parts of base64 that are JSON objects, and the bytes after them.
fn jwt(text: SearchedText<'_>, at: usize) -> TokenFound {
    const PART_MIN: usize = 8;
    let starts = |at: usize| count(text, at, 3, |byte| b"eyJ".contains(&byte)) == 3;
    if !starts(at) || !text.bytes[at..].starts_with(b"eyJ") {
        return None;
    }
    let head = count(text, at, JWT_HEAD_BYTES_MAX, is_token);
    let body = at + head + 1;
    if head < PART_MIN || head == JWT_HEAD_BYTES_MAX || text.peek(body - 1) != Some(b'.') || !starts(body) {
        return None;
    }
    if !text.bytes[body..].starts_with(b"eyJ") || count(text, body, PART_MIN, is_token) < PART_MIN {
        return None;
    }
    secret(at, body + PART_MIN, "JWT", Some(is_jwt))
}

/// Finds a Discord bot's token: its number in base64, a time, a signature.
fn discord(text: SearchedText<'_>, at: usize) -> TokenFound {
    if !matches!(text.peek(at), Some(b'M' | b'N' | b'O')) {
        return None;
    }
    let head = count(text, at, 29, |byte| byte.is_ascii_alphanumeric());
    if !(23..=28).contains(&head) || text.peek(at + head) != Some(b'.') {
        return None;
    }
    let time = at + head + 1;
    let len = count(text, time, 8, is_token);
    if !(5..=7).contains(&len) || text.peek(time + len) != Some(b'.') {
        return None;
    }
    let signature = time + len + 1;
    let len = count(text, signature, 27, is_token);
    if len < 27 { None } else { secret(at, signature + len, "DISCORD_TOKEN", Some(is_token)) }
}

/// Finds an Airtable token: an identifier, a dot, and 64 hexadecimal digits.
fn airtable(text: SearchedText<'_>, at: usize) -> TokenFound {
    const SECRET: usize = 32;
    let is_part: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric();
    let id = at + 3;
    if !text.bytes[at..].starts_with(b"pat")
        || count(text, id, AIRTABLE_ID, is_part) < AIRTABLE_ID
        || text.peek(id + AIRTABLE_ID) != Some(b'.')
    {
        return None;
    }
    let start = id + AIRTABLE_ID + 1;
    let is_long = count(text, start, SECRET, is_part) == SECRET;
    if is_long { secret(at, start + SECRET, "AIRTABLE_TOKEN", Some(is_part)) } else { None }
}

/// Finds a Telegram bot's token, after its number and this colon.
pub(super) fn bot(text: SearchedText<'_>, colon: usize) -> TokenFound {
    let digits = text.before(colon).iter().rev().take(12).take_while(|byte| byte.is_ascii_digit()).count();
    if !(8..=10).contains(&digits) || text.peek(colon + 2) != Some(b'A') {
        return None;
    }
    let len = count(text, colon + 1, 34, is_token);
    if len < 34 { None } else { secret(colon + 1, colon + 1 + len, "TELEGRAM_TOKEN", Some(is_token)) }
}

/// Finds the token after `Bearer ` or `Basic ` without a header's name.
fn bearer(text: SearchedText<'_>, at: usize) -> TokenFound {
    const LEN: usize = 16;
    let word = [&b"bearer "[..], b"basic "].into_iter().find(|word| text.has(at, word))?;
    let (start, is_part) = (at + word.len(), Alphabet::Base64.is_part());
    let len = count(text, start, 2 * LEN, is_part);
    let bytes = &text.bytes[start..start + len];
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    let is_random = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    if len < LEN || !is_random { None } else { secret(start, start + len, "BEARER_TOKEN", Some(is_part)) }
}

/// Finds a token of Asana's: `1/`, a number, a colon, and 32 hexadecimal digits; or `2/` and two numbers.
fn asana(text: SearchedText<'_>, at: usize) -> TokenFound {
    const NUMBER: usize = 12;
    let mut end = at + 1;
    for _ in 0..2 {
        if text.peek(end) != Some(b'/') {
            break;
        }
        let len = count(text, end + 1, 20, |byte| byte.is_ascii_digit());
        if len < NUMBER {
            return None;
        }
        end += 1 + len;
    }
    let is_long = text.peek(end) == Some(b':') && count(text, end + 1, 32, |byte| byte.is_ascii_hexdigit()) == 32;
    if is_long { secret(at, end + 33, "ASANA_TOKEN", Some(|byte| byte.is_ascii_hexdigit())) } else { None }
}

/// Finds a token of OpenShift's, in the middle of its start `sha256~`.
fn openshift(text: SearchedText<'_>, at: usize) -> TokenFound {
    const LEN: usize = 43;
    let is_token = text.before(at).ends_with(b"sha25") && count(text, at + 2, LEN, is_token) == LEN;
    if is_token { secret(at + 2, at + 2 + LEN, "OPENSHIFT_TOKEN", Some(self::is_token)) } else { None }
}

/// Finds a secret of an application in Azure by its fixed middle. The four characters before that have passed.
fn azure(text: SearchedText<'_>, at: usize) -> TokenFound {
    let is_part: fn(u8) -> bool = |byte| is_token(byte) || matches!(byte, b'.' | b'~');
    let before = text.before(at);
    let len = before.iter().rev().take(5).take_while(|&&byte| is_part(byte)).count();
    let is_middle = len == 4 && before.last().is_some_and(u8::is_ascii_digit);
    let is_secret = is_middle && count(text, at + 2, 31, is_part) == 31;
    if is_secret { secret(at, at + 33, "AZURE_SECRET", Some(is_part)) } else { None }
}

/// Finds the password in a line of PostgreSQL's `.pgpass`, at the colon before its port: `host:5432:database:user:password`.
fn pgpass(text: SearchedText<'_>, at: usize) -> TokenFound {
    let is_name = |byte: u8| is_token(byte) || matches!(byte, b'.' | b'*');
    let host = text.before(at).iter().rev().take(PGPASS_FIELD_BYTES_MAX).take_while(|&&byte| is_name(byte)).count();
    let before_host = text.before(at - host).last();
    if host == 0 || before_host.is_some_and(|byte| matches!(byte, b':' | b'/' | b'@')) {
        return None;
    }
    let mut end = at + 1;
    for field in 0..3 {
        let is_part: fn(u8) -> bool = match field {
            0 => |byte| byte.is_ascii_digit() || byte == b'*',
            _ => |byte| is_token(byte) || matches!(byte, b'.' | b'*'),
        };
        let len = count(text, end, PGPASS_FIELD_BYTES_MAX, is_part);
        let is_number = field == 2 && text.bytes[end..end + len].iter().all(u8::is_ascii_digit);
        if len == 0 || is_number || text.peek(end + len) != Some(b':') {
            return None;
        }
        end += len + 1;
    }
    let is_password: fn(u8) -> bool = |byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`');
    let len = count(text, end, PGPASS_FIELD_BYTES_MAX, is_password);
    let is_variable = matches!(text.bytes.get(end), Some(b'$' | b'<' | b'{' | b'*'));
    if len < 4 || is_variable { None } else { secret(end, end + len, "PGPASS", Some(is_password)) }
}

/// Finds the password in a call of PowerShell's `ConvertTo-SecureString`, at its dash.
fn secure_string(text: SearchedText<'_>, at: usize) -> TokenFound {
    const NAME: &[u8] = b"-SecureString";
    const OPTION: &[u8] = b"-String";
    if !text.before(at).ends_with(b"ConvertTo") || !text.has(at, NAME) {
        return None;
    }
    let mut start = text.skip_blanks(at + NAME.len());
    if text.has(start, OPTION) {
        start = text.skip_blanks(start + OPTION.len());
    }
    match text.peek(start) {
        Some(b'"' | b'\'') => {
            let value = Value::at(text, start);
            value.and_then(|value| value.masked(text, b"PASSWORD", SecretKind::Password, Form::Quoted))
        }
        _ => None,
    }
}

/// Finds the lines of a private key in the form of PuTTY's: `Private-Lines: 1` and what follows.
fn putty(text: SearchedText<'_>, at: usize) -> TokenFound {
    const NAME: &[u8] = b"Private-Lines: ";
    const LINE: usize = 20;
    if !text.has(at, NAME) {
        return None;
    }
    let digits = count(text, at + NAME.len(), 4, |byte| byte.is_ascii_digit());
    let end = at + NAME.len() + digits;
    let breaks = count(text, end, 2, |byte| matches!(byte, b'\r' | b'\n'));
    let start = end + breaks;
    let is_base64: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if digits == 0 || breaks == 0 || count(text, start, LINE, is_base64) < LINE {
        return None;
    }
    let swallow = Some(Swallow::Key(KeyBody::default()));
    Some(Finding { start, end: start, name: "PRIVATE_KEY".to_owned(), swallow })
}
