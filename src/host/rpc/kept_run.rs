//! A kept run: its output for later reading, the clients that watch it, and the requests that wait for it.
//!
//! Invariants: its cursor holds the run back only while a watcher that does so is behind; everything else that is slow
//! finds later what the ring still has.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::past_events::PastEvents;
use super::pending_reply::{Awaiting, PendingReply};
use super::port_looks::PortLooks;
use super::watcher::{Progress, RunSoFar, ToldEvents, Watcher, is_full};
use super::{Requester, RpcClients};
use crate::core::end::{End, How, Stopper};
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::Entry;
use crate::core::log::{Item, Taken};
use crate::front::how_ended::HowEnded;
use crate::front::rpc::answers::{HeldPort, HoldNote};
use crate::front::rpc::events::event;
use crate::front::rpc::kept_output::KeptOutput;
use crate::front::rpc::listing::{ListedRun, RunFacts};
use crate::front::rpc::params::RunEvent;
use crate::front::rpc::reply::put_event;
use crate::front::rpc::search::TextSearch;
use crate::host::peers::Peers;
use crate::host::runs::Runs;
use crate::host::turn::PeerId;
use crate::journal::entry_words::console_line;
use crate::limits;
use crate::text::echo::TYPED;
use crate::text::prompt::prompt_words;

#[derive(Debug)]
pub(super) struct PendingInput {
    pub(super) to: Requester,
    pub(super) bytes: Vec<u8>,
    pub(super) taken: usize,
    pub(super) is_end: bool,
    pub(super) way: InputWay,
}

/// The way on which a client's input reaches a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) enum InputWay {
    /// Its pipe, or its own terminal.
    Input,
    /// The terminal at which it asks a person.
    Keys,
    /// They were typed there, and the terminal has not taken all of them.
    Typed,
}

#[derive(Debug)]
pub(super) struct KeptRun {
    pub(super) facts: RunFacts,
    pub(super) output: KeptOutput,
    pub(super) accepted: Instant,
    cursor: Option<Cursor>,
    stopping: Option<Stopper>,
    /// Its end, once its shell has ended, and the last chunk that was there then.
    end: Option<(HowEnded, u64)>,
    /// Its shell has ended. The rest of its streams is still to come.
    exited: Option<HowEnded>,
    /// Output since its shell's end, bytes.
    since_exit: usize,
    is_closed: bool,
    is_noted: bool,
    /// What a person was asked about its beginning, and what was decided.
    holds: Vec<HoldNote>,
    /// The prompts that waited for a person, each with the last chunk before it.
    prompts: Vec<(u64, String)>,
    /// What consoles show about it, each with the last chunk before it.
    remarks: Vec<(u64, String)>,
    held: Option<HeldPort>,
    ports: PortLooks,
    pub(super) watchers: Vec<Watcher>,
    /// How much of it is noted for clients that come back, if that is wanted.
    noted: Option<Progress>,
    pub(super) replies: Vec<PendingReply>,
    /// The texts for which some of them wait.
    pub(super) texts: TextSearch,
    pub(super) inputs: VecDeque<PendingInput>,
}

impl KeptRun {
    pub(super) fn new(facts: RunFacts, output: KeptOutput, cursor: Option<Cursor>, accepted: Instant) -> Self {
        Self {
            facts,
            output,
            accepted,
            cursor,
            stopping: None,
            end: None,
            exited: None,
            since_exit: 0,
            is_closed: false,
            is_noted: false,
            holds: Vec::new(),
            prompts: Vec::new(),
            remarks: Vec::new(),
            held: None,
            ports: PortLooks::new(accepted),
            watchers: Vec::new(),
            noted: None,
            replies: Vec::new(),
            texts: TextSearch::default(),
            inputs: VecDeque::new(),
        }
    }

    pub(super) fn job(&self) -> JobId {
        JobId(self.facts.card.seq)
    }

    pub(super) fn watch(&mut self, watcher: Watcher) {
        self.watchers.push(watcher);
    }

    /// Notes these of its events from now on, for clients that come back. What is noted already stays so.
    pub(super) fn note_events(&mut self, told: ToldEvents) {
        match &mut self.noted {
            Some(noted) => noted.told = told,
            None => self.noted = Some(Progress::new(told).skip_past(&self.so_far())),
        }
    }

