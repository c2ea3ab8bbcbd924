//! YAML, as far as the settings of agents need it: a list at the top of a block mapping, whose items are `NAME=value`.
//!
//! What else the file holds is compared line by line and never read. A file whose list is written in a way that is not
//! known here is refused.

use std::ops::Range;

use super::lines::{before_appended, line_end, line_start, next_line};
use super::yaml_outline::{self, without_comment};
use super::{Fact, Setting, SettingChange, SettingEdit, SettingValue, SettingsError, Splice};

/// The list of this key.
#[derive(Debug)]
struct YamlList {
    /// The key's line, with its end.
    line: Range<usize>,
    items: Vec<Range<usize>>,
    /// Where the brackets are if it has some.
    brackets: Option<Range<usize>>,
    /// Where it says that there is no list.
    null: Option<Range<usize>>,
}

/// What an item says, without quotes.
pub(super) fn decoded(written: &str) -> String {
    let quoted = |quote| written.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    match (quoted('"'), quoted('\'')) {
        (Some(_), _) => serde_json::from_str(written).unwrap_or_else(|_| written.to_owned()),
        (_, Some(inside)) => inside.replace("''", "'"),
        _ => written.to_owned(),
    }
}

fn encoded(item: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.=+-".contains(c);
    if item.chars().all(is_plain) { item.to_owned() } else { super::written(&SettingValue::Text(item.to_owned())) }
}

fn find(text: &str, key: &str) -> Result<Option<YamlList>, SettingsError> {
    let mut found = yaml_outline::keys(text)?.into_iter().filter(|other| decoded(other.name) == key);
    let line = found.next().map(|key| key.line);
    match found.next() {
        Some(again) => Err(SettingsError::at(text, again.line.start, "the key is there twice")),
        None => line.map(|line| list(text, line)).transpose(),
    }
}

fn list(text: &str, line: Range<usize>) -> Result<YamlList, SettingsError> {
    let wrong = |at, problem: &str| Err(SettingsError::at(text, at, problem));
    let colon = line.start + text[line.clone()].find(':').expect("the line has the key and its colon");
    let value = without_comment(&text[colon + 1..line.end]);
    let from = colon + 1 + (value.len() - value.trim_start().len());
    let value = value.trim();
    if value.starts_with('[') {
        let Some(length) = yaml_outline::bracketed(&text[from..]) else {
            return wrong(from, "a bracket is not closed");
        };
        let inside = &text[from + 1..from + length - 1];
        if inside.contains(['[', ']', '{', '}', '#']) || inside.matches(['"', '\'']).count() % 2 == 1 {
            return wrong(from, "the list is written in a way that rexec does not know");
        }
        let (mut items, mut at) = (Vec::new(), from + 1);
        for item in inside.split(',') {
            let start = at + (item.len() - item.trim_start().len());
            if !item.trim().is_empty() {
                items.push(start..start + item.trim().len());
            }
            at += item.len() + 1;
        }
        return Ok(YamlList { line, items, brackets: Some(from..from + length), null: None });
    }
    let is_null = ["null", "Null", "NULL", "~"].contains(&value);
    if !value.is_empty() && !is_null {
        return wrong(from, "the value is not a list");
    }
    let null = is_null.then(|| from..from + value.len());
    let (mut items, mut at) = (Vec::new(), line.end);
    while at < text.len() {
        let end = next_line(text, at);
        let item = without_comment(&text[at..end]).trim_end();
        let start = at;
        at = end;
        match item.trim_start_matches(' ').strip_prefix('-') {
            _ if item.trim().is_empty() => {}
            Some(rest) if rest.starts_with(' ') && !rest.trim_start().starts_with(['|', '>', '&', '*', '!']) => {
                let from = start + item.len() - rest.trim_start().len();
                items.push(from..start + item.len());
            }
            None if !item.starts_with(' ') => break,
            _ => return wrong(start, "the list is written in a way that rexec does not know"),
        }
    }
    if is_null && !items.is_empty() {
        return wrong(line.start, "the list has a value and items");
    }
    Ok(YamlList { line, items, brackets: None, null })
}

pub(super) fn facts(text: &str) -> Result<Vec<Fact>, SettingsError> {
    let mut facts = Vec::new();
    // Items are facts by their key, and other lines by their text.
    let mut at = 0;
    let mut list: Option<YamlList> = None;
    while at < text.len() {
        let end = next_line(text, at);
        let line = text[at..end].trim_end();
        if let Some((name, _)) =
            line.split_once(':').filter(|(name, _)| !name.is_empty() && !name.starts_with([' ', '-', '#']))
        {
            list = find(text, &decoded(name.trim_end())).ok().flatten().filter(|list| list.line.start == at);
        }
        let items = list.iter().flat_map(|list| list.items.iter()).filter(|item| (at..end).contains(&item.start));
        let items: Vec<Fact> = items.map(|item| (vec![key_at(text, &list)], text[item.clone()].to_owned())).collect();
        let is_list = list.as_ref().is_some_and(|list| list.line.start == at);
        if items.is_empty() && !is_list && !line.trim().is_empty() {
            facts.push((Vec::new(), line.to_owned()));
        }
        facts.extend(items);
        at = end;
    }
    Ok(facts)
}

