//! TOML: pairs of tables, of inline tables, and with dotted keys.

use std::ops::Range;

use super::lines::{before_appended, indentation, line_end, line_start, next_line};
use super::toml_names::TomlNames;
use super::toml_text::TomlCursor;
use super::{Fact, Setting, SettingChange, SettingEdit, SettingsError, Splice, is_value, written};
use crate::text::settings::SettingsFormat;

/// A pair of a key and a value.
#[derive(Debug)]
struct TomlPair {
    /// All keys that lead to it.
    keys: Vec<String>,
    /// How many of them are those of the table's header.
    header: usize,
    /// From its key to the end of its value.
    range: Range<usize>,
    value: Range<usize>,
    /// Where the braces are if the value is an inline table, and whether there is nothing in it.
    table: Option<(Range<usize>, bool)>,
    is_inline: bool,
}

/// The header of a table.
#[derive(Debug)]
struct TomlHeader {
    keys: Vec<String>,
    is_list: bool,
    /// The header's line, with its end.
    line: Range<usize>,
}

#[derive(Debug, Default)]
struct TomlDocument {
    headers: Vec<TomlHeader>,
    pairs: Vec<TomlPair>,
}

fn read(text: &str) -> Result<TomlDocument, SettingsError> {
    let (mut cursor, mut names) = (TomlCursor { text, at: 0 }, TomlNames::default());
    let (mut document, mut section) = (TomlDocument::default(), Vec::new());
    loop {
        cursor.lines();
        let start = cursor.at;
        if cursor.rest().is_empty() {
            return Ok(document);
        }
        if cursor.take("[") {
            let is_list = cursor.take("[");
            let keys = cursor.key()?;
            if !cursor.take(if is_list { "]]" } else { "]" }) {
                return Err(cursor.wrong("`]` is missing"));
            }
            names.header(&keys, is_list).map_err(|problem| SettingsError::at(text, start, problem))?;
            cursor.end_of_line()?;
            section.clone_from(&keys);
            document.headers.push(TomlHeader { keys, is_list, line: line_start(text, start)..cursor.at });
            continue;
        }
        let keys = [section.clone(), cursor.key()?].concat();
        names.pair(&keys, section.len()).map_err(|problem| SettingsError::at(text, start, problem))?;
        if !cursor.take("=") {
            return Err(cursor.wrong("`=` is missing"));
        }
        cursor.blanks();
        pair(&mut cursor, &mut document, keys, section.len(), start)?;
        cursor.end_of_line()?;
    }
}

/// Reads a pair's value. The pairs of an inline table follow it.
fn pair(
    cursor: &mut TomlCursor<'_>,
    document: &mut TomlDocument,
    keys: Vec<String>,
    header: usize,
    start: usize,
) -> Result<(), SettingsError> {
    let from = cursor.at;
    if !cursor.rest().starts_with('{') {
        cursor.value(0)?;
        let (range, value) = (start..cursor.at, from..cursor.at);
        document.pairs.push(TomlPair { keys, header, range, value, table: None, is_inline: false });
        return Ok(());
    }
    let (text, mut inner) = (cursor.text, Vec::new());
    let is_empty = cursor.table(0, |key, start, value| inner.push((key, start, value)))?;
    let value = from..cursor.at;
    let table = Some((value.clone(), is_empty));
    document.pairs.push(TomlPair {
        keys: keys.clone(),
        header,
        range: start..cursor.at,
        value,
        table,
        is_inline: false,
    });
    for (key, start, value) in inner {
        let first = document.pairs.len();
        let mut nested = TomlCursor { text, at: value.start };
        pair(&mut nested, document, [keys.clone(), key].concat(), header, start)?;
        document.pairs[first].is_inline = true;
    }
    Ok(())
}

pub(super) fn facts(text: &str) -> Result<Vec<Fact>, SettingsError> {
    let document = read(text)?;
    let pairs = document.pairs.iter().filter(|pair| pair.table.is_none());
    Ok(pairs.map(|pair| (pair.keys.clone(), text[pair.value.clone()].to_owned())).collect())
}

