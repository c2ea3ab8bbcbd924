//! The clients that speak JSON-RPC: what each waits for, and the output that is kept for them.
//!
//! | file | what it does |
//! |---|---|
//! | `rpc/admission.rs` | decides which calls are served |
//! | `rpc/serve.rs` | does what a call asks, on the part of the host that it borrows for that |
//! | `rpc/start.rs` | starts commands |
//! | `rpc/control.rs` | writes to runs, signals and ends them |
//! | `rpc/decide.rs` | lets held runs begin, or refuses them |
//! | `rpc/past_runs.rs`, `rpc/lookups.rs` | ask a `rexec` about the past |
//! | `rpc/projects.rs` | defines, lists, pauses and ends project sessions |
//! | `rpc/pace.rs` | how much time requests get, and whose turn is next |
//! | `rpc/kept_run.rs` | one run: its output, who watches it, who waits for it |
//! | `rpc/port_looks.rs` | when a run is looked at for its ports |
//! | `rpc/past_events.rs` | keeps what has happened for clients that come back |
//! | `rpc/terminal_watcher.rs` | tells a client what a run writes, as it is written |
//! | `rpc/typing.rs` | types at runs' terminals for people |
//! | `rpc/watcher.rs` | tells a client what happens to a run |
//! | `rpc/pending_reply.rs`, `rpc/settling.rs` | answers what had to wait |
//!
//! Invariants: a run that this door has started, or that a client watches, is kept, and has one cursor in its log; the
//! output that is kept is bounded in bytes, number and age; requests and long answers get a bounded part of each turn; a
//! client that takes nothing holds back its foreground streaming runs and nothing else; when a client is gone, so are its
//! foreground runs.

mod admission;
mod control;
mod decide;
mod kept_run;
mod lookups;
mod pace;
mod past_events;
mod past_runs;
mod pending_reply;
mod port_looks;
mod projects;
mod rules;
mod serve;
mod settling;
mod start;
mod terminal_watcher;
mod typing;
mod watcher;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use super::context::Context;
use super::peers::Peers;
use super::runs::Runs;
use super::turn::{PeerId, Turn};
use crate::core::end::Stopper;
use crate::core::engine::{Engine, JobId};
use crate::front::rpc::answers::DecidedNote;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::events::{ChosenEvent, event};
use crate::front::rpc::methods::RpcMethod;
use crate::front::rpc::params::Encoding;
use crate::front::rpc::reply::{RequestId, put_error, put_event, put_result};
use crate::limits;
use kept_run::KeptRun;
use lookups::Lookups;
use pace::RequestPace;
use past_events::PastEvents;
use pending_reply::WantedStart;
use rexec_sh::protocol::process::Pid;
pub(super) use serve::RpcService;
use terminal_watcher::TerminalWatcher;
use watcher::{ToldEvents, Watcher};

/// The client to answer, and what its request calls itself. A notification is not answered.
#[derive(Debug, Clone)]
pub(super) struct Requester {
    peer: PeerId,
    id: Option<RequestId>,
}

/// A client's wish to be told of all runs.
#[derive(Debug)]
struct Subscription {
    told: ToldEvents,
    encoding: Encoding,
    is_for_all: bool,
}

#[derive(Debug, Default)]
struct RpcClient {
    name: Option<String>,
    /// It has brought a descriptor, if that is required.
    is_proven: bool,
    /// The runs that end with its connection.
    foreground: BTreeSet<JobId>,
    /// The runs whose news it has not got in full, for lack of room.
    behind: BTreeSet<JobId>,
    subscriptions: BTreeMap<u64, Subscription>,
    /// The number of its requests that wait.
    waiting: usize,
    /// The process that stands for its agent.
    origin: Option<Pid>,
    /// It belonged to no agent when it last defined a project session.
    is_persons: bool,
}

