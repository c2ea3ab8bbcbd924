//! Peers: the connections, from hello to the last byte.
//!
//! Invariants: a peer's bytes are bounded and its time until a whole request too; descriptors that come are taken in at
//! once; a peer that breaks the rules gets one error and is gone, and nobody else notices; a peer that hangs up ends
//! its command.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::{self, AtStart};

use super::{Host, PeerId, Source};
use crate::core::engine::{Cursor, JobId};
use crate::core::entry::{Entry, Reason};
use crate::core::job::Job;
use crate::core::log::{Item, Lag};
use crate::core::process::{Pid, Signal};
use crate::front::PeerRequest;
use crate::front::protocol::Protocol;
use crate::io::outlet::Outlet;
use crate::io::poller::Ready;
use crate::io::port::{Input, Port};
use crate::limits;
use crate::sys::confinement::{Doubt, Moment, Purpose};
use crate::sys::socket;

const TOO_MANY_DESCRIPTORS: Notice = Notice::fixed(
    OWN_FAILURE,
    "more descriptors than a request may carry",
    "install rexec-sh and rexec-host of the same release",
);
const NO_PROOF: Notice = Notice::fixed(
    OWN_FAILURE,
    "the request brings no descriptor, so it may come through a relay: nothing is done for it",
    "use the rexec command on this machine, or start rexec-host without --require-descriptor",
);
const TOO_SLOW: Notice = Notice::fixed(OWN_FAILURE, "the request took too long", "run the command again");

/// One connection.
#[derive(Debug)]
pub(super) struct Peer {
    port: Port,
    pub(super) protocol: Protocol,
    inbox: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
    pub(super) out: Outlet,
    /// At most a hello was queued for it so far.
    is_only_greeted: bool,
    since: Instant,
    accepted: Moment,
    /// The process that connected.
    pub(super) pid: Pid,
    /// Another process has written to the connection: it may have been handed to somebody in a sandbox.
    is_shared: bool,
    /// Its reading of its command's log, until it has it all.
    cursor: Option<Cursor>,
    /// How much it has of the entry that it reads next, bytes.
    read: usize,
    pub(super) job: Option<JobId>,
    /// It has shut its writing side and waits for the answer.
    is_deaf: bool,
    /// Everything is said: it goes when its bytes are out.
    is_leaving: bool,
    /// Since when it has taken nothing of what is left for it, although its command has ended.
    stuck_since: Option<Instant>,
}

impl Peer {
    /// Whether it waits for nothing that is on its way.
    pub(super) fn has_nothing_to_take(&self) -> bool {
        self.cursor.is_none() && (self.out.is_empty() || self.is_only_greeted)
    }

    /// Its end was read. Whether it has only shut its writing side, and may wait for an answer: a whole close(2) is the end
    /// of its command. The last line needs no newline then.
    fn still_listens(&mut self) -> bool {
        self.protocol.decide(self.inbox.first());
        let listens = self.protocol.allows_half_close() && !socket::is_hung_up(self.port.fd());
        if listens && !self.is_deaf {
            self.is_deaf = true;
            self.inbox.push(b'\n');
        }
        listens
    }

    /// When it is let go, if it takes nothing until then.
    fn leaves_by(&self) -> Option<Instant> {
        self.stuck_since.map(|since| since + limits::FAREWELL_TIMEOUT)
    }
}

impl Host {
    /// Remembers an event of a peer's; whether it is worth a visit.
    pub(super) fn remember_peer(&mut self, id: PeerId, event: Ready) -> bool {
        let Some(peer) = self.peers.get_mut(&id) else { return false };
        peer.port.remember(event);
        event.readable || !peer.out.is_empty()
    }

    /// A caller was let in. Its request is hardly ever far behind.
    pub(super) fn admit(&mut self, fd: OwnedFd) -> Option<PeerId> {
        let pid = socket::peer_pid(&fd).ok()?;
        let mut port = Port::new(&mut self.poller, fd).ok()?;
        port.expect_input();
        self.last_peer += 1;
        let id = PeerId(self.last_peer);
        let token = port.token();
        self.sources.insert(token, Source::Peer(id));
        self.greeting.insert((self.now + limits::HELLO_TIMEOUT, id));
        let peer = Peer {
            port,
            protocol: Protocol::Undecided(self.outputs.clone()),
            is_deaf: false,
            inbox: Vec::new(),
            descriptors: Vec::new(),
            out: Outlet::default(),
            is_only_greeted: true,
            since: self.now,
            accepted: Moment::now(),
            pid,
            is_shared: false,
            cursor: None,
            read: 0,
            job: None,
            is_leaving: false,
            stuck_since: None,
        };
        self.peers.insert(id, peer);
        Some(id)
    }

