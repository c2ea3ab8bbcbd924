//! Does what the calls of programs ask. A program in a sandbox gets one error and is let go.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::kept_run::KeptRun;
use super::pending_reply::{Awaiting, PendingReply, WantedOutput};
use super::watcher::{ToldEvents, Watcher};
use super::{Requester, Subscription};
use crate::core::engine::JobId;
use crate::core::job::Job;
use crate::front::projects::ProjectId;
use crate::front::rpc::answers::{Done, Greeting, Met, RunList, Subscribed};
use crate::front::rpc::call::RpcCall;
use crate::front::rpc::error::{BAD_PARAMS, ENDING, RpcError, SANDBOXED};
use crate::front::rpc::listing::ListedRun;
use crate::front::rpc::methods::{AnswerCalls, Call, METHODS, Permission, RpcMethod, Serve, Served, method};
use crate::front::rpc::params::{
    Awaited, Encoding, HelloParams, ListParams, NoParams, OutputParams, RunEvent, RunParams, SubscribeParams,
    UnsubscribeParams, WaitParams,
};
use crate::front::rpc::reply::put_error;
use crate::front::rpc::{PROTOCOL, PROTOCOL_MIN};
use crate::host::runs::InUse;
use crate::host::turn::PeerId;
use crate::host::{Host, unseen};
use crate::limits;
use crate::sys::confinement::Doubt;

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
            Permission::Decide => self.may_decide(to.peer).map_err(|doubt| refusal(&doubt))?,
            Permission::Supervise => self.may_supervise(to.peer).map_err(|doubt| refusal(&doubt))?,
        }
        if self.rpc.meet(to.peer).waiting >= limits::RPC_WAITING_MAX {
            let sentence = format!("{} requests of this connection wait already", limits::RPC_WAITING_MAX);
            return Err(RpcError::busy(sentence).hint("wait for the answer to one of them"));
        }
        call.serve_by(self, to)
    }

    /// Makes a client prove once that no relay of bytes is in between, if that is required.
    fn prove(&mut self, peer: PeerId) -> Result<(), RpcError> {
        let brought = self.peers.get_mut(peer).map(|peer| std::mem::take(&mut peer.descriptors)).unwrap_or_default();
        let is_sealed = self.peers.get(peer).is_some_and(|peer| peer.is_sealed);
        let client = self.rpc.meet(peer);
        client.is_proven |= !brought.is_empty() || is_sealed;
        if self.options.require_descriptor && !client.is_proven {
            return Err(RpcError { code: SANDBOXED, ..RpcError::from(&crate::host::notices::NO_PROOF) });
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

    /// Starts retaining output for a run the client named.
    pub(super) fn kept(&mut self, job: JobId) -> Result<&mut KeptRun, RpcError> {
        if !self.rpc.kept.contains_key(&job) && self.engine.job(job).is_some_and(|known| !known.has_ended()) {
            let has_terminal = self.runs.get(job).is_some_and(|run| run.tty.is_some());
            self.keep_other(job, has_terminal);
        }
        self.rpc.kept.get_mut(&job).ok_or_else(|| RpcError::no_such_run(job.0))
    }

    /// Makes a request wait for something about a run.
    pub(super) fn wait_for(
        &mut self,
        job: JobId,
        to: &Requester,
        waiting: Awaiting,
        until: Option<Instant>,
    ) -> Result<(), RpcError> {
        let reply = PendingReply { to: to.clone(), waiting, until };
        let run = self.kept(job)?;
        if run.replies.len() >= limits::RPC_RUN_WAITING_MAX {
            let sentence = format!("{} requests wait for run {} already", limits::RPC_RUN_WAITING_MAX, job.0);
            return Err(RpcError::busy(sentence).hint("wait for the answer to one of them"));
        }
        run.replies.push(reply);
        self.rpc.meet(to.peer).waiting += 1;
        self.turn.touch(job);
        Ok(())
    }

    /// Starts searching the output of a run for a text. Returns the line that has it already.
    fn look_for_text(&mut self, job: JobId, text: &[u8]) -> Result<Option<String>, RpcError> {
        let run = self.kept(job)?;
        if run.replies.iter().filter_map(PendingReply::text).count() >= limits::RPC_TEXT_WAITS_MAX {
            let sentence = format!("{} requests wait for texts of run {} already", limits::RPC_TEXT_WAITS_MAX, job.0);
            return Err(RpcError::busy(sentence).hint("wait for the answer to one of them"));
        }
        Ok(run.texts.add(text, run.output.ring()))
    }

    fn state_of(&self, job: JobId) -> &'static str {
        let known = self.engine.job(job);
        self.keeper(job).map_or("closed", |keeper| keeper.standing(known).word_for_programs())
    }
}

