//! The service of the methods: does what the calls of programs ask.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::kept_run::KeptRun;
use super::past_events::{PastEvents, Place};
use super::pending_reply::{Awaiting, PendingReply, WantedOutput};
use super::terminal_watcher::TerminalWatcher;
use super::watcher::{ToldEvents, Watcher};
use super::{Requester, RpcClients, Subscription};
use crate::core::engine::JobId;
use crate::core::job::Job;
use crate::core::log::Lag;
use crate::front::output_filter::OutputFilter;
use crate::front::projects::ProjectId;
use crate::front::rpc::answers::{Done, Greeting, LeftList, Met, RunList, Subscribed};
use crate::front::rpc::error::{BAD_PARAMS, RpcError};
use crate::front::rpc::kept_output::{Gathering, KeptOutput};
use crate::front::rpc::listing::{LeftRun, ListedRun, LivingProcess, RunFacts};
use crate::front::rpc::methods::{AnswerCalls, METHODS, RpcMethod, Serve, Served, method};
use crate::front::rpc::params::{
    Awaited, Encoding, HelloParams, ListParams, NoParams, OutputParams, RunEvent, RunParams, SubscribeParams,
    UnsubscribeParams, WaitParams,
};
use crate::front::rpc::{PROTOCOL, PROTOCOL_MIN};
use crate::front::run_state::Standing;
use crate::host::keeper::Keeper;
use crate::host::later::LaterAsks;
use crate::host::project_sessions::ProjectSessions;
use crate::host::rule_files::RuleFiles;
use crate::host::runs::InUse;
use crate::host::supervision::Commands;
use crate::host::turn::PeerId;
use crate::journal::record::PublishedCard;
use crate::limits;
use crate::sys::tree::Process;
use crate::text::redact::Redactor;
use crate::text::sanitize::Mode;

/// What the methods of JSON-RPC see of the host.
#[derive(Debug)]
pub(in crate::host) struct RpcService<'a> {
    pub(in crate::host) rpc: &'a mut RpcClients,
    pub(in crate::host) projects: &'a mut ProjectSessions,
    pub(in crate::host) rules: &'a mut RuleFiles,
    pub(in crate::host) later: &'a mut LaterAsks,
    pub(in crate::host) commands: Commands<'a>,
}

impl RpcService<'_> {
    /// Starts retaining output for a run the client named.
    pub(super) fn kept(&mut self, job: JobId) -> Result<&mut KeptRun, RpcError> {
        if !self.rpc.kept.contains_key(&job) && self.commands.engine.job(job).is_some_and(|known| !known.has_ended()) {
            let has_terminal = self.commands.runs.get(job).is_some_and(|run| run.tty.is_some());
            self.keep_other(job, has_terminal);
        }
        self.rpc.kept.get_mut(&job).ok_or_else(|| RpcError::no_such_run(job.0))
    }

    pub(super) fn facts_of(&self, job: JobId) -> RunFacts {
        let Some(known) = self.commands.keeper(job).map(Keeper::description) else {
            let card = PublishedCard { seq: job.0, ..PublishedCard::default() };
            return RunFacts { card, ..RunFacts::default() };
        };
        let session = known.project.map(ProjectId::name);
        RunFacts { card: known.card.clone(), session, ..RunFacts::default() }
    }

    /// Keeps a run from now on that a client wants to watch, although this door has not started it.
    fn keep_other(&mut self, job: JobId, has_terminal: bool) {
        let mode =
            if has_terminal { Mode::Collapse { rows: limits::PTY_ROWS, cols: limits::PTY_COLS } } else { Mode::Tidy };
        let secrets = self.commands.keeper(job).and_then(Keeper::secrets);
        let filter = || OutputFilter::new(mode, secrets.map(Redactor::fresh));
        let filters = [filter(), filter()];
        let output = KeptOutput::new(filters, has_terminal, true, Gathering::Nothing);
        let Some(cursor) = self.commands.engine.attach(job, Lag::Skip) else { return };
        let accepted = self.commands.keeper(job).map_or(self.commands.turn.now, Keeper::since);
        let facts = self.facts_of(job);
        self.rpc.keep(job, KeptRun::new(facts, output, Some(cursor), accepted), self.commands.turn);
    }

    /// Tells the watchers of all runs about a run that another door has started.
    pub(in crate::host) fn show_clients(&mut self, job: JobId, has_terminal: bool) {
        if self.rpc.has_watchers_of_all() {
            self.keep_other(job, has_terminal);
        }
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
        self.commands.turn.touch(job);
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
}