    /// A peer's socket may have something.
    pub(super) fn visit_peer(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.port.is_writable() {
            self.roomy.insert(id);
        }
        let (mut budget, mut is_gone, mut lost_descriptors) = (limits::READ_BUDGET_BYTES, peer.is_deaf, false);
        while peer.port.is_readable() && budget > 0 && !is_gone {
            let (buffer, descriptors) = (&mut self.buffer, &mut peer.descriptors);
            let (pid, is_shared) = (peer.pid, &mut peer.is_shared);
            let input = peer.port.read(|fd| {
                let received = socket::receive_with_descriptors(fd, buffer, descriptors)?;
                lost_descriptors |= received.lost_descriptors;
                *is_shared |= received.bytes > 0 && received.sender != Some(pid);
                Ok(received.bytes)
            });
            match input {
                Input::Bytes(length) => {
                    budget = budget.saturating_sub(length);
                    if !peer.is_leaving {
                        peer.inbox.extend_from_slice(&self.buffer[..length]);
                    } else {
                        peer.descriptors.clear();
                    }
                }
                Input::Nothing => break,
                Input::End => is_gone = true,
            }
        }
        if peer.port.is_readable() && !is_gone {
            self.ready.insert(peer.port.token());
        }
        if is_gone && !peer.still_listens() {
            return self.lose(id);
        }
        if lost_descriptors {
            return self.part(id, &super::BUSY);
        }
        self.hear(id);
        if self.is_request_too_much(id) {
            self.part(id, &super::BUSY);
        }
        // Who said nothing whole and will say no more waits for nothing.
        if self.peers.get(&id).is_some_and(|peer| peer.is_deaf && !peer.is_leaving && !peer.protocol.has_asked()) {
            self.lose(id);
        }
    }

    /// Whether what is still coming has become long, while that of all peers is too much together.
    fn is_request_too_much(&self, id: PeerId) -> bool {
        let is_coming = |peer: &&Peer| !peer.is_leaving;
        let is_long = |peer: &Peer| peer.inbox.len() > limits::READ_BUDGET_BYTES;
        self.peers.get(&id).filter(is_coming).is_some_and(is_long)
            && self.peers.values().filter(is_coming).map(|peer| peer.inbox.len()).sum::<usize>()
                > limits::REQUESTS_BYTES
    }

    /// Takes what a peer has said, as far as it is whole.
    fn hear(&mut self, id: PeerId) {
        while let Some(peer) = self.peers.get_mut(&id).filter(|peer| !peer.is_leaving) {
            let expected = if peer.protocol.has_asked() { 0 } else { socket::DESCRIPTORS_MAX };
            if peer.descriptors.len() > expected {
                return self.part(id, &TOO_MANY_DESCRIPTORS);
            }
            let asked = match peer.protocol.take(&mut peer.inbox, peer.out.buffer()) {
                Ok(asked) => asked,
                Err(violation) => return self.part(id, &violation),
            };
            match asked {
                None => {
                    if peer.protocol.is_over() {
                        self.farewell(id);
                    }
                    return;
                }
                Some(PeerRequest::Run(_) | PeerRequest::RunWords(_)) if self.is_closing() => {
                    self.part(id, &super::ENDING)
                }
                Some(PeerRequest::Run(command)) => {
                    if self.examine(id, &command.whoami, &command.text) {
                        self.submit_command(id, *command);
                    }
                }
                Some(PeerRequest::RunWords(request)) => {
                    if self.has_proof(id) && self.examine(id, &request.whoami, request.exec.join(" ").as_bytes()) {
                        self.submit_words(id, &request);
                    }
                }
                Some(PeerRequest::NoteLeft { whoami, command }) => {
                    self.tell_left(&whoami, "its directory cannot be entered", &command);
                    return self.farewell(id);
                }
                Some(PeerRequest::NoteInteractive { whoami }) => {
                    self.tell_interactive(&whoami);
                    return self.farewell(id);
                }
                Some(PeerRequest::List) => {
                    if self.has_proof(id) {
                        self.list(id);
                    }
                }
                Some(PeerRequest::Kill(seq)) => {
                    if self.has_proof(id) {
                        self.kill(id, seq);
                    }
                }
                Some(PeerRequest::Signal(signal)) => self.with_job(id, |host, job| host.on_signal(id, job, signal)),
                Some(PeerRequest::Terminal(event)) => self.with_job(id, |host, job| host.at_terminal(job, event)),
                Some(PeerRequest::OutputClosed(stream)) => {
                    self.with_job(id, |host, job| host.on_output_closed(job, stream))
                }
                Some(PeerRequest::Abort) => self.with_job(id, |host, job| {
                    host.engine.stop(job, Reason::CallerGone, limits::GRACE_CALLER_GONE, host.now);
                }),
            }
        }
    }

