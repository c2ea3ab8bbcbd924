//! Background runs and their names. A name means the run in this directory's project, before others.
//!
//! Invariant: a name begins with a letter, so no number and no other reference to a run is one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Deserialize;

use super::ask::AskError;
use super::host_calls::{CallError, HostCalls};
use super::quoted;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::{ListParams, NoParams};
use crate::front::rpc::projects::SessionParams;
use crate::limits;
use crate::text::escape::escape_line;
pub(super) use crate::text::name::NAME_FORM;
use crate::text::name::is_service_name;

/// Returns true if a word can be the name of a service.
pub(super) fn is_name(word: &str) -> bool {
    is_service_name(word, limits::RPC_NAME_BYTES)
}

/// A run in the host's list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct HostRun {
    pub(super) run: u64,
    pub(super) whoami: String,
    pub(super) dir: String,
    pub(super) command: String,
    pub(super) name: Option<String>,
    pub(super) session: Option<String>,
    pub(super) why: Option<String>,
    pub(super) state: String,
    pub(super) background: bool,
    pub(super) started_ms_ago: u64,
    pub(super) exit: Option<u8>,
    pub(super) signal: Option<u8>,
    pub(super) message: Option<String>,
    pub(super) duration_ms: Option<u64>,
    pub(super) ports: Vec<u16>,
}

impl HostRun {
    /// Returns true if its shell has not ended.
    pub(super) fn is_live(&self) -> bool {
        self.exit.is_none()
    }

    /// The run for people: `#41 web`.
    pub(super) fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("#{} {}", self.run, escape_line(name, limits::RPC_NAME_BYTES)),
            None => format!("#{}", self.run),
        }
    }
}

/// A project session in the host's list.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct HostProject {
    pub(super) session: String,
    pub(super) name: String,
    pub(super) dir: PathBuf,
}

impl HostProject {
    /// All project sessions of the host.
    fn all(calls: &mut HostCalls) -> Result<Vec<Self>, CallError> {
        #[derive(Deserialize)]
        struct ProjectsAnswer {
            sessions: Vec<HostProject>,
        }
        let ProjectsAnswer { sessions } = calls.call_for::<method::ListSessions, _>(&NoParams {})?;
        Ok(sessions)
    }
}

/// The host's state: the runs that it keeps, oldest first, and their projects.
#[derive(Debug)]
pub(super) struct KnownRuns {
    pub(super) runs: Vec<HostRun>,
    projects: Vec<HostProject>,
}

impl KnownRuns {
    pub(super) fn ask(calls: &mut HostCalls) -> Result<Self, CallError> {
        #[derive(Deserialize)]
        struct RunsAnswer {
            runs: Vec<HostRun>,
        }
        let RunsAnswer { mut runs } = calls.call_for::<method::List, _>(&ListParams { all: true, session: None })?;
        runs.sort_by_key(|run| run.run);
        Ok(Self { runs, projects: HostProject::all(calls)? })
    }

    pub(super) fn project(&self, run: &HostRun) -> Option<&HostProject> {
        let session = run.session.as_ref()?;
        self.projects.iter().find(|project| project.session == *session)
    }

    /// The directory that a run's name belongs to: that of its project, or its own.
    fn place<'a>(&'a self, run: &'a HostRun) -> &'a Path {
        self.project(run).map_or(Path::new(&run.dir), |project| &project.dir)
    }

