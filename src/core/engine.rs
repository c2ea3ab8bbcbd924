//! The engine: all jobs, the queue, and the effects that the host has to perform.
//!
//! Every change of a job goes through `Engine::touch`, which draws all the consequences in one place: a job that
//! has ended makes room for a queued one, a job of which nothing lives gets its last entry, and the bytes kept over all logs stay bounded. Orders to guards become
//! effects.
//!
//! Invariants: ids grow and are never used again; at most `RUNNING_MAX` jobs are alive besides those that are apart; a
//! job is forgotten when it is over and every cursor has read its log to the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::end::{Refusal, StartError, Stopper};
use super::entry::{
    Decision, DestroyedFiles, Entry, Judgement, KeptFiles, LeftProcess, PortHeld, Received, Stream, Streams,
    TerminalWish, Typed,
};
use super::job::{Hold, Job, Order};
use super::log::{CursorId, Item, Lag, Taken};
use crate::limits;
use rexec_sh::protocol::process::{Exit, Pid, Signal};

/// The number of a job, as the journal and the console show it. The first job is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A reader of a job's log. [`Engine::next`] and [`Engine::advance`] move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub job: JobId,
    id: CursorId,
}

/// An action that the host has to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start this job. Answered with [`Engine::on_started`], [`Engine::on_start_failed`] or [`Engine::retry`].
    Start(JobId),
    /// Give this order to the job's guard.
    Order(JobId, Order),
}

/// All jobs, the queue, and the effects that the host has not performed yet.
#[derive(Debug, Default)]
pub struct Engine {
    jobs: BTreeMap<JobId, Job>,
    /// The jobs that wait for room, lowest number first.
    queue: VecDeque<JobId>,
    alive: usize,
    /// Jobs that are alive and do not count for `RUNNING_MAX`.
    apart: BTreeSet<JobId>,
    /// Jobs that do not count and wait for another try. They need no room.
    apart_queue: BTreeSet<JobId>,
    /// Jobs on which the person's rules or that person decide before they are queued. True for those that will not count.
    held: BTreeMap<JobId, bool>,
    starting: BTreeSet<JobId>,
    kept_bytes: usize,
    last: u64,
    effects: VecDeque<Effect>,
    changed: BTreeSet<JobId>,
}

impl Engine {
    /// Queues a new job. `None` if there are `JOBS_MAX` already.
    pub fn submit(&mut self) -> Option<JobId> {
        let id = self.add(Job::new())?;
        self.queue.push_back(id);
        self.start_queued();
        Some(id)
    }

    /// Adds a job that is not queued before the person's rules, or that person, have allowed it. [`Engine::on_judged`]
    /// follows. `None` if there are `JOBS_MAX` already.
    pub fn submit_held(&mut self) -> Option<JobId> {
        let id = self.add(Job::new())?;
        self.held.insert(id, false);
        Some(id)
    }

    fn add(&mut self, job: Job) -> Option<JobId> {
        if self.is_full() {
            return None;
        }
        self.last += 1;
        let id = JobId(self.last);
        self.jobs.insert(id, job);
        Some(id)
    }