#[derive(Debug, Default)]
pub(super) struct RpcClients {
    all: BTreeMap<PeerId, RpcClient>,
    kept: BTreeMap<JobId, KeptRun>,
    /// Kept runs that have ended, oldest first, with the time of their end.
    ended: VecDeque<(Instant, JobId)>,
    /// When something is due for a run: a wait is over, or its filter has held a line for long enough.
    timed: BTreeSet<(Instant, JobId)>,
    /// The kept bytes of all runs.
    weight: usize,
    subscriptions: u64,
    /// Those who see what a run writes, as it is written.
    terminals: BTreeMap<JobId, Vec<TerminalWatcher>>,
    /// What has happened, if a client may come back for it.
    past: Option<PastEvents>,
    pub(super) lookups: Lookups,
    /// Clients that have something new to take.
    touched: BTreeSet<PeerId>,
    /// Starts that waited for the end of another run.
    restarts: Vec<WantedStart>,
    /// The start that the last call has asked for, until the host has done it.
    wanted: Option<WantedStart>,
    /// When a run may be looked at again for its ports.
    next_port_look: Option<Instant>,
    pub(super) pace: RequestPace,
    /// Bytes of the long answers in this turn.
    written: usize,
    /// Runs whose answers wait for the next turn.
    unanswered: BTreeSet<JobId>,
    /// The run with which the next turn begins, so that each has its turn.
    first: Option<JobId>,
}

impl RpcClients {
    /// Nobody yet, at a host with these journals and this socket.
    pub(super) fn new(home: &Path, socket: &Path) -> Self {
        Self { lookups: Lookups::new(home, socket), ..Self::default() }
    }

    /// Returns the client of this peer, which becomes one with its first call.
    fn meet(&mut self, peer: PeerId) -> &mut RpcClient {
        self.all.entry(peer).or_default()
    }

    fn answer<M: RpcMethod>(&mut self, to: &Requester, result: &M::Answer, peers: &mut Peers) {
        if let (Some(id), Some(peer)) = (&to.id, peers.get_mut(to.peer)) {
            put_result(id, result, peer.out.buffer());
            self.touched.insert(to.peer);
        }
    }

    fn fail(&mut self, to: &Requester, error: &RpcError, peers: &mut Peers) {
        if let (Some(id), Some(peer)) = (&to.id, peers.get_mut(to.peer)) {
            put_error(Some(id), error, peer.out.buffer());
            self.touched.insert(to.peer);
        }
    }

    fn end_wait(&mut self, peer: PeerId) {
        if let Some(client) = self.all.get_mut(&peer) {
            client.waiting = client.waiting.saturating_sub(1);
        }
    }

    /// Returns true if a client has room for a long answer. If not, it hears of the run again when it has: answers that
    /// it does not take would fill the memory. When many were written in this turn, the rest follows in the next ones.
    fn has_room(&mut self, peer: PeerId, job: JobId, peers: &Peers) -> bool {
        if self.written >= limits::RPC_ANSWERS_PER_TURN {
            self.first = self.first.filter(|_| !self.unanswered.is_empty()).or(Some(job));
            self.unanswered.insert(job);
            return false;
        }
        let is_full = peers.get(peer).is_some_and(|peer| watcher::is_full(peer.out.pending()));
        if is_full && let Some(client) = self.all.get_mut(&peer) {
            client.behind.insert(job);
        }
        !is_full
    }

    /// Bytes that all clients have not taken yet.
    fn unread(&self, peers: &Peers) -> usize {
        self.all.keys().filter_map(|&id| peers.get(id)).map(|peer| peer.out.pending()).sum()
    }

    /// Returns true if a process stands for as many connections as one agent may have.
    fn has_too_many(&self, origin: Pid) -> bool {
        let same = self.all.values().filter(|client| client.origin == Some(origin));
        same.count() >= limits::RPC_CONNECTIONS_MAX
    }

