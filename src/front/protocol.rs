//! The language of a peer, whichever it is: what peers of all languages have in common.

use std::time::Instant;

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire;

use super::PeerRequest;
use super::budget::Budget;
use super::jsonl::Jsonl;
use super::shim::Shim;
use crate::core::entry::Stream;
use crate::core::log::Item;

/// The language of a peer: its first byte decides.
#[derive(Debug)]
pub enum Protocol {
    /// It has said nothing yet. What answers in JSON may hold together.
    Undecided(Budget),
    /// Frames.
    Shim(Box<Shim>),
    /// Lines of JSON.
    Jsonl(Jsonl),
}

impl Protocol {
    /// Its first byte, once there is one, decides.
    pub fn decide(&mut self, first: Option<&u8>) {
        match (&*self, first) {
            (Self::Undecided(outputs), Some(b'{')) => *self = Self::Jsonl(Jsonl::new(outputs)),
            (Self::Undecided(_), Some(_)) => *self = Self::Shim(Box::default()),
            _ => {}
        }
    }

    /// Takes what was said, as far as it is whole; gives the next thing asked, if there is one.
    ///
    /// # Errors
    /// What breaks the language's rules.
    pub fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        self.decide(inbox.first());
        match self {
            Self::Undecided(_) => Ok(None),
            Self::Shim(shim) => shim.take(inbox, out),
            Self::Jsonl(jsonl) => jsonl.take(inbox, out),
        }
    }

    /// Takes one item of the command's log.
    pub fn accept(&mut self, item: &Item<'_>, now: Instant, out: &mut Vec<u8>) {
        match self {
            Self::Undecided(_) => {}
            Self::Shim(shim) => shim.accept(item, now, out),
            Self::Jsonl(jsonl) => jsonl.accept(item, out),
        }
    }

    /// Takes output of the command, from the front of these bytes on; tells how many, at least one. The rest is for the
    /// next call.
    pub fn output(&mut self, stream: Stream, bytes: &[u8], now: Instant, out: &mut Vec<u8>) -> usize {
        match self {
            Self::Undecided(_) => bytes.len(),
            Self::Shim(shim) => shim.output(stream, bytes, now, out),
            Self::Jsonl(jsonl) => jsonl.output(bytes),
        }
    }

    /// The last word to a peer that broke the rules, or that cannot be served.
    pub fn fail(&mut self, notice: &Notice, out: &mut Vec<u8>) {
        match self {
            Self::Undecided(_) => {}
            Self::Shim(shim) => shim.fail(notice, out),
            Self::Jsonl(jsonl) => jsonl.fail(notice, out),
        }
    }

    /// Says that a signal for the command has come.
    pub fn hear_signal(&self, out: &mut Vec<u8>) {
        if let Self::Shim(_) = self {
            wire::encode_heard(out);
        }
    }

    /// When something that was held back is to be given.
    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Shim(shim) => shim.deadline(),
            Self::Undecided(_) | Self::Jsonl(_) => None,
        }
    }

    /// Gives what was held back for long enough.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        if let Self::Shim(shim) = self {
            shim.tick(now, out);
        }
    }

    /// The last word to a caller whose command is for its own sandbox.
    pub fn refuse(&mut self, notice: &Notice, out: &mut Vec<u8>) {
        match self {
            Self::Undecided(_) => {}
            Self::Shim(_) => wire::encode_refuse(out),
            Self::Jsonl(jsonl) => jsonl.fail(notice, out),
        }
    }

    /// Whether it has introduced itself.
    pub fn has_said_hello(&self) -> bool {
        match self {
            Self::Undecided(_) => false,
            Self::Shim(shim) => shim.has_said_hello(),
            Self::Jsonl(_) => true,
        }
    }

    /// Whether it has asked for something.
    pub fn has_asked(&self) -> bool {
        match self {
            Self::Undecided(_) => false,
            Self::Shim(shim) => shim.has_asked(),
            Self::Jsonl(jsonl) => jsonl.has_asked(),
        }
    }

    /// Whether who has said all it wants to say may still wait for the answer: a shim goes on to the end.
    pub fn allows_half_close(&self) -> bool {
        matches!(self, Self::Jsonl(_))
    }

    /// Whether everything was said.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Jsonl(jsonl) if jsonl.is_over())
    }
}