impl AnswerCalls<Requester> for Host {
    fn answer<M: RpcMethod>(&mut self, to: &Requester, answer: &M::Answer) {
        self.rpc.answer::<M>(to, answer, &mut self.peers);
    }
}

impl Serve<method::Hello, Requester> for Host {
    fn serve(&mut self, to: &Requester, params: HelloParams) -> Served<method::Hello> {
        if let Some(spoken) = params.protocol.filter(|spoken| *spoken < PROTOCOL_MIN) {
            return Err(RpcError::old_protocol(spoken, PROTOCOL_MIN));
        }
        if params.whoami.is_some() {
            self.rpc.meet(to.peer).name = params.whoami;
        }
        Ok(Some(Greeting {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            methods: METHODS,
        }))
    }
}

impl Serve<method::Output, Requester> for Host {
    fn serve(&mut self, to: &Requester, params: OutputParams) -> Served<method::Output> {
        if params.encoding == Encoding::Binary {
            return Err(RpcError::new(BAD_PARAMS, "encoding: binary is for output that is told, not for answers"));
        }
        let most_bytes = params.max_bytes.unwrap_or(limits::RPC_READ_BYTES).min(limits::RPC_READ_BYTES_MAX);
        let until = self.turn.now + Duration::from_millis(params.wait_ms).min(limits::TIMEOUT_MAX);
        let wanted = WantedOutput { after: params.after, most_bytes, encoding: params.encoding };
        let waiting = Awaiting::Output { wanted, is_due: false };
        self.wait_for(JobId(params.run), to, waiting, Some(until)).map(|()| None)
    }
}

impl Serve<method::Wait, Requester> for Host {
    fn serve(&mut self, to: &Requester, params: WaitParams) -> Served<method::Wait> {
        let job = JobId(params.run);
        let timeout = params.timeout_ms.map(|ms| Duration::from_millis(ms).min(limits::TIMEOUT_MAX));
        let until = timeout.map(|timeout| self.turn.now + timeout);
        let bad = |sentence: &str| RpcError::new(BAD_PARAMS, sentence);
        let waiting = match (params.awaited, &params.text) {
            (Awaited::Exit, None) => Awaiting::Exit,
            (Awaited::Port, None) => Awaiting::Port { port: params.port, look_at: self.turn.now },
            (Awaited::Text, Some(text)) if text.len() > limits::RPC_TEXT_BYTES => {
                return Err(bad(&format!("text: over {} bytes", limits::RPC_TEXT_BYTES)));
            }
            (Awaited::Text, Some(text)) if !text.is_empty() => Awaiting::Text(text.as_bytes().into()),
            (Awaited::Text, _) => return Err(bad("text: missing or empty")),
            (Awaited::Time, None) if until.is_none() => return Err(bad("timeout_ms: missing")),
            (Awaited::Time, None) => Awaiting::Time,
            (_, Some(_)) => return Err(bad("text: only a wait for text has one")),
        };
        if params.port.is_some() && params.awaited != Awaited::Port {
            return Err(bad("port: only a wait for a port has one"));
        }
        if self.kept(job).is_err() && (1..=self.engine.count()).contains(&params.run) {
            return Ok(Some(Met { met: "gone".into(), ..Met::default() }));
        }
        if let Awaiting::Text(text) = &waiting
            && let Some(line) = self.look_for_text(job, text)?
        {
            return Ok(Some(Met::text(line)));
        }
        self.wait_for(job, to, waiting, until).map(|()| None)
    }
}

