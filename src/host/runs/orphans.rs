//! Deals with guards that died, and with guards that do not do what they owe.
//!
//! Invariants: a command goes to another guard only if the one before never began; if the shell of a dead guard still
//! ran, the host kills what is left, and the job hears of the guard's end when that is over; what an ended command left
//! running lives on, listed, until a person ends it. Nothing here waits.

use std::collections::BTreeSet;

use super::Runs;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::guard::orphans::{self, Found, Orphans, Others};
use crate::guard::spawn;
use crate::host::context::Context;
use crate::host::orders::{Again, Step};
use crate::host::orphan_hunt::{HUNT_PAUSE, OrphanHunt, SOON};
use crate::host::run::{ActiveRun, Pause};
use crate::host::turn::Turn;
use crate::io::port::Port;
use crate::limits;
use rexec_sh::protocol::process::{Pid, ProcessGroup};

impl Runs {
    /// A guard's control socket is at its end. No other process holds it, so the guard is dead, and whatever it was about
    /// to start has either executed its shell or never will.
    pub(super) fn on_guard_gone(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        let Some(run) = self.get_mut(job) else { return };
        let Some(link) = run.guard.take() else { return };
        turn.close(link.control);
        if !link.orders.has_begun() {
            run.again = Some(Again { at: turn.now, signals: link.orders.into_early() });
        } else if link.shell_is_over && !link.has_left {
            return self.on_tree_gone(job, turn, engine);
        } else {
            let is_stopping = engine.job(job).is_some_and(Job::is_stopping);
            let is_killing = !link.shell_is_over || is_stopping || run.ending.is_killed();
            let orphans = Orphans::of(link.pid, &run.left);
            let hunt = OrphanHunt::new(orphans, is_killing, link.left_by, turn.now);
            run.hunt = Some(match run.pause {
                Pause::No => hunt,
                Pause::Paused => hunt.of_paused(),
                Pause::Resuming => hunt.of_resumed(),
            });
        }
        self.owe(job);
    }

    /// A guard's command has left nothing. The guard is kept for another one, unless an order is on its way to it.
    pub(super) fn on_guard_free(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        let Some(link) = self.get_mut(job).and_then(|run| run.guard.take()) else { return };
        if link.orders.out.is_empty() && link.orders.deadline().is_none() {
            turn.forget(link.control.token());
            self.free.push((link.pid, link.control));
        } else {
            turn.close(link.control);
        }
        self.on_tree_gone(job, turn, engine);
    }

    /// The guards that have become free since the last call, with their control sockets.
    pub(in crate::host) fn take_free(&mut self) -> Vec<(Pid, Port)> {
        std::mem::take(&mut self.free)
    }

    /// The whole tree is dead, or given up, or left to itself.
    fn on_tree_gone(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        engine.on_guard_gone(job, turn.now);
        self.drain_streams(job, turn, engine);
        turn.touch(job);
    }

    /// Looks at a guard that owes something, or at what a dead one left. Returns true if the job needs another guard.
    pub(super) fn look_at_guard(&mut self, job: JobId, cx: &mut Context<'_>) -> bool {
        // What was done since may have put the look off.
        let is_due = self.get(job).and_then(ActiveRun::owing_deadline).is_some_and(|at| at <= cx.turn.now);
        if is_due {
            self.do_owed(job, cx);
        }
        self.owe(job);
        is_due && self.get(job).is_some_and(|run| run.guard.is_none() && run.again.is_some())
    }

    fn do_owed(&mut self, job: JobId, cx: &mut Context<'_>) {
        if let Some(link) = self.link(job) {
            // The guard's earlier words count: it may be this host that was stopped.
            link.control.expect_input();
            self.visit_control(job, cx);
        }
        let Context { turn, engine, .. } = cx;
        let Some(run) = self.get_mut(job) else { return };
        if let Some(link) = &mut run.guard {
            match link.orders.tick(turn.now) {
                None => {}
                Some(Step::Wake) => spawn::wake(link.pid, link.control.fd()),
                Some(Step::Kill) => spawn::kill(link.pid, link.control.fd()),
                Some(Step::Bury) => {
                    // The guard was killed and does not go, so it is unknown what it still does.
                    link.orders.on_begun();
                    self.on_guard_gone(job, turn, engine);
                }
            }
        }
        if self.get(job).is_some_and(|run| run.guard.is_none() && run.again.is_none()) {
            self.look_for_orphans(job, turn, engine);
        }
    }

    /// Ends what lives on without its guard: with SIGKILL, or with SIGTERM and a grace.
    pub(super) fn pursue_orphans(&mut self, job: JobId, is_kill: bool, turn: &mut Turn, engine: &mut Engine) {
        let Some(hunt) = self.get_mut(job).and_then(|run| run.hunt.as_mut()) else { return };
        hunt.look_at = turn.now;
        if is_kill {
            hunt.kills_until.get_or_insert(turn.now + limits::ORPHAN_HUNT);
        }
        self.look_for_orphans(job, turn, engine);
        if !is_kill && let Some(hunt) = self.get(job).and_then(|run| run.hunt.as_ref()) {
            orphans::terminate(&hunt.living);
        }
    }

