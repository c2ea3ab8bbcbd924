//! People's answers for a run: how much they typed, when and where.
//!
//! Invariant: the journal's files are read from the run's last record back to its start, and no others.

use std::fs::File;
use std::io;

use memchr::memmem::Finder;

use super::chunks::Chunks;
use super::find::FoundRun;
use super::session::{JournalFile, sessions};
use crate::journal::record::InputRecord;

impl FoundRun {
    /// The answers that it got, oldest first.
    ///
    /// # Errors
    /// A file cannot be read. One that is gone is left out.
    pub fn answers(&self) -> io::Result<Vec<InputRecord>> {
        // A run without an end has no count.
        let wanted = self.end.as_ref().map_or(usize::MAX, |end| usize::try_from(end.answers).unwrap_or(usize::MAX));
        let mut answers: Vec<InputRecord> = Vec::new();
        if wanted == 0 {
            return Ok(answers);
        }
        let sessions = sessions(&self.home)?;
        let files = sessions.iter().filter(|session| session.name == self.session).flat_map(|session| &session.files);
        for part in files.skip_while(|part| part.path != self.file) {
            let file = match File::open(&part.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let (mut earlier, is_first) = self.answers_in(part, &file, wanted - answers.len())?;
            earlier.append(&mut answers);
            answers = earlier;
            if is_first || answers.len() >= wanted {
                break;
            }
        }
        Ok(answers)
    }

    /// The oldest answers in a file, `wanted` or somewhat more if it has so many, and true if the run began there.
    fn answers_in(&self, part: &JournalFile, file: &File, wanted: usize) -> io::Result<(Vec<InputRecord>, bool)> {
        let seq = self.start.card.seq;
        let needle = format!("\"type\":\"input\",\"seq\":{seq},");
        let finder = Finder::new(&needle);
        let summary = part.summary(file);
        let begun = summary.as_ref().filter(|summary| summary.has_begun(seq));
        let length = file.metadata()?.len();
        let mut from = begun.map_or(0, |summary| summary.place(seq));
        let mut found = Vec::new();
        while from < length && found.len() < wanted {
            let until = summary.as_ref().map_or(length, |summary| summary.place_after(from));
            let until = if until > from { until } else { length };
            let mut chunks = Chunks::within(file, from..until);
            let mut there: Vec<(u64, InputRecord)> = Vec::new();
            while let Some(chunk) = chunks.next()? {
                let lines = chunk.lines_with(&finder);
                there.extend(lines.filter_map(|(at, line)| Some((at, serde_json::from_slice(line).ok()?))));
            }
            there.sort_by_key(|(at, _)| *at);
            found.extend(there.into_iter().map(|(_, answer)| answer));
            from = until;
        }
        Ok((found, begun.is_some() || !part.continues))
    }
}