impl Serve<method::Subscribe, Requester> for Host {
    fn serve(&mut self, to: &Requester, params: SubscribeParams) -> Served<method::Subscribe> {
        let peer = to.peer;
        if self.rpc.meet(peer).subscriptions.len() >= limits::RPC_SUBSCRIPTIONS_MAX {
            let sentence = format!("this connection has {} subscriptions already", limits::RPC_SUBSCRIPTIONS_MAX);
            return Err(RpcError::busy(sentence).hint("end one of them, with events.unsubscribe"));
        }
        let told =
            params.events.as_ref().map_or_else(ToldEvents::usual, |events: &Vec<RunEvent>| ToldEvents::of(events));
        let jobs: BTreeSet<JobId> = match &params.runs {
            Some(runs) => runs.iter().map(|&run| JobId(run)).collect(),
            None => self.engine.jobs().filter(|(_, job)| !job.has_ended()).map(|(job, _)| job).collect(),
        };
        if params.runs.is_some() && jobs.len() > limits::RPC_SUBSCRIBED_MAX {
            let sentence = format!("runs: over {} of them", limits::RPC_SUBSCRIBED_MAX);
            return Err(RpcError::new(BAD_PARAMS, sentence).hint("leave runs out to be told of all"));
        }
        for &job in &jobs {
            self.kept(job)?;
        }
        self.rpc.subscriptions += 1;
        let number = self.rpc.subscriptions;
        for job in jobs {
            let run = self.kept(job)?;
            let watcher = Watcher::subscribed(peer, number, told, params.encoding).skip_past(&run.so_far());
            run.watch(watcher);
            if params.runs.is_some() {
                // Nothing may happen to it any more. Then its end is told now.
                self.turn.touch(job);
            }
        }
        let subscription = Subscription { told, encoding: params.encoding, is_for_all: params.runs.is_none() };
        self.rpc.meet(peer).subscriptions.insert(number, subscription);
        Ok(Some(Subscribed { subscription: number }))
    }
}

impl Serve<method::Unsubscribe, Requester> for Host {
    fn serve(&mut self, to: &Requester, params: UnsubscribeParams) -> Served<method::Unsubscribe> {
        let (peer, number) = (to.peer, params.subscription);
        if self.rpc.meet(peer).subscriptions.remove(&number).is_none() {
            return Err(RpcError::new(
                BAD_PARAMS,
                format!("subscription: this connection has no subscription {number}"),
            ));
        }
        for run in self.rpc.kept.values_mut() {
            run.watchers.retain(|watcher| watcher.peer != peer || watcher.subscription != Some(number));
        }
        Ok(Some(Done {}))
    }
}

impl Serve<method::Status, Requester> for Host {
    fn serve(&mut self, _: &Requester, params: RunParams) -> Served<method::Status> {
        let job = JobId(params.run);
        self.kept(job)?;
        let (state, now) = (self.state_of(job), self.turn.now);
        let InUse { ports, processes } = self.runs.in_use(job, now);
        let run = self.kept(job)?;
        Ok(Some(ListedRun { ports, processes: Some(processes), ..run.listed(state, now) }))
    }
}

impl Serve<method::List, Requester> for Host {
    fn serve(&mut self, _: &Requester, params: ListParams) -> Served<method::List> {
        let session = params.session.as_ref().map(|word| self.session_named(word)).transpose()?.map(ProjectId::name);
        let is_in = |run: &KeptRun| session.is_none() || run.facts.session == session;
        let live: Vec<JobId> = self.engine.jobs().filter(|(_, job)| !Job::has_ended(job)).map(|(job, _)| job).collect();
        live.into_iter().for_each(|job| _ = self.kept(job));
        let is_shown = |run: &KeptRun| is_in(run) && (params.all || !run.is_closed());
        let shown: Vec<(JobId, &KeptRun)> =
            self.rpc.kept.iter().filter(|(_, run)| is_shown(run)).map(|(&job, run)| (job, run)).collect();
        let jobs: Vec<JobId> = shown.iter().map(|&(job, _)| job).collect();
        let mut in_use = self.runs.all_in_use(&jobs, self.turn.now);
        let listed = shown.into_iter().map(|(job, run)| {
            let listed = run.listed(self.state_of(job), self.turn.now);
            match in_use.remove(&job) {
                Some(InUse { ports, processes }) => ListedRun { ports, processes: Some(processes), ..listed },
                None => listed,
            }
        });
        Ok(Some(RunList { runs: listed.collect() }))
    }
}

impl Serve<method::ReadHostStatus, Requester> for Host {
    fn serve(&mut self, _: &Requester, _: NoParams) -> Served<method::ReadHostStatus> {
        Ok(Some(self.status()))
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