pub(super) fn set(text: &str, setting: &Setting, force: bool) -> Result<SettingChange, SettingsError> {
    let document = read(text)?;
    let (keys, value) = (&setting.keys, written(&setting.value));
    if let Some(pair) = document.pairs.iter().rfind(|pair| pair.keys == *keys) {
        let was = text[pair.value.clone()].to_owned();
        if is_value(SettingsFormat::Toml, &was, &setting.value) {
            return Ok(SettingChange::Same);
        }
        if !force {
            return Ok(SettingChange::Taken(was));
        }
        let splices = vec![Splice::replace(text, pair.value.clone(), value)];
        return Ok(SettingChange::Edit(SettingEdit { splices, was: Some(was), made: 0 }));
    }
    let is_above = |pair: &&TomlPair| pair.keys.len() < keys.len() && keys.starts_with(&pair.keys);
    if let Some(pair) = document.pairs.iter().find(|pair| is_above(pair) && pair.table.is_none()) {
        let problem = format!("`{}` is not a table", pair.keys.join("."));
        return Err(SettingsError::at(text, pair.range.start, problem));
    }
    if let Some(list) = document.headers.iter().find(|header| header.is_list && keys.starts_with(&header.keys)) {
        let problem = format!("`{}` is a list of tables", list.keys.join("."));
        return Err(SettingsError::at(text, list.line.start, problem));
    }
    let pairs = document.pairs.iter().map(|pair| (&pair.keys, pair.range.start));
    let tables = document.headers.iter().map(|header| (&header.keys, header.line.start));
    if let Some((_, at)) = pairs.chain(tables).find(|(other, _)| other.starts_with(keys)) {
        return Err(SettingsError::at(text, at, format!("`{}` is a table", keys.join("."))));
    }
    // Which of these there is decides how the rest of the file has to be written.
    let above = document.pairs.iter().filter(is_above).max_by_key(|pair| pair.keys.len());
    let edit = match above {
        Some(pair) => into_inline(text, pair, keys, &value),
        None => into_table(text, &document, keys, &value),
    };
    Ok(SettingChange::Edit(edit))
}

fn into_inline(text: &str, pair: &TomlPair, keys: &[String], value: &str) -> SettingEdit {
    let (table, is_empty) = pair.table.clone().expect("only tables are above a setting");
    let added = format!("{} = {value}", dotted(&keys[pair.keys.len()..]));
    let at = table.end - 1;
    let inside = &text[table.start + 1..at];
    let end = table.start + 1 + inside.trim_end().len();
    let splice = match is_empty {
        true => Splice::replace(text, table.start + 1..at, format!(" {added} ")),
        false if inside.trim_end().ends_with(',') => Splice::insert(end, format!(" {added},")),
        false => Splice::insert(end, format!(", {added}")),
    };
    SettingEdit { splices: vec![splice], was: None, made: 0 }
}

fn into_table(text: &str, document: &TomlDocument, keys: &[String], value: &str) -> SettingEdit {
    let end = line_end(text);
    let (table, key) = (&keys[..keys.len() - 1], &keys[keys.len() - 1]);
    let edit = |splice, made| SettingEdit { splices: vec![splice], was: None, made };
    let header = document.headers.iter().find(|header| header.keys == table);
    let in_header = |pair: &&TomlPair| !pair.is_inline && pair.header == table.len() && pair.keys.starts_with(table);
    let last = document.pairs.iter().rfind(|pair| {
        in_header(pair)
            && header.is_some_and(|header| next_header(document, header).is_none_or(|next| pair.range.start < next))
    });
    if let Some(header) = header {
        let last = last.filter(|pair| pair.range.start > header.line.start);
        let (line, indent) = match last {
            Some(pair) => (next_line(text, pair.range.end), indentation(text, pair.range.start)),
            None => (header.line.end, indentation(text, header.line.start)),
        };
        return edit(line_at(text, line, &format!("{indent}{} = {value}", dotted(std::slice::from_ref(key))), end), 0);
    }
    // A table that dotted keys have made cannot be opened by a header.
    let is_sibling = |pair: &&TomlPair| {
        !pair.is_inline && pair.header < table.len() && pair.keys.len() > table.len() && pair.keys.starts_with(table)
    };
    if let Some(pair) = document.pairs.iter().rfind(is_sibling) {
        let line = next_line(text, pair.range.end);
        let added = format!("{}{} = {value}", indentation(text, pair.range.start), dotted(&keys[pair.header..]));
        return edit(line_at(text, line, &added, end), 0);
    }
    let before = before_appended(text);
    let added = format!("{before}[{}]{end}{} = {value}{end}", dotted(table), dotted(std::slice::from_ref(key)));
    edit(Splice::insert(text.len(), added), 1)
}

