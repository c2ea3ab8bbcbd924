//! The runs: every command that the host holds, and the times at which one of them needs something.
//!
//! | file | what it does |
//! |---|---|
//! | `runs/begin.rs` | has guards begin with their commands |
//! | `runs/streams.rs` | reads what commands write |
//! | `runs/screens.rs` | keeps the end of what was written to terminals, for those that come later |
//! | `runs/echoes.rs` | reads what a terminal shows of an answer before what the command writes then |
//! | `runs/guard_reports.rs` | takes the guards' reports, and notes what commands left running |
//! | `runs/orphans.rs` | deals with guards that died, or that do not do what they owe |
//! | `runs/kills.rs` | ends commands for people, and answers them |
//! | `runs/answers.rs` | gives terminals to people who answer prompts |
//! | `runs/ports.rs` | finds the ports on which commands listen |
//! | `runs/pauses.rs` | pauses, resumes and signals commands for people |
//! | `runs/input.rs` | passes on what programs write to the inputs of their commands |
//! | `runs/keys.rs` | passes keys and sizes on to relayed terminals |
//! | `runs/timers.rs` | knows what is due for which command, and when |
//! | `runs/stops.rs` | stops and continues shims with their commands |
//!
//! Processes that an ended command left behind may go on writing. The host reads that and drops it, so that they
//! neither block nor die of it.

mod answers;
mod begin;
mod echoes;
mod guard_reports;
mod input;
mod keys;
mod kills;
mod orphans;
mod pauses;
mod ports;
mod screens;
mod stops;
mod streams;
mod timers;

pub(super) use answers::{AnswerOver, AnswerWish, NoAnswer};
pub(super) use input::{INPUT_PIECE_BYTES, InputPiece, InputState};
pub(super) use kills::KillRequest;
pub(super) use ports::InUse;
use ports::PortBook;
use stops::StoppedShim;
use timers::{Due, Timers};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rexec_sh::protocol::wire::AtStart;

use super::context::Context;
use super::prompt_policy::PromptPolicy;
use super::run::{ActiveRun, GuardLink, LeftOver, PendingStart};
use super::screen::Screen;
use super::turn::{PeerId, Turn};
use super::victims::GuardedRun;
use crate::core::end::Stopper;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::Stream;
use crate::core::job::{Job, Order};
use crate::front::command::Command;
use crate::guard::orphans::Kin;
use crate::guard::spawn;
use crate::io::port::Port;
use crate::limits;
use crate::sys::{pty, socket};
use rexec_sh::protocol::process::{Pid, Signal};

#[derive(Debug)]
pub(super) struct Runs {
    all: BTreeMap<JobId, ActiveRun>,
    /// Ended jobs that left processes running, oldest first.
    stragglers: VecDeque<JobId>,
    timers: Timers,
    /// Runs that a person answers.
    answered: BTreeSet<JobId>,
    /// Answers that are over, until the host tells the person.
    answers_over: Vec<AnswerOver>,
    /// Guards whose commands have left nothing, until they are kept for others.
    free: Vec<(Pid, Port)>,
    /// Terminals that have another size, until the host tells their jobs.
    resized: Vec<(JobId, pty::Size)>,
    pub(super) prompts: PromptPolicy,
    /// When the host last looked for the holder of a port.
    sought_holder: Option<Instant>,
    port_book: PortBook,
    /// The shims that have to go on.
    to_continue: BTreeMap<JobId, StoppedShim>,
    /// The processes that were there before the host.
    kin: Kin,
    /// The host's children that belong to no run, as the host last named them.
    helpers: Vec<Pid>,
    /// Bytes of the ends of what was written to the terminals, of all runs.
    tail_bytes: usize,
}

