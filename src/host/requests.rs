//! Peers' requests, and the owner that answers each.
//!
//! Each request of a peer comes as a [`PeerRequest`], and `Host::serve` has one arm for each. A command goes on in
//! `submissions.rs`; what people ask about the commands of others, in `supervision.rs`.

use std::time::Instant;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::AtStart;

use super::context::Context;
use super::door::Arrival;
use super::notices::{BUSY, ENDING, MISPLACED_DESCRIPTORS, NO_PROOF, TOO_MANY_DESCRIPTORS};
use super::peer::{Heard, Peer};
use super::reports::ExpectedReport;
use super::turn::PeerId;
use super::{Host, unseen};
use crate::core::end::Stopper;
use crate::core::engine::JobId;
use crate::core::job::Job;
use crate::front::answer::Answer;
use crate::front::{PeerRequest, Supervision};
use crate::io::poller::Token;
use crate::limits;
use crate::sys::confinement::{Difference, Doubt, Purpose};
use crate::sys::socket;
use rexec_sh::protocol::process::Signal;

impl Host {
    /// Accepts callers, some in each turn.
    pub(super) fn visit_door(&mut self, token: Token) {
        for _ in 0..limits::ACCEPTS_PER_TURN {
            if self.peers.is_full() {
                // A peer that leaves makes room. The timer is for callers that hold descriptors without leaving.
                return self.door.retry_later(self.turn.now);
            }
            match self.door.accept(self.turn.now) {
                Arrival::Peer(fd) => {
                    if let Some(peer) = self.peers.admit(fd, &mut self.turn) {
                        self.visit_peer(peer);
                    }
                }
                Arrival::TurnedAway => {}
                Arrival::Nobody => return,
            }
        }
        self.turn.queue(token);
    }

    /// A peer's socket may have something to read, or room.
    pub(super) fn visit_peer(&mut self, id: PeerId) {
        if self.peers.get(id).is_some_and(|peer| peer.is_behind) {
            if self.rpc.pace.is_late(id) {
                // Its turn comes by itself. It may have room for answers.
                return self.peers.touch(id);
            }
            self.hear(id);
        }
        let Some(peer) = self.peers.get_mut(id) else { return };
        let (has_room, mut received) = (peer.port.is_writable(), peer.receive(&mut self.turn));
        if has_room {
            self.peers.touch(id);
        }
        if let Heard::Brings(length) = received {
            received = match self.admit_descriptors(id, length) {
                Some(heard) => heard,
                None => return,
            };
        }
        match received {
            Heard::Open => {}
            Heard::End => {
                if self.peers.attached_to(id).is_some() {
                    // The last keys may have come with the end.
                    self.hear(id);
                }
                return self.peers.lose(id, &mut self.turn, &mut self.engine);
            }
            Heard::DescriptorsLost => return self.fail(id, &BUSY),
            Heard::TooManyDescriptors | Heard::Brings(_) => return self.fail(id, &TOO_MANY_DESCRIPTORS),
        }
        self.hear(id);
        if self.peers.is_request_too_much(id) {
            self.fail(id, &BUSY);
        }
        // A peer that will say no more, and has said nothing whole, waits for nothing.
        let is_futile = |peer: &Peer| {
            peer.is_half_closed && !peer.is_leaving && peer.inbox.is_empty() && !peer.language.has_asked()
        };
        if self.peers.get(id).is_some_and(is_futile) {
            self.peers.lose(id, &mut self.turn, &mut self.engine);
        }
    }

