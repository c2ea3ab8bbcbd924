//! A watcher: a client subscribed to one run; a slow one misses output and gets a count.
//!
//! Invariant: a watcher gets events in the order in which they happened; chunks that went before it got them are
//! counted to the byte.

use std::rc::Rc;

use crate::front::how_ended::HowEnded;
use crate::front::rpc::answers::{ClosedNote, ExitedNote, HeldPort, HoldNote, PortNote, PromptNote, RemarkNote};
use crate::front::rpc::events::{RpcEvent, event};
use crate::front::rpc::params::{Encoding, RunEvent};
use crate::front::rpc::reply::{put_event, put_output};
use crate::front::rpc::ring::OutputRing;
use crate::host::turn::PeerId;
use crate::limits;

/// The events that a client wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ToldEvents(u8);

impl ToldEvents {
    pub(super) fn of(events: &[RunEvent]) -> Self {
        Self(events.iter().fold(0, |bits, &event| bits | 1 << event as u8))
    }

    /// The default: everything but ports, for which somebody has to look, and remarks, which are for people.
    pub(super) fn usual() -> Self {
        Self(!(1 << RunEvent::Port as u8 | 1 << RunEvent::Remark as u8))
    }

    pub(super) fn has(self, event: RunEvent) -> bool {
        self.0 & 1 << event as u8 != 0
    }
}

#[derive(Debug)]
pub(super) struct RunSoFar<'a> {
    pub(super) number: u64,
    pub(super) ring: &'a OutputRing,
    /// What a person was asked about its beginning, and what was decided. No output comes before that.
    pub(super) holds: &'a [HoldNote],
    /// The prompts that waited for a person, each with the last chunk before it.
    pub(super) prompts: &'a [(u64, String)],
    /// What consoles show about it, each with the last chunk before it.
    pub(super) remarks: &'a [(u64, String)],
    /// The ports on which it listens, each with the last chunk before it was found.
    pub(super) ports: &'a [(u64, u16)],
    /// The port on which it could not listen.
    pub(super) held: Option<&'a HeldPort>,
    /// Its end, and the last chunk that was there then.
    pub(super) end: Option<&'a (HowEnded, u64)>,
    pub(super) is_closed: bool,
}

#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) peer: PeerId,
    pub(super) subscription: Option<u64>,
    pub(super) told: ToldEvents,
    encoding: Encoding,
    /// It holds the run back when it is slow.
    pub(super) is_holding: bool,
    /// The line that it gets first. All watchers of a run share it: there may be a hundred, and slow ones among them.
    beginning: Option<Rc<Vec<u8>>>,
    /// The number of the last chunk that it got.
    seq: u64,
    /// Bytes before the next chunk, those that it missed included.
    bytes: u64,
    /// The number of questions about the run's beginning, and of decisions, that it got.
    holds: usize,
    /// The number of prompts that it got.
    prompts: usize,
    /// The number of remarks that it got.
    remarks: usize,
    /// The number of ports that it got.
    ports: usize,
    has_exited: bool,
    has_closed: bool,
}

impl Watcher {
    pub(super) fn subscribed(peer: PeerId, subscription: u64, told: ToldEvents, encoding: Encoding) -> Self {
        Self { subscription: Some(subscription), ..Self::of_run(peer, told, encoding, false) }
    }

    /// A watcher of one run, from its beginning.
    pub(super) fn of_run(peer: PeerId, told: ToldEvents, encoding: Encoding, is_holding: bool) -> Self {
        Self {
            peer,
            subscription: None,
            told,
            encoding,
            is_holding,
            beginning: None,
            seq: 0,
            bytes: 0,
            holds: 0,
            prompts: 0,
            remarks: 0,
            ports: 0,
            has_exited: false,
            has_closed: false,
        }
    }

    /// The watcher, which first gets the line that the run was taken in, if it wants that.
    pub(super) fn with_beginning(self, line: impl FnOnce() -> Rc<Vec<u8>>) -> Self {
        let beginning = self.told.has(RunEvent::Start).then(line);
        Self { beginning, ..self }
    }

