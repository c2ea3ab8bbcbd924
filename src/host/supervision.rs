//! People's requests about the commands of others: list, end, signal, pause and resume them.
//!
//! Invariant: a caller in a sandbox sees and touches nothing outside of it, and no request waits here but for an end.

use rexec_sh::protocol::notice::Notice;

use super::Host;
use super::context::Context;
use super::keeper::{Keeper, Owner, RunControl};
use super::notices::not_there;
use super::runs::KillRequest;
use super::turn::PeerId;
use crate::core::end::Stopper;
use crate::core::engine::JobId;
use crate::front::answer::{Answer, HostStatus, Listed};
use crate::front::jsonl::transcript::Transcript;
use crate::front::run_state::RunState;
use crate::front::{Supervision, WatchRequest};
use crate::limits;
use crate::sys::{closer, looker};

impl Host {
    /// Does what a person asks, if the caller may.
    pub(super) fn supervise(&mut self, id: PeerId, asked: Supervision) {
        let is_resize = matches!(asked, Supervision::Resize(_));
        if !is_resize && (!self.has_proof(id) || !self.is_let_supervise(id)) {
            return;
        }
        let answer = match asked {
            Supervision::List => Ok(Answer::List { runs: self.all_running() }),
            Supervision::Status => Ok(Answer::Status(Box::new(self.status()))),
            Supervision::Agent { name } => {
                let Some(agent) = self.peers.get(id).map(|peer| peer.pid) else { return };
                self.callers.expect(agent, &name, self.turn.now);
                Ok(Answer::Pong { version: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id() })
            }
            Supervision::Stop { force } => return self.stop(id, force),
            Supervision::Signal(seq, signal) => {
                self.control(JobId(seq)).and_then(|run| run.signal(signal)).map(|()| Answer::Signal { seq })
            }
            Supervision::Pause(seq) => self.pause(JobId(seq)),
            Supervision::Resume(seq) => self.resume(JobId(seq)),
            Supervision::Watch(request) => return self.watch(id, request),
            Supervision::Transcript { ansi } => return self.tell_transcript(id, ansi),
            Supervision::Resize(columns) => return self.screen.viewers.resize(id, columns),
            Supervision::Kill { seq, at_once } => return self.kill(id, seq, at_once),
        };
        match answer {
            Ok(answer) => self.peers.answer(id, &answer, &mut self.turn, &mut self.engine),
            Err(notice) => self.fail(id, &notice),
        }
    }

    /// Returns true if a caller may see and end what others run. Otherwise it has got its answer.
    pub(super) fn is_let_supervise(&mut self, id: PeerId) -> bool {
        let may = self.may_supervise(id);
        self.is_let(id, may, "it sees and ends no commands outside of its sandbox")
    }

    /// Ends the host, unless commands run and the person does not want to end them.
    fn stop(&mut self, id: PeerId, is_forced: bool) {
        let runs = self.all_running();
        if !runs.is_empty() && !is_forced {
            let numbers: Vec<String> = runs.iter().take(5).map(|run| format!("#{}", run.card.seq)).collect();
            let more = if runs.len() > numbers.len() { ", …" } else { "" };
            let problem = format_args!("commands run or left processes: {}{more}", numbers.join(", "));
            let hint = "rexec ps shows them; rexec --stop-host --force ends them with the host";
            return self.fail(id, &Notice::failed(problem, hint));
        }
        let answer = Answer::Stop { pid: std::process::id() };
        self.peers.answer(id, &answer, &mut self.turn, &mut self.engine);
        self.ask_to_end();
    }

    /// Everything that runs, oldest first.
    pub(super) fn all_running(&mut self) -> Vec<Listed> {
        self.note_helpers();
        self.runs.take_stock(&mut self.turn, &mut self.engine);
        let all = Keeper::all(&self.runs, &self.reports).map(|(job, keeper)| (self.engine.job(job), keeper));
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
        status.started = self.callers.started.list();
        self.tally.fill(&mut status, self.turn.now);
        status
    }

    /// Ends a command, or what it left running. The answer comes when it is over.
    fn kill(&mut self, id: PeerId, seq: u64, at_once: bool) {
        let grace = if at_once { std::time::Duration::ZERO } else { self.options.grace };
        let request = KillRequest { peer: Some(id), job: JobId(seq), by: Stopper::Kill, grace };
        match self.end_run(request) {
            Ok(()) => self.peers.end_greeting(id),
            Err(notice) => self.fail(id, &notice),
        }
    }

    /// Ends a command wherever it runs, or what it left running.
    pub(super) fn end_run(&mut self, request: KillRequest) -> Result<(), Notice> {
        self.note_helpers();
        self.control(request.job)?.kill(request)
    }

    /// What keeps a run. `None` once nothing of it lives.
    pub(super) fn keeper(&self, job: JobId) -> Option<Keeper<'_>> {
        Keeper::of(job, &self.runs, &self.reports)
    }

    /// What acts on a run for a person.
    ///
    /// # Errors
    /// Nothing of it lives.
    pub(super) fn control(&mut self, job: JobId) -> Result<RunControl<'_>, Notice> {
        let Self { turn, engine, peers, screen, runs, reports, .. } = self;
        Ok(RunControl { job, owner: Owner::of(job, runs, reports)?, turn, engine, peers, screen })
    }

    /// Ends what a person wants ended, and looks at guards that owe something or died.
    pub(super) fn tick_runs(&mut self) {
        let now = self.turn.now;
        let (has_endings, due) = (self.runs.has_due_endings(now), self.runs.due_owing(now));
        if !has_endings && due.is_empty() {
            return;
        }
        self.note_helpers();
        let Self { turn, engine, peers, runs, starts, .. } = self;
        let cx = &mut Context { turn, engine, peers };
        if has_endings {
            runs.tick_endings(cx);
        }
        for job in due {
            if runs.tick_owing(job, cx) {
                starts.begin_again(job, runs, cx);
            }
        }
    }

    /// Tells the runs which of the host's children belong to none of them.
    fn note_helpers(&mut self) {
        let helpers = self.starts.pids().chain(self.recorder.pid()).chain(self.screen.helpers());
        self.runs.note_helpers(helpers.chain(self.notifier.pids()).chain(closer::pids()).chain(looker::pids()));
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

    fn tell_transcript(&mut self, id: PeerId, ansi: bool) {
        if self.has_room_for_viewer(id) {
            self.peers.end_greeting(id);
            let transcript = Transcript::new(ansi, self.peers.outputs());
            let Self { runs, reports, .. } = self;
            let secrets = |job| Keeper::of(job, runs, reports).and_then(Keeper::secrets);
            self.screen.tell_transcript(id, transcript, secrets, &mut self.engine);
        }
    }

    fn watch(&mut self, id: PeerId, request: WatchRequest) {
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
        self.screen.watch(id, request, &mut self.engine, self.turn.now);
    }

    fn pause(&mut self, job: JobId) -> Result<Answer, Notice> {
        let below = self.control(job)?.pause()?;
        self.screen.say(format_args!("… #{} is paused: you asked", job.0));
        Ok(Answer::Pause { seq: job.0, guard: below.number() })
    }

    fn resume(&mut self, job: JobId) -> Result<Answer, Notice> {
        if !self.control(job)?.resume() {
            return Err(Notice::failed(format_args!("#{} is not paused", job.0), "rexec ps shows what is paused"));
        }
        self.screen.say(format_args!("… #{} is resumed", job.0));
        Ok(Answer::Resume { seq: job.0 })
    }
}