    /// Lets a peer bring descriptors with its next bytes; the buffer has `length` of these. Else it gets its answer,
    /// and the descriptors stay where they are: closing one may take time, and processes in sandboxes may send any.
    fn admit_descriptors(&mut self, id: PeerId, length: usize) -> Option<Heard> {
        let peer = self.peers.get_mut(id)?;
        let Some(purpose) = peer.purpose_of_descriptors(&self.turn.buffer[..length]) else {
            peer.is_sealed = true;
            self.fail(id, &MISPLACED_DESCRIPTORS);
            return None;
        };
        let doubt = self.admit(id, purpose).err();
        let peer = self.peers.get_mut(id)?;
        peer.is_sealed = doubt.is_some();
        match doubt {
            None => {
                peer.admit(purpose, &self.turn.buffer[..length], self.turn.now);
                return Some(peer.receive(&mut self.turn));
            }
            Some(Doubt::Shortage) => self.fail(id, &BUSY),
            Some(Doubt::Differs(why)) => {
                peer.inbox.extend_from_slice(&self.turn.buffer[..length]);
                self.hear(id);
                if self.peers.get(id).is_some_and(|peer| !peer.is_leaving) {
                    self.refuse(id, why);
                }
            }
        }
        None
    }

    fn refuse(&mut self, id: PeerId, why: Difference) {
        let problem = format_args!("the caller is sandboxed ({why}); its commands run in its sandbox only");
        let hint = "run the command without rexec, or start rexec-host with --allow-sandboxed";
        self.peers.refuse(id, &Notice::new(OWN_FAILURE, problem, hint), &mut self.turn, &mut self.engine);
    }

    /// Serves the whole requests of a peer.
    fn hear(&mut self, id: PeerId) {
        let mut left = limits::REQUESTS_PER_TURN;
        while let Some(peer) = self.peers.get_mut(id).filter(|peer| !peer.is_leaving) {
            peer.is_behind = peer.is_deaf() && !peer.inbox.is_empty();
            if peer.is_deaf() {
                // It gets its turn when it has taken the answers to what it asked before.
                return;
            }
            let is_rpc = peer.is_rpc();
            let is_json = peer.speaks_json();
            if !peer.inbox.is_empty() && (left == 0 || (is_json && !self.rpc.pace.has_time())) {
                peer.is_behind = true;
                return if is_json { self.rpc.pace.put_off(id) } else { self.turn.queue(peer.port.token()) };
            }
            left = left.saturating_sub(1);
            let begun = is_json.then(Instant::now);
            let expected = if peer.language.has_asked() { 0 } else { socket::DESCRIPTORS_MAX };
            if peer.descriptors.len() > expected {
                return self.fail(id, &TOO_MANY_DESCRIPTORS);
            }
            let taken = peer.language.take(&mut peer.inbox, peer.out.buffer());
            // To read a line costs time also if it is refused. A request in JSON-RPC counts with its answer.
            let is_call = is_rpc && matches!(taken, Ok(Some(_)));
            begun.filter(|_| !is_call).into_iter().for_each(|begun| self.rpc.pace.note(begun));
            match taken {
                Ok(Some(asked)) => {
                    self.serve(id, asked);
                    begun.filter(|_| is_call).into_iter().for_each(|begun| self.rpc.pace.note(begun));
                }
                Ok(None) => {
                    if peer.language.is_over() {
                        self.peers.let_go(id, &mut self.turn, &mut self.engine);
                    }
                    return;
                }
                Err(violation) => return self.fail(id, &violation),
            }
        }
    }

