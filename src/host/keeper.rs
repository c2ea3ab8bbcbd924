//! The keeper of a run: a guard of this host's, or the shim that runs the command in its caller's sandbox and reports it.
//!
//! A [`Keeper`] says what is known of a run. A [`RunControl`] ends, signals, pauses and resumes it for a person. Both are
//! found by the run's number, and who asks need not know which kind of keeper it is.

use std::time::Instant;

use rexec_sh::protocol::process::{Pid, Signal};

use super::context::Context;
use super::peers::Peers;
use super::refused_order::{Obstacle, RefusedOrder};
use super::reports::{ReportedRun, Reports};
use super::run::{ActiveRun, Description, LeftOver};
use super::runs::{KillRequest, Runs};
use super::screen::Screen;
use super::turn::Turn;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::front::answer::Listed;
use crate::front::run_state::Standing;
use crate::journal::entry_words::stopper_words;
use crate::limits;
use crate::sys::tree::Process;
use crate::text::prompt::prompt_words;
use crate::text::redact::Redactor;

#[derive(Debug, Clone, Copy)]
pub(super) enum Keeper<'a> {
    /// A guard, or the host itself until there is one, and when it is gone.
    Guard(&'a ActiveRun),
    Shim(&'a ReportedRun),
}

impl<'a> Keeper<'a> {
    /// The keeper of a run. `None` once nothing of it lives.
    pub(super) fn of(job: JobId, runs: &'a Runs, reports: &'a Reports) -> Option<Self> {
        runs.get(job).map(Self::Guard).or_else(|| reports.get(job).map(Self::Shim))
    }

    /// The keepers of all runs, in no order.
    pub(super) fn all(runs: &'a Runs, reports: &'a Reports) -> impl Iterator<Item = (JobId, Self)> {
        let guarded = runs.iter().map(|(job, run)| (job, Self::Guard(run)));
        guarded.chain(reports.begun().map(|(job, run)| (job, Self::Shim(run))))
    }

    pub(super) fn description(self) -> &'a Description {
        match self {
            Self::Guard(run) => &run.description,
            Self::Shim(run) => &run.description,
        }
    }

    /// Masks the run's secrets for agents. `None` if the host does not do that.
    pub(super) fn secrets(self) -> Option<&'a Redactor> {
        self.description().secrets.as_ref()
    }

    /// When the command came.
    pub(super) fn since(self) -> Instant {
        match self {
            Self::Guard(run) => run.accepted,
            Self::Shim(run) => run.since,
        }
    }

    /// The state of the run, whose job is this one.
    pub(super) fn standing(self, job: Option<&Job>) -> Standing<'_> {
        let (is_paused, ends_left) = match self {
            Self::Guard(run) => (run.is_paused(), run.ending.left_over != LeftOver::Untouched),
            Self::Shim(run) => (run.is_paused(), false),
        };
        Standing { job, is_paused, ends_left }
    }

    /// Returns true if lists have the run: its command has not ended, or has left something running.
    pub(super) fn is_listed(self, job: Option<&Job>) -> bool {
        let may_have_left = match self {
            Self::Guard(run) => run.has_left(),
            Self::Shim(_) => true,
        };
        may_have_left || job.is_some_and(|job| !job.has_ended())
    }

    /// Returns true if processes were alive when the command's shell ended.
    pub(super) fn is_known_to_have_left(self) -> bool {
        matches!(self, Self::Guard(run) if !run.left.is_empty())
    }

    /// The run's row in lists.
    pub(super) fn listed(self, job: Option<&Job>, now: Instant) -> Listed {
        let age = now.saturating_duration_since(self.since());
        let waiting = job.and_then(Job::waiting);
        Listed {
            state: self.standing(job).state(),
            asks: waiting.map(|waiting| waiting.program.clone()),
            prompt: waiting.map(|waiting| prompt_words(&waiting.prompt, limits::PROMPT_BYTES)),
            held: self.standing(job).held(),
            age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            guard: self.guard().map(Pid::number),
            orphans: self.unguarded().iter().map(|process| process.pid.number()).collect(),
            card: self.description().card.clone(),
        }
    }

    fn guard(self) -> Option<Pid> {
        match self {
            Self::Guard(run) => run.guard_pid(),
            Self::Shim(_) => None,
        }
    }

    /// Its processes that are below no guard.
    fn unguarded(self) -> Vec<Process> {
        match self {
            Self::Guard(run) => run.hunt.as_ref().map(|hunt| hunt.living.clone()).unwrap_or_default(),
            Self::Shim(run) => run.processes(),
        }
    }
}

/// Acts on a run for a person.
#[derive(Debug)]
pub(super) struct RunControl<'a> {
    pub(super) job: JobId,
    pub(super) owner: Owner<'a>,
    pub(super) turn: &'a mut Turn,
    pub(super) engine: &'a mut Engine,
    pub(super) peers: &'a mut Peers,
    pub(super) screen: &'a mut Screen,
}

/// The owner of a run, by its keeper.
#[derive(Debug)]
pub(super) enum Owner<'a> {
    Guarded(&'a mut Runs),
    Reported(&'a mut Reports),
}

impl<'a> Owner<'a> {
    /// # Errors
    /// Nothing of the run lives.
    pub(super) fn of(job: JobId, runs: &'a mut Runs, reports: &'a mut Reports) -> Result<Self, RefusedOrder> {
        match Keeper::of(job, runs, reports).ok_or(RefusedOrder::new(job, Obstacle::NotThere))? {
            Keeper::Guard(_) => Ok(Self::Guarded(runs)),
            Keeper::Shim(_) => Ok(Self::Reported(reports)),
        }
    }
}

impl RunControl<'_> {
    /// Ends the command, or what it left running; asked twice, at once. Peers are answered when it is over.
    ///
    /// # Errors
    /// Its processes cannot be found.
    pub(super) fn kill(self, request: KillRequest) -> Result<(), RefusedOrder> {
        match self.owner {
            Owner::Guarded(runs) => {
                let who = stopper_words(request.by);
                if runs.kill(request, self.turn, self.engine) {
                    self.screen.say(format_args!("… stopping what #{} left running: {who}", self.job.0));
                }
                Ok(())
            }
            Owner::Reported(reports) => reports.kill(request, self.engine, self.turn.now),
        }
    }

    /// Sends a signal to the command, or to what it left running.
    ///
    /// # Errors
    /// Its processes cannot be found.
    pub(super) fn signal(self, signal: Signal) -> Result<(), RefusedOrder> {
        match self.owner {
            Owner::Guarded(runs) => runs.signal(self.job, signal, self.engine, self.turn.now),
            Owner::Reported(reports) => reports.signal(self.job, signal)?,
        }
        Ok(())
    }

    /// Stops every process of the command. Returns the process that they are below.
    ///
    /// # Errors
    /// It has not begun, is about to end, or cannot be found.
    pub(super) fn pause(self) -> Result<Pid, RefusedOrder> {
        match self.owner {
            Owner::Guarded(runs) => {
                // Its guard may have reported since the last turn that it has begun.
                let Self { turn, engine, peers, .. } = self;
                runs.visit_control(self.job, &mut Context { turn, engine, peers });
                runs.pause(self.job, engine, turn.now)
            }
            Owner::Reported(reports) => reports.pause(self.job, self.engine),
        }
    }

    /// Has a paused command go on. Returns `false` when it is not paused.
    pub(super) fn resume(self) -> bool {
        match self.owner {
            Owner::Guarded(runs) => runs.resume(self.job, self.turn.now),
            Owner::Reported(reports) => reports.resume(self.job),
        }
    }
}
