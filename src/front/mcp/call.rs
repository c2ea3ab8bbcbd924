//! A tool call that has no result yet, and the run that it is about.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::arguments::{ExecArguments, ToolCall, WriteArguments};
use super::excerpt::OutputExcerpt;
use super::message::is_id;
use super::revision::Era;
use crate::limits;

/// A call.
#[derive(Debug)]
pub(super) struct PendingCall {
    /// The client's id for it.
    pub(super) id: Value,
    pub(super) era: Era,
    /// What progress notifications name, if the client wants them.
    pub(super) token: Option<Value>,
    /// How many progress notifications were sent.
    pub(super) progress: u64,
    /// No progress notification comes before this.
    pub(super) quiet_until: Instant,
    /// The call has its result by then, whatever the host does.
    pub(super) limit: Instant,
    pub(super) work: Work,
}

/// What a call does.
#[derive(Debug)]
pub(super) enum Work {
    /// The host gets these parameters.
    Start(ExecArguments),
    /// The host was asked to start a command.
    Starting {
        background: bool,
        tty: bool,
    },
    /// The output of this run comes by itself. It has ended, or not yet.
    Follow {
        run: u64,
        background: bool,
        excerpt: OutputExcerpt,
        ending: Option<RunEnding>,
    },
    /// The output of a run is asked for.
    Read(OutputReading),
    Write(WriteArguments),
    Kill {
        run: u64,
        signal: Option<String>,
    },
    List {
        all: bool,
    },
    CheckHost,
}

/// A look at the output of a run.
#[derive(Debug)]
pub(super) struct OutputReading {
    pub(super) run: u64,
    /// The cursor. Without one, what the client has not seen.
    pub(super) after: Option<u64>,
    /// For how long the run's end is waited for.
    pub(super) wait: Duration,
    /// When that is over.
    pub(super) until: Option<Instant>,
    /// The next question to the host comes then.
    pub(super) ask_at: Option<Instant>,
    pub(super) excerpt: OutputExcerpt,
}

impl OutputReading {
    pub(super) fn new(run: u64, after: Option<u64>, wait: Duration) -> Self {
        Self { run, after, wait, until: None, ask_at: None, excerpt: OutputExcerpt::new(String::new()) }
    }
}

impl PendingCall {
    /// A call that begins now. `params` are those of its request.
    pub(super) fn new(id: Value, era: Era, params: &Map<String, Value>, call: ToolCall, now: Instant) -> Self {
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let work = match call {
            ToolCall::Exec(exec) => Work::Start(exec),
            ToolCall::Output { run, after, wait } => Work::Read(OutputReading::new(run, after, wait)),
            ToolCall::Write(write) => Work::Write(write),
            ToolCall::Kill { run, signal } => Work::Kill { run, signal },
            ToolCall::List { all } => Work::List { all },
            ToolCall::CheckHost => Work::CheckHost,
        };
        let patience = if matches!(work, Work::Start(_)) { limits::MCP_CALL } else { limits::MCP_ANSWER };
        Self {
            id,
            era,
            token: token.filter(|token| is_id(token)).cloned(),
            progress: 0,
            quiet_until: now + limits::MCP_PROGRESS_EVERY,
            limit: now + patience,
            work,
        }
    }

    /// What the call has of a run's output.
    pub(super) fn excerpt(&mut self) -> Option<&mut OutputExcerpt> {
        match &mut self.work {
            Work::Follow { excerpt, .. } | Work::Read(OutputReading { excerpt, .. }) => Some(excerpt),
            _ => None,
        }
    }

    /// When the call needs attention, if nothing comes before.
    pub(super) fn deadline(&self) -> Instant {
        let has_news = match &self.work {
            Work::Follow { excerpt, .. } | Work::Read(OutputReading { excerpt, .. }) => excerpt.has_news(),
            _ => false,
        };
        let progress = (has_news && self.token.is_some()).then_some(self.quiet_until);
        let question = match &self.work {
            Work::Read(reading) => reading.ask_at,
            _ => None,
        };
        [progress, question].into_iter().flatten().fold(self.limit, Instant::min)
    }
}

/// What is known of a run of this server's.
#[derive(Debug)]
pub(super) struct KnownRun {
    /// The call that follows it.
    pub(super) call: Option<u64>,
    /// The client has seen the output up to this cursor.
    pub(super) seen: u64,
    /// It has a terminal.
    pub(super) tty: bool,
}

/// How a run has ended.
#[derive(Debug)]
pub(super) struct RunEnding {
    pub(super) exit: i64,
    pub(super) signal: Option<String>,
    pub(super) error: Option<String>,
    pub(super) message: Option<String>,
}

impl RunEnding {
    /// The end in what the host says; `None` if the run has not ended.
    pub(super) fn of(said: &Value) -> Option<Self> {
        let text = |name: &str| match said.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let exit = said.get("exit")?.as_i64()?;
        Some(Self { exit, signal: text("signal"), error: text("error"), message: text("message") })
    }
}
