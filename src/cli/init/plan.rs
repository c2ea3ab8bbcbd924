//! A planned change of a file: shown as a diff, confirmed, and made.

use std::fs;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use rexec_sh::protocol::notice::Notice;

use super::file::SettingsFile;
use crate::cli::look::Look;
use crate::cli::told::ask;
use crate::cli::unified::UnifiedDiff;
use crate::cli::{with_output, written};
use crate::front::init_record::ChangedFile;
use crate::text::diff;

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
        let (first, second) = (lines(self.file.text.as_deref()), lines(self.after.as_deref()));
        let changes = diff::compare(&first, &second);
        UnifiedDiff { heads: [head(&self.file.text), head(&self.after)], first, second, changes }
    }
}

/// The lines of a text. A last line without an end is marked as in diff(1).
fn lines(text: Option<&str>) -> Vec<String> {
    let lines = text.unwrap_or_default().split_inclusive('\n');
    let line = |line: &str| match line.strip_suffix('\n') {
        Some(line) => line.to_owned(),
        None => format!("{line}\n\\ No newline at end of file"),
    };
    lines.map(line).collect()
}

/// Prints the planned changes.
pub(super) fn show(changes: &[PlannedChange]) -> Result<(), Notice> {
    let look = Look::of_output();
    with_output(|out| written(changes.iter().try_for_each(|change| change.diff().show(&look, out)))).map(|_| ())
}

/// Asks for confirmation. `command` is the command line for a yes.
pub(super) fn is_wanted(count: usize, command: &str) -> Result<bool, Notice> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let hint = format_args!("{command} --yes does it without a question");
        return Err(Notice::failed("nothing was changed, because there is no terminal to ask at", hint));
    }
    let files = if count == 1 { "this file".to_owned() } else { format!("these {count} files") };
    ask(format_args!("Change {files}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
