//! The answers to calls, and the contents of notifications.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gathered::GatheredOutput;
use super::kept_output::Gathering;
use super::listing::{LeftRun, ListedRun};
use super::ring::{Gone, OutputRing};
use crate::core::end::{Refusal, RefusalCause, Subject};
use crate::core::entry::{Consequence, Decider, Decision, Entry, Judgement, PortHeld};
use crate::core::job::Question;
use crate::front::how_ended::HowEnded;
use crate::limits;
use crate::text::escape::escape_line;

/// Nothing to say but that it is done.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {}

/// The host's facts.
#[derive(Debug, Serialize)]
pub struct Greeting {
    pub protocol: u32,
    pub version: &'static str,
    pub pid: u32,
    pub methods: &'static [&'static str],
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Started {
    pub run: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Cancelled {
    /// True if the run was still running.
    pub running: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Accepted {
    /// The number of bytes.
    pub accepted: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RunList {
    /// Oldest first.
    pub runs: Vec<ListedRun>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct LeftList {
    /// Oldest first.
    pub runs: Vec<LeftRun>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Subscribed {
    pub subscription: u64,
    /// The place from which it tells, if it can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<GoneEvents>,
}

/// Events that a subscription would have told, and that are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneEvents {
    /// Their number, of all kinds. `None` if nobody has counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

/// `exec.resized`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResizedNote {
    pub run: u64,
    pub rows: u16,
    pub cols: u16,
}

/// `events.cursor`.
#[derive(Debug, Serialize, Deserialize)]
pub struct CursorNote {
    pub subscription: u64,
    pub cursor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<GoneEvents>,
}

/// The event that a wait has met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// `exit`, `port`, `text`, `time`, or `gone` for a run of which nothing is kept.
    pub met: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The line with the text, up to the end of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Met {
    /// A text, in this line.
    #[must_use]
    pub fn text(line: String) -> Self {
        Self { met: "text".into(), line: Some(line), ..Self::default() }
    }
}

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
    /// The answer for a run with this end and output. With `parses`, standard output also comes as parsed JSON.
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

/// Parses a text of which each line is JSON.
fn lines_of_json(text: &str) -> Option<Vec<Value>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Option<Vec<Value>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
    lines.filter(|lines| !lines.is_empty())
}

/// The answer to `exec.output`. The host writes it by hand: see [`super::reply::put_chunks`].
#[derive(Debug, Serialize, Deserialize)]
pub struct OutputAnswer {
    pub chunks: Vec<AnsweredChunk>,
    #[serde(flatten)]
    pub rest: OutputRest,
}

/// A chunk in an answer, in the wanted encoding.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnsweredChunk {
    pub seq: u64,
    /// `stdout`, `stderr` or `pty`.
    pub stream: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    pub at_ms: u64,
}

/// The end of an answer to `exec.output`, after the chunks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OutputRest {
    pub next: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<GoneOutput>,
    pub exited: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    pub closed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GoneOutput {
    #[serde(flatten)]
    pub gone: Gone,
    pub journal: String,
}

impl OutputRest {
    /// The end of an answer to a reader that has chunk `after` and gets those up to `last`, if there are any.
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

/// The answer to a question about the past. The host writes it by hand: see [`super::reply::put_lines`].
#[derive(Debug, Serialize, Deserialize)]
pub struct PastLines {
    /// As `rexec` prints them with `--json`.
    pub lines: Vec<Value>,
    /// True if more lines were left out.
    pub cut: bool,
}

/// A port on which a run could not listen, because another run does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldPort {
    pub port: u16,
    pub run: u64,
    pub whoami: String,
}

impl HeldPort {
    #[must_use]
    pub fn of(held: &PortHeld) -> Self {
        Self { port: held.port, run: held.run, whoami: held.whoami.clone() }
    }
}

/// `exec.output`. The host writes it by hand: see [`super::reply::put_output`].
#[derive(Debug, Serialize, Deserialize)]
pub struct OutputNote {
    pub run: u64,
    pub seq: u64,
    /// `stdout`, `stderr` or `pty`.
    pub stream: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The number of bytes that follow the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Bytes before it that were lost to the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
}

/// `exec.port`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PortNote {
    pub run: u64,
    pub port: u16,
}

/// `exec.exited`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExitedNote {
    pub run: u64,
    #[serde(flatten)]
    pub end: HowEnded,
    /// The port on which it could not listen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_held: Option<HeldPort>,
}

/// `exec.closed`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClosedNote {
    pub run: u64,
    /// Its last chunk.
    pub last_seq: u64,
    /// Bytes at its end that were lost to the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
}

/// `exec.held`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldNote {
    pub run: u64,
    /// The part of the command that it is about.
    pub leaf: String,
    /// The rule, by its name and its place. `None` if a setting asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// All of that in a sentence.
    pub why: String,
    /// The time after which the run is refused, milliseconds.
    pub wait_ms: u64,
}

