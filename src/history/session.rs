//! The sessions of a directory: each is one host's journal, in one file or in several that continue each other.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::journal::record::OpenRecord;
use crate::journal::summary::Summary;
use crate::recorder::{first_line, is_alive, journals, load_summary};

/// One file of a session.
#[derive(Debug, Clone)]
pub struct JournalFile {
    /// The file's name without its extension.
    pub name: String,
    pub path: PathBuf,
    /// It begins with the starts of runs that began in the file before it.
    pub continues: bool,
}

#[derive(Debug, Clone)]
pub struct SessionHistory {
    /// The name of its first file, also when that is gone.
    pub name: String,
    /// Its files, newest first. There is at least one.
    pub files: Vec<JournalFile>,
    /// The first line of its newest file. `None` if that is not a journal of this program's.
    pub open: Option<OpenRecord>,
    is_alive: OnceCell<bool>,
}

impl JournalFile {
    /// The recorder's summary of this file's beginning or of all of it. `None` if there is none that fits.
    pub(super) fn summary(&self, file: &File) -> Option<Summary> {
        load_summary(&self.path, file)
    }
}

impl SessionHistory {
    /// Returns true if its host runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        *self.is_alive.get_or_init(|| self.open.as_ref().is_some_and(is_alive))
    }

    /// The directory of its files.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.files.first().and_then(|file| file.path.parent()).unwrap_or(Path::new("."))
    }
}

/// The sessions of the directory `home`, newest first. Without a directory there are none.
///
/// # Errors
/// The directory cannot be read.
pub fn sessions(home: &Path) -> io::Result<Vec<SessionHistory>> {
    let found = match journals(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let mut sessions: Vec<SessionHistory> = Vec::new();
    // Which session the file of this name belongs to, as the file after it says.
    let mut continued: HashMap<String, usize> = HashMap::new();
    for (name, path) in found {
        let open = File::open(&path).ok().and_then(|file| first_line(&file));
        let before = open.as_ref().and_then(|open| open.continues.clone());
        let file = JournalFile { name: name.clone(), path, continues: before.is_some() };
        let place = match continued.get(&name) {
            Some(&place) => {
                sessions[place].files.push(file);
                place
            }
            None => {
                sessions.push(SessionHistory {
                    name: name.clone(),
                    files: vec![file],
                    open,
                    is_alive: OnceCell::new(),
                });
                sessions.len() - 1
            }
        };
        sessions[place].name = before.clone().unwrap_or(name);
        if let Some(before) = before {
            continued.insert(before, place);
        }
    }
    Ok(sessions)
}