impl AnswerCalls<Requester> for RpcService<'_> {
    fn answer<M: RpcMethod>(&mut self, to: &Requester, answer: &M::Answer) {
        self.rpc.answer::<M>(to, answer, self.commands.peers);
    }
}

impl Serve<method::Hello, Requester> for RpcService<'_> {
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

impl Serve<method::Output, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: OutputParams) -> Served<method::Output> {
        if matches!(params.encoding, Encoding::Binary | Encoding::Terminal) {
            let sentence = "encoding: binary and terminal are for output that is told, not for answers";
            return Err(RpcError::new(BAD_PARAMS, sentence));
        }
        let most_bytes = params.max_bytes.unwrap_or(limits::RPC_READ_BYTES).min(limits::RPC_READ_BYTES_MAX);
        let until = self.commands.turn.now + Duration::from_millis(params.wait_ms).min(limits::TIMEOUT_MAX);
        let wanted = WantedOutput { after: params.after, most_bytes, encoding: params.encoding };
        let waiting = Awaiting::Output { wanted, is_due: false };
        self.wait_for(JobId(params.run), to, waiting, Some(until)).map(|()| None)
    }
}

impl Serve<method::Wait, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: WaitParams) -> Served<method::Wait> {
        let job = JobId(params.run);
        let timeout = params.timeout_ms.map(|ms| Duration::from_millis(ms).min(limits::TIMEOUT_MAX));
        let until = timeout.map(|timeout| self.commands.turn.now + timeout);
        let bad = |sentence: &str| RpcError::new(BAD_PARAMS, sentence);
        let waiting = match (params.awaited, &params.text) {
            (Awaited::Exit, None) => Awaiting::Exit,
            (Awaited::Port, None) => Awaiting::Port { port: params.port, look_at: self.commands.turn.now },
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
        if self.kept(job).is_err() && (1..=self.commands.engine.count()).contains(&params.run) {
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

impl Serve<method::Subscribe, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: SubscribeParams) -> Served<method::Subscribe> {
        let peer = to.peer;
        if self.rpc.meet(peer).subscriptions.len() >= limits::RPC_SUBSCRIPTIONS_MAX {
            let sentence = format!("this connection has {} subscriptions already", limits::RPC_SUBSCRIPTIONS_MAX);
            return Err(RpcError::busy(sentence).hint("end one of them, with events.unsubscribe"));
        }
        if params.encoding == Encoding::Terminal {
            return self.subscribe_terminals(peer, &params).map(Some);
        }
        if let Some(after) = &params.after {
            return self.resume_subscription(peer, after, &params).map(Some);
        }
        let told =
            params.events.as_ref().map_or_else(ToldEvents::usual, |events: &Vec<RunEvent>| ToldEvents::of(events));
        let jobs: BTreeSet<JobId> = match &params.runs {
            Some(runs) => runs.iter().map(|&run| JobId(run)).collect(),
            None => self.commands.engine.jobs().filter(|(_, job)| !job.has_ended()).map(|(job, _)| job).collect(),
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
                self.commands.turn.touch(job);
            }
        }
        let subscription = Subscription { told, encoding: params.encoding, is_for_all: params.runs.is_none() };
        self.rpc.meet(peer).subscriptions.insert(number, subscription);
        Ok(Some(Subscribed { subscription: number, cursor: None, gone: None }))
    }
}

