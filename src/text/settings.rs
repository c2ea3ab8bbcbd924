//! Edits of settings files that people and agents write: JSON with or without comments, TOML, YAML, and a block of lines.
//!
//! Invariants: an edit inserts text and touches nothing else, so comments, order, indentation and ends of lines stay. It
//! counts only if the file is known to say the same with the setting as without it, but for the setting. [`undo`] restores
//! the bytes that were there before; where somebody has written the file anew, it deletes the setting by its key, and
//! counts by the same judgement. Every other text is refused, and a person gets the [`lines()`] to paste.

pub mod block;
mod json;
mod lines;
mod toml;
mod yaml;

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsFormat {
    /// JSON as RFC 8259 has it.
    Json,
    /// JSON with comments, and with a comma after the last member.
    JsonWithComments,
    Toml,
    /// YAML, which gets a list in a block of lines.
    Yaml,
}

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

/// An edit that was made, with all that [`undo`] needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingEdit {
    /// Each splice refers to the text that the earlier ones have made.
    pub splices: Vec<Splice>,
    /// The earlier value, as it was written.
    pub was: Option<String>,
    /// The number of tables, objects or lists that were made for the setting.
    pub made: usize,
}

/// The change that a setting needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange {
    /// The file has the setting.
    Same,
    /// The file has another value, written like this.
    Taken(String),
    /// The file gets the setting by this edit.
    Edit(SettingEdit),
}

/// The reason why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The line, from 1.
    pub line: usize,
    /// The problem there, as a clause.
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

impl Setting {
    /// The keys of the setting's table.
    fn table(&self) -> &[String] {
        &self.keys[..self.keys.len().saturating_sub(1)]
    }

    /// The keys, for a person.
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

    /// Removes the splice's addition, wherever that is now. An addition that occurs twice stays. `end` goes where two
    /// lines would become one.
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
}

#[must_use]
pub fn applied(text: &str, splices: &[Splice]) -> Option<String> {
    splices.iter().try_fold(text.to_owned(), |text, splice| splice.apply(&text))
}

/// The text without the additions of an edit, if each of them is found.
fn reverted(text: &str, edit: &SettingEdit) -> Option<String> {
    reverted_with(text, edit, "")
}

/// As [`reverted`], for a text of lines: two of them never become one.
fn reverted_lines(text: &str, edit: &SettingEdit) -> Option<String> {
    reverted_with(text, edit, lines::line_end(text))
}

fn reverted_with(text: &str, edit: &SettingEdit, end: &str) -> Option<String> {
    let is_edit = !edit.splices.is_empty();
    edit.splices.iter().rev().try_fold(text.to_owned(), |text, splice| splice.revert(&text, end)).filter(|_| is_edit)
}

/// Finds the edit that brings this setting into the text. `force` replaces another value.
///
/// # Errors
/// The text cannot be understood.
pub fn set(format: SettingsFormat, text: &str, setting: &Setting, force: bool) -> Result<SettingChange, SettingsError> {
    match format {
        SettingsFormat::Json => json::set(text, false, setting, force),
        SettingsFormat::JsonWithComments => json::set(text, true, setting, force),
        SettingsFormat::Toml => toml::set(text, setting, force),
        SettingsFormat::Yaml => yaml::set(text, setting),
    }
}

/// Returns true if the text has this setting.
///
/// # Errors
/// The text cannot be understood.
pub fn has(format: SettingsFormat, text: &str, setting: &Setting) -> Result<bool, SettingsError> {
    match format {
        SettingsFormat::Json => json::holds(text, false, setting),
        SettingsFormat::JsonWithComments => json::holds(text, true, setting),
        SettingsFormat::Toml => toml::holds(text, setting),
        SettingsFormat::Yaml => Ok(yaml::holds(text, setting)),
    }
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
        SettingsFormat::Json | SettingsFormat::JsonWithComments => json::undo(text, setting, edit),
        SettingsFormat::Toml => toml::undo(text, setting, edit),
        SettingsFormat::Yaml => yaml::undo(text, setting, edit),
    }
}
