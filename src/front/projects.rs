//! Project sessions: a directory with the environment, shell and ports of its commands, and a name under which people
//! and programs list, pause and end these commands together. A project session is not an agent's session
//! ([`super::sessions`]), and not a host's (`rexec sessions`).
//!
//! A command belongs to the innermost project session around its directory. The first command in a git project makes
//! one for the project; `session.create` makes others.
//!
//! Invariants: no two have the same directory, name or port; no name is an identifier or a directory; one with a
//! running command does not go by itself; their number is bounded; the values of secret-named variables are in memory
//! only, never in the text on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::text::name::{is_name, name_of};
use crate::text::redact::{Redactor, is_secret_name};

/// Columns of a name made from a directory.
const NAME_COLUMNS: usize = 48;
/// Bytes of a name reserved for a number that tells it from others.
const NUMBER_BYTES: usize = 8;

/// The number of a project session, never used again by one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProjectId(pub u32);

impl ProjectId {
    /// The identifier that clients use.
    #[must_use]
    pub fn name(self) -> String {
        format!("p{}", self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSession {
    pub id: ProjectId,
    pub name: String,
    /// An absolute path.
    pub dir: String,
    /// The variables of its commands besides the host's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Secret-named variables that were not kept over a restart of the host.
    #[serde(default)]
    pub lost: Vec<String>,
    #[serde(default)]
    pub shell: Option<String>,
    /// The first and the last of its ports.
    #[serde(default)]
    pub ports: Option<(u16, u16)>,
    /// True if its first command made it, and nobody has defined it.
    #[serde(default)]
    pub is_implied: bool,
    /// A person has defined it, so its variables are given to all commands in it.
    #[serde(default)]
    pub is_given: bool,
    #[serde(default)]
    pub is_suspended: bool,
    /// The time of its making, RFC 3339.
    pub created_at: String,
    /// The start of its last command.
    pub last_activity: String,
}

impl ProjectSession {
    /// The variables that name its ports.
    #[must_use]
    pub fn port_variables(&self) -> Vec<(&'static str, String)> {
        const NAMES: [&str; 3] = ["PORT", "DEV_SERVER_PORT", "STORYBOOK_PORT"];
        let (first, last) = self.ports.unwrap_or((1, 0));
        NAMES.into_iter().zip(first..=last).map(|(name, port)| (name, port.to_string())).collect()
    }

    /// The part for the disk.
    fn kept(&self) -> Self {
        let (lost, env) = self.env.clone().into_iter().partition::<BTreeMap<_, _>, _>(|(name, value)| {
            // The name decides, however short the value is.
            (is_secret_name(name.as_bytes()) && !value.is_empty()) || has_secret(value.as_bytes())
        });
        let lost = self.lost.iter().cloned().chain(lost.into_keys()).collect();
        Self { env, lost, ..self.clone() }
    }
}

/// A client's definition of a project session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectDefinition {
    pub dir: String,
    /// Its name; the default is the directory's.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The shell of its commands; the default is `/bin/sh`.
    #[serde(default)]
    pub shell: Option<String>,
    #[serde(default)]
    pub ports: Option<WantedPorts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "neither a number of ports nor the first and the last of them")]
pub enum WantedPorts {
    /// This many, wherever they are free.
    Count(u16),
    /// From the first to the last.
    Range(u16, u16),
}

/// The reason why there is no such project session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectError {
    /// This field is not valid, for this reason.
    Bad(&'static str, String),
    /// Another one has this name, or this directory.
    Taken(ProjectId, String),
    /// There are too many.
    Full,
}

#[derive(Debug, Default)]
pub struct Projects {
    all: BTreeMap<ProjectId, ProjectSession>,
    last: u32,
    /// The directories of project sessions that this host has made or changed. The disk may have newer facts about the
    /// others.
    own: BTreeSet<String>,
    /// The directories of forgotten project sessions.
    forgotten: BTreeSet<String>,
    /// The disk has an older state.
    has_changed: bool,
}

/// The change for the disk. Another host may keep others in the same file. See the recorder's `ProjectsChange`.
#[derive(Debug, Serialize)]
struct KeptProjects<'a> {
    kept: Vec<ProjectSession>,
    own: &'a BTreeSet<String>,
    forgotten: &'a BTreeSet<String>,
}

