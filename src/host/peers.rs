//! The peers: every connection, and when each has to say or take something.
//!
//! Invariants: the bytes of a peer are bounded, and so is its time until a whole request; a peer that breaks the rules
//! gets one error and is let go, and no other peer notices; a peer that hangs up ends its command.

mod deadlines;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Pid;
use rexec_sh::protocol::wire::{self, TerminalModes};

use super::peer::{Peer, Progress};
use super::terminal_relay::RelayEvent;
use super::turn::{PeerId, Source, Turn};
use crate::core::end::Stopper;
use crate::core::engine::{Engine, JobId};
use crate::core::log::Lag;
use crate::front::answer::Answer;
use crate::front::answer::WrittenBefore;
use crate::front::attached::Attached;
use crate::front::budget::Budget;
use crate::front::json_line::put_line;
use crate::front::language::Language;
use crate::guard::saved_terminal::SavedTerminal;
use crate::io::poller::Ready;
use crate::io::port::Port;
use crate::limits;
use crate::sys::confinement::ConnectedProcess;
use crate::sys::{caller_descriptor, process, socket};
use crate::text::terminal_tail::ShownSoFar;

#[derive(Debug)]
pub(super) struct Peers {
    pub(super) all: BTreeMap<PeerId, Peer>,
    last: u64,
    /// The bound on connections, by the descriptors that the host may have.
    most: usize,
    /// The bytes that all answers in JSON hold together.
    outputs: Budget,
    /// Peers without a whole request, by their next deadline.
    greeting: BTreeSet<(Instant, PeerId)>,
    /// Peers that have bytes left to take, although their command has ended or everything was said to them.
    leaving: BTreeSet<PeerId>,
    /// Peers whose redrawn line is held back until it stands still.
    settling: BTreeSet<PeerId>,
    /// Peers that have room again or something new to take. Their jobs may be long forgotten.
    roomy: BTreeSet<PeerId>,
    /// A peer has left since [`Peers::take_has_left`].
    has_left: bool,
    /// Peers that spoke JSON-RPC and have left, or are about to.
    lost_clients: Vec<PeerId>,
}

impl Peers {
    /// No connections yet, and as many as the process's descriptors allow.
    pub(super) fn new() -> Self {
        Self {
            all: BTreeMap::new(),
            last: 0,
            most: limits::peers_max(process::descriptor_limit()),
            outputs: Budget::new(limits::JSON_OUTPUTS_BYTES, limits::JSON_OUTPUT_OWN_BYTES),
            greeting: BTreeSet::new(),
            leaving: BTreeSet::new(),
            settling: BTreeSet::new(),
            roomy: BTreeSet::new(),
            has_left: false,
            lost_clients: Vec::new(),
        }
    }