    fn serve(&mut self, id: PeerId, asked: PeerRequest) {
        let job = self.peers.get(id).and_then(|peer| peer.job);
        match asked {
            PeerRequest::Run(_) | PeerRequest::RunWords(_) if self.is_closing() => self.fail(id, &ENDING),
            PeerRequest::Run(command) => {
                if self.may_run(id, &command.caller.whoami, &command.text, || command.reported_arguments()) {
                    self.submit_command(id, *command);
                }
            }
            PeerRequest::RunWords(request) => {
                if self.has_proof(id) && self.may_run(id, &request.whoami, request.exec.join(" ").as_bytes(), Vec::new)
                {
                    self.submit_words(id, &request);
                }
            }
            PeerRequest::NoteLeft { whoami, command } => {
                self.hear_claim(id, &unseen::left_line(&whoami, "its directory cannot be entered", &command));
            }
            PeerRequest::NoteInteractive { whoami } => self.hear_claim(id, &unseen::interactive_line(&whoami)),
            PeerRequest::Supervise(asked) => self.supervise(id, asked),
            PeerRequest::Send(request) => self.send_answer(id, &request),
            PeerRequest::Attach(request) => self.attach(id, &request),
            PeerRequest::Rpc(call) => self.serve_rpc(id, *call),
            PeerRequest::Signal(signal) => job.into_iter().for_each(|job| self.on_signal(id, job, signal)),
            PeerRequest::Terminal(event) => {
                if let Some(attached) = self.peers.attached_to(id) {
                    self.at_attached_terminal(id, attached, &event);
                } else if let Some(job) = job {
                    let Self { turn, engine, peers, .. } = self;
                    self.runs.at_terminal(job, event, &mut Context { turn, engine, peers });
                }
            }
            PeerRequest::OutputClosed(stream) => {
                if let Some(job) = job {
                    self.runs.on_output_closed(job, stream, &mut self.turn, &mut self.engine);
                }
            }
            PeerRequest::HasLetGo => {
                if let Some(job) = job {
                    let Self { turn, engine, peers, .. } = self;
                    self.runs.on_shim_let_go(job, &mut Context { turn, engine, peers });
                }
            }
            PeerRequest::Abort => {
                if let Some(job) = job {
                    self.engine.stop(job, Stopper::Caller, limits::GRACE_CALLER_GONE, self.turn.now);
                }
            }
        }
    }

    /// Does what a person asks about the commands of others, if the caller may: one in a sandbox sees and touches nothing
    /// outside of it.
    fn supervise(&mut self, id: PeerId, asked: Supervision) {
        let is_resize = matches!(asked, Supervision::Resize(_));
        if !is_resize && (!self.has_proof(id) || !self.is_let_supervise(id)) {
            return;
        }
        let answer = match asked {
            Supervision::List => Ok(Answer::List { runs: self.commands().all_running() }),
            Supervision::Status => Ok(Answer::Status(Box::new(self.commands().status()))),
            Supervision::Agent { name } => {
                let Some(agent) = self.peers.get(id).map(|peer| peer.pid) else { return };
                self.callers.expect(agent, &name, self.turn.now);
                Ok(Answer::Pong { version: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id() })
            }
            Supervision::Stop { force } => return self.stop(id, force),
            Supervision::Signal(seq, signal) => {
                self.commands().control(JobId(seq)).and_then(|run| run.signal(signal)).map(|()| Answer::Signal { seq })
            }
            Supervision::Pause(seq) => self.commands().pause(JobId(seq), "you asked"),
            Supervision::Resume(seq) => self.commands().resume(JobId(seq)),
            Supervision::Watch(request) => return self.commands().watch(id, request),
            Supervision::Transcript { ansi } => return self.commands().tell_transcript(id, ansi),
            Supervision::Resize(columns) => return self.screen.viewers.resize(id, columns),
            Supervision::Kill { seq, at_once } => return self.commands().kill(id, seq, at_once),
        };
        match answer {
            Ok(answer) => self.peers.answer(id, &answer, &mut self.turn, &mut self.engine),
            Err(refused) => self.fail(id, &refused.into()),
        }
    }

    /// Returns true if a caller may see and end what others run. Otherwise it has got its answer.
    pub(super) fn is_let_supervise(&mut self, id: PeerId) -> bool {
        let may = self.may_supervise(id);
        self.is_let(id, may, "it sees and ends no commands outside of its sandbox")
    }

    pub(super) fn fail(&mut self, id: PeerId, notice: &Notice) {
        self.peers.fail(id, notice, &mut self.turn, &mut self.engine);
    }

    /// Returns true if a request in JSON came with the descriptor that proves that no relay of bytes is in between, or
    /// if none is required. Otherwise the caller has got its answer. A shim's request has descriptors of its own.
    pub(super) fn has_proof(&mut self, id: PeerId) -> bool {
        let brought = self.peers.get_mut(id).map(|peer| std::mem::take(&mut peer.descriptors)).unwrap_or_default();
        let is_sealed = self.peers.get(id).is_some_and(|peer| peer.is_sealed);
        let has_proof = !self.options.require_descriptor || !brought.is_empty() || is_sealed;
        if !has_proof {
            self.fail(id, &NO_PROOF);
        }
        has_proof
    }

