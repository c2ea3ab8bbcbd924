//! A job: one command and its life, as a state machine that is told facts and the time.
//!
//! ```text
//! Queued ──started──▶ Running ──exit──▶ Draining ──all streams hung up | silence | DRAIN_MAX──▶ Closed
//!    │                   └───guard gone──▶ Draining (exit unknown) ─────────────────────────────▲
//!    └──start failed | stopped | signalled──────────────────────────────────────────────────────┘
//! while Running or Draining:  stop ─▶ Terminating{kill_at} ── stop | kill_at ─▶ Killed{give_up_at}
//! ```
//!
//! Three facts come from outside in any order: the shell's exit, the hang-up of each stream, the end of the guard
//! (which stays until the command's tree is empty). Invariants:
//!
//! * a job closes exactly once, and `Closed` is the last entry of its log;
//! * a job that was asked to stop closes only when its guard is gone or the hunt was given up: its tree is dead;
//! * orders to the guard are answered only while the guard lives, signals for the shell only until its exit;
//! * silence is counted from the last output, and not while the log is full, because then it is we who do not read; and
//!   it is judged by `tick` alone, which comes after everything that can be read was read.

use std::time::{Duration, Instant};

use super::entry::{Entry, Exit, Outcome, Reason, StartError, Stream, Streams};
use super::log::Log;
use crate::limits;

/// What a guard is told to do. Only guards signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Deliver this signal to the shell's process group.
    Signal(u8),
    /// Continue and terminate the shell's process group.
    Terminate,
    /// Kill the whole tree, until there is none.
    Kill,
    /// End of file was typed: let the stopped group have the foreground for a slice.
    Lend,
    /// The stopped group asked for input too often: hang it up.
    HangUp,
    /// Nobody reads the output any more: SIGPIPE to who writes it.
    BreakPipe,
    /// It has been silent for a while: look for processes below that are stopped at the terminal.
    Look,
    /// The caller has its result and would now kill what is left of the shell's group.
    KillGroup,
    /// The caller goes on after a stop, in the foreground of its terminal or not: so does the command.
    Resume { foreground: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Queued,
    Running,
    /// So many bytes came since the exit.
    Draining {
        exit: Option<Exit>,
        idle_at: Instant,
        cap_at: Instant,
        since: usize,
    },
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    Terminating { reason: Reason, kill_at: Instant },
    Killed { reason: Reason, give_up_at: Instant },
}

impl Stop {
    fn reason(self) -> Option<Reason> {
        match self {
            Self::No => None,
            Self::Terminating { reason, .. } | Self::Killed { reason, .. } => Some(reason),
        }
    }
}

/// When the guard is to look through the command's tree.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    /// From there to the next one.
    every: Duration,
    /// How much silence calls for one.
    after: Duration,
    /// When it is due in spite of all output.
    latest: Instant,
}

impl Look {
    fn new(after: Duration, now: Instant) -> Self {
        Self { at: now + after, every: after, after, latest: now + limits::LOOK_EVERY_MAX }
    }

    fn put_off(&mut self, now: Instant) {
        self.at = self.latest.min(now + self.after);
        self.every = self.after;
    }

    fn next(self, now: Instant) -> Self {
        let every = (self.every * 2).min(limits::LOOK_EVERY_MAX);
        Self { at: now + every, every, latest: now + limits::LOOK_EVERY_MAX, ..self }
    }
}

/// One command and its life.
#[derive(Debug)]
pub struct Job {
    state: State,
    stop: Stop,
    open: Streams,
    guard: bool,
    /// A caller is told once that its command asks.
    has_asked: bool,
    /// Since the last hang-up.
    input_stops: u32,
    look: Option<Look>,
    started: Option<Instant>,
    took: Duration,
    /// Signals that came before the start, in order; each number once.
    kept: Vec<u8>,
    /// What happened, for everybody who reads along.
    pub log: Log,
}

