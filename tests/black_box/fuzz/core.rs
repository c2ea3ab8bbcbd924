//! Facts in any order that guards, terminals and callers can bring about, for several jobs at once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rexec_host::core::end::{StartError, Stopper};
use rexec_host::core::engine::{Cursor, Effect, Engine, JobId};
use rexec_host::core::entry::{Entry, Received, Stream, Streams, TerminalWish};
use rexec_host::core::job::Order;
use rexec_host::core::log::{Item, Lag};
use rexec_sh::protocol::process::{Exit, Pid, Signal};

use crate::support::dice::{Dice, rounds};
use crate::support::waiting;

/// What the world knows of a job, and what its readers saw.
#[derive(Debug)]
struct Known {
    guard: bool,
    is_asked_to_start: bool,
    shell_ended: bool,
    open: Vec<Stream>,
    written: u64,
    kills: u32,
    readers: Vec<Seen>,
}

#[derive(Debug)]
struct Seen {
    cursor: Cursor,
    lag: Lag,
    bytes: u64,
    missed: u64,
    ends: u32,
    is_over: bool,
}

struct World<'a> {
    engine: Engine,
    now: Instant,
    jobs: BTreeMap<JobId, Known>,
    /// Something happened since an order was given: the guard may be gone by now, and the host knows that.
    is_late: bool,
    dice: &'a mut Dice,
}

