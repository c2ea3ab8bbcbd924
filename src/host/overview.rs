//! The commands in the status line.

use super::keeper::Keeper;
use super::prompt_policy::young_until;
use super::screen::Screen;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::sink::console::status_line::{StatusFacts, StatusRun, Waits};

/// Adds the commands that run, oldest first, and those that have left something.
pub(super) fn add_commands<'a>(
    facts: &mut StatusFacts,
    all: impl Iterator<Item = (JobId, Keeper<'a>)>,
    engine: &Engine,
    screen: &Screen,
) {
    let floods = screen.floods();
    for (job, keeper) in all {
        match engine.job(job).filter(|known| !known.has_ended()) {
            Some(known) => facts.runs.push(StatusRun {
                number: job.0,
                command: keeper.description().card.command.lines().next().unwrap_or_default().to_owned(),
                since: keeper.since(),
                waits: match Job::waiting(known).map(young_until) {
                    None => known.held().map_or(Waits::No, |hold| Waits::Decision {
                        leaf: hold.subject.leaf.clone(),
                        until: hold.until,
                    }),
                    Some(until) if facts.now.is_some_and(|now| now < until) => Waits::Young { until },
                    Some(_) => Waits::Answerable(screen.name_of(job.0)),
                },
                unshown: floods.iter().find(|flood| flood.job == job).map(|flood| flood.unshown.lines),
            }),
            None if keeper.is_known_to_have_left() => facts.left.push(job.0),
            None => {}
        }
    }
    facts.runs.sort_by_key(|run| run.number);
}