    /// Makes the next job's number higher than this one.
    pub fn continue_after(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    /// Adds a job that runs in its caller's sandbox. It takes no room from those that run here. `None` if there are
    /// `JOBS_MAX` already.
    pub fn submit_reported(&mut self, now: Instant) -> Option<JobId> {
        self.add(Job::reported(now))
    }

    /// Returns true if there are `JOBS_MAX`, without those that have ended and that nobody reads.
    fn is_full(&self) -> bool {
        let counts = |job: &&Job| !job.has_ended() || job.log.weight() > 0;
        self.jobs.len() >= limits::JOBS_MAX && self.jobs.values().filter(counts).count() >= limits::JOBS_MAX
    }

    /// The job wrote this many bytes more, which were not reported.
    pub fn on_unreported(&mut self, id: JobId, bytes: u64) {
        self.tell(id, |job| job.on_unreported(bytes));
    }

    /// A guard has got the job, which waited for the time `queued`. Orders follow for the signals that came before.
    pub fn on_started(&mut self, id: JobId, queued: Duration, open: Streams, now: Instant) {
        let kept = self.tell(id, |job| job.on_started(queued, open, now)).unwrap_or_default();
        self.effects.extend(kept.into_iter().map(|signal| Effect::Order(id, Order::Signal(signal))));
    }

    /// The job's guard died before it began, so nothing ran. If the job is still alive afterwards, the host gives it to
    /// another guard.
    pub fn on_never_began(&mut self, id: JobId) {
        self.tell(id, |job| job.on_never_began());
    }

    pub fn on_start_failed(&mut self, id: JobId, why: StartError) {
        self.tell(id, |job| job.on_start_failed(why));
    }

    /// The job could not be started because something was short that will be free again. It keeps its place in the
    /// queue, also among jobs that were tried together with it. The host calls [`Engine::start_queued`] when another
    /// try is worthwhile.
    pub fn retry(&mut self, id: JobId) {
        if self.starting.remove(&id) {
            self.alive -= 1;
            if self.apart.remove(&id) {
                self.apart_queue.insert(id);
                return;
            }
            self.enqueue(id);
        }
    }

    pub fn on_output(&mut self, id: JobId, stream: Stream, bytes: Box<[u8]>, now: Instant) {
        self.tell(id, |job| job.on_output(stream, bytes, now));
    }

    pub fn on_resize(&mut self, id: JobId, rows: u16, cols: u16, now: Instant) {
        self.tell(id, |job| job.on_resize(rows, cols, now));
    }

    /// A process group of the job was stopped because it read the terminal (`reads`) or changed its modes. A group that
    /// reads waits for a person's answer, for the time `wait`; without one, it gets end of file.
    pub fn on_input_stop(
        &mut self,
        id: JobId,
        wish: TerminalWish,
        program: String,
        wait: Option<Duration>,
        now: Instant,
    ) {
        self.order(id, |job| job.on_input_stop(wish, program, wait, now));
    }

    /// Gives the job's terminal up when nobody answers at it: nothing else goes through it.
    pub fn give_up_unanswered(&mut self, id: JobId) {
        self.tell(id, Job::give_up_unanswered);
    }

    /// The process group of the job that waited for an answer has ended.
    pub fn on_asker_gone(&mut self, id: JobId) {
        self.tell(id, Job::on_asker_gone);
    }

    /// A person answers the job's prompt, or attends to it; see [`Job::answer`].
    pub fn answer(&mut self, id: JobId) {
        self.order(id, Job::answer);
    }

    /// A person has ended a line for the job.
    pub fn on_line_typed(&mut self, id: JobId) {
        self.tell(id, Job::on_line_typed);
    }

    pub fn on_answered(&mut self, id: JobId, typed: Typed) {
        self.tell(id, |job| job.on_answered(typed));
    }

    /// The person who answers the job's prompt leaves.
    pub fn leave(&mut self, id: JobId) {
        self.order(id, Job::leave);
    }

    /// The job wrote, but its output has no reader any more.
    pub fn on_broken_pipe(&mut self, id: JobId) {
        self.order(id, |job| job.on_broken_pipe());
    }

    pub fn on_secret_echo(&mut self, id: JobId, stream: Stream, bytes: Box<[u8]>, now: Instant) {
        self.tell(id, |job| job.on_secret_echo(stream, bytes, now));
    }

    /// No process holds this stream of the job open any more.
    pub fn on_hangup(&mut self, id: JobId, stream: Stream) {
        self.tell(id, |job| job.on_hangup(stream));
    }

    /// The person's rules have judged the job; see [`Job::on_judged`]. `None` if they allow all of it. A job of
    /// [`Engine::submit_held`] that they neither refuse nor hold is queued.
    pub fn on_judged(&mut self, id: JobId, judgement: Option<Judgement>, now: Instant) {
        if let Some(judgement) = judgement {
            self.tell(id, |job| job.on_judged(judgement, now));
        }
        if self.jobs.get(&id).is_some_and(|job| job.is_queued() && job.held().is_none()) {
            self.release(id);
        }
    }

    /// See [`Job::refuse`].
    pub fn refuse(&mut self, id: JobId, refusal: Refusal) {
        self.tell(id, |job| job.refuse(refusal));
    }

    /// It was decided whether a held job runs. If it does, it is queued by its number.
    pub fn decide(&mut self, id: JobId, decision: Decision, now: Instant) {
        if self.tell(id, |job| job.decide(decision, now)) == Some(true) {
            self.release(id);
        }
    }

    /// Queues a job on which nobody decides any longer.
    fn release(&mut self, id: JobId) {
        match self.held.remove(&id) {
            Some(true) => _ = self.apart_queue.insert(id),
            Some(false) => self.enqueue(id),
            None => return,
        }
        self.start_queued();
    }

    fn enqueue(&mut self, id: JobId) {
        let place = self.queue.partition_point(|&other| other < id);
        self.queue.insert(place, id);
    }

    /// The job failed because another one listens on its port.
    pub fn on_port_held(&mut self, id: JobId, held: PortHeld) {
        self.tell(id, |job| {
            if !job.has_ended() {
                job.log.push(Entry::PortHeld(Box::new(held)));
            }
        });
    }

    pub fn on_exit(&mut self, id: JobId, exit: Exit, now: Instant) {
        self.tell(id, |job| job.on_exit(exit, now));
    }

    /// The job's guard has looked for filters behind the ended shell; see [`Job::on_filters_looked_for`].
    pub fn on_filters_looked_for(&mut self, id: JobId, has_any: bool, now: Instant) {
        self.tell(id, |job| job.on_filters_looked_for(has_any, now));
    }

    pub fn on_guard_gone(&mut self, id: JobId, now: Instant) {
        self.tell(id, |job| job.on_guard_gone(now));
    }

    pub fn on_left(&mut self, id: JobId, left: Box<[LeftProcess]>) {
        self.tell(id, |job| job.on_left(left));
    }

    pub fn on_unkillable(&mut self, id: JobId, pid: Pid, program: String) {
        self.tell(id, |job| job.on_unkillable(pid, program));
    }

    /// See [`Job::on_keeping`].
    pub fn on_keeping(&mut self, id: JobId) {
        self.tell(id, Job::on_keeping);
    }

    /// See [`Job::on_kept`].
    pub fn on_kept(&mut self, id: JobId, kept: KeptFiles) {
        self.tell(id, |job| job.on_kept(kept));
    }

    /// See [`Job::on_destroyed`].
    pub fn on_destroyed(&mut self, id: JobId, destroyed: DestroyedFiles) {
        self.tell(id, |job| job.on_destroyed(destroyed));
    }

    /// See [`Job::on_received`]. It wakes nobody: the reader that wants it comes after the caller in each turn.
    pub fn on_received(&mut self, id: JobId, received: Received) {
        self.touch(id, |job| job.on_received(received));
    }

    /// See [`Job::on_gone`]. It wakes nobody.
    pub fn on_gone(&mut self, id: JobId) {
        self.touch(id, Job::on_gone);
    }

    /// Asks the job to end: SIGTERM, and SIGKILL after `grace`. The second call kills it at once.
    pub fn stop(&mut self, id: JobId, by: Stopper, grace: Duration, now: Instant) {
        self.order(id, |job| job.stop(by, grace, now));
    }

    /// Interrupts the job for a person; see [`Job::interrupt`].
    pub fn interrupt(&mut self, id: JobId, now: Instant) {
        self.order(id, |job| job.interrupt(now));
    }

    /// Asks every job to end; see [`Engine::stop`].
    pub fn stop_all(&mut self, by: Stopper, grace: Duration, now: Instant) {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            self.stop(id, by, grace, now);
        }
    }

