//! What becomes of a command whose guard is gone, and of one whose guard does not do as it was told.
//!
//! Invariants: a command is given to another guard only if the one before it never began; one whose shell still ran is
//! hunted from here, and its job hears of the guard's end when the hunt is over; what an ended command left running lives
//! on, listed, until a person ends it. No hunt waits for anything.

use std::time::{Duration, Instant};

use super::Host;
use super::orders::{Again, Step};
use crate::core::engine::JobId;
use crate::core::process::{Pid, ProcessGroup};
use crate::guard::spawn;
use crate::limits;
use crate::sys::orphans::{self, Orphans, Others};
use crate::sys::tree::Process;
use crate::text::escape::escape_line;

/// From one look at orphans that are hunted to the next.
const HUNT_PAUSE: Duration = Duration::from_millis(20);

/// From one look to the next at a guard that is just dying.
const DYING_PAUSE: Duration = Duration::from_millis(1);

/// The orphans of a command.
#[derive(Debug)]
pub(super) struct Orphaned {
    orphans: Orphans,
    /// Since they are hunted, until then.
    hunted_until: Option<Instant>,
    look_at: Instant,
    is_first_look: bool,
    /// The first look waits for its guard's death until then.
    dead_by: Instant,
    /// As the guard's link has it.
    pub(super) left_by: Option<ProcessGroup>,
    /// Those that lived at the last look.
    pub(super) living: Vec<Process>,
}

impl Orphaned {
    fn of(orphans: Orphans, hunted_until: Option<Instant>, now: Instant) -> Self {
        let dead_by = now + limits::DEATH_PATIENCE;
        Self { orphans, hunted_until, look_at: now, is_first_look: true, dead_by, left_by: None, living: Vec::new() }
    }
}

impl Host {
    /// A guard's control socket is at its end. Nobody else holds it, so the guard is dead, and whatever it was about to
    /// start has either executed its shell or never will.
    pub(super) fn on_guard_gone(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        let Some(link) = run.guard.take() else { return };
        self.sources.remove(&link.control.token());
        link.control.close(&mut self.poller);
        if !link.orders.has_begun() {
            run.again = Some(Again { at: self.now, signals: link.orders.into_early() });
            self.owing.insert(job);
            return self.give_again(job);
        }
        if link.shell_is_over && !link.has_left {
            return self.on_tree_gone(job);
        }
        let is_stopping = self.engine.job(job).is_some_and(crate::core::job::Job::is_stopping);
        let is_hunted = !link.shell_is_over || is_stopping || run.ending.is_killed();
        let until = is_hunted.then(|| self.now + limits::ORPHAN_HUNT);
        let orphans = Orphans::of(link.pid, &run.left);
        run.bereft = Some(Orphaned { left_by: link.left_by, ..Orphaned::of(orphans, until, self.now) });
        self.owing.insert(job);
        self.look_after(job);
    }

    /// The whole tree is dead, or given up, or left to itself.
    fn on_tree_gone(&mut self, job: JobId) {
        self.engine.on_guard_gone(job, self.now);
        self.drain_streams(job);
        self.dirty.insert(job);
    }

    /// When the first guard, or dead guard's orphans, are to be seen to.
    pub(super) fn owing_deadline(&self) -> Option<Instant> {
        self.owing.iter().filter_map(|job| self.runs.get(job)?.owing_deadline()).min()
    }

