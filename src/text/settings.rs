//! Edits of settings files that people write: JSON with or without comments, TOML, the lists of YAML, and a block of lines.
//!
//! Invariants: an edit changes the bytes that it must and no others, so comments, order, indentation and ends of lines
//! stay. [`undo`] restores the text that was there before. If the file was edited in between, only what the edit has
//! brought goes. A text that cannot be understood is never changed.

pub mod block;
mod json;
mod lines;
mod toml;
mod yaml;
mod yaml_outline;

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsFormat {
    /// JSON as RFC 8259 has it.
    Json,
    /// JSON with comments, and with a comma behind the last member.
    JsonWithComments,
    /// TOML 1.0.
    Toml,
    /// A mapping in YAML. Only lists of it can be edited.
    Yaml,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingValue {
    /// A text. In YAML it is an item of a list.
    Text(String),
    /// `false`.
    False,
}

/// One setting: the keys that lead to it, and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub keys: Vec<String>,
    pub value: SettingValue,
}

/// Text that takes the place of other text. Both are at the same byte of their text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    pub at: usize,
    pub removed: String,
    pub added: String,
}

/// What an edit has done, which is all that [`undo`] needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingEdit {
    /// Each splice in the text that the ones before it have made.
    pub splices: Vec<Splice>,
    /// The value that was there before, as it was written.
    pub was: Option<String>,
    /// How many tables, objects or lists were made for the setting.
    pub made: usize,
}

/// What there is to do for a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange {
    /// The file has it.
    Same,
    /// The file has another value, which is written like this.
    Taken(String),
    /// The file gets it by this edit.
    Edit(SettingEdit),
}

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, as a clause.
    pub problem: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for SettingsError {}

impl SettingsError {
    fn at(text: &str, at: usize, problem: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..at.min(text.len())];
        Self { line: 1 + before.iter().filter(|byte| **byte == b'\n').count(), problem: problem.into() }
    }
}

/// A setting of a text, and its value as it is written.
type Fact = (Vec<String>, String);

impl Setting {
    /// The keys of the table that it is in.
    fn table(&self) -> &[String] {
        &self.keys[..self.keys.len().saturating_sub(1)]
    }

    /// Its keys, for a person.
    fn shown(&self) -> String {
        self.keys.join(".")
    }
}

impl Splice {
    fn insert(at: usize, added: impl Into<String>) -> Self {
        Self { at, removed: String::new(), added: added.into() }
    }

    fn replace(text: &str, range: std::ops::Range<usize>, added: impl Into<String>) -> Self {
        Self { at: range.start, removed: text[range].to_owned(), added: added.into() }
    }

    /// The text with this splice; `None` if it has something else at this place.
    fn apply(&self, text: &str) -> Option<String> {
        let rest = text.get(self.at..)?.strip_prefix(self.removed.as_str())?;
        Some([text.get(..self.at)?, &self.added, rest].concat())
    }

    /// The text without what the splice has added, wherever that is now. Nothing that is there twice is touched. `end` goes
    /// where two lines would become one.
    fn revert(&self, text: &str, end: &str) -> Option<String> {
        let is_in_place = text.get(self.at..).is_some_and(|rest| rest.starts_with(&self.added));
        let mut found = text.match_indices(&self.added).map(|(at, _)| at).filter(|_| !self.added.trim().is_empty());
        let at = match (is_in_place, found.next(), found.next()) {
            (true, ..) => self.at,
            (false, Some(at), None) => at,
            _ => return None,
        };
        let (before, behind) = (&text[..at], &text[at + self.added.len()..]);
        let is_joined = self.removed.is_empty()
            && self.added.ends_with('\n')
            && !(before.is_empty() || before.ends_with('\n'))
            && !(behind.is_empty() || behind.starts_with(['\n', '\r']));
        Some([before, &self.removed, if is_joined { end } else { "" }, behind].concat())
    }

    fn inverse(&self) -> Self {
        Self { at: self.at, removed: self.added.clone(), added: self.removed.clone() }
    }
}

/// The text with these splices.
#[must_use]
pub fn applied(text: &str, splices: &[Splice]) -> Option<String> {
    splices.iter().try_fold(text.to_owned(), |text, splice| splice.apply(&text))
}

/// The text without what an edit has added, if each part of it is found.
fn reverted(text: &str, edit: &SettingEdit) -> Option<String> {
    reverted_with(text, edit, "")
}

/// The same for a text of lines, of which two never become one.
fn reverted_lines(text: &str, edit: &SettingEdit) -> Option<String> {
    reverted_with(text, edit, lines::line_end(text))
}

fn reverted_with(text: &str, edit: &SettingEdit, end: &str) -> Option<String> {
    let is_edit = !edit.splices.is_empty();
    edit.splices.iter().rev().try_fold(text.to_owned(), |text, splice| splice.revert(&text, end)).filter(|_| is_edit)
}