impl RpcService<'_> {
    /// Begins a subscription to what runs write, as they write it.
    fn subscribe_terminals(&mut self, peer: PeerId, params: &SubscribeParams) -> Result<Subscribed, RpcError> {
        let bad = |sentence: &str| Err(RpcError::new(BAD_PARAMS, sentence));
        let Some(runs) = &params.runs else { return bad("runs: missing, and encoding terminal is for some runs only") };
        if params.events.is_some() || params.after.is_some() {
            return bad("encoding: with terminal, output is told from now on, and there is no events and no after");
        }
        let jobs: BTreeSet<JobId> = runs.iter().map(|&run| JobId(run)).collect();
        if jobs.len() > limits::RPC_TERMINALS_MAX {
            return bad(&format!("runs: over {} of them, with encoding terminal", limits::RPC_TERMINALS_MAX));
        }
        for &job in &jobs {
            self.rpc.check_terminal(job, self.commands.engine)?;
        }
        self.rpc.subscriptions += 1;
        let number = self.rpc.subscriptions;
        for job in jobs {
            let redactor = self.commands.keeper(job).and_then(Keeper::secrets).map(Redactor::fresh);
            let Commands { turn, engine, runs, .. } = &mut self.commands;
            let watcher = TerminalWatcher::new((peer, number), job, redactor, runs, engine);
            self.rpc.terminals.entry(job).or_default().push(watcher);
            turn.touch(job);
        }
        let (told, encoding) = (ToldEvents::of(&[RunEvent::Output]), params.encoding);
        self.rpc.meet(peer).subscriptions.insert(number, Subscription { told, encoding, is_for_all: false });
        Ok(Subscribed { subscription: number, cursor: None, gone: None })
    }

    /// Begins a subscription that can be resumed: it tells what happened to all runs behind a place.
    fn resume_subscription(
        &mut self,
        peer: PeerId,
        after: &str,
        params: &SubscribeParams,
    ) -> Result<Subscribed, RpcError> {
        let bad = |sentence: &str| RpcError::new(BAD_PARAMS, sentence);
        let place = Place::read(after).ok_or_else(|| bad("after: not now, and no cursor of a subscription"))?;
        if params.runs.is_some() {
            return Err(bad("runs: a subscription with after tells of all runs").hint("leave runs or after out"));
        }
        let events = params.events.as_deref();
        if events.is_some_and(|events| events.contains(&RunEvent::Output)) {
            let sentence = "events: a subscription with after tells no output";
            return Err(
                bad(sentence).hint("exec.output has what was written, and a subscription without after tells it")
            );
        }
        if self.rpc.past.is_none() {
            let live = self.commands.engine.jobs().filter(|(_, job)| !job.has_ended()).map(|(job, _)| job);
            live.collect::<Vec<JobId>>().into_iter().for_each(|job| _ = self.kept(job));
        }
        self.rpc.subscriptions += 1;
        let number = self.rpc.subscriptions;
        let told = events.map_or_else(ToldEvents::without_output, ToldEvents::of);
        let past = self.rpc.past.get_or_insert_with(PastEvents::begin);
        let (cursor, gone) = past.follow((peer, number), told, &place);
        let noted = past.told();
        for run in self.rpc.kept.values_mut().filter(|run| !run.is_closed()) {
            run.note_events(noted);
            self.commands.turn.touch(run.job());
        }
        let subscription = Subscription { told, encoding: params.encoding, is_for_all: false };
        self.rpc.meet(peer).subscriptions.insert(number, subscription);
        Ok(Subscribed { subscription: number, cursor: Some(cursor), gone })
    }
}

