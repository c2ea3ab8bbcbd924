//! A job: one command and its life, as a state machine that takes facts and the time.
//!
//! ```text
//! Queued ──started──▶ Running ──exit──▶ Draining ──all streams hung up | silence | DRAIN_MAX──▶ Ended ──gone──▶ Over
//!    │                   └───guard gone──▶ Draining (exit unknown) ─────────────────────────────▲
//!   │ ▲  └──start failed | refused | stopped | signalled────────────────────────────────────────┘
//!   ▼ └─yes──┐                                                                                   ▲
//! Held ──────┴─no | nobody decided | stopped | signalled─────────────────────────────────────────┘
//! while Running or Draining:  stop ─▶ Terminating{kill_at} ── stop | kill_at ─▶ Killed{give_up_at}
//! ```
//!
//! Three facts come from outside in any order: the shell's exit, the hang-up of each stream, the end of the guard
//! (which stays until the command's tree is empty). Invariants:
//!
//! * a job ends exactly once, no output follows its end, and `Over` is the last entry of its log;
//! * `Over` comes when the host has said that nothing of the command lives, and every reader that holds the job back has
//!   read all before it;
//! * a job that was asked to stop ends only when its guard is gone, so that its tree is dead, or when the host has
//!   given up killing it;
//! * a job returns orders only while its guard lives, and signals only until its shell's exit;
//! * silence is counted from the last output, and not while the log is full, because the host does not read then. Only
//!   `tick` judges it, after everything that can be read was read, and it ends nothing while a process still works on
//!   what the shell has fed it, as a guard finds out.

mod hold;
mod interrupt;
mod look;
mod order;
mod prompts;
mod stopping;

use std::time::{Duration, Instant};

use super::end::{End, How, StartError, Stopper};
use super::entry::{DestroyedFiles, Entry, KeptFiles, LeftProcess, Received, SecretEcho, Stream, Streams};
use super::log::Log;
use crate::limits;
pub use hold::{Hold, Question};
use look::LookSchedule;
pub use order::Order;
use prompts::Prompts;
use rexec_sh::protocol::process::{Exit, Pid, Signal};

#[derive(Debug, Clone, PartialEq, Eq)]
enum JobState {
    Queued,
    /// A person decides whether it runs.
    Held(Box<Hold>),
    Running,
    Draining {
        exit: Option<Exit>,
        idle_at: Instant,
        cap_at: Instant,
        /// Bytes that came since the exit.
        since: usize,
        look: FilterLook,
    },
    /// `is_gone`: nothing of it lives.
    Ended {
        is_gone: bool,
    },
    Over,
}

/// The guard's look, before a silence is over, for filters: processes that still work on what the ended shell has fed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterLook {
    Due,
    Ordered,
    /// There is one. The next look is due.
    AtWork,
    /// There is none.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    Terminating { by: Stopper, kill_at: Instant },
    Killed { by: Stopper, give_up_at: Instant },
}

impl Stop {
    fn by(self) -> Option<Stopper> {
        match self {
            Self::No => None,
            Self::Terminating { by, .. } | Self::Killed { by, .. } => Some(by),
        }
    }
}

#[derive(Debug)]
pub struct Job {
    state: JobState,
    stop: Stop,
    interrupted: Option<Instant>,
    open: Streams,
    guard: bool,
    /// It runs in its caller's sandbox, without a guard. Its shim reports the facts about it.
    is_reported: bool,
    /// The last output showed a secret.
    is_echoing: bool,
    prompts: Prompts,
    look: Option<LookSchedule>,
    started: Option<Instant>,
    queued: Duration,
    took: Duration,
    /// Signals that came before the start, in order, each number once.
    kept: Vec<Signal>,
    pub log: Log,
}