    /// The run that a name means in this directory: a running one before an ended one, the innermost project before
    /// others, and the newest of them. Elsewhere it must be the only one.
    fn named(&self, name: &str, here: &Path) -> Result<&HostRun, Notice> {
        let has_name = |run: &&HostRun| run.name.as_deref() == Some(name);
        let depth = |run: &HostRun| {
            let place = self.place(run);
            here.starts_with(place).then(|| place.components().count())
        };
        let near = self.runs.iter().filter(has_name).filter(|run| depth(run).is_some());
        if let Some(run) = near.max_by_key(|run| (depth(run), run.is_live(), run.run)) {
            return Ok(run);
        }
        let of_state = |is_live: bool| self.runs.iter().filter(has_name).filter(move |run| run.is_live() == is_live);
        let found: Vec<&HostRun> = of_state(true).collect();
        let found = if found.is_empty() { of_state(false).collect() } else { found };
        match found[..] {
            [only] => Ok(only),
            [] => {
                let problem = format!("there is no service {}", quoted(name));
                let hint = "rexec services shows the names, rexec ps the numbers of commands";
                Err(Notice::new(exit_code::NO_SUCH_RUN, problem, hint))
            }
            _ => {
                let them: Vec<String> =
                    found.iter().map(|run| format!("#{} in {}", run.run, self.place(run).display())).collect();
                let problem = format!("several services have the name {}: {}", quoted(name), them.join(", "));
                Err(Notice::new(exit_code::NO_SUCH_RUN, problem, "give the number of one of them"))
            }
        }
    }
}

/// The directory of the project with this name.
pub(super) fn project_dir(name: &str, calls: &mut HostCalls) -> Result<Option<PathBuf>, CallError> {
    let projects = HostProject::all(calls)?;
    Ok(projects.into_iter().find(|project| project.name == name).map(|project| project.dir))
}

/// The variables of the project session with this identifier, name or directory.
pub(super) fn project_env(word: &str, calls: &mut HostCalls) -> Result<BTreeMap<String, String>, CallError> {
    Ok(calls.call::<method::SessionEnv>(&SessionParams { session: word.to_owned() })?.env)
}

/// The number of the run that a name means here.
pub(super) fn number_of(name: &str) -> Result<u64, Notice> {
    let mut calls = HostCalls::connect(&super::socket_path()?)?;
    let known = KnownRuns::ask(&mut calls)?;
    let here = std::env::current_dir().unwrap_or_default();
    known.named(name, &here).map(|run| run.run)
}

/// As [`number_of`], for verbs that also read journals; `None` if no host runs.
pub(super) fn number_if_known(name: &str) -> Result<Option<u64>, Notice> {
    match HostCalls::connect(&super::socket_path()?) {
        Err(CallError::Ask(AskError::NoHost { .. })) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(_) => number_of(name).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(run: u64, name: &str, dir: &str, session: Option<&str>, exit: Option<u8>) -> HostRun {
        let (name, session) = (Some(name.to_owned()), session.map(str::to_owned));
        HostRun { run, name, dir: dir.to_owned(), session, exit, ..HostRun::default() }
    }

    #[test]
    fn a_name_means_the_nearest_run_that_has_it() {
        let project =
            |session: &str, dir: &str| HostProject { session: session.into(), name: "x".into(), dir: dir.into() };
        let known = KnownRuns {
            runs: vec![
                run(1, "web", "/p/src", Some("p1"), None),
                run(2, "web", "/p/q", Some("p2"), Some(0)),
                run(3, "web", "/p/q", Some("p2"), Some(1)),
                run(4, "db", "/else", None, None),
                run(5, "job", "/p", Some("p1"), None),
                run(6, "job", "/p/q", Some("p2"), None),
            ],
            projects: vec![project("p1", "/p"), project("p2", "/p/q")],
        };
        let named = |name, here: &str| known.named(name, Path::new(here)).map(|run| run.run).map_err(|why| why.code);
        assert_eq!(named("web", "/p/lib"), Ok(1), "not the inner project's");
        assert_eq!(named("web", "/p/q/deep"), Ok(3), "the newest");
        assert_eq!(named("web", "/elsewhere"), Ok(1), "the only one that runs");
        assert_eq!(named("db", "/p"), Ok(4));
        assert_eq!(named("job", "/elsewhere"), Err(3), "two");
        assert_eq!(named("none", "/p"), Err(3));
    }
}
