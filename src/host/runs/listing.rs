//! Lists what runs, as `rexec ps` shows it.

use std::time::Instant;

use super::Runs;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::front::answer::{Listed, RunState};
use crate::guard::spawn;
use crate::host::run::{ActiveRun, LeftOver};
use crate::host::turn::Turn;
use crate::limits;
use crate::text::prompt::prompt_words;
use rexec_sh::protocol::process::Pid;

impl Runs {
    /// The runs that are not closed, or have left something running, oldest first.
    pub(in crate::host) fn list(&mut self, helpers: &[Pid], turn: &mut Turn, engine: &mut Engine) -> Vec<Listed> {
        self.take_stock(helpers, turn, engine);
        let is_over = |job: JobId| engine.job(job).is_none_or(Job::has_ended);
        let shown = self.all.iter().filter(|(job, run)| !is_over(**job) || run.has_left());
        shown.map(|(&job, run)| listed(job, run, engine, turn.now)).collect()
    }

    /// Looks at processes that live on without their guard, and continues the guards of ended commands. A stopped guard
    /// does not notice the end of what it watches, and no order comes to wake it.
    fn take_stock(&mut self, helpers: &[Pid], turn: &mut Turn, engine: &mut Engine) {
        for job in self.owing.clone() {
            self.look_for_orphans(job, helpers, turn, engine);
        }
        for link in self.all.values().filter_map(|run| run.guard.as_ref()).filter(|link| link.shell_is_over) {
            spawn::wake(link.pid, link.control.fd());
        }
    }
}

fn listed(job: JobId, run: &ActiveRun, engine: &Engine, now: Instant) -> Listed {
    let state = match engine.job(job) {
        Some(known) if known.is_queued() => RunState::Queued,
        Some(known) if known.is_stopping() => RunState::Stopping,
        Some(known) if known.waiting().is_some() && !run.is_paused() => RunState::Waiting,
        Some(known) if !known.has_ended() && !run.is_paused() => RunState::Running,
        _ if run.ending.left_over != LeftOver::Untouched => RunState::Stopping,
        _ if run.is_paused() => RunState::Paused,
        _ => RunState::Left,
    };
    let age = now.saturating_duration_since(run.accepted);
    let waiting = engine.job(job).and_then(Job::waiting);
    Listed {
        state,
        asks: waiting.map(|waiting| waiting.program.clone()),
        prompt: waiting.map(|waiting| prompt_words(&waiting.prompt, limits::PROMPT_BYTES)),
        age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        guard: run.guard_pid().map(Pid::number),
        orphans: run.hunt.iter().flat_map(|hunt| hunt.living.iter().map(|process| process.pid.number())).collect(),
        card: run.description.card.clone(),
    }
}
