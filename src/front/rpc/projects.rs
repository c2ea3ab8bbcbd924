//! Project sessions in JSON-RPC: `session.create`, `session.list`, `session.destroy`, `session.suspend` and
//! `session.resume`, and the part of a start that comes from one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::{BAD_PARAMS, BUSY, NAME_TAKEN, NO_SUCH_SESSION, RpcError};
use super::start::{EnvMode, StartParams};
use crate::front::projects::{ProjectError, ProjectSession};
use crate::limits;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    /// Its identifier, name or directory.
    pub session: String,
}

/// A project session in an answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedSession {
    pub session: String,
    pub name: String,
    pub dir: String,
    /// `active`, `idle` or `suspended`.
    pub state: Cow<'static, str>,
    /// Its running commands.
    pub runs: Vec<u64>,
    /// Its commands that outlive their connections, and ended ones that left something running.
    pub background: Vec<u64>,
    /// The first and the last of its ports.
    pub ports: Vec<u16>,
    /// The names of its variables. Their values may be secrets.
    pub env: Vec<String>,
    /// Secret-named variables that were not kept over a restart of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_env: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// True if nobody has defined it.
    pub implied: bool,
    /// True if its variables are given to all commands in it.
    pub given: bool,
    pub created_at: String,
    /// The start of its last command.
    pub last_activity: String,
}

/// The project sessions.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionList {
    pub sessions: Vec<ListedSession>,
}

/// The variables for the commands of a project session, with their values.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionVariables {
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct EndedSession {
    /// Its commands that are ending now.
    pub ended: Vec<u64>,
}

impl ListedSession {
    /// The answer about a project session with these running commands.
    #[must_use]
    pub fn of(known: &ProjectSession, runs: Vec<u64>, background: Vec<u64>) -> Self {
        let state = match (known.is_suspended, runs.is_empty() && background.is_empty()) {
            (true, _) => "suspended",
            (false, true) => "idle",
            (false, false) => "active",
        };
        Self {
            session: known.id.name(),
            name: known.name.clone(),
            dir: known.dir.clone(),
            state: state.into(),
            runs,
            background,
            ports: known.ports.map(|(first, last)| vec![first, last]).unwrap_or_default(),
            env: known.env.keys().cloned().collect(),
            lost_env: known.lost.clone(),
            shell: known.shell.clone(),
            implied: known.is_implied,
            given: known.is_given,
            created_at: known.created_at.clone(),
            last_activity: known.last_activity.clone(),
        }
    }
}

impl RpcError {
    /// No project session has this identifier, name or directory.
    #[must_use]
    pub fn no_such_session(word: &str) -> Self {
        let word: String = word.chars().take(limits::PROJECT_NAME_BYTES).collect();
        Self::new(NO_SUCH_SESSION, format!("there is no session {word:?}"))
            .hint("rexec projects or session.list has those that are; session.create makes one")
    }
}

impl From<ProjectError> for RpcError {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Bad(field, why) => Self::new(BAD_PARAMS, format!("{field}: {why}")),
            ProjectError::Taken(_, why) => {
                Self::new(NAME_TAKEN, why).hint("use that one, or end it first with session.destroy")
            }
            ProjectError::Full => Self::new(BUSY, format!("there are {} sessions already", limits::PROJECTS_MAX))
                .hint("end one of them, with session.destroy"),
        }
    }
}

impl StartParams {
    /// The start with the directory, shell and variables of its project session; its own win.
    #[must_use]
    pub fn within(&self, known: &ProjectSession) -> Self {
        let mut params = self.clone();
        params.dir.get_or_insert_with(|| known.dir.clone());
        params.shell = known.shell.clone();
        if self.env_mode == EnvMode::Add {
            params.env.clone_from(&known.env);
        }
        params.env.extend(known.port_variables().into_iter().map(|(name, port)| (name.to_owned(), port)));
        params.env.extend(self.env.clone());
        params
    }
}
