//! JSON (RFC 8259), and the JSON with comments and trailing commas that some agents read: members of its objects.

mod scan;

use std::ops::Range;

use super::lines::{indentation, line_end};
use super::{Fact, Setting, SettingChange, SettingEdit, SettingsError, Splice, written};
use scan::{Json, JsonMember, JsonObject};

pub(super) use scan::{decoded, is_number};

/// One step of indentation where the text shows none.
const STEP: &str = "  ";

pub(super) fn facts(text: &str, is_strict: bool) -> Result<Vec<Fact>, SettingsError> {
    let mut facts = Vec::new();
    if let Some(root) = scan::root(text, is_strict)? {
        collect(text, &root, &mut Vec::new(), &mut facts);
    }
    Ok(facts)
}

fn collect(text: &str, object: &JsonObject, keys: &mut Vec<String>, facts: &mut Vec<Fact>) {
    for member in &object.members {
        keys.push(member.key.clone());
        match &member.value {
            Json::Object(inner) => collect(text, inner, keys, facts),
            Json::Other(range) => facts.push((keys.clone(), text[range.clone()].to_owned())),
        }
        keys.pop();
    }
}

pub(super) fn set(text: &str, is_strict: bool, setting: &Setting, force: bool) -> Result<SettingChange, SettingsError> {
    let value = written(&setting.value);
    let Some(root) = scan::root(text, is_strict)? else {
        let end = line_end(text);
        let member = nested(&setting.keys, &value, Some(STEP), STEP, ": ", end);
        // A comment without an end of its line would go on.
        let before = if text.is_empty() || text.ends_with('\n') { "" } else { end };
        let splices = vec![Splice::insert(text.len(), format!("{before}{{{end}{STEP}{member}{end}}}{end}"))];
        return Ok(SettingChange::Edit(SettingEdit { splices, was: None, made: setting.keys.len() - 1 }));
    };
    let (mut object, mut keys) = (&root, &setting.keys[..]);
    while let Some(member) = object.last(&keys[0]) {
        let range = member.value.range();
        match &member.value {
            Json::Object(inner) if keys.len() > 1 => (object, keys) = (inner, &keys[1..]),
            Json::Other(_) if keys.len() == 1 && decoded(&text[range.clone()]) == decoded(&value) => {
                return Ok(SettingChange::Same);
            }
            _ if keys.len() > 1 => {
                let problem = format!("`{}` is not an object", keys[0]);
                return Err(SettingsError::at(text, range.start, problem));
            }
            _ if force => {
                let was = Some(text[range.clone()].to_owned());
                let splices = vec![Splice::replace(text, range, value)];
                return Ok(SettingChange::Edit(SettingEdit { splices, was, made: 0 }));
            }
            _ => return Ok(SettingChange::Taken(text[range].to_owned())),
        }
    }
    let splices = insert(text, &root, object, keys, &value);
    Ok(SettingChange::Edit(SettingEdit { splices, was: None, made: keys.len() - 1 }))
}

/// A member, or nested objects with one member each. `indent` is that of the line it begins on, or `None` for one line.
fn nested(keys: &[String], value: &str, indent: Option<&str>, step: &str, colon: &str, end: &str) -> String {
    let key = written(&super::SettingValue::Text(keys[0].clone()));
    if keys.len() == 1 {
        return format!("{key}{colon}{value}");
    }
    let inner = indent.map(|indent| format!("{indent}{step}"));
    let member = nested(&keys[1..], value, inner.as_deref(), step, colon, end);
    match (indent, inner) {
        (Some(indent), Some(inner)) => format!("{key}{colon}{{{end}{inner}{member}{end}{indent}}}"),
        _ => format!("{key}{colon}{{{member}}}"),
    }
}

/// Adds a member behind the others of an object.
fn insert(text: &str, root: &JsonObject, object: &JsonObject, keys: &[String], value: &str) -> Vec<Splice> {
    let end = line_end(text);
    let step = root.members.first().and_then(|first| indent_of(text, root, first)).filter(|step| !step.is_empty());
    let step = step.unwrap_or(STEP);
    let colon = colon_of(text, root.members.first());
    let Some(last) = object.members.last() else { return fill(text, root, object, keys, value, (step, colon, end)) };
    let mut splices = Vec::new();
    if last.comma.is_none() {
        splices.push(Splice::insert(last.value.range().end, ","));
    }
    let indent = indent_of(text, object, last);
    let member = nested(keys, value, indent, step, colon, end);
    let tail = if last.comma.is_some() { "," } else { "" };
    let behind = last.comma.map_or(last.value.range().end, |comma| comma + 1);
    let (at, added) = match indent {
        Some(indent) => (scan::behind_comments(text, behind), format!("{end}{indent}{member}{tail}")),
        None if colon == ":" => (behind, format!("{member}{tail}")),
        None => (behind, format!(" {member}{tail}")),
    };
    match splices.first_mut() {
        // One splice is found again more easily than two.
        Some(comma) if comma.at == at => comma.added.push_str(&added),
        first => {
            let shift = usize::from(first.is_some());
            splices.push(Splice::insert(at + shift, added));
        }
    }
    splices
}