impl Serve<method::Unsubscribe, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: UnsubscribeParams) -> Served<method::Unsubscribe> {
        let (peer, number) = (to.peer, params.subscription);
        if self.rpc.meet(peer).subscriptions.remove(&number).is_none() {
            return Err(RpcError::new(
                BAD_PARAMS,
                format!("subscription: this connection has no subscription {number}"),
            ));
        }
        self.rpc.past.iter_mut().for_each(|past| past.forget(peer, Some(number), self.commands.turn.now));
        let unseen = self.rpc.forget_terminals(peer, Some(number), self.commands.engine);
        self.rpc.leave_terminals(peer, &unseen, self.commands.runs, self.commands.engine);
        for run in self.rpc.kept.values_mut() {
            run.watchers.retain(|watcher| watcher.peer != peer || watcher.subscription != Some(number));
        }
        Ok(Some(Done {}))
    }
}

impl RpcService<'_> {
    /// The facts about a kept run for a client.
    fn listed(&self, job: JobId, run: &KeptRun) -> ListedRun {
        let known = self.commands.engine.job(job);
        let standing = self.commands.keeper(job).map(|keeper| keeper.standing(known));
        let state = standing.map_or("closed", Standing::word_for_programs);
        ListedRun { held: standing.and_then(Standing::held), ..run.listed(state, self.commands.turn.now) }
    }
}

impl Serve<method::Status, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: RunParams) -> Served<method::Status> {
        let job = JobId(params.run);
        self.kept(job)?;
        let InUse { ports, processes, .. } = self.commands.in_use(job);
        let run = self.rpc.kept.get(&job).map(|run| self.listed(job, run));
        let run = run.ok_or_else(|| RpcError::no_such_run(job.0))?;
        Ok(Some(ListedRun { ports, processes: Some(processes), ..run }))
    }
}

impl Serve<method::List, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: ListParams) -> Served<method::List> {
        let session = params.session.as_ref().map(|word| self.session_named(word)).transpose()?.map(ProjectId::name);
        let is_in = |run: &KeptRun| session.is_none() || run.facts.session == session;
        let live: Vec<JobId> =
            self.commands.engine.jobs().filter(|(_, job)| !Job::has_ended(job)).map(|(job, _)| job).collect();
        live.into_iter().for_each(|job| _ = self.kept(job));
        let is_shown = |run: &KeptRun| is_in(run) && (params.all || !run.is_closed());
        let shown = self.rpc.kept.iter().filter(|(_, run)| is_shown(run));
        let shown: Vec<(JobId, ListedRun)> = shown.map(|(&job, run)| (job, self.listed(job, run))).collect();
        let jobs: Vec<JobId> = shown.iter().map(|&(job, _)| job).collect();
        let mut in_use = self.commands.all_in_use(&jobs);
        let listed = shown.into_iter().map(|(job, listed)| match in_use.remove(&job) {
            Some(InUse { ports, processes, .. }) => ListedRun { ports, processes: Some(processes), ..listed },
            None => listed,
        });
        Ok(Some(RunList { runs: listed.collect() }))
    }
}

impl Serve<method::ListLeft, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, _: NoParams) -> Served<method::ListLeft> {
        let mut left = self.commands.all_running();
        left.retain(|run| self.commands.engine.job(JobId(run.card.seq)).is_none_or(Job::has_ended));
        let mut room = limits::PORT_LIST_PROCESSES_MAX;
        let runs = left.into_iter().map(|listed| {
            let job = JobId(listed.card.seq);
            let facts = self.rpc.kept.get(&job).map_or_else(|| self.facts_of(job), |run| run.facts.clone());
            let InUse { ports, first, .. } = if room > 0 { self.commands.in_use(job) } else { InUse::default() };
            let processes: Vec<LivingProcess> = first.iter().take(room).map(living).collect();
            room -= processes.len();
            let (state, started_ms_ago) = (listed.state.word().into(), listed.age_ms);
            LeftRun { facts, state, started_ms_ago, ports, processes }
        });
        Ok(Some(LeftList { runs: runs.collect() }))
    }
}

fn living(process: &Process) -> LivingProcess {
    LivingProcess { pid: process.pid.number(), program: process.program.to_string() }
}

impl Serve<method::ReadHostStatus, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, _: NoParams) -> Served<method::ReadHostStatus> {
        Ok(Some(self.commands.status()))
    }
}
