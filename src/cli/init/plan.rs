//! A planned change of a file: shown as a diff, confirmed, and made.

use std::fs;
use std::path::PathBuf;

use rexec_sh::protocol::notice::Notice;

use super::file::SettingsFile;
use crate::cli::look::Look;
use crate::cli::told;
use crate::cli::unified::UnifiedDiff;
use crate::cli::{with_output, written};
use crate::front::init_record::ChangedFile;

/// A change that has not been made.
#[derive(Debug)]
pub(super) struct PlannedChange {
    pub(super) file: SettingsFile,
    /// The text afterwards; `None` removes the file.
    pub(super) after: Option<String>,
    /// The record's entry afterwards.
    pub(super) changed: ChangedFile,
}

impl PlannedChange {
    pub(super) fn is_needed(&self) -> bool {
        self.file.text != self.after
    }

    /// Makes the change. Returns the new directories.
    pub(super) fn make(&self) -> Result<Vec<PathBuf>, Notice> {
        let made = self.file.replace(self.after.as_deref())?;
        if self.after.is_none() {
            for directory in &self.changed.directories {
                // A directory that contains files of others stays.
                let _ = fs::remove_dir(directory);
            }
        }
        Ok(made)
    }

    fn diff(&self) -> UnifiedDiff {
        let path = self.file.path.display();
        let head = |text: &Option<String>| text.as_ref().map_or("/dev/null".to_owned(), |_| path.to_string());
        let texts = [&self.file.text, &self.after].map(|text| text.as_deref().unwrap_or_default());
        UnifiedDiff::of_texts([head(&self.file.text), head(&self.after)], texts)
    }
}

/// Prints the planned changes.
pub(super) fn show(changes: &[PlannedChange]) -> Result<(), Notice> {
    let look = Look::of_output();
    with_output(|out| written(changes.iter().try_for_each(|change| change.diff().show(&look, out)))).map(|_| ())
}

/// Asks for confirmation. `command` is the command line for a yes.
pub(super) fn is_wanted(count: usize, command: &str) -> Result<bool, Notice> {
    let files = if count == 1 { "this file".to_owned() } else { format!("these {count} files") };
    told::is_wanted(format_args!("Change {files}? [y/N] "), command)
}
