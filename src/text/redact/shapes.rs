//! Tokens that are known by how they look, whatever variable or file they come from.
//!
//! A shape is judged at one place of the text and only from there on. Each needs a length and alphabet that ordinary
//! words do not have, and is decided after a bounded number of bytes; what follows in the same alphabet is swallowed.

use super::Verdict;

/// What a shape begins with.
pub(super) const STARTS: [&[u8]; 15] = [
    b"ghp", b"gho", b"ghs", b"ghu", b"ghr", b"git", b"glp", b"npm", b"sk-", b"xox", b"AKI", b"ASI", b"eyJ", b"---",
    b"://",
];

/// How far a token is read before it must have shown what it is.
const TOKEN_BYTES_MAX: usize = 256;
/// The longest first part of a JSON web token.
const JWT_HEAD_BYTES_MAX: usize = 2048;
const AUTHORITY_BYTES_MAX: usize = 1024;
/// A line of base64 that is at least this long is part of a key.
const KEY_LINE_BYTES_MIN: usize = 20;
const KEY_HEADER_BYTES_MAX: usize = 128;

#[derive(Debug, Clone)]
pub(super) enum Shape {
    Token {
        name: &'static str,
        /// How much is decided to be the token; what `swallow` takes after it belongs to it too.
        len: usize,
        swallow: Option<Swallow>,
    },
    /// `://user:password`, up to before the `@`.
    Url { password_at: usize, len: usize },
}

/// What goes on after a mask without being shown.
#[derive(Debug, Clone)]
pub(super) enum Swallow {
    /// Bytes of the token's alphabet.
    While(fn(u8) -> bool),
    Key(KeyBody),
}

/// The lines between a private key's first and last one.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyBody {
    /// Within a line of base64 that is long enough.
    in_line: bool,
    seen_line: bool,
    seen_short: bool,
}

/// A token that is a fixed start and then bytes of an alphabet.
struct Prefixed {
    name: &'static str,
    start: &'static [u8],
    is_part: fn(u8) -> bool,
    /// The token is one once so many bytes follow in a row without a separator, and so many in all.
    run_min: usize,
    len_min: usize,
}

const fn prefixed(
    name: &'static str,
    start: &'static [u8],
    is_part: fn(u8) -> bool,
    run_min: usize,
    len_min: usize,
) -> Prefixed {
    Prefixed { name, start, is_part, run_min, len_min }
}

const PREFIXED: [Prefixed; 14] = [
    prefixed("GITHUB_TOKEN", b"ghp_", is_alphanumeric, 30, 30),
    prefixed("GITHUB_TOKEN", b"gho_", is_alphanumeric, 30, 30),
    prefixed("GITHUB_TOKEN", b"ghs_", is_alphanumeric, 30, 30),
    prefixed("GITHUB_TOKEN", b"ghu_", is_alphanumeric, 30, 30),
    prefixed("GITHUB_TOKEN", b"ghr_", is_alphanumeric, 30, 30),
    prefixed("GITHUB_TOKEN", b"github_pat_", is_token, 16, 22),
    prefixed("GITLAB_TOKEN", b"glpat-", is_token, 6, 20),
    prefixed("NPM_TOKEN", b"npm_", is_alphanumeric, 30, 30),
    prefixed("API_KEY", b"sk-", is_token, 16, 20),
    prefixed("SLACK_TOKEN", b"xoxa-", is_slack, 8, 10),
    prefixed("SLACK_TOKEN", b"xoxb-", is_slack, 8, 10),
    prefixed("SLACK_TOKEN", b"xoxp-", is_slack, 8, 10),
    prefixed("SLACK_TOKEN", b"xoxr-", is_slack, 8, 10),
    prefixed("SLACK_TOKEN", b"xoxs-", is_slack, 8, 10),
];

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_slack(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn is_jwt(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// What the text begins with, `before` being the two bytes in front of it.
pub(super) fn judge(text: &[u8], before: [u8; 2], last: bool) -> Verdict {
    match text[0] {
        b'-' => private_key(text, last),
        b':' => url(text, before, last),
        b'e' => jwt(text, last),
        b'A' if starts_word(before) => aws(text, last),
        b's' if !starts_word(before) => Verdict::Nothing,
        _ => match PREFIXED.iter().find(|token| agrees(token.start, text)) {
            Some(token) => token.judge(text, last),
            None => Verdict::Nothing,
        },
    }
}

/// Whether the text starts with `start`, as far as it goes.
fn agrees(start: &[u8], text: &[u8]) -> bool {
    let len = start.len().min(text.len());
    start[..len] == text[..len]
}

/// Whether a word can start here: not after a letter, unless that is the end of `\n` in quoted text.
fn starts_word(before: [u8; 2]) -> bool {
    !before[1].is_ascii_alphanumeric() || (before[0] == b'\\' && matches!(before[1], b'n' | b't' | b'r'))
}

/// The verdict where the text ended before it was clear.
fn cut_off(last: bool) -> Verdict {
    if last { Verdict::Nothing } else { Verdict::Undecided }
}

impl Prefixed {
    fn judge(&self, text: &[u8], last: bool) -> Verdict {
        let Some(rest) = text.strip_prefix(self.start) else { return cut_off(last) };
        let (mut run, mut enough) = (0, false);
        for (at, &byte) in rest.iter().enumerate().take(TOKEN_BYTES_MAX) {
            if !(self.is_part)(byte) {
                return Verdict::Nothing;
            }
            run = if byte.is_ascii_alphanumeric() { run + 1 } else { 0 };
            enough |= run >= self.run_min;
            if enough && at + 1 >= self.len_min {
                let swallow = Some(Swallow::While(self.is_part));
                return Verdict::Shape(Shape::Token { name: self.name, len: self.start.len() + at + 1, swallow });
            }
        }
        if rest.len() >= TOKEN_BYTES_MAX { Verdict::Nothing } else { cut_off(last) }
    }
}

/// Exactly 20 capitals and digits.
fn aws(text: &[u8], last: bool) -> Verdict {
    const LEN: usize = 20;
    if !agrees(b"AKIA", text) && !agrees(b"ASIA", text) {
        return Verdict::Nothing;
    }
    let len = text.iter().take(LEN).take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit()).count();
    match text.get(len) {
        None if !last => Verdict::Undecided,
        Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'/' | b'=') => Verdict::Nothing,
        _ if len == LEN => Verdict::Shape(Shape::Token { name: "AWS_KEY_ID", len, swallow: None }),
        _ => Verdict::Nothing,
    }
}