/// Adds the first member of an object.
fn fill(
    text: &str,
    root: &JsonObject,
    object: &JsonObject,
    keys: &[String],
    value: &str,
    (step, colon, end): (&str, &str, &str),
) -> Vec<Splice> {
    let inside = object.open + 1..object.close;
    let is_line = object.open != root.open && root.members.iter().all(|member| indent_of(text, root, member).is_none());
    let outer = indentation(text, object.open).to_owned();
    let inner = (!is_line).then(|| format!("{outer}{step}"));
    let member = nested(keys, value, inner.as_deref(), step, colon, end);
    if text[inside.clone()].trim().is_empty() {
        let added = inner.map_or(member.clone(), |inner| format!("{end}{inner}{member}{end}{outer}"));
        return vec![Splice::replace(text, inside, added)];
    }
    // Comments stay before it.
    let at = inside.start + text[inside.clone()].trim_end().len();
    let inner = inner.unwrap_or_else(|| format!("{outer}{step}"));
    let has_line_end = text[at..inside.end].contains('\n');
    let closing = if has_line_end { String::new() } else { format!("{end}{outer}") };
    vec![Splice::insert(at, format!("{end}{inner}{member}{closing}"))]
}

/// The indentation of a member that begins a line.
fn indent_of<'t>(text: &'t str, object: &JsonObject, member: &JsonMember) -> Option<&'t str> {
    let before = object.members.iter().take_while(|other| other.start < member.start).last();
    let from = before.map_or(object.open, |other| other.comma.unwrap_or(other.start));
    text[from..member.start].contains('\n').then(|| indentation(text, member.start))
}

/// What stands between a key and its value.
fn colon_of<'t>(text: &'t str, member: Option<&JsonMember>) -> &'t str {
    let between = member.map_or(": ", |member| &text[member.key_end..member.value.range().start]);
    if between == ":" { ":" } else { ": " }
}

/// The splices that take a setting out of a text that others have edited.
pub(super) fn unset(
    text: &str,
    is_strict: bool,
    setting: &Setting,
    edit: &SettingEdit,
) -> Result<Vec<Splice>, SettingsError> {
    let mut chain: Vec<(JsonObject, usize)> = Vec::new();
    let mut object = scan::root(text, is_strict)?;
    for key in &setting.keys {
        let Some(inside) = object.take() else { return Ok(Vec::new()) };
        let Some(at) = inside.members.iter().rposition(|member| member.key == *key) else { return Ok(Vec::new()) };
        if let Json::Object(inner) = &inside.members[at].value {
            object = Some(inner.clone());
        }
        chain.push((inside, at));
    }
    let Some((mut object, mut at)) = chain.pop() else { return Ok(Vec::new()) };
    if let Some(was) = &edit.was {
        return Ok(vec![Splice::replace(text, object.members[at].value.range(), was.clone())]);
    }
    // What was made for the setting goes with it, unless it has got something else.
    for _ in 0..edit.made {
        let Some((outer, index)) = chain.pop().filter(|_| is_alone(text, &object)) else { break };
        (object, at) = (outer, index);
    }
    Ok(remove(text, &object, at))
}

/// Whether an object has one member and no comment.
fn is_alone(text: &str, object: &JsonObject) -> bool {
    let length = |member: &JsonMember| member.end() - member.start;
    let inside = text[object.open + 1..object.close].trim().len();
    object.members.len() == 1 && length(&object.members[0]) == inside
}

fn remove(text: &str, object: &JsonObject, at: usize) -> Vec<Splice> {
    let member = &object.members[at];
    let gap: Range<usize> = text[..member.start].trim_end().len()..member.start;
    if is_alone(text, object) {
        return vec![Splice::replace(text, object.open + 1..object.close, "")];
    }
    let behind = &text[member.end()..];
    // A comment on the line before would swallow what comes next.
    let is_line_end =
        behind.trim_start_matches([' ', '\t', '\r']).starts_with('\n') || !text[gap.clone()].contains('\n');
    let from = if is_line_end { gap.start } else { gap.end };
    let here = Splice::replace(text, from..member.end(), "");
    match (member.comma, at.checked_sub(1).and_then(|before| object.members[before].comma)) {
        (None, Some(comma)) => vec![here, Splice::replace(text, comma..comma + 1, "")],
        _ => vec![here],
    }
}
