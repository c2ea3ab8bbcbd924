//! Finds tokens by their shape, whatever variable or file they come from.
//!
//! Each shape has a start, a length and an alphabet, as its issuer documents them, that ordinary words do not have. The
//! verdict needs a bounded number of bytes; more bytes of the same alphabet belong to the token.

use super::finding::{Finding, Swallow};
use super::partial_text::{PartialText, Undecided, without_colour};
use super::prefixed::{Alphabet, BY_FIRST, PREFIXED, Prefixed, is_token};

/// The longest first part of a JSON web token, in bytes.
const JWT_HEAD_BYTES_MAX: usize = 2048;

/// The length of an Airtable token's identifier.
const AIRTABLE_ID: usize = 14;

const ALPHANUMERICS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Starts of other shapes: JSON web tokens, Amazon's keys, `Basic …` and `Bearer …`, Discord's (a number in base64),
/// Airtable's.
const OTHERS: &[&[&[u8]]] = &[
    &[b"e", b"y", b"J"],
    &[b"A", b"KSB", b"I", b"A"],
    &[b"bB", b"a", b"s", b"iI", b"cC"],
    &[b"MNO", b"DTjz", b"AEIMQUYcgk", ALPHANUMERICS],
    &[b"p", b"a", b"t", ALPHANUMERICS, ALPHANUMERICS, ALPHANUMERICS],
];

/// For each token, the bytes that may stand at its first places; without Telegram's, which begin with a number.
pub(super) fn starts() -> impl Iterator<Item = Vec<Vec<u8>>> {
    let known = PREFIXED.iter().map(|token| {
        let is_part = token.alphabet.is_part();
        let alphabet: Vec<u8> = (0..=u8::MAX).filter(|&byte| is_part(byte)).collect();
        let behind = if token.start.len() < 3 { 2 } else { 1 };
        token.start.iter().map(|&byte| vec![byte]).chain(vec![alphabet; behind]).collect::<Vec<_>>()
    });
    known.chain(OTHERS.iter().map(|classes| classes.iter().map(|class| class.to_vec()).collect()))
}

/// Whether a token may begin at this place, as far as the text goes.
#[inline]
pub(super) fn may_begin(text: &[u8], at: usize) -> bool {
    let rest = &text[at..];
    let known = BY_FIRST[usize::from(rest[0])].iter().any(|begin| begin.agrees(rest));
    let goes_on = |classes: &[&[u8]]| classes.iter().zip(rest).all(|(class, byte)| class.contains(byte));
    let is_other = || match rest[0] {
        b'e' => goes_on(OTHERS[0]),
        b'A' => goes_on(OTHERS[1]),
        b'b' | b'B' => goes_on(OTHERS[2]),
        b'M' | b'N' | b'O' => goes_on(OTHERS[3]),
        b'p' => goes_on(&OTHERS[4][..3]) && rest.get(3 + AIRTABLE_ID).is_none_or(|&byte| byte == b'.'),
        _ => false,
    };
    (known || is_other()) && starts_word(&text[..at])
}

/// Whether a word can start after these bytes: not after a letter or digit, unless that ends a colour or an escape.
fn starts_word(before: &[u8]) -> bool {
    match before {
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'n' | b'r' | b't'] | [.., b'%', _, _] | [] => true,
        _ => without_colour(before).len() < before.len(),
    }
}

/// Finds the token that begins at this place.
pub(super) fn judge(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    if !starts_word(text.before(at)) {
        return Ok(None);
    }
    let (Some(first), Some(_)) = (text.peek(at)?, text.peek(at + 1)?) else { return Ok(None) };
    // Within base64, only starts with a sign are reliable.
    let in_base64 = matches!(text.before(at).last(), Some(b'+' | b'/'));
    let is_apart = |token: &Prefixed| !in_base64 || token.start.iter().any(|byte| matches!(byte, b'_' | b'-' | b'.'));
    let known = BY_FIRST[usize::from(first)].iter().filter(|begin| begin.agrees(&text.bytes[at..]));
    for token in known.map(|begin| begin.token).filter(|token| is_apart(token)) {
        if let Some(found) = token.judge(text, at)? {
            return Ok(Some(found));
        }
    }
    match first {
        b'e' => jwt(text, at),
        b'A' => aws(text, at),
        b'M' | b'N' | b'O' => discord(text, at),
        b'b' | b'B' => bearer(text, at),
        b'p' => airtable(text, at),
        _ => Ok(None),
    }
}