fn next_header(document: &TomlDocument, header: &TomlHeader) -> Option<usize> {
    document.headers.iter().map(|header| header.line.start).find(|start| *start > header.line.start)
}

/// A line of its own at the beginning of a line, or behind the last one.
fn line_at(text: &str, at: usize, line: &str, end: &str) -> Splice {
    match text[..at].ends_with('\n') {
        true => Splice::insert(at, format!("{line}{end}")),
        false => Splice::insert(at, format!("{end}{line}")),
    }
}

/// Keys as they are written.
fn dotted(keys: &[String]) -> String {
    let is_bare = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let written = keys.iter().map(|key| match is_bare(key) {
        true => key.clone(),
        false => written(&super::SettingValue::Text(key.clone())),
    });
    written.collect::<Vec<_>>().join(".")
}

/// The settings as lines of tables, for a person to paste.
pub(super) fn lines(settings: &[Setting]) -> String {
    let (mut lines, mut open) = (String::new(), None);
    for setting in settings {
        let (key, table) = setting.keys.split_last().expect("a setting has a key");
        if open.replace(table) != Some(table) {
            lines += &format!("[{}]\n", dotted(table));
        }
        lines += &format!("{} = {}\n", dotted(std::slice::from_ref(key)), written(&setting.value));
    }
    lines
}

/// The splices that take a setting out of a text that others have edited.
pub(super) fn unset(text: &str, setting: &Setting, edit: &SettingEdit) -> Result<Vec<Splice>, SettingsError> {
    let document = read(text)?;
    let Some(at) = document.pairs.iter().rposition(|pair| pair.keys == setting.keys) else { return Ok(Vec::new()) };
    let pair = &document.pairs[at];
    if let Some(was) = &edit.was {
        return Ok(vec![Splice::replace(text, pair.value.clone(), was.clone())]);
    }
    if pair.is_inline {
        return Ok(vec![without_comma(text, pair.range.clone())]);
    }
    let mut lines = line_start(text, pair.range.start)..next_line(text, pair.range.end);
    let header = document.headers.iter().rfind(|header| header.line.end <= lines.start);
    let is_ours = |header: &&TomlHeader| {
        let next = next_header(&document, header).unwrap_or(text.len());
        // Nothing else may be left below it, and no comment either.
        let rest = [&text[header.line.end..lines.start], &text[lines.end..next]].concat();
        edit.made > 0 && header.keys.len() + 1 == setting.keys.len() && rest.trim().is_empty()
    };
    if let Some(header) = header.filter(is_ours) {
        lines.start = header.line.start;
        let before = text[..lines.start].strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
        // The empty line that was put before it.
        if let Some(before) = before.filter(|before| before.ends_with('\n')) {
            lines.start = before.len();
        }
    }
    Ok(vec![Splice::replace(text, lines, "")])
}

/// Takes a pair out of an inline table, with one of the commas beside it.
fn without_comma(text: &str, pair: Range<usize>) -> Splice {
    let (before, behind) = (text[..pair.start].trim_end(), text[pair.end..].trim_start());
    match (before.strip_suffix(','), behind.strip_prefix(',')) {
        (Some(before), _) => Splice::replace(text, before.len()..pair.end, ""),
        (None, Some(behind)) => Splice::replace(text, pair.start..text.len() - behind.trim_start().len(), ""),
        (None, None) => Splice::replace(text, before.len()..text.len() - behind.len(), ""),
    }
}
