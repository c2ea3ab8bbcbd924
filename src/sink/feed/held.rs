//! A run whose frames the host keeps for the next recorder.
//!
//! Invariant: until the file has the run's end, the frames of its start and its end are kept, and either those of all
//! its output or none of them.

use crate::core::engine::{Cursor, JobId};
use crate::core::entry::Entry;
use crate::journal::entry_words::record;
use crate::journal::frame::{self, Frame};
use crate::journal::record::RunEnd;
use crate::limits;

/// A run whose end the file does not have yet.
#[derive(Debug)]
pub(super) struct Held {
    /// The place in the job's log, until the record of the end is made.
    pub(super) cursor: Option<Cursor>,
    /// The facts about the run's end that are known so far.
    pub(super) end: RunEnd,
    /// The end itself is among them.
    pub(super) has_ended: bool,
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
        Held { cursor: Some(cursor), end, has_ended: false, start, output, is_output_whole: true, sent: 0, ended }
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

    /// Notes what this entry says about the run's end.
    pub(super) fn on_fact(&mut self, entry: &Entry) {
        record(entry, &mut self.end);
        self.has_ended |= matches!(entry, Entry::Ended(_));
    }

    pub(super) fn finish(&mut self) {
        frame::encode_end(std::mem::take(&mut self.end), &mut self.ended);
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
