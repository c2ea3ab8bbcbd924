//! Reads frames while an output is blocked, once a signal has asked the command to end.
//!
//! A shell that dies of a signal leaves in its caller's pipe the output that had room there, and waits for no reader.
//! The output that waits here for a full pipe would never have been written there. So this process looks for the
//! command's death after the waiting output, and then does not wait either. An abort asks the command to end, too.
//!
//! Reading ahead makes room for more output of a command that still lives, because its guard has not had a processor
//! yet. So output beyond the host's own memory is read slowly, which leaves the guard its time.
//!
//! Invariants: nothing is read ahead before that; all output of a command that ends in another way is written; the kept
//! frames are bounded.

use std::time::{Duration, Instant};

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::{Decoded, FromHost};

use super::{BUFFER_BYTES, Client, ClientEnd, ENDING};

/// The bytes that are read ahead at once: more than a host keeps for a slow caller.
const AHEAD_BYTES: usize = 1 << 20;
/// Beyond them, this many bytes are read at a time …
const PIECE_BYTES: usize = 64 << 10;
/// … with this pause after each.
const PIECE_PAUSE: Duration = Duration::from_millis(100);
/// The most bytes kept while an output is blocked. It takes more than ten seconds to read them.
const AHEAD_BYTES_MAX: usize = 8 << 20;
/// The time for which a reader may take nothing before the output of a command that died of a signal is given up.
const READER_PATIENCE: Duration = Duration::from_millis(200);

/// The state of a blocked output's reader.
#[derive(Debug, Default)]
pub(super) struct BlockedOutput {
    /// The place in the buffer from which on nothing is taken, and the end of the patience with that.
    stuck: Option<(usize, Instant)>,
    /// The time of the next read.
    paused: Option<Instant>,
    /// The host has closed its end.
    is_last: bool,
}

impl Client {
    /// Returns true if more is read although an output is blocked.
    pub(super) fn reads_ahead(&mut self) -> bool {
        // Without a pause no clock is read.
        self.blocked.paused.take_if(|until| *until <= Instant::now());
        self.may_read_ahead() && self.blocked.paused.is_none()
    }

    /// As [`Self::reads_ahead`], now or after a pause.
    fn may_read_ahead(&self) -> bool {
        self.is_asked_to_end() && !self.blocked.is_last && self.ahead() < AHEAD_BYTES_MAX
    }

    /// The number of kept bytes.
    fn ahead(&self) -> usize {
        self.end - self.start
    }

    /// Returns true if a signal has asked the command to end, or it is aborted.
    fn is_asked_to_end(&self) -> bool {
        self.came & ENDING != 0 || self.aborting.is_some()
    }

    /// Notes that the host has closed its end while an output is blocked.
    pub(super) fn end_reading_ahead(&mut self) {
        self.blocked.is_last = true;
    }

    /// Makes room for reading ahead. Returns the end of that room in the buffer.
    pub(super) fn make_room_ahead(&mut self) -> usize {
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end + BUFFER_BYTES, 0);
        }
        if self.ahead() < AHEAD_BYTES {
            return self.buffer.len();
        }
        self.blocked.paused = Some(Instant::now() + PIECE_PAUSE);
        self.buffer.len().min(self.end + PIECE_BYTES)
    }

    /// Notes that an output takes something again.
    pub(super) fn on_unblocked(&mut self) {
        self.blocked.stuck = None;
    }

    /// The end of a command that died of a signal or was aborted, if the reader of its output has taken nothing for a while.
    pub(super) fn end_without_reader(&mut self) -> Option<ClientEnd> {
        let from = self.chunk.as_ref().filter(|_| self.is_asked_to_end())?.from;
        let now = Instant::now();
        match self.blocked.stuck {
            Some((place, until)) if place == from => {
                let exit = self.death_ahead().filter(|_| until <= now)?;
                Some(self.end_of(exit))
            }
            _ => {
                self.blocked.stuck = Some((from, now + READER_PATIENCE));
                None
            }
        }
    }

    /// The time at which there is work while an output is blocked: a command has died and its reader's time is over, or
    /// a piece may be read. It may just have passed.
    pub(super) fn ahead_at(&self) -> Option<Instant> {
        let gives_up = self.blocked.stuck.filter(|_| self.death_ahead().is_some()).map(|(_, until)| until);
        let reads = self.blocked.paused.filter(|_| self.chunk.is_some() && self.may_read_ahead());
        gives_up.into_iter().chain(reads).min()
    }

    /// The command's end, if that was read ahead and waits for no reader.
    fn death_ahead(&self) -> Option<Exit> {
        self.exit_ahead().filter(|exit| self.aborting.is_some() || matches!(exit, Exit::Signal(_)))
    }

    /// The command's end, if that was read ahead.
    fn exit_ahead(&self) -> Option<Exit> {
        let mut at = self.start;
        loop {
            at += match FromHost::decode(&self.buffer[at..self.end]).ok()? {
                Decoded::Item(FromHost::Exit(exit), _) => return Some(exit),
                Decoded::Item(_, taken) | Decoded::Skip(taken) => taken,
                Decoded::Incomplete => return None,
            };
        }
    }
}
