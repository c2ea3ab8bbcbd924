//! When a session was, and how much it has.

use std::fs::File;
use std::io;

use serde::Serialize;

use super::session::{JournalFile, SessionHistory};
use crate::journal::reader::closing;
use crate::recorder::{count_runs, first_line};

/// A session in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionSpan {
    /// When its first file was begun, RFC 3339; empty if that is not known.
    pub began: String,
    /// When it was closed. `None` if it was not.
    pub ended: Option<String>,
    pub commands: u64,
    /// The length of its files, bytes.
    pub bytes: u64,
}

impl SessionHistory {
    /// Counts the session. Only the ends of files are read.
    ///
    /// # Errors
    /// A file cannot be read. One that is gone is left out.
    pub fn span(&self) -> io::Result<SessionSpan> {
        let mut span = SessionSpan::default();
        for (place, part) in self.files.iter().enumerate() {
            let file = match File::open(&part.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            span.bytes += file.metadata()?.len();
            let close = closing(&file)?;
            if place == 0 {
                span.ended = close.as_ref().map(|close| close.time.clone());
            }
            if let Some(open) = first_line(&file) {
                span.began = open.time;
            }
            span.commands += match close.and_then(|close| close.commands) {
                Some(commands) => commands,
                None => count_runs(&file)?,
            };
            span.commands -= repeated(part, &file, self.files.get(place + 1)).min(span.commands);
        }
        if self.open.is_none() {
            // A file of the tool before has no first line and no count.
            let result = super::search(self, &super::Query::default(), usize::MAX)?;
            span.commands = result.runs.len() as u64;
            let times = || result.runs.iter().map(|run| run.card.time.as_str()).filter(|time| !time.is_empty());
            span.began = times().min().unwrap_or_default().to_owned();
            span.ended = times().max().map(str::to_owned);
        }
        Ok(span)
    }
}

/// How many runs of a file are also in the file before it, according to their summaries.
fn repeated(part: &JournalFile, file: &File, before: Option<&JournalFile>) -> u64 {
    let before = before.filter(|_| part.continues).and_then(|before| before.summary(&File::open(&before.path).ok()?));
    let counted = part
        .summary(file)
        .zip(before)
        .map(|(summary, before)| summary.carried.into_keys().filter(|seq| before.may_have(*seq)).count());
    counted.unwrap_or(0) as u64
}