    /// Sees to everything that is due.
    pub(super) fn tick_owing(&mut self) {
        let now = self.now;
        self.owing.retain(|job| self.runs.get(job).is_some_and(|run| run.owing_deadline().is_some()));
        let is_due = |job: &JobId| {
            self.runs.get(job).and_then(super::run::ActiveRun::owing_deadline).is_some_and(|at| at <= now)
        };
        for job in self.owing.iter().copied().filter(is_due).collect::<Vec<_>>() {
            // What it has said already counts: this host may have been the one that was stopped.
            if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) {
                link.control.expect_input();
                self.visit_control(job);
            }
            let Some(run) = self.runs.get_mut(&job) else { continue };
            if let Some(link) = &mut run.guard {
                match link.orders.tick(now) {
                    None => {}
                    Some(Step::Wake) => spawn::wake(link.pid, link.control.fd()),
                    Some(Step::Kill) => spawn::kill(link.pid, link.control.fd()),
                    Some(Step::Bury) => self.bury(job),
                }
            } else if run.again.is_some() {
                self.give_again(job);
            } else {
                self.look_after(job);
            }
        }
    }

    /// A guard was killed and does not go, so nobody knows what it still does.
    fn bury(&mut self, job: JobId) {
        if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) {
            link.orders.on_begun();
        }
        self.on_guard_gone(job);
    }

    /// Ends what lives on without its guard; `is_kill` with its grace behind it.
    pub(super) fn pursue_bereft(&mut self, job: JobId, is_kill: bool) {
        let Some(bereft) = self.runs.get_mut(&job).and_then(|run| run.bereft.as_mut()) else { return };
        bereft.look_at = self.now;
        if is_kill {
            bereft.hunted_until.get_or_insert(self.now + limits::ORPHAN_HUNT);
        }
        self.look_after(job);
        if !is_kill && let Some(bereft) = self.runs.get(&job).and_then(|run| run.bereft.as_ref()) {
            orphans::terminate(&bereft.living);
        }
    }

    /// Kills what is left of the shell's group, as its guard would have.
    pub(super) fn kill_bereft_group(&mut self, job: JobId, group: ProcessGroup) {
        let Some(bereft) = self.runs.get(&job).and_then(|run| run.bereft.as_ref()) else { return };
        let members = bereft.living.iter().filter(|process| process.group == group);
        orphans::kill(&members.copied().collect::<Vec<_>>());
    }

    /// Looks at the orphans of a command: kills those that are hunted, and notices their end.
    pub(super) fn look_after(&mut self, job: JobId) {
        let Some(mut bereft) = self.runs.get_mut(&job).and_then(|run| run.bereft.take()) else { return };
        if bereft.is_first_look && bereft.orphans.is_guard_alive() && self.now < bereft.dead_by {
            bereft.look_at = self.now + DYING_PAUSE;
            return self.put_back(job, bereft);
        }
        let is_hunted = bereft.hunted_until.is_some();
        // What nothing is known of is more likely one of those whose guard died in mid-run, if there are any.
        let takes_strays = is_hunted || (bereft.is_first_look && !self.are_others_hunted());
        let others = Others {
            kin: &self.kin,
            known: self.own_processes().collect(),
            orphans: self.runs.values().filter_map(|run| Some(&run.bereft.as_ref()?.orphans)).collect(),
            left: self
                .runs
                .iter()
                .filter(|(other, _)| **other != job)
                .flat_map(|(_, run)| run.left.iter().copied())
                .collect(),
        };
        let is_first = std::mem::take(&mut bereft.is_first_look);
        bereft.living = bereft.orphans.look(&others, takes_strays);
        if bereft.living.is_empty() {
            return self.on_tree_gone(job);
        }
        let is_pursued = self.runs.get(&job).is_some_and(|run| run.ending.is_pursued());
        bereft.look_at = self.now + if is_pursued { HUNT_PAUSE * 5 } else { limits::ORPHAN_LOOK };
        match bereft.hunted_until {
            Some(until) if self.now >= until => {
                bereft.hunted_until = None;
                let named: Vec<Process> = bereft.living.iter().take(limits::STRAGGLERS_NAMED_MAX).copied().collect();
                self.put_back(job, bereft);
                named.iter().for_each(|process| self.on_unkillable(job, process.pid, &process.program.to_string()));
                self.tell_unkillable(job);
                self.on_tree_gone(job);
            }
            Some(_) => {
                orphans::kill(&bereft.living);
                bereft.look_at = self.now + HUNT_PAUSE;
                self.put_back(job, bereft);
            }
            None => {
                self.put_back(job, bereft);
                if is_first {
                    self.on_tree_gone(job);
                }
            }
        }
    }

    /// Whether another command is hunted, or is about to be because its guard has just died.
    fn are_others_hunted(&self) -> bool {
        self.runs.values().any(|run| match (&run.guard, &run.bereft) {
            (Some(link), _) => !link.shell_is_over && !spawn::is_alive(link.pid),
            (None, Some(bereft)) => bereft.hunted_until.is_some(),
            (None, None) => false,
        })
    }

    fn put_back(&mut self, job: JobId, bereft: Orphaned) {
        self.owing.insert(job);
        if let Some(run) = self.runs.get_mut(&job) {
            run.bereft = Some(bereft);
        }
    }

    /// This process withstands SIGKILL.
    pub(super) fn on_unkillable(&mut self, job: JobId, pid: Pid, program: &str) {
        self.journal.note(job, |end| end.unkillable.push(pid.number()));
        if let Some(run) = self.runs.get_mut(&job) {
            run.ending.unkillable.push(pid);
        }
        let line = format!("… #{}: {} (process {pid}) cannot be killed", job.0, escape_line(program, 32));
        self.console.say(&line, self.screen.out.buffer());
    }

    /// Every child that the host knows.
    fn own_processes(&self) -> impl Iterator<Item = Pid> {
        let guards = self.runs.values().filter_map(|run| Some(run.guard.as_ref()?.pid));
        guards.chain(self.spares.pids()).chain(self.scribe.pid()).chain(self.screen.helper())
    }
}

impl super::run::ActiveRun {
    /// When its guard, or what that left, is to be seen to.
    fn owing_deadline(&self) -> Option<Instant> {
        match (&self.guard, &self.again, &self.bereft) {
            (Some(link), ..) => link.orders.deadline(),
            (None, Some(again), _) => Some(again.at),
            (None, None, Some(bereft)) => Some(bereft.look_at),
            (None, None, None) => None,
        }
    }
}