    /// Delivers a signal to the job; see [`Job::signal`].
    pub fn signal(&mut self, id: JobId, signal: Signal, is_deadly: bool) {
        self.order(id, |job| job.signal(signal, is_deadly));
    }

    /// Acts on every deadline that has passed. Returns the held jobs on which nobody has decided in time.
    pub fn tick(&mut self, now: Instant) -> Vec<(JobId, Hold)> {
        let due = |job: &Job| job.deadline().is_some_and(|at| at <= now);
        let ids: Vec<JobId> = self.jobs.iter().filter(|(_, job)| due(job)).map(|(&id, _)| id).collect();
        let mut unanswered = Vec::new();
        for id in ids {
            let hold = self.jobs.get(&id).and_then(Job::held).cloned();
            self.order(id, |job| job.tick(now));
            let has_ended = self.jobs.get(&id).is_none_or(Job::has_ended);
            unanswered.extend(hold.filter(|_| has_ended).map(|hold| (id, hold)));
        }
        unanswered
    }

    /// When [`Engine::tick`] has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.jobs.values().filter_map(Job::deadline).min()
    }

    /// Adds a cursor at the start of the job's log. `None` for an unknown job.
    pub fn attach(&mut self, job: JobId, lag: Lag) -> Option<Cursor> {
        let id = self.jobs.get_mut(&job)?.log.attach(lag);
        Some(Cursor { job, id })
    }

    /// Adds a cursor behind all that the job has written so far, and before its end. It may be skipped. `None` for an
    /// unknown job.
    pub fn attach_behind_output(&mut self, job: JobId) -> Option<Cursor> {
        let cursor = self.attach(job, Lag::Skip)?;
        while self.next(cursor).is_some_and(|item| !matches!(item, Item::Entry(Entry::Ended(_)))) {
            self.advance(cursor);
        }
        Some(cursor)
    }

    /// Adds a cursor behind all that the job has written, and puts a mark of this number there. `None` for an unknown
    /// job.
    pub fn attach_at_end(&mut self, job: JobId, lag: Lag, mark: u64) -> Option<Cursor> {
        let id = self.tell(job, |job| job.log.attach_at_end(lag, mark))?;
        Some(Cursor { job, id })
    }

    /// Gives a reader item after item. Returns `false` when it took its last one: the cursor is gone then.
    pub fn read(&mut self, cursor: Cursor, mut take: impl FnMut(&Item<'_>) -> Taken) -> bool {
        while let Some(item) = self.next(cursor) {
            match take(&item) {
                Taken::All => self.advance(cursor),
                Taken::Not => return true,
                Taken::Last => {
                    self.detach(cursor);
                    return false;
                }
            }
        }
        true
    }

    /// The next item for this cursor, without taking it.
    #[must_use]
    pub fn next(&self, cursor: Cursor) -> Option<Item<'_>> {
        self.jobs.get(&cursor.job)?.log.next(cursor.id)
    }

    /// Takes the item that [`Engine::next`] showed.
    pub fn advance(&mut self, cursor: Cursor) {
        self.touch(cursor.job, |job| job.log.advance(cursor.id));
    }

    pub fn detach(&mut self, cursor: Cursor) {
        self.touch(cursor.job, |job| job.log.detach(cursor.id));
    }

    /// Changes what happens when a cursor falls behind.
    pub fn set_lag(&mut self, cursor: Cursor, lag: Lag) {
        self.touch(cursor.job, |job| job.log.set_lag(cursor.id, lag));
    }

    /// The number of the newest job.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.last
    }

    #[must_use]
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// All jobs, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter().map(|(&id, job)| (id, job))
    }

    /// Returns true if no job is alive, queued or held.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.alive == 0 && self.queue.is_empty() && self.apart_queue.is_empty() && self.held.is_empty()
    }

    /// Takes the next effect. Skips the start of a job that was stopped before it.
    pub fn next_effect(&mut self) -> Option<Effect> {
        loop {
            match self.effects.pop_front()? {
                Effect::Start(id) if !self.jobs.get(&id).is_some_and(Job::is_queued) => {}
                effect => return Some(effect),
            }
        }
    }

    /// Starts queued jobs while fewer than `RUNNING_MAX` are alive, besides those that are apart.
    pub fn start_queued(&mut self) {
        for id in std::mem::take(&mut self.apart_queue) {
            self.apart.insert(id);
            self.start(id);
        }
        while self.alive - self.apart.len() < limits::RUNNING_MAX {
            let Some(id) = self.queue.pop_front() else { return };
            self.start(id);
        }
    }

    /// Returns true if jobs are queued although there is room for them: they wait for something that is short, and only
    /// [`Engine::start_queued`] starts them.
    #[must_use]
    pub fn has_room_for_queued(&self) -> bool {
        let has_room = self.alive - self.apart.len() < limits::RUNNING_MAX;
        !self.apart_queue.is_empty() || (has_room && !self.queue.is_empty())
    }

    fn start(&mut self, id: JobId) {
        self.alive += 1;
        self.starting.insert(id);
        self.effects.push_back(Effect::Start(id));
    }

    /// Starts a job that was submitted just now at once. It does not count for `RUNNING_MAX`, because nobody waits for
    /// its end.
    pub fn set_apart(&mut self, id: JobId) {
        if let Some(is_apart) = self.held.get_mut(&id) {
            *is_apart = true;
            return;
        }
        if self.queue.back() == Some(&id) {
            self.queue.pop_back();
            self.start(id);
        }
        if self.starting.contains(&id) && self.apart.insert(id) {
            self.start_queued();
        }
    }

    /// How many jobs are alive or held that [`Engine::set_apart`] took out of the count.
    #[must_use]
    pub fn count_apart(&self) -> usize {
        self.apart.len() + self.held.values().filter(|&&is_apart| is_apart).count()
    }

    /// The jobs that changed since the last call. Their readers may have something to read.
    pub fn take_changed(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.changed)
    }

    #[must_use]
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Tells a job a fact from which an order to its guard may follow.
    fn order(&mut self, id: JobId, fact: impl FnOnce(&mut Job) -> Option<Order>) {
        let order = self.tell(id, fact).flatten();
        self.effects.extend(order.map(|order| Effect::Order(id, order)));
    }

    /// Tells a job a fact. Its readers may have something to read afterwards.
    fn tell<Answer>(&mut self, id: JobId, fact: impl FnOnce(&mut Job) -> Answer) -> Option<Answer> {
        self.changed.insert(id);
        self.touch(id, fact)
    }

    /// Every change of a job and every move of its readers comes through here. `None` for an unknown job.
    fn touch<Answer>(&mut self, id: JobId, act: impl FnOnce(&mut Job) -> Answer) -> Option<Answer> {
        let job = self.jobs.get_mut(&id)?;
        let before = job.log.weight();
        let counted = !job.is_reported() && (job.is_alive() || self.starting.contains(&id));
        let answer = act(job);
        if !job.is_queued() {
            self.starting.remove(&id);
        }
        job.settle_over();
        self.kept_bytes = self.kept_bytes + job.log.weight() - before;
        let has_ended = job.has_ended();
        if has_ended && job.log.weight() == 0 {
            match job.is_over() {
                true => _ = self.jobs.remove(&id),
                false => job.log.shrink(),
            }
        }
        if has_ended && counted {
            self.alive -= 1;
            self.apart.remove(&id);
            self.start_queued();
        } else if has_ended {
            self.leave_queue(id);
        }
        if self.kept_bytes > limits::LOGS_BYTES {
            self.shed();
        }
        Some(answer)
    }

    /// Forgets a job that was stopped before its turn.
    fn leave_queue(&mut self, id: JobId) {
        self.held.remove(&id);
        self.apart_queue.remove(&id);
        if let Ok(place) = self.queue.binary_search(&id) {
            self.queue.remove(place);
        }
    }

    /// Drops output that no cursor holds, oldest job first. It stops at three quarters of the bound, so that it seldom
    /// has to run.
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
mod tests;
