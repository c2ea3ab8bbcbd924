//! A tool call without a result yet, and its run.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::arguments::{ToolCall, WriteArguments};
use super::excerpt::OutputExcerpt;
use super::message::is_id;
use super::revision::Era;
use crate::front::how_ended::HowEnded;
use crate::front::rpc::params::{SignalName, UndoParams};
use crate::front::rpc::start::StartParams;
use crate::limits;

#[derive(Debug)]
pub(super) struct PendingCall {
    /// The client's id for it.
    pub(super) id: Value,
    pub(super) era: Era,
    /// The token for progress notifications, if the client wants them.
    pub(super) token: Option<Value>,
    /// The number of progress notifications sent.
    pub(super) progress: u64,
    /// No progress notification comes before this.
    pub(super) quiet_until: Instant,
    /// The call has its result by then, whatever the host does.
    pub(super) limit: Instant,
    pub(super) work: Work,
}

/// The work of a call.
#[derive(Debug)]
pub(super) enum Work {
    /// The host gets these parameters.
    Start(Box<StartParams>),
    /// The same for a command that brings back files.
    Undo(Box<UndoParams>),
    /// The host was asked to start a command.
    Starting {
        background: bool,
        tty: bool,
    },
    /// The output of this run comes by itself. `ending` is set once the run has ended.
    Follow {
        run: u64,
        background: bool,
        excerpt: OutputExcerpt,
        ending: Option<HowEnded>,
    },
    /// The host is asked for the output of a run.
    Read(OutputReading),
    Write(WriteArguments),
    Kill {
        run: u64,
        signal: Option<SignalName>,
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
    /// The cursor. Without one, everything that the client has not seen.
    pub(super) after: Option<u64>,
    /// The time to wait for the run's end.
    pub(super) wait: Duration,
    /// The end of that time.
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
            ToolCall::Undo(undo) => Work::Undo(undo),
            ToolCall::Output { run, after, wait } => Work::Read(OutputReading::new(run, after, wait)),
            ToolCall::Write(write) => Work::Write(write),
            ToolCall::Kill { run, signal } => Work::Kill { run, signal },
            ToolCall::List { all } => Work::List { all },
            ToolCall::CheckHost => Work::CheckHost,
        };
        let patience =
            if matches!(work, Work::Start(_) | Work::Undo(_)) { limits::MCP_CALL } else { limits::MCP_ANSWER };
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

    /// The call's excerpt of a run's output.
    pub(super) fn excerpt(&mut self) -> Option<&mut OutputExcerpt> {
        match &mut self.work {
            Work::Follow { excerpt, .. } | Work::Read(OutputReading { excerpt, .. }) => Some(excerpt),
            _ => None,
        }
    }

    /// The time at which the call needs attention, if nothing comes before.
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

/// The facts about a run of this server.
#[derive(Debug)]
pub(super) struct KnownRun {
    pub(super) call: Option<u64>,
    /// The client has seen the output up to this cursor.
    pub(super) seen: u64,
    /// It has a terminal.
    pub(super) tty: bool,
}
