//! The list of variables in Aider's YAML: a block between two marks, after all other lines. YAML itself is never read.
//!
//! Invariant: a text gets the block only if its lines show one mapping that has no such list, and that nothing goes on in.

use super::block::{self, CLOSE, OPEN};
use super::{Setting, SettingChange, SettingEdit, SettingValue, SettingsError, reverted_lines};

/// Ends of lines for YAML alone, and a mark that belongs before the first line.
const ODD_BREAKS: [char; 5] = ['\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'];

pub(super) fn set(text: &str, setting: &Setting) -> Result<SettingChange, SettingsError> {
    if holds(text, setting) {
        return Ok(SettingChange::Same);
    }
    match obstacle(text, &setting.keys[0]) {
        Some((line, problem)) => Err(SettingsError { line, problem }),
        None => {
            let splice = block::appended(text, &lines(std::slice::from_ref(setting)));
            Ok(SettingChange::Edit(SettingEdit { splices: vec![splice], was: None, made: 1 }))
        }
    }
}

/// The line that no block can follow, and the reason.
fn obstacle(text: &str, key: &str) -> Option<(usize, String)> {
    let (mut has_mark, mut has_key) = (false, false);
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if line.contains(ODD_BREAKS) {
            return Some((at + 1, "a line breaks in the middle".to_owned()));
        }
        if !is_content(line) {
            continue;
        }
        let line = line.trim_end();
        if line == "---" && !has_mark && !has_key {
            has_mark = true;
            continue;
        }
        let problem = match () {
            () if is_key(line, key) => Some(format!("`{key}` is there already")),
            () if line.starts_with("---") || line == "..." => Some("a document ends here".to_owned()),
            () if !has_key && !begins_mapping(line) => Some("the settings are not written as lines".to_owned()),
            () => None,
        };
        if let Some(problem) = problem {
            return Some((at + 1, problem));
        }
        has_key = true;
    }
    // The end of its last line would belong to a text in lines.
    let is_open = !text.ends_with('\n') && text.lines().last().is_some_and(|line| line.starts_with(' '));
    (is_open && text.contains(['|', '>'])).then(|| (text.lines().count(), "the last line has no end".to_owned()))
}

/// Returns true if a line is neither empty nor a comment.
fn is_content(line: &str) -> bool {
    !line.trim_start().is_empty() && !line.trim_start().starts_with('#')
}

fn is_key(line: &str, key: &str) -> bool {
    let rest = line.trim_start_matches(['"', '\'']).strip_prefix(key);
    rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
}

/// Returns true if a line begins with a plain key and its colon.
fn begins_mapping(line: &str) -> bool {
    let key = line.split(" #").next().unwrap_or_default();
    !key.starts_with(|c: char| c.is_whitespace() || "{[-?&*!|>%@`\"'".contains(c))
        && (key.ends_with(':') || key.contains(": ") || key.contains(":\t"))
}

pub(super) fn holds(text: &str, setting: &Setting) -> bool {
    let item = item(setting);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['"', '\'', ',', ']', ' ']);
    let has = |line: &str| line.match_indices(item).any(|(at, _)| ends(&line[at + item.len()..]));
    text.lines().filter(|line| is_content(line)).any(has)
}

/// Returns the text without the setting, or `None` if it is gone.
pub(super) fn undo(text: &str, setting: &Setting, edit: &SettingEdit) -> Result<Option<String>, SettingsError> {
    if !holds(text, setting) {
        return Ok(None);
    }
    let rows: Vec<&str> = text.split_inclusive('\n').collect();
    let written = [written(setting), item(setting).to_owned()].map(|item| format!("- {item}"));
    let item = rows.iter().position(|row| written.iter().any(|item| row.trim() == item));
    // Items of somebody else keep the key of the list.
    let next = item.and_then(|item| rows[item + 1..].iter().find(|row| is_content(row)));
    let has_more = edit.made > 0 && next.is_some_and(|row| row.starts_with([' ', '\t', '-']));
    let by_place = reverted_lines(text, edit).filter(|after| !has_more && !holds(after, setting));
    let by_line = item.map(|item| {
        let before = rows[..item].iter().rposition(|row| is_content(row));
        let key = before.filter(|at| edit.made > 0 && !has_more && is_key(rows[*at], &setting.keys[0]));
        let is_ours = |at: usize, row: &str| at == item || Some(at) == key || [OPEN, CLOSE].contains(&row.trim());
        rows.iter().enumerate().filter(|(at, row)| !is_ours(*at, row)).map(|(_, row)| *row).collect::<String>()
    });
    match by_place.or(by_line).filter(|after| !holds(after, setting)) {
        Some(after) => Ok(Some(after)),
        None => Err(SettingsError::at(text, 0, format!("`{}` cannot be removed without harm", setting.shown()))),
    }
}

/// The settings as lists, also for a person to paste.
pub(super) fn lines(settings: &[Setting]) -> String {
    settings.iter().map(|setting| format!("{}:\n  - {}\n", setting.keys[0], written(setting))).collect()
}

fn item(setting: &Setting) -> &str {
    match &setting.value {
        SettingValue::Text(item) => item,
        SettingValue::False => "false",
    }
}

/// An item as YAML writes it.
fn written(setting: &Setting) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.=+-".contains(c);
    let item = item(setting);
    if item.chars().all(is_plain) { item.to_owned() } else { serde_json::Value::from(item).to_string() }
}