    /// Deals with clients that have room again, and with those that are gone. Returns the runs to look at.
    pub(super) fn take_up(
        &mut self,
        roomy: &BTreeSet<PeerId>,
        turn: &mut Turn,
        engine: &mut Engine,
        peers: &mut Peers,
    ) -> BTreeSet<JobId> {
        let mut jobs = BTreeSet::new();
        for id in peers.take_lost_clients() {
            let Some(client) = self.all.remove(&id) else { continue };
            for run in self.kept.values_mut() {
                run.forget(id);
            }
            self.past.iter_mut().for_each(|past| past.forget(id, None, turn.now));
            self.lookups.forget(id);
            self.forget_terminals(id, None, engine);
            for &job in &client.foreground {
                engine.stop(job, Stopper::Caller, limits::GRACE_CALLER_GONE, turn.now);
            }
            jobs.extend(client.foreground);
        }
        self.past.iter_mut().filter(|_| !roomy.is_empty()).for_each(PastEvents::retry);
        for id in roomy {
            if let Some(client) = self.all.get_mut(id) {
                self.touched.insert(*id);
                jobs.append(&mut client.behind);
            }
        }
        jobs
    }

    /// Keeps these runs' new output, tells their watchers, and answers the requests that waited for it.
    pub(super) fn pump(&mut self, jobs: &BTreeSet<JobId>, runs: &mut Runs, cx: &mut Context<'_>) {
        self.written = 0;
        self.unanswered.clear();
        let first = self.first.take().unwrap_or(JobId(0));
        for &job in jobs.range(first..).chain(jobs.range(..first)) {
            self.pump_run(job, runs, cx);
        }
        let Context { turn, engine, peers } = cx;
        jobs.iter().for_each(|&job| self.tell_terminals(job, runs, engine, peers));
        if let Some(past) = &mut self.past {
            self.touched.append(&mut past.deliver(peers));
        }
        self.answer_lookups(turn, peers);
        self.unanswered.iter().for_each(|&job| turn.touch(job));
        let mut behind = BTreeSet::new();
        for id in std::mem::take(&mut self.touched) {
            peers.pump(id, turn, engine);
            let Some(peer) = peers.get(id).filter(|peer| !peer.is_leaving) else { continue };
            let client = self.all.get(&id);
            if !peer.is_deaf() && !self.pace.is_late(id) && (!peer.inbox.is_empty() || peer.port.is_readable()) {
                // Requests have waited until the answers to earlier ones were taken.
                turn.queue(peer.port.token());
            }
            let owes = self.past.as_ref().is_some_and(|past| past.owes(id));
            if !peer.is_deaf() && (owes || client.is_some_and(|client| !client.behind.is_empty())) {
                // It has taken everything at once: no event will report that it has room.
                behind.insert(id);
            }
            if peer.is_half_closed && peer.inbox.is_empty() && client.is_some_and(RpcClient::is_idle) {
                peers.let_go(id, turn, engine);
            }
        }
        behind.into_iter().for_each(|id| peers.touch(id));
        self.begin_lookups(turn, peers);
    }

    fn pump_run(&mut self, job: JobId, runs: &mut Runs, cx: &mut Context<'_>) {
        let Some(mut run) = self.kept.remove(&job) else { return };
        let Context { turn, engine, peers } = cx;
        let (before, has_unread) = (run.output.weight(), runs.has_unread(job));
        run.look_for_ports(turn.now, self.next_port_look.get_or_insert(turn.now), runs);
        while run.deliver(self, peers) && run.pull(has_unread, turn.now, engine) {}
        self.past.iter_mut().for_each(|past| run.add_events(past));
        run.feed(self, runs, &mut Context { turn, engine, peers });
        run.settle(self, runs, turn.now, peers);
        run.free_gathered();
        if run.is_closed() && run.note_end() {
            self.ended.push_back((turn.now, job));
            self.all.values_mut().for_each(|client| _ = client.foreground.remove(&job));
            runs.close_input(job, turn);
        }
        run.output.shed(limits::RPC_KEPT_RUN_BYTES);
        self.timed.extend(run.deadline().map(|at| (at, job)));
        self.weight = self.weight + run.output.weight() - before;
        self.kept.insert(job, run);
        if self.weight > limits::RPC_KEPT_BYTES {
            self.shed();
        }
    }

