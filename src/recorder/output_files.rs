//! The recordings' files, beside the raw files in one directory. Each has the recordings of many runs, so that a short run
//! costs one write.
//!
//! Invariants: all lines of a run are in one file; an event is one line, and a line is written whole or not at all,
//! unless the disk takes part of one and does not let go of it, and then the next line begins on its own; the human
//! learns once that recordings cannot be written, and once that they can be again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use super::append::{append_line, undo};
use super::output_directory::{OutputDirectory, OutputFileKind, reference};
use crate::limits;
use crate::text::reason::reason;

/// The directory of output, and the recordings' files in it.
#[derive(Debug)]
pub(super) struct OutputFiles {
    /// The directory of raw files and recordings.
    pub(super) directory: OutputDirectory,
    /// The files that recordings are written to.
    files: BTreeMap<u32, RecordingFile>,
    /// The file for the next run.
    current: Option<u32>,
    next: u32,
    is_failing: bool,
    news: Vec<String>,
}

/// One file of recordings.
#[derive(Debug)]
struct RecordingFile {
    file: File,
    name: String,
    length: u64,
    /// The file ends in the middle of a line.
    is_torn: bool,
    since: Instant,
    /// The runs that are being recorded in it.
    runs: u32,
    is_synced: bool,
}

/// The place of a run's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    file: u32,
    /// The path below the journal's directory.
    pub(super) reference: String,
    /// The offset of its first line, and the one behind its last line.
    pub(super) range: (u64, u64),
}

impl OutputFiles {
    pub(super) fn new(directory: OutputDirectory) -> OutputFiles {
        let (files, news) = (BTreeMap::new(), Vec::new());
        OutputFiles { directory, files, current: None, next: 0, is_failing: false, news }
    }

    /// Writes lines of a run after those in this place, or in a new one.
    pub(super) fn write(&mut self, place: &mut Option<Place>, lines: &[u8]) -> Result<(), String> {
        let written = self.append(place, lines);
        match &written {
            Err(error) if !std::mem::replace(&mut self.is_failing, true) => {
                self.news.push(format!("recordings cannot be written: {error}; commands and the journal go on"));
            }
            Ok(()) if std::mem::take(&mut self.is_failing) => {
                self.news.push("recordings are written again".to_owned());
            }
            _ => {}
        }
        written
    }

    fn append(&mut self, place: &mut Option<Place>, lines: &[u8]) -> Result<(), String> {
        let more = lines.len() as u64 + 1;
        if !self.directory.has_room(more) {
            return Err("raw files and recordings have no more room".to_owned());
        }
        let id = match place {
            Some(place) => place.file,
            None => self.file().map_err(|error| reason(&error))?,
        };
        let Some(file) = self.files.get_mut(&id) else { return Err("its file is gone".to_owned()) };
        let lead = u64::from(file.is_torn);
        let written = append_line(&file.file, lines, &mut file.is_torn, undo);
        let from = file.length + lead;
        let metadata = file.file.metadata();
        let is_there = metadata.as_ref().is_ok_and(|metadata| metadata.nlink() > 0);
        let length = metadata.map_or(from + lines.len() as u64, |metadata| metadata.len());
        self.directory.grow(length.saturating_sub(file.length));
        (file.length, file.is_synced) = (length, false);
        written.map_err(|error| reason(&error))?;
        if !is_there {
            return Err("their file was removed".to_owned());
        }
        match place {
            Some(place) => place.range.1 = length,
            None => {
                file.runs += 1;
                let range = (length - lines.len() as u64, length);
                *place = Some(Place { file: id, reference: reference(&file.name), range });
            }
        }
        Ok(())
    }

    /// The file for a run that has none.
    fn file(&mut self) -> io::Result<u32> {
        let known = self.current.and_then(|id| self.files.get(&id).map(|file| (id, file)));
        if let Some((id, file)) = known {
            let is_there = file.file.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
            let is_full = file.length >= limits::RECORDING_FILE_BYTES;
            if is_there && !is_full && file.since.elapsed() < limits::RECORDING_FILE_AGE {
                return Ok(id);
            }
            self.current = None;
            self.close_unused(id);
        }
        let (file, name) = self.directory.create(OutputFileKind::Recording)?;
        let (id, since) = (self.next, Instant::now());
        self.next += 1;
        let file = RecordingFile { file, name, length: 0, is_torn: false, since, runs: 0, is_synced: true };
        self.files.insert(id, file);
        self.current = Some(id);
        Ok(id)
    }

    /// Notes that a run writes no more lines there.
    pub(super) fn leave(&mut self, place: &Place) {
        if let Some(file) = self.files.get_mut(&place.file) {
            file.runs -= 1;
        }
        if self.current != Some(place.file) {
            self.close_unused(place.file);
        }
    }

    /// Closes the file for the next run if somebody has removed it. Its room on the disk is free only then.
    pub(super) fn let_go_of_removed(&mut self) {
        let is_removed = |file: &RecordingFile| file.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0);
        if let Some(id) = self.current.filter(|id| self.files.get(id).is_some_and(is_removed)) {
            self.current = None;
            self.close_unused(id);
        }
    }

    fn close_unused(&mut self, id: u32) {
        if self.files.get(&id).is_some_and(|file| file.runs == 0)
            && let Some(file) = self.files.remove(&id)
        {
            self.directory.close(file.file, &file.name, file.length);
        }
    }

    pub(super) fn sync(&mut self) {
        self.directory.sync();
        for file in self.files.values_mut().filter(|file| !file.is_synced) {
            // A disk that cannot sync refuses the next write, and that is reported.
            let _ = file.file.sync_data();
            file.is_synced = true;
        }
    }

    /// Takes the news for the human.
    pub(super) fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }
}