/// Two parts of base64 that are JSON objects, and what follows them.
fn jwt(text: &[u8], last: bool) -> Verdict {
    const PART_MIN: usize = 8;
    if !agrees(b"eyJ", text) {
        return Verdict::Nothing;
    }
    let head = text.iter().take(JWT_HEAD_BYTES_MAX).take_while(|&&byte| is_token(byte)).count();
    if head == JWT_HEAD_BYTES_MAX {
        return Verdict::Nothing;
    }
    let Some(rest) = text.get(head + 1..) else { return cut_off(last) };
    if text[head] != b'.' || head < PART_MIN || !agrees(b"eyJ", rest) {
        return Verdict::Nothing;
    }
    let body = rest.iter().take(PART_MIN).take_while(|&&byte| is_token(byte)).count();
    if body == PART_MIN {
        let swallow = Some(Swallow::While(is_jwt));
        return Verdict::Shape(Shape::Token { name: "JWT", len: head + 1 + body, swallow });
    }
    if body == rest.len() { cut_off(last) } else { Verdict::Nothing }
}

/// The password in `scheme://user:password@host`.
fn url(text: &[u8], before: [u8; 2], last: bool) -> Verdict {
    if !before[1].is_ascii_alphanumeric() || !agrees(b"://", text) {
        return Verdict::Nothing;
    }
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace() || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`')
    };
    let Some(authority) = text.get(3..) else { return cut_off(last) };
    let len = match authority.iter().take(AUTHORITY_BYTES_MAX).position(ends) {
        Some(len) => len,
        None if authority.len() >= AUTHORITY_BYTES_MAX => AUTHORITY_BYTES_MAX,
        None if last => authority.len(),
        None => return Verdict::Undecided,
    };
    let authority = &authority[..len];
    let Some(at) = authority.iter().rposition(|&byte| byte == b'@') else { return Verdict::Nothing };
    let Some(colon) = authority[..at].iter().position(|&byte| byte == b':') else { return Verdict::Nothing };
    match &authority[colon + 1..at] {
        // Placeholders are there to be read.
        [] | [b'$' | b'{' | b'%' | b'*' | b'[', ..] => Verdict::Nothing,
        _ => Verdict::Shape(Shape::Url { password_at: 3 + colon + 1, len: 3 + at }),
    }
}

/// The first line of a private key.
fn private_key(text: &[u8], last: bool) -> Verdict {
    const START: &[u8] = b"-----BEGIN ";
    if !agrees(START, text) {
        return Verdict::Nothing;
    }
    let Some(rest) = text.strip_prefix(START) else { return cut_off(last) };
    let kind = rest.iter().take(KEY_HEADER_BYTES_MAX).take_while(|b| b.is_ascii_uppercase() || **b == b' ').count();
    let dashes = rest[kind..].iter().take(5).take_while(|&&byte| byte == b'-').count();
    if dashes == 5 {
        let kind = &rest[..kind];
        if !kind.ends_with(b"PRIVATE KEY") && !kind.ends_with(b"PRIVATE KEY BLOCK") {
            return Verdict::Nothing;
        }
        let swallow = Some(Swallow::Key(KeyBody::default()));
        return Verdict::Shape(Shape::Token { name: "PRIVATE_KEY", len: START.len() + kind.len() + 5, swallow });
    }
    if kind + dashes == rest.len() && kind < KEY_HEADER_BYTES_MAX { cut_off(last) } else { Verdict::Nothing }
}

impl Swallow {
    /// How much of the text goes, and whether more may; nothing if that depends on bytes that are not there yet.
    pub(super) fn take(&mut self, text: &[u8], last: bool) -> Option<(usize, bool)> {
        match self {
            Self::While(is_part) => {
                let len = text.iter().take_while(|&&byte| is_part(byte)).count();
                Some((len, len == text.len()))
            }
            Self::Key(body) => body.take(text, last),
        }
    }
}

impl KeyBody {
    /// One line of the body, or a part of one. A key's lines are base64, or headers such as `Proc-Type: 4,ENCRYPTED`;
    /// anything else was never part of the key, and the key without an end is over.
    fn take(&mut self, text: &[u8], last: bool) -> Option<(usize, bool)> {
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