/// What makes the text have this setting. `force` replaces another value.
///
/// # Errors
/// The text cannot be understood.
pub fn set(format: SettingsFormat, text: &str, setting: &Setting, force: bool) -> Result<SettingChange, SettingsError> {
    // A byte order mark is no part of the text for the others.
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let change = match format {
        SettingsFormat::Json => return json::set(text, false, setting, force),
        SettingsFormat::JsonWithComments => return json::set(text, true, setting, force),
        SettingsFormat::Toml => return toml::set(text, setting, force),
        SettingsFormat::Yaml => yaml::set(body, setting, force),
    };
    let shift = text.len() - body.len();
    change.map(|change| match change {
        SettingChange::Edit(mut edit) => {
            edit.splices.iter_mut().for_each(|splice| splice.at += shift);
            SettingChange::Edit(edit)
        }
        other => other,
    })
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Whether the text has this setting.
///
/// # Errors
/// The text cannot be understood.
pub fn has(format: SettingsFormat, text: &str, setting: &Setting) -> Result<bool, SettingsError> {
    match format {
        SettingsFormat::Json => return json::holds(text, false, setting),
        SettingsFormat::JsonWithComments => return json::holds(text, true, setting),
        SettingsFormat::Toml => return toml::holds(text, setting),
        SettingsFormat::Yaml => {}
    }
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    Ok(without(format, &yaml::facts(body)?, setting, &SettingEdit::default()).is_some())
}

/// The settings as lines that a person can paste into a file.
#[must_use]
pub fn lines(format: SettingsFormat, settings: &[Setting]) -> String {
    match format {
        SettingsFormat::Json | SettingsFormat::JsonWithComments => json::lines(settings),
        SettingsFormat::Toml => toml::lines(settings),
        SettingsFormat::Yaml => yaml::lines(settings),
    }
}

/// Takes an edit back; returns the text without the setting, or `None` if the text does not have the setting any more.
///
/// # Errors
/// The text cannot be understood.
pub fn undo(
    format: SettingsFormat,
    text: &str,
    setting: &Setting,
    edit: &SettingEdit,
) -> Result<Option<String>, SettingsError> {
    match format {
        SettingsFormat::Json | SettingsFormat::JsonWithComments => return json::undo(text, setting, edit),
        SettingsFormat::Toml => return toml::undo(text, setting, edit),
        SettingsFormat::Yaml => {}
    }
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let facts = yaml::facts(body)?;
    let Some(wanted) = without(format, &facts, setting, edit) else { return Ok(None) };
    let is_right = |candidate: &String| {
        let body = candidate.strip_prefix(BYTE_ORDER_MARK).unwrap_or(candidate);
        yaml::facts(body).is_ok_and(|facts| facts == wanted)
    };
    let back: Vec<Splice> = edit.splices.iter().rev().map(Splice::inverse).collect();
    let by_place = || back.iter().try_fold(text.to_owned(), |text, splice| apart(format, &text, splice).apply(&text));
    if let Some(text) = by_place().filter(is_right).or_else(|| by_content(format, text, &back).filter(is_right)) {
        return Ok(Some(text));
    }
    let shift = text.len() - body.len();
    let mut structural = yaml::unset(body, setting, edit)?;
    structural.iter_mut().for_each(|splice| splice.at += shift);
    match applied(text, &structural).filter(is_right) {
        Some(text) => Ok(Some(text)),
        None => Err(SettingsError::at(text, 0, format!("`{}` cannot be removed without harm", setting.keys.join(".")))),
    }
}

/// The text without what the splices take out, wherever that is now. Nothing that is there twice is touched.
fn by_content(format: SettingsFormat, text: &str, splices: &[Splice]) -> Option<String> {
    splices.iter().try_fold(text.to_owned(), |text, splice| {
        if splice.removed.trim().is_empty() {
            return None;
        }
        let mut found = text.match_indices(&splice.removed).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (Some(at), None) => apart(format, &text, &Splice { at, ..splice.clone() }).apply(&text),
            _ => None,
        }
    })
}

/// The splice, but with an end of a line where taking lines out would join two others.
fn apart(format: SettingsFormat, text: &str, splice: &Splice) -> Splice {
    let has_lines = matches!(format, SettingsFormat::Toml | SettingsFormat::Yaml);
    let (before, behind) = (text.get(..splice.at), text.get(splice.at + splice.removed.len()..));
    let is_inside = before.is_some_and(|text| !text.is_empty() && !text.ends_with('\n'))
        && behind.is_some_and(|text| !text.is_empty() && !text.starts_with(['\n', '\r']));
    let is_joined = has_lines && is_inside && splice.added.is_empty() && splice.removed.ends_with('\n');
    let added = if is_joined { lines::line_end(text).to_owned() } else { splice.added.clone() };
    Splice { added, ..splice.clone() }
}

/// The facts without the setting, or with the value that it had before. `None` if it is not among them.
fn without(format: SettingsFormat, facts: &[Fact], setting: &Setting, edit: &SettingEdit) -> Option<Vec<Fact>> {
    let is_it = |fact: &Fact| fact.0 == setting.keys && is_value(format, &fact.1, &setting.value);
    let at = facts.iter().rposition(is_it)?;
    let mut facts = facts.to_vec();
    match &edit.was {
        Some(was) => facts[at].1.clone_from(was),
        None => {
            facts.remove(at);
        }
    }
    Some(facts)
}

/// Whether a value that is written like this is the wanted one.
fn is_value(format: SettingsFormat, written: &str, value: &SettingValue) -> bool {
    match (format, value) {
        (_, SettingValue::False) => written == "false",
        (_, SettingValue::Text(text)) => yaml::decoded(written) == *text,
    }
}

/// A value as JSON and TOML write it.
fn written(value: &SettingValue) -> String {
    let SettingValue::Text(text) = value else { return "false".to_owned() };
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            c if c.is_control() => {
                use fmt::Write;
                let _ = write!(written, "\\u{:04x}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written.push('"');
    written
}
