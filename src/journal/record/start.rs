//! The record of a run that begins, type `start`. The run's other records, `end` and `lost`, repeat its fields.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::environment::{EnvironmentRef, KeptEnvironment};
use super::fields::is_default;
use super::text_ref::TextRef;
use crate::text::agent_name::agent_name;
use crate::text::encode::base64;

/// What is known about a run when it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartRecord {
    /// The run's number, unique within one host.
    pub seq: u64,
    /// When the run began: see [`super::timestamp`].
    pub time: String,
    /// The caller's name.
    pub whoami: String,
    /// The working directory.
    pub dir: String,
    /// The variables that the caller set on purpose, never the values of an inherited environment.
    pub envs: BTreeMap<String, String>,
    /// The whole argument vector as the caller passed it.
    pub exec: Vec<String>,
    /// What a person would say was run: the command without the agent's wrapper.
    pub command: String,
    /// What it is for, in its caller's words.
    #[serde(skip_serializing_if = "is_default")]
    pub why: String,
    /// The name of the service that it is.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// The shell that runs it.
    pub shell: String,
    /// The bytes of `exec` in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "is_default")]
    pub exec_b64: Option<Vec<String>>,
    /// The bytes of `dir` in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "is_default")]
    pub dir_b64: Option<String>,
    /// The agent's program by its short name, if its variables or its process tell.
    #[serde(skip_serializing_if = "is_default")]
    pub agent: String,
    /// Its version.
    #[serde(skip_serializing_if = "is_default")]
    pub agent_version: String,
    /// Its session, as it names that itself.
    #[serde(skip_serializing_if = "is_default")]
    pub session: String,
    /// Which of the sessions of callers with this name it is, from 2. It is 0 for the first one.
    #[serde(skip_serializing_if = "is_default")]
    pub session_number: u32,
    /// The call of the agent's shell tool that this run is.
    #[serde(skip_serializing_if = "is_default")]
    pub call: String,
    /// `subagent` or `hook`, if it is not the agent itself that calls.
    #[serde(skip_serializing_if = "is_default")]
    pub role: String,
    /// Whether `command` lacks an agent's wrapper that `exec` has.
    #[serde(skip_serializing_if = "is_default")]
    pub unwrapped: bool,
    /// Whether this is one of the runs with which an agent learns about the shell at its own start.
    #[serde(skip_serializing_if = "is_default")]
    pub probe: bool,
    /// The sandbox that the run's shim ran it in, as the shim has reported it. The host has not run it.
    #[serde(skip_serializing_if = "is_default")]
    pub sandbox: Option<String>,
    /// Whether a field above was cut to keep the line within its bound.
    #[serde(skip_serializing_if = "is_default")]
    pub clipped: bool,
    /// The long arguments, by their index in `exec`, where only their first bytes stand.
    #[serde(skip_serializing_if = "is_default")]
    pub exec_text: BTreeMap<usize, TextRef>,
    /// Its place in a trace, as its `TRACEPARENT` has it, if the host gives commands one.
    #[serde(skip_serializing_if = "is_default")]
    pub trace: String,
    /// Its caller's span, in hexadecimal.
    #[serde(skip_serializing_if = "is_default")]
    pub trace_parent: String,
    /// Whether the output went to the run's terminal, and not to pipes.
    #[serde(skip_serializing_if = "is_default")]
    pub terminal: bool,
    /// The run's environment, if it was kept.
    #[serde(skip_serializing_if = "is_default")]
    pub env: Option<EnvironmentRef>,
    /// What `env` stands for, as long as the recorder has the run.
    #[serde(skip)]
    pub environment: Option<Rc<KeptEnvironment>>,
    /// Whether all of its environment goes to the recorder. The host tells the recorder, which does not write it.
    #[serde(skip_serializing_if = "is_default")]
    pub environment_sent: bool,
    /// Rows and columns of the terminal. The host tells the recorder, which does not write them.
    #[serde(skip_serializing_if = "is_default")]
    pub window: Option<(u16, u16)>,
    /// Whether its caller's terminal gets the output as it is. The host tells the recorder, which does not write it.
    #[serde(skip_serializing_if = "is_default")]
    pub relayed: bool,
}

impl StartRecord {
    /// The caller's name as the console shows it.
    #[must_use]
    pub fn agent_name(&self) -> String {
        agent_name(&self.whoami, self.session_number, &self.role)
    }

    /// Sets `exec`, and `exec_b64` if an argument is not UTF-8.
    pub fn set_exec<'a>(&mut self, arguments: impl Iterator<Item = &'a [u8]> + Clone) {
        let is_text = arguments.clone().all(|argument| std::str::from_utf8(argument).is_ok());
        self.exec_b64 = (!is_text).then(|| arguments.clone().map(base64).collect());
        self.exec = arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    }

    /// Sets `dir`, and `dir_b64` if it is not UTF-8.
    pub fn set_dir(&mut self, dir: &[u8]) {
        self.dir_b64 = std::str::from_utf8(dir).is_err().then(|| base64(dir));
        self.dir = String::from_utf8_lossy(dir).into_owned();
    }
}