    /// Whether a request in JSON came with the descriptor that proves that no relay of bytes is in between, where that is
    /// required. If not, its caller has been answered. A shim's request has descriptors of its own.
    fn has_proof(&mut self, id: PeerId) -> bool {
        let brought = self.peers.get_mut(&id).map(|peer| std::mem::take(&mut peer.descriptors)).unwrap_or_default();
        let has_proof = !self.options.require_descriptor || !brought.is_empty();
        if !has_proof {
            self.part(id, &NO_PROOF);
        }
        has_proof
    }

    /// A signal for a command, which its caller's end would hear of if the host did not say so.
    fn on_signal(&mut self, id: PeerId, job: JobId, signal: Signal) {
        match self.at_start(job, signal) {
            AtStart::Nothing if self.engine.job(job).is_some_and(Job::is_queued) => {}
            at_start => self.engine.signal(job, signal, at_start == AtStart::Ends),
        }
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.protocol.hear_signal(peer.out.buffer());
            self.roomy.insert(id);
        }
    }

    /// Whether it has said something that was not read.
    pub(super) fn has_unread(&self, id: PeerId) -> bool {
        self.peers.get(&id).is_some_and(|peer| peer.port.is_readable())
    }

    /// The host ends: whoever has not asked for anything is told, and does not have to ask.
    pub(super) fn dismiss(&mut self) {
        let is_idle = |peer: &Peer| peer.protocol.has_said_hello() && !peer.protocol.has_asked() && !peer.is_leaving;
        let idle: Vec<PeerId> = self.peers.iter().filter(|(_, peer)| is_idle(peer)).map(|(&id, _)| id).collect();
        idle.into_iter().for_each(|id| self.part(id, &super::ENDING));
    }

    fn with_job(&mut self, id: PeerId, act: impl FnOnce(&mut Self, JobId)) {
        if let Some(job) = self.peers.get(&id).and_then(|peer| peer.job) {
            act(self, job);
        }
    }

    /// Binds a peer to the command it asked for.
    pub(super) fn attend(&mut self, id: PeerId, job: JobId) {
        let cursor = self.engine.attach(job, Lag::Hold);
        self.end_greeting(id);
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.cursor = cursor;
            peer.job = Some(job);
            // Everything of the request is in the command now.
            peer.inbox.shrink_to_fit();
        }
    }

    /// A peer has asked: its time for that is not counted any more.
    pub(super) fn end_greeting(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get(&id) else { return };
        for timeout in [limits::HELLO_TIMEOUT, limits::REQUEST_TIMEOUT] {
            self.greeting.remove(&(peer.since + timeout, id));
        }
    }

    /// A peer hung up: so its command ends.
    fn lose(&mut self, id: PeerId) {
        self.end_greeting(id);
        let Some(peer) = self.peers.remove(&id) else { return };
        self.leaving.remove(&id);
        self.settling.remove(&id);
        if let Some(cursor) = peer.cursor {
            self.engine.detach(cursor);
        }
        if let Some(job) = peer.job {
            self.release_terminal(job, id, peer.is_leaving);
            self.engine.stop(job, Reason::CallerGone, limits::GRACE_CALLER_GONE, self.now);
        }
        self.sources.remove(&peer.port.token());
        peer.port.close(&mut self.poller);
        if self.door.retry_at.take().is_some() {
            self.ready.insert(self.door.token);
        }
    }

    /// Ends a peer with an error, in its language if it has said anything.
    pub(super) fn part(&mut self, id: PeerId, notice: &Notice) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.protocol.decide(peer.inbox.first());
        peer.protocol.fail(notice, peer.out.buffer());
        peer.inbox = Vec::new();
        peer.descriptors.clear();
        // Its last bytes may take their time; its command does not run on meanwhile.
        if let Some(job) = peer.job.take() {
            self.engine.stop(job, Reason::CallerGone, limits::GRACE_CALLER_GONE, self.now);
        }
        self.farewell(id);
    }

    /// What the sentry has to say against the caller, if anything.
    pub(super) fn doubt(&self, id: PeerId, purpose: Purpose) -> Option<Doubt> {
        let Some(peer) = self.peers.get(&id) else { return Some(Doubt::Shortage) };
        self.sandbox_check.doubt(peer.port.fd(), peer.accepted, peer.is_shared, purpose)
    }

    /// Leaves a command to its caller.
    pub(super) fn refuse(&mut self, id: PeerId, notice: &Notice) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.protocol.refuse(notice, peer.out.buffer());
        peer.descriptors.clear();
        self.farewell(id);
    }

    /// Everything for this peer is queued.
    pub(super) fn farewell(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(&id) {
            if let Some(cursor) = peer.cursor.take() {
                self.engine.detach(cursor);
            }
            peer.is_leaving = true;
        }
        self.flush_peer(id);
    }

    /// Gives a peer what its command's log has for it; tells which job it read.
    pub(super) fn pump_peer(&mut self, id: PeerId) -> Option<JobId> {
        let peer = self.peers.get_mut(&id)?;
        let job = peer.job;
        let (mut is_end, until) = (false, Instant::now() + limits::PUMP_TIME);
        // It ends when the log is read or the socket is full: whatever is left then is told by an event.
        while send(peer)
            && let Some(cursor) = peer.cursor
            && peer.out.pending() < limits::OUTLET_HIGH_BYTES
            && self.engine.next(cursor).is_some()
        {
            while peer.out.pending() < limits::OUTLET_HIGH_BYTES
                && let Some(item) = self.engine.next(cursor)
                && Instant::now() < until
            {
                is_end = matches!(item, Item::Entry(Entry::Closed { .. }));
                if let Item::Entry(Entry::Output { stream, bytes }) = &item {
                    let (rest, out) = (&bytes[peer.read..], peer.out.buffer());
                    peer.read += peer.protocol.output(*stream, rest, self.now, out);
                    if peer.read < bytes.len() {
                        continue;
                    }
                    peer.read = 0;
                } else {
                    peer.protocol.accept(&item, self.now, peer.out.buffer());
                }
                self.engine.advance(cursor);
            }
            if is_end {
                break;
            }
            if Instant::now() >= until {
                self.roomy.insert(id);
                break;
            }
        }
        let is_read = peer.cursor.is_some_and(|cursor| self.engine.next(cursor).is_none());
        if let Some(run) = job.filter(|_| is_read).and_then(|job| self.runs.get_mut(&job))
            && let Some(relay) = &mut run.relay
        {
            relay.tell(peer.out.buffer());
        }
        if !is_end && peer.protocol.deadline().is_some() {
            self.settling.insert(id);
        } else {
            self.settling.remove(&id);
        }
        if is_end {
            self.farewell(id);
        } else {
            self.flush_peer(id);
        }
        job
    }

    fn flush_peer(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let is_lost = !send(peer);
        if is_lost || (peer.is_leaving && peer.out.is_empty()) {
            return self.lose(id);
        }
        let has_ended = |job| self.engine.job(job).is_none_or(|known| !known.is_queued() && !known.is_running());
        if !peer.out.is_empty() && (peer.is_leaving || peer.job.is_some_and(has_ended)) {
            peer.stuck_since.get_or_insert(self.now);
            self.leaving.insert(id);
        } else {
            self.leaving.remove(&id);
        }
    }

    /// Ends those that took too long for their hello, their request, or their last bytes.
    pub(super) fn tick_peers(&mut self) {
        while let Some(&(at, id)) = self.greeting.first().filter(|(at, _)| *at <= self.now) {
            self.greeting.remove(&(at, id));
            let Some(peer) = self.peers.get(&id) else { continue };
            let request_by = peer.since + limits::REQUEST_TIMEOUT;
            if peer.protocol.has_said_hello() && self.now < request_by {
                self.greeting.insert((request_by, id));
            } else {
                self.part(id, &TOO_SLOW);
            }
        }
        let is_due =
            |id: &PeerId| self.peers.get(id).and_then(|peer| peer.protocol.deadline()).is_some_and(|at| at <= self.now);
        for id in self.settling.iter().copied().filter(is_due).collect::<Vec<_>>() {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.protocol.tick(self.now, peer.out.buffer());
                self.roomy.insert(id);
            }
        }
        let is_late = |peer: &Peer| peer.leaves_by().is_some_and(|at| at <= self.now);
        let late = |id: &PeerId| self.peers.get(id).is_none_or(is_late);
        let late: Vec<PeerId> = self.leaving.iter().copied().filter(late).collect();
        late.into_iter().for_each(|id| {
            self.leaving.remove(&id);
            self.lose(id);
        });
    }

    /// When [`Host::tick_peers`] has something to do.
    pub(super) fn peers_deadline(&self) -> Option<Instant> {
        let leaving = self.leaving.iter().filter_map(|id| self.peers.get(id)?.leaves_by());
        let settling = self.settling.iter().filter_map(|id| self.peers.get(id)?.protocol.deadline());
        self.greeting.first().map(|&(at, _)| at).into_iter().chain(leaving).chain(settling).min()
    }
}

/// Sends what goes; `false` when the peer is gone. A hello alone is not worth a wake-up of the shim.
fn send(peer: &mut Peer) -> bool {
    peer.is_only_greeted &= peer.out.pending() <= wire::HELLO_BYTES && !peer.is_leaving;
    if !peer.port.is_writable() || peer.is_only_greeted {
        return true;
    }
    let (port, before) = (&mut peer.port, peer.out.pending());
    let flushed = peer.out.flush(|bytes| port.write(|fd| socket::send(fd, bytes, &[])));
    if peer.out.pending() < before {
        peer.stuck_since = None;
    }
    flushed.is_ok()
}
