//! Reports the host as a whole to the human: the status line, and the bell when a command waits for an answer.

use std::collections::BTreeSet;

use super::Host;
use super::keeper::Keeper;
use crate::core::engine::JobId;
use crate::core::job::Job;
use crate::limits;
use crate::sink::console::status_line::{StatusFacts, StatusRun, Waits};
use crate::text::agent_name::agent_name;
use crate::text::safe_text::SafeText;

impl Host {
    /// Draws the status line when that is due.
    pub(super) fn refresh_status(&mut self) {
        if self.screen.is_status_due(self.turn.now) {
            let facts = self.status_facts();
            self.screen.draw_status(facts, self.turn.now);
        }
    }

    /// Rings for each command that began to wait for the human's answer, once.
    pub(super) fn call_human(&mut self, changed: &BTreeSet<JobId>) {
        for call in self.notifier.calls(changed, &self.engine, &self.runs) {
            self.screen.ring(&SafeText::escaped(&call.message));
            if let Some(problem) = self.notifier.call(&call) {
                self.screen.tell(problem, self.turn.now);
            }
        }
    }

    fn status_facts(&self) -> StatusFacts {
        let mut facts = StatusFacts {
            now: Some(self.turn.now),
            agents: self.tally.agents(),
            silent: self.callers.started.silent().map(|name| agent_name(name, 1, "")).collect(),
            commands: self.engine.count(),
            failed: self.tally.failed_today(),
            shown: self.interruptible().map(|job| job.0),
            is_ending: self.is_closing(),
            socket: self.door.path().display().to_string(),
            ..StatusFacts::default()
        };
        let floods = self.screen.floods();
        for (job, keeper) in Keeper::all(&self.runs, &self.reports) {
            match self.engine.job(job).filter(|known| !known.has_ended()) {
                Some(known) => facts.runs.push(StatusRun {
                    number: job.0,
                    command: keeper.description().card.command.lines().next().unwrap_or_default().to_owned(),
                    since: keeper.since(),
                    waits: match Job::waiting(known) {
                        None => Waits::No,
                        Some(_) if self.may_be_answered(job, self.turn.now) => {
                            Waits::Answerable(self.screen.name_of(job.0))
                        }
                        Some(prompt) => Waits::Young { until: prompt.since + limits::PROMPT_YOUNG },
                    },
                    unshown: None,
                }),
                None if keeper.is_known_to_have_left() => facts.left.push(job.0),
                None => {}
            }
        }
        facts.runs.sort_by_key(|run| run.number);
        for run in &mut facts.runs {
            run.unshown = floods.iter().find(|flood| flood.job.0 == run.number).map(|flood| flood.unshown.lines);
        }
        facts
    }
}
