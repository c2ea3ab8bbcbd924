//! The recording of a run: what it wrote, and when.
//!
//! Invariants: a line that is torn or of a later version costs itself only; a file outside of the journal's directory is
//! never read, whatever a record says.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::find::FoundRun;
use super::output::raw_path;
use crate::journal::recording::{EventKind, RecordedEvent, line_start, parse_event, parse_size};

/// A run's recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecording {
    /// The terminal's rows and columns at the beginning.
    pub window: (u16, u16),
    /// What follows, in order.
    pub events: Vec<RecordedEvent>,
}

impl FoundRun {
    /// Reads the run's recording; `None` if there is none.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn recording(&self) -> io::Result<Option<RunRecording>> {
        let Some((name, (from, to))) = self.recorded.recording.as_deref().zip(self.recorded.recording_at) else {
            return Ok(None);
        };
        let mut file = match raw_path(&self.home, name).map(File::open) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Some(Ok(file)) if file.metadata()?.is_file() => file,
            _ => return Ok(None),
        };
        file.seek(SeekFrom::Start(from))?;
        let mut lines = BufReader::with_capacity(256 << 10, file.take(to.saturating_sub(from)));
        let (own, mut line, mut events) = (line_start(self.start.seq), Vec::new(), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            if line.starts_with(&own) {
                events.extend(parse_event(line.trim_ascii_end()));
            }
            line.clear();
        }
        let first = events.first().filter(|event| event.kind == EventKind::Size);
        let Some(window) = first.and_then(|event| parse_size(&event.text)) else { return Ok(None) };
        events.remove(0);
        Ok(Some(RunRecording { window, events }))
    }
}
