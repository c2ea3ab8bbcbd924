//! Edits TOML that belongs to other programs: finds headers and keys, and skips values without reading them.
//!
//! Invariant: an edit changes one pair. All other pairs have the same keys and the same text before and after it.

use std::ops::Range;

use super::lines::{before_appended, indentation, line_end, line_start, next_line};
use super::{Setting, SettingChange, SettingEdit, SettingValue, SettingsError, Splice, applied, reverted_lines};
use crate::text::toml::{self, TomlCursor, TomlProblem};

/// A pair of a key and a value on a line of its own.
#[derive(Debug)]
struct TomlPair {
    /// All keys that lead to it.
    keys: Vec<String>,
    /// The number of these keys that the table's header has.
    header: usize,
    start: usize,
    value: Range<usize>,
}

#[derive(Debug)]
struct TomlHeader {
    keys: Vec<String>,
    /// The header has `[[` and `]]`.
    is_list: bool,
    start: usize,
}

#[derive(Debug, Default)]
struct TomlOutline {
    headers: Vec<TomlHeader>,
    pairs: Vec<TomlPair>,
}

impl TomlOutline {
    fn read(text: &str) -> Result<Self, SettingsError> {
        Self::outline(text).map_err(|wrong| SettingsError::at(text, wrong.at, wrong.problem))
    }

    fn outline(text: &str) -> Result<Self, TomlProblem> {
        let (mut cursor, mut outline) = (TomlCursor::new(text), Self::default());
        while cursor.next_line() {
            let start = cursor.at;
            if cursor.take("[") {
                let is_list = cursor.take("[");
                let keys = cursor.key()?;
                if !cursor.take(if is_list { "]]" } else { "]" }) || !cursor.is_at_line_end() {
                    return Err(cursor.wrong("the header of a table is not valid"));
                }
                outline.headers.push(TomlHeader { keys, is_list, start });
                continue;
            }
            let section = outline.headers.last().map_or(&[][..], |header| &header.keys);
            let (keys, header) = ([section, &cursor.key()?].concat(), section.len());
            let value = pass_value(&mut cursor)?;
            outline.pairs.push(TomlPair { keys, header, start, value });
        }
        Ok(outline)
    }

    fn pair(&self, setting: &Setting) -> Option<&TomlPair> {
        self.pairs.iter().find(|pair| pair.keys == setting.keys)
    }

    /// The place that keeps a pair out of the table of this setting, and the problem there.
    fn obstacle(&self, setting: &Setting) -> Option<(usize, String)> {
        let (keys, table) = (&setting.keys, setting.table());
        let pairs = self.pairs.iter().map(|pair| (pair.start, &pair.keys, keys.starts_with(&pair.keys)));
        let lists = self
            .headers
            .iter()
            .map(|header| (header.start, &header.keys, header.is_list && keys.starts_with(&header.keys)));
        if let Some((at, other, _)) =
            pairs.chain(lists).find(|(_, other, is_above)| *is_above || other.starts_with(keys))
        {
            return Some((at, format!("`{}` is written in a way that rexec does not extend", other.join("."))));
        }
        let again = self.headers.iter().filter(|header| header.keys == table).nth(1)?;
        Some((again.start, format!("the table `{}` is there twice", table.join("."))))
    }

    /// The line for a setting, in its table or after a new one.
    fn insertion(&self, text: &str, setting: &Setting) -> SettingEdit {
        let (table, end) = (setting.table(), line_end(text));
        let edit = |at, added, made| SettingEdit { splices: vec![Splice::insert(at, added)], was: None, made };
        if let Some(header) = self.headers.iter().find(|header| header.keys == table) {
            let at = next_line(text, header.start);
            let before = if text[..at].ends_with('\n') { "" } else { end };
            let line = line(indentation(text, header.start), &setting.keys[table.len()..], setting);
            return edit(at, format!("{before}{line}{end}"), 0);
        }
        // A table made by dotted keys cannot have a header.
        if let Some(pair) = self.pairs.iter().find(|pair| pair.header < table.len() && pair.keys.starts_with(table)) {
            let line = line(indentation(text, pair.start), &setting.keys[pair.header..], setting);
            return edit(pair.start - indentation(text, pair.start).len(), format!("{line}{end}"), 0);
        }
        let lines = lines(std::slice::from_ref(setting)).replace('\n', end);
        edit(text.len(), before_appended(text) + &lines, 1)
    }

