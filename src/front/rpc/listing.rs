//! The facts about a run for a client.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::front::how_ended::HowEnded;
use crate::journal::record::{PublishedCard, RecordFields};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "PublishedFacts")]
pub struct RunFacts {
    /// Its command is cut to [`crate::limits::ROSTER_TEXT_BYTES`], and so are all texts if another door started it.
    pub card: PublishedCard,
    /// Tells the caller's session from its others, if this door started it.
    pub caller_session: Option<String>,
    /// The project session.
    pub session: Option<String>,
    /// True if it outlives its connection.
    pub background: bool,
}

/// The facts under their published names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PublishedFacts {
    run: u64,
    caller_session: Option<String>,
    session: Option<String>,
    background: bool,
    #[serde(flatten)]
    card: PublishedCard,
}

impl From<PublishedFacts> for RunFacts {
    fn from(PublishedFacts { run, caller_session, session, background, card }: PublishedFacts) -> Self {
        Self { card: PublishedCard { seq: run, ..card }, caller_session, session, background }
    }
}

impl Serialize for RunFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut card, mut fields) = (self.card.fields(), RecordFields(serializer.serialize_map(None)?));
        card.put_as("seq", "run", &mut fields)?;
        card.put(&["whoami"], &mut fields)?;
        fields.put_set("caller_session", &self.caller_session)?;
        card.put(&["dir", "command", "name"], &mut fields)?;
        fields.put_set("session", &self.session)?;
        card.put(&["why"], &mut fields)?;
        fields.put("background", &self.background)?;
        let callers = ["agent", "agent_version", "session", "session_number", "call", "role"];
        let others = ["time", "shell", "unwrapped", "probe"];
        card.put_rest(&[&callers[..], &others].concat(), &mut fields)?;
        fields.0.end()
    }
}

/// A run in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedRun {
    #[serde(flatten)]
    pub facts: RunFacts,
    /// `queued`, `held`, `running`, `asks`, `paused`, `exited` or `closed`.
    pub state: Cow<'static, str>,
    /// The part of it on which a person decides, in state `held`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The time since its arrival, milliseconds.
    pub started_ms_ago: u64,
    #[serde(flatten)]
    pub end: Option<HowEnded>,
    pub ports: Vec<u16>,
    /// The bytes of its output so far.
    pub bytes: u64,
    pub last_line: String,
    /// The number of its living processes. In lists only the first runs have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
}

/// A run that has ended, and left processes running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftRun {
    #[serde(flatten)]
    pub facts: RunFacts,
    /// `left`, `paused` or `stopping`.
    pub state: Cow<'static, str>,
    /// The time since its arrival, milliseconds.
    pub started_ms_ago: u64,
    pub ports: Vec<u16>,
    /// Its first processes. In a long list, later runs have none.
    pub processes: Vec<LivingProcess>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivingProcess {
    pub pid: i32,
    /// The program's name, as in proc_pid_comm(5).
    pub program: String,
}

impl ListedRun {
    #[must_use]
    pub fn number(&self) -> u64 {
        self.facts.card.seq
    }

    /// Its name, if it is a service.
    #[must_use]
    pub fn service(&self) -> Option<&str> {
        Some(&*self.facts.card.name).filter(|name| !name.is_empty())
    }

    /// The exit code, once its shell has ended.
    #[must_use]
    pub fn exit(&self) -> Option<u8> {
        self.end.as_ref().map(|end| end.exit)
    }

    #[must_use]
    pub fn signal(&self) -> Option<u8> {
        self.end.as_ref()?.signal
    }
}
