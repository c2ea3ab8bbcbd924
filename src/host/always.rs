//! What the person always allows: reads and writes `learned.toml`; and what is proposed to them, before they say so.
//!
//! Invariants: a host reads it when it begins and when the person presses a key or tells it to, and at no other time; a
//! file that is not understood is not overwritten; nothing is saved but what the person has read.

use std::path::Path;

use crate::gate::{Learned, LearnedList, Unlearnable};
use crate::recorder::{self, LEARNED_NAME};
use crate::sys::process;
use crate::text::escape::escape_line;
use crate::text::place::place;
use crate::text::reason::reason;

/// Columns of a sentence about the file.
const SENTENCE_COLUMNS: usize = 400;
/// Columns of a project's name in a question.
const PROJECT_COLUMNS: usize = 24;

/// What would always allow what a command asks about.
#[derive(Debug, Clone)]
pub(super) struct Proposal {
    pub(super) learned: Learned,
    /// What the person reads of it.
    pub(super) words: String,
}

/// What a person may be asked to allow always. An error says why it can be allowed only once.
pub(super) type Proposed = Result<Proposal, Unlearnable>;

impl Proposal {
    pub(super) fn of(learned: Learned) -> Self {
        let home = std::env::var("HOME").unwrap_or_default();
        let project = [None, Some(0)].map(|depth| place(learned.project(), depth, &home));
        let project = project.iter().find(|name| name.len() <= PROJECT_COLUMNS).unwrap_or(&project[1]);
        let words = format!("`{learned}` in {} for {}", escape_line(project, PROJECT_COLUMNS), learned.agent());
        Self { learned, words }
    }
}

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
