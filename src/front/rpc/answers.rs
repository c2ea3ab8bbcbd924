//! The answers to calls, and what notifications say.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::gathered::GatheredOutput;
use super::kept_output::Gathering;
use super::listing::ListedRun;
use super::projects::ListedSession;
use super::ring::{Gone, OutputRing};
use crate::core::entry::PortHeld;
use crate::front::answer::HostStatus;
use crate::front::how_ended::HowEnded;

/// An answer to a call.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum RpcAnswer {
    /// It is done.
    Done {},
    /// What there is.
    Hello {
        /// The host's version.
        version: &'static str,
        /// Its process id.
        pid: u32,
        /// The names of all methods.
        methods: &'static [&'static str],
    },
    /// A run was taken in.
    Started {
        /// Its number.
        run: u64,
    },
    /// Whether the run was still running.
    Cancelled {
        /// Whether it was.
        running: bool,
    },
    /// Input was taken.
    Accepted {
        /// How many bytes.
        accepted: usize,
    },
    /// What a wait has met.
    Met(Met),
    /// The runs.
    List {
        /// They.
        runs: Vec<ListedRun>,
    },
    /// A run.
    Run(Box<ListedRun>),
    /// A subscription has begun.
    Subscribed {
        /// Its number.
        subscription: u64,
    },
    /// What the host is and has.
    Host(Box<HostStatus>),
    /// A project session.
    Session(Box<ListedSession>),
    /// The project sessions.
    Sessions {
        /// They.
        sessions: Vec<ListedSession>,
    },
    /// What the commands of a project session get.
    SessionEnv {
        /// The variables.
        env: BTreeMap<String, String>,
    },
    /// A project session was ended.
    SessionEnded {
        /// Its commands that are ending now.
        ended: Vec<u64>,
    },
    /// How a run has ended, and what it wrote.
    Whole(Box<WholeAnswer>),
}

/// What a wait has met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Met {
    /// `exit`, `port`, `text`, `time`, or `gone` for a run of which nothing is kept.
    pub met: &'static str,
    /// The exit code of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The line with the text, up to where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Met {
    /// A text, in this line.
    #[must_use]
    pub fn text(line: String) -> Self {
        Self { met: "text", line: Some(line), ..Self::default() }
    }
}

/// The answer to `exec.run`.
#[derive(Debug, Clone, Serialize)]
pub struct WholeAnswer {
    run: u64,
    #[serde(flatten)]
    end: HowEnded,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    omitted_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_lines: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_held: Option<HeldPort>,
    log: String,
}

impl WholeAnswer {
    /// The answer for a run that has ended like this and has written that. With `parses`, standard output is also told as
    /// the JSON that it is.
    #[must_use]
    pub fn new(run: u64, end: HowEnded, gathering: &Gathering, parses: bool) -> Self {
        let (mut stdout, mut stderr, mut output, mut omitted_bytes) = (None, None, None, 0);
        match gathering {
            Gathering::Nothing => {}
            Gathering::Together(all) => (output, omitted_bytes) = (Some(all.text()), all.omitted()),
            Gathering::Apart(both) => {
                [stdout, stderr] = [&both[0], &both[1]].map(|stream| Some(stream.text()));
                omitted_bytes = both.iter().map(GatheredOutput::omitted).sum();
            }
        }
        let text = stdout.as_deref().or(output.as_deref()).filter(|_| parses && omitted_bytes == 0);
        let json = text.and_then(|text| serde_json::from_str(text).ok());
        let json_lines = text.filter(|_| json.is_none()).and_then(lines_of_json);
        let log = format!("rexec out {run}");
        Self { run, end, stdout, stderr, output, omitted_bytes, json, json_lines, port_held: None, log }
    }

    /// The answer for a run that could not listen on this port.
    #[must_use]
    pub fn with_port_held(self, port_held: Option<HeldPort>) -> Self {
        Self { port_held, ..self }
    }
}

/// A text of which each line is JSON.
fn lines_of_json(text: &str) -> Option<Vec<Value>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Option<Vec<Value>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
    lines.filter(|lines| !lines.is_empty())
}

/// The end of an answer to `exec.output`, behind the chunks.
#[derive(Debug, Clone, Serialize)]
pub struct OutputRest {
    next: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<GoneOutput>,
    exited: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
    closed: bool,
}

#[derive(Debug, Clone, Serialize)]
struct GoneOutput {
    #[serde(flatten)]
    gone: Gone,
    journal: String,
}

impl OutputRest {
    /// The end of an answer to a reader that has this chunk and gets those up to `last`, if there are any.
    #[must_use]
    pub fn new(run: u64, ring: &OutputRing, after: u64, last: Option<u64>, exit: Option<u8>, is_closed: bool) -> Self {
        let journal = || format!("rexec out {run} --raw");
        let gone = ring.gone_after(after).map(|gone| GoneOutput { gone, journal: journal() });
        let next = match last {
            Some(last) => last,
            None if gone.is_some() => ring.last_seq(),
            None => after.min(ring.last_seq()),
        };
        Self { next, gone, exited: exit.is_some(), exit, closed: is_closed && next == ring.last_seq() }
    }
}

/// A port on which a run could not listen, because another run does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldPort {
    /// The port.
    pub port: u16,
    /// The other run's number.
    pub run: u64,
    /// Its caller's name.
    pub whoami: String,
}

impl HeldPort {
    /// What a client is told of it.
    #[must_use]
    pub fn of(held: &PortHeld) -> Self {
        Self { port: held.port, run: held.run, whoami: held.whoami.clone() }
    }
}

/// `exec.port`.
#[derive(Debug, Serialize)]
pub struct PortNote {
    /// The run's number.
    pub run: u64,
    /// The port on which it listens.
    pub port: u16,
}

/// `exec.exited`.
#[derive(Debug, Serialize)]
pub struct ExitedNote<'a> {
    /// The run's number.
    pub run: u64,
    /// How it ended.
    #[serde(flatten)]
    pub end: &'a HowEnded,
    /// The port on which it could not listen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_held: Option<&'a HeldPort>,
}

/// `exec.closed`.
#[derive(Debug, Serialize)]
pub struct ClosedNote {
    /// The run's number.
    pub run: u64,
    /// Its last chunk.
    pub last_seq: u64,
    /// Bytes at its end that were lost to the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
}

/// `exec.prompt`.
#[derive(Debug, Serialize)]
pub struct PromptNote<'a> {
    /// The run's number.
    pub run: u64,
    /// The words of the prompt.
    pub line: &'a str,
    /// The last chunk before it.
    pub after: u64,
}