    /// The lines of a setting, with the header that was made for it if nothing else is below that.
    fn removal(&self, text: &str, pair: &TomlPair, edit: &SettingEdit) -> Splice {
        if let Some(was) = &edit.was {
            return Splice::replace(text, pair.value.clone(), was.clone());
        }
        let mut lines = line_start(text, pair.start)..next_line(text, pair.value.end);
        let next = self.headers.iter().find(|header| header.start > pair.start);
        let next = next.map_or(text.len(), |header| line_start(text, header.start));
        if let Some(header) = self.headers.iter().rfind(|header| edit.made > 0 && header.start < pair.start) {
            // No comment either.
            let rest = [&text[next_line(text, header.start)..lines.start], &text[lines.end..next]].concat();
            if rest.trim().is_empty() && header.keys.len() + 1 == pair.keys.len() {
                lines.start = line_start(text, header.start);
                // The empty line that was put before it.
                let before = text[..lines.start].strip_suffix(line_end(text)).filter(|before| before.ends_with('\n'));
                lines.start = before.map_or(lines.start, str::len);
            }
        }
        Splice::replace(text, lines, "")
    }

    /// All pairs, as their keys and the text of their values.
    fn facts<'t>(&self, text: &'t str) -> Vec<(&[String], &'t str)> {
        self.pairs.iter().map(|pair| (&pair.keys[..], &text[pair.value.clone()])).collect()
    }
}

pub(super) fn set(text: &str, setting: &Setting, force: bool) -> Result<SettingChange, SettingsError> {
    let outline = TomlOutline::read(text)?;
    let edit = match outline.pair(setting) {
        Some(pair) if is_value(&text[pair.value.clone()], &setting.value) => return Ok(SettingChange::Same),
        Some(pair) if !force => return Ok(SettingChange::Taken(text[pair.value.clone()].to_owned())),
        Some(pair) => SettingEdit {
            splices: vec![Splice::replace(text, pair.value.clone(), written(&setting.value))],
            was: Some(text[pair.value.clone()].to_owned()),
            made: 0,
        },
        None => match outline.obstacle(setting) {
            Some((at, problem)) => return Err(SettingsError::at(text, at, problem)),
            None => outline.insertion(text, setting),
        },
    };
    match applied(text, &edit.splices).filter(|after| differ_by(after, text, setting, edit.was.as_deref())) {
        Some(_) => Ok(SettingChange::Edit(edit)),
        None => Err(SettingsError::at(text, 0, "the text is written in a way that rexec does not know")),
    }
}

/// Returns the text without the setting, or `None` if it is gone.
pub(super) fn undo(text: &str, setting: &Setting, edit: &SettingEdit) -> Result<Option<String>, SettingsError> {
    let outline = TomlOutline::read(text)?;
    let reverted = reverted_lines(text, edit);
    let Some(pair) = outline.pair(setting).filter(|pair| is_value(&text[pair.value.clone()], &setting.value)) else {
        // In an inline table, where an earlier release has put it.
        return Ok(reverted.filter(|after| {
            let after = TomlOutline::read(after);
            after.is_ok_and(|after| {
                after.pairs.iter().map(|pair| &pair.keys).eq(outline.pairs.iter().map(|pair| &pair.keys))
            })
        }));
    };
    let by_key = applied(text, &[outline.removal(text, pair, edit)]);
    let is_right = |after: &String| differ_by(text, after, setting, edit.was.as_deref());
    match reverted.into_iter().chain(by_key).find(is_right) {
        Some(after) => Ok(Some(after)),
        None => {
            Err(SettingsError::at(text, pair.start, format!("`{}` cannot be removed without harm", setting.shown())))
        }
    }
}

