//! The end of a flood: what a command wrote last of an output that is moved on unread.
//!
//! A flood is not copied, and nobody knows beforehand which bytes are its last ones. So the kernel hands out the latest
//! pages a second time (tee(2)), into a pipe of this process, where newer ones replace them.
//!
//! Invariant: the pipe holds bytes that have been moved on, in order, and nothing came after them.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::sys;

/// What is held of a flood's end at least, where it has as much, bytes.
pub(super) const END_BYTES: usize = 16 << 10;
/// How long a flood rests before its end is reported.
const REST: Duration = Duration::from_millis(1);
/// The size that is asked for of the pipe, bytes. Small writes take a page of it each.
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
    /// Whether this much more fits, so that what is held needs not be forgotten first.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= 2 * END_BYTES
    }

    /// Holds the next bytes of this pipe, which stay in it. Returns how many of them are held; none when too many writes are
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

    /// Takes what is held. Returns its length.
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> usize {
        let bytes = std::mem::take(&mut self.bytes).min(buffer.len());
        match &self.pipe {
            Some((end, _)) if bytes > 0 => sys::read(end.as_raw_fd(), &mut buffer[..bytes]).unwrap_or(0),
            _ => 0,
        }
    }

    /// When the flood has rested long enough to be over. `None` if nothing is held.
    pub(super) fn rested_at(&self) -> Option<Instant> {
        self.latest.filter(|_| self.bytes > 0).map(|latest| latest + REST)
    }
}
