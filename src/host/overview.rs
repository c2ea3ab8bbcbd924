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
            agents: 0,
            failed: 0,
            shown: self.interruptible().map(|job| job.0),
            is_ending: self.is_closing(),
            socket: self.door.path().display().to_string(),
            ..StatusFacts::default()
        };
        for (job, run) in self.runs.iter() {
            match self.engine.job(job).filter(|known| !known.is_closed()) {
                Some(known) => facts.runs.push(StatusRun {
                    number: job.0,
                    command: run.description.command.lines().next().unwrap_or_default().to_owned(),
                    since: run.accepted,
                    waits: Job::waiting(known).is_some(),
                    unshown: None,
                }),
                None if !run.left.is_empty() => facts.left.push(job.0),
                None => {}
            }
        }
        facts
    }
}
