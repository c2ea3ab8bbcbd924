//! The project sessions that commands run in, and their record for the next host.
//!
//! [`crate::front::projects`] has the rules; `rpc/projects.rs` serves the programs that define, list and end them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Instant, SystemTime};

use super::recorder_link::RecorderLink;
use super::screen::Screen;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::front::command::Command;
use crate::front::projects::{ProjectId, Projects};
use crate::host::run::ActiveRun;
use crate::host::runs::Runs;
use crate::journal::record::timestamp;
use crate::limits;
use crate::sys::project;

#[derive(Debug, Default)]
pub(super) struct ProjectSessions {
    pub(super) known: Projects,
    /// The tops of the git projects of directories that were named in JSON, while they are few.
    tops: BTreeMap<String, Option<String>>,
    /// The commands that wait for the end of a suspension, as the console has said.
    held_back: BTreeSet<JobId>,
}

impl ProjectSessions {
    /// The sessions that an earlier host has kept.
    pub(super) fn new(known: Projects) -> Self {
        Self { known, ..Self::default() }
    }

    /// Finds out how deep in its git project a command is, if its directory came as a path. Otherwise its shim has
    /// looked.
    pub(super) fn find_depth(&mut self, command: &mut Command) {
        let Some(dir) = command.dir.clone() else { return };
        let top = self.top(&dir);
        let is_top = |above: &Path| top.as_deref().is_some_and(|top| above == Path::new(top));
        command.depth = Path::new(&dir).ancestors().position(is_top).and_then(|depth| depth.try_into().ok());
    }

    /// The top of the git project that this directory is in.
    fn top(&mut self, dir: &str) -> Option<String> {
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

    /// The project session of a command in this directory, if it does not name another one.
    pub(super) fn of_run(
        &mut self,
        command: &Command,
        dir: &[u8],
        is_running: impl Fn(ProjectId) -> bool,
    ) -> Option<ProjectId> {
        if command.project.is_some() {
            return command.project;
        }
        let dir = std::str::from_utf8(dir).ok()?;
        let top = command.depth.and_then(|depth| Path::new(dir).ancestors().nth(depth.into()));
        self.known.of_run(dir, top.and_then(Path::to_str), &now(), is_running)
    }

    /// Gives the definitions since the last call to the recorder.
    pub(super) fn keep(&mut self, recorder: &mut RecorderLink, now: Instant) {
        if let Some(text) = self.known.take_changed() {
            recorder.keep_projects(text, now);
        }
    }

    /// Returns true if a command of this project session may not begin yet, because that is suspended. The console says so
    /// once.
    pub(super) fn holds_back(&mut self, job: JobId, project: Option<ProjectId>, screen: &mut Screen) -> bool {
        let known = project.and_then(|id| self.known.get(id));
        let Some(known) = known.filter(|known| known.is_suspended) else { return false };
        if self.held_back.insert(job) {
            screen.say(format_args!("… #{} waits: the project session {} is suspended", job.0, known.name));
        }
        true
    }

    /// Lets the commands begin that a suspension has held back, now that it is over.
    pub(super) fn begin_held_back(&mut self, engine: &mut Engine) {
        self.held_back.clear();
        engine.start_queued();
    }
}

/// The time as the journal writes it.
pub(super) fn now() -> String {
    timestamp(SystemTime::now())
}

/// The commands of a project session that run, and those that have ended and left something running.
pub(super) fn commands(id: ProjectId, runs: &Runs, engine: &Engine) -> (Vec<JobId>, Vec<JobId>) {
    let own = runs.iter().filter(|(_, run)| run.description.project == Some(id)).map(|(job, _)| job);
    let is_running = |job: JobId| engine.job(job).is_some_and(|known| !Job::has_ended(known));
    let (running, over): (Vec<JobId>, Vec<JobId>) = own.partition(|&job| is_running(job));
    (running, over.into_iter().filter(|&job| runs.get(job).is_some_and(ActiveRun::has_left)).collect())
}

/// Returns true if a command of a project session runs, or has left something running.
pub(super) fn is_in_use(id: ProjectId, runs: &Runs, engine: &Engine) -> bool {
    let (running, over) = commands(id, runs, engine);
    !running.is_empty() || !over.is_empty()
}