fn key_at(text: &str, list: &Option<YamlList>) -> String {
    let line = list.as_ref().map_or("", |list| &text[list.line.clone()]);
    decoded(line.split_once(':').map_or("", |(name, _)| name.trim_end()))
}

/// The part of an item up to its `=`.
fn name(item: &str) -> &str {
    item.split_once('=').map_or(item, |(name, _)| name)
}

pub(super) fn set(text: &str, setting: &Setting, force: bool) -> Result<SettingChange, SettingsError> {
    let SettingValue::Text(wanted) = &setting.value else { return Ok(SettingChange::Same) };
    let (key, end) = (&setting.keys[0], line_end(text));
    let edit = |splice, was, made| Ok(SettingChange::Edit(SettingEdit { splices: vec![splice], was, made }));
    let item = encoded(wanted);
    let Some(list) = find(text, key)? else {
        // Empty lines belong to a block of text that keeps those at its end.
        let keeps = text.ends_with('\n') && text.lines().any(|line| line.trim_end().ends_with('+'));
        let before = if keeps { String::new() } else { before_appended(&text[..yaml_outline::end(text)]) };
        let added = format!("{before}{key}:{end}  - {item}{end}");
        return edit(Splice::insert(yaml_outline::end(text), added), None, 1);
    };
    if let Some(taken) = list.items.iter().rfind(|range| name(&decoded(&text[(*range).clone()])) == name(wanted)) {
        let was = text[taken.clone()].to_owned();
        return match () {
            () if decoded(&was) == *wanted => Ok(SettingChange::Same),
            () if !force => Ok(SettingChange::Taken(was)),
            () => edit(Splice::replace(text, taken.clone(), item), Some(was), 0),
        };
    }
    match (&list.brackets, list.items.last()) {
        (Some(_), Some(last)) => edit(Splice::insert(last.end, format!(", {item}")), None, 0),
        (Some(brackets), None) => edit(Splice::insert(brackets.start + 1, item), None, 0),
        (None, Some(last)) => {
            let lead = &text[line_start(text, last.start)..last.start];
            edit(line_at(text, next_line(text, last.end), &format!("{lead}{item}"), end), None, 0)
        }
        (None, None) => match list.null {
            Some(null) => edit(Splice::replace(text, null, format!("[{item}]")), None, 0),
            None => edit(line_at(text, list.line.end, &format!("  - {item}"), end), None, 0),
        },
    }
}

fn line_at(text: &str, at: usize, line: &str, end: &str) -> Splice {
    match text[..at].ends_with('\n') {
        true => Splice::insert(at, format!("{line}{end}")),
        false => Splice::insert(at, format!("{end}{line}")),
    }
}

/// The settings as a list, for a person to paste.
pub(super) fn lines(settings: &[Setting]) -> String {
    let item = |setting: &Setting| match &setting.value {
        SettingValue::Text(text) => format!("{}:\n  - {}\n", setting.keys[0], encoded(text)),
        SettingValue::False => String::new(),
    };
    settings.iter().map(item).collect()
}

/// The splices that take an item out of a text that others have edited.
pub(super) fn unset(text: &str, setting: &Setting, edit: &SettingEdit) -> Result<Vec<Splice>, SettingsError> {
    let SettingValue::Text(wanted) = &setting.value else { return Ok(Vec::new()) };
    let Some(list) = find(text, &setting.keys[0])? else { return Ok(Vec::new()) };
    let Some(at) = list.items.iter().rposition(|item| decoded(&text[item.clone()]) == *wanted) else {
        return Ok(Vec::new());
    };
    let item = list.items[at].clone();
    if let Some(was) = &edit.was {
        return Ok(vec![Splice::replace(text, item, was.clone())]);
    }
    let range = match (&list.brackets, at.checked_sub(1)) {
        (Some(_), Some(before)) => list.items[before].end..item.end,
        (Some(_), None) => item.start..list.items.get(1).map_or(item.end, |next| next.start),
        (None, _) => line_start(text, item.start)..next_line(text, item.end),
    };
    let mut splices = vec![Splice::replace(text, range, "")];
    if edit.made > 0 && list.items.len() == 1 && list.brackets.is_none() {
        splices.push(Splice::replace(text, list.line, ""));
    }
    Ok(splices)
}
