//! The order of the caller's two outputs, for a caller that reads both in turns.
//!
//! A pipe does not show when it was written. A reader that wakes up and finds bytes in both of its pipes takes them in
//! the order of its descriptors. The command's own writes are mostly far enough apart for a reader to have taken one
//! before the next. Here several frames may have come together, and would be written within a microsecond. So before a
//! write to one output, this process waits until the reader has taken the bytes of the other, unless that takes too
//! long.
//!
//! Invariants: a wait ends after [`PATIENCE`]; after a reader has let one pass, there is no wait for it until it has
//! caught up; while many bytes are waiting there is no wait.

use std::time::{Duration, Instant};

use rexec_sh::protocol::wire::CallerStream;

use super::{Client, index};
use crate::sys;

/// The most time to wait for the other output's reader.
const PATIENCE: Duration = Duration::from_millis(1);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_micros(5);
/// The number of waiting bytes beyond which nobody can follow along.
const FLOOD_BYTES: usize = 4096;

/// The output of the last write, and the outputs whose readers are behind.
#[derive(Debug, Default)]
pub(super) struct Turns {
    last: Option<CallerStream>,
    /// The output's reader let a wait time out, and had not caught up at the last look.
    is_behind: [bool; 2],
}

impl Client {
    /// Waits until the reader has the bytes of the other output.
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
