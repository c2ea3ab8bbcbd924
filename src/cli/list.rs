//! `rexec --list [N]`: the newest journals and how many commands each has.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use super::WRITE_HINT;
use crate::journal::reader::closing;
use crate::recorder::{self, journals};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// Journals that are listed when no number is given.
pub const DEFAULT: usize = 10;

/// Why the journals cannot be listed.
#[derive(Debug)]
pub enum ListError {
    /// A directory or file cannot be read.
    Read { path: PathBuf, source: io::Error },
    /// The list cannot be written.
    Write(io::Error),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListError::Read { path, source } => write!(f, "cannot read {}: {}", path.display(), reason(source)),
            ListError::Write(source) => write!(f, "cannot write the list: {}", reason(source)),
        }
    }
}

impl Error for ListError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ListError::Read { source, .. } | ListError::Write(source) => Some(source),
        }
    }
}

impl From<ListError> for Notice {
    fn from(error: ListError) -> Self {
        let hint = match &error {
            ListError::Read { .. } => "REXEC_HOME names the directory of the journals; the default is ~/.rexec",
            ListError::Write(_) => WRITE_HINT,
        };
        Self::failed(&error, hint)
    }
}

/// Writes a line for each of the `n` newest journals, newest first. Without a directory there are no journals.
///
/// # Errors
/// The directory or a journal cannot be read, or the list cannot be written.
pub fn list(home: &Path, n: usize, out: &mut impl Write) -> Result<(), ListError> {
    let journals = match journals(home) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|source| ListError::Read { path: home.to_owned(), source })?,
    };
    for (name, path) in journals.into_iter().take(n) {
        let runs = match count_runs(&path) {
            // It was removed after the directory was read.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            counted => counted.map_err(|source| ListError::Read { path, source })?,
        };
        match writeln!(out, "{} commands={runs}", escape_line(&name, 255)) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(ListError::Write)?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(ListError::Write(error)),
        _ => Ok(()),
    }
}

fn count_runs(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    match closing(&file)?.and_then(|close| close.commands) {
        Some(commands) => Ok(commands),
        None => recorder::count_runs(&file),
    }
}