    /// Notes none any more.
    pub(super) fn note_no_events(&mut self) {
        self.noted = None;
    }

    /// Adds what is new to the events for clients that come back.
    pub(super) fn add_events(&mut self, past: &mut PastEvents) {
        if let Some(mut noted) = self.noted.take() {
            noted.tell_all(&self.so_far(), past);
            self.noted = Some(noted).filter(|_| !self.is_closed);
        }
    }

    /// Returns true if all of its output is there.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn held(&self) -> Option<&HeldPort> {
        self.held.as_ref()
    }

    pub(super) fn end(&self) -> Option<&HowEnded> {
        self.end.as_ref().map(|(end, _)| end)
    }

    pub(super) fn so_far(&self) -> RunSoFar<'_> {
        RunSoFar {
            number: self.facts.card.seq,
            ring: self.output.ring(),
            holds: &self.holds,
            prompts: &self.prompts,
            remarks: &self.remarks,
            ports: self.ports.found(),
            held: self.held.as_ref(),
            end: self.end.as_ref(),
            is_closed: self.is_closed,
        }
    }

    /// Notes the end. Returns true if that is news.
    pub(super) fn note_end(&mut self) -> bool {
        !std::mem::replace(&mut self.is_noted, true)
    }

    pub(super) fn listed(&self, state: &'static str, now: Instant) -> ListedRun {
        let age = now.saturating_duration_since(self.accepted);
        ListedRun {
            facts: self.facts.clone(),
            state: state.into(),
            held: None,
            started_ms_ago: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            end: self.end().cloned(),
            ports: Vec::new(),
            bytes: self.output.ring().bytes(),
            last_line: self.output.last_line(),
            processes: None,
        }
    }

    /// The line that reports its start to a watcher.
    pub(super) fn beginning(&self, now: Instant) -> Vec<u8> {
        let mut line = Vec::new();
        put_event::<event::Started>(&self.listed("queued", now), &mut line);
        line
    }

    /// Returns true if a client got everything else that it watches of this run. An answer about the end comes after
    /// it.
    pub(super) fn is_told(&self, peer: PeerId) -> bool {
        self.watchers.iter().filter(|watcher| watcher.peer == peer).all(|watcher| watcher.has_told_end(self.is_closed))
    }

    /// Returns true if a client waits for the answer about its end, and has not taken it yet.
    pub(super) fn owes_answer(&self) -> bool {
        self.replies.iter().any(|reply| matches!(reply.waiting, Awaiting::Answer { .. }))
    }

    /// Frees the output that was gathered for an answer, once nobody waits for that.
    pub(super) fn free_gathered(&mut self) {
        if self.is_closed && !self.owes_answer() {
            self.output.take_gathering();
        }
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        self.watchers.retain(|watcher| watcher.peer != peer);
        self.replies.retain(|reply| reply.to().peer != peer);
        self.inputs.retain(|input| input.to.peer != peer);
        self.forget_texts();
    }

    /// Stops searching for texts that nobody waits for.
    pub(super) fn forget_texts(&mut self) {
        self.texts.keep(&self.replies.iter().filter_map(PendingReply::text).collect());
    }

    /// Tells the watchers the news, up to the limit of each. Returns true if more may be taken from the log.
    pub(super) fn deliver(&mut self, clients: &mut RpcClients, peers: &mut Peers) -> bool {
        let job = self.job();
        let mut watchers = std::mem::take(&mut self.watchers);
        let mut is_held = false;
        watchers.retain_mut(|watcher| {
            let Some(peer) = peers.get_mut(watcher.peer).filter(|peer| !peer.is_leaving) else { return false };
            let mut is_told = false;
            loop {
                if is_full(peer.out.pending()) && (!peer.send() || is_full(peer.out.pending())) {
                    is_held |= watcher.is_holding;
                    if let Some(client) = clients.all.get_mut(&watcher.peer) {
                        client.behind.insert(job);
                    }
                    break;
                }
                let is_last = !watcher.tell(&self.so_far(), peer.out.buffer());
                is_told = true;
                if is_last {
                    break;
                }
            }
            if is_told || is_full(peer.out.pending()) {
                clients.touched.insert(watcher.peer);
            }
            !watcher.is_done()
        });
        watchers.append(&mut self.watchers);
        self.watchers = watchers;
        !is_held
    }

    /// Takes a piece of its log. `has_unread` says that its streams hold output that the log does not have yet. Returns
    /// `false` when there is nothing more.
    pub(super) fn pull(&mut self, has_unread: bool, now: Instant, engine: &mut Engine) -> bool {
        let Some(cursor) = self.cursor else { return false };
        let (mut taken, mut has_any) = (0, false);
        let goes_on = engine.read(cursor, |item| {
            if taken >= limits::RPC_CHUNK_BYTES {
                return Taken::Not;
            }
            has_any = true;
            if let Item::Entry(entry) = item {
                taken += entry.output_bytes();
                self.take(entry, now);
            }
            if self.is_closed { Taken::Last } else { Taken::All }
        });
        if !goes_on {
            self.cursor = None;
            return true;
        }
        // A pipe that a shell has left holds less than that: the rest is from other processes, and may never end.
        let is_drained = !has_any && (!has_unread || self.since_exit >= limits::DRAIN_BYTES);
        if is_drained && let Some(end) = self.exited.take() {
            // The rest of its shell's output has come.
            self.output.release();
            self.end = Some((end, self.output.ring().last_seq()));
            return true;
        }
        self.output.close_chunk();
        has_any
    }

    fn take(&mut self, entry: &Entry, now: Instant) {
        if self.remarks.len() < limits::RPC_REMARKS_MAX
            && let Some(line) = console_line(entry, self.job(), now)
        {
            self.output.close_chunk();
            self.remarks.push((self.output.ring().last_seq(), line));
        }
        self.holds.extend(HoldNote::all_of(entry, self.job().0));
        match entry {
            Entry::Output { stream, bytes, at, echo } => {
                self.since_exit += if self.exited.is_some() { bytes.len() } else { 0 };
                self.ports.hasten(now);
                self.output.push(*stream, echo.hidden(bytes, TYPED), *at, now);
            }
            Entry::Waits(prompt) => {
                self.output.close_chunk();
                let line = prompt_words(&prompt.prompt, limits::PROMPT_BYTES);
                if self.prompts.len() < limits::RPC_PROMPTS_MAX {
                    self.prompts.push((self.output.ring().last_seq(), line));
                }
            }
            Entry::Stopping { by } => self.stopping = Some(*by),
            Entry::Exited { exit } => {
                let took = now.saturating_duration_since(self.accepted);
                let end = End { how: How::Exited(*exit), by: self.stopping, queued: Duration::ZERO, took };
                self.exited = Some(HowEnded::from(&end));
            }
            Entry::Ended(end) => {
                self.output.finish();
                let last = self.end.as_ref().map_or(self.output.ring().last_seq(), |(_, last)| *last);
                self.end = Some((HowEnded::from(end), last));
                self.is_closed = true;
            }
            Entry::PortHeld(held) => self.held = Some(HeldPort::of(held)),
            _ => {}
        }
    }

    /// Returns true if somebody wants to know on which ports it listens.
    fn is_watched_for_ports(&self) -> bool {
        let mut told = self.watchers.iter().map(Watcher::told).chain(self.noted.as_ref().map(|noted| noted.told));
        self.end.is_none() && told.any(|told| told.has(RunEvent::Port))
    }

    /// Looks for ports, if somebody wants to know and it is time. `free_from` is when the next look at any run may be.
    pub(super) fn look_for_ports(&mut self, now: Instant, free_from: &mut Instant, runs: &mut Runs) {
        if self.is_watched_for_ports() {
            let (job, last) = (self.job(), self.output.ring().last_seq());
            self.ports.look(now, free_from, last, || runs.in_use(job, now).ports);
        }
    }

    pub(super) fn tick(&mut self, now: Instant) {
        if self.output.deadline().is_some_and(|at| at <= now) {
            self.output.tick(now);
        }
    }

    /// When it has to be looked at although nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let replies = self.replies.iter().filter_map(PendingReply::deadline);
        let look = self.is_watched_for_ports().then(|| self.ports.due());
        replies.chain(look).chain(self.output.deadline().filter(|_| !self.is_closed)).min()
    }
}
