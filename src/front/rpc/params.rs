//! The parameters of the methods, as received. [`super::start`] has those of a start.

use rexec_sh::protocol::process::Signal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{BAD_PARAMS, RpcError};
use crate::front::numbers::make_whole;
use crate::text::encode::{base64, from_base64};

/// The form of output in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As text: bytes that are not UTF-8 become U+FFFD, and no character is split between two chunks.
    #[default]
    Text,
    /// As base64.
    Base64,
    /// As raw bytes after the line, which gives their number. Only for output in notifications.
    Binary,
    /// As base64, and as the run wrote it: with its escape sequences, and not cleaned. Only for subscriptions.
    Terminal,
}

impl Encoding {
    /// The most bytes of this output in JSON.
    #[must_use]
    pub fn length(self, output: &[u8]) -> usize {
        let escaped = |byte: &u8| match byte {
            b'\t' | b'\n' | b'\r' | b'"' | b'\\' => 2,
            0..0x20 => 6,
            // A byte that is not UTF-8 becomes U+FFFD.
            0x80.. => 3,
            _ => 1,
        };
        match self {
            Self::Text => output.iter().map(escaped).sum(),
            Self::Base64 | Self::Binary | Self::Terminal => output.len().div_ceil(3) * 4,
        }
    }
}

/// An event of a run for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// It was taken in.
    Start,
    Output,
    /// A program of it waits for a person's answer.
    Prompt,
    /// It listens on a port.
    Port,
    Exit,
    /// The host says something about it.
    Remark,
    /// A person decides whether it begins, or has decided.
    Held,
}

/// `hello`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HelloParams {
    /// The client's name, for its runs.
    pub whoami: Option<String>,
    /// The number of the protocol that the client speaks; the default is the host's.
    pub protocol: Option<u32>,
    /// The client's version. It changes nothing.
    #[serde(skip_serializing)]
    pub version: Option<serde::de::IgnoredAny>,
}

/// A method about one run.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    pub run: u64,
}

/// `exec.write`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WriteParams {
    pub run: u64,
    /// The text to write.
    #[serde(default)]
    pub text: Option<String>,
    /// The bytes to write, in base64.
    #[serde(default, deserialize_with = "decoded", serialize_with = "encoded")]
    pub base64: Option<Vec<u8>>,
    /// True if nothing follows.
    #[serde(default)]
    pub eof: bool,
}

/// Decodes base64.
pub(super) fn decoded<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    from_base64(&text)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("not base64 with padding (RFC 4648, section 4)"))
}

/// Encodes in base64.
#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
pub(super) fn encoded<S: serde::Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
    bytes.as_deref().map(base64).serialize(to)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "rows and cols")]
pub struct SizeParams {
    pub rows: u16,
    pub cols: u16,
}

/// `exec.resize`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ResizeParams {
    pub run: u64,
    pub rows: u16,
    pub cols: u16,
}

/// A signal by its number or its name, with or without `SIG`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "neither a number from 1 to 64 nor the name of a signal")]
pub enum SignalName {
    Number(u8),
    Name(String),
}

impl SignalName {
    /// The signal; `None` if there is no such signal.
    #[must_use]
    pub fn signal(&self) -> Option<Signal> {
        let number = match self {
            Self::Number(number) => *number,
            Self::Name(name) => number_of(&name.to_ascii_uppercase())?,
        };
        (1..=64).contains(&number).then(|| Signal::new(number))
    }
}

/// The number of a signal by its name, in capitals, or by its digits.
fn number_of(name: &str) -> Option<u8> {
    // In the order of their numbers on Linux, from 1; see signal(7).
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let name = name.strip_prefix("SIG").unwrap_or(name);
    let name = match name {
        "IOT" => "ABRT",
        "CLD" => "CHLD",
        "POLL" => "IO",
        _ => name,
    };
    // The C library keeps the first two of the kernel's for itself.
    let realtime =
        |rest: &str, sign| if rest.is_empty() { Some(0) } else { rest.strip_prefix(sign)?.parse::<u8>().ok() };
    if let Some(rest) = name.strip_prefix("RTMIN") {
        return realtime(rest, '+').filter(|count| *count <= 30).map(|count| 34 + count);
    }
    if let Some(rest) = name.strip_prefix("RTMAX") {
        return realtime(rest, '-').filter(|count| *count <= 30).map(|count| 64 - count);
    }
    let place = NAMES.iter().position(|known| *known == name);
    place.map_or_else(|| name.parse().ok(), |place| u8::try_from(place + 1).ok())
}

