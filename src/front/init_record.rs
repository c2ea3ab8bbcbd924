//! The record of the changes of `rexec init`, a file beside its links for `rexec uninit`: one object of JSON.
//!
//! It holds the additions and the replaced values, and nothing else of the user's files.

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

/// A file that was changed for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The agent's name; empty for the block that an earlier release has put into a shell profile.
    pub agent: String,
    pub path: String,
    pub format: SettingsFormat,
    /// The file did not exist before.
    pub is_new: bool,
    /// The directories that were made for it, the innermost one first.
    pub directories: Vec<String>,
    /// The edits, in their order. The block of a shell profile has no setting.
    pub edits: Vec<(Option<Setting>, SettingEdit)>,
}

impl InitRecord {
    /// Reads the file's text; `None` if it is not such a record.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|record: &Self| record.v == VERSION)
    }

    #[must_use]
    pub fn text(&self) -> String {
        // Values of these types have no key that is not text.
        serde_json::to_string_pretty(self).expect("the record can be written as JSON") + "\n"
    }
}