    /// Drops the chunks of the oldest runs. It stops at three quarters of the bound, so that it seldom has to run.
    fn shed(&mut self) {
        for run in self.kept.values_mut() {
            if self.weight <= limits::RPC_KEPT_BYTES / 4 * 3 {
                return;
            }
            let before = run.output.weight();
            run.output.shed(0);
            self.weight -= before - run.output.weight();
        }
    }

    /// Queues the runs for which something is due, and forgets those that have ended long ago.
    pub(super) fn tick(&mut self, turn: &mut Turn) {
        while let Some(&(at, job)) = self.timed.first().filter(|(at, _)| *at <= turn.now) {
            self.timed.remove(&(at, job));
            if let Some(run) = self.kept.get_mut(&job) {
                let before = run.output.weight();
                run.tick(turn.now);
                self.weight = self.weight + run.output.weight() - before;
                turn.touch(job);
            }
        }
        if self.past.as_ref().and_then(PastEvents::ends).is_some_and(|at| at <= turn.now) {
            self.past = None;
            self.kept.values_mut().for_each(KeptRun::note_no_events);
        }
        for _ in 0..self.ended.len() {
            let is_many = self.ended.len() > limits::RPC_KEPT_RUNS_MAX;
            let is_old = |at: Instant| at + limits::RPC_KEPT_AGE <= turn.now;
            let Some(&(_, job)) = self.ended.front().filter(|(at, _)| is_many || is_old(*at)) else { break };
            self.ended.pop_front();
            if self.kept.get(&job).is_some_and(KeptRun::owes_answer) {
                self.ended.push_back((turn.now, job));
            } else if let Some(run) = self.kept.remove(&job) {
                self.weight -= run.output.weight();
            }
        }
    }

    /// When [`RpcClients::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let oldest = self.ended.front().map(|&(at, _)| at + limits::RPC_KEPT_AGE);
        let past = self.past.as_ref().and_then(PastEvents::ends);
        let others = [oldest, past, self.lookups.deadline(), self.pace.deadline()];
        self.timed.first().map(|&(at, _)| at).into_iter().chain(others.into_iter().flatten()).min()
    }

    /// Keeps a run from now on, and tells those who watch all runs.
    fn keep(&mut self, job: JobId, mut run: KeptRun, turn: &mut Turn) {
        let mut beginning = None;
        for (&id, client) in &self.all {
            for (&number, subscription) in client.subscriptions.iter().filter(|(_, known)| known.is_for_all) {
                let watcher = Watcher::subscribed(id, number, subscription.told, subscription.encoding);
                let line = || Rc::clone(beginning.get_or_insert_with(|| Rc::new(run.beginning(turn.now))));
                let watcher = watcher.with_beginning(line);
                run.watch(watcher);
            }
        }
        if let Some(past) = &mut self.past {
            past.push::<event::Started>(&run.listed("queued", turn.now));
            run.note_events(past.told());
        }
        self.kept.insert(job, run);
        turn.touch(job);
    }

    /// Tells those who watch all runs of a decision on a run that has ended. One that takes too little misses it.
    fn tell_late_decision(&mut self, note: &DecidedNote, peers: &mut Peers) {
        self.past.iter_mut().for_each(|past| past.push::<event::Decided>(note));
        for (&id, client) in &self.all {
            let all = client.subscriptions.values().filter(|known| known.is_for_all);
            for _ in all.filter(|known| known.told.has(event::Decided::WORD)) {
                let Some(peer) = peers.get_mut(id).filter(|peer| !watcher::is_full(peer.out.pending())) else { break };
                put_event::<event::Decided>(note, peer.out.buffer());
                self.touched.insert(id);
            }
        }
    }

    fn has_watchers_of_all(&self) -> bool {
        self.past.is_some()
            || self.all.values().any(|client| client.subscriptions.values().any(|known| known.is_for_all))
    }
}

impl RpcClient {
    /// Returns true if the host will say nothing more to it.
    fn is_idle(&self) -> bool {
        self.waiting == 0 && self.foreground.is_empty() && self.subscriptions.is_empty() && self.behind.is_empty()
    }
}
