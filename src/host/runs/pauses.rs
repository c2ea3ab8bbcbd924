//! Pauses and resumes commands, and signals them, for people.

use std::time::Instant;

use super::Runs;
use crate::core::engine::{Engine, JobId};
use crate::core::job::{Job, Order};
use crate::host::orphan_hunt::OrphanHunt;
use crate::host::refused_order::{Obstacle, RefusedOrder};
use crate::host::run::Pause;
use rexec_sh::protocol::process::{Pid, Signal};

impl Runs {
    /// Stops every process of a command. One that has a guard and has not begun is stopped as soon as it has. Returns its
    /// guard.
    ///
    /// # Errors
    /// It has no guard, or is about to end.
    pub(in crate::host) fn pause(&mut self, job: JobId, engine: &Engine, now: Instant) -> Result<Pid, RefusedOrder> {
        let refused = |why| Err(RefusedOrder::new(job, why));
        let (known, run) = (engine.job(job), self.get_mut(job));
        let Some(run) = run else { return refused(Obstacle::NotThere) };
        if known.is_some_and(Job::is_stopping) || run.ending.is_pursued() {
            return refused(Obstacle::Ending);
        }
        let Some(guard) = run.guard_pid() else {
            return refused(match known {
                Some(known) if known.held().is_some() => Obstacle::Held,
                Some(known) if known.is_queued() || run.is_unbegun() => Obstacle::NotBegun,
                _ => Obstacle::Unguarded,
            });
        };
        run.pause = Pause::Paused;
        self.pause_begun(job, now);
        Ok(guard)
    }

    /// Orders the guard of a paused command to stop it, if it has begun. Another guard may get one that has not.
    pub(super) fn pause_begun(&mut self, job: JobId, now: Instant) {
        if self.get(job).is_some_and(|run| run.is_paused() && !run.is_unbegun()) {
            self.order(job, Order::Pause, now);
        }
    }

    pub(in crate::host) fn resume(&mut self, job: JobId, now: Instant) -> bool {
        let Some(run) = self.get_mut(job).filter(|run| run.is_paused()) else { return false };
        run.pause = Pause::No;
        if let Some(hunt) = &mut run.hunt {
            hunt.resume();
        } else if !run.is_unbegun() {
            run.pause = Pause::Resuming;
            self.order(job, Order::Unpause, now);
        }
        true
    }

    /// A guard has continued what the pause had stopped.
    pub(super) fn on_resumed(&mut self, job: JobId) {
        if let Some(run) = self.get_mut(job).filter(|run| run.pause == Pause::Resuming) {
            run.pause = Pause::No;
        }
    }

    /// Continues paused processes that have no guard any more, because the host ends. A guard does that by itself.
    pub(in crate::host) fn resume_orphans(&mut self) {
        self.all.values_mut().filter_map(|run| run.hunt.as_mut()).for_each(OrphanHunt::resume);
    }

    /// Delivers a signal to a command, or to what it left running.
    pub(in crate::host) fn signal(&mut self, job: JobId, signal: Signal, engine: &mut Engine, now: Instant) {
        if engine.job(job).is_some_and(|known| !known.has_ended()) {
            let at_start = self.at_start(job, signal);
            engine.signal(job, signal, at_start == rexec_sh::protocol::wire::AtStart::Ends);
        } else {
            self.order(job, Order::SignalLeft(signal), now);
        }
    }
}