    /// The watcher, which gets only what happens after what this run has done so far, the open ports, and the question
    /// on which a person decides.
    pub(super) fn skip_past(self, run: &RunSoFar<'_>) -> Self {
        let (prompts, remarks) = (run.prompts.len(), run.remarks.len());
        let is_open = run.end.is_none() && matches!(run.holds.last(), Some(HoldNote::Held(_)));
        let holds = run.holds.len() - usize::from(is_open);
        Self { seq: run.ring.last_seq(), bytes: run.ring.bytes(), holds, prompts, remarks, ..self }
    }

    /// Returns true if it got everything that there ever is.
    pub(super) fn is_done(&self) -> bool {
        self.has_closed
    }

    /// Returns true if it got the run's end and everything that came before; with `is_closed`, if it got the news that
    /// nothing follows.
    pub(super) fn has_told_end(&self, is_closed: bool) -> bool {
        if is_closed { self.has_closed } else { self.has_exited }
    }

    /// Sends it the next event. Returns `false` when there is none for now.
    pub(super) fn tell(&mut self, run: &RunSoFar<'_>, out: &mut Vec<u8>) -> bool {
        let number = run.number;
        if let Some(beginning) = self.beginning.take() {
            out.extend_from_slice(&beginning);
            return true;
        }
        if !self.told.has(RunEvent::Output) {
            (self.seq, self.bytes) = (run.ring.last_seq(), run.ring.bytes());
        }
        if let Some(note) = run.holds.get(self.holds) {
            self.holds += 1;
            match note {
                HoldNote::Held(note) => self.put::<event::Held>(|| note.clone(), out),
                HoldNote::Decided(note) => self.put::<event::Decided>(|| note.clone(), out),
            }
            return true;
        }
        if let Some((after, line)) = run.prompts.get(self.prompts).filter(|(after, _)| *after <= self.seq) {
            self.prompts += 1;
            self.put::<event::Prompt>(|| PromptNote { run: number, line: line.clone(), after: *after }, out);
            return true;
        }
        if let Some((after, line)) = run.remarks.get(self.remarks).filter(|(after, _)| *after <= self.seq) {
            self.remarks += 1;
            self.put::<event::Remark>(|| RemarkNote { run: number, line: line.clone(), after: *after }, out);
            return true;
        }
        if let Some((_, port)) = run.ports.get(self.ports).filter(|(after, _)| *after <= self.seq) {
            self.ports += 1;
            self.put::<event::Port>(|| PortNote { run: number, port: *port }, out);
            return true;
        }
        if let Some((end, _)) = run.end.filter(|(_, last)| *last <= self.seq && !self.has_exited) {
            self.has_exited = true;
            let note = || ExitedNote { run: number, end: end.clone(), port_held: run.held.cloned() };
            self.put::<event::Exited>(note, out);
            return true;
        }
        if let Some(chunk) = run.ring.after(self.seq).next() {
            put_output(number, chunk, chunk.before - self.bytes, self.encoding, out);
            self.seq = chunk.seq;
            self.bytes = chunk.before + u64::try_from(chunk.bytes.len()).expect("a length fits 64 bits");
            return true;
        }
        if self.seq < run.ring.last_seq() {
            // The last chunks are gone.
            self.seq = run.ring.last_seq();
            return true;
        }
        if run.is_closed && self.has_exited && !self.has_closed {
            self.has_closed = true;
            let lost_bytes = Some(run.ring.bytes() - self.bytes).filter(|&lost| lost > 0);
            self.put::<event::Closed>(|| ClosedNote { run: number, last_seq: run.ring.last_seq(), lost_bytes }, out);
        }
        false
    }

    /// Reports an event, if it wants that.
    fn put<E: RpcEvent>(&self, note: impl FnOnce() -> E::Note, out: &mut Vec<u8>) {
        if self.told.has(E::WORD) {
            put_event::<E>(&note(), out);
        }
    }
}

/// Returns true if a client has so much to take that it gets no more for now.
pub(super) fn is_full(pending: usize) -> bool {
    pending >= limits::OUTLET_HIGH_BYTES
}
