//! Submissions: a request for a command becomes a job, with its run, its readers and its place in the queue; so does the
//! report of one that its shim runs in a sandbox.

use std::ffi::{CStr, CString};
use std::rc::Rc;
use std::time::SystemTime;

use rexec_sh::protocol::wire;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, PrimitiveDateTime};

use super::Host;
use super::context::Context;
use super::judges::OpenCall;
use super::later::{self, Unanswered};
use super::notices::{BUSY, RELAYED};
use super::peer::Peer;
use super::peers::Peers;
use super::project_sessions::is_in_use;
use super::project_variables;
use super::reports::{BegunReport, ClosedReport, FoundShim};
use super::rules::{FirstLook, above};
use super::run;
use super::run::{ActiveRun, Description, PendingStart};
use super::turn::PeerId;
use super::unkept;
use super::victims::Victims;
use crate::core::card::{Card, Place};
use crate::core::end::StartError;
use crate::core::engine::JobId;
use crate::core::job::{Job, Question};
use crate::core::log::Lag;
use crate::front::answer::Answer;
use crate::front::budget::Share;
use crate::front::command::Command;
use crate::front::jsonl::CommandRequest;
use crate::front::span::SpanIds;
use crate::gate::Unkept;
use crate::journal::record::{self, PublishedCard, StartRecord};
use crate::sink::console::Heading;
use crate::sys;
use crate::sys::caller_descriptor::CallerDescriptor;
use crate::text::place::place;
use crate::text::redact::Redactor;

/// A journal's time on the human's clock.
fn local_time(time: &str) -> PrimitiveDateTime {
    let utc = OffsetDateTime::parse(time, &Rfc3339).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let local = utc + time::Duration::seconds(sys::local_time::offset(utc.unix_timestamp()).into());
    PrimitiveDateTime::new(local.date(), local.time())
}

/// Tells a command its number and its caller's name. If its caller gave it a whole environment, it gets the name only
/// if that caller expects it.
fn mark(command: &mut Command, job: JobId) {
    let markers = [format!("REXEC_SEQ={}", job.0), format!("REXEC_AGENT={}", command.caller.whoami)];
    let name = command.knows_caller.then(|| format!("REXEC_WHOAMI={}", command.caller.whoami));
    for marker in markers.into_iter().filter(|_| !command.is_bare).chain(name) {
        let entry = CString::new(marker).expect("a name for the console has no NUL");
        // A frame that has no room is near the bound on all arguments, and its command more important.
        let _ = wire::add_variable(&entry, &mut command.frame);
    }
}

/// Gives a command its own place in a trace: its caller's, if that has one. If its caller gave it a whole environment,
/// it gets the variable only if that has one.
fn trace(command: &mut Command, job: JobId, ids: &SpanIds) {
    let caller = command.run().and_then(|run| {
        let mut entries = run.env.iter().map(CStr::to_bytes);
        entries.find_map(|entry| entry.strip_prefix(b"TRACEPARENT=")).map(<[u8]>::to_vec)
    });
    let context = ids.context(job.0, caller.as_deref());
    command.trace = Some(context);
    if !command.is_bare || caller.is_some() {
        let entry = CString::new(format!("TRACEPARENT={}", context.header())).expect("digits have no NUL");
        // A frame that has no room is near the bound on all arguments, and its command more important.
        let _ = wire::add_variable(&entry, &mut command.frame);
    }
}