/// `exec.undo`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct UndoParams {
    /// The run whose files come back.
    pub run: u64,
    /// Only what was at these paths or below them; the default is all.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The absolute path where relative ones begin; the default is the host's directory.
    #[serde(default)]
    pub dir: Option<String>,
    #[serde(default)]
    pub whoami: Option<String>,
    /// Tells the caller's session from its others.
    #[serde(default)]
    pub caller_session: Option<String>,
    /// True if what it says is sent as it comes.
    #[serde(default)]
    pub stream: bool,
}

/// `exec.signal`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SignalParams {
    pub run: u64,
    pub signal: SignalName,
}

/// `exec.cancel`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CancelParams {
    pub run: u64,
    /// The time from SIGTERM to SIGKILL, milliseconds; the default is the host's choice.
    #[serde(default)]
    pub grace_ms: Option<u64>,
}

/// `exec.decide`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DecideParams {
    pub run: u64,
    /// The run begins; else it is refused.
    pub allow: bool,
    /// The reason for a refusal, in one line, for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The token that the command of `--notify` got. Then any process may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What is allowed from now on, as `exec.asks` has told the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
}

/// `exec.asks`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskParams {
    /// The run; the default is all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}

/// `exec.output`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OutputParams {
    pub run: u64,
    /// The last chunk that the client has read; 0 for none.
    #[serde(default)]
    pub after: u64,
    /// Bytes of output after which the answer ends. It has one chunk at least, if there is any.
    #[serde(default)]
    pub max_bytes: Option<usize>,
    /// The time to wait if there is nothing, milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
    #[serde(default)]
    pub encoding: Encoding,
}

/// The event that `exec.wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    Exit,
    Port,
    Text,
    Time,
}

/// `exec.wait`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    pub run: u64,
    #[serde(rename = "for")]
    pub awaited: Awaited,
    /// The port; the default is any port.
    #[serde(default)]
    pub port: Option<u16>,
    #[serde(default)]
    pub text: Option<String>,
    /// The time limit, milliseconds; the default is none.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// `exec.list`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListParams {
    pub session: Option<String>,
    /// True if ended runs whose output is kept are listed, too.
    pub all: bool,
}

/// `events.subscribe`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubscribeParams {
    /// The runs; the default is all of them, and those to come.
    pub runs: Option<Vec<u64>>,
    /// The events to report; the default is all.
    pub events: Option<Vec<RunEvent>>,
    pub encoding: Encoding,
    /// The cursor behind which to tell, or `now`: the subscription can be resumed, and tells all but output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// `events.unsubscribe`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct UnsubscribeParams {
    pub subscription: u64,
}

/// A method without parameters.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoParams {}

/// Reads parameters. A parameter that is null counts as one that is left out. The error names the field.
pub(super) fn read<P: DeserializeOwned>(mut params: Map<String, Value>) -> Result<P, RpcError> {
    let refused = |words: String| RpcError::new(BAD_PARAMS, words);
    let nulls: Vec<String> = params.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.clone()).collect();
    params.retain(|_, value| !value.is_null());
    params.values_mut().for_each(make_whole);
    for name in nulls {
        // An unknown parameter is refused with any value.
        let alone = Map::from_iter([(name, Value::Null)]);
        let words = P::deserialize(&alone).err().map(|error| error.to_string()).unwrap_or_default();
        if words.starts_with("unknown field") {
            return Err(refused(format!("params: {words}")));
        }
    }
    P::deserialize(&params).map_err(|error| {
        // serde's words do not name a field whose value has a wrong type.
        let words = error.to_string();
        let is_culprit = |field: &&String| {
            let mut others = params.clone();
            others.remove(*field);
            P::deserialize(&others).map_or_else(|other| other.to_string() != words, |_| true)
        };
        let is_told = words.contains("field `");
        let culprit = if is_told { None } else { params.keys().find(is_culprit) };
        refused(culprit.map_or_else(|| format!("params: {words}"), |field| format!("{field}: {words}")))
    })
}
