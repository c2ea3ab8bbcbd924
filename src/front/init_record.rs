//! What `rexec init` has changed, as a file beside its links tells `rexec uninit`: one object of JSON.
//!
//! It holds what was added, and the values that were replaced; nothing else of the user's files.

use serde::{Deserialize, Serialize};

use crate::text::settings::{Setting, SettingEdit, SettingsFormat};

/// The version of this form.
const VERSION: u32 = 1;

/// All changes that have not been taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitRecord {
    v: u32,
    /// The directories that were made for the links and this record, the innermost one first.
    pub directories: Vec<String>,
    pub files: Vec<ChangedFile>,
}

impl Default for InitRecord {
    fn default() -> Self {
        Self { v: VERSION, directories: Vec::new(), files: Vec::new() }
    }
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ChangedForm {
    /// By settings in this format.
    Settings(SettingsFormat),
    /// As only an earlier release did it. Such a change can be taken back, and is not made any more.
    Earlier(EarlierForm),
}

/// What earlier releases have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EarlierForm {
    /// Lines of Aider's YAML, or a block of aliases in a shell profile.
    #[serde(rename = "yaml")]
    Lines,
}

/// A file that was changed for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The agent's name; empty for the aliases of an earlier release in a shell profile.
    pub agent: String,
    pub path: String,
    #[serde(rename = "format")]
    pub form: ChangedForm,
    /// Whether the file was made.
    pub is_new: bool,
    /// The directories that were made for it, the innermost one first.
    pub directories: Vec<String>,
    /// What was done, in its order. The aliases in a shell profile have no setting.
    pub edits: Vec<(Option<Setting>, SettingEdit)>,
}

impl InitRecord {
    /// Reads the file's text; `None` if it is not such a record.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|record: &Self| record.v == VERSION)
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        // A value of these types has no key that is not text.
        serde_json::to_string_pretty(self).expect("the record can be written as JSON") + "\n"
    }
}
