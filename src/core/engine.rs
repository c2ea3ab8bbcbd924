//! The engine: all jobs, the queue, and the effects that the host has to perform.
//!
//! Every touch of a job goes through one function, which afterwards reconciles what follows from it in one
//! place: orders become effects, ended jobs make room for queued ones, the bytes kept over all logs stay bounded.
//!
//! Invariants: ids grow and are never used again; at most `RUNNING_MAX` jobs are alive; a job is forgotten when it is
//! closed and every cursor has read its log to the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::entry::{Exit, Reason, StartError, Stream, Streams};
use super::job::{Job, Order};
use super::log::{CursorId, Item, Lag};
use crate::limits;

/// A job's name: its number, also in the journal and on the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A reader's position in a job's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The job it reads.
    pub job: JobId,
    id: CursorId,
}

/// What the host has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start this job. Answered with [`Engine::on_started`], [`Engine::on_start_failed`] or [`Engine::retry`].
    Start(JobId),
    /// Give this order to the job's guard.
    Order(JobId, Order),
}

/// All jobs.
#[derive(Debug, Default)]
pub struct Engine {
    jobs: BTreeMap<JobId, Job>,
    queue: VecDeque<JobId>,
    alive: usize,
    starting: BTreeSet<JobId>,
    kept_bytes: usize,
    last: u64,
    effects: VecDeque<Effect>,
    changed: BTreeSet<JobId>,
}

impl Engine {
    /// Takes a job in; `None` when there are too many.
    pub fn submit(&mut self) -> Option<JobId> {
        if self.jobs.len() >= limits::JOBS_MAX {
            return None;
        }
        self.last += 1;
        let id = JobId(self.last);
        self.jobs.insert(id, Job::new());
        self.queue.push_back(id);
        self.start_queued();
        Some(id)
    }

    /// The job was given to a guard. Signals that came before follow as orders.
    pub fn on_started(&mut self, id: JobId, open: Streams, now: Instant) {
        let mut kept = Vec::new();
        self.change(id, |job| {
            kept = job.on_started(open, now);
            None
        });
        self.effects.extend(kept.into_iter().map(|signal| Effect::Order(id, Order::Signal(signal))));
    }

    /// The guard that was given the job died before it began with it, so nothing ran. The host gives it to another one
    /// if it is still alive then.
    pub fn on_never_began(&mut self, id: JobId) {
        self.change(id, |job| {
            job.on_never_began();
            None
        });
    }

    /// The job cannot be started.
    pub fn on_start_failed(&mut self, id: JobId, why: StartError) {
        self.change(id, |job| {
            job.on_start_failed(why);
            None
        });
    }

    /// The job could not be started for want of something that comes back: it keeps its place in the queue, also among
    /// others that were tried with it. The host calls [`Engine::start_queued`] when it is worth another try.
    pub fn retry(&mut self, id: JobId) {
        if self.starting.remove(&id) {
            self.alive -= 1;
            let place = self.queue.partition_point(|&other| other < id);
            self.queue.insert(place, id);
        }
    }

    /// The job wrote something.
    pub fn on_output(&mut self, id: JobId, stream: Stream, bytes: Box<[u8]>, now: Instant) {
        self.change(id, |job| {
            job.on_output(stream, bytes, now);
            None
        });
    }

    /// A group of the job was stopped because it reads the terminal, or changes its modes.
    pub fn on_input_stop(&mut self, id: JobId, reads: bool, program: String, now: Instant) {
        self.change(id, |job| job.on_input_stop(reads, program, now));
    }

    /// The job wrote although nobody reads its output any more.
    pub fn on_broken_pipe(&mut self, id: JobId) {
        self.change(id, |job| job.on_broken_pipe());
    }

    /// Nobody holds this stream of the job any more.
    pub fn on_hangup(&mut self, id: JobId, stream: Stream) {
        self.change(id, |job| {
            job.on_hangup(stream);
            None
        });
    }

    /// The job's shell was reaped.
    pub fn on_exit(&mut self, id: JobId, exit: Exit, now: Instant) {
        self.change(id, |job| {
            job.on_exit(exit, now);
            None
        });
    }

    /// The job's guard is gone.
    pub fn on_guard_gone(&mut self, id: JobId, now: Instant) {
        self.change(id, |job| {
            job.on_guard_gone(now);
            None
        });
    }

    /// Asks the job to end; asked twice it is killed at once.
    pub fn stop(&mut self, id: JobId, reason: Reason, grace: Duration, now: Instant) {
        self.change(id, |job| job.stop(reason, grace, now));
    }

