//! The order of the caller's two outputs, for a caller that reads both and looks at them by turns.
//!
//! A pipe does not tell when it was written to. A reader that wakes up and finds bytes in both of its pipes takes them in
//! the order of its descriptors. The command's own writes are mostly far enough apart for a reader to have taken one
//! before the next. Here several frames may have come together, and would be written within a microsecond. So before one
//! output is written to, the reader has taken what was written to the other, unless it takes its time.
//!
//! Invariants: a wait ends after [`PATIENCE`]; a reader that let one pass is not waited for until it has caught up; while
//! much has come there is no wait.

use std::time::{Duration, Instant};

use rexec_sh::protocol::wire::CallerStream;

use super::{Client, index};
use crate::sys;

/// How long the other output's reader is waited for.
const PATIENCE: Duration = Duration::from_millis(1);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_micros(5);
/// With more than this that has come and is not written, bytes, nobody can follow along.
const FLOOD_BYTES: usize = 4096;

/// Which output was written to last, and whose readers are behind.
#[derive(Debug, Default)]
pub(super) struct Turns {
    last: Option<CallerStream>,
    /// The output's reader let the time for a wait pass, and had not caught up when that was looked at last.
    is_behind: [bool; 2],
}

impl Client {
    /// Waits until the reader has what was written to the other output than this one.
    pub(super) fn take_turn(&mut self, stream: CallerStream) {
        let Some(other) = self.turns.last.replace(stream).filter(|&last| last != stream) else { return };
        let output = &self.outputs[index(other)];
        if output.is_closed() || self.end - self.start > FLOOD_BYTES {
            return;
        }
        let until = Instant::now() + PATIENCE;
        let mut is_behind = !output.is_taken();
        while is_behind && !self.turns.is_behind[index(other)] && Instant::now() < until {
            let _ = sys::poll_for(&mut [], Some(PAUSE));
            is_behind = !output.is_taken();
        }
        self.turns.is_behind[index(other)] = is_behind;
    }
}
