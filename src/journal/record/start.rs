//! The record of a run that begins, type `start`. The run's other records, `end` and `lost`, repeat its fields.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::environment::{EnvironmentRef, KeptEnvironment};
use super::fields::is_default;
use super::text_ref::TextRef;
use crate::core::card::{Card, CommandLine};
use crate::text::agent_name::agent_name;
use crate::text::encode::{base64, from_base64};

/// A run as it is known at its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartRecord {
    /// The run's number, unique within one host.
    pub seq: u64,
    /// When the run began: see [`super::timestamp`].
    pub time: String,
    pub whoami: String,
    pub dir: String,
    /// The variables that the caller set on purpose, never the values of an inherited environment.
    pub envs: BTreeMap<String, String>,
    /// The whole argument vector as the caller passed it.
    pub exec: Vec<String>,
    /// The command without the agent's wrapper, as a person would name it.
    pub command: String,
    /// Its purpose, in its caller's words.
    #[serde(skip_serializing_if = "is_default")]
    pub why: String,
    /// The service's name, if it is one.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    pub shell: String,
    /// The bytes of `exec` in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "is_default")]
    pub exec_b64: Option<Vec<String>>,
    /// The bytes of `dir` in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "is_default")]
    pub dir_b64: Option<String>,
    /// The short name of the agent's program, if its variables or its process show it.
    #[serde(skip_serializing_if = "is_default")]
    pub agent: String,
    /// The version of that program.
    #[serde(skip_serializing_if = "is_default")]
    pub agent_version: String,
    /// The agent's session, as the agent names it.
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
    /// `command` lacks an agent's wrapper that `exec` has.
    #[serde(skip_serializing_if = "is_default")]
    pub unwrapped: bool,
    /// This is one of the runs with which an agent learns about the shell at its own start.
    #[serde(skip_serializing_if = "is_default")]
    pub probe: bool,
    /// The sandbox in which the run's shim ran it, as the shim reported it. The host did not run it.
    #[serde(skip_serializing_if = "is_default")]
    pub sandbox: Option<String>,
    /// A field above was cut to keep the line within its bound.
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
    /// The output went to the run's terminal, not to pipes.
    #[serde(skip_serializing_if = "is_default")]
    pub terminal: bool,
    /// The run's environment, if it was kept.
    #[serde(skip_serializing_if = "is_default")]
    pub env: Option<EnvironmentRef>,
    /// The environment that `env` stands for, while the recorder has the run.
    #[serde(skip)]
    pub environment: Option<Rc<KeptEnvironment>>,
    /// All of its environment goes to the recorder. Only the recorder needs this; it does not write it.
    #[serde(skip_serializing_if = "is_default")]
    pub environment_sent: bool,
    /// Rows and columns of the terminal. Only the recorder needs them; it does not write them.
    #[serde(skip_serializing_if = "is_default")]
    pub window: Option<(u16, u16)>,
    /// Its caller's terminal gets the output as it is. Only the recorder needs this; it does not write it.
    #[serde(skip_serializing_if = "is_default")]
    pub relayed: bool,
}

impl From<&Card> for StartRecord {
    fn from(card: &Card) -> Self {
        let CommandLine { text, shell, is_unwrapped, is_probe, .. } = &card.command;
        Self {
            seq: card.run,
            time: card.time.clone(),
            whoami: card.caller.whoami.clone(),
            agent: card.caller.agent.to_owned(),
            agent_version: card.caller.version.clone(),
            session: card.caller.session.clone(),
            session_number: card.caller.session_number(),
            call: card.caller.call.clone(),
            role: card.caller.role.word().to_owned(),
            dir: card.place.dir.clone(),
            command: text.clone(),
            shell: shell.clone(),
            unwrapped: *is_unwrapped,
            probe: *is_probe,
            why: card.why.clone(),
            name: card.service.clone(),
            sandbox: card.sandbox.clone(),
            ..Self::default()
        }
    }
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

    /// The bytes of its arguments, as far as the journal keeps them. Empty if it does not.
    #[must_use]
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        match &self.exec_b64 {
            None => self.exec.iter().map(|argument| argument.clone().into_bytes()).collect(),
            Some(encoded) => {
                encoded.iter().map(|argument| from_base64(argument)).collect::<Option<_>>().unwrap_or_default()
            }
        }
    }

    /// The bytes of its directory's path.
    #[must_use]
    pub fn directory(&self) -> Vec<u8> {
        let encoded = self.dir_b64.as_ref();
        encoded.map_or_else(|| self.dir.clone().into_bytes(), |dir| from_base64(dir).unwrap_or_default())
    }

    /// Returns true if the journal lacks a part of its arguments.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.clipped || !self.exec_text.is_empty()
    }

    /// Sets `dir`, and `dir_b64` if it is not UTF-8.
    pub fn set_dir(&mut self, dir: &[u8]) {
        self.dir_b64 = std::str::from_utf8(dir).is_err().then(|| base64(dir));
        self.dir = String::from_utf8_lossy(dir).into_owned();
    }
}