impl World<'_> {
    fn submit(&mut self) {
        let job = self.engine.submit().expect("there are few jobs");
        let mut readers = Vec::new();
        for _ in 0..self.dice.below(4) {
            let lag = [Lag::Hold, Lag::Skip][self.dice.below(2)];
            let cursor = self.engine.attach(job, lag).expect("it was just made");
            readers.push(Seen { cursor, lag, bytes: 0, missed: 0, ends: 0, is_over: false });
        }
        let (guard, is_asked_to_start, shell_ended) = (false, false, false);
        let known = Known { guard, is_asked_to_start, shell_ended, open: Vec::new(), written: 0, kills: 0, readers };
        self.jobs.insert(job, known);
    }

    /// Performs what the engine wants, as the host would.
    fn perform(&mut self) {
        while let Some(effect) = self.engine.next_effect() {
            match effect {
                Effect::Start(job) => {
                    let known = self.jobs.get_mut(&job).expect("only known jobs start");
                    assert!(!known.is_asked_to_start, "{job:?} starts twice");
                    assert!(self.engine.job(job).is_some_and(|job| job.is_queued()), "{job:?} is not queued");
                    match self.dice.below(8) {
                        0 => {
                            let why = StartError { code: 126, problem: "no".to_owned(), hint: String::new() };
                            self.engine.on_start_failed(job, why);
                        }
                        // The host tries again after a while.
                        1 => self.engine.retry(job),
                        _ => {
                            known.is_asked_to_start = true;
                            known.guard = true;
                            let all = [Stream::Tty, Stream::Out, Stream::Err];
                            known.open = all[..1 + self.dice.below(3)].to_vec();
                            self.engine.on_started(job, Duration::ZERO, Streams::of(&known.open), self.now);
                        }
                    }
                }
                Effect::Order(job, order) => {
                    let known = self.jobs.get_mut(&job).expect("only known jobs are ordered about");
                    assert!(known.guard || self.is_late, "{order:?} to a guard that is not there");
                    let is_for_shell = matches!(order, Order::Signal(_) | Order::BreakPipe);
                    assert!(!is_for_shell || !known.shell_ended || self.is_late, "{order:?} after the shell's end");
                    if order == Order::Look && known.shell_ended && self.dice.below(4) > 0 {
                        let has_filter = self.dice.below(2) == 0;
                        self.engine.on_filters_looked_for(job, has_filter, self.now);
                    }
                    known.kills += u32::from(order == Order::Kill);
                    assert!(known.kills <= 1, "killed twice");
                }
            }
        }
    }

    fn read(&mut self, job: JobId, at: usize) -> bool {
        let Some(seen) = self.jobs.get_mut(&job).and_then(|known| known.readers.get_mut(at)) else { return false };
        let Some(item) = self.engine.next(seen.cursor) else { return false };
        assert!(!seen.is_over, "something follows Over");
        match item {
            Item::Missed { bytes } => {
                assert_eq!(seen.lag, Lag::Skip, "who holds missed something");
                seen.missed += bytes;
            }
            Item::Entry(Entry::Output { bytes, .. }) => {
                assert_eq!(seen.ends, 0, "output follows the end");
                seen.bytes += bytes.len() as u64;
            }
            Item::Entry(Entry::Ended(_)) => seen.ends += 1,
            Item::Entry(Entry::Over) => seen.is_over = true,
            Item::Entry(_) => {}
        }
        self.engine.advance(seen.cursor);
        true
    }

    fn end_shell(&mut self, job: JobId) {
        let known = self.jobs.get_mut(&job).expect("it is known");
        if known.guard && !std::mem::replace(&mut known.shell_ended, true) {
            self.engine.on_exit(job, Exit::Code(0), self.now);
        }
    }

    fn end_guard(&mut self, job: JobId) {
        let known = self.jobs.get_mut(&job).expect("it is known");
        if std::mem::replace(&mut known.guard, false) {
            known.shell_ended = true;
            self.engine.on_guard_gone(job, self.now);
        }
    }

    /// The host learns something that may also come behind the end, and forgets a run of which nothing lives.
    fn learn(&mut self, job: JobId, what: usize) {
        match what {
            0 => self.engine.on_unkillable(job, Pid::new(7), "dd".to_owned()),
            1 => self.engine.on_received(job, Received::default()),
            _ if !self.jobs[&job].guard => self.engine.on_gone(job),
            _ => {}
        }
    }

    fn hang_up(&mut self, job: JobId, at: usize) {
        let known = self.jobs.get_mut(&job).expect("it is known");
        if at < known.open.len() {
            let stream = known.open.swap_remove(at);
            self.engine.on_hangup(job, stream);
        }
    }

    fn write(&mut self, job: JobId) {
        let known = self.jobs.get_mut(&job).expect("it is known");
        let Some(&stream) = known.open.first() else { return };
        let Some(state) = self.engine.job(job) else { return };
        if state.wants_output(stream) && !state.has_ended() {
            let length = [1, 100, 5_000, 70_000][self.dice.below(4)];
            known.written += length as u64;
            self.engine.on_output(job, stream, vec![0; length].into(), self.now);
        }
    }

    fn step(&mut self) {
        if self.jobs.is_empty() || (self.jobs.len() < 6 && self.dice.below(12) == 0) {
            self.submit();
        }
        let job = *self.jobs.keys().nth(self.dice.below(self.jobs.len())).expect("there is one");
        let (reader, stream) = (self.dice.below(3), self.dice.below(3));
        match self.dice.below(17) {
            0 => self.end_shell(job),
            1 => self.end_guard(job),
            2 => self.hang_up(job, stream),
            3 => {
                let by = [Stopper::Caller, Stopper::Kill, Stopper::Host][reader];
                self.engine.stop(job, by, Duration::from_millis(200), self.now);
            }
            4 => self.engine.signal(job, Signal::TERM, false),
            5 if self.jobs[&job].guard => {
                let wait = [None, Some(Duration::from_secs(1))][self.dice.below(2)];
                let wish = [TerminalWish::Input, TerminalWish::Modes, TerminalWish::Keys][stream % 3];
                self.engine.on_input_stop(job, wish, "less".to_owned(), wait, self.now);
            }
            6 => self.engine.on_broken_pipe(job),
            7 => self.engine.start_queued(),
            8 => {
                if let Some(seen) = self.jobs.get_mut(&job).and_then(|known| known.readers.get_mut(reader)) {
                    // A reader that held the job back may skip from now on. The reverse would lose output.
                    seen.lag = Lag::Skip;
                    self.engine.set_lag(seen.cursor, Lag::Skip);
                }
            }
            9 => {
                self.now += Duration::from_millis([1, 50, 300, 7_000][self.dice.below(4)]);
                self.engine.tick(self.now);
            }
            10..13 => self.write(job),
            13 => self.learn(job, stream),
            _ => _ = self.read(job, reader),
        }
        self.engine.take_changed();
        // Some things happen in one turn, before anything is performed.
        self.is_late = self.dice.below(3) == 0 || {
            self.perform();
            false
        };
    }

    /// Lets everything come to its end.
    fn finish(&mut self) {
        for _ in 0..100 {
            self.engine.start_queued();
            self.perform();
            for job in self.jobs.keys().copied().collect::<Vec<_>>() {
                self.end_shell(job);
                (0..3).for_each(|_| self.hang_up(job, 0));
                self.end_guard(job);
                self.engine.on_gone(job);
                (0..3).for_each(|at| while self.read(job, at) {});
            }
            self.now += Duration::from_secs(10);
            self.engine.tick(self.now);
        }
        assert!(self.engine.is_idle() && self.engine.deadline().is_none() && self.engine.next_effect().is_none());
        assert_eq!(self.engine.jobs().count(), 0, "jobs stay");
        for (job, known) in &self.jobs {
            for seen in &known.readers {
                assert!(seen.ends == 1 && seen.is_over, "{job:?} {seen:?}");
                assert_eq!(seen.bytes + seen.missed, known.written, "{job:?} {seen:?}");
            }
        }
    }
}

#[test]
fn facts_in_any_order() {
    rounds(waiting::size(400, 5_000) as u64, |dice| {
        let mut world =
            World { engine: Engine::default(), now: Instant::now(), jobs: BTreeMap::new(), is_late: false, dice };
        for _ in 0..world.dice.below(300) {
            world.step();
        }
        world.finish();
    });
}