    /// Asks every job to end.
    pub fn stop_all(&mut self, reason: Reason, grace: Duration, now: Instant) {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            self.stop(id, reason, grace, now);
        }
    }

    /// Delivers a signal to the job; see [`Job::signal`].
    pub fn signal(&mut self, id: JobId, signal: u8, is_deadly: bool) {
        self.change(id, |job| job.signal(signal, is_deadly));
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        let due = |job: &Job| job.deadline().is_some_and(|at| at <= now);
        let ids: Vec<JobId> = self.jobs.iter().filter(|(_, job)| due(job)).map(|(&id, _)| id).collect();
        for id in ids {
            self.change(id, |job| job.tick(now));
        }
    }

    /// When [`Engine::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.jobs.values().filter_map(Job::deadline).min()
    }

    /// A cursor at the start of the job's log.
    pub fn attach(&mut self, job: JobId, lag: Lag) -> Option<Cursor> {
        let id = self.jobs.get_mut(&job)?.log.attach(lag);
        Some(Cursor { job, id })
    }

    /// What this cursor reads next.
    #[must_use]
    pub fn next(&self, cursor: Cursor) -> Option<Item<'_>> {
        self.jobs.get(&cursor.job)?.log.next(cursor.id)
    }

    /// Takes what [`Engine::next`] showed.
    pub fn advance(&mut self, cursor: Cursor) {
        self.touch(cursor.job, |job| {
            job.log.advance(cursor.id);
            None
        });
    }

    /// Forgets a cursor.
    pub fn detach(&mut self, cursor: Cursor) {
        self.touch(cursor.job, |job| {
            job.log.detach(cursor.id);
            None
        });
    }

    /// Changes what becomes of a cursor that falls behind.
    pub fn set_lag(&mut self, cursor: Cursor, lag: Lag) {
        self.touch(cursor.job, |job| {
            job.log.set_lag(cursor.id, lag);
            None
        });
    }

    /// A job that is known.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// Every job that is known, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter().map(|(&id, job)| (id, job))
    }

    /// Whether no job is alive or queued.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.alive == 0 && self.queue.is_empty()
    }

    /// The next thing to do. What was stopped before its start is not started any more.
    pub fn next_effect(&mut self) -> Option<Effect> {
        loop {
            match self.effects.pop_front()? {
                Effect::Start(id) if !self.jobs.get(&id).is_some_and(Job::is_queued) => {}
                effect => return Some(effect),
            }
        }
    }

    /// Starts what is queued as far as there is room.
    pub fn start_queued(&mut self) {
        while self.alive < limits::RUNNING_MAX {
            let Some(id) = self.queue.pop_front() else { return };
            if self.jobs.get(&id).is_some_and(Job::is_queued) {
                self.alive += 1;
                self.starting.insert(id);
                self.effects.push_back(Effect::Start(id));
            }
        }
    }

    /// The jobs to which something happened since the last call: their readers have something to read.
    pub fn take_changed(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.changed)
    }

    /// Whether [`Engine::take_changed`] would give any.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Something happens to a job.
    fn change(&mut self, id: JobId, change: impl FnOnce(&mut Job) -> Option<Order>) {
        self.changed.insert(id);
        self.touch(id, change);
    }

    /// The one way to touch a job: a change, or a reader that moves.
    fn touch(&mut self, id: JobId, change: impl FnOnce(&mut Job) -> Option<Order>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let before = job.log.weight();
        let counted = job.is_alive() || self.starting.contains(&id);
        if let Some(order) = change(job) {
            self.effects.push_back(Effect::Order(id, order));
        }
        if !job.is_queued() {
            self.starting.remove(&id);
        }
        self.kept_bytes = self.kept_bytes + job.log.weight() - before;
        let closed = job.is_closed();
        if closed && job.log.weight() == 0 {
            self.jobs.remove(&id);
        }
        if closed && counted {
            self.alive -= 1;
            self.start_queued();
        }
        if self.kept_bytes > limits::LOGS_BYTES {
            self.shed();
        }
    }

    /// Drops what nobody holds, oldest job first, down to three quarters of the bound so that it is rare.
    fn shed(&mut self) {
        for job in self.jobs.values_mut() {
            if self.kept_bytes <= limits::LOGS_BYTES / 4 * 3 {
                return;
            }
            let before = job.log.weight();
            job.log.shed(0);
            self.kept_bytes -= before - job.log.weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::entry::{Entry, Outcome};

    fn started(engine: &mut Engine) -> JobId {
        let id = engine.submit().unwrap();
        engine.attach(id, Lag::Hold).unwrap();
        while let Some(effect) = engine.next_effect() {
            if let Effect::Start(id) = effect {
                engine.on_started(id, Streams::of(&[Stream::Tty]), Instant::now());
            }
        }
        id
    }

    #[test]
    fn a_job_is_forgotten_when_it_is_closed_and_read() {
        let (mut engine, now) = (Engine::default(), Instant::now());
        let id = engine.submit().unwrap();
        let cursor = engine.attach(id, Lag::Hold).unwrap();
        assert_eq!(engine.next_effect(), Some(Effect::Start(id)));
        engine.on_started(id, Streams::of(&[Stream::Tty]), Instant::now());
        engine.on_output(id, Stream::Tty, b"hi".as_slice().into(), now);
        engine.on_hangup(id, Stream::Tty);
        engine.on_exit(id, Exit::Code(0), now);
        assert!(engine.is_idle());
        let mut entries = 0;
        while let Some(item) = engine.next(cursor) {
            entries += 1;
            if let Item::Entry(Entry::Closed { outcome, .. }) = item {
                assert_eq!(*outcome, Outcome::Ended { exit: Exit::Code(0), stopped: None });
            }
            engine.advance(cursor);
        }
        assert_eq!(entries, 3);
        assert!(engine.job(id).is_none());
        assert_eq!(engine.kept_bytes, 0);
    }

    #[test]
    fn beyond_the_bound_jobs_queue_and_start_in_order() {
        let (mut engine, now) = (Engine::default(), Instant::now());
        let ids: Vec<JobId> = (0..limits::RUNNING_MAX + 2).map(|_| started(&mut engine)).collect();
        let waiting = &ids[limits::RUNNING_MAX..];
        assert!(waiting.iter().all(|&id| engine.job(id).unwrap().is_queued()));
        engine.on_exit(ids[5], Exit::Code(0), now);
        engine.on_hangup(ids[5], Stream::Tty);
        assert_eq!(engine.next_effect(), Some(Effect::Start(waiting[0])));
        assert_eq!(engine.next_effect(), None);
        engine.retry(waiting[0]);
        engine.start_queued();
        assert_eq!(engine.next_effect(), Some(Effect::Start(waiting[0])), "it keeps its place");
        engine.stop(waiting[0], Reason::CallerGone, limits::GRACE, now);
        assert_eq!(engine.next_effect(), Some(Effect::Start(waiting[1])), "a stop makes room");
    }

    #[test]
    fn a_job_that_is_stopped_before_its_start_is_not_started() {
        for has_reader in [true, false] {
            let mut engine = Engine::default();
            let id = engine.submit().unwrap();
            let cursor = has_reader.then(|| engine.attach(id, Lag::Hold).unwrap());
            engine.stop(id, Reason::CallerGone, limits::GRACE, Instant::now());
            assert_eq!(engine.next_effect(), None);
            assert_eq!((engine.is_idle(), engine.job(id).is_some()), (true, has_reader));
            if let Some(cursor) = cursor {
                let Some(Item::Entry(Entry::Closed { outcome, .. })) = engine.next(cursor) else {
                    panic!("not closed")
                };
                assert_eq!(*outcome, Outcome::NeverRun(Reason::CallerGone));
            }
        }
    }

    #[test]
    fn jobs_that_could_not_start_are_tried_again_in_order() {
        let mut engine = Engine::default();
        let ids: Vec<JobId> = (0..4).map(|_| engine.submit().unwrap()).collect();
        for _ in 0..3 {
            let tried: Vec<_> = std::iter::from_fn(|| engine.next_effect()).collect();
            assert_eq!(tried, ids.iter().map(|&id| Effect::Start(id)).collect::<Vec<_>>());
            ids.iter().for_each(|&id| engine.retry(id));
            engine.start_queued();
        }
    }

    #[test]
    fn beyond_the_bound_no_job_is_taken_in() {
        let mut engine = Engine::default();
        assert!((0..limits::JOBS_MAX).all(|_| engine.submit().is_some()));
        assert_eq!(engine.submit(), None);
        engine.stop(JobId(limits::RUNNING_MAX as u64 + 1), Reason::CallerGone, limits::GRACE, Instant::now());
        assert!(engine.submit().is_some(), "one that goes makes room");
    }

    /// Runs 300 jobs that write half a log each, with one reader of this kind, and gives the bytes kept.
    fn kept_with(lag: Lag) -> usize {
        let mut engine = Engine::default();
        for _ in 0..300 {
            let id = engine.submit().unwrap();
            engine.attach(id, lag).unwrap();
            while engine.next_effect().is_some() {}
            engine.on_started(id, Streams::of(&[Stream::Tty]), Instant::now());
            engine.on_output(id, Stream::Tty, vec![0; limits::LOG_BYTES / 2].into(), Instant::now());
        }
        engine.kept_bytes
    }

    #[test]
    fn what_is_kept_over_all_logs_is_bounded_where_nobody_holds_it() {
        assert!(kept_with(Lag::Skip) <= limits::LOGS_BYTES);
        assert!(kept_with(Lag::Hold) > limits::LOGS_BYTES, "what callers hold is theirs");
    }
}
