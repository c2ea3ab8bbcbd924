//! The host's handling of a peer in any language.

use std::time::Instant;

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire;

use super::PeerRequest;
use super::attached::Attached;
use super::budget::Budget;
use super::jsonl::Jsonl;
use super::rpc::RpcLanguage;
use super::shim::Shim;
use crate::core::entry::Stream;
use crate::core::log::Item;

/// The language of a peer: its first byte decides.
#[derive(Debug)]
pub enum Language {
    /// The peer has sent nothing yet. The budget is for the output of JSON answers.
    Undecided(Budget),
    /// The frames of rexec-sh.
    Shim(Box<Shim>),
    /// Lines of JSON.
    Jsonl(Jsonl),
    /// Lines of JSON-RPC.
    Rpc(RpcLanguage),
    /// A person's terminal that stands for a command's.
    Attached(Attached),
}

impl Language {
    /// Decides the language by the first byte, if there is one.
    pub fn decide(&mut self, first: Option<&u8>) {
        match (&*self, first) {
            (Self::Undecided(outputs), Some(b'{')) => *self = Self::Jsonl(Jsonl::new(outputs)),
            // A batch, or a header such as Content-Length. Both are answered with an error.
            (Self::Undecided(_), Some(b'[' | b'C' | b'c')) => *self = Self::Rpc(RpcLanguage::default()),
            // Empty lines before the first one mean nothing.
            (Self::Undecided(_), Some(byte)) if byte.is_ascii_whitespace() => {}
            (Self::Undecided(_), Some(_)) => *self = Self::Shim(Box::default()),
            _ => {}
        }
    }

    /// Tells languages that begin with a brace apart, by the first line.
    fn tell_apart(&mut self, inbox: &[u8]) {
        if let Self::Jsonl(jsonl) = self
            && !jsonl.has_begun()
            && let Some(end) = memchr::memchr(b'\n', inbox)
            && RpcLanguage::is_spoken_in(&inbox[..end])
        {
            *self = Self::Rpc(RpcLanguage::default());
        }
    }

    /// Takes whole messages off the front of `inbox`; returns the next request, if there is one.
    ///
    /// # Errors
    /// The peer breaks the language's rules.
    pub fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        if matches!(self, Self::Undecided(_)) {
            let blank = inbox.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            inbox.drain(..blank);
        }
        self.decide(inbox.first());
        self.tell_apart(inbox);
        match self {
            Self::Undecided(_) => Ok(None),
            Self::Shim(shim) => shim.take(inbox, out),
            Self::Jsonl(jsonl) => jsonl.take(inbox, out),
            Self::Rpc(rpc) => rpc.take(inbox),
            Self::Attached(attached) => attached.take(inbox),
        }
    }

    /// Takes one item of the command's log.
    pub fn accept(&mut self, item: &Item<'_>, now: Instant, out: &mut Vec<u8>) {
        match self {
            Self::Undecided(_) | Self::Rpc(_) => {}
            Self::Shim(shim) => shim.accept(item, now, out),
            Self::Jsonl(jsonl) => jsonl.accept(item, out),
            Self::Attached(attached) => attached.accept(item, out),
        }
    }

    /// Takes the first bytes of the command's output; returns their number, at least one. The rest is for the next
    /// call.
    pub fn output(&mut self, stream: Stream, bytes: &[u8], now: Instant, out: &mut Vec<u8>) -> usize {
        match self {
            Self::Undecided(_) | Self::Rpc(_) => bytes.len(),
            Self::Shim(shim) => shim.output(stream, bytes, now, out),
            Self::Jsonl(jsonl) => jsonl.output(stream, bytes),
            Self::Attached(_) => {
                wire::encode_output(wire::CallerStream::Out, bytes, out);
                bytes.len()
            }
        }
    }

    /// Writes the last message to a peer that broke the rules, or that cannot be served.
    pub fn fail(&mut self, notice: &Notice, out: &mut Vec<u8>) {
        match self {
            Self::Undecided(_) => {}
            Self::Shim(shim) => shim.fail(notice, out),
            Self::Jsonl(jsonl) => jsonl.fail(notice, out),
            Self::Rpc(rpc) => rpc.fail(notice, out),
            Self::Attached(attached) => attached.fail(notice, out),
        }
    }

    pub fn hear_signal(&self, out: &mut Vec<u8>) {
        if let Self::Shim(_) = self {
            wire::FromHost::Heard.encode(out);
        }
    }

    /// Releases a shim's held output.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        if let Self::Shim(shim) = self {
            shim.release(out);
        }
    }

    /// The time at which [`Language::tick`] has output to release.
    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Shim(shim) => shim.deadline(),
            Self::Undecided(_) | Self::Jsonl(_) | Self::Rpc(_) | Self::Attached(_) => None,
        }
    }

    /// Releases output that was held for long enough.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        if let Self::Shim(shim) = self {
            shim.tick(now, out);
        }
    }

    /// Writes the last message to a caller that must run its command in its own sandbox. A shim needs no words.
    pub fn refuse(&mut self, notice: &Notice, out: &mut Vec<u8>) {
        match self {
            Self::Undecided(_) => {}
            Self::Shim(_) => wire::FromHost::Refuse.encode(out),
            Self::Jsonl(jsonl) => jsonl.fail(notice, out),
            Self::Rpc(rpc) => rpc.fail(notice, out),
            Self::Attached(attached) => attached.fail(notice, out),
        }
    }

    /// Returns true if the peer has introduced itself.
    pub fn has_said_hello(&self) -> bool {
        match self {
            Self::Undecided(_) => false,
            Self::Shim(shim) => shim.has_said_hello(),
            Self::Jsonl(_) | Self::Rpc(_) | Self::Attached(_) => true,
        }
    }

    /// Returns true if the peer has made a request.
    pub fn has_asked(&self) -> bool {
        match self {
            Self::Undecided(_) => false,
            Self::Shim(shim) => shim.has_asked(),
            Self::Jsonl(jsonl) => jsonl.has_asked(),
            Self::Rpc(rpc) => rpc.has_asked(),
            Self::Attached(_) => true,
        }
    }

    /// Returns true if a peer that shut its sending side may still wait for the answer. A shim sends until the end, so
    /// it has gone.
    pub fn allows_half_close(&self) -> bool {
        matches!(self, Self::Jsonl(_) | Self::Rpc(_))
    }

    /// Returns true if the answer is written, and the client may make another request once it has taken that.
    pub fn may_go_on(&self) -> bool {
        matches!(self, Self::Jsonl(jsonl) if jsonl.may_go_on())
    }

    /// Prepares for another request. Returns `false` if the connection carries no other.
    pub fn go_on(&mut self) -> bool {
        match self {
            Self::Jsonl(jsonl) => jsonl.go_on(),
            Self::Undecided(_) | Self::Shim(_) | Self::Rpc(_) | Self::Attached(_) => false,
        }
    }

    /// Returns true if the answer is written.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Jsonl(jsonl) if jsonl.is_over())
    }
}
