//! Frames that are read while an output is blocked, once a signal has asked the command to end.
//!
//! A shell that dies of a signal leaves in its caller's pipe what the pipe had room for, and waits for no reader. What lies
//! between the command and a full pipe here would not have been written there. So this process looks for the command's
//! death behind the output that waits, and then does not wait either. An abort asks the command to end, too.
//!
//! Invariants: nothing is read ahead before that; all output of a command that ends in another way is written; the
//! frames that are kept are bounded.

use std::time::{Duration, Instant};

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::{Decoded, FromHost};

use super::{ABORTED, BUFFER_BYTES, Client, ClientEnd, ENDING};

/// The most bytes that are kept while an output is blocked: more than a host keeps for a slow caller.
const AHEAD_BYTES_MAX: usize = 1 << 20;
/// How long a reader may take nothing before the output of a command that died of a signal is given up.
const READER_PATIENCE: Duration = Duration::from_millis(200);

/// What is known of the reader of a blocked output.
#[derive(Debug, Default)]
pub(super) struct BlockedOutput {
    /// The place in the buffer from which on nothing is taken, and when the patience with that is over.
    stuck: Option<(usize, Instant)>,
    /// The host has closed its end.
    is_last: bool,
}

impl Client {
    /// Whether more is read although an output is blocked.
    pub(super) fn reads_ahead(&self) -> bool {
        self.is_asked_to_end() && !self.blocked.is_last && self.end - self.start < AHEAD_BYTES_MAX
    }

    /// Whether a signal has asked the command to end, or it is aborted.
    fn is_asked_to_end(&self) -> bool {
        self.came & ENDING != 0 || self.aborting.is_some()
    }

    /// The host has closed its end while an output is blocked.
    pub(super) fn end_reading_ahead(&mut self) {
        self.blocked.is_last = true;
    }

    /// Makes room for what is read ahead.
    pub(super) fn make_room_ahead(&mut self) {
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end + BUFFER_BYTES, 0);
        }
    }

    /// An output takes something again.
    pub(super) fn on_unblocked(&mut self) {
        self.blocked.stuck = None;
    }

    /// The end of a command that died of a signal or was aborted, if the reader of its output has taken nothing for a while.
    pub(super) fn end_without_reader(&mut self) -> Option<ClientEnd> {
        let from = self.chunk.as_ref().filter(|_| self.is_asked_to_end())?.from;
        let now = Instant::now();
        match self.blocked.stuck {
            Some((place, until)) if place == from => {
                let exit = self.exit_ahead().filter(|_| until <= now)?;
                if self.aborting.is_some() {
                    return Some(ClientEnd::Exit(ABORTED));
                }
                matches!(exit, Exit::Signal(_)).then(|| self.end_of(exit))
            }
            _ => {
                self.blocked.stuck = Some((from, now + READER_PATIENCE));
                None
            }
        }
    }

    /// When [`Client::end_without_reader`] may have another answer.
    pub(super) fn gives_up_at(&self) -> Option<Instant> {
        self.blocked.stuck.map(|(_, until)| until).filter(|until| *until > Instant::now())
    }

    /// How the command ended, if that was read ahead.
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