impl Host {
    pub(super) fn submit_command(&mut self, id: PeerId, mut command: Command) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let (pid, descriptors) = (peer.pid, std::mem::take(&mut peer.descriptors));
        if descriptors.len() != command.descriptors {
            // The kernel reports descriptors that it could not deliver. These were never sent.
            let notice = if descriptors.is_empty() { &RELAYED } else { &BUSY };
            return self.fail(id, notice);
        }
        peer.accept();
        self.callers.identify(&mut command, Some(peer));
        self.starts.add_groups(pid, &mut command, &mut self.screen);
        let descriptors = self.starts.add_environment(&mut command).map(|()| descriptors);
        let share = self.starts.hold(command.weight());
        self.submit(id, command, descriptors, share);
    }

    /// A command that came as words in JSON, which gets the host's environment.
    pub(super) fn submit_words(&mut self, id: PeerId, request: &CommandRequest) {
        let Some(pid) = self.peers.get(id).map(|peer| peer.pid) else { return };
        let is_attended = self.is_attended();
        let (mut command, descriptors) = self.starts.json_command(request, is_attended);
        self.callers.identify(&mut command, None);
        self.starts.add_groups(pid, &mut command, &mut self.screen);
        let stdin = request.stdin.as_ref().map_or(0, String::len);
        let share = self.starts.hold(command.weight() + stdin);
        self.submit(id, command, descriptors, share);
    }

    fn submit(
        &mut self,
        id: PeerId,
        command: Command,
        descriptors: Result<Vec<CallerDescriptor>, StartError>,
        share: Option<Share>,
    ) {
        let Some(share) = share else { return self.fail(id, &BUSY) };
        let has_terminal = self.starts.plan(&command).has_terminal();
        match self.enter(Some(id), command, descriptors, share) {
            Some(job) => self.rpc_service().show_clients(job, has_terminal),
            None => self.fail(id, &BUSY),
        }
    }

    /// Makes a job of a command. `peer` is the one that it belongs to and that reads it. `None` when there are too many.
    pub(super) fn enter(
        &mut self,
        peer: Option<PeerId>,
        mut command: Command,
        descriptors: Result<Vec<CallerDescriptor>, StartError>,
        share: Share,
    ) -> Option<JobId> {
        let dir = run::directory(&command, descriptors.as_deref().unwrap_or_default());
        let dir = dir.as_os_str().as_encoded_bytes();
        self.projects.find_depth(&mut command);
        let top = command.depth.and_then(|depth| above(dir, depth));
        let rules = self.rules.rules(&command, dir, top, self.turn.now, &mut self.screen);
        if rules.is_some() {
            self.callers.note_agents();
        }
        let is_attended = self.is_attended();
        if self.starts.unkept() == Unkept::Ask && command.concern.is_none() {
            command.concern = unkept::concern(&command, dir, self.starts.keeps_records());
        }
        let (judgement, for_judge) = match rules.map(|rules| (rules.look(&command, dir, is_attended), rules)) {
            Some((FirstLook::Judged(judgement), _)) => (judgement, None),
            Some((FirstLook::ForJudge, rules)) => (None, Some((dir.to_vec(), rules))),
            None => (None, None),
        };
        let judgement =
            if for_judge.is_some() { None } else { self.rules.with_concern(judgement, &command, is_attended) };
        let judgement = judgement.map(|judged| self.later.permitted(judged, &command, dir, self.turn.now));
        let unanswered = judgement.as_ref().and_then(|judged| later::unanswered(judged, self.turn.now));
        let is_held = judgement.as_ref().map_or(for_judge.is_some(), |judged| judged.consequence.holds());
        let job = if is_held { self.engine.submit_held()? } else { self.engine.submit()? };
        // The snapshot that an agent takes of its shell would hand them on to the commands that follow.
        let has_markers = self.options.markers && !command.line.is_probe;
        if has_markers || command.dir.is_some() || command.knows_caller {
            mark(&mut command, job);
        }
        peer.into_iter().for_each(|id| self.peers.attend(id, job, &mut self.engine));
        let is_running = |id| is_in_use(id, &self.runs, &self.engine);
        let project = self.projects.of_run(&command, dir, is_running);
        self.projects.keep(&mut self.recorder, self.turn.now);
        if let Some(known) = project.and_then(|id| self.projects.known.get(id)) {
            project_variables::give(known, &mut command);
        }
        if self.options.traces {
            trace(&mut command, job, &self.span_ids);
        }
        let secrets = self.secrets_of(&command);
        let card = self.card(job, &command, dir, None);
        self.record(&card, &command, dir, secrets.as_ref());
        if judgement.is_some() {
            self.engine.on_judged(job, judgement, self.turn.now);
        }
        let (kills_group, is_restore) = (command.kills_group, command.is_restore());
        let description = Description { project, kills_group, is_restore, ..Description::of(&card, secrets) };
        let pending = descriptors.map(|descriptors| PendingStart { command, descriptors });
        let is_held_by_shim = peer.and_then(|id| self.peers.get(id)).is_some_and(Peer::lets_go);
        let run = ActiveRun::new(pending, description, share, self.turn.now);
        self.runs.insert(job, ActiveRun { peer, is_held_by_shim, ..run });
        if let Some(question) = unanswered {
            self.on_nobody_there(job, question);
        }
        if let Some((directory, rules)) = for_judge {
            self.judges.add(OpenCall { job, directory, rules });
            self.begin_judges();
        }
        Some(job)
    }

    /// Returns true if a person is there to answer.
    fn is_attended(&self) -> bool {
        self.runs.prompts.wait(self.turn.now).is_some()
    }

    /// Makes judges for the calls that wait for one, as many as there may be.
    fn begin_judges(&mut self) {
        while let Some(call) = self.judges.next_waiting() {
            let Some(command) = self.runs.pending_command(call.job) else {
                self.engine.on_judged(call.job, None, self.turn.now);
                continue;
            };
            let peer = self.runs.peer_of(call.job).and_then(|id| self.peers.get(id));
            let agent = peer.map(|peer| self.callers.process_of(peer));
            let guards = self.runs.guarded_by(call.job);
            let victims = Victims::new(guards, &self.callers, peer.map(|peer| peer.pid), agent);
            let (directory, rules) = (call.directory.clone(), call.rules.clone());
            let judge = || rules.encode(command, &directory, &victims);
            if let Err(call) = self.judges.begin(call, judge, &mut self.turn) {
                self.on_judge_answer(&call, &[]);
            }
        }
    }

    pub(super) fn visit_judge(&mut self, job: JobId) {
        if let Some((call, answer)) = self.judges.visit(job, &mut self.turn) {
            self.on_judge_answer(&call, &answer);
            self.begin_judges();
        }
    }

    pub(super) fn tick_judges(&mut self) {
        while let Some(call) = self.judges.next_late(&mut self.turn) {
            self.on_judge_answer(&call, &[]);
            self.begin_judges();
        }
    }

    /// Does with a call what its judge has found.
    fn on_judge_answer(&mut self, call: &OpenCall, answer: &[u8]) {
        let Some(command) = self.runs.pending_command(call.job) else { return };
        let (is_attended, now) = (self.is_attended(), self.turn.now);
        let judgement = call.rules.judge_by(answer, command, &call.directory, is_attended);
        let judgement = self.rules.with_concern(judgement, command, is_attended);
        let judgement = judgement.map(|judged| self.later.permitted(judged, command, &call.directory, now));
        let unanswered = judgement.as_ref().and_then(|judged| later::unanswered(judged, now));
        self.engine.on_judged(call.job, judgement, now);
        if let Some(question) = unanswered {
            self.on_nobody_there(call.job, question);
        }
    }

    /// Nobody was there to be asked about a job.
    fn on_nobody_there(&mut self, job: JobId, question: Question) {
        self.ask_later(job, question, false);
        self.notifier.note_refused(job);
    }

    /// The person may still answer what nobody has answered. `is_told` says that a command of `--notify` has its token.
    pub(super) fn ask_later(&mut self, job: JobId, question: Question, is_told: bool) {
        let Some(pending) = self.runs.pending(job) else { return };
        let (from, now) = (self.recorder.reference(job), self.turn.now);
        let proposed = self.rules.propose(pending, &from, now, &mut self.screen);
        self.later.add(Unanswered { job, question, is_told, proposed }, &self.runs, now);
    }

    /// Takes the reports that have come from sandboxes.
    pub(super) fn visit_reports(&mut self) {
        self.reports.read(&mut self.turn, &mut self.screen);
        while let Some(found) = self.reports.next_begun(self.turn.now, &mut self.engine, &mut self.screen) {
            self.submit_report(found);
        }
    }

    /// Looks at the commands that shims report, and for shims that were not found yet.
    pub(super) fn tick_reports(&mut self) {
        let Self { turn, engine, peers, screen, .. } = self;
        for closed in self.reports.tick(turn, engine, peers, screen) {
            let ClosedReport { job, description, waiting } = closed;
            self.tally.count(job, engine, &description, turn.now);
            engine.on_gone(job);
            let answer = Answer::Kill { seq: job.0, unkillable: Vec::new(), grace_left_ms: None };
            waiting.into_iter().for_each(|peer| peers.answer(peer, &answer, turn, engine));
        }
        self.reports.search(self.turn.now);
        while let Some(found) = self.reports.next_searched(self.turn.now, &mut self.screen) {
            self.submit_report(found);
        }
    }

    /// Makes a job of a command that a shim runs in a sandbox. The host starts nothing for it.
    fn submit_report(&mut self, found: FoundShim) {
        let begun = self.reports.take_begun(found, &self.engine, &self.runs, &mut self.screen);
        let Some(BegunReport { run, mut command, dir, sandbox }) = begun else { return };
        let now = self.turn.now;
        let Some(job) = self.engine.submit_reported(now) else { return self.reports.note_dropped(&run) };
        self.callers.identify(&mut command, None);
        let secrets = self.secrets_of(&command);
        let card = self.card(job, &command, &dir, Some(sandbox));
        self.record(&card, &command, &dir, secrets.as_ref());
        self.reports.begin(run, job, Description::of(&card, secrets), now);
        self.turn.touch(job);
    }

    /// Masks a command's secrets for agents. `None` if the host does not do that.
    fn secrets_of(&self, command: &Command) -> Option<Redactor> {
        self.options.redact_agents.then(|| command.redactor())
    }

    /// Starts a job. Hears its caller first, which may have said meanwhile that the job should not run.
    pub(super) fn start(&mut self, job: JobId) {
        let has_unread = |peers: &Peers, id| peers.get(id).is_some_and(|peer| peer.port.is_readable());
        if let Some(peer) = self.runs.peer_of(job).filter(|&id| has_unread(&self.peers, id)) {
            self.visit_peer(peer);
            if !self.engine.job(job).is_some_and(Job::is_queued) {
                return;
            }
        }
        let project = self.runs.get(job).and_then(|run| run.description.project);
        if !self.is_closing() && self.projects.holds_back(job, project, &mut self.screen) {
            return self.engine.retry(job);
        }
        let Self { turn, engine, peers, runs, .. } = self;
        self.starts.begin(job, runs, &mut Context { turn, engine, peers });
    }

    /// The card of a command. `sandbox` is the one that it runs in, if this host does not run it.
    fn card(&self, job: JobId, command: &Command, dir: &[u8], sandbox: Option<String>) -> Rc<Card> {
        let dir = String::from_utf8_lossy(dir).into_owned();
        let home = std::env::var("HOME").unwrap_or_default();
        Rc::new(Card {
            run: job.0,
            time: record::timestamp(SystemTime::now()),
            at: self.turn.now,
            caller: command.caller.clone(),
            place: Place { name: place(&dir, command.depth.map(usize::from), &home), dir },
            command: command.line.clone(),
            sandbox,
        })
    }

    /// Gives the journal and the console a reader of the command's log each. Transcripts do not show these secrets.
    fn record(&mut self, card: &Rc<Card>, command: &Command, dir: &[u8], secrets: Option<&Redactor>) {
        let is_run_here = card.sandbox.is_none();
        let plan = self.starts.plan(command);
        let mut start = StartRecord {
            envs: command.envs.clone(),
            window: Some(self.starts.window(command)),
            terminal: is_run_here && plan.has_terminal(),
            // The host does not know a sandboxed command's environment.
            environment_sent: is_run_here && self.starts.keeps_environments(),
            relayed: command.stdio.stdout_tty && plan.is_relayed(),
            trace: command.trace.map(|trace| trace.header()).unwrap_or_default(),
            trace_parent: command.trace.and_then(|trace| trace.parent()).unwrap_or_default(),
            card: PublishedCard::from(&**card),
            ..StartRecord::default()
        };
        start.set_exec(command.exec.iter().map(Vec::as_slice));
        start.set_dir(dir);
        let run = command.run();
        let heading = Heading { card: Rc::clone(card), local: local_time(&card.time) };
        self.tally.begin(&card.caller.whoami, heading.local.date());
        self.recorder.begin(&mut self.engine, &start, command.variables(run.as_deref()), self.turn.now);
        if let Some(cursor) = self.engine.attach(JobId(card.run), Lag::Skip) {
            self.screen.begin(&mut self.engine, cursor, heading, secrets);
        }
    }
}
