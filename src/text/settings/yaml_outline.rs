//! The keys at the top of a YAML file that people write: a block mapping, whose values may be of any kind.
//!
//! A file is refused where what it says at this level is not YAML, or is not a mapping in lines. What stands below a key is
//! passed, and only quotes and brackets that have no end are noticed.

use std::ops::Range;

use super::SettingsError;
use super::lines::next_line;

/// A key, as it is written, and its line with its end.
#[derive(Debug)]
pub(super) struct YamlKey<'t> {
    pub(super) name: &'t str,
    pub(super) line: Range<usize>,
}

/// What the lines below a key may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum YamlBelow {
    /// There is no key yet.
    Nothing,
    /// Items, or a mapping.
    Anything,
    /// More of the value's text.
    Text,
    /// The lines of a block of text.
    Block,
}

/// All keys of the top level, in their order.
pub(super) fn keys(text: &str) -> Result<Vec<YamlKey<'_>>, SettingsError> {
    let (mut keys, mut below, mut at) = (Vec::new(), YamlBelow::Nothing, 0);
    while at < text.len() {
        let (start, end) = (at, next_line(text, at));
        at = end;
        let line = text[start..end].trim_end();
        let wrong = |problem: &str| Err(SettingsError::at(text, start, problem));
        match line.trim_start().chars().next() {
            None | Some('#') => continue,
            _ if line.starts_with('\t') => return wrong("a tab cannot indent in YAML"),
            _ if line.starts_with(' ') => match below {
                YamlBelow::Nothing => return wrong("the first line is indented"),
                YamlBelow::Text if colon(without_comment(line)).is_some() => {
                    return wrong("a mapping is below a value");
                }
                _ => continue,
            },
            Some('{' | '[') => return wrong("the settings are not written as lines"),
            Some('%') if keys.is_empty() => continue,
            _ if line == "---" && keys.is_empty() => continue,
            _ if line == "..." && has_ended(&text[end..]) => break,
            _ if ["---", "..."].contains(&line) => return wrong("there is more than one document"),
            _ if line == "-" || line.starts_with("- ") => match below {
                YamlBelow::Anything => continue,
                _ => return wrong("an item is in no list"),
            },
            Some('?') => return wrong("the key is written in a way that rexec does not know"),
            Some(_) => {}
        }
        let Some(colon) = colon(line) else { return wrong("a key with a colon is missing") };
        keys.push(YamlKey { name: line[..colon].trim_end(), line: start..end });
        (below, at) = value(text, start + colon + 1, end)?;
    }
    Ok(keys)
}

/// Whether only comments follow a document's end.
fn has_ended(rest: &str) -> bool {
    rest.lines().all(|line| line.trim_start().is_empty() || line.starts_with('#'))
}

/// Where a further key goes: before the line that ends the document, if there is one.
pub(super) fn end(text: &str) -> usize {
    let mut at = 0;
    while at < text.len() {
        let next = next_line(text, at);
        if text[at..next].trim_end() == "..." && has_ended(&text[next..]) {
            return at;
        }
        at = next;
    }
    text.len()
}

/// Where the colon behind a line's first key is.
fn colon(line: &str) -> Option<usize> {
    let is_quoted = line.starts_with(['"', '\'']);
    let from = if is_quoted { quoted(line)? } else { 0 };
    let is_end = |at: &usize| line[at + 1..].chars().next().is_none_or(char::is_whitespace);
    let at = line[from..].match_indices(':').map(|(at, _)| from + at).find(is_end)?;
    (!is_quoted || line[from..at].trim().is_empty()).then_some(at)
}

/// How long the quoted text is that begins here.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && quote == '"' && !is_escaped;
        is_end
    });
    end.map(|(at, _)| at + 1)
}

/// What follows a value that begins in the line up to `end`, and where that is.
fn value(text: &str, from: usize, end: usize) -> Result<(YamlBelow, usize), SettingsError> {
    let written = without_comment(&text[from..end]).trim();
    let start = from + text[from..].find(written).unwrap_or(0);
    let wrong = |problem: &str| Err(SettingsError::at(text, start, problem));
    match written.chars().next() {
        None => Ok((YamlBelow::Anything, end)),
        Some('|' | '>') => Ok((YamlBelow::Block, end)),
        Some('&' | '!' | '*') => Ok((YamlBelow::Anything, end)),
        Some('@' | '`' | '%') => wrong("a value that begins like this needs quotes"),
        Some('"' | '\'') => match quoted(&text[start..]) {
            Some(length) => Ok((YamlBelow::Text, next_line(text, start + length))),
            None => wrong("a text has no end"),
        },
        Some('[' | '{') => match bracketed(&text[start..]) {
            Some(length) => Ok((YamlBelow::Text, next_line(text, start + length))),
            None => wrong("a bracket is not closed"),
        },
        Some(_) if colon(written).is_some() => wrong("a value with a colon and a blank in it needs quotes"),
        Some(_) => Ok((YamlBelow::Text, end)),
    }
}

/// How long the list or mapping in brackets is that begins here.
pub(super) fn bracketed(text: &str) -> Option<usize> {
    let (mut depth, mut at, mut before) = (0_usize, 0, ' ');
    while let Some(c) = text[at..].chars().next() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            '"' | '\'' if !before.is_alphanumeric() => at += quoted(&text[at..])? - 1,
            '#' if before.is_whitespace() => at += text[at..].find('\n')? - 1,
            _ => {}
        }
        at += c.len_utf8();
        if depth == 0 {
            return Some(at);
        }
        before = c;
    }
    None
}

/// A line without the comment at its end.
pub(super) fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') && !before.is_alphanumeric() => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return &line[..at],
            _ => {}
        }
        before = c;
    }
    line
}
