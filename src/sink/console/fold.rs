//! Folded commands: an agent's look at the shell is one line on the console, as long as nothing about it is worth
//! reading.
//!
//! Invariant: a command that fails, writes much, lasts long, asks for input or leaves processes behind is unfolded,
//! with all that it wrote.

use std::time::Instant;

use crate::core::entry::{Entry, Outcome};
use crate::core::log::Item;
use crate::limits;
use rexec_sh::protocol::process::Exit;

/// A folded command's output.
#[derive(Debug, Default)]
pub(super) struct Fold {
    output: Vec<u8>,
    /// Since when its line is on the console.
    since: Option<Instant>,
}

impl Fold {
    /// Notes that the line is shown.
    pub(super) fn show(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// When the command will have lasted too long; `None` until its line is shown.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since + limits::PROBE_TIME_MAX)
    }

    /// Takes the next entry. Returns whether the command may stay folded.
    pub(super) fn take(&mut self, item: &Item<'_>, has_left: bool) -> bool {
        match item {
            Item::Entry(Entry::Output { bytes, .. }) => {
                let fits = self.output.len() + bytes.len() <= limits::PROBE_BYTES_MAX;
                if fits {
                    self.output.extend_from_slice(bytes);
                }
                fits
            }
            Item::Entry(Entry::Exited { .. } | Entry::Resized { .. }) => true,
            Item::Entry(Entry::Closed { outcome: Outcome::Ended { exit: Exit::Code(0), stopped: None }, took }) => {
                *took <= limits::PROBE_TIME_MAX && !has_left
            }
            _ => false,
        }
    }

    /// What the command has written so far.
    pub(super) fn into_output(self) -> Vec<u8> {
        self.output
    }
}
