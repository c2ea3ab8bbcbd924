//! The state that every phase of a turn shares: the time, the poll, the sources to visit and the jobs to look at again.
//!
//! Invariants: every reason to wake up, other than time, is a [`Source`]; a source stays queued until it is visited, and
//! a visit that leaves something behind queues it again; the time is read once a turn, right after the wait.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use crate::core::engine::JobId;
use crate::core::entry::Stream;
use crate::io::poller::{Poller, Token};
use crate::io::port::Port;
use crate::journal::record::DestroyedRecord;
use crate::limits;
use crate::sys::caller_descriptor;

/// The number of a connection, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PeerId(pub(super) u64);

/// Every reason to wake up, other than time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    Door,
    /// Something changed in the socket's directory.
    Watch,
    Signals,
    /// The human's terminal has room, or is gone.
    Screen,
    Keys,
    /// A shim in a sandbox has reported something.
    Reports,
    /// The recorder has something to say, or is gone.
    Recorder,
    /// A peer has said something, has room, or is gone.
    Peer(PeerId),
    /// A guard has reported something, has room for orders, or is gone.
    Control(JobId),
    /// A command's input has room, or nobody reads it any more.
    Input(JobId),
    /// A lookup in the journal has something to say, or is gone.
    Lookup(u64),
    /// The judge of a command has an answer, or is gone.
    Judge(JobId),
    /// A command has written something, or no process holds the stream any more.
    Stream(JobId, Stream),
}

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) now: Instant,
    pub(super) poller: Poller,
    /// The one buffer for everything that is read.
    pub(super) buffer: Box<[u8]>,
    sources: HashMap<Token, Source>,
    /// Sources to visit in the next intake, in the order in which they were queued, and the same as a set.
    ready: Vec<Token>,
    queued: BTreeSet<Token>,
    /// Jobs whose readers have room again, or that may be over.
    dirty: BTreeSet<JobId>,
    /// Ports of streams that have ended, to be closed.
    ended: Vec<Port>,
    /// What runs have destroyed, which the journal does not have yet.
    pub(super) destroyed: Vec<DestroyedRecord>,
}

impl Turn {
    pub(super) fn new(poller: Poller) -> Self {
        Self {
            now: Instant::now(),
            poller,
            buffer: vec![0; limits::READ_BUDGET_BYTES].into(),
            sources: HashMap::new(),
            ready: Vec::new(),
            queued: BTreeSet::new(),
            dirty: BTreeSet::new(),
            ended: Vec::new(),
            destroyed: Vec::new(),
        }
    }

    pub(super) fn name(&mut self, token: Token, source: Source) {
        self.sources.insert(token, source);
    }

    pub(super) fn forget(&mut self, token: Token) {
        self.sources.remove(&token);
    }

    pub(super) fn source(&self, token: Token) -> Option<Source> {
        self.sources.get(&token).copied()
    }

    pub(super) fn close(&mut self, port: Port) {
        self.forget(port.token());
        port.close(&mut self.poller);
    }

    pub(super) fn close_connection(&mut self, port: Port) {
        self.forget(port.token());
        caller_descriptor::close_connection(port.release(&mut self.poller));
    }

    /// Closes a port whose other end is closed when the callers have what it brought: the kernel takes a terminal down in as
    /// much time as an answer takes.
    pub(super) fn close_later(&mut self, port: Port) {
        self.forget(port.token());
        self.ended.push(port);
    }

    pub(super) fn close_ended(&mut self) {
        self.ended.drain(..).for_each(|port| port.close(&mut self.poller));
    }

    /// Queues a source for the next intake.
    pub(super) fn queue(&mut self, token: Token) {
        if self.queued.insert(token) {
            self.ready.push(token);
        }
    }

    /// The sources to visit: terminals, then all others, each in the order in which they were queued. The kernel reports
    /// them in the order in which they became ready, so the caller gets the streams of a command in the order in which it
    /// wrote to them. What a terminal shows is late, because a thread of the kernel carries it: without its precedence the
    /// echo of an answer would come behind the next question, which the command wrote to a pipe.
    pub(super) fn take_ready(&mut self) -> Vec<Token> {
        self.queued.clear();
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_by_key(|token| !matches!(self.sources.get(token), Some(Source::Stream(_, Stream::Tty))));
        ready
    }

    /// Queues a job for the next pump.
    pub(super) fn touch(&mut self, job: JobId) {
        self.dirty.insert(job);
    }

    pub(super) fn take_dirty(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.dirty)
    }

    /// Returns true if there is something to do without an event.
    pub(super) fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.dirty.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn sources_are_visited_once_terminals_first_and_in_the_order_in_which_they_were_queued() {
        let mut turn = Turn::new(Poller::new().expect("a poll"));
        let pipes = [std::io::pipe(), std::io::pipe()].map(|pipe| pipe.expect("a pipe"));
        let ends = pipes.iter().flat_map(|(reader, writer)| [reader.as_fd(), writer.as_fd()]);
        let tokens: Vec<_> = ends.map(|end| turn.poller.register(&end).expect("room")).collect();
        let [out, err, terminal, control] = tokens[..] else { panic!("four ends") };
        for (token, stream) in [(out, Stream::Out), (err, Stream::Err), (terminal, Stream::Tty)] {
            turn.name(token, Source::Stream(JobId(1), stream));
        }
        turn.name(control, Source::Control(JobId(1)));
        [control, err, out, err, terminal].into_iter().for_each(|token| turn.queue(token));
        assert_eq!(turn.take_ready(), [terminal, control, err, out]);
        turn.queue(out);
        assert_eq!(turn.take_ready(), [out]);
    }
}