impl Projects {
    /// Reads the text of earlier hosts. Returns the parts that are understood, and true if that is all of it.
    #[must_use]
    pub fn read(text: &[u8]) -> (Self, bool) {
        let mut projects = Self::default();
        if text.is_empty() {
            return (projects, true);
        }
        let Ok(entries) = serde_json::from_slice::<Vec<serde_json::Value>>(text) else { return (projects, false) };
        let is_sound = |kept: &ProjectSession| kept.dir.starts_with('/');
        let count = entries.len();
        let kept: Vec<ProjectSession> =
            entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok().filter(is_sound)).collect();
        let is_all = kept.len() == count;
        projects.last = kept.iter().map(|kept| kept.id.0).max().unwrap_or(0);
        for mut kept in kept.into_iter().take(limits::PROJECTS_MAX) {
            // Two hosts number independently, so they may have used a number twice.
            if projects.all.contains_key(&kept.id) {
                kept.id = projects.next_id();
            }
            // Older hosts took other names. The new name of one of those may be the name of the next.
            if !is_project_name(&kept.name) || projects.find(&kept.name).is_some() {
                kept.name = projects.free_name(&kept.name);
            }
            // The commands of the earlier host are gone, so none is paused.
            projects.all.insert(kept.id, ProjectSession { is_suspended: false, ..kept });
        }
        (projects, is_all)
    }

    /// The change for the disk, if its state is older.
    pub fn take_changed(&mut self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        let kept = self.all.values().map(ProjectSession::kept).collect();
        let change = KeptProjects { kept, own: &self.own, forgotten: &self.forgotten };
        Some(serde_json::to_vec(&change).expect("these types always serialize"))
    }

    fn next_id(&mut self) -> ProjectId {
        self.last = self.last.saturating_add(1);
        ProjectId(self.last)
    }

    /// Writes all of them to the disk anew.
    pub fn keep_anew(&mut self) {
        self.own = self.all.values().map(|known| known.dir.clone()).collect();
        self.has_changed = true;
    }

    /// Notes that a project session was made or changed here.
    fn note(&mut self, id: ProjectId) {
        self.own.extend(self.all.get(&id).map(|known| known.dir.clone()));
        self.has_changed = true;
    }

    /// The project sessions, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &ProjectSession> {
        self.all.values()
    }

    #[must_use]
    pub fn get(&self, id: ProjectId) -> Option<&ProjectSession> {
        self.all.get(&id)
    }

    /// The project session with this identifier, name or directory.
    #[must_use]
    pub fn find(&self, word: &str) -> Option<&ProjectSession> {
        let dir = plain(word);
        let by = |is_it: &dyn Fn(&ProjectSession) -> bool| self.all.values().find(|known| is_it(known));
        by(&|known| known.id.name() == word)
            .or_else(|| by(&|known| known.name == word))
            .or_else(|| by(&|known| known.dir == dir))
    }

    /// The innermost project session around this directory.
    #[must_use]
    pub fn of_dir(&self, dir: &str) -> Option<ProjectId> {
        let around = self.all.values().filter(|known| Path::new(dir).starts_with(&known.dir));
        around.max_by_key(|known| known.dir.len()).map(|known| known.id)
    }

    /// The project session of a command in `dir`, whose git project's top is `top`. The first command of a project
    /// makes it. `None` for a command outside of all of them. If there are too many, the oldest idle one goes.
    pub fn of_run(
        &mut self,
        dir: &str,
        top: Option<&str>,
        now: &str,
        is_running: impl Fn(ProjectId) -> bool,
    ) -> Option<ProjectId> {
        let top = top.map(plain);
        let top = top.as_deref();
        let inner = self.of_dir(dir).filter(|id| top.is_none_or(|top| self.all[id].dir.len() >= top.len()));
        let id = match (inner, top) {
            (Some(id), _) => id,
            (None, Some(top)) => self.imply(top, now, is_running)?,
            (None, None) => return None,
        };
        if let Some(known) = self.all.get_mut(&id) {
            now.clone_into(&mut known.last_activity);
            // Another host may have a newer definition of a defined one.
            if known.is_implied {
                self.own.insert(known.dir.clone());
            }
        }
        Some(id)
    }

    fn imply(&mut self, top: &str, now: &str, is_running: impl Fn(ProjectId) -> bool) -> Option<ProjectId> {
        if self.all.len() >= limits::PROJECTS_MAX {
            let mut oldest_first: Vec<&ProjectSession> =
                self.all.values().filter(|known| known.is_implied && !known.is_suspended).collect();
            oldest_first.sort_by(|one, other| one.last_activity.cmp(&other.last_activity));
            // `last_activity` is the start of a command, which may still run.
            let idle = oldest_first.iter().map(|known| known.id).find(|&id| !is_running(id))?;
            self.remove(idle);
        }
        Some(self.insert(top, now, true))
    }

    /// Adds a project session with a free name.
    fn insert(&mut self, dir: &str, now: &str, is_implied: bool) -> ProjectId {
        let id = self.next_id();
        let base = Path::new(dir).file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
        let name = self.free_name(&base);
        self.forgotten.remove(dir);
        let made = ProjectSession {
            id,
            name,
            dir: dir.to_owned(),
            env: BTreeMap::new(),
            lost: Vec::new(),
            shell: None,
            ports: None,
            is_implied,
            is_given: false,
            is_suspended: false,
            created_at: now.to_owned(),
            last_activity: now.to_owned(),
        };
        self.all.insert(id, made);
        self.note(id);
        id
    }

    /// A name after this text that no other one has.
    fn free_name(&self, text: &str) -> String {
        let mut base = name_of(text, NAME_COLUMNS).replace('/', "_");
        while base.len() > limits::PROJECT_NAME_BYTES - NUMBER_BYTES {
            base.pop();
        }
        let base = if base.trim().is_empty() { "project" } else { base.trim() };
        let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
        let is_free = |name: &String| is_project_name(name) && self.find(name).is_none();
        std::iter::once(base.to_owned()).chain(numbered).find(is_free).expect("numbers do not run out")
    }

    /// Defines a project session, even one that a command has made. `is_persons` says that a person does.
    ///
    /// # Errors
    /// A field is not valid, the name or the directory is another one's, or there are too many.
    pub fn define(
        &mut self,
        wanted: ProjectDefinition,
        is_persons: bool,
        now: &str,
    ) -> Result<ProjectId, ProjectError> {
        let dir = check(&wanted)?;
        let known = self.all.values().find(|known| known.dir == dir).cloned();
        if let Some(known) = known.as_ref().filter(|known| !known.is_implied) {
            return Err(ProjectError::Taken(known.id, format!("{dir} has the project session {}", known.name)));
        }
        let own = known.as_ref().map(|known| known.id);
        if let Some(name) = &wanted.name
            && let Some(other) = self.find(name).filter(|other| Some(other.id) != own)
        {
            return Err(ProjectError::Taken(other.id, format!("the name {name} is taken")));
        }
        let ports = wanted.ports.map(|ports| self.allocate(ports, own)).transpose()?;
        if own.is_none() && self.all.len() >= limits::PROJECTS_MAX {
            return Err(ProjectError::Full);
        }
        let id = own.unwrap_or_else(|| self.insert(&dir, now, false));
        let made = self.all.get_mut(&id).expect("it was inserted");
        (made.is_implied, made.is_given) = (false, is_persons);
        made.env = wanted.env;
        made.lost = Vec::new();
        made.shell = wanted.shell;
        made.ports = ports.or(made.ports);
        if let Some(name) = wanted.name {
            made.name = name;
        }
        self.note(id);
        Ok(id)
    }

    /// Gives this one ports, if it has none.
    ///
    /// # Errors
    /// Fewer ports are free.
    pub fn need_ports(&mut self, id: ProjectId, count: u16) -> Result<(), ProjectError> {
        if self.all.get(&id).is_none_or(|known| known.ports.is_some()) {
            return Ok(());
        }
        let ports = self.allocate(WantedPorts::Count(count), Some(id))?;
        if let Some(known) = self.all.get_mut(&id) {
            known.ports = Some(ports);
            self.note(id);
        }
        Ok(())
    }

    fn allocate(&self, wanted: WantedPorts, own: Option<ProjectId>) -> Result<(u16, u16), ProjectError> {
        let bad = |why: &str| Err(ProjectError::Bad("ports", why.to_owned()));
        let taken: Vec<(u16, u16)> =
            self.all.values().filter(|known| Some(known.id) != own).filter_map(|known| known.ports).collect();
        let is_free = |first: u16, last: u16| taken.iter().all(|&(from, to)| last < from || to < first);
        match wanted {
            WantedPorts::Range(first, last) if first == 0 || last < first => bad("not a first and a last port"),
            WantedPorts::Range(first, last) if is_free(first, last) => Ok((first, last)),
            WantedPorts::Range(..) => bad("another project session has some of these ports"),
            WantedPorts::Count(count) if !(1..=limits::PROJECT_PORTS_MAX).contains(&count) => {
                bad(&format!("not a number from 1 to {}", limits::PROJECT_PORTS_MAX))
            }
            WantedPorts::Count(count) => {
                let starts = (limits::PROJECT_PORTS_FIRST..=limits::PROJECT_PORTS_LAST)
                    .step_by(limits::PROJECT_PORTS_MAX.into());
                let mut ranges = starts.map(|first| (first, first + (count - 1)));
                ranges.find(|&(first, last)| is_free(first, last)).map_or_else(|| bad("none are free"), Ok)
            }
        }
    }

    pub fn suspend(&mut self, id: ProjectId, is_suspended: bool) {
        if let Some(known) = self.all.get_mut(&id) {
            known.is_suspended = is_suspended;
        }
    }

    pub fn remove(&mut self, id: ProjectId) {
        let Some(known) = self.all.remove(&id) else { return };
        self.has_changed = true;
        self.own.remove(&known.dir);
        self.forgotten.insert(known.dir);
        if self.forgotten.len() > limits::PROJECTS_MAX {
            self.forgotten.pop_first();
        }
    }
}

