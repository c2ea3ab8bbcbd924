//! The end of a flood: the last bytes of an output that is moved on unread.
//!
//! A flood is not copied, and its last bytes are not known beforehand. So the kernel hands out the latest pages a
//! second time (tee(2)), into a pipe of this process, where newer ones replace them.
//!
//! Invariant: the pipe holds bytes that have been moved on, in order, and nothing came after them.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::sys;

/// The least bytes held of a flood's end, if it has as many.
pub(super) const END_BYTES: usize = 16 << 10;
/// The time for which a flood rests before its end is reported.
const REST: Duration = Duration::from_millis(1);
/// The wanted size of the pipe, bytes. Small writes take a page of it each.
const PIPE_BYTES: i32 = 256 << 10;

/// The latest bytes of a flood.
#[derive(Debug, Default)]
pub(super) struct FloodEnd {
    /// Made at the first flood.
    pipe: Option<(OwnedFd, OwnedFd)>,
    bytes: usize,
    latest: Option<Instant>,
}

impl FloodEnd {
    /// Returns true if this much more fits, so that the held bytes need not be forgotten first.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= 2 * END_BYTES
    }

    /// Holds the next bytes of this pipe, which stay in it. Returns the number of held ones; 0 if too many writes are
    /// held already.
    pub(super) fn hold(&mut self, from: &OwnedFd, bytes: usize) -> usize {
        if self.pipe.is_none() {
            self.pipe = sys::pipe().ok();
            self.pipe.iter().for_each(|(end, _)| sys::enlarge(end.as_raw_fd(), PIPE_BYTES));
        }
        let held = self.pipe.as_ref().and_then(|(_, end)| sys::tee(from, end, bytes).ok()).unwrap_or(0);
        self.bytes += held;
        self.latest = Some(Instant::now());
        held
    }

    /// Takes the held bytes. Returns their length.
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> usize {
        let bytes = std::mem::take(&mut self.bytes).min(buffer.len());
        match &self.pipe {
            Some((end, _)) if bytes > 0 => sys::read(end.as_raw_fd(), &mut buffer[..bytes]).unwrap_or(0),
            _ => 0,
        }
    }

    /// The time at which the flood has rested long enough to be over. `None` if nothing is held.
    pub(super) fn rested_at(&self) -> Option<Instant> {
        self.latest.filter(|_| self.bytes > 0).map(|latest| latest + REST)
    }
}
