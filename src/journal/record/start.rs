//! The record of a run that begins, type `start`. The run's other records, `end` and `lost`, repeat its fields.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::card::PublishedCard;
use super::environment::{EnvironmentRef, KeptEnvironment};
use super::fields::RecordFields;
use super::text_ref::TextRef;
use crate::text::encode::{base64, from_base64};

/// A run as it is known at its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StartRecord {
    #[serde(flatten)]
    pub card: PublishedCard,
    /// The variables that the caller set on purpose, never the values of an inherited environment.
    pub envs: BTreeMap<String, String>,
    /// The whole argument vector as the caller passed it.
    pub exec: Vec<String>,
    /// The bytes of `exec` in base64, if they are not UTF-8.
    pub exec_b64: Option<Vec<String>>,
    /// The bytes of `dir` in base64, if they are not UTF-8.
    pub dir_b64: Option<String>,
    /// A field above was cut to keep the line within its bound.
    pub clipped: bool,
    /// The long arguments, by their index in `exec`, where only their first bytes stand.
    pub exec_text: BTreeMap<usize, TextRef>,
    /// Its place in a trace, as its `TRACEPARENT` has it, if the host gives commands one.
    pub trace: String,
    /// Its caller's span, in hexadecimal.
    pub trace_parent: String,
    /// The output went to the run's terminal, not to pipes.
    pub terminal: bool,
    /// The run's environment, if it was kept.
    pub env: Option<EnvironmentRef>,
    /// The environment that `env` stands for, while the recorder has the run.
    #[serde(skip)]
    pub environment: Option<Rc<KeptEnvironment>>,
    /// All of its environment goes to the recorder. Only the recorder needs this; it does not write it.
    pub environment_sent: bool,
    /// Rows and columns of the terminal. Only the recorder needs them; it does not write them.
    pub window: Option<(u16, u16)>,
    /// Its caller's terminal gets the output as it is. Only the recorder needs this; it does not write it.
    pub relayed: bool,
}

impl Serialize for StartRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut card, mut fields) = (self.card.fields(), RecordFields(serializer.serialize_map(None)?));
        card.put(&["seq", "time", "whoami", "dir"], &mut fields)?;
        fields.put("envs", &self.envs)?;
        fields.put("exec", &self.exec)?;
        card.put(&["command", "why", "name", "shell"], &mut fields)?;
        fields.put_set("exec_b64", &self.exec_b64)?;
        fields.put_set("dir_b64", &self.dir_b64)?;
        card.put_rest(&[], &mut fields)?;
        fields.put_set("clipped", &self.clipped)?;
        fields.put_set("exec_text", &self.exec_text)?;
        fields.put_set("trace", &self.trace)?;
        fields.put_set("trace_parent", &self.trace_parent)?;
        fields.put_set("terminal", &self.terminal)?;
        fields.put_set("env", &self.env)?;
        fields.put_set("environment_sent", &self.environment_sent)?;
        fields.put_set("window", &self.window)?;
        fields.put_set("relayed", &self.relayed)?;
        fields.0.end()
    }
}

impl StartRecord {
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
        encoded.map_or_else(|| self.card.dir.clone().into_bytes(), |dir| from_base64(dir).unwrap_or_default())
    }

    /// Returns true if the journal lacks a part of its arguments.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.clipped || !self.exec_text.is_empty()
    }

    /// Sets `dir`, and `dir_b64` if it is not UTF-8.
    pub fn set_dir(&mut self, dir: &[u8]) {
        self.dir_b64 = std::str::from_utf8(dir).is_err().then(|| base64(dir));
        self.card.dir = String::from_utf8_lossy(dir).into_owned();
    }
}
