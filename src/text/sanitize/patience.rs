//! How long a line has to stand still before a reader is given it unfinished.
//!
//! A line that only grew may be a prompt, and the reader has it after the settle time. A line that is rewritten is a bar
//! or a spinner, whose states are worth little: the wait doubles each time that a line is rewritten after it was given,
//! and begins at [`REWRITTEN`] doublings where it was rewritten before. A program that leaves its cursor at the start of
//! its text is about to write over it: such a line, a *parked* one, waits as long as any.

use std::time::Duration;

/// How often the settle time is doubled before a line that was rewritten is given for the first time.
const REWRITTEN: u32 = 3;
/// How often it is doubled at most.
const DOUBLINGS_MAX: u32 = 5;

/// What a line's history says about it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    /// It was not rewritten since it was given.
    is_given: bool,
    doublings: u32,
}

impl Patience {
    /// How long the line has to stand still.
    pub(crate) fn wait(self, still: Duration, is_parked: bool) -> Duration {
        still * (1 << if is_parked { DOUBLINGS_MAX } else { self.doublings })
    }

    /// The reader has the line as it is.
    pub(crate) fn on_given(&mut self) {
        self.is_given = true;
    }

    /// Text of it was erased or overwritten; the reader was given it before, or never.
    pub(crate) fn on_rewritten(&mut self, was_given: bool) {
        if std::mem::take(&mut self.is_given) {
            self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        } else if !was_given {
            self.doublings = self.doublings.max(REWRITTEN);
        }
    }
}
