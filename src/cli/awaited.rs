//! The conditions that `rexec exec --bg` and `rexec wait` wait for, and the reports about them.

use std::io::Write;
use std::time::Duration;

use rexec_sh::protocol::exit_code::{FAILURE, OWN_FAILURE, SUCCESS, TIMED_OUT};
use rexec_sh::protocol::notice::{self, Notice};
use serde::Serialize;

use super::host_calls::{CallError, HostCalls};
use super::{ask, json_line, quoted, service, told, written};
use crate::front::rpc::answers::Met;
use crate::front::rpc::client::AnswerValue;
use crate::front::rpc::listing::ListedRun;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::{self, Encoding, OutputParams, RunParams, WaitParams};
use crate::limits;
use crate::text::banner::{duration, signal_name};
use crate::text::escape::escape_line;

/// Lines of a run's output that are shown if it did not meet the condition.
const LINES: usize = 10;
/// Columns of such a line. The rest is cut.
const LINE_COLUMNS: usize = 400;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Wanted {
    #[default]
    Exit,
    Port(u16),
    Text(String),
    /// It has run for this time.
    Time(Duration),
}

impl Wanted {
    /// The parameters of `exec.wait`.
    pub(super) fn params(&self, run: u64, timeout: Option<Duration>) -> WaitParams {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let of = |awaited| WaitParams { run, awaited, port: None, text: None, timeout_ms: timeout.map(ms) };
        match self {
            Self::Exit => of(params::Awaited::Exit),
            Self::Port(port) => WaitParams { port: Some(*port), ..of(params::Awaited::Port) },
            Self::Text(text) => WaitParams { text: Some(text.clone()), ..of(params::Awaited::Text) },
            Self::Time(time) => WaitParams { timeout_ms: Some(ms(*time)), ..of(params::Awaited::Time) },
        }
    }

    /// The words for an unmet condition.
    fn undone(&self) -> String {
        match self {
            Self::Exit => "has ended".to_owned(),
            Self::Port(port) => format!("listened on port {port}"),
            Self::Text(text) => format!("wrote {}", quoted(text)),
            Self::Time(time) => format!("had run for {}", spoken(*time)),
        }
    }
}

/// The state of a run: a line of `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct BackgroundRun {
    pub(super) seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) command: String,
    /// `started`, `present` (a service of this name ran already), `ready`, `ended`, or `late`.
    pub(super) result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<u8>,
    /// From its start until now, or to its end.
    pub(super) ran_ms: u64,
    /// The last lines of output, if the condition was not met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) output: Vec<String>,
}

/// The state of a run, and the words about it.
#[derive(Debug)]
pub(super) struct AwaitedEnd {
    pub(super) run: BackgroundRun,
    title: String,
    awaited: Wanted,
    waited: Duration,
    /// The reason for a failed start.
    failure: Option<Notice>,
}

impl BackgroundRun {
    pub(super) fn of(run: &ListedRun, result: &'static str) -> Self {
        Self {
            seq: run.number(),
            name: run.service().map(str::to_owned),
            command: run.facts.card.command.clone(),
            result,
            exit: run.exit(),
            signal: run.signal(),
            ran_ms: run.end.as_ref().map_or(run.started_ms_ago, |end| end.duration_ms),
            ..Self::default()
        }
    }
}

impl AwaitedEnd {
    /// Reads the answer to `exec.wait`, and asks for the missing facts.
    pub(super) fn read(
        answer: AnswerValue,
        (run, awaited, waited): (u64, &Wanted, Duration),
        calls: &mut HostCalls,
    ) -> Result<Self, CallError> {
        let met: Met = answer.form().ok_or(CallError::Ask(ask::AskError::Unclear))?;
        let status = calls.call::<method::Status>(&RunParams { run })?;
        let is_time = matches!(awaited, Wanted::Time(_));
        let result = match &*met.met {
            "time" if !is_time => "late",
            "exit" => "ended",
            _ => "ready",
        };
        let is_missed = result == "late" || (result == "ended" && *awaited != Wanted::Exit);
        let output = if is_missed { last_lines(run, calls)? } else { Vec::new() };
        let known = BackgroundRun::of(&status, result);
        let run = BackgroundRun { port: met.port, line: met.line, exit: met.exit.or(known.exit), output, ..known };
        let run = if result == "ended" { run } else { BackgroundRun { exit: None, signal: None, ..run } };
        let failure = status.end.as_ref().and_then(|end| end.message.as_ref()).map(|message| {
            let shown = |text: &str| escape_line(text, LINE_COLUMNS);
            Notice::new(FAILURE, shown(notice::problem_in(message)), shown(notice::hint_in(message)))
        });
        Ok(Self { run, title: service::title(&status), awaited: awaited.clone(), waited, failure })
    }

    /// The result for a text that was written before the question.
    pub(super) fn of_text(status: &ListedRun, line: String, awaited: &Wanted) -> Self {
        let run = BackgroundRun { line: Some(line), ..BackgroundRun::of(status, "ready") };
        Self { run, title: service::title(status), awaited: awaited.clone(), waited: Duration::ZERO, failure: None }
    }

