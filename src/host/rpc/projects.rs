//! Project sessions for programs: defines, lists, pauses and ends them.

use super::Requester;
use super::serve::RpcService;
use crate::core::end::Stopper;
use crate::core::engine::JobId;
use crate::front::projects::{ProjectDefinition, ProjectId};
use crate::front::rpc::error::{BAD_PARAMS, RpcError};
use crate::front::rpc::methods::{Serve, Served, method};
use crate::front::rpc::params::NoParams;
use crate::front::rpc::projects::{EndedSession, ListedSession, SessionList, SessionParams, SessionVariables};
use crate::front::rpc::start::StartParams;
use crate::host::keeper::RunControl;
use crate::host::project_sessions::{commands, is_in_use, now};
use crate::host::runs::KillRequest;

impl Serve<method::CreateSession, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, wanted: ProjectDefinition) -> Served<method::CreateSession> {
        let is_persons = self.rpc.meet(to.peer).is_persons;
        let id = self.projects.known.define(wanted, is_persons, &now())?;
        self.projects.keep(self.commands.recorder, self.commands.turn.now);
        self.listed_session(id).map(Some)
    }
}

impl Serve<method::ListSessions, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, _: NoParams) -> Served<method::ListSessions> {
        let all = self.projects.known.iter().filter_map(|known| self.listed_session(known.id).ok());
        Ok(Some(SessionList { sessions: all.collect() }))
    }
}

impl RpcService<'_> {
    fn listed_session(&self, id: ProjectId) -> Result<ListedSession, RpcError> {
        let (running, left) = commands(id, self.commands.runs, self.commands.engine);
        let is_background = |job: &&JobId| self.rpc.kept.get(job).is_some_and(|run| run.facts.background);
        let number = |job: &JobId| job.0;
        let background = running.iter().filter(is_background).chain(&left).map(number).collect();
        let runs = running.iter().map(number).collect();
        let known = self.projects.known.get(id).ok_or_else(|| RpcError::no_such_session(&id.name()))?;
        Ok(ListedSession::of(known, runs, background))
    }

    /// Finds a project session by its identifier, name or directory.
    pub(super) fn session_named(&self, word: &str) -> Result<ProjectId, RpcError> {
        let known = self.projects.known.find(word).map(|known| known.id);
        known.ok_or_else(|| RpcError::no_such_session(word))
    }
}

impl Serve<method::SessionEnv, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, SessionParams { session }: SessionParams) -> Served<method::SessionEnv> {
        let known = self.projects.known.find(&session).ok_or_else(|| RpcError::no_such_session(&session))?;
        let ports = known.port_variables().into_iter().map(|(name, port)| (name.to_owned(), port));
        Ok(Some(SessionVariables { env: known.env.clone().into_iter().chain(ports).collect() }))
    }
}

/// Ends its commands, and what they left running, and forgets it.
impl Serve<method::DestroySession, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: SessionParams) -> Served<method::DestroySession> {
        let id = self.session_named(&params.session)?;
        let (running, left) = commands(id, self.commands.runs, self.commands.engine);
        for &job in &running {
            // A paused command gets its signals when it goes on.
            let _ = self.commands.control(job).map(RunControl::resume);
            self.commands.engine.stop(job, Stopper::Project, self.commands.grace, self.commands.turn.now);
        }
        for &job in &left {
            let _ = self.commands.end_run(KillRequest {
                peer: None,
                job,
                by: Stopper::Project,
                grace: self.commands.grace,
            });
        }
        self.projects.known.remove(id);
        self.projects.keep(self.commands.recorder, self.commands.turn.now);
        self.projects.begin_held_back(self.commands.engine);
        Ok(Some(EndedSession { ended: running.iter().chain(&left).map(|job| job.0).collect() }))
    }
}

impl Serve<method::SuspendSession, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: SessionParams) -> Served<method::SuspendSession> {
        self.suspend_session(&params.session, true).map(Some)
    }
}

impl Serve<method::ResumeSession, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: SessionParams) -> Served<method::ResumeSession> {
        self.suspend_session(&params.session, false).map(Some)
    }
}

impl RpcService<'_> {
    /// Pauses the commands of a project session, or resumes them.
    fn suspend_session(&mut self, word: &str, is_suspended: bool) -> Result<ListedSession, RpcError> {
        let id = self.session_named(word)?;
        let (running, left) = commands(id, self.commands.runs, self.commands.engine);
        let name = self.projects.known.get(id).map(|known| known.name.clone()).unwrap_or_default();
        for job in running.into_iter().chain(left) {
            if is_suspended {
                // One that is about to end stays as it is.
                let _ = self.commands.control(job).and_then(RunControl::pause);
            } else {
                let _ = self.commands.control(job).map(RunControl::resume);
            }
            self.commands.turn.touch(job);
        }
        self.projects.known.suspend(id, is_suspended);
        if !is_suspended {
            self.projects.begin_held_back(self.commands.engine);
        }
        let done = if is_suspended { "suspended" } else { "resumed" };
        self.commands.screen.say(format_args!("… the project session {name} is {done}, as a program asked"));
        self.listed_session(id)
    }

    /// Completes a start with the project session that it names, which is the second result.
    pub(super) fn in_session(&mut self, params: &StartParams) -> Result<(StartParams, Option<ProjectId>), RpcError> {
        let Some(word) = &params.session else {
            return match params.ports {
                None => Ok((params.clone(), None)),
                Some(_) => Err(RpcError::new(BAD_PARAMS, "ports: it goes with session")),
            };
        };
        let known = &mut self.projects.known;
        let id = match known.find(word).map(|known| known.id) {
            Some(id) => id,
            // A client that knows the top of its project need not define it.
            None if word.starts_with('/') => {
                let is_running = |id| is_in_use(id, self.commands.runs, self.commands.engine);
                known.of_run(word, Some(word), &now(), is_running).ok_or_else(|| RpcError::no_such_session(word))?
            }
            None => return Err(RpcError::no_such_session(word)),
        };
        if let Some(count) = params.ports {
            known.need_ports(id, count)?;
        }
        let found = known.get(id).ok_or_else(|| RpcError::no_such_session(word))?;
        if found.is_suspended {
            let sentence = format!("the session {} is suspended", found.name);
            return Err(RpcError::busy(sentence).hint("session.resume has it go on"));
        }
        let params = params.within(found);
        self.projects.keep(self.commands.recorder, self.commands.turn.now);
        Ok((params, Some(id)))
    }
}