    fn admit(&mut self, id: PeerId, purpose: Purpose) -> Result<(), Doubt> {
        let Some(peer) = self.peers.get_mut(id) else { return Err(Doubt::Shortage) };
        self.sandbox_check.admit(peer, purpose)
    }

    /// Returns true if a caller's command may run here. Otherwise the caller has got its answer, and the human sees the
    /// refused command.
    fn may_run(&mut self, id: PeerId, whoami: &str, command: &[u8], exec: impl FnOnce() -> Vec<Vec<u8>>) -> bool {
        // Everything it has said was there when it was looked at for its descriptors.
        let is_admitted = |peer: &Peer| peer.admitted == Some(self.turn.now) && !peer.is_shared;
        if self.peers.get(id).is_some_and(is_admitted) {
            return true;
        }
        match self.may_decide(id) {
            Ok(()) => return true,
            Err(Doubt::Shortage) => self.fail(id, &BUSY),
            Err(Doubt::Differs(why)) => {
                let Some(pid) = self.peers.get(id).map(|peer| peer.pid) else { return false };
                let expected = ExpectedReport { pid, why, whoami, command, exec: &exec() };
                if !self.is_told_by_report(id) && !self.reports.expect(&expected, self.turn.now) {
                    unseen::say_sandboxed(why, whoami, command, &mut self.screen);
                }
                self.refuse(id, why);
            }
        }
        false
    }

    /// Returns true if a caller runs in a reported command, so that its own one is seen. The earlier report of the shim
    /// above it may still have to be read.
    fn is_told_by_report(&mut self, id: PeerId) -> bool {
        self.reports.expect_input();
        self.visit_reports();
        self.peers.get(id).is_some_and(|peer| self.reports.is_below_shim(peer.pid))
    }

    /// Checks a caller that starts, types for, answers or configures commands: it must be one that may run them.
    pub(super) fn may_decide(&mut self, id: PeerId) -> Result<(), Doubt> {
        self.admit(id, Purpose::Run)
    }

    /// Checks a caller that sees, pauses or ends commands of others.
    pub(super) fn may_supervise(&mut self, id: PeerId) -> Result<(), Doubt> {
        self.admit(id, Purpose::Supervise)
    }

    /// Returns true if nothing speaks against a caller. Otherwise tells it what does, and what follows from that
    /// (`so`).
    pub(super) fn is_let(&mut self, id: PeerId, may: Result<(), Doubt>, so: &str) -> bool {
        match may {
            Ok(()) => return true,
            Err(Doubt::Shortage) => self.fail(id, &BUSY),
            Err(Doubt::Differs(why)) => {
                let problem = format_args!("the caller is sandboxed ({why}): {so}");
                self.fail(id, &Notice::new(OWN_FAILURE, problem, "run rexec where rexec-host runs"));
            }
        }
        false
    }

    /// A caller says what it runs without this host.
    fn hear_claim(&mut self, id: PeerId, claim: &str) {
        let Self { claims, peers, sandbox_check, screen, .. } = self;
        let may_run = || match peers.get_mut(id) {
            Some(peer) => sandbox_check.admit(peer, Purpose::Run),
            None => Err(Doubt::Shortage),
        };
        claims.show(claim, may_run, screen, self.turn.now);
        self.peers.let_go(id, &mut self.turn, &mut self.engine);
    }

    /// A signal for a command. The caller gets a receipt, because the signal's own effect may not show that it has
    /// come.
    fn on_signal(&mut self, id: PeerId, job: JobId, signal: Signal) {
        match self.runs.at_start(job, signal) {
            AtStart::Nothing if self.engine.job(job).is_some_and(Job::is_queued) => {}
            at_start => self.engine.signal(job, signal, at_start == AtStart::Ends),
        }
        if let Some(peer) = self.peers.get_mut(id) {
            peer.language.hear_signal(peer.out.buffer());
            self.peers.touch(id);
        }
    }
}
