//! The timers of the runs: what is due for which of them, and when.
//!
//! Invariants: each [`Due`] has one time at most; the first time is looked up, and nothing looks at a run for which nothing
//! is due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::core::engine::JobId;
use crate::core::entry::Stream;

/// What is due, in the order in which one turn does it: what a guard has said counts before the end of a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::host) enum Due {
    /// What a command left running did not end by itself, and is killed.
    Kill(JobId),
    /// The peers that wait for a command's end are answered, ended or not.
    KillAnswer(JobId),
    /// A guard owes an answer, or is gone and has left something: the host looks at it.
    Look(JobId),
    /// The time limit of a command is over.
    TimeLimit(JobId),
    /// A shim that was stopped with its command is looked at, until it goes on.
    StoppedShim(JobId),
    /// A caller is told that this output has ended before its command.
    OutputEnd(JobId, Stream),
    /// A terminal has not shown the line that a person typed.
    Echo(JobId),
}

#[derive(Debug, Default)]
pub(super) struct Timers {
    in_order: BTreeSet<(Instant, Due)>,
    times: BTreeMap<Due, Instant>,
}

impl Timers {
    /// Sets the time of a timer, whatever it was before.
    pub(super) fn set(&mut self, due: Due, at: Instant) {
        match self.times.insert(due, at) {
            Some(before) if before == at => return,
            Some(before) => _ = self.in_order.remove(&(before, due)),
            None => {}
        }
        self.in_order.insert((at, due));
    }

    /// Sets the time of a timer, unless that is due earlier.
    pub(super) fn set_by(&mut self, due: Due, at: Instant) {
        self.set(due, self.at(due).map_or(at, |before| before.min(at)));
    }

    pub(super) fn cancel(&mut self, due: Due) {
        if let Some(before) = self.times.remove(&due) {
            self.in_order.remove(&(before, due));
        }
    }

    pub(super) fn at(&self, due: Due) -> Option<Instant> {
        self.times.get(&due).copied()
    }

    /// When the first timer is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.in_order.first().map(|&(at, _)| at)
    }

    /// What is due now. Each has to be taken when its turn comes: what is done for one may put off or cancel another.
    pub(super) fn all_due(&self, now: Instant) -> Vec<Due> {
        let due = self.in_order.iter().take_while(|(at, _)| *at <= now).map(|&(_, due)| due);
        let mut due: Vec<Due> = due.collect();
        due.sort_unstable();
        due
    }

    /// Takes a timer, if it is due.
    pub(super) fn take(&mut self, due: Due, now: Instant) -> bool {
        let is_due = self.at(due).is_some_and(|at| at <= now);
        if is_due {
            self.cancel(due);
        }
        is_due
    }

    /// Cancels the timers of a run that is over. What was stopped with it goes on all the same.
    pub(super) fn forget(&mut self, job: JobId) {
        [Due::Kill(job), Due::KillAnswer(job), Due::Look(job), Due::TimeLimit(job), Due::Echo(job)]
            .into_iter()
            .chain(Stream::ALL.map(|stream| Due::OutputEnd(job, stream)))
            .for_each(|due| self.cancel(due));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const JOB: JobId = JobId(1);
    const OTHER: JobId = JobId(2);

    /// Takes everything that is due.
    fn taken(timers: &mut Timers, now: Instant) -> Vec<Due> {
        let mut due = timers.all_due(now);
        due.retain(|&due| timers.take(due, now));
        due
    }

    #[test]
    fn what_is_due_comes_once_and_guards_come_before_time_limits() {
        let (mut timers, now) = (Timers::default(), Instant::now());
        let after = |ms| now + Duration::from_millis(ms);
        timers.set(Due::TimeLimit(JOB), after(1));
        timers.set(Due::Look(OTHER), after(3));
        timers.set(Due::Look(JOB), after(2));
        timers.set(Due::Kill(OTHER), after(9));
        assert_eq!((timers.deadline(), taken(&mut timers, now)), (Some(after(1)), Vec::new()));
        assert_eq!(taken(&mut timers, after(3)), [Due::Look(JOB), Due::Look(OTHER), Due::TimeLimit(JOB)]);
        assert_eq!((timers.deadline(), taken(&mut timers, after(3))), (Some(after(9)), Vec::new()));
    }

    #[test]
    fn a_timer_that_is_set_again_has_its_last_time_alone() {
        let (mut timers, now) = (Timers::default(), Instant::now());
        let after = |ms| now + Duration::from_millis(ms);
        timers.set(Due::Look(JOB), after(1));
        timers.set(Due::Look(JOB), after(5));
        assert_eq!((taken(&mut timers, after(4)), timers.deadline()), (Vec::new(), Some(after(5))));
        timers.set(Due::Look(JOB), after(2));
        assert_eq!((taken(&mut timers, after(2)), timers.deadline()), (vec![Due::Look(JOB)], None));
        for (at, set) in [(8, 8), (9, 8), (7, 7)] {
            timers.set_by(Due::KillAnswer(JOB), after(at));
            assert_eq!(timers.deadline(), Some(after(set)), "whoever asks later makes nobody wait longer");
        }
    }

    #[test]
    fn what_another_one_put_off_or_cancelled_is_not_taken() {
        let (mut timers, now) = (Timers::default(), Instant::now());
        let later = now + Duration::from_millis(1);
        let [kept, cancelled, put_off] = [Due::Kill(JOB), Due::OutputEnd(JOB, Stream::Out), Due::Echo(JOB)];
        [kept, cancelled, put_off].into_iter().for_each(|due| timers.set(due, now));
        let due = timers.all_due(now);
        timers.cancel(cancelled);
        timers.set(put_off, later);
        assert_eq!(due.iter().map(|&due| timers.take(due, now)).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!((taken(&mut timers, later), timers.deadline()), (vec![put_off], None));
    }

    #[test]
    fn a_run_that_is_over_leaves_no_timer_but_its_shims() {
        let (mut timers, now) = (Timers::default(), Instant::now());
        let of = |job| {
            let one = [Due::Kill, Due::KillAnswer, Due::Look, Due::TimeLimit, Due::StoppedShim, Due::Echo];
            one.map(|due| due(job)).into_iter().chain(Stream::ALL.map(|stream| Due::OutputEnd(job, stream)))
        };
        of(JOB).chain(of(OTHER)).for_each(|due| timers.set(due, now));
        timers.forget(JOB);
        let mut left: Vec<Due> = of(OTHER).chain([Due::StoppedShim(JOB)]).collect();
        left.sort_unstable();
        assert_eq!(taken(&mut timers, now), left);
    }
}
