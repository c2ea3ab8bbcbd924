//! All output of a run that was kept: the text in its record, or its raw file.
//!
//! Invariants: what is missing is counted; a file outside of the journal's directory is never read, whatever a record
//! says; secrets are masked in both, because the recorder masked them.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::find::FoundRun;
use crate::journal::record::RecordedOutput;

/// Where an output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSource {
    /// The record: clean text, without escape sequences, its redraws resolved.
    Record,
    /// The raw file: the bytes as the command wrote them.
    Raw,
}

/// A part that was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omission {
    /// The offset at which it would stand, bytes.
    pub at: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub struct WholeOutput {
    pub source: OutputSource,
    /// The part in its middle, or at its end, that was not kept.
    pub omitted: Option<Omission>,
    /// Why more is missing than the quota explains, in words of the journal's.
    pub flaw: Option<String>,
    reader: OutputReader,
}

#[derive(Debug)]
enum OutputReader {
    Text(Cursor<Vec<u8>>),
    File(File),
    /// A file's beginning, and what follows that.
    Both(io::Chain<io::Take<File>, Cursor<Vec<u8>>>),
}

impl Read for WholeOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.reader {
            OutputReader::Text(text) => text.read(buffer),
            OutputReader::File(file) => file.read(buffer),
            OutputReader::Both(both) => both.read(buffer),
        }
    }
}

impl WholeOutput {
    #[must_use]
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        let reader = OutputReader::Text(Cursor::new(bytes));
        Self { source: OutputSource::Raw, omitted: None, flaw: None, reader }
    }
}

impl FoundRun {
    /// Returns true if a raw file has its output, or has it so far.
    #[must_use]
    pub fn has_raw_file(&self) -> bool {
        self.raw_name().and_then(|name| raw_path(&self.home, &name)).is_some_and(|path| path.is_file())
    }

    fn raw_name(&self) -> Option<String> {
        let unfinished = || (self.end.is_none()).then(|| format!("raw/{}-{}.out", self.session, self.start.card.seq));
        self.recorded.raw.clone().or_else(unfinished)
    }

    /// An output whose first bytes are the beginning of the run's raw file. `left_out` bytes behind them are not kept, and
    /// then come these.
    ///
    /// # Errors
    /// The raw file cannot be opened.
    pub fn output_so_far(&self, file_bytes: u64, left_out: u64, rest: Vec<u8>) -> io::Result<WholeOutput> {
        let path = self.raw_name().and_then(|name| raw_path(&self.home, &name)).ok_or(io::ErrorKind::NotFound)?;
        let beginning = File::open(path)?.take(file_bytes);
        let omitted = (left_out > 0).then_some(Omission { at: file_bytes, bytes: left_out });
        let reader = OutputReader::Both(beginning.chain(Cursor::new(rest)));
        Ok(WholeOutput { source: OutputSource::Raw, omitted, flaw: None, reader })
    }

    /// Opens the run's output. That of a run that has not ended is what its raw file has so far, or its recording.
    ///
    /// # Errors
    /// The raw file is there and cannot be opened.
    pub fn open_output(&self) -> io::Result<WholeOutput> {
        let recorded = &self.recorded;
        let named = recorded.raw.as_deref();
        let flaw = recorded.raw_error.clone();
        if let Some(name) = self.raw_name() {
            match raw_path(&self.home, &name).map(File::open) {
                Some(Ok(file)) if file.metadata()?.is_file() => {
                    let omitted =
                        recorded.raw_omitted.map(|bytes| Omission { at: recorded.raw_cut.unwrap_or(0), bytes });
                    return Ok(WholeOutput {
                        source: OutputSource::Raw,
                        omitted,
                        flaw,
                        reader: OutputReader::File(file),
                    });
                }
                Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.end.is_none()
            && let Some(recording) = self.unfinished_recording()?
        {
            return Ok(WholeOutput::of_bytes(recording.output_before(Duration::MAX)));
        }
        let gone = named.map(|name| format!("{name} is gone"));
        let reader = OutputReader::Text(Cursor::new(recorded.text.clone().into_bytes()));
        Ok(WholeOutput { source: OutputSource::Record, omitted: omission(recorded), flaw: gone.or(flaw), reader })
    }
}

fn omission(recorded: &RecordedOutput) -> Option<Omission> {
    let end = recorded.text.len() as u64;
    recorded.omitted.map(|bytes| Omission { at: recorded.cut.map_or(end, |cut| cut.min(end)), bytes })
}

/// The path of a raw file. `None` if the name leads out of the journal's directory.
pub(super) fn raw_path(home: &Path, name: &str) -> Option<PathBuf> {
    let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| home.join(name))
}
