//! A run whose frames the host keeps for the next recorder.
//!
//! Invariant: until the file has the run's end, the frames of its start and its end are kept, and either those of all
//! its output or none of them.

use crate::core::end::End;
use crate::core::engine::{Cursor, JobId};
use crate::journal::frame::{self, Frame};
use crate::journal::record::RunEnd;
use crate::limits;

/// A run whose end the file does not have yet.
#[derive(Debug)]
pub(super) struct Held {
    /// The place in the job's log, until the job is closed.
    pub(super) cursor: Option<Cursor>,
    /// The facts about the run's end that are known so far.
    pub(super) end: RunEnd,
    /// The frames of the start; empty if the run was given up. Then no recorder knows the run, and it would lose the
    /// end without counting it.
    pub(super) start: Vec<u8>,
    /// The frames of the output, while they are few.
    pub(super) output: Vec<u8>,
    is_output_whole: bool,
    /// Bytes of output that were sent.
    pub(super) sent: u64,
    /// The frame of the end, once the run has ended.
    pub(super) ended: Vec<u8>,
}

impl Held {
    /// Begins with the frames of the run's start.
    pub(super) fn new(cursor: Cursor, start: Vec<u8>) -> Held {
        let end = RunEnd { seq: cursor.job.0, ..RunEnd::default() };
        let (output, ended) = (Vec::new(), Vec::new());
        Held { cursor: Some(cursor), end, start, output, is_output_whole: true, sent: 0, ended }
    }

    /// The frames that are kept, bytes.
    pub(super) fn weight(&self) -> usize {
        self.start.len() + self.output.len() + self.ended.len()
    }

    /// Keeps frames of output, or gives up all of them when there are too many. A record with a hole in the middle of
    /// its output would not say where the hole is.
    pub(super) fn keep_output(&mut self, frames: &[u8]) {
        if self.is_output_whole && self.output.len() + frames.len() <= limits::RECORDER_HELD_OUTPUT_BYTES {
            self.output.extend_from_slice(frames);
        } else {
            self.is_output_whole = false;
            self.output = Vec::new();
        }
    }

    pub(super) fn finish(&mut self, end: &End) {
        let end = ended(std::mem::take(&mut self.end), end);
        self.cursor = None;
        frame::encode_end(end, &mut self.ended);
    }

    /// Appends the frames about the run, but for its end, for a new recorder. Counts output that is not kept.
    pub(super) fn replay(&self, job: JobId, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start);
        out.extend_from_slice(&self.output);
        if !self.is_output_whole {
            Frame::Lost { seq: job.0, bytes: self.sent }.encode(out);
        }
    }
}

/// Adds the facts that every reader of the run's log gets.
fn ended(facts: RunEnd, end: &End) -> RunEnd {
    RunEnd {
        exit: end.code(),
        signal: end.signal(),
        duration_ms: end.took_ms(),
        error: end.error().map(str::to_owned),
        by: end.by.map(|by| by.word().to_owned()),
        ..facts
    }
}