fn is_jwt(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

/// The number of bytes from `at` on for which `is` holds, up to `max`.
fn count(text: PartialText<'_>, at: usize, max: usize, is: fn(u8) -> bool) -> Result<usize, Undecided> {
    let mut len = 0;
    while len < max && text.peek(at + len)?.is_some_and(is) {
        len += 1;
    }
    Ok(len)
}

fn secret(start: usize, end: usize, name: &str, alphabet: Option<fn(u8) -> bool>) -> Option<Finding> {
    Some(Finding { start, end, name: name.to_owned(), swallow: alphabet.map(Swallow::While) })
}

/// Finds an AWS key id: exactly 20 capitals and digits.
fn aws(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    const LEN: usize = 20;
    let len = count(text, at, LEN, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())?;
    let is_known = [&b"AKIA"[..], b"ASIA", b"ABIA"].iter().any(|start| text.bytes[at..].starts_with(start));
    if len < LEN || !is_known {
        return Ok(None);
    }
    let is_longer = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'/' | b'=');
    Ok(if text.peek(at + LEN)?.is_some_and(is_longer) { None } else { secret(at, at + LEN, "AWS_KEY_ID", None) })
}

/// Finds a JSON web token: two parts of base64 that are JSON objects, and the bytes after them.
fn jwt(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    const PART_MIN: usize = 8;
    let starts = |at: usize| -> Result<bool, Undecided> { Ok(count(text, at, 3, |byte| b"eyJ".contains(&byte))? == 3) };
    if !starts(at)? || !text.bytes[at..].starts_with(b"eyJ") {
        return Ok(None);
    }
    let head = count(text, at, JWT_HEAD_BYTES_MAX, is_token)?;
    let body = at + head + 1;
    if head < PART_MIN || head == JWT_HEAD_BYTES_MAX || text.peek(body - 1)? != Some(b'.') || !starts(body)? {
        return Ok(None);
    }
    if !text.bytes[body..].starts_with(b"eyJ") || count(text, body, PART_MIN, is_token)? < PART_MIN {
        return Ok(None);
    }
    Ok(secret(at, body + PART_MIN, "JWT", Some(is_jwt)))
}

/// Finds a Discord bot's token: its number in base64, a time, a signature.
fn discord(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    if !matches!(text.peek(at)?, Some(b'M' | b'N' | b'O')) {
        return Ok(None);
    }
    let head = count(text, at, 29, |byte| byte.is_ascii_alphanumeric())?;
    if !(23..=28).contains(&head) || text.peek(at + head)? != Some(b'.') {
        return Ok(None);
    }
    let time = at + head + 1;
    let len = count(text, time, 8, is_token)?;
    if !(5..=7).contains(&len) || text.peek(time + len)? != Some(b'.') {
        return Ok(None);
    }
    let signature = time + len + 1;
    let len = count(text, signature, 27, is_token)?;
    Ok(if len < 27 { None } else { secret(at, signature + len, "DISCORD_TOKEN", Some(is_token)) })
}

/// Finds an Airtable token: an identifier, a dot, and 64 hexadecimal digits.
fn airtable(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    const SECRET: usize = 32;
    let is_part: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric();
    let id = at + 3;
    if !text.bytes[at..].starts_with(b"pat")
        || count(text, id, AIRTABLE_ID, is_part)? < AIRTABLE_ID
        || text.peek(id + AIRTABLE_ID)? != Some(b'.')
    {
        return Ok(None);
    }
    let start = id + AIRTABLE_ID + 1;
    let is_long = count(text, start, SECRET, is_part)? == SECRET;
    Ok(if is_long { secret(at, start + SECRET, "AIRTABLE_TOKEN", Some(is_part)) } else { None })
}

/// Finds a Telegram bot's token, after its number and this colon.
pub(super) fn bot(text: PartialText<'_>, colon: usize) -> Result<Option<Finding>, Undecided> {
    let digits = text.before(colon).iter().rev().take(12).take_while(|byte| byte.is_ascii_digit()).count();
    if !(8..=10).contains(&digits) || text.peek(colon + 2)? != Some(b'A') {
        return Ok(None);
    }
    let len = count(text, colon + 1, 34, is_token)?;
    Ok(if len < 34 { None } else { secret(colon + 1, colon + 1 + len, "TELEGRAM_TOKEN", Some(is_token)) })
}

/// Finds the token after `Bearer ` or `Basic ` without a header's name.
fn bearer(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    const LEN: usize = 16;
    let Some(start) = [&b"bearer "[..], b"basic "].iter().find_map(|word| match text.has(at, word) {
        Ok(false) => None,
        found => Some(found.map(|_| at + word.len())),
    }) else {
        return Ok(None);
    };
    let (start, is_part) = (start?, Alphabet::Base64.is_part());
    let len = count(text, start, 2 * LEN, is_part)?;
    let bytes = &text.bytes[start..start + len];
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    let is_random = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    Ok(if len < LEN || !is_random { None } else { secret(start, start + len, "BEARER_TOKEN", Some(is_part)) })
}
