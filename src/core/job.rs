//! A job: one command and its life, as a state machine that is told facts and the time.
//!
//! ```text
//! Queued ──started──▶ Running ──exit──▶ Draining ──all streams hung up | silence | DRAIN_MAX──▶ Closed
//!    │                   └───guard gone──▶ Draining (exit unknown) ─────────────────────────────▲
//!    └──start failed | stopped──────────────────────────────────────────────────────────────────┘
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
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Queued,
    Running,
    Draining { exit: Option<Exit>, idle_at: Instant, cap_at: Instant },
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
    input_stops: u32,
    look: Option<Look>,
    started: Option<Instant>,
    took: Duration,
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
            input_stops: 0,
            look: None,
            started: None,
            took: Duration::ZERO,
            log: Log::new(limits::LOG_BYTES),
        }
    }

    /// The command was given to a guard, with these streams open.
    pub fn on_started(&mut self, open: Streams, now: Instant) {
        debug_assert_eq!(self.state, State::Queued, "a job starts once");
        self.state = State::Running;
        self.open = open;
        self.guard = true;
        self.started = Some(now);
        self.look = Some(Look::new(limits::LOOK_AFTER, now));
    }

    /// The command could not be started, now or after it was given to a guard.
    pub fn on_start_failed(&mut self, why: StartError) {
        if self.state != State::Closed {
            self.close(Outcome::NotStarted(why));
        }
    }

    /// The command wrote something.
    pub fn on_output(&mut self, stream: Stream, bytes: Box<[u8]>, now: Instant) {
        if self.state == State::Closed {
            return;
        }
        if let State::Draining { idle_at, .. } = &mut self.state {
            *idle_at = now + limits::DRAIN_IDLE;
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
        if reads {
            self.input_stops += 1;
            if self.input_stops == 1 {
                self.log.push(Entry::WantedInput { program });
            }
        }
        Some(if reads && self.input_stops >= limits::INPUT_STOPS_MAX { Order::HangUp } else { Order::Lend })
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

    /// A signal for the command, if its shell still lives.
    #[must_use]
    pub fn signal(&self, signal: u8) -> Option<Order> {
        (self.state == State::Running && self.guard).then_some(Order::Signal(signal))
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
        let stop = match self.stop {
            Stop::No => None,
            _ if !self.guard => None,
            Stop::Terminating { kill_at, .. } => Some(kill_at),
            Stop::Killed { give_up_at, .. } => Some(give_up_at),
        };
        let drain = match self.state {
            State::Draining { idle_at, cap_at, .. } if !self.log.is_full() && !self.waits_for_tree() => {
                Some(idle_at.min(cap_at))
            }
            _ => None,
        };
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
        self.state = State::Draining { exit, idle_at: now + limits::DRAIN_IDLE, cap_at: now + limits::DRAIN_MAX };
    }

    /// A stopped job waits for the end of its whole tree, others do not.
    fn waits_for_tree(&self) -> bool {
        self.guard && !matches!(self.stop, Stop::No)
    }

    /// The one place that decides whether a job is over. Only `tick` passes the time: what one stream still holds must
    /// not be judged because another one hung up.
    fn settle(&mut self, time: Option<Instant>) {
        let State::Draining { exit, idle_at, cap_at } = self.state else { return };
        let has_passed = |at: Instant| time.is_some_and(|now| now >= at);
        let gave_up = matches!(self.stop, Stop::Killed { give_up_at, .. } if has_passed(give_up_at));
        let drained = self.open.is_empty() || (!self.log.is_full() && has_passed(idle_at.min(cap_at)));
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
mod tests {
    use super::*;
    use crate::core::log::{Item, Lag};

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fact {
        Output,
        HangUp,
        Exit,
        Gone,
        Stop,
        Time,
    }

    const STEPS: [Fact; 8] =
        [Fact::Output, Fact::HangUp, Fact::Exit, Fact::Gone, Fact::Stop, Fact::Stop, Fact::Time, Fact::Time];

    /// Calls `visit` with every order of the steps.
    fn permutations(rest: &mut Vec<Fact>, order: &mut Vec<Fact>, visit: &mut impl FnMut(&[Fact])) {
        if rest.is_empty() {
            return visit(order);
        }
        for n in 0..rest.len() {
            if rest[..n].contains(&rest[n]) {
                continue;
            }
            let fact = rest.remove(n);
            order.push(fact);
            permutations(rest, order, visit);
            order.pop();
            rest.insert(n, fact);
        }
    }

    struct Run {
        job: Job,
        now: Instant,
        exited: bool,
        gone: bool,
        kills: u32,
    }

    impl Run {
        fn new() -> Self {
            let mut job = Job::new();
            job.log.attach(Lag::Hold);
            job.on_started(Streams::of(&[Stream::Tty]), Instant::now());
            Self { job, now: Instant::now(), exited: false, gone: false, kills: 0 }
        }

        fn check(&mut self, order: Option<Order>) {
            assert!(order.is_none() || !self.gone, "{order:?} after the guard was gone");
            assert!(!matches!(order, Some(Order::Signal(_))) || !self.exited, "a signal after the reap");
            self.kills += u32::from(order == Some(Order::Kill));
        }

        fn apply(&mut self, fact: Fact) {
            let order = match fact {
                Fact::Output => {
                    self.job.on_output(Stream::Tty, b"x".as_slice().into(), self.now);
                    None
                }
                Fact::HangUp => {
                    self.job.on_hangup(Stream::Tty);
                    None
                }
                // A guard that is gone reports nothing.
                Fact::Exit if self.gone => None,
                Fact::Exit => {
                    self.exited = true;
                    self.job.on_exit(Exit::Code(3), self.now);
                    None
                }
                Fact::Gone => {
                    self.gone = true;
                    self.job.on_guard_gone(self.now);
                    None
                }
                Fact::Stop => self.job.stop(Reason::Asked, Duration::from_millis(200), self.now),
                Fact::Time => {
                    self.now += Duration::from_millis(300);
                    self.job.tick(self.now)
                }
            };
            self.check(order);
            let signal = self.job.signal(15);
            self.check(signal);
        }

        fn closes(&mut self) -> usize {
            let id = self.job.log.attach(Lag::Skip);
            let (mut closes, mut last) = (0, false);
            while let Some(item) = self.job.log.next(id) {
                last = matches!(item, Item::Entry(Entry::Closed { .. }));
                closes += usize::from(last);
                self.job.log.advance(id);
            }
            assert!(closes == 0 || last, "Closed is not the last entry");
            closes
        }
    }

    #[test]
    fn in_every_order_of_facts_a_job_closes_once_and_orders_nothing_too_late() {
        let mut orders = 0;
        permutations(&mut STEPS.to_vec(), &mut Vec::new(), &mut |order| {
            orders += 1;
            for length in 0..=order.len() {
                let mut run = Run::new();
                order[..length].iter().for_each(|&fact| run.apply(fact));
                assert!(run.closes() <= 1, "{order:?}");
                if length < order.len() {
                    continue;
                }
                assert_eq!(run.closes(), 1, "not closed after {order:?}: {:?}", run.job.state);
                assert_eq!(run.job.deadline(), None, "a closed job waits for nothing: {order:?}");
                assert!(run.kills <= 1, "{order:?}");
            }
        });
        assert_eq!(orders, 8 * 7 * 6 * 5 * 4 * 3 * 2 / 4);
    }

    #[test]
    fn the_hang_up_of_one_stream_judges_no_other() {
        let mut job = Job::new();
        job.log.attach(Lag::Hold);
        let now = Instant::now();
        job.on_started(Streams::of(&[Stream::Tty, Stream::Out]), now);
        job.on_exit(Exit::Code(0), now);
        // For so long the log was full, and has room now: the pipe still holds data that nobody could read.
        let later = now + Duration::from_secs(3);
        job.on_hangup(Stream::Tty);
        assert!(!job.is_closed());
        job.on_output(Stream::Out, b"late".as_slice().into(), later);
        assert_eq!(job.tick(later), None);
        assert!(job.is_closed(), "what came after the cap is still given, and then it is over");
    }

    #[test]
    fn a_job_without_stop_does_not_wait_for_its_guard() {
        let mut run = Run::new();
        run.apply(Fact::Exit);
        assert!(!run.job.is_closed());
        run.apply(Fact::HangUp);
        assert!(run.job.is_closed());
    }

    #[test]
    fn a_hang_up_before_the_exit_is_not_the_end() {
        let mut run = Run::new();
        run.apply(Fact::HangUp);
        (0..50).for_each(|_| run.apply(Fact::Time));
        assert!(run.job.is_running());
        run.apply(Fact::Exit);
        assert!(run.job.is_closed());
    }

    #[test]
    fn a_straggler_delays_the_end_by_its_silence_and_never_beyond_the_cap() {
        let mut run = Run::new();
        run.apply(Fact::Exit);
        for n in 0..5 {
            run.now += limits::DRAIN_IDLE - Duration::from_millis(10);
            run.apply(Fact::Output);
            assert_eq!(run.job.tick(run.now), None);
            assert!(!run.job.is_closed(), "output {n} starts the silence afresh");
        }
        run.now += limits::DRAIN_IDLE;
        assert_eq!(run.job.deadline().map(|at| at <= run.now), Some(true));
        assert_eq!(run.job.tick(run.now), None);
        assert!(run.job.is_closed());
    }

    #[test]
    fn the_drain_does_not_run_while_the_log_is_full() {
        let mut job = Job::new();
        let reader = job.log.attach(Lag::Hold);
        let now = Instant::now();
        job.on_started(Streams::of(&[Stream::Tty]), now);
        job.on_output(Stream::Tty, vec![0; limits::LOG_BYTES].into(), now);
        job.on_exit(Exit::Code(0), now);
        assert!(!job.wants_output(Stream::Tty));
        assert_eq!(job.deadline(), None);
        assert_eq!(job.tick(now + Duration::from_secs(5)), None);
        assert!(!job.is_closed(), "the tail would be cut");
        job.log.advance(reader);
        assert!(job.wants_output(Stream::Tty) && job.deadline().is_some());
    }

    #[test]
    fn a_stop_kills_after_the_grace_and_a_second_one_at_once() {
        let mut run = Run::new();
        assert_eq!(run.job.stop(Reason::Asked, limits::GRACE, run.now), Some(Order::Terminate));
        assert!(run.job.deadline().is_some_and(|at| at <= run.now + limits::GRACE));
        assert_eq!(run.job.tick(run.now + limits::GRACE), Some(Order::Kill));
        let mut run = Run::new();
        assert_eq!(run.job.stop(Reason::Asked, limits::GRACE, run.now), Some(Order::Terminate));
        assert_eq!(run.job.stop(Reason::Shutdown, limits::GRACE, run.now), Some(Order::Kill));
        assert_eq!(run.job.stop(Reason::Shutdown, limits::GRACE, run.now), None);
    }

    #[test]
    fn a_stopped_job_closes_when_its_tree_is_dead_and_not_before() {
        let mut run = Run::new();
        run.apply(Fact::Stop);
        run.apply(Fact::Exit);
        run.apply(Fact::HangUp);
        assert!(!run.job.is_closed(), "a daemon of it may still live");
        run.apply(Fact::Gone);
        assert!(run.job.is_closed());
    }

    #[test]
    fn a_tree_that_cannot_be_killed_is_given_up() {
        let mut run = Run::new();
        run.apply(Fact::Stop);
        run.apply(Fact::Stop);
        run.now += limits::KILL_TIMEOUT;
        assert_eq!(run.job.tick(run.now), None);
        run.now += limits::DRAIN_MAX;
        assert_eq!(run.job.tick(run.now), None);
        assert!(run.job.is_closed());
    }

    #[test]
    fn a_reader_of_the_terminal_gets_end_of_file_and_is_hung_up_at_its_fifth_stop() {
        let mut run = Run::new();
        for _ in 0..100 {
            assert_eq!(run.job.on_input_stop(false, "stty".into(), run.now), Some(Order::Lend), "modes are no reading");
        }
        for _ in 1..limits::INPUT_STOPS_MAX {
            assert_eq!(run.job.on_input_stop(true, "less".into(), run.now), Some(Order::Lend));
        }
        assert_eq!(run.job.on_input_stop(true, "less".into(), run.now), Some(Order::HangUp));
        let entries = std::iter::from_fn(|| {
            let id = run.job.log.attach(Lag::Skip);
            run.job.log.next(id).is_some().then(|| run.job.log.advance(id))
        });
        assert!(entries.take(3).count() >= 1, "it is told once");
    }

    #[test]
    fn a_silent_command_is_looked_through_at_doubling_intervals() {
        let mut run = Run::new();
        let mut looks = Vec::new();
        let start = run.now;
        while run.now < start + Duration::from_secs(20) {
            run.now += Duration::from_millis(100);
            if run.job.tick(run.now) == Some(Order::Look) {
                looks.push((run.now - start).as_millis() / 100);
            }
        }
        assert_eq!(looks, [5, 15, 35, 75, 125, 175], "tenths of a second");
        run.apply(Fact::Output);
        assert_eq!(run.job.deadline(), Some(run.now + limits::LOOK_AFTER), "output starts it afresh");
        run.apply(Fact::Exit);
        run.apply(Fact::HangUp);
        assert_eq!(run.job.deadline(), None);
    }

    #[test]
    fn after_a_stop_a_look_comes_soon_and_output_puts_it_off_for_a_while_only() {
        let mut run = Run::new();
        let start = run.now;
        for _ in 0..100 {
            run.now += Duration::from_millis(60);
            run.apply(Fact::Output);
            let order = run.job.tick(run.now);
            assert_eq!(order.is_some(), order == Some(Order::Look));
            if order.is_some() {
                break;
            }
        }
        let waited = run.now - start;
        assert!(waited >= limits::LOOK_EVERY_MAX && waited < limits::LOOK_EVERY_MAX + Duration::from_millis(120));
        assert_eq!(run.job.on_input_stop(true, "less".into(), run.now), Some(Order::Lend));
        assert_eq!(run.job.deadline(), Some(run.now + limits::LOOK_AGAIN));
        run.apply(Fact::Output);
        assert_eq!(run.job.deadline(), Some(run.now + limits::LOOK_AGAIN), "the next redraw does not slow it down");
    }

    #[test]
    fn a_stop_before_the_start_closes_without_one() {
        let mut job = Job::new();
        job.log.attach(Lag::Hold);
        assert_eq!(job.stop(Reason::CallerGone, limits::GRACE, Instant::now()), None);
        assert!(job.is_closed());
    }
}
