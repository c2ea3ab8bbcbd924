//! What the person always allows: reads and writes `learned.toml`.
//!
//! Invariants: a host reads it when it begins and when the person presses a key or tells it to, and at no other time; a
//! file that is not understood is not overwritten.

use std::path::Path;

use crate::gate::{Learned, LearnedList};
use crate::recorder::{self, LEARNED_NAME};
use crate::sys::process;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// Columns of a sentence about the file.
const SENTENCE_COLUMNS: usize = 400;

/// Reads what the person always allows.
///
/// # Errors
/// A sentence on what is wrong with the file.
pub fn read_learned(home: &Path) -> Result<LearnedList, String> {
    let path = home.join(LEARNED_NAME);
    let shown = |problem: String| escape_line(&problem, SENTENCE_COLUMNS);
    let bytes = recorder::read_learned(home, process::uid())
        .map_err(|error| shown(format!("{} cannot be read: {}", path.display(), reason(&error))))?;
    LearnedList::read(&bytes).map_err(|error| shown(format!("{}:{error}", path.display())))
}

/// Writes what the person always allows.
///
/// # Errors
/// A sentence on why that was not possible.
pub fn write_learned(home: &Path, list: &LearnedList) -> Result<(), String> {
    recorder::write_learned(home, process::uid(), &list.text()).map_err(|error| {
        let path = home.join(LEARNED_NAME);
        escape_line(&format!("{} cannot be written: {}", path.display(), reason(&error)), SENTENCE_COLUMNS)
    })
}

/// What the file has by now.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) list: LearnedList,
    /// Somebody has changed it since the host read it.
    pub(super) was_changed: bool,
}

/// Adds something that the person always allows to the file, of which the host knows this.
///
/// # Errors
/// A sentence on what is wrong with the file.
pub(super) fn add(home: &Path, known: &LearnedList, learned: Learned) -> Result<Saved, String> {
    let mut list = read_learned(home)?;
    let was_changed = list.text() != known.text();
    list.add(learned);
    write_learned(home, &list)?;
    Ok(Saved { list, was_changed })
}
