//! Finds secrets that are the value of a command's option: `--token value`, `-u user:password`, `sshpass -p password`.

use std::cell::Cell;

use super::finding::Finding;
use super::names::{self, NAME_BYTES_MAX, SecretKind};
use super::plausible::Form;
use super::searched_text::SearchedText;
use super::value::Value;

/// Finds the secret after the option that begins at this place.
pub(super) fn judge(text: SearchedText<'_>, at: usize) -> Option<Finding> {
    let mut end = at + 1;
    while end - at <= NAME_BYTES_MAX {
        match text.peek(end) {
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
        return None;
    }
    let line = text.before(at);
    let kind = option_kind(name, line)?;
    let is_glued = match text.peek(end) {
        Some(b' ') => false,
        Some(b'=') | None => return None,
        Some(byte) if is_short && !byte.is_ascii_whitespace() => true,
        Some(_) => return None,
    };
    if matches!(kind, OptionKind::Glued) && !is_glued {
        return None;
    }
    let start = end + usize::from(!is_glued);
    // A help text has more blanks there.
    if matches!(text.peek(start), Some(b' ' | b'-') | None) {
        return None;
    }
    let value = Value::at(text, start)?;
    kind.masked(text, name, value, is_short)
}

/// The meaning of an option's value.
#[derive(Debug, Clone, Copy)]
enum OptionKind {
    Secret(SecretKind),
    /// `user:password`
    User,
    /// A password directly after the option's letter.
    Glued,
}

/// The meaning of the value of the option `name`; `line` is the text before it.
fn option_kind(name: &[u8], line: &[u8]) -> Option<OptionKind> {
    // A line that ends with a backslash goes on.
    let ends = |at: &usize| match line[*at] {
        b'\n' => !line[..*at].ends_with(b"\\"),
        byte => matches!(byte, b'|' | b';'),
    };
    let start = (0..line.len()).rfind(ends).map_or(0, |at| at + 1);
    let separates = |byte: &u8| byte.is_ascii_whitespace() || b"/'\"`()[]{}&@\\,".contains(byte);
    let command = |names: &[&[u8]]| line[start..].split(separates).any(|word| names.contains(&word));
    match name {
        b"-u" | b"-U" | b"--user" | b"--proxy-user" | b"--creds" => Some(OptionKind::User),
        b"-p" if command(&[b"sshpass"]) => Some(OptionKind::Secret(SecretKind::Password)),
        // With a blank, the next word is the name of a database.
        b"-p" if command(&[b"mysql", b"mysqldump", b"mysqladmin", b"mariadb", b"mariadb-dump"]) => {
            Some(OptionKind::Glued)
        }
        b"-p" if command(&[b"docker", b"podman", b"helm", b"skopeo", b"buildah", b"az"]) && command(&[b"login"]) => {
            Some(OptionKind::Secret(SecretKind::Password))
        }
        b"-a" if command(&[b"http", b"https", b"xh"]) => Some(OptionKind::User),
        b"-a" if command(&[b"redis-cli"]) => Some(OptionKind::Secret(SecretKind::Password)),
        [b'-', b'-', ..] => match names::kind(name)? {
            SecretKind::Cookie => Some(OptionKind::Secret(SecretKind::Weak)),
            kind => Some(OptionKind::Secret(kind)),
        },
        _ => None,
    }
}

impl OptionKind {
    fn masked(self, text: SearchedText<'_>, name: &[u8], value: Value, is_short: bool) -> Option<Finding> {
        match self {
            Self::Glued => value.masked(text, b"PASSWORD", SecretKind::Password, Form::Argument),
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
                Value { start: password, ..value }.masked(text, b"PASSWORD", SecretKind::Password, Form::Argument)
            }
        }
    }
}

/// Finds the secret in an argument after the arguments `previous`: the place where it begins, and its name.
pub(super) fn argument(previous: &[&[u8]], argument: &[u8]) -> Option<(usize, String)> {
    let is_short = Cell::new(false);
    let text = SearchedText::new(argument, &is_short);
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
        if let Some(SecretKind::Password | SecretKind::Token) = names::kind(name).filter(|_| names::is_name(name)) {
            let found = value(0).masked(text, name, SecretKind::Token, Form::Spaced)?;
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