pub(super) fn holds(text: &str, setting: &Setting) -> Result<bool, SettingsError> {
    let outline = TomlOutline::read(text)?;
    Ok(outline.pair(setting).is_some_and(|pair| is_value(&text[pair.value.clone()], &setting.value)))
}

/// Returns true if the two texts differ only by the setting: one lacks it, or has it with the value that it `was`.
fn differ_by(with: &str, without: &str, setting: &Setting, was: Option<&str>) -> bool {
    let (Ok(first), Ok(second)) = (TomlOutline::read(with), TomlOutline::read(without)) else { return false };
    let mut facts = first.facts(with);
    let Some(at) = facts.iter().position(|(keys, value)| *keys == setting.keys && is_value(value, &setting.value))
    else {
        return false;
    };
    match was {
        Some(was) => facts[at].1 = was,
        None => {
            facts.remove(at);
        }
    }
    facts == second.facts(without)
}

/// The settings as lines of tables, also for a person to paste.
pub(super) fn lines(settings: &[Setting]) -> String {
    let (mut lines, mut open) = (String::new(), None);
    for setting in settings {
        let table = setting.table();
        if open.replace(table) != Some(table) {
            lines += &format!("[{}]\n", dotted(table));
        }
        lines += &format!("{}\n", line("", &setting.keys[table.len()..], setting));
    }
    lines
}

fn line(indent: &str, keys: &[String], setting: &Setting) -> String {
    format!("{indent}{} = {}", dotted(keys), written(&setting.value))
}

fn written(value: &SettingValue) -> String {
    match value {
        SettingValue::False => "false".to_owned(),
        // DEL is the one character that JSON's strings may have and those of TOML may not.
        SettingValue::Text(text) => serde_json::Value::from(text.as_str()).to_string().replace('\u{7f}', "\\u007f"),
    }
}

/// Returns true if the written value is the wanted one.
fn is_value(written: &str, value: &SettingValue) -> bool {
    match value {
        SettingValue::False => written == "false",
        SettingValue::Text(text) => decoded(written) == *text,
    }
}

/// The text of a string on one line. What is not valid stays as it is written.
fn decoded(written: &str) -> String {
    toml::decoded(written).unwrap_or_else(|| written.to_owned())
}

/// Keys as they are written.
fn dotted(keys: &[String]) -> String {
    let is_bare = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let written = keys.iter().map(|key| match is_bare(key) {
        true => key.clone(),
        false => written(&SettingValue::Text(key.clone())),
    });
    written.collect::<Vec<_>>().join(".")
}

/// Passes `=` and a value, to the end of the line that the value ends on. Returns where the value is.
fn pass_value(cursor: &mut TomlCursor<'_>) -> Result<Range<usize>, TomlProblem> {
    if !cursor.take("=") {
        return Err(cursor.wrong("`=` is missing"));
    }
    cursor.skip(&[' ', '\t']);
    let (start, mut depth) = (cursor.at, 0_usize);
    while let Some(c) = cursor.rest().chars().next() {
        match c {
            '"' | '\'' => {
                cursor.string()?;
                continue;
            }
            '\n' | '#' if depth == 0 => break,
            '#' => {
                cursor.skip_line();
                continue;
            }
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.checked_sub(1).ok_or_else(|| cursor.wrong("a bracket was not opened"))?,
            _ => {}
        }
        cursor.at += c.len_utf8();
    }
    let end = start + cursor.text[start..cursor.at].trim_end().len();
    match () {
        () if depth > 0 => Err(cursor.wrong("a bracket is not closed")),
        () if start == end => Err(cursor.wrong("a value is missing")),
        () => {
            cursor.skip_line();
            Ok(start..end)
        }
    }
}