    pub(super) fn get(&self, id: PeerId) -> Option<&Peer> {
        self.all.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.all.get_mut(&id)
    }

    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= self.most
    }

    /// Returns true if no peer waits for anything that is on its way.
    pub(super) fn have_nothing_to_take(&self) -> bool {
        self.all.values().all(Peer::has_nothing_to_take)
    }

    /// Returns true if a peer has room for what its job's log may have, or a JSON-RPC client has left.
    pub(super) fn has_work(&self) -> bool {
        !self.roomy.is_empty() || !self.lost_clients.is_empty()
    }

    pub(super) fn take_roomy(&mut self) -> BTreeSet<PeerId> {
        std::mem::take(&mut self.roomy)
    }

    pub(super) fn take_lost_clients(&mut self) -> Vec<PeerId> {
        std::mem::take(&mut self.lost_clients)
    }

    /// Returns true if a peer has left since the last call, so that there is room for another.
    pub(super) fn take_has_left(&mut self) -> bool {
        std::mem::take(&mut self.has_left)
    }

    /// Remembers an event of a peer's. Returns true if it calls for a visit.
    pub(super) fn remember(&mut self, id: PeerId, event: Ready) -> bool {
        self.all.get_mut(&id).is_some_and(|peer| peer.remember(event))
    }

    pub(super) fn admit(&mut self, fd: OwnedFd, turn: &mut Turn) -> Option<PeerId> {
        let Ok(pid) = socket::peer_pid(&fd) else {
            caller_descriptor::close_connection(fd);
            return None;
        };
        socket::keep_urgent_in_line(&fd);
        let port = match Port::new_or_back(&mut turn.poller, fd) {
            Ok(port) => port,
            Err(fd) => {
                caller_descriptor::close_connection(fd);
                return None;
            }
        };
        self.last += 1;
        let id = PeerId(self.last);
        turn.name(port.token(), Source::Peer(id));
        self.greeting.insert((turn.now + limits::HELLO_TIMEOUT, id));
        self.all.insert(id, Peer::new(port, Language::Undecided(self.outputs.clone()), pid, turn.now));
        Some(id)
    }

    pub(super) fn touch(&mut self, id: PeerId) {
        self.roomy.insert(id);
    }

    /// Returns true if the request that is still coming has become long, while those of all peers are too long
    /// together.
    pub(super) fn is_request_too_much(&self, id: PeerId) -> bool {
        let is_coming = |peer: &&Peer| !peer.is_leaving;
        let is_long = |peer: &Peer| peer.inbox.len() > limits::READ_BUDGET_BYTES;
        self.all.get(&id).filter(is_coming).is_some_and(is_long)
            && self.all.values().filter(is_coming).map(|peer| peer.inbox.len()).sum::<usize>() > limits::REQUESTS_BYTES
    }

    /// Binds a peer to the command it asked for.
    pub(super) fn attend(&mut self, id: PeerId, job: JobId, engine: &mut Engine) {
        let cursor = engine.attach(job, Lag::Hold);
        self.end_greeting(id);
        if let Some(peer) = self.all.get_mut(&id) {
            peer.cursor = cursor;
            peer.job = Some(job);
            // Everything of the request is in the command now.
            peer.inbox.shrink_to_fit();
        }
    }

    /// Makes a person's terminal stand for a command's: answers, shows what a full-screen program of the command has drawn,
    /// or else the command's last line, and goes on with what it writes. The person does not hold the command back.
    pub(super) fn attach(
        &mut self,
        id: PeerId,
        job: JobId,
        answer: &Answer,
        drawn: Option<ShownSoFar>,
        engine: &mut Engine,
    ) {
        self.end_greeting(id);
        let cursor = engine.attach_behind_output(job);
        let Some(peer) = self.all.get_mut(&id) else { return cursor.into_iter().for_each(|new| engine.detach(new)) };
        put_line(answer, peer.out.buffer());
        let line = || engine.job(job).map(|known| known.last_line().to_vec()).unwrap_or_default();
        let shown = drawn.map_or_else(line, |drawn| drawn.bytes);
        wire::encode_output(wire::CallerStream::Out, &shown, peer.out.buffer());
        (peer.language, peer.cursor, peer.attached) = (Language::Attached(Attached), cursor, Some(job));
        self.roomy.insert(id);
    }

    pub(super) fn attached_to(&self, id: PeerId) -> Option<JobId> {
        self.all.get(&id)?.attached
    }

    /// The peers whose people are attached to one of these commands.
    pub(super) fn attached(&self, jobs: &BTreeSet<JobId>) -> Vec<PeerId> {
        let is_one = |peer: &Peer| peer.attached.is_some_and(|job| jobs.contains(&job));
        self.all.iter().filter(|(_, peer)| is_one(peer)).map(|(&id, _)| id).collect()
    }

    /// A peer hung up, or has everything: closes its connection and ends its command.
    pub(super) fn lose(&mut self, id: PeerId, turn: &mut Turn, engine: &mut Engine) {
        self.end_greeting(id);
        let Some(peer) = self.all.remove(&id) else { return };
        if peer.is_rpc() {
            self.lost_clients.push(id);
        }
        self.leaving.remove(&id);
        self.settling.remove(&id);
        if let Some(cursor) = peer.cursor {
            engine.detach(cursor);
        }
        if let Some(job) = peer.job {
            if let Some(terminal) = peer.terminal.filter(|_| !peer.is_leaving) {
                terminal.restore();
            }
            engine.stop(job, Stopper::Caller, limits::GRACE_CALLER_GONE, turn.now);
        }
        turn.close_connection(peer.port);
        self.has_left = true;
    }

    /// Ends a peer with an error, in its language if it has said anything.
    pub(super) fn fail(&mut self, id: PeerId, notice: &Notice, turn: &mut Turn, engine: &mut Engine) {
        let Some(peer) = self.all.get_mut(&id) else { return };
        peer.language.decide(peer.inbox.first());
        peer.language.fail(notice, peer.out.buffer());
        peer.inbox = Vec::new();
        peer.descriptors.clear();
        // The peer may be slow to take its last bytes. Its command does not run on meanwhile.
        if let Some(job) = peer.job.take() {
            engine.stop(job, Stopper::Caller, limits::GRACE_CALLER_GONE, turn.now);
        }
        self.let_go(id, turn, engine);
    }

    /// Leaves a command to its caller's own sandbox.
    pub(super) fn refuse(&mut self, id: PeerId, notice: &Notice, turn: &mut Turn, engine: &mut Engine) {
        let Some(peer) = self.all.get_mut(&id) else { return };
        peer.language.refuse(notice, peer.out.buffer());
        peer.descriptors.clear();
        self.let_go(id, turn, engine);
    }

    /// Tells a peer that the console follows. If it is the console of one command, `ran` and `before` say how long that
    /// ran and what it wrote before.
    pub(super) fn begin_console(&mut self, id: PeerId, ran: Option<Duration>, before: Option<WrittenBefore>) {
        self.end_greeting(id);
        if let Some(peer) = self.all.get_mut(&id)
            && let Language::Jsonl(jsonl) = &mut peer.language
        {
            jsonl.begin_console(ran, before, peer.out.buffer());
            self.roomy.insert(id);
        }
    }

    /// The bound on the output of all JSON answers.
    pub(super) fn outputs(&self) -> &Budget {
        &self.outputs
    }

    /// Answers a request that is not a command.
    pub(super) fn answer(&mut self, id: PeerId, answer: &Answer, turn: &mut Turn, engine: &mut Engine) {
        if let Some(peer) = self.all.get_mut(&id)
            && let Language::Jsonl(jsonl) = &mut peer.language
        {
            jsonl.answer(answer, peer.out.buffer());
            self.let_go(id, turn, engine);
        }
    }

    /// Lets a peer go: everything for it is queued, and it leaves when its bytes are out.
    pub(super) fn let_go(&mut self, id: PeerId, turn: &mut Turn, engine: &mut Engine) {
        if let Some(peer) = self.all.get_mut(&id) {
            if let Some(cursor) = peer.cursor.take() {
                engine.detach(cursor);
            }
            if peer.is_rpc() && !peer.is_leaving {
                self.lost_clients.push(id);
            }
            peer.is_leaving = true;
        }
        self.flush(id, turn, engine);
    }

    pub(super) fn close(&mut self, turn: &mut Turn) {
        std::mem::take(&mut self.all).into_values().for_each(|peer| turn.close_connection(peer.port));
    }

    /// Gives a peer the news of its command's log. Returns the job whose log it read.
    pub(super) fn pump(&mut self, id: PeerId, turn: &mut Turn, engine: &mut Engine) -> Option<JobId> {
        let peer = self.all.get_mut(&id)?;
        let job = peer.job;
        let progress = peer.read_log(engine, turn.now);
        if progress == Progress::MayGoOn {
            self.roomy.insert(id);
        }
        peer.tell_in_place(engine);
        if progress != Progress::End && peer.language.deadline().is_some() {
            self.settling.insert(id);
        } else {
            self.settling.remove(&id);
        }
        if progress == Progress::End {
            if let Some((job, received)) = job.zip(peer.received()) {
                engine.on_received(job, received);
            }
            self.let_go(id, turn, engine);
        } else {
            self.flush(id, turn, engine);
        }
        job
    }

    fn flush(&mut self, id: PeerId, turn: &mut Turn, engine: &mut Engine) {
        let Some(peer) = self.all.get_mut(&id) else { return };
        let is_lost = !peer.send();
        if is_lost || (peer.is_leaving && peer.out.is_empty()) {
            return if is_lost || !self.go_on(id, turn) {
                self.lose(id, turn, engine)
            };
        }
        let has_ended = |job| engine.job(job).is_none_or(|known| !known.is_queued() && !known.is_running());
        if !peer.out.is_empty() && (peer.is_leaving || peer.job.is_some_and(has_ended)) {
            peer.stuck_since.get_or_insert(turn.now);
            self.leaving.insert(id);
        } else {
            self.leaving.remove(&id);
        }
    }

    /// No process of the command can write to this output of a shim's any more.
    pub(super) fn end_output(&mut self, id: PeerId, stream: wire::CallerStream) {
        if self.all.get(&id).is_some_and(Peer::is_shim) {
            self.tell_in_place(id, RelayEvent::OutputEnded(stream));
        }
    }

    /// A run whose terminal its caller's shim relays has begun: the shim may attach.
    pub(super) fn attach_terminal(&mut self, id: PeerId) {
        self.tell(id, |out| wire::FromHost::Attach.encode(out));
    }

    /// Tells a shim that this many bytes of keys have reached the run's terminal.
    pub(super) fn on_keys_taken(&mut self, id: PeerId, bytes: u32) {
        self.tell(id, |out| wire::FromHost::Taken(bytes).encode(out));
    }

    /// Tells a shim something, after the output that came before.
    pub(super) fn tell_in_place(&mut self, id: PeerId, event: RelayEvent) {
        if let Some(peer) = self.all.get_mut(&id) {
            peer.told_in_place.push(event);
            self.roomy.insert(id);
        }
    }

    /// A shim's process; `None` for other peers.
    pub(super) fn shim_pid(&self, id: PeerId) -> Option<Pid> {
        self.all.get(&id).filter(|peer| peer.is_shim()).map(|peer| peer.pid)
    }

    pub(super) fn shim_process(&self, id: PeerId) -> Option<ConnectedProcess> {
        let peer = self.all.get(&id).filter(|peer| peer.is_shim())?;
        ConnectedProcess::of(peer.port.fd(), peer.pid, peer.accepted).ok()
    }

    /// Orders the shim to give the caller's terminal these modes at the end. Returns `false` when the peer is gone.
    pub(super) fn give_modes(&mut self, id: PeerId, modes: TerminalModes) -> bool {
        self.tell(id, |out| wire::FromHost::Modes(modes).encode(out));
        self.all.contains_key(&id)
    }

    pub(super) fn terminals(&self) -> impl Iterator<Item = &SavedTerminal> {
        self.all.values().filter_map(|peer| peer.terminal.as_ref())
    }

    fn tell(&mut self, id: PeerId, encode: impl FnOnce(&mut Vec<u8>)) {
        if let Some(peer) = self.all.get_mut(&id) {
            encode(peer.out.buffer());
            self.roomy.insert(id);
        }
    }
}
