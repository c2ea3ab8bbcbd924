//! Finds secrets behind a name of several words, or of another alphabet: `mot de passe : V`, `contraseña: V`,
//! `seed phrase: abandon ability …`.

use super::finding::Finding;
use super::names::SecretKind;
use super::plausible::Form;
use super::searched_text::SearchedText;
use super::value::Value;

/// What stands behind such a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    Password,
    /// The words from which the keys of a wallet are made.
    Seed,
}

/// What may join two words of a name.
const JOINTS: &[u8] = b" _-";

/// What stands before the place, what begins there, and what it promises. A blank stands for any joint or none.
const PHRASES: &[(&str, &str, Promise)] = &[
    ("", "mot de passe", Promise::Password),
    ("", "mot_de_passe", Promise::Password),
    ("", "motdepasse", Promise::Password),
    ("contra", "seña", Promise::Password),
    ("contra", "seÑa", Promise::Password),
    ("contra", "sena", Promise::Password),
    ("", "пароль", Promise::Password),
    ("", "Пароль", Promise::Password),
    ("", "密码", Promise::Password),
    ("", "パスワード", Promise::Password),
    ("seed ", "phrase", Promise::Seed),
    ("recovery ", "phrase", Promise::Seed),
    ("mnemonic ", "phrase", Promise::Seed),
    ("wallet ", "phrase", Promise::Seed),
    ("", "mnemonic", Promise::Seed),
];

/// Finds the secret behind the name that has its telling part at this place.
pub(super) fn judge(text: SearchedText<'_>, at: usize) -> Option<Finding> {
    for &(before, word, promise) in PHRASES {
        if has_before(text.before(at), before.as_bytes()) && text.has(at, word.as_bytes()) {
            return behind(text, at + word.len(), promise);
        }
    }
    None
}

/// Returns true if the text before a place ends with this, at the beginning of a word.
fn has_before(text: &[u8], expected: &[u8]) -> bool {
    let mut rest = text;
    for &byte in expected.iter().rev() {
        match rest.split_last() {
            Some((last, before)) if byte == b' ' && JOINTS.contains(last) => rest = before,
            _ if byte == b' ' => {}
            Some((last, before)) if last.eq_ignore_ascii_case(&byte) => rest = before,
            _ => return false,
        }
    }
    expected.is_empty() || !rest.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Finds the secret behind the end of a name.
fn behind(text: SearchedText<'_>, end: usize, promise: Promise) -> Option<Finding> {
    let end = end + usize::from(matches!(text.peek(end), Some(b'"' | b'\'' | b'`')));
    let mut at = text.skip_blanks(end);
    for verb in [&b"is"[..], b"est", b"es", b"lautet"] {
        if at > end && text.has(at, verb) && matches!(text.peek(at + verb.len()), Some(b' ' | b':')) {
            at = text.skip_blanks(at + verb.len());
            break;
        }
    }
    const WIDE_COLON: &[u8] = "：".as_bytes();
    at += match text.peek(at) {
        Some(b':' | b'=') => 1,
        Some(first) if first == WIDE_COLON[0] && text.has(at, WIDE_COLON) => WIDE_COLON.len(),
        _ => return None,
    };
    at = text.skip_blanks(at);
    match promise {
        Promise::Seed => seed(text, at),
        Promise::Password => {
            let value = Value::at(text, at)?;
            let form = if value.quote.is_some() { Form::Quoted } else { Form::Line };
            let is_quoted = matches!(text.bytes.get(value.end), Some(b'"' | b'\'' | b'`'));
            if form == Form::Line && !is_quoted && !value.ends_line(text) {
                return None;
            }
            value.masked(text, b"PASSWORD", SecretKind::Password, form)
        }
    }
}

/// Finds a dozen words or more, as a wallet asks to write them down.
fn seed(text: SearchedText<'_>, start: usize) -> Option<Finding> {
    const WORDS_MIN: usize = 12;
    const WORDS_MAX: usize = 24;
    const WORD_BYTES_MAX: usize = 8;
    let start = start + usize::from(matches!(text.peek(start), Some(b'"' | b'\'' | b'`')));
    let mut at = start;
    let mut end = start;
    let mut words = 0;
    while words < WORDS_MAX {
        let mut len = 0;
        while len <= WORD_BYTES_MAX && text.peek(at + len).is_some_and(|byte| byte.is_ascii_lowercase()) {
            len += 1;
        }
        if !(3..=WORD_BYTES_MAX).contains(&len) {
            break;
        }
        words += 1;
        end = at + len;
        at = end + 1;
        if text.peek(end) != Some(b' ') {
            break;
        }
    }
    let is_seed = words >= WORDS_MIN;
    is_seed.then(|| Finding { start, end, name: "SEED_PHRASE".to_owned(), swallow: None })
}
