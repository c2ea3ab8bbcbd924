//! Which project session each command runs in, and what is kept of them for the next host.
//!
//! [`crate::front::projects`] has the rules; `rpc/projects.rs` serves the programs that define, list and end them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use super::Host;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::front::command::Command;
use crate::front::projects::{ProjectId, Projects};
use crate::host::runs::Runs;
use crate::journal::record::timestamp;
use crate::limits;
use crate::sys::project;

/// The project sessions, and what was found out about directories.
#[derive(Debug, Default)]
pub(super) struct ProjectSessions {
    pub(super) known: Projects,
    /// The tops of the git projects of directories that were named in JSON, while they are few.
    tops: BTreeMap<String, Option<String>>,
}

impl ProjectSessions {
    /// Those that an earlier host has kept.
    pub(super) fn new(known: Projects) -> Self {
        Self { known, tops: BTreeMap::new() }
    }

    /// The top of the git project of a command in this directory.
    fn top(&mut self, command: &Command, dir: &str) -> Option<String> {
        if command.dir.is_none() {
            // Its shim has looked.
            let above = Path::new(dir).ancestors().nth(command.depth?.into())?;
            return above.to_str().map(str::to_owned);
        }
        if let Some(top) = self.tops.get(dir) {
            return top.clone();
        }
        let top = project::top(Path::new(dir)).and_then(|top| top.to_str().map(str::to_owned));
        if self.tops.len() >= limits::PROJECTS_MAX {
            self.tops.clear();
        }
        self.tops.insert(dir.to_owned(), top.clone());
        top
    }

    /// The project session of a command in this directory.
    pub(super) fn of_run(&mut self, command: &Command, dir: &[u8]) -> Option<ProjectId> {
        let dir = std::str::from_utf8(dir).ok()?;
        let top = self.top(command, dir);
        self.known.of_run(dir, top.as_deref(), &now())
    }
}

/// The time as the journal writes it.
pub(super) fn now() -> String {
    timestamp(SystemTime::now())
}

/// The commands of a project session that run, and those that have ended and left something running.
pub(super) fn commands(id: ProjectId, runs: &Runs, engine: &Engine) -> (Vec<JobId>, Vec<JobId>) {
    let own = runs.iter().filter(|(_, run)| run.description.project == Some(id)).map(|(job, _)| job);
    own.partition(|&job| engine.job(job).is_some_and(|known| !Job::is_closed(known)))
}

impl Host {
    /// Has the recorder keep what was defined since the last call.
    pub(super) fn keep_projects(&mut self) {
        if let Some(text) = self.projects.known.take_changed() {
            self.recorder.keep_projects(text, self.turn.now);
        }
    }
}