impl Runs {
    /// Call it at the host's beginning: every process that is there now counts as older than the host.
    pub(super) fn new(prompts: PromptPolicy) -> Self {
        Self {
            all: BTreeMap::new(),
            stragglers: VecDeque::new(),
            timers: Timers::default(),
            answered: BTreeSet::new(),
            answers_over: Vec::new(),
            free: Vec::new(),
            resized: Vec::new(),
            prompts,
            sought_holder: None,
            port_book: PortBook::default(),
            to_continue: BTreeMap::new(),
            kin: Kin::now(),
            helpers: Vec::new(),
            tail_bytes: 0,
        }
    }

    pub(super) fn insert(&mut self, job: JobId, run: ActiveRun) {
        self.all.insert(job, run);
    }

    pub(super) fn get(&self, job: JobId) -> Option<&ActiveRun> {
        self.all.get(&job)
    }

    pub(super) fn get_mut(&mut self, job: JobId) -> Option<&mut ActiveRun> {
        self.all.get_mut(&job)
    }

    fn link(&mut self, job: JobId) -> Option<&mut GuardLink> {
        self.all.get_mut(&job)?.guard.as_mut()
    }

    /// All runs, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (JobId, &ActiveRun)> {
        self.all.iter().map(|(&job, run)| (job, run))
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.all.keys().copied()
    }

    pub(super) fn guards(&self) -> BTreeSet<Pid> {
        self.all.values().filter_map(ActiveRun::guard_pid).collect()
    }

    /// The guards of the runs that bring back files for the person.
    pub(super) fn guards_of_restores(&self) -> impl Iterator<Item = Pid> {
        self.all.values().filter(|run| run.description.is_restore).filter_map(ActiveRun::guard_pid)
    }

    /// The guards, with what stands below each, as the caller of this run sees it.
    pub(super) fn guarded_by(&self, caller_of: JobId) -> BTreeMap<Pid, GuardedRun> {
        let caller = |run: &ActiveRun| (run.description.card.whoami.clone(), run.description.card.session_number);
        let own = self.all.get(&caller_of).map(caller);
        let guarded = |(job, run): (&JobId, &ActiveRun)| {
            let agent = run.description.card.agent_name();
            let is_own = own.as_ref() == Some(&caller(run));
            Some((run.guard_pid()?, GuardedRun { number: job.0, agent, is_own }))
        };
        self.all.iter().filter_map(guarded).collect()
    }

    pub(super) fn peer_of(&self, job: JobId) -> Option<PeerId> {
        self.all.get(&job)?.peer
    }

    /// A command that has not begun and can, with what it needs for that.
    pub(super) fn pending(&self, job: JobId) -> Option<&PendingStart> {
        self.all.get(&job)?.pending.as_ref()?.as_ref().ok()
    }

    pub(super) fn pending_command(&self, job: JobId) -> Option<&Command> {
        Some(&self.pending(job)?.command)
    }

    /// The effect of a signal on a command that has not begun.
    pub(super) fn at_start(&self, job: JobId, signal: Signal) -> AtStart {
        let run = self.pending_command(job).and_then(Command::run);
        run.map_or(AtStart::Ends, |run| run.at_start(signal))
    }

    /// Sets the timer for a look at a run's guard, or at what its dead guard left. Call it when either may have changed.
    pub(super) fn owe(&mut self, job: JobId) {
        match self.all.get(&job).and_then(ActiveRun::owing_deadline) {
            Some(at) => self.timers.set(Due::Look(job), at),
            None => self.timers.cancel(Due::Look(job)),
        }
    }

    pub(super) fn limit(&mut self, job: JobId, timeout: Duration, now: Instant) {
        self.timers.set(Due::TimeLimit(job), now + timeout);
    }

    /// When something has to be done although no event comes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let is_set = |job: JobId, at: Instant| self.timers.at(Due::Look(job)).is_some_and(|set| set <= at);
        let has_timer = |(job, run): (JobId, &ActiveRun)| run.owing_deadline().is_none_or(|at| is_set(job, at));
        debug_assert!(self.iter().all(has_timer), "a guard owes something, and nobody would look");
        self.timers.deadline()
    }

    pub(super) fn all_due(&self, now: Instant) -> Vec<Due> {
        self.timers.all_due(now)
    }

    /// Does one of the things that are due, if it still is. Returns the job that needs another guard, if one does.
    pub(super) fn tick(&mut self, due: Due, cx: &mut Context<'_>) -> Option<JobId> {
        if !self.timers.take(due, cx.turn.now) {
            return None;
        }
        match due {
            Due::Kill(job) => self.pursue(job, LeftOver::Killed, cx.turn, cx.engine),
            Due::KillAnswer(job) => self.answer_late(job, cx),
            Due::Look(job) => return self.look_at_guard(job, cx).then_some(job),
            Due::TimeLimit(job) => {
                if cx.engine.job(job).is_some_and(|known| !known.has_ended() && !known.is_stopping()) {
                    cx.engine.stop(job, Stopper::TimeLimit, limits::GRACE_CALLER_GONE, cx.turn.now);
                }
            }
            Due::StoppedShim(job) => self.continue_shim(job, cx.turn.now),
            Due::OutputEnd(job, stream) => self.tell_output_end(job, stream, cx.peers, cx.turn.now),
            // It waits for the echo no more.
            Due::Echo(job) => self.revisit(job, cx.turn, cx.engine),
        }
        None
    }

    pub(super) fn order(&mut self, job: JobId, order: Order, now: Instant) {
        let Some(run) = self.all.get_mut(&job) else { return };
        if order == Order::EndInput {
            run.lock_unanswered_terminal();
            // The guard makes the reader the foreground group, where it takes this.
            run.type_end_of_file();
        }
        if let Some(again) = &mut run.again {
            again.keep(order, now);
        }
        if let Some(link) = &mut run.guard {
            link.orders.give(order, now);
        }
        self.owe(job);
        self.flush_guard(job);
    }

    /// Hangs up the command's terminal, because nobody answers there.
    pub(super) fn give_up_terminal(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        self.order(job, Order::GiveUpTerminal, turn.now);
        self.lose_terminal(job, turn, engine);
    }

    /// The command has no terminal any more, or never had one.
    fn lose_terminal(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        self.close_stream(job, Stream::Tty, turn);
        engine.on_hangup(job, Stream::Tty);
    }

    pub(super) fn flush_guard(&mut self, job: JobId) {
        if let Some(link) = self.link(job).filter(|link| link.control.is_writable()) {
            let port = &mut link.control;
            if !link.orders.out.is_empty() {
                spawn::wake(link.pid, port.fd());
            }
            // The end of a guard is noticed by reading.
            let _ = link.orders.out.flush(|bytes| port.write(|fd| socket::send(fd, bytes, &[])));
        }
    }

    /// Forgets a run if nothing of it is left, and closes the terminal of the oldest straggler beyond the bound.
    pub(super) fn reconcile(&mut self, job: JobId, cx: &mut Context<'_>, screen: &mut Screen) {
        let has_ended = cx.engine.job(job).is_none_or(Job::has_ended);
        let Some(run) = self.all.get(&job) else { return };
        if has_ended && run.is_over() {
            self.close_streams(job, cx.turn);
            self.answer_ending(job, Vec::new(), cx);
            cx.engine.on_gone(job);
            self.all.remove(&job);
            self.timers.forget(job);
            self.answered.remove(&job);
            self.stragglers.retain(|&other| other != job);
        }
        while self.stragglers.len() > limits::STRAGGLERS_MAX
            && let Some(oldest) = self.stragglers.pop_front()
        {
            self.close_streams(oldest, cx.turn);
            screen.say(format_args!(
                "… too many commands left processes running: the terminal of #{} is closed",
                oldest.0
            ));
        }
    }

    fn close_streams(&mut self, job: JobId, turn: &mut Turn) {
        Stream::ALL.into_iter().for_each(|stream| self.close_stream(job, stream, turn));
        self.close_input(job, turn);
    }
}
