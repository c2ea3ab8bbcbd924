//! The language of `rexec attach`, once the host has taken it in: a person's keys and sizes in, a command's output and
//! exit out, in the frames of `rexec_sh::protocol::wire`.
//!
//! Output is not filtered: the person's terminal stands for the command's, so that full-screen programs work. Only its
//! secrets are masked, if the host does that.

use std::time::Instant;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::{Notice, remark};
use rexec_sh::protocol::wire::{self, Decoded, FromShim};

use super::{PeerRequest, TerminalEvent};
use crate::core::entry::{Entry, Outcome, Stream};
use crate::core::log::Item;
use crate::limits;
use crate::text::count;
use crate::text::redact::StreamRedactor;

/// One connection of `rexec attach`.
#[derive(Debug, Default)]
pub struct Attached {
    /// What masks secrets, if the host does that.
    mask: Option<StreamRedactor>,
    /// Since when it holds something back.
    held_since: Option<Instant>,
}

impl Attached {
    /// A connection for whose person these secrets are masked.
    #[must_use]
    pub fn new(mask: Option<StreamRedactor>) -> Self {
        Self { mask, held_since: None }
    }

    /// Takes whole frames off the front of `inbox`; returns the next event, if there is one.
    ///
    /// # Errors
    /// A frame that is not of this language.
    pub fn take(&mut self, inbox: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        loop {
            let not_valid =
                |problem: &str| Notice::new(OWN_FAILURE, problem, "install rexec and rexec-host of the same release");
            let decoded = FromShim::decode(inbox).map_err(|error| not_valid(&error.to_string()))?;
            let (event, taken) = match decoded {
                Decoded::Incomplete => return Ok(None),
                Decoded::Skip(taken) => (None, taken),
                Decoded::Item(FromShim::Keys(keys), taken) => (Some(TerminalEvent::Keys(keys.to_vec())), taken),
                Decoded::Item(FromShim::Size(rows, cols), taken) => (Some(TerminalEvent::Size(rows, cols)), taken),
                Decoded::Item(..) => return Err(not_valid("a frame that does not belong to rexec attach")),
            };
            inbox.drain(..taken);
            if let Some(event) = event {
                return Ok(Some(PeerRequest::Terminal(event)));
            }
        }
    }

    /// Translates one item of the command's log.
    pub fn accept(&mut self, item: &Item<'_>, now: Instant, out: &mut Vec<u8>) {
        match item {
            Item::Entry(Entry::Output { .. } | Entry::Marked(_) | Entry::Resized { .. }) => {}
            // What waits to be known for a secret goes on where somebody waits for it; elsewhere no part of a value does.
            Item::Entry(Entry::Waits(_) | Entry::WantedInput { .. } | Entry::Exited { .. } | Entry::Closed { .. }) => {
                self.pass_held(out, StreamRedactor::release);
            }
            _ => self.pass_held(out, StreamRedactor::relax),
        }
        match item {
            Item::Entry(Entry::Output { stream, bytes, .. }) => self.output(*stream, bytes, now, out),
            Item::Missed { bytes } => {
                let note = format!("{} not shown, for lack of time", count::bytes(*bytes));
                wire::encode_note(remark(note).as_bytes(), out);
            }
            Item::Entry(Entry::Closed { outcome: Outcome::Ended { exit, .. }, .. }) => wire::encode_exit(*exit, out),
            Item::Entry(Entry::Closed { .. }) => self.fail(&LOST, out),
            Item::Entry(_) => {}
        }
    }

    /// Shows the line at whose end the command is.
    pub fn begin_with(&mut self, line: &[u8], out: &mut Vec<u8>) {
        match self.mask.take() {
            None => wire::encode_output(wire::CallerStream::Out, line, out),
            Some(mut mask) => {
                wire::append_output(wire::CallerStream::Out, out, |out| {
                    mask.push(Stream::Tty as u8, line, out);
                    mask.release(out);
                });
                // Whichever stream goes on with it.
                self.mask = Some(mask.after(line));
            }
        }
    }

    /// Whether the person gets the output masked.
    pub fn masks(&self) -> bool {
        self.mask.is_some()
    }

    /// Takes output of the command.
    pub fn output(&mut self, stream: Stream, bytes: &[u8], now: Instant, out: &mut Vec<u8>) {
        let Some(mask) = &mut self.mask else { return wire::encode_output(wire::CallerStream::Out, bytes, out) };
        wire::append_output(wire::CallerStream::Out, out, |out| mask.push(stream as u8, bytes, out));
        self.held_since = mask.is_holding().then(|| self.held_since.unwrap_or(now));
    }

    /// When [`Attached::tick`] has output to release.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.held_since.map(|since| since + limits::MASK_HOLD)
    }

    /// Releases output that was held back for long enough.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.pass_held(out, StreamRedactor::relax);
        }
    }

    fn pass_held(&mut self, out: &mut Vec<u8>, pass: fn(&mut StreamRedactor, &mut Vec<u8>)) {
        self.held_since = None;
        if let Some(mask) = &mut self.mask {
            wire::append_output(wire::CallerStream::Out, out, |out| pass(mask, out));
        }
    }

    /// Writes the last message.
    pub fn fail(&self, notice: &Notice, out: &mut Vec<u8>) {
        wire::encode_fail(notice.code, notice.to_string().as_bytes(), out);
    }
}

const LOST: Notice =
    Notice::fixed(OWN_FAILURE, "how the command ended is not known", "rexec show has what is known of it");
