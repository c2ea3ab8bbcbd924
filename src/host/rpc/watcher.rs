//! A watcher: a client subscribed to one run; a slow one misses output and gets a count.
//!
//! Invariant: a watcher gets events in the order in which they happened; chunks that went before it got them are
//! counted to the byte.

use std::rc::Rc;

use crate::front::how_ended::HowEnded;
use crate::front::rpc::answers::{ClosedNote, ExitedNote, HeldPort, HoldNote, PortNote, PromptNote, RemarkNote};
use crate::front::rpc::events::{ChosenEvent, event};
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

    /// The default where output is not told.
    pub(super) fn without_output() -> Self {
        Self(Self::usual().0 & !(1 << RunEvent::Output as u8))
    }

    /// These and the others.
    pub(super) fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
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

/// What tells of events, one after the other.
pub(super) trait TellEvents {
    fn tell<E: ChosenEvent>(&mut self, note: &E::Note);
}

impl TellEvents for Vec<u8> {
    fn tell<E: ChosenEvent>(&mut self, note: &E::Note) {
        put_event::<E>(note, self);
    }
}

#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) peer: PeerId,
    pub(super) subscription: Option<u64>,
    encoding: Encoding,
    /// It holds the run back when it is slow.
    pub(super) is_holding: bool,
    /// The line that it gets first. All watchers of a run share it: there may be a hundred, and slow ones among them.
    beginning: Option<Rc<Vec<u8>>>,
    progress: Progress,
}

/// How much somebody has got of what happens to a run.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) told: ToldEvents,
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
        Self { peer, subscription: None, encoding, is_holding, beginning: None, progress: Progress::new(told) }
    }

    pub(super) fn told(&self) -> ToldEvents {
        self.progress.told
    }

    /// The watcher, which first gets the line that the run was taken in, if it wants that.
    pub(super) fn with_beginning(self, line: impl FnOnce() -> Rc<Vec<u8>>) -> Self {
        let beginning = self.told().has(RunEvent::Start).then(line);
        Self { beginning, ..self }
    }

    /// The watcher, which gets only what happens after what this run has done so far, the open ports, and the question
    /// on which a person decides.
    pub(super) fn skip_past(self, run: &RunSoFar<'_>) -> Self {
        Self { progress: self.progress.skip_past(run), ..self }
    }

    /// Returns true if it got everything that there ever is.
    pub(super) fn is_done(&self) -> bool {
        self.progress.has_closed
    }

    /// Returns true if it got the run's end and everything that came before; with `is_closed`, if it got the news that
    /// nothing follows.
    pub(super) fn has_told_end(&self, is_closed: bool) -> bool {
        if is_closed { self.progress.has_closed } else { self.progress.has_exited }
    }

    /// Sends it the next event. Returns `false` when there is none for now.
    pub(super) fn tell(&mut self, run: &RunSoFar<'_>, out: &mut Vec<u8>) -> bool {
        if let Some(beginning) = self.beginning.take() {
            out.extend_from_slice(&beginning);
            return true;
        }
        let so_far = &mut self.progress;
        if so_far.tell(run, out) {
            return true;
        }
        if let Some(chunk) = run.ring.after(so_far.seq).next() {
            put_output(run.number, chunk, chunk.before - so_far.bytes, self.encoding, out);
            so_far.seq = chunk.seq;
            so_far.bytes = chunk.before + u64::try_from(chunk.bytes.len()).expect("a length fits 64 bits");
            return true;
        }
        if so_far.seq < run.ring.last_seq() {
            // The last chunks are gone.
            so_far.seq = run.ring.last_seq();
            return true;
        }
        so_far.tell_close(run, out);
        false
    }
}

impl Progress {
    pub(super) fn new(told: ToldEvents) -> Self {
        Self { told, ..Self::default() }
    }

    /// All that this run has done so far counts as told, but for the open ports, and the question on which a person
    /// decides.
    pub(super) fn skip_past(self, run: &RunSoFar<'_>) -> Self {
        let (prompts, remarks) = (run.prompts.len(), run.remarks.len());
        let is_open = run.end.is_none() && matches!(run.holds.last(), Some(HoldNote::Held(_)));
        let holds = run.holds.len() - usize::from(is_open);
        Self { seq: run.ring.last_seq(), bytes: run.ring.bytes(), holds, prompts, remarks, ..self }
    }

    /// Tells everything that there is but the output.
    pub(super) fn tell_all(&mut self, run: &RunSoFar<'_>, out: &mut impl TellEvents) {
        while self.tell(run, out) {}
        self.tell_close(run, out);
    }

    /// Tells the next event that is not behind further output. Returns `false` when there is none.
    fn tell(&mut self, run: &RunSoFar<'_>, out: &mut impl TellEvents) -> bool {
        let number = run.number;
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
        false
    }

    /// Tells that nothing follows, when that is so.
    fn tell_close(&mut self, run: &RunSoFar<'_>, out: &mut impl TellEvents) {
        let number = run.number;
        if run.is_closed && self.has_exited && !self.has_closed {
            self.has_closed = true;
            let lost_bytes = Some(run.ring.bytes() - self.bytes).filter(|&lost| lost > 0);
            self.put::<event::Closed>(|| ClosedNote { run: number, last_seq: run.ring.last_seq(), lost_bytes }, out);
        }
    }

    /// Tells an event, if that is wanted.
    fn put<E: ChosenEvent>(&self, note: impl FnOnce() -> E::Note, out: &mut impl TellEvents) {
        if self.told.has(E::WORD) {
            out.tell::<E>(&note());
        }
    }
}

/// Returns true if a client has so much to take that it gets no more for now.
pub(super) fn is_full(pending: usize) -> bool {
    pending >= limits::OUTLET_HIGH_BYTES
}
