//! One run of a session, by its number.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use memchr::memmem::Finder;

use super::chunks::{Chunks, record_with};
use super::facts::{RunOutcome, head};
use super::session::{JournalFile, SessionHistory};
use crate::journal::reader::{JournalReader, Record};
use crate::journal::record::{EndRecord, Library, LostRecord, RecordedOutput, RunEnd, StartRecord, TextRecord};

/// A run as its journal has it.
#[derive(Debug, Clone)]
pub struct FoundRun {
    pub session: String,
    /// The directory of the journal.
    pub home: PathBuf,
    pub file: PathBuf,
    /// The session's host runs. Then a run without an end runs, too.
    pub is_alive: bool,
    pub outcome: RunOutcome,
    /// The start, with its long arguments put together.
    pub start: StartRecord,
    /// The end. `None` if the journal does not have it.
    pub end: Option<RunEnd>,
    /// The output in the record.
    pub recorded: RecordedOutput,
}

/// Finds the run `seq`. `None` if the session has no record of it.
///
/// # Errors
/// A file cannot be read. One that is gone is left out.
pub fn find(session: &SessionHistory, seq: u64) -> io::Result<Option<FoundRun>> {
    for part in &session.files {
        let file = match File::open(&part.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if session.open.is_none() {
            match find_unnumbered(file, seq)? {
                None => continue,
                Some(found) => return Ok(Some(FoundRun { file: part.path.clone(), ..found.of(session) })),
            }
        }
        if let Some(mut found) = find_in(part, &file, seq)? {
            found.complete(&file)?;
            return Ok(Some(FoundRun { file: part.path.clone(), ..found.of(session) }));
        }
    }
    Ok(None)
}

/// Finds a run in a file: its last record, which says most about it.
fn find_in(part: &JournalFile, file: &File, seq: u64) -> io::Result<Option<FoundRun>> {
    let needle = format!("\",\"seq\":{seq},");
    let finder = Finder::new(&needle);
    let length = file.metadata()?.len();
    let last_in = |range: Range<u64>| -> io::Result<Option<FoundRun>> {
        let mut chunks = Chunks::within(file, range);
        while let Some(chunk) = chunks.next()? {
            let runs = chunk.lines_with(&finder).filter(|(_, line)| head(line).is_some_and(|(_, of)| of == seq));
            if let Some(found) = runs.filter_map(|(_, line)| FoundRun::parse(line)).last() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    };
    let Some(summary) = part.summary(file) else { return last_in(0..length) };
    let newest = last_in(summary.length..length)?;
    if newest.is_some() || !summary.may_have(seq) {
        return Ok(newest);
    }
    // The end of most runs stands near their start, so the places are read from there on.
    let mut begun = None;
    let mut from = summary.place(seq);
    while from < summary.length {
        let until = summary.place_after(from);
        let found = last_in(from..until)?;
        if found.as_ref().is_some_and(|found| found.outcome != RunOutcome::Open) {
            return Ok(found);
        }
        begun = found.or(begun);
        from = until;
    }
    Ok(begun)
}

/// Finds a run in a file whose runs may have no numbers.
fn find_unnumbered(file: File, seq: u64) -> io::Result<Option<FoundRun>> {
    let mut found = None;
    for record in JournalReader::new(file) {
        match record? {
            Record::Start(start) if start.card.seq == seq => found = Some(FoundRun::new(RunOutcome::Open, *start)),
            Record::Lost(lost) if lost.start.card.seq == seq => {
                found = Some(FoundRun::new(RunOutcome::Lost, lost.start))
            }
            Record::End(end) if end.start.card.seq == seq => found = Some(FoundRun::ended(*end)),
            _ => {}
        }
    }
    Ok(found)
}

impl FoundRun {
    fn new(outcome: RunOutcome, start: StartRecord) -> FoundRun {
        let (session, home, file, recorded) = Default::default();
        FoundRun { session, home, file, is_alive: false, outcome, start, end: None, recorded }
    }

    fn ended(EndRecord { start, end, output }: EndRecord) -> FoundRun {
        FoundRun { end: Some(end), recorded: output, ..FoundRun::new(RunOutcome::Ended, start) }
    }

    fn parse(line: &[u8]) -> Option<FoundRun> {
        let (kind, _) = head(line)?;
        match &*kind {
            "start" => Some(FoundRun::new(RunOutcome::Open, serde_json::from_slice(line).ok()?)),
            "lost" => {
                let LostRecord { start } = serde_json::from_slice(line).ok()?;
                Some(FoundRun::new(RunOutcome::Lost, start))
            }
            "end" => EndRecord::parse(line).ok().map(FoundRun::ended),
            _ => None,
        }
    }

    fn of(self, session: &SessionHistory) -> FoundRun {
        let (name, home) = (session.name.clone(), session.home().to_owned());
        FoundRun { session: name, home, is_alive: session.is_alive(), ..self }
    }

    /// Puts the long arguments together, whose texts stand elsewhere in the file.
    fn complete(&mut self, file: &File) -> io::Result<()> {
        let mut library = Library::default();
        for made_of in self.start.exec_text.values() {
            let needle = format!("\"type\":\"text\",\"id\":{},", made_of.id);
            let text: Option<TextRecord> = record_with(file, &needle)?;
            text.into_iter().for_each(|text| library.add(text));
        }
        library.complete(&mut self.start);
        Ok(())
    }

    /// Returns true if it still runs, according to its journal and its host's process.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.outcome == RunOutcome::Open && self.is_alive
    }
}
