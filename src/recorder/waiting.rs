//! A run's output that the recorder has not dealt with.
//!
//! A raw file has the beginning and the end of an output. Once it has the beginning, what comes next waits here for a
//! moment ([`WaitingOutput::keep_end`]). Of a flood, what is then pushed out by as much as the file has room for is counted
//! and never looked at. Other output is dealt with a moment later.
//!
//! Invariants: nothing is left out unless enough follows it; what is left out is counted exactly.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::timed_output::GRAIN;
use crate::limits;

/// One thing that waits for its turn.
#[derive(Debug)]
pub(super) enum Waiting {
    Output {
        stream: u8,
        /// When its first byte came, from the run's start.
        at: Duration,
        bytes: Vec<u8>,
    },
    /// The terminal's size from then on.
    Size(Duration, (u16, u16)),
    /// A person typed this much.
    Input(Duration, String),
    /// The host asks how far the run is.
    Mark(u64),
}

/// The bounds of what may be the end of an output.
#[derive(Debug)]
struct End {
    /// How much is kept, bytes.
    room: usize,
    /// When it began, or when something was last pushed out.
    since: Instant,
}

#[derive(Debug, Default)]
pub(super) struct WaitingOutput {
    queue: VecDeque<Waiting>,
    /// How much was left out before the queue, bytes.
    left_out: u64,
    /// How much output is in the queue, bytes.
    bytes: usize,
    end: Option<End>,
}

impl WaitingOutput {
    /// Queues output of this time, in pieces of this size.
    pub(super) fn push(&mut self, stream: u8, at: Duration, bytes: &[u8], piece: usize, now: Instant) {
        for bytes in bytes.chunks(piece) {
            match self.queue.back_mut() {
                Some(Waiting::Output { stream: same, at: began, bytes: waiting })
                    if *same == stream && waiting.len() + bytes.len() <= piece && at <= *began + GRAIN =>
                {
                    waiting.extend_from_slice(bytes);
                }
                _ => self.queue.push_back(Waiting::Output { stream, at, bytes: bytes.to_vec() }),
            }
        }
        self.bytes += bytes.len();
        if let Some(end) = &mut self.end {
            while self.bytes >= end.room + piece
                && let Some(oldest) = self.queue.pop_front()
            {
                if let Waiting::Output { bytes, .. } = oldest {
                    self.bytes -= bytes.len();
                    end.since = now;
                    self.left_out += bytes.len() as u64;
                }
            }
        }
    }

    /// Queues the terminal's new size at this time.
    pub(super) fn push_size(&mut self, at: Duration, window: (u16, u16)) {
        match self.queue.back_mut() {
            Some(Waiting::Size(same_at, same)) => (*same_at, *same) = (at, window),
            _ => self.queue.push_back(Waiting::Size(at, window)),
        }
    }

    /// Queues the recording's text about an answer.
    pub(super) fn push_input(&mut self, at: Duration, text: String) {
        self.queue.push_back(Waiting::Input(at, text));
    }

    pub(super) fn push_mark(&mut self, mark: u64) {
        self.queue.push_back(Waiting::Mark(mark));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Allows from now on that output is left out. A raw file has room for `cap` bytes of the end.
    pub(super) fn keep_end(&mut self, cap: u64, now: Instant) {
        let room = usize::try_from(cap).unwrap_or(usize::MAX).saturating_add(2 * limits::END_CONTEXT_BYTES);
        self.end = Some(End { room, since: now });
    }

    /// Since when nothing was left out although it may be.
    pub(super) fn keeps_end_since(&self) -> Option<Instant> {
        self.end.as_ref().map(|end| end.since)
    }

    /// Leaves out nothing from now on. Returns how much output waits, bytes; 0 if nothing might be left out before.
    pub(super) fn release_end(&mut self) -> usize {
        self.end.take().map_or(0, |_| self.bytes)
    }

    /// Takes the number of bytes that were left out before what comes next.
    pub(super) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let oldest = self.queue.pop_front();
        if let Some(Waiting::Output { bytes, .. }) = &oldest {
            self.bytes -= bytes.len();
        }
        oldest
    }

    /// How much of the output after a gap is only context for what follows, bytes: so much that a raw file has room for
    /// the rest. `taken` bytes of what follows were taken just now.
    pub(super) fn context(&self, taken: usize, cap: u64) -> usize {
        let room = usize::try_from(cap).unwrap_or(usize::MAX);
        (self.bytes + taken).saturating_sub(room).max(limits::END_CONTEXT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_enough_is_kept_and_the_rest_is_counted() {
        let (mut waiting, start) = (WaitingOutput::default(), Instant::now());
        let (cap, piece) = (100_000, 1 << 14);
        waiting.keep_end(cap, start);
        let (mut came, later) = (0, start + Duration::from_secs(1));
        for at in 1..=3_000_u16 {
            waiting.push(1, Duration::from_secs(at.into()), &[0; 777], piece, later);
            came += 777;
            if at == 500 {
                assert_eq!((waiting.left_out, waiting.keeps_end_since()), (0, Some(start)), "all of it has room");
            }
        }
        assert_eq!(waiting.keeps_end_since(), Some(later));
        let released = waiting.release_end();
        let context = waiting.context(0, cap);
        assert_eq!((released - context) as u64, cap, "the raw file has room for the rest");
        waiting.push(1, Duration::ZERO, &[0; 1 << 20], piece, later);
        let left_out = waiting.take_left_out();
        assert!(released >= usize::try_from(cap).unwrap() + 2 * limits::END_CONTEXT_BYTES);
        assert_eq!((released as u64 + left_out, waiting.take_left_out()), (came, 0));
        let mut kept = 0;
        while let Some(next) = waiting.pop() {
            let Waiting::Output { bytes, .. } = next else { panic!("{next:?}") };
            kept += bytes.len();
        }
        assert_eq!(kept, released + (1 << 20), "nothing is left out any more");
    }
}
