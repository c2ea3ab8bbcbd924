//! How long a line must stay unchanged before a reader gets it unfinished: an exponential backoff per line.
//!
//! A line that only grew may be a prompt, so the reader gets it after the settle time. A line that is rewritten is a
//! progress bar or a spinner, whose states are worth little. Its wait doubles each time it is rewritten after the reader
//! got it, and starts at [`REWRITTEN`] doublings if it was rewritten before that. A *parked* line, one whose cursor the
//! program has led back to the start of its text, is about to be overwritten and waits the longest.

use std::time::Duration;

/// Doublings of the settle time before a rewritten line is given to the reader for the first time.
const REWRITTEN: u32 = 3;
/// The most doublings.
const DOUBLINGS_MAX: u32 = 5;

/// The backoff of one line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backoff {
    /// The reader has the line, and it was not rewritten since.
    is_given: bool,
    doublings: u32,
}

impl Backoff {
    /// How long the line must stay unchanged.
    pub(super) fn wait(self, still: Duration, is_parked: bool) -> Duration {
        still.saturating_mul(1 << if is_parked { DOUBLINGS_MAX } else { self.doublings })
    }

    /// The reader got the line as it is.
    pub(super) fn on_given(&mut self) {
        self.is_given = true;
    }

    /// Some of the line's text was erased or overwritten. `was_given` says whether the reader ever got the line.
    pub(super) fn on_rewritten(&mut self, was_given: bool) {
        if std::mem::take(&mut self.is_given) {
            self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        } else if !was_given {
            self.doublings = self.doublings.max(REWRITTEN);
        }
    }
}