/// Returns true if a value has the shape of a secret, such as a token or an address with a password.
fn has_secret(value: &[u8]) -> bool {
    let mut redactor = Redactor::new(std::iter::empty::<(&[u8], &[u8])>());
    redactor.redact(value, &mut Vec::new());
    redactor.count() > 0
}

/// A path without redundant parts: doubled slashes, `.`, and a slash at its end. `..` stays, because the part before it
/// may be a symbolic link.
fn plain(dir: &str) -> String {
    let path: PathBuf = Path::new(dir).components().collect();
    path.into_os_string().into_string().expect("parts of a string are strings")
}

/// Returns true if a project session may have this name. Identifiers and directories are refused.
fn is_project_name(name: &str) -> bool {
    is_name(name, limits::PROJECT_NAME_BYTES) && !is_project_id(name) && !name.contains('/')
}

/// Returns true if this word has the form of an identifier.
#[must_use]
pub fn is_project_id(word: &str) -> bool {
    word.strip_prefix('p').is_some_and(|rest| rest.parse::<u32>().is_ok())
}

/// Checks a definition; returns its directory.
fn check(wanted: &ProjectDefinition) -> Result<String, ProjectError> {
    let bad = |field, why: &str| Err(ProjectError::Bad(field, why.to_owned()));
    let has_nul = |text: &String| text.contains('\0');
    if !wanted.dir.starts_with('/') || has_nul(&wanted.dir) || wanted.dir.len() > limits::PROJECT_TEXT_BYTES {
        return bad("dir", "not an absolute path, too long, or with a NUL");
    }
    if wanted.name.as_ref().is_some_and(|name| !is_project_name(name)) {
        let why = "empty, too long, with a slash, a control or hidden character or one of a shell's, or like an identifier (p1)";
        return bad("name", why);
    }
    if wanted.shell.as_ref().is_some_and(|shell| !shell.starts_with('/') || has_nul(shell)) {
        return bad("shell", "not an absolute path, or with a NUL");
    }
    let is_variable =
        |name: &String, value: &String| !name.is_empty() && !name.contains('=') && !has_nul(name) && !has_nul(value);
    let bytes: usize = wanted.env.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > limits::PROJECT_ENV_BYTES || !wanted.env.iter().all(|(name, value)| is_variable(name, value)) {
        return bad("env", "too long, or with a name or value that no environment can hold");
    }
    Ok(plain(&wanted.dir))
}

#[cfg(test)]
mod tests;
