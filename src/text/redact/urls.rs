//! Finds secrets in URLs: `scheme://user:password@host`, `scheme://token@host`, and web hooks, whose path is the secret.

use super::finding::{Finding, Swallow};
use super::searched_text::SearchedText;

/// The most bytes of a URL's authority that are read.
const AUTHORITY_BYTES_MAX: usize = 1024;
/// A user name of at least this many bytes, with digits and letters, is a token.
const TOKEN_BYTES_MIN: usize = 16;

/// Hosts and beginnings of paths after which the path is a secret.
const HOOKS: [&[u8]; 8] = [
    b"hooks.slack.com/services/",
    b"hooks.slack.com/workflows/",
    b"hooks.slack.com/triggers/",
    b"discord.com/api/webhooks/",
    b"discordapp.com/api/webhooks/",
    b"ptb.discord.com/api/webhooks/",
    b"hooks.zapier.com/hooks/catch/",
    b"chat.googleapis.com/v1/spaces/",
];

/// Finds the secret after the `://` at this place.
pub(super) fn judge(text: SearchedText<'_>, at: usize) -> Option<Finding> {
    if !text.before(at).last().is_some_and(u8::is_ascii_alphanumeric) || text.peek(at + 2) != Some(b'/') {
        return None;
    }
    let start = at + 3;
    if let Some(found) = hook(text, start) {
        return Some(found);
    }
    let mut end = start;
    while end - start < AUTHORITY_BYTES_MAX {
        match text.peek(end) {
            None | Some(b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\') => break,
            Some(byte) if byte.is_ascii_whitespace() => break,
            Some(_) => end += 1,
        }
    }
    let Some(host_at) = text.bytes[start..end].iter().rposition(|&byte| byte == b'@') else {
        return unescaped(text, start, end);
    };
    let user = &text.bytes[start..start + host_at];
    let end = start + host_at;
    let secret = |start, name: &str| Some(Finding { start, end, name: name.to_owned(), swallow: None });
    match user.iter().position(|&byte| byte == b':') {
        Some(colon) if user[..colon].len() >= TOKEN_BYTES_MIN && is_token(&user[..colon]) => secret(start, "URL_TOKEN"),
        Some(colon) => match &user[colon + 1..] {
            // A placeholder is not a secret.
            [] | [b'$' | b'{' | b'%' | b'*' | b'[' | b'<', ..] => None,
            password if password.starts_with("«".as_bytes()) => None,
            password if matches!(password, b"x-oauth-basic" | b"x") && !is_token(&user[..colon]) => None,
            _ => secret(start + colon + 1, "URL_PASSWORD"),
        },
        None if is_token(user) => secret(start, "URL_TOKEN"),
        None => None,
    }
}

/// Finds a password with a slash, a question mark or a hash in it, which should have been escaped. The authority seems to
/// end at `end`; what is behind its colon is no port.
fn unescaped(text: SearchedText<'_>, start: usize, end: usize) -> Option<Finding> {
    let colon = text.bytes[start..end].iter().position(|&byte| byte == b':')?;
    let password = start + colon + 1;
    let is_user = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'%' | b'+');
    let is_port = text.bytes[password..end].iter().all(u8::is_ascii_digit);
    let is_placeholder = matches!(text.bytes[password..end].first(), Some(b'$' | b'{' | b'[' | b'%' | b'*' | b'<'));
    let is_apart = matches!(text.peek(end), Some(b'/' | b'?' | b'#'));
    if !is_apart || is_port || is_placeholder || colon == 0 || !text.bytes[start..start + colon].iter().all(is_user) {
        return None;
    }
    let mut at = end;
    while at - start < AUTHORITY_BYTES_MAX {
        match text.peek(at) {
            Some(b'@') => break,
            Some(byte) if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\') => {
                at += 1
            }
            _ => return None,
        }
    }
    let has_host = text.peek(at + 1).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'[');
    let found = || Finding { start: password, end: at, name: "URL_PASSWORD".to_owned(), swallow: None };
    (text.bytes.get(at) == Some(&b'@') && has_host).then(found)
}

fn is_token(user: &[u8]) -> bool {
    user.len() >= TOKEN_BYTES_MIN
        && user.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~'))
        && user.iter().filter(|byte| byte.is_ascii_digit()).count() >= 2
        && user.iter().any(u8::is_ascii_alphabetic)
}

/// Finds the path of a web hook.
fn hook(text: SearchedText<'_>, start: usize) -> Option<Finding> {
    const PATH_BYTES_MIN: usize = 16;
    for hook in HOOKS {
        let mut same = 0;
        while same < hook.len() && text.peek(start + same) == Some(hook[same]) {
            same += 1;
        }
        if same < hook.len() {
            continue;
        }
        let path = start + same;
        for at in path..path + PATH_BYTES_MIN {
            if !text.peek(at).is_some_and(is_path) {
                return None;
            }
        }
        let end = path + PATH_BYTES_MIN;
        return Some(Finding { start: path, end, name: "WEBHOOK".to_owned(), swallow: Some(Swallow::While(is_path)) });
    }
    None
}

fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'%' | b'?' | b'=' | b'&' | b'.')
}