impl Job {
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: JobState::Queued,
            stop: Stop::No,
            interrupted: None,
            open: Streams::default(),
            guard: false,
            is_reported: false,
            is_echoing: false,
            prompts: Prompts::default(),
            look: None,
            started: None,
            queued: Duration::ZERO,
            took: Duration::ZERO,
            kept: Vec::new(),
            log: Log::new(limits::LOG_BYTES),
        }
    }

    /// A job that its caller has started in its sandbox. It has no guard, so no orders follow from what happens to it.
    #[must_use]
    pub fn reported(now: Instant) -> Self {
        Self { state: JobState::Running, is_reported: true, started: Some(now), ..Self::new() }
    }

    /// Notes that it wrote this many bytes more, which were not reported.
    pub fn on_unreported(&mut self, bytes: u64) {
        if self.is_running() {
            self.log.push(Entry::Unreported { bytes });
        }
    }

    /// A guard has got the command, which waited this long, with these streams open. Returns the signals that came before.
    #[must_use]
    pub fn on_started(&mut self, queued: Duration, open: Streams, now: Instant) -> Vec<Signal> {
        debug_assert_eq!(self.state, JobState::Queued, "a job starts once");
        self.state = JobState::Running;
        self.open = open;
        self.guard = true;
        self.queued = queued;
        self.started = Some(now);
        self.look = Some(LookSchedule::new(limits::LOOK_AFTER, now));
        std::mem::take(&mut self.kept)
    }

    /// The command could not be started, before or after a guard got it.
    pub fn on_start_failed(&mut self, why: StartError) {
        if !self.has_ended() {
            self.end(How::NotStarted(Box::new(why)), None);
        }
    }

    /// The command's guard died before it began, so nothing ran. A job that was asked to stop ends; any other stays alive
    /// for another guard.
    pub fn on_never_began(&mut self) {
        if self.is_alive() && self.stop != Stop::No {
            self.end(How::NeverRun, self.stop.by());
        }
    }

    pub fn on_output(&mut self, stream: Stream, bytes: Box<[u8]>, now: Instant) {
        self.prompts.on_output(&bytes);
        self.is_echoing = false;
        self.push_output(stream, bytes, SecretEcho::No, now);
    }

    /// The command or its terminal shows a secret that a person types. That is no part of a prompt.
    pub fn on_secret_echo(&mut self, stream: Stream, bytes: Box<[u8]>, now: Instant) {
        let echo = match std::mem::replace(&mut self.is_echoing, true) {
            false => SecretEcho::Begins,
            true => SecretEcho::GoesOn,
        };
        self.push_output(stream, bytes, echo, now);
    }

    fn push_output(&mut self, stream: Stream, bytes: Box<[u8]>, echo: SecretEcho, now: Instant) {
        if self.has_ended() {
            return;
        }
        if let JobState::Draining { idle_at, since, look, .. } = &mut self.state {
            *idle_at = now + limits::DRAIN_IDLE;
            if *look == FilterLook::Over {
                *look = FilterLook::Due;
            }
            *since = since.saturating_add(bytes.len());
        }
        if let Some(look) = &mut self.look {
            look.put_off(now);
        }
        let at = self.age(now);
        self.log.push(Entry::Output { stream, bytes, at, echo });
    }

    /// The command's terminal has another size now. Readers that are far behind do not learn it, so that a caller cannot
    /// fill the log with sizes.
    pub fn on_resize(&mut self, rows: u16, cols: u16, now: Instant) {
        if !self.has_ended() && !self.log.is_full() {
            let at = self.age(now);
            self.log.push(Entry::Resized { rows, cols, at });
        }
    }

    /// The time since the start, zero before it.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        self.started.map_or(Duration::ZERO, |started| now.saturating_duration_since(started))
    }

    /// The command wrote, but its output has no reader any more.
    #[must_use]
    pub fn on_broken_pipe(&self) -> Option<Order> {
        (self.state == JobState::Running && self.guard).then_some(Order::BreakPipe)
    }

    /// No process holds this stream open any more.
    pub fn on_hangup(&mut self, stream: Stream) {
        self.open.remove(stream);
        if stream == Stream::Tty {
            // Nothing of it stops at a terminal any more, nor waits for an answer.
            self.look = None;
            self.prompts.forget();
        }
        self.settle(None);
    }

    pub fn on_exit(&mut self, exit: Exit, now: Instant) {
        if self.state == JobState::Running {
            self.log.push(Entry::Exited { exit });
            self.prompts.forget();
            self.drain(Some(exit), now);
            self.settle(None);
        }
    }

    /// The guard has looked for filters behind the ended shell.
    pub fn on_filters_looked_for(&mut self, has_any: bool, now: Instant) {
        if let JobState::Draining { idle_at, look: look @ FilterLook::Ordered, .. } = &mut self.state {
            *look = if has_any { FilterLook::AtWork } else { FilterLook::Over };
            if has_any {
                *idle_at = now + limits::DRAIN_IDLE;
            }
        }
    }

    /// The guard is gone, because the tree is empty or because the guard was killed.
    pub fn on_guard_gone(&mut self, now: Instant) {
        self.guard = false;
        self.prompts.forget();
        if self.state == JobState::Running {
            self.drain(None, now);
        }
        self.settle(None);
    }

    /// These processes of it live on, although its shell has ended.
    pub fn on_left(&mut self, left: Box<[LeftProcess]>) {
        self.note(Entry::Left(left));
    }

    /// SIGKILL does not end this process of it.
    pub fn on_unkillable(&mut self, pid: Pid, program: String) {
        self.note(Entry::Unkillable { pid, program });
    }

    /// What it may destroy is being kept, and that takes a while.
    pub fn on_keeping(&mut self) {
        if !self.has_ended() {
            self.log.push(Entry::Keeping);
        }
    }

    /// This was kept before it began.
    pub fn on_kept(&mut self, kept: KeptFiles) {
        if !self.has_ended() {
            self.log.push(Entry::Kept(Box::new(kept)));
        }
    }

    /// It has destroyed this, and nothing of it lives.
    pub fn on_destroyed(&mut self, destroyed: DestroyedFiles) {
        self.note(Entry::Destroyed(destroyed));
    }

    /// Its caller has got all of its output that it will get.
    pub fn on_received(&mut self, received: Received) {
        self.note(Entry::Received(received));
    }

    /// Nothing of it lives, so nothing more will be known of it. It has ended.
    pub fn on_gone(&mut self) {
        if let JobState::Ended { is_gone } = &mut self.state {
            *is_gone = true;
        }
    }

    /// Adds the last entry, once nothing of it lives and everybody for whom it waits has read the rest.
    pub(super) fn settle_over(&mut self) {
        if self.state == (JobState::Ended { is_gone: true }) && !self.log.is_held() {
            self.state = JobState::Over;
            self.log.push(Entry::Over);
        }
    }

    /// Adds an entry that may also follow the end.
    fn note(&mut self, entry: Entry) {
        debug_assert!(entry.may_follow_end(), "{entry:?}");
        if !self.is_over() {
            self.log.push(entry);
        }
    }

    /// Returns a signal as an order if the command's shell lives. Before the start, a signal that would end a shell at
    /// its very beginning (`is_deadly`) ends the job in the same way; any other signal is kept for the start.
    #[must_use]
    pub fn signal(&mut self, signal: Signal, is_deadly: bool) -> Option<Order> {
        match self.state {
            JobState::Running if self.guard => return Some(Order::Signal(signal)),
            JobState::Queued | JobState::Held(_) if is_deadly => {
                self.end(How::Exited(Exit::Signal(signal)), None);
            }
            JobState::Queued | JobState::Held(_) => {
                self.kept.retain(|&kept| kept != signal);
                self.kept.push(signal);
            }
            _ => {}
        }
        None
    }

    /// Acts on the deadlines that have passed.
    #[must_use]
    pub fn tick(&mut self, now: Instant) -> Option<Order> {
        self.tick_hold(now);
        let order = match self.stop {
            Stop::Terminating { by, kill_at } if now >= kill_at && self.is_alive() => self.kill(by, now),
            Stop::Killed { give_up_at, .. } if now >= give_up_at && self.state == JobState::Running => {
                self.drain(None, now);
                None
            }
            _ => self.prompts.tick(now, &mut self.log).or_else(|| self.look(now)),
        };
        self.settle(Some(now));
        order
    }

    fn look(&mut self, now: Instant) -> Option<Order> {
        let can_look = self.can_look_for_filters() && !self.log.is_full();
        if let JobState::Draining { idle_at, cap_at, look: look @ (FilterLook::Due | FilterLook::AtWork), .. } =
            &mut self.state
        {
            let is_due = can_look && now + limits::DRAIN_LOOK_BEFORE >= *idle_at && now < *cap_at;
            return is_due.then(|| {
                *look = FilterLook::Ordered;
                Order::Look
            });
        }
        let look = self.look.filter(|look| now >= look.at && self.state == JobState::Running && self.guard)?;
        self.look = Some(look.next(now));
        Some(Order::Look)
    }

    /// Returns true if there is a guard to look for filters, and one could still write something.
    fn can_look_for_filters(&self) -> bool {
        self.guard && self.stop == Stop::No && !self.open.is_empty()
    }

    /// When silence ends the job. As long as filters may be at work, that is at the cap.
    fn silent_at(&self, idle_at: Instant, cap_at: Instant, look: FilterLook) -> Instant {
        if self.can_look_for_filters() && look != FilterLook::Over { cap_at } else { idle_at.min(cap_at) }
    }

    /// When [`Job::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if let Some(hold) = self.held() {
            return Some(hold.deadline());
        }
        if !self.is_alive() {
            return None;
        }
        let drain = match self.state {
            JobState::Draining { idle_at, cap_at, look, .. } if !self.log.is_full() => {
                let is_due = matches!(look, FilterLook::Due | FilterLook::AtWork) && self.can_look_for_filters();
                let look_at = is_due.then(|| idle_at.checked_sub(limits::DRAIN_LOOK_BEFORE)).flatten();
                Some(look_at.unwrap_or(cap_at).min(self.silent_at(idle_at, cap_at, look)))
            }
            JobState::Draining { cap_at, since, .. } if since >= limits::DRAIN_BYTES => Some(cap_at),
            _ => None,
        };
        let stop = match self.stop {
            Stop::No => None,
            _ if !self.guard && !self.is_reported => None,
            Stop::Terminating { kill_at, .. } => Some(kill_at),
            // As for any other job, the output that is still unread comes before the end.
            Stop::Killed { give_up_at, .. } if !self.is_running() && !self.open.is_empty() => {
                drain.map(|drained| drained.max(give_up_at))
            }
            Stop::Killed { give_up_at, .. } => Some(give_up_at),
        };
        let drain = drain.filter(|_| !self.waits_for_tree());
        let look = self.look.filter(|_| self.state == JobState::Running && self.guard).map(|look| look.at);
        let answer = self.waiting().map(|waiting| waiting.until);
        stop.into_iter().chain(drain).chain(look).chain(answer).min()
    }

    /// Returns true if the stream is open and the log has room.
    #[must_use]
    pub fn wants_output(&self, stream: Stream) -> bool {
        self.open.contains(stream) && !self.log.is_full()
    }

    /// See [`Log::room`].
    #[must_use]
    pub fn room(&self) -> usize {
        self.log.room()
    }

    /// Returns true if it is neither queued nor ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        matches!(self.state, JobState::Running | JobState::Draining { .. })
    }

    /// Returns true from the start until the shell ends.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state == JobState::Running
    }

    /// Returns true if it is alive and was asked to end.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop != Stop::No && self.is_alive()
    }

    /// Returns true once its output is closed. Processes that it left running may live.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, JobState::Ended { .. } | JobState::Over)
    }

    /// Returns true once the log has its last entry.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == JobState::Over
    }

    /// Returns true if it runs in its caller's sandbox, without a guard.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// Returns true until it starts: it waits for its turn, or a person decides on it.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        matches!(self.state, JobState::Queued | JobState::Held(_))
    }

    fn drain(&mut self, exit: Option<Exit>, now: Instant) {
        self.took = self.age(now);
        self.judge_interrupt(now);
        let (idle_at, cap_at) = (now + limits::DRAIN_IDLE, now + limits::DRAIN_MAX);
        self.state = JobState::Draining { exit, idle_at, cap_at, since: 0, look: FilterLook::Due };
    }

    /// A job that was asked to end waits for the end of its whole tree; others do not.
    fn waits_for_tree(&self) -> bool {
        self.guard && !matches!(self.stop, Stop::No)
    }

    /// The one place that decides whether a job has ended. Only `tick` passes the time: the hang-up of one stream must not
    /// decide that another one is silent.
    fn settle(&mut self, time: Option<Instant>) {
        let JobState::Draining { exit, idle_at, cap_at, since, look } = self.state else { return };
        let has_passed = |at: Instant| time.is_some_and(|now| now >= at);
        let gave_up = matches!(self.stop, Stop::Killed { give_up_at, .. } if has_passed(give_up_at));
        // A process that writes without end may keep the log full whenever this is judged. What the shell left in its
        // streams came long before that.
        let is_endless = since >= limits::DRAIN_BYTES && has_passed(cap_at);
        let is_silent = !self.log.is_full() && has_passed(self.silent_at(idle_at, cap_at, look));
        let drained = self.open.is_empty() || is_silent || is_endless;
        if !drained || (self.waits_for_tree() && !gave_up) {
            return;
        }
        if look == FilterLook::AtWork && self.can_look_for_filters() {
            self.log.push(Entry::FilterLeft);
        }
        let by = self.stop.by().or(self.interrupted.map(|_| Stopper::Console));
        let how = match exit {
            Some(exit) => How::Exited(exit),
            None if self.is_reported && by.is_none() => How::Unseen,
            None => How::Lost,
        };
        self.end(how, by);
    }

    fn end(&mut self, how: How, by: Option<Stopper>) {
        self.state = JobState::Ended { is_gone: false };
        // It may live on for days, for what it left running.
        self.prompts = Prompts::default();
        self.log.push(Entry::Ended(End { how, by, queued: self.queued, took: self.took }));
    }
}

impl Default for Job {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
