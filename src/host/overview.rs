//! What the status line says of the host.

use super::Host;
use crate::core::job::Job;
use crate::sink::console::status_line::{StatusFacts, StatusRun};

impl Host {
    /// Draws the status line when that is due.
    pub(super) fn refresh_status(&mut self) {
        if self.screen.is_status_due(self.turn.now) {
            let facts = self.status_facts();
            self.screen.draw_status(facts, self.turn.now);
        }
    }

    fn status_facts(&self) -> StatusFacts {
        let mut facts = StatusFacts {
            now: Some(self.turn.now),
            agents: self.tally.agents(),
            failed: self.tally.failed_today(),
            shown: self.interruptible().map(|job| job.0),
            is_ending: self.is_closing(),
            socket: self.door.path().display().to_string(),
            ..StatusFacts::default()
        };
        let floods = self.screen.floods();
        for (job, run) in self.runs.iter() {
            match self.engine.job(job).filter(|known| !known.is_closed()) {
                Some(known) => facts.runs.push(StatusRun {
                    number: job.0,
                    command: run.description.command.lines().next().unwrap_or_default().to_owned(),
                    since: run.accepted,
                    waits: Job::waiting(known).is_some(),
                    unshown: floods.iter().find(|flood| flood.job == job).map(|flood| flood.unshown.lines),
                }),
                None if !run.left.is_empty() => facts.left.push(job.0),
                None => {}
            }
        }
        facts
    }
}
