//! Starts: how a queued job gets a guard.
//!
//! `Effect::Start` leads to [`Starts::begin`], which hands the command to a guard: one that waits ([`Spares`]) or a new
//! one. The guard answers with a report, which [`super::runs::Runs`] takes.
//!
//! Invariants: the journal has a command before anything of it runs; everything that can fail comes before a guard has
//! the command; the command goes to another guard only if the one before never began; when something is short that will
//! be free again, the command waits in its place.

mod hand_over;
mod output_handle;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use rexec_sh::protocol::choice::Tty;
use rexec_sh::protocol::wire;

use super::context::Context;
use super::json_command::{self, Inherited};
use super::options::HostOptions;
use super::orders::Again;
use super::run::ActiveRun;
use super::runs::Runs;
use super::screen::Screen;
use super::spares::Spares;
use super::start_errors;
use super::stream_plan::StreamPlan;
use super::terminal_size::terminal_size;
use super::turn::Turn;
use crate::core::end::StartError;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::Stream;
use crate::core::job::{Job, Order};
use crate::front::budget::{Budget, Share};
use crate::front::command::Command;
use crate::front::jsonl::{CommandRequest, OutputPlace};
use crate::front::profile::ProfileFacts;
use crate::gate::Unkept;
use crate::guard::control::RecordPlace;
use crate::io::poller::Token;
use crate::io::port::Port;
use crate::limits;
use crate::sys::caller_descriptor::CallerDescriptor;
use crate::sys::cgroup::Groups;
use crate::sys::{self, helper, pty};
use crate::undo::{store, tidying};
use rexec_sh::protocol::process::Pid;

#[derive(Debug)]
pub(super) struct Starts {
    options: HostOptions,
    inherited: Inherited,
    /// The control groups of the host.
    groups: Groups,
    /// The callers for which the console said that the limits of their control groups do not hold.
    told_of_groups: BTreeSet<String>,
    /// The bytes of all requests that no guard has yet.
    requests: Budget,
    spares: Spares,
    /// Where commands' files are kept for undo; `None` if they are not.
    records: Option<RecordStore>,
    began: Instant,
    /// When what was kept too long ago is removed again.
    tidies_at: Instant,
    /// The size of a terminal, unless its command needs another one.
    size: pty::Size,
    /// When the next try is due of jobs for which something was short. The engine's queue tells if there are any.
    retry_at: Option<Instant>,
    /// The host ends: no job waits for better times any more.
    is_closing: bool,
}

/// The store, and the session with which the names of records in it begin.
#[derive(Debug)]
struct RecordStore {
    store: PathBuf,
    session: String,
}

impl Starts {
    /// No spare guards yet. `console` is the size of the human's terminal, and `session` the journal's name, if there is a
    /// journal.
    pub(super) fn new(
        options: HostOptions,
        inherited: Inherited,
        console: Option<pty::Size>,
        session: Option<String>,
    ) -> Self {
        let store = options.home.join("kept");
        let records = session.filter(|_| options.undo).map(|session| RecordStore { store, session });
        let size = terminal_size(options.pty_size, console);
        let began = Instant::now();
        Self {
            options,
            inherited,
            groups: Groups::read(),
            told_of_groups: BTreeSet::new(),
            requests: Budget::new(limits::QUEUED_REQUESTS_BYTES, 0),
            spares: Spares::new(size),
            records,
            began,
            tidies_at: began + limits::KEPT_TIDIED_EVERY,
            size,
            retry_at: None,
            is_closing: false,
        }
    }

    /// The human's terminal has this size now. The terminals of commands that start from now on are at least as large.
    pub(super) fn resize(&mut self, console: Option<pty::Size>) {
        self.size = terminal_size(self.options.pty_size, console);
        self.spares.resize(self.size);
    }

    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Makes a spare guard. Without terminals or processes for it, commands make their own guards when they come.
    pub(super) fn prepare_spare(&mut self, turn: &mut Turn) {
        if self.spares.prepare(&mut turn.poller).is_err() {
            self.spares.pause(turn.now);
        }
    }

    /// Something came from a registration without a source: perhaps a spare guard that died.
    pub(super) fn on_spare_gone(&mut self, token: Token, turn: &mut Turn) {
        self.spares.forget(&mut turn.poller, token, turn.now);
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.spares.pids()
    }

    /// Returns true if a spare guard is to be made now: while nothing runs, so that it disturbs no command, or when
    /// there is none.
    pub(super) fn wants_spare(&self, engine: &Engine, now: Instant) -> bool {
        !self.is_closing && self.spares.wants_another(now) && (engine.is_idle() || self.spares.is_empty())
    }

    /// When a start has to be tried again, or a spare guard replaced.
    pub(super) fn deadline(&self, engine: &Engine) -> Option<Instant> {
        let replace_at = self.spares.replace_at().filter(|_| engine.is_idle() && !self.is_closing);
        let retry_at = self.retry_at.filter(|_| engine.has_room_for_queued());
        retry_at.into_iter().chain(replace_at).chain(self.spares.leave_at()).min()
    }