    /// Looks at processes that live on without their guard, and continues the guards of ended commands. A stopped guard
    /// does not notice the end of what it watches, and no order comes to wake it.
    pub(in crate::host) fn take_stock(&mut self, turn: &mut Turn, engine: &mut Engine) {
        let hunted: Vec<JobId> = self.iter().filter(|(_, run)| run.hunt.is_some()).map(|(job, _)| job).collect();
        for job in hunted {
            self.look_for_orphans(job, turn, engine);
        }
        for link in self.all.values().filter_map(|run| run.guard.as_ref()).filter(|link| link.shell_is_over) {
            spawn::wake(link.pid, link.control.fd());
        }
    }

    /// Kills the orphans in the shell's process group, as their guard would have.
    pub(super) fn kill_orphaned_group(&mut self, job: JobId, group: ProcessGroup) {
        let Some(hunt) = self.get(job).and_then(|run| run.hunt.as_ref()) else { return };
        let members = hunt.living.iter().filter(|process| process.group == group);
        orphans::kill(&members.copied().collect::<Vec<_>>());
    }

    /// Looks at what a dead guard left: kills it if it is hunted, and notices its end.
    pub(super) fn look_for_orphans(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        let Some(mut hunt) = self.get_mut(job).and_then(|run| run.hunt.take()) else { return };
        if hunt.waits_for_death(turn.now) {
            return self.put_back(job, hunt);
        }
        let is_first = std::mem::take(&mut hunt.is_first_look);
        // A process that belongs to no known run is more likely one of a run whose guard died while its shell ran.
        let takes_strays = || hunt.kills_until.is_some() || (is_first && !self.are_others_hunted());
        hunt.living = match hunt.orphans.look(&self.others(job), takes_strays) {
            Found::Living(living) => living,
            Found::Unsure if hunt.kills_until.is_none_or(|until| turn.now < until) => {
                hunt.is_first_look = is_first;
                hunt.look_at = turn.now + SOON;
                return self.put_back(job, hunt);
            }
            Found::Unsure | Found::Nothing => return self.on_tree_gone(job, turn, engine),
        };
        hunt.note_paused();
        let is_pursued = self.get(job).is_some_and(|run| run.ending.is_pursued());
        hunt.look_at = turn.now + if is_pursued { HUNT_PAUSE * 5 } else { limits::ORPHAN_LOOK };
        let is_given_up = hunt.kills_until.is_some_and(|until| turn.now >= until);
        if is_given_up {
            hunt.kills_until = None;
            if let Some(run) = self.get_mut(job) {
                let named = hunt.living.iter().take(limits::STRAGGLERS_NAMED_MAX);
                for process in named {
                    run.ending.give_up(process.pid);
                    engine.on_unkillable(job, process.pid, process.program.to_string());
                }
            }
        } else if hunt.kills_until.is_some() {
            orphans::kill(&hunt.living);
            hunt.look_at = turn.now + HUNT_PAUSE;
        }
        let is_left_alone = is_first && hunt.kills_until.is_none();
        self.put_back(job, hunt);
        if is_given_up || is_left_alone {
            self.on_tree_gone(job, turn, engine);
        }
    }

    /// Notes the host's children that belong to no run, before a look at orphans: they come and go.
    pub(in crate::host) fn note_helpers(&mut self, helpers: impl Iterator<Item = Pid>) {
        self.helpers = helpers.collect();
    }

    /// The processes that a look must tell apart from the orphans of a job.
    fn others(&self, job: JobId) -> Others<'_> {
        let guards = self.all.values().filter_map(ActiveRun::guard_pid);
        let free = self.free.iter().map(|(guard, _)| *guard);
        let others = self.all.iter().filter(|(other, _)| **other != job);
        Others {
            kin: &self.kin,
            known: guards.chain(free).chain(self.helpers.iter().copied()).collect::<BTreeSet<Pid>>(),
            orphans: self.all.values().filter_map(|run| Some(&run.hunt.as_ref()?.orphans)).collect(),
            left: others.flat_map(|(_, run)| run.left.iter().copied()).collect(),
        }
    }

    /// Returns true if the host kills another command's orphans, or will because its guard has just died.
    fn are_others_hunted(&self) -> bool {
        self.all.values().any(|run| match (&run.guard, &run.hunt) {
            (Some(link), _) => !link.shell_is_over && !spawn::is_alive(link.pid),
            (None, Some(hunt)) => hunt.kills_until.is_some(),
            (None, None) => false,
        })
    }

    fn put_back(&mut self, job: JobId, hunt: OrphanHunt) {
        if let Some(run) = self.get_mut(job) {
            run.hunt = Some(hunt);
        }
        self.owe(job);
    }
}
