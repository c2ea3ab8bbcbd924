//! The file with what the person always allows, `learned.toml` in the journal's directory. A host writes it when that
//! person presses a key, and `rexec gate forget` does.
//!
//! Invariant: the file is replaced as a whole, and only its owner may read it.

use std::io;
use std::path::Path;

use super::home::JournalHome;
use crate::limits;

/// The name of the file.
pub const LEARNED_NAME: &str = "learned.toml";

/// The text of the file. Empty if there is none, or no directory that may hold a journal.
///
/// # Errors
/// It cannot be read, or is too long.
pub fn read_learned(home: &Path, uid: u32) -> io::Result<Vec<u8>> {
    let home = JournalHome { path: home.to_owned(), uid };
    home.open()
        .map_or_else(|_| Ok(Vec::new()), |directory| directory.read(LEARNED_NAME, limits::RULES_FILE_BYTES_MAX as u64))
}

/// Replaces the file by one with this text.
///
/// # Errors
/// There is no directory that may hold a journal, or it cannot be written.
pub fn write_learned(home: &Path, uid: u32, text: &str) -> io::Result<()> {
    let home = JournalHome { path: home.to_owned(), uid };
    home.open().map_err(io::Error::other)?.replace(LEARNED_NAME, text.as_bytes())
}