    pub(super) fn tick(&mut self, engine: &mut Engine, turn: &mut Turn) {
        if self.retry_at.is_some_and(|at| at <= turn.now) {
            self.retry_at = None;
            engine.start_queued();
        }
        self.spares.let_go(&mut turn.poller, turn.now);
    }

    /// Keeps guards whose commands have left nothing, for other commands.
    pub(super) fn keep(&mut self, free: Vec<(Pid, Port)>, turn: &mut Turn) {
        for (pid, control) in free {
            if self.is_closing {
                control.close(&mut turn.poller);
            } else {
                self.spares.park(&mut turn.poller, pid, control, turn.now);
            }
        }
    }

    /// The command of a request in JSON, and its descriptors or why it cannot be started.
    /// `is_attended` says that a person may answer its prompts.
    pub(super) fn json_command(
        &self,
        request: &CommandRequest,
        is_attended: bool,
    ) -> (Command, Result<Vec<CallerDescriptor>, StartError>) {
        let has_terminal = match request.place {
            OutputPlace::HostsChoice => self.options.tty == Tty::Always,
            place => matches!(place, OutputPlace::Terminal { .. }),
        };
        let facts = ProfileFacts { has_terminal, is_attended };
        json_command::command(request, &self.inherited, facts)
    }

    /// Adds the host's environment to that of a command whose caller asks for it.
    pub(super) fn add_environment(&self, command: &mut Command) -> Result<(), StartError> {
        json_command::add_environment(command, &self.inherited)
    }

    /// Takes this many bytes for a request. `None` when all requests together would hold too much.
    pub(super) fn hold(&self, bytes: usize) -> Option<Share> {
        self.requests.take(bytes)
    }

    /// Adds the control groups of a command's caller, if they differ from the host's. If the host may not enter one of
    /// them, the console says so once for each kind of caller.
    pub(super) fn add_groups(&mut self, caller: Pid, command: &mut Command, screen: &mut Screen) {
        let Some(place) = self.groups.of_caller(caller) else { return };
        let is_whole = place.files.is_empty() || wire::add_cgroups(&place.files, &mut command.frame).is_ok();
        if (place.is_partly_closed || !is_whole)
            && self.told_of_groups.len() < limits::NAMES_TOLD_MAX
            && self.told_of_groups.insert(command.caller.whoami.clone())
        {
            screen.say(format_args!(
                "… {} is in another control group than this host, which may not enter it: its limits do not hold for \
                 its commands",
                command.caller.whoami
            ));
        }
    }

    /// Performs `Effect::Start`: hands the job to a guard.
    pub(super) fn begin(&mut self, job: JobId, runs: &mut Runs, cx: &mut Context<'_>) {
        let Some(run) = runs.get_mut(job) else { return };
        let accepted = run.accepted;
        let pending = match run.pending.take() {
            None => return,
            Some(Err(why)) => return cx.engine.on_start_failed(job, why),
            Some(Ok(pending)) => pending,
        };
        let handed_over = self.hand_over(job, &pending, runs, cx);
        let Context { turn, engine, .. } = cx;
        match handed_over {
            Ok(streams) => {
                self.tidy_again(turn.now);
                let queued = turn.now.saturating_duration_since(accepted);
                engine.on_started(job, queued, streams, turn.now);
                if runs.get(job).is_some_and(ActiveRun::is_hung_up_unanswered) {
                    engine.give_up_unanswered(job);
                }
                runs.close_unread(job, turn, engine);
                if let Some(timeout) = pending.command.line.timeout {
                    runs.limit(job, timeout, turn.now);
                }
            }
            Err(error) if self.may_wait(&error, accepted, turn.now) => {
                self.spares.let_all_go(&mut turn.poller);
                engine.retry(job);
                // Later failures do not put off the try that earlier ones wait for.
                self.retry_at.get_or_insert(turn.now + limits::START_RETRY);
            }
            Err(error) => return engine.on_start_failed(job, start_errors::without_guard(&error)),
        }
        if let Some(run) = runs.get_mut(job) {
            run.pending = Some(Ok(pending));
        }
    }

    /// Returns true if a start that failed is tried again, because something was short that will be free again.
    fn may_wait(&self, error: &io::Error, accepted: Instant, now: Instant) -> bool {
        let is_shortage = error.raw_os_error().is_some_and(sys::is_shortage) && !self.is_closing;
        is_shortage && now.saturating_duration_since(accepted) < limits::START_TIMEOUT
    }