    /// The result for an end in the journal, or for the awaited line before it.
    pub(super) fn of_the_past(run: BackgroundRun, awaited: &Wanted) -> Self {
        let title = format!("#{}", run.seq);
        let run = match run.line {
            Some(_) => BackgroundRun { result: "ready", exit: None, signal: None, ..run },
            None => BackgroundRun { result: "ended", ..run },
        };
        Self { run, title, awaited: awaited.clone(), waited: Duration::ZERO, failure: None }
    }

    /// The exit code: 0 if the condition was met, the run's own if it has ended, 124 on a timeout.
    pub(super) fn code(&self) -> u8 {
        let is_missed = !matches!(self.awaited, Wanted::Exit | Wanted::Time(_));
        match (self.run.result, self.run.exit) {
            ("ended", Some(SUCCESS)) if is_missed => FAILURE,
            ("ended", code) => code.unwrap_or(OWN_FAILURE),
            ("late", _) => TIMED_OUT,
            _ => SUCCESS,
        }
    }

    /// Prints the result: success on standard output, failure on standard error; with JSON, everything on standard
    /// output.
    pub(super) fn say(&self, is_json: bool, out: &mut impl Write) -> Result<(), Notice> {
        if is_json {
            return written(out.write_all(json_line(&self.run).as_bytes()).and_then(|()| out.flush()));
        }
        let said = match self.run.result {
            "ended" if self.code() == SUCCESS || self.awaited == Wanted::Exit => self.how_ended(),
            "ended" | "late" => return self.complain(),
            _ => self.how_ready(),
        };
        written(writeln!(out, "{} {said}", self.title).and_then(|()| out.flush()))
    }

    fn how_ready(&self) -> String {
        let ran = duration(self.run.ran_ms);
        match (&self.awaited, &self.run.line) {
            (Wanted::Port(port), _) => format!("listens on port {port}, after {ran}"),
            (_, Some(line)) => format!("wrote {}, after {ran}", quoted(line)),
            _ => format!("still runs after {ran}"),
        }
    }

    fn how_ended(&self) -> String {
        how_ended(self.run.exit.unwrap_or(OWN_FAILURE), self.run.signal, self.run.ran_ms)
    }

    /// Prints on standard error that the condition was not met, with the last lines of output.
    fn complain(&self) -> Result<(), Notice> {
        let BackgroundRun { seq, ref output, .. } = self.run;
        let mut text: String = output.iter().map(|line| format!("  {line}\n")).collect();
        let undone = self.awaited.undone();
        let notice = match (&self.failure, self.run.result) {
            (Some(failure), _) => failure.clone(),
            (None, "late") => {
                let title = &self.title;
                let waited = spoken(self.waited);
                let problem = match self.awaited {
                    Wanted::Exit => format!("{title} has not ended after {waited}"),
                    _ => {
                        format!("{title} has not {} after {waited}; it still runs", undone.replace("wrote", "written"))
                    }
                };
                Notice::new(TIMED_OUT, problem, self.hint_when_late())
            }
            _ => {
                let before = if matches!(self.awaited, Wanted::Time(_)) {
                    String::new()
                } else {
                    format!(", before it {undone}")
                };
                let problem = format!("{} {}{before}", self.title, self.how_ended());
                Notice::new(FAILURE, problem, format_args!("rexec out {seq} shows all that it wrote"))
            }
        };
        text += &notice.to_string();
        told::put(text);
        Ok(())
    }

    fn hint_when_late(&self) -> String {
        let BackgroundRun { seq, ref output, .. } = self.run;
        let look = format!("rexec tail -f {seq} shows what it writes");
        match self.awaited {
            Wanted::Text(_) if output.is_empty() => {
                format!("{look}; a program may keep its text back on a pipe, and --tty gives it a terminal")
            }
            Wanted::Exit => format!("{look}, rexec kill {seq} ends it"),
            _ => format!("{look}, rexec wait {seq} waits on"),
        }
    }
}

/// The end of a run for people: `ended with 143 after 5.1 s (SIGTERM)`.
pub(super) fn how_ended(exit: u8, signal: Option<u8>, ran_ms: u64) -> String {
    let signal = signal.map(|number| match signal_name(number) {
        Some(name) => format!(" ({name})"),
        None => format!(" (signal {number})"),
    });
    format!("ended with {exit} after {}{}", duration(ran_ms), signal.unwrap_or_default())
}

/// A duration for people.
fn spoken(time: Duration) -> String {
    duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn last_lines(run: u64, calls: &mut HostCalls) -> Result<Vec<String>, CallError> {
    let max_bytes = Some(limits::RPC_READ_BYTES_MAX);
    let params = OutputParams { run, after: 0, max_bytes, wait_ms: 0, encoding: Encoding::Text };
    let answer = calls.call::<method::Output>(&params)?;
    let text: String = answer.chunks.into_iter().filter_map(|chunk| chunk.text).collect();
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines[lines.len().saturating_sub(LINES)..].iter();
    Ok(shown.map(|line| escape_line(line, LINE_COLUMNS)).collect())
}
