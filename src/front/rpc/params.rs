//! The parameters of the methods, as they come. [`super::start`] has those of a start.

use rexec_sh::protocol::process::Signal;
use serde::{Deserialize, Serialize};

use crate::text::encode::from_base64;

/// How output is written in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As text: what is not UTF-8 becomes U+FFFD, and no character is split between two chunks.
    #[default]
    Text,
    /// As the bytes that they are.
    Base64,
    /// Likewise, behind the line, which says how many there are. Only output that is told has it.
    Binary,
}

impl Encoding {
    /// How long output becomes in JSON, bytes, at most.
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
            Self::Base64 | Self::Binary => output.len().div_ceil(3) * 4,
        }
    }
}

/// What a client may be told of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// It was taken in.
    Start,
    /// It has written something.
    Output,
    /// A program of it waits for a person's answer.
    Prompt,
    /// It listens on a port.
    Port,
    /// It has ended.
    Exit,
}

/// `hello`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HelloParams {
    /// The client's name, for its runs.
    pub whoami: Option<String>,
    /// The client's version. It changes nothing.
    pub version: Option<serde::de::IgnoredAny>,
}

/// A method about one run.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    /// The run's number.
    pub run: u64,
}

/// `exec.write`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteParams {
    /// The run's number.
    pub run: u64,
    /// What is written.
    #[serde(default)]
    pub text: Option<String>,
    /// What is written, in base64.
    #[serde(default, deserialize_with = "decoded")]
    pub base64: Option<Vec<u8>>,
    /// Whether nothing follows.
    #[serde(default)]
    pub eof: bool,
}

/// Bytes that came in base64.
pub(super) fn decoded<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    from_base64(&text)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("not base64 with padding (RFC 4648, section 4)"))
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "rows and cols")]
pub struct SizeParams {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

/// `exec.resize`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResizeParams {
    /// The run's number.
    pub run: u64,
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

/// A signal by its number or its name, with or without `SIG`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "neither a number from 1 to 64 nor the name of a signal")]
pub enum SignalName {
    /// Its number.
    Number(u8),
    /// Its name.
    Name(String),
}

impl SignalName {
    /// The signal; `None` when there is no such signal.
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

/// `exec.signal`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalParams {
    /// The run's number.
    pub run: u64,
    /// The signal.
    pub signal: SignalName,
}

/// `exec.cancel`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelParams {
    /// The run's number.
    pub run: u64,
    /// From SIGTERM to SIGKILL, milliseconds; the host's own choice when it is missing.
    #[serde(default)]
    pub grace_ms: Option<u64>,
}

/// `exec.output`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OutputParams {
    /// The run's number.
    pub run: u64,
    /// The chunk that was read last; 0 for none.
    #[serde(default)]
    pub after: u64,
    /// Bytes of output after which the answer ends. It has one chunk at least, if there is any.
    #[serde(default)]
    pub max_bytes: Option<usize>,
    /// How long to wait when there is nothing, milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
    /// How output is written.
    #[serde(default)]
    pub encoding: Encoding,
}

/// What `exec.wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// The run's end.
    Exit,
    /// The run listens on a port.
    Port,
    /// The run has written a text.
    Text,
    /// Time.
    Time,
}

/// `exec.wait`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    /// The run's number.
    pub run: u64,
    /// What is awaited.
    #[serde(rename = "for")]
    pub awaited: Awaited,
    /// The port; any port when it is missing.
    #[serde(default)]
    pub port: Option<u16>,
    /// The text.
    #[serde(default)]
    pub text: Option<String>,
    /// How long, milliseconds; for ever when it is missing.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// `exec.list`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListParams {
    /// Only the runs of this session.
    pub session: Option<String>,
    /// Whether ended runs whose output is kept are listed, too.
    pub all: bool,
}

/// `events.subscribe`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubscribeParams {
    /// The runs; all of them, and those to come, when it is missing.
    pub runs: Option<Vec<u64>>,
    /// What to tell; everything when it is missing.
    pub events: Option<Vec<RunEvent>>,
    /// How output is written.
    pub encoding: Encoding,
}

/// `events.unsubscribe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnsubscribeParams {
    /// The subscription's number.
    pub subscription: u64,
}

/// A method without parameters.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoParams {}
