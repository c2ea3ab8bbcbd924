//! The commands, wherever they run: lists them, and ends, signals, pauses and resumes them for people and programs.
//!
//! Invariant: no request waits here but for an end. Who may ask, the callers of these methods have checked.

use std::collections::BTreeMap;
use std::time::Duration;

use rexec_sh::protocol::notice::Notice;

use super::keeper::{Keeper, Owner, RunControl};
use super::notices::not_there;
use super::peers::Peers;
use super::recorder_link::RecorderLink;
use super::refused_order::{Obstacle, RefusedOrder};
use super::reports::Reports;
use super::runs::{InUse, KillRequest, Runs};
use super::screen::Screen;
use super::started_agents::StartedAgents;
use super::tally::Tally;
use super::turn::{PeerId, Turn};
use crate::core::end::Stopper;
use crate::core::engine::{Engine, JobId};
use crate::front::WatchRequest;
use crate::front::answer::{Answer, HostStatus, Listed};
use crate::front::jsonl::transcript::Transcript;
use crate::front::run_state::RunState;
use crate::limits;

/// The commands, with what a list of them tells and what acting on one may change.
#[derive(Debug)]
pub(super) struct Commands<'a> {
    pub(super) turn: &'a mut Turn,
    pub(super) engine: &'a mut Engine,
    pub(super) peers: &'a mut Peers,
    pub(super) screen: &'a mut Screen,
    pub(super) runs: &'a mut Runs,
    pub(super) reports: &'a mut Reports,
    pub(super) recorder: &'a mut RecorderLink,
    pub(super) tally: &'a Tally,
    pub(super) started: &'a StartedAgents,
    /// The time from SIGTERM to SIGKILL, unless who asks says.
    pub(super) grace: Duration,
}

