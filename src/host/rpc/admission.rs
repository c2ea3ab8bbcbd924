//! Decides which calls of programs are served. A program in a sandbox gets one error and is let go.

use super::Requester;
use super::kept_run::InputWay;
use crate::core::engine::JobId;
use crate::front::rpc::call::RpcCall;
use crate::front::rpc::error::{ENDING, NOT_A_PERSONS, RpcError, SANDBOXED};
use crate::front::rpc::methods::{Call, Permission};
use crate::front::rpc::params::DecideParams;
use crate::front::rpc::reply::put_error;
use crate::host::deciders::Origins;
use crate::host::notices::NO_PROOF;
use crate::host::turn::PeerId;
use crate::host::{Host, unseen};
use crate::limits;
use crate::sys::confinement::Doubt;

const DECIDES: (&str, &str) = ("decides", "the user decides, at the console or in a terminal of their own");
const TYPES: (&str, &str) = ("types", "the user answers, at the console or in a terminal of their own");

impl Host {
    pub(in crate::host) fn serve_rpc(&mut self, peer: PeerId, call: RpcCall) {
        self.peers.end_greeting(peer);
        let to = Requester { peer, id: call.id };
        let served = self.count_connection(peer).and(call.call).and_then(|call| self.obey(&to, call));
        if let Err(error) = served {
            if (to.id.is_some() || call.is_broken)
                && let Some(known) = self.peers.get_mut(peer)
            {
                put_error(to.id.as_ref(), &error, known.out.buffer());
            }
            if error.code == SANDBOXED || !self.rpc.all.contains_key(&peer) {
                return self.peers.let_go(peer, &mut self.turn, &mut self.engine);
            }
        }
        self.peers.touch(peer);
    }

    /// Counts a new connection for the agent that it comes from.
    fn count_connection(&mut self, id: PeerId) -> Result<(), RpcError> {
        let Some(peer) = self.peers.get(id).filter(|_| !self.rpc.all.contains_key(&id)) else { return Ok(()) };
        let origin = self.callers.process_of(peer);
        if self.rpc.has_too_many(origin) {
            let sentence = format!("process {origin} has {} connections already", limits::RPC_CONNECTIONS_MAX);
            return Err(RpcError::busy(sentence).hint("send more requests over one connection"));
        }
        self.rpc.meet(id).origin = Some(origin);
        Ok(())
    }

    /// Obeys a call, if its caller may.
    fn obey(&mut self, to: &Requester, call: Call) -> Result<(), RpcError> {
        self.prove(to.peer)?;
        match call.permission() {
            // The check of a command's caller waits until its name is known.
            Permission::Start if self.is_closing() => {
                let sentence = "the host is ending; nothing was run";
                return Err(RpcError::new(ENDING, sentence).hint("start rexec-host, then run the command again"));
            }
            Permission::Start => {}
            Permission::Decide => {
                self.may_decide(to.peer).map_err(|doubt| refusal(&doubt))?;
                if matches!(call, Call::CreateSession(_)) {
                    let is_persons = self.check_person(to.peer, DECIDES).is_ok();
                    self.rpc.meet(to.peer).is_persons = is_persons;
                }
                let typed_at = match &call {
                    Call::Write(params) => Some(params.run),
                    Call::Resize(params) => Some(params.run),
                    _ => None,
                };
                if typed_at.is_some_and(|run| self.rpc_service().input_way(to.peer, JobId(run)) == Ok(InputWay::Keys)) {
                    self.check_person(to.peer, TYPES)?;
                }
            }
            Permission::Answer => {
                self.may_decide(to.peer).map_err(|doubt| refusal(&doubt))?;
                match &call {
                    Call::Decide(params) if params.token.is_some() => self.check_token(params)?,
                    _ => self.check_person(to.peer, DECIDES)?,
                }
            }
            Permission::Supervise => self.may_supervise(to.peer).map_err(|doubt| refusal(&doubt))?,
        }
        if self.rpc.meet(to.peer).waiting >= limits::RPC_WAITING_MAX {
            let sentence = format!("{} requests of this connection wait already", limits::RPC_WAITING_MAX);
            return Err(RpcError::busy(sentence).hint("wait for the answer to one of them"));
        }
        call.serve_by(&mut self.rpc_service(), to)?;
        // A start touches more of the host than the other methods.
        self.rpc.wanted.take().map_or(Ok(()), |start| self.start_for(&start))
    }

    /// Checks that a client is no agent's. The words say what only a person does, and how.
    fn check_person(&self, peer: PeerId, (does, hint): (&str, &str)) -> Result<(), RpcError> {
        let Some(peer) = self.peers.get(peer) else { return Ok(()) };
        let helpers = self.notifier.pids().chain(self.runs.guards_of_restores()).collect();
        let guards = self.runs.guards();
        let origins = Origins { guards, helpers, callers: &self.callers };
        origins.check(peer.pid).map_err(|why| {
            let sentence = format!("process {} {}, and no agent {does} for its user", peer.pid, why.words());
            RpcError::new(NOT_A_PERSONS, sentence).hint(hint)
        })
    }

    /// Checks that a call has the token of the run that it is about.
    fn check_token(&mut self, params: &DecideParams) -> Result<(), RpcError> {
        self.tokens.end_answered(&self.engine, &self.later, self.turn.now);
        let token = params.token.as_deref().unwrap_or_default();
        if self.tokens.is_of(JobId(params.run), token) {
            return Ok(());
        }
        let sentence = format!("token: it is not that of run {}, or that asks no more", params.run);
        Err(RpcError::new(NOT_A_PERSONS, sentence)
            .hint("a token is for one answer, while rexec ps --asks lists its run or a later one of the command"))
    }

    /// Makes a client prove once that no relay of bytes is in between, if that is required.
    fn prove(&mut self, peer: PeerId) -> Result<(), RpcError> {
        let brought = self.peers.get_mut(peer).map(|peer| std::mem::take(&mut peer.descriptors)).unwrap_or_default();
        let is_sealed = self.peers.get(peer).is_some_and(|peer| peer.is_sealed);
        let client = self.rpc.meet(peer);
        client.is_proven |= !brought.is_empty() || is_sealed;
        if self.options.require_descriptor && !client.is_proven {
            return Err(RpcError { code: SANDBOXED, ..RpcError::from(&NO_PROOF) });
        }
        Ok(())
    }

    /// Checks that a client may run a command. It may have entered a sandbox since its last call.
    pub(super) fn check_start(&mut self, peer: PeerId, whoami: &str, command: &str) -> Result<(), RpcError> {
        self.may_decide(peer).map_err(|doubt| {
            if let Doubt::Differs(why) = doubt {
                unseen::say_sandboxed(why, whoami, command.as_bytes(), &mut self.screen);
            }
            refusal(&doubt)
        })
    }
}

fn refusal(doubt: &Doubt) -> RpcError {
    match doubt {
        Doubt::Shortage => RpcError::busy("the host is busy: too few descriptors").hint("try again"),
        Doubt::Differs(why) => {
            let sentence = format!("the caller is sandboxed ({why}); its commands run in its sandbox only");
            RpcError::new(SANDBOXED, sentence)
                .hint("run the command without rexec, or start rexec-host with --allow-sandboxed")
        }
    }
}
