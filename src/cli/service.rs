//! Background runs and their names. A name means the run in this directory's project, before others.
//!
//! Invariant: a name begins with a letter, so no number and no other reference to a run is one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::ask::AskError;
use super::host_calls::{CallError, HostCalls};
use super::quoted;
use crate::front::rpc::answers::RunList;
use crate::front::rpc::listing::ListedRun;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::{ListParams, NoParams};
use crate::front::rpc::projects::{ListedSession, SessionParams};
use crate::limits;
use crate::text::escape::escape_line;
pub(super) use crate::text::name::NAME_FORM;
use crate::text::name::is_service_name;

/// Returns true if a word can be the name of a service.
pub(super) fn is_name(word: &str) -> bool {
    is_service_name(word, limits::RPC_NAME_BYTES)
}

/// A run for people: `#41 web`.
pub(super) fn title(run: &ListedRun) -> String {
    match run.service() {
        Some(name) => format!("#{} {}", run.number(), escape_line(name, limits::RPC_NAME_BYTES)),
        None => format!("#{}", run.number()),
    }
}

/// All project sessions of the host.
pub(super) fn projects(calls: &mut HostCalls) -> Result<Vec<ListedSession>, CallError> {
    Ok(calls.call::<method::ListSessions>(&NoParams {})?.sessions)
}

/// The host's state: the runs that it keeps, oldest first, and their projects.
#[derive(Debug)]
pub(super) struct KnownRuns {
    pub(super) runs: Vec<ListedRun>,
    projects: Vec<ListedSession>,
}

impl KnownRuns {
    pub(super) fn ask(calls: &mut HostCalls) -> Result<Self, CallError> {
        let RunList { mut runs } = calls.call::<method::List>(&ListParams { all: true, session: None })?;
        runs.sort_by_key(ListedRun::number);
        Ok(Self { runs, projects: projects(calls)? })
    }

    pub(super) fn project(&self, run: &ListedRun) -> Option<&ListedSession> {
        let session = run.facts.session.as_ref()?;
        self.projects.iter().find(|project| project.session == *session)
    }

    /// The directory that a run's name belongs to: that of its project, or its own.
    fn place<'a>(&'a self, run: &'a ListedRun) -> &'a Path {
        Path::new(self.project(run).map_or(&run.facts.card.dir, |project| &project.dir))
    }

    /// The run that a name means in this directory: a running one before an ended one, the innermost project before
    /// others, and the newest of them. Elsewhere it must be the only one.
    fn named(&self, name: &str, here: &Path) -> Result<&ListedRun, Notice> {
        let has_name = |run: &&ListedRun| run.service() == Some(name);
        let depth = |run: &ListedRun| {
            let place = self.place(run);
            here.starts_with(place).then(|| place.components().count())
        };
        let near = self.runs.iter().filter(has_name).filter(|run| depth(run).is_some());
        if let Some(run) = near.max_by_key(|run| (depth(run), run.end.is_none(), run.number())) {
            return Ok(run);
        }
        let of_state =
            |is_live: bool| self.runs.iter().filter(has_name).filter(move |run| run.end.is_none() == is_live);
        let found: Vec<&ListedRun> = of_state(true).collect();
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
                    found.iter().map(|run| format!("#{} in {}", run.number(), self.place(run).display())).collect();
                let problem = format!("several services have the name {}: {}", quoted(name), them.join(", "));
                Err(Notice::new(exit_code::NO_SUCH_RUN, problem, "give the number of one of them"))
            }
        }
    }
}

/// The directory of the project with this name.
pub(super) fn project_dir(name: &str, calls: &mut HostCalls) -> Result<Option<PathBuf>, CallError> {
    let named = projects(calls)?.into_iter().find(|project| project.name == name);
    Ok(named.map(|project| project.dir.into()))
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
    known.named(name, &here).map(ListedRun::number)
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
    use crate::front::how_ended::HowEnded;
    use crate::front::rpc::listing::RunFacts;
    use crate::journal::record::PublishedCard;

    fn run(run: u64, name: &str, dir: &str, session: Option<&str>, exit: Option<u8>) -> ListedRun {
        let card = PublishedCard { seq: run, name: name.into(), dir: dir.into(), ..PublishedCard::default() };
        let facts = RunFacts { card, session: session.map(str::to_owned), ..RunFacts::default() };
        let end = exit.map(|exit| HowEnded { exit, ..HowEnded::default() });
        ListedRun { facts, end, ..ListedRun::default() }
    }

    #[test]
    fn a_name_means_the_nearest_run_that_has_it() {
        let project = |session: &str, dir: &str| ListedSession {
            session: session.into(),
            dir: dir.into(),
            ..ListedSession::default()
        };
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
        let named =
            |name, here: &str| known.named(name, Path::new(here)).map(ListedRun::number).map_err(|why| why.code);
        assert_eq!(named("web", "/p/lib"), Ok(1), "not the inner project's");
        assert_eq!(named("web", "/p/q/deep"), Ok(3), "the newest");
        assert_eq!(named("web", "/elsewhere"), Ok(1), "the only one that runs");
        assert_eq!(named("db", "/p"), Ok(4));
        assert_eq!(named("job", "/elsewhere"), Err(3), "two");
        assert_eq!(named("none", "/p"), Err(3));
    }
}
