//! The recording of a run: what it wrote, and when.
//!
//! Invariants: a line that is torn or of a later version costs itself only; a file outside of the journal's directory is
//! never read, whatever a record says.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use super::find::FoundRun;
use super::output::raw_path;
use crate::journal::recording::{EventKind, RecordedEvent, line_start, parse_event, parse_size};

#[derive(Debug, Clone, PartialEq)]
pub struct RunRecording {
    /// The terminal's rows and columns at the beginning.
    pub window: (u16, u16),
    pub events: Vec<RecordedEvent>,
}

impl FoundRun {
    /// Reads the run's recording, up to the death of a host that did not report the run's end. `None` if there is none.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn recording(&self) -> io::Result<Option<RunRecording>> {
        if self.end.is_none() && !self.is_alive {
            return self.unfinished_recording();
        }
        let Some((name, (from, to))) = self.recorded.recording.as_deref().zip(self.recorded.recording_at) else {
            return Ok(None);
        };
        let mut file = match raw_path(&self.home, name).map(File::open) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Some(Ok(file)) if file.metadata()?.is_file() => file,
            _ => return Ok(None),
        };
        file.seek(SeekFrom::Start(from))?;
        Ok(RunRecording::of(events(file.take(to.saturating_sub(from)), self.start.card.seq)?))
    }

    /// Reads the recorded output of a run without an end. `None` if nothing is recorded.
    ///
    /// # Errors
    /// A file is there and cannot be read.
    pub fn unfinished_recording(&self) -> io::Result<Option<RunRecording>> {
        let mut found = Vec::new();
        for path in self.recording_files()? {
            match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                file => found.append(&mut events(file?, self.start.card.seq)?),
            }
        }
        Ok(RunRecording::of(found))
    }

    /// The files in which the recordings of the run's session are. All lines of a run are in one of them.
    fn recording_files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(self.home.join("raw")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let is_its = |name: &str| {
            let number = name.strip_prefix(&self.session).and_then(|rest| rest.strip_suffix(".rec"));
            number.is_some_and(|number| number.is_empty() || number.starts_with('.'))
        };
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        Ok(paths.filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_its)).collect())
    }
}

/// Reads the events of one command among those of others.
fn events(source: impl Read, seq: u64) -> io::Result<Vec<RecordedEvent>> {
    let mut lines = BufReader::with_capacity(256 << 10, source);
    let (own, mut line, mut events) = (line_start(seq), Vec::new(), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        if line.starts_with(&own) {
            events.extend(parse_event(line.trim_ascii_end()));
        }
        line.clear();
    }
    Ok(events)
}

impl RunRecording {
    /// The recording with these events. `None` unless the first one is the terminal's size.
    fn of(mut events: Vec<RecordedEvent>) -> Option<Self> {
        let first = events.first().filter(|event| event.kind == EventKind::Size);
        let window = first.and_then(|event| parse_size(&event.text))?;
        events.remove(0);
        Some(Self { window, events })
    }

    /// The output before this time since the run's start, as a terminal got it.
    pub fn output_before(&self, end: Duration) -> Vec<u8> {
        let written = self.events.iter().filter(|event| event.kind == EventKind::Output && event.at < end);
        written.flat_map(|event| event.text.bytes()).collect()
    }
}