/// What `exec.decide` did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answered {
    /// The run had ended. The next one of the same command passes, if it comes within this time, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
}

impl Answered {
    #[must_use]
    pub fn for_next(within: Duration) -> Self {
        Self { next_ms: Some(ms(within)) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct AskList {
    /// Oldest first.
    pub asks: Vec<ListedAsk>,
}

/// Something that a person is or was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedAsk {
    pub run: u64,
    pub state: AskState,
    pub whoami: String,
    pub dir: String,
    /// The part of the command that it is about.
    pub leaf: String,
    /// The rule, by its name and its place. `None` if a setting asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub asked_ms_ago: u64,
    /// The time for which it stays in its state, milliseconds.
    pub left_ms: u64,
    /// What a person may allow from now on, in words. Only of one run that is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// Why it can be allowed only once. Only of one run that is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once: Option<Cow<'static, str>>,
}

impl ListedAsk {
    /// A question about a run of this agent in this directory, which stays in its state until a time.
    #[must_use]
    pub fn new(
        run: u64,
        state: AskState,
        [whoami, dir]: [&str; 2],
        asked: &Question,
        until: Instant,
        now: Instant,
    ) -> Self {
        Self {
            run,
            state,
            whoami: whoami.to_owned(),
            dir: dir.to_owned(),
            leaf: asked.leaf.clone(),
            rule: asked.rule.clone(),
            asked_ms_ago: ms(now.saturating_duration_since(asked.since)),
            left_ms: ms(until.saturating_duration_since(now)),
            always: None,
            once: None,
        }
    }

    /// The same with what a person may allow from now on.
    #[must_use]
    pub fn with_proposed(self, proposed: Result<String, &'static str>) -> Self {
        match proposed {
            Ok(always) => Self { always: Some(always), ..self },
            Err(once) => Self { once: Some(once.into()), ..self },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskState {
    /// The run waits for the answer.
    Held,
    /// Nobody answered, and the run was refused. A yes lets the next one pass.
    Expired,
    /// The next run passes.
    Allowed,
}

/// `exec.decided`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedNote {
    pub run: u64,
    /// The run begins, or the next one of the same command passes; else it is refused.
    pub allow: bool,
    /// `console`, `client`, `token`, `timeout` or `away`.
    pub by: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The time since it was asked, milliseconds.
    pub waited_ms: u64,
    /// The run had ended. As in [`Answered`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
}

impl DecidedNote {
    /// A decision on an ask that nobody had answered in time.
    #[must_use]
    pub fn late(ask: &ListedAsk, allow: bool, by: Decider, answered: &Answered) -> Self {
        let (run, by) = (ask.run, by.word().into());
        Self { run, allow, by, why: None, waited_ms: ask.asked_ms_ago, next_ms: answered.next_ms }
    }
}

/// An event of a run on which a person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldNote {
    Held(HeldNote),
    Decided(DecidedNote),
}

impl HoldNote {
    /// The events in an entry of this run's log. A run that is refused because nobody is there was held for no time.
    #[must_use]
    pub fn all_of(entry: &Entry, run: u64) -> Vec<Self> {
        let line = |text: &str| escape_line(text, limits::PROMPT_BYTES);
        match entry {
            Entry::Judged(judgement) => {
                let Judgement { rule, why, consequence, .. } = &**judgement;
                let held = |subject: &Subject, wait_ms| {
                    let (leaf, rule) = (line(&subject.leaf), rule.as_deref().map(line));
                    Self::Held(HeldNote { run, leaf, rule, why: line(why), wait_ms })
                };
                match consequence {
                    Consequence::Asked { subject, wait } => vec![held(subject, ms(*wait))],
                    Consequence::Refused(Refusal { subject, cause: RefusalCause::Away }) => {
                        let by = RefusalCause::AWAY.into();
                        let decided = DecidedNote { run, allow: false, by, why: None, waited_ms: 0, next_ms: None };
                        vec![held(subject, 0), Self::Decided(decided)]
                    }
                    _ => Vec::new(),
                }
            }
            Entry::Decided(decision, waited) => {
                let Decision { is_yes, by, why } = &**decision;
                let (by, why) = (by.word().into(), why.as_deref().map(line));
                let waited_ms = ms(*waited);
                vec![Self::Decided(DecidedNote { run, allow: *is_yes, by, why, waited_ms, next_ms: None })]
            }
            _ => Vec::new(),
        }
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `exec.prompt`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PromptNote {
    pub run: u64,
    pub line: String,
    /// The last chunk before it.
    pub after: u64,
}

/// `exec.remark`.
#[derive(Debug, Serialize, Deserialize)]
pub struct RemarkNote {
    pub run: u64,
    pub line: String,
    /// The last chunk before it.
    pub after: u64,
}