impl Job {
    /// A job that waits for its start.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Queued,
            stop: Stop::No,
            open: Streams::default(),
            guard: false,
            has_asked: false,
            input_stops: 0,
            look: None,
            started: None,
            took: Duration::ZERO,
            kept: Vec::new(),
            log: Log::new(limits::LOG_BYTES),
        }
    }

    /// The command was given to a guard, with these streams open; returns the signals that came before.
    #[must_use]
    pub fn on_started(&mut self, open: Streams, now: Instant) -> Vec<u8> {
        debug_assert_eq!(self.state, State::Queued, "a job starts once");
        self.state = State::Running;
        self.open = open;
        self.guard = true;
        self.started = Some(now);
        self.look = Some(Look::new(limits::LOOK_AFTER, now));
        std::mem::take(&mut self.kept)
    }

    /// The command could not be started, now or after it was given to a guard.
    pub fn on_start_failed(&mut self, why: StartError) {
        if self.state != State::Closed {
            self.close(Outcome::NotStarted(why));
        }
    }

    /// The guard that was given the command died before it began with it: nothing ran. A job that was asked to stop is
    /// over; any other is given to another guard.
    pub fn on_never_began(&mut self) {
        if let (true, Some(reason)) = (self.is_alive(), self.stop.reason()) {
            self.close(Outcome::NeverRun(reason));
        }
    }

    /// The command wrote something.
    pub fn on_output(&mut self, stream: Stream, bytes: Box<[u8]>, now: Instant) {
        if self.state == State::Closed {
            return;
        }
        if let State::Draining { idle_at, since, .. } = &mut self.state {
            *idle_at = now + limits::DRAIN_IDLE;
            *since = since.saturating_add(bytes.len());
        }
        if let Some(look) = &mut self.look {
            look.put_off(now);
        }
        self.log.push(Entry::Output { stream, bytes });
    }

    /// A group of the command was stopped because it reads the terminal, or only changes its modes. Nobody is there to
    /// answer: it gets end of file, and is hung up when it asks too often. Changing modes is never held against it.
    #[must_use]
    pub fn on_input_stop(&mut self, reads: bool, program: String, now: Instant) -> Option<Order> {
        if !self.guard || !self.is_alive() {
            return None;
        }
        self.look = Some(Look::new(limits::LOOK_AGAIN, now));
        if !reads {
            return Some(Order::Lend);
        }
        if !self.has_asked {
            self.has_asked = true;
            self.log.push(Entry::WantedInput { program });
        }
        self.input_stops += 1;
        if self.input_stops < limits::INPUT_STOPS_MAX {
            return Some(Order::Lend);
        }
        // Who asks next may be another process, which takes the end of file.
        self.input_stops = 0;
        Some(Order::HangUp)
    }

    /// The command wrote although nobody reads its output any more.
    #[must_use]
    pub fn on_broken_pipe(&self) -> Option<Order> {
        (self.state == State::Running && self.guard).then_some(Order::BreakPipe)
    }

    /// Nobody holds this stream open any more.
    pub fn on_hangup(&mut self, stream: Stream) {
        self.open.remove(stream);
        self.settle(None);
    }

    /// The shell was reaped.
    pub fn on_exit(&mut self, exit: Exit, now: Instant) {
        if self.state == State::Running {
            self.log.push(Entry::Exited { exit });
            self.drain(Some(exit), now);
            self.settle(None);
        }
    }

    /// The guard is gone: the tree is empty, or the guard was killed.
    pub fn on_guard_gone(&mut self, now: Instant) {
        self.guard = false;
        if self.state == State::Running {
            self.drain(None, now);
        }
        self.settle(None);
    }

    /// Asks the job to end; the second time it is killed at once.
    #[must_use]
    pub fn stop(&mut self, reason: Reason, grace: Duration, now: Instant) -> Option<Order> {
        match (&self.state, self.stop) {
            (State::Closed, _) | (_, Stop::Killed { .. }) => None,
            (State::Queued, _) => {
                self.close(Outcome::NeverRun(reason));
                None
            }
            (_, Stop::Terminating { reason, .. }) => self.kill(reason, now),
            (_, Stop::No) => {
                self.log.push(Entry::Stopping { reason });
                self.stop = Stop::Terminating { reason, kill_at: now + grace };
                self.settle(None);
                self.guard.then_some(Order::Terminate)
            }
        }
    }

    /// A signal for the command, if its shell still lives. One that comes before the start and `is_deadly` to a shell that
    /// has just begun ends the job as it would end that shell; any other waits for it.
    #[must_use]
    pub fn signal(&mut self, signal: u8, is_deadly: bool) -> Option<Order> {
        match self.state {
            State::Running if self.guard => return Some(Order::Signal(signal)),
            State::Queued if is_deadly => {
                self.close(Outcome::Ended { exit: Exit::Signal(signal), stopped: None });
            }
            State::Queued => {
                self.kept.retain(|&kept| kept != signal);
                self.kept.push(signal);
            }
            _ => {}
        }
        None
    }

    /// Time has passed.
    #[must_use]
    pub fn tick(&mut self, now: Instant) -> Option<Order> {
        let order = match self.stop {
            Stop::Terminating { reason, kill_at } if now >= kill_at && self.is_alive() => self.kill(reason, now),
            Stop::Killed { give_up_at, .. } if now >= give_up_at && self.state == State::Running => {
                self.drain(None, now);
                None
            }
            _ => self.look(now),
        };
        self.settle(Some(now));
        order
    }

    /// Stops of its own children are reported to a guard; those below it has to look for.
    fn look(&mut self, now: Instant) -> Option<Order> {
        let look = self.look.filter(|look| now >= look.at && self.state == State::Running && self.guard)?;
        self.look = Some(look.next(now));
        Some(Order::Look)
    }

    /// When [`Job::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if !self.is_alive() {
            return None;
        }
        let drain = match self.state {
            State::Draining { idle_at, cap_at, .. } if !self.log.is_full() => Some(idle_at.min(cap_at)),
            State::Draining { cap_at, since, .. } if since >= limits::DRAIN_BYTES => Some(cap_at),
            _ => None,
        };
        let stop = match self.stop {
            Stop::No => None,
            _ if !self.guard => None,
            Stop::Terminating { kill_at, .. } => Some(kill_at),
            // What is still to be read comes before the end, as for any other job.
            Stop::Killed { give_up_at, .. } if !self.is_running() && !self.open.is_empty() => {
                drain.map(|drained| drained.max(give_up_at))
            }
            Stop::Killed { give_up_at, .. } => Some(give_up_at),
        };
        let drain = drain.filter(|_| !self.waits_for_tree());
        let look = self.look.filter(|_| self.state == State::Running && self.guard).map(|look| look.at);
        stop.into_iter().chain(drain).chain(look).min()
    }

    /// Whether this stream is to be read.
    #[must_use]
    pub fn wants_output(&self, stream: Stream) -> bool {
        self.open.contains(stream) && !self.log.is_full()
    }

    /// Whether it is neither queued nor closed.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        matches!(self.state, State::Running | State::Draining { .. })
    }

    /// Whether its shell has not ended yet, as far as is known.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Whether it was asked to end.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop != Stop::No && self.is_alive()
    }

    /// When what was terminated is killed, if that is still to come.
    #[must_use]
    pub fn killed_at(&self) -> Option<Instant> {
        match self.stop {
            Stop::Terminating { kill_at, .. } if self.is_alive() => Some(kill_at),
            _ => None,
        }
    }

    /// Whether nothing more happens to it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether it waits for its start.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.state == State::Queued
    }

    fn kill(&mut self, reason: Reason, now: Instant) -> Option<Order> {
        self.stop = Stop::Killed { reason, give_up_at: now + limits::KILL_TIMEOUT };
        self.guard.then_some(Order::Kill)
    }

    fn drain(&mut self, exit: Option<Exit>, now: Instant) {
        self.took = self.started.map_or(Duration::ZERO, |started| now.saturating_duration_since(started));
        self.state =
            State::Draining { exit, idle_at: now + limits::DRAIN_IDLE, cap_at: now + limits::DRAIN_MAX, since: 0 };
    }

    /// A stopped job waits for the end of its whole tree, others do not.
    fn waits_for_tree(&self) -> bool {
        self.guard && !matches!(self.stop, Stop::No)
    }

    /// The one place that decides whether a job is over. Only `tick` passes the time: what one stream still holds must
    /// not be judged because another one hung up.
    fn settle(&mut self, time: Option<Instant>) {
        let State::Draining { exit, idle_at, cap_at, since } = self.state else { return };
        let has_passed = |at: Instant| time.is_some_and(|now| now >= at);
        let gave_up = matches!(self.stop, Stop::Killed { give_up_at, .. } if has_passed(give_up_at));
        // Somebody who writes without end may keep the log full at every look; what the shell has left in its streams
        // came long before.
        let is_endless = since >= limits::DRAIN_BYTES && has_passed(cap_at);
        let is_silent = !self.log.is_full() && has_passed(idle_at.min(cap_at));
        let drained = self.open.is_empty() || is_silent || is_endless;
        if !drained || (self.waits_for_tree() && !gave_up) {
            return;
        }
        let stopped = self.stop.reason();
        self.close(match exit {
            Some(exit) => Outcome::Ended { exit, stopped },
            None => Outcome::Lost { stopped },
        });
    }

    fn close(&mut self, outcome: Outcome) {
        self.state = State::Closed;
        self.log.push(Entry::Closed { outcome, took: self.took });
    }
}

impl Default for Job {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