impl Commands<'_> {
    /// Everything that runs, oldest first.
    pub(super) fn all_running(&mut self) -> Vec<Listed> {
        self.runs.take_stock(self.turn, self.engine);
        let all = Keeper::all(self.runs, self.reports).map(|(job, keeper)| (self.engine.job(job), keeper));
        let listed = all.filter(|&(job, keeper)| keeper.is_listed(job));
        let mut runs: Vec<Listed> = listed.map(|(job, keeper)| keeper.listed(job, self.turn.now)).collect();
        runs.sort_by_key(|run| run.card.seq);
        runs
    }

    pub(super) fn status(&mut self) -> HostStatus {
        let runs = self.all_running();
        let count = |states: &[RunState]| {
            u64::try_from(runs.iter().filter(|run| states.contains(&run.state)).count()).unwrap_or(u64::MAX)
        };
        let mut agents: Vec<String> = runs.iter().map(|run| run.card.whoami.clone()).collect();
        agents.sort_unstable();
        agents.dedup();
        let left = count(&[RunState::Left]);
        let path = self.recorder.path();
        let session = path.as_ref().and_then(|path| path.file_stem()).map(|stem| stem.to_string_lossy().into_owned());
        let mut status = HostStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            session: session.unwrap_or_default(),
            commands: self.engine.count(),
            running: u64::try_from(runs.len()).unwrap_or(u64::MAX) - left,
            waiting: count(&[RunState::Waiting]),
            paused: count(&[RunState::Paused]),
            left,
            agents,
            ..HostStatus::default()
        };
        status.started = self.started.list();
        self.tally.fill(&mut status, self.turn.now);
        status
    }

    /// Ends a command, or what it left running. The answer comes when it is over.
    pub(super) fn kill(&mut self, id: PeerId, seq: u64, at_once: bool) {
        let grace = if at_once { Duration::ZERO } else { self.grace };
        let request = KillRequest { peer: Some(id), job: JobId(seq), by: Stopper::Kill, grace };
        match self.end_run(request) {
            Ok(()) => self.peers.end_greeting(id),
            Err(refused) => self.fail(id, &refused.into()),
        }
    }

    /// Ends a command wherever it runs, or what it left running.
    pub(super) fn end_run(&mut self, request: KillRequest) -> Result<(), RefusedOrder> {
        self.control(request.job)?.kill(request)
    }

    /// What keeps a run. `None` once nothing of it lives.
    pub(super) fn keeper(&self, job: JobId) -> Option<Keeper<'_>> {
        Keeper::of(job, self.runs, self.reports)
    }

    /// What acts on a run for a person.
    ///
    /// # Errors
    /// Nothing of it lives.
    pub(super) fn control(&mut self, job: JobId) -> Result<RunControl<'_>, RefusedOrder> {
        let Self { turn, engine, peers, screen, runs, reports, .. } = self;
        Ok(RunControl { job, owner: Owner::of(job, runs, reports)?, turn, engine, peers, screen })
    }

    /// The ports on which a command listens, wherever it runs, and its number of processes.
    pub(super) fn in_use(&mut self, job: JobId) -> InUse {
        match self.reports.get(job) {
            Some(run) => self.runs.in_use_of(job, || run.processes(), self.turn.now),
            None => self.runs.in_use(job, self.turn.now),
        }
    }

    /// The same of many commands: of the first ones, up to [`limits::PORT_LIST_PROCESSES_MAX`] processes.
    pub(super) fn all_in_use(&mut self, jobs: &[JobId]) -> BTreeMap<JobId, InUse> {
        let (mut found, mut room) = (BTreeMap::new(), limits::PORT_LIST_PROCESSES_MAX);
        for &job in jobs {
            if self.keeper(job).is_none() {
                continue;
            }
            let one = self.in_use(job);
            let Some(rest) = room.checked_sub(one.processes) else { break };
            room = rest;
            found.insert(job, one);
        }
        found
    }

    fn fail(&mut self, id: PeerId, notice: &Notice) {
        self.peers.fail(id, notice, self.turn, self.engine);
    }

    /// Returns true if one more peer may see the console. Otherwise tells it so.
    fn has_room_for_viewer(&mut self, id: PeerId) -> bool {
        let is_full = self.screen.viewers.is_full();
        if is_full {
            let problem = format_args!("{} others watch this host already", limits::VIEWERS_MAX);
            self.fail(id, &Notice::failed(problem, "end one of them with ^C"));
        }
        !is_full
    }

    pub(super) fn tell_transcript(&mut self, id: PeerId, ansi: bool) {
        if self.has_room_for_viewer(id) {
            self.peers.end_greeting(id);
            let transcript = Transcript::new(ansi, self.peers.outputs());
            let secrets = |job| Keeper::of(job, self.runs, self.reports).and_then(Keeper::secrets);
            self.screen.tell_transcript(id, transcript, secrets, self.engine);
        }
    }

    pub(super) fn watch(&mut self, id: PeerId, request: WatchRequest) {
        if !self.has_room_for_viewer(id) {
            return;
        }
        let only = request.seq.map(JobId);
        let is_running = |job: JobId| self.engine.job(job).is_some_and(|known| !known.has_ended());
        if let Some(job) = only.filter(|&job| !is_running(job)) {
            return self.fail(id, &not_there(job));
        }
        match only {
            // It begins when the recorder has told what the command wrote before.
            Some(_) => self.peers.end_greeting(id),
            None => self.peers.begin_console(id, None, None),
        }
        self.screen.watch(id, request, self.engine, self.turn.now);
    }

    /// Pauses a command. `why` is for the console.
    pub(super) fn pause(&mut self, job: JobId, why: &str) -> Result<Answer, RefusedOrder> {
        let below = self.control(job)?.pause()?;
        self.screen.say_of(job, format_args!("… #{} is paused: {why}", job.0), self.turn.now);
        Ok(Answer::Pause { seq: job.0, guard: below.number() })
    }

    pub(super) fn resume(&mut self, job: JobId) -> Result<Answer, RefusedOrder> {
        if !self.control(job)?.resume() {
            return Err(RefusedOrder::new(job, Obstacle::NotPaused));
        }
        self.screen.say_of(job, format_args!("… #{} is resumed", job.0), self.turn.now);
        Ok(Answer::Resume { seq: job.0 })
    }
}