    /// Hands a job to another guard, because the one that had it died before it began.
    pub(super) fn begin_again(&mut self, job: JobId, runs: &mut Runs, cx: &mut Context<'_>) {
        let Context { turn, engine, .. } = cx;
        engine.on_never_began(job);
        Stream::ALL.into_iter().for_each(|stream| runs.close_stream(job, stream, turn));
        turn.touch(job);
        let is_alive = engine.job(job).is_some_and(Job::is_alive);
        let Some(run) = runs.get_mut(job) else { return };
        let Some(again) = run.again.take() else { return };
        let Some(Ok(pending)) = run.pending.take().filter(|_| is_alive) else { return };
        if turn.now.saturating_duration_since(run.accepted) >= limits::START_TIMEOUT {
            return engine.on_start_failed(job, start_errors::without_beginning());
        }
        run.attempts += 1;
        let handed_over = self.hand_over(job, &pending, runs, cx);
        let Context { turn, engine, .. } = cx;
        match handed_over {
            Ok(_) => {
                runs.close_unread(job, turn, engine);
                again.signals.into_iter().for_each(|signal| runs.order(job, Order::Signal(signal), turn.now));
            }
            Err(error) if error.raw_os_error().is_some_and(sys::is_shortage) && !self.is_closing => {
                let again = Again { at: turn.now + limits::START_RETRY, ..again };
                if let Some(run) = runs.get_mut(job) {
                    run.again = Some(again);
                }
                runs.owe(job);
            }
            Err(error) => return engine.on_start_failed(job, start_errors::without_guard(&error)),
        }
        if let Some(run) = runs.get_mut(job) {
            run.pending = Some(Ok(pending));
        }
    }

    pub(super) fn plan(&self, command: &Command) -> StreamPlan {
        let is_live = command.live.unwrap_or(self.options.live) && !command.is_for_program;
        let plan = StreamPlan::of(command.stdio, self.tty_of(command), command.kills_group);
        plan.live(is_live).bare(command.is_bare)
    }

    /// Removes what earlier hosts kept for undo too long ago, in a process of its own, as below.
    pub(super) fn tidy_old_store(&self) {
        let store = self.options.home.join("kept");
        if store.is_dir() {
            let _ = helper::fork(c"rexec-tidy", &[], || {
                store::release(&store);
                let _ = tidying::tidy(&store, None);
            });
        }
    }

    /// Does so again each [`limits::KEPT_TIDIED_EVERY`], unless a command runs then that the store is hidden from.
    fn tidy_again(&mut self, now: Instant) {
        let Some(RecordStore { store, session }) = self.records.as_ref().filter(|_| now >= self.tidies_at) else {
            return;
        };
        self.tidies_at = now + limits::KEPT_TIDIED_EVERY;
        // The wall clock may have been set meanwhile.
        let young = (now.saturating_duration_since(self.began) < limits::KEPT_AGE).then_some(session.as_str());
        let _ = helper::fork(c"rexec-tidy", &[], || _ = tidying::tidy(store, young));
    }

    pub(super) fn keeps_records(&self) -> bool {
        self.records.is_some()
    }

    /// What the person wants done with commands whose losses cannot be kept.
    pub(super) fn unkept(&self) -> Unkept {
        if self.options.undo { self.options.keeping.unkept } else { Unkept::Run }
    }

    /// Returns true if nothing is kept for undo, although a person wants it.
    pub(super) fn lacks_records(&self) -> bool {
        self.options.undo && self.records.is_none()
    }

    /// The bytes that tell a guard where to keep what this command may destroy; empty if it is not kept.
    fn record_place(&self, job: JobId, command: &Command) -> Vec<u8> {
        let named = self.records.as_ref().and_then(|RecordStore { store, session }| {
            let (store, session, agent) = (store.clone(), session.clone(), command.caller.whoami.clone());
            let bounds = self.options.keeping.bounds.clone();
            RecordPlace { store, session, run: job.0, agent, bounds }.encode()
        });
        named.unwrap_or_default()
    }

    pub(super) fn keeps_environments(&self) -> bool {
        self.options.environments
    }

    /// Which of a command's descriptors are its terminal: as its caller says, else as the host's options say. What an
    /// agent reads for itself is for a program and never goes through a terminal.
    fn tty_of(&self, command: &Command) -> Tty {
        if command.is_for_program { Tty::Never } else { command.tty.unwrap_or(self.options.tty) }
    }

    /// Rows and columns of the screen that the command's output is written for.
    pub(super) fn window(&self, command: &Command) -> (u16, u16) {
        command.window.unwrap_or((self.size.rows, self.size.cols))
    }

    /// The size of the command's terminal. A terminal without a stream has the size that programs assume without a
    /// terminal, because some programs ask for it all the same.
    fn terminal_size(&self, command: &Command, plan: StreamPlan) -> pty::Size {
        if !plan.has_terminal() && self.options.pty_size.is_none() {
            return pty::Size { rows: limits::UNSEEN_ROWS, cols: limits::UNSEEN_COLS };
        }
        let (rows, cols) = command.true_window.unwrap_or_else(|| self.window(command));
        pty::Size { rows, cols }
    }
}
