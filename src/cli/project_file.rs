//! The file of rules that a project has: where it stands, and what it says.

use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use super::quoted;
use crate::gate::{PROJECT_FILE, RuleList, load_project};
use crate::limits;
use crate::sys::near_file::{Mounts, Place};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The columns of a sentence about a place in the file.
const SENTENCE_COLUMNS: usize = 400;

/// The git project that a directory is in.
pub(super) fn project_of(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|above| above.join(".git").exists())
}

/// The file of a project's rules, as it is.
pub(super) struct ProjectFile {
    pub(super) path: PathBuf,
    pub(super) text: Vec<u8>,
}

impl ProjectFile {
    /// The file of the project with this top; `None` if there is none.
    pub(super) fn of(top: &Path) -> Result<Option<Self>, Notice> {
        let path = top.join(PROJECT_FILE);
        let cannot = |why: &str| {
            let problem = format_args!("cannot use {}: {why}", quoted(&path));
            let most = limits::PROJECT_RULES_BYTES_MAX >> 10;
            Err(Notice::failed(problem, format_args!("it must be a regular file of at most {most} KiB")))
        };
        let file = match Mounts::ignored().look_itself(&path) {
            Ok(Place::File(file)) => file,
            Ok(Place::Nothing | Place::Far) => return Ok(None),
            Ok(Place::Unfit(unfit)) => return cannot(unfit.words()),
            Err(error) => return cannot(&reason(&error)),
        };
        match file.read(limits::PROJECT_RULES_BYTES_MAX) {
            Ok(Some(text)) => Ok(Some(Self { path, text })),
            Ok(None) => cannot("it is too long"),
            Err(error) => cannot(&reason(&error)),
        }
    }

    pub(super) fn rules(&self) -> Result<RuleList, Notice> {
        rules_in(&self.path, &self.text)
    }
}

/// The rules in a text of this file.
pub(super) fn rules_in(path: &Path, text: &[u8]) -> Result<RuleList, Notice> {
    load_project(text).map_err(|error| {
        let problem = escape_line(&format!("{}:{error}", path.display()), SENTENCE_COLUMNS);
        Notice::failed(problem, &error.hint)
    })
}
