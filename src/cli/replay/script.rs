//! A run as a script to play: its events and their times.

use std::io;
use std::time::Duration;

use crate::history::{FoundRun, RunRecording, SessionHistory};
use crate::journal::recording::{EventKind, RecordedEvent};
use crate::text::safe::SafeFilter;

/// A run with its recording.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) run: FoundRun,
    pub(super) recording: Option<RunRecording>,
}

/// The runs of one session to play.
#[derive(Debug)]
pub(super) struct Show {
    pub(super) session: SessionHistory,
    /// The start of each (milliseconds since 1970) and its number; oldest first.
    pub(super) runs: Vec<(i64, u64)>,
}

impl Scene {
    pub(super) fn of(run: FoundRun) -> io::Result<Scene> {
        let recording = run.recording()?;
        Ok(Scene { run, recording })
    }

    /// The terminal's rows and columns, if they are known.
    pub(super) fn window(&self) -> Option<(u16, u16)> {
        self.recording.as_ref().map(|recording| recording.window)
    }

    /// Returns true if the console would skip some of its output, because it drew on the whole screen.
    pub(super) fn is_full_screen(&self) -> bool {
        let (mut filter, mut shown) = (SafeFilter::new(), Vec::new());
        for output in self.recording.iter().flat_map(|recording| &recording.events) {
            if output.kind == EventKind::Output {
                filter.push(output.text.as_bytes(), &mut shown);
                shown.clear();
            }
        }
        filter.take_hidden_bytes() > 0
    }

    /// The events, in order. Without a recording, the text of the record comes at the end.
    pub(super) fn events(&mut self) -> Vec<RecordedEvent> {
        match &mut self.recording {
            Some(recording) => std::mem::take(&mut recording.events),
            None if self.run.recorded.text.is_empty() => Vec::new(),
            None => {
                let text = std::mem::take(&mut self.run.recorded.text);
                vec![RecordedEvent { at: self.took().unwrap_or_default(), kind: EventKind::Output, text }]
            }
        }
    }

    /// The time from the run's start to its end; `None` if it has none.
    pub(super) fn took(&self) -> Option<Duration> {
        self.run.end.as_ref().map(|end| Duration::from_millis(end.duration_ms))
    }
}
