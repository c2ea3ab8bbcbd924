//! The requests to the host that tool calls need, and the handling of its answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::HOST_NOT_FOUND;
use serde_json::{Value, json};

use super::arguments::WriteArguments;
use super::call::{KnownRun, OutputReading, PendingCall, RunEnding, Work};
use super::excerpt::OutputExcerpt;
use super::{McpServer, wording};
use crate::front::json_line::put_line;
use crate::front::keys::{Instead, Key};
use crate::front::rpc::methods::{RpcMethod, method};
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct HostSide {
    is_up: bool,
    /// Calls that begin once there is a host.
    waiting: Vec<u64>,
    last_id: u64,
    asked: BTreeMap<u64, Asked>,
    out: Vec<u8>,
}

/// A request that has no answer yet.
#[derive(Debug)]
struct Asked {
    call: u64,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Start,
    Output,
    Write,
    Act,
    List,
    Hello,
    /// Nobody waits for the answer.
    Nothing,
}

impl HostSide {
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Sends a request. Returns false if it is longer than the host accepts.
    fn ask(&mut self, call: u64, what: What, method: &str, params: &Value) -> bool {
        self.last_id += 1;
        let before = self.out.len();
        put_line(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}), &mut self.out);
        if self.out.len() - before > limits::JSON_LINE_BYTES_MAX {
            self.out.truncate(before);
            return false;
        }
        self.asked.insert(self.last_id, Asked { call, what });
        true
    }

    /// Ends a run that nobody waits for.
    pub(super) fn end(&mut self, run: u64) {
        let grace = u64::try_from(limits::GRACE_CALLER_GONE.as_millis()).unwrap_or(u64::MAX);
        self.ask(0, What::Nothing, method::Cancel::NAME, &json!({"run": run, "grace_ms": grace}));
    }
}

impl McpServer {
    /// Returns true if a call waits for a connection to a host.
    #[must_use]
    pub fn wants_host(&self) -> bool {
        !self.host.waiting.is_empty()
    }

    /// Begins the waiting calls, because there is a connection to a host.
    pub fn host_is_up(&mut self, now: Instant) {
        self.host.is_up = true;
        for call in std::mem::take(&mut self.host.waiting) {
            self.begin(call, now);
        }
    }

    /// Ends the waiting calls, because there is no host, for this reason.
    pub fn host_is_absent(&mut self, reason: &str) {
        for key in std::mem::take(&mut self.host.waiting) {
            let is_question = self.calls.get(&key).is_some_and(|call| matches!(call.work, Work::CheckHost));
            if is_question && reason.starts_with(HOST_NOT_FOUND) {
                self.finish(key, HOST_NOT_FOUND, false);
            } else {
                self.finish(key, reason, true);
            }
        }
    }

    /// Resets the state, because the connection has ended, and with it everything that the host knew.
    pub fn host_is_gone(&mut self) {
        self.host = HostSide { last_id: self.host.last_id, ..HostSide::default() };
        self.former_runs.extend(std::mem::take(&mut self.runs).into_keys());
        while self.former_runs.len() > limits::MCP_RUNS_MAX {
            self.former_runs.pop_first();
        }
        let hint = "look at rexec log; start rexec-host in a terminal if none runs, then call again";
        for (_, call) in std::mem::take(&mut self.calls) {
            let (shown, problem) = match call.work {
                Work::Follow { run, excerpt, .. } => {
                    let what = format!("the host went away while run {run} ran; its outcome is unknown");
                    (excerpt.finish(), what)
                }
                Work::Starting { .. } => (String::new(), "the host went away; the command may have run".to_owned()),
                _ => (String::new(), "the host went away".to_owned()),
            };
            self.result(&call.id, call.era, &(shown + &wording::problem(&problem, hint)), true);
        }
    }

    pub(super) fn begin(&mut self, key: u64, now: Instant) {
        if !self.host.is_up {
            self.host.waiting.push(key);
            return;
        }
        let Some(call) = self.calls.get_mut(&key) else { return };
        if let Some(run) = about(&call.work).filter(|run| self.former_runs.contains(run)) {
            let what = format!("run {run} was one of an earlier host's, which has ended");
            self.finish(key, &wording::problem(&what, "rexec log lists it"), true);
            return;
        }
        let (what, method, params) = match &mut call.work {
            Work::Start(exec) => {
                let params = Value::Object(std::mem::take(&mut exec.params));
                call.work = Work::Starting { background: exec.background, tty: exec.tty };
                (What::Start, method::Start::NAME, params)
            }
            Work::Read(reading) => {
                let until = now + reading.wait;
                reading.until = Some(until);
                call.limit = until + limits::MCP_ANSWER;
                self.ask_output(key, now);
                return;
            }
            Work::Write(write) => {
                let tty = self.runs.get(&write.run).is_none_or(|known| known.tty);
                let (method, params) = typed(write, tty);
                (What::Write, method, params)
            }
            Work::Kill { run, signal: Some(signal) } => {
                let signal = signal.parse::<u8>().map_or_else(|_| json!(signal), |number| json!(number));
                (What::Act, method::Signal::NAME, json!({"run": run, "signal": signal}))
            }
            Work::Kill { run, signal: None } => (What::Act, method::Cancel::NAME, json!({"run": run})),
            Work::List { all } => (What::List, method::List::NAME, json!({"all": all})),
            Work::CheckHost => (What::Hello, method::Hello::NAME, json!({})),
            Work::Starting { .. } | Work::Follow { .. } => return,
        };
        if !self.host.ask(key, what, method, &params) {
            let problem = format!("the call is too long: the host takes {} bytes", limits::JSON_LINE_BYTES_MAX);
            self.finish(key, &wording::problem(&problem, "write long input to a file, and read it from there"), true);
        }
    }

    /// Asks for a run's output since the cursor.
    fn ask_output(&mut self, key: u64, now: Instant) {
        let Some(PendingCall { work: Work::Read(reading), .. }) = self.calls.get_mut(&key) else { return };
        reading.ask_at = None;
        let seen = self.runs.get(&reading.run).map_or(0, |known| known.seen);
        let after = *reading.after.get_or_insert(seen);
        let left = reading.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let wait = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let params = json!({
            "run": reading.run, "after": after, "max_bytes": limits::MCP_READ_BYTES, "wait_ms": wait,
        });
        self.host.ask(key, What::Output, method::Output::NAME, &params);
    }

    /// Takes a line of the host.
    pub fn host_line(&mut self, line: &[u8], now: Instant) {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else { return };
        if let Some(Value::String(method)) = message.get("method") {
            let run = message.get("params").and_then(|params| params.get("run")).and_then(Value::as_u64);
            if let (Some(run), Some(params)) = (run, message.get("params")) {
                match method.as_str() {
                    "exec.output" => self.on_output(run, params),
                    "exec.exited" => self.on_exited(run, params, now),
                    "exec.closed" => self.on_closed(run),
                    _ => {}
                }
            }
            return;
        }
        let id = message.get("id").and_then(Value::as_u64);
        let Some(Asked { call, what }) = id.and_then(|id| self.host.asked.remove(&id)) else { return };
        match message.remove("error") {
            Some(error) => self.finish(call, &wording::host_error(&error), true),
            None => self.on_answer(call, what, &message.remove("result").unwrap_or_default(), now),
        }
    }

    fn on_answer(&mut self, key: u64, what: What, answer: &Value, now: Instant) {
        match what {
            What::Start => self.on_started(key, answer, now),
            What::Output => self.on_chunks(key, answer, now),
            What::Write => {
                let Some(call) = self.calls.get_mut(&key) else { return };
                if let Work::Write(write) = &mut call.work {
                    if let Some((method, params)) = write.next.take() {
                        self.host.ask(key, What::Write, method, &params);
                        return;
                    }
                    call.work = Work::Read(OutputReading::new(write.run, None, write.wait));
                    self.begin(key, now);
                }
            }
            What::Act => {
                let Some(call) = self.calls.get_mut(&key) else { return };
                let Work::Kill { run, signal } = &call.work else { return };
                let (run, is_signal) = (*run, signal.is_some());
                if is_signal {
                    self.finish(key, &format!("run {run} was sent the signal\n"), false);
                } else if answer.get("running").and_then(Value::as_bool) == Some(false) {
                    self.finish(key, &format!("run {run} was over\n"), false);
                } else {
                    // Its last words come with the result.
                    call.work = Work::Read(OutputReading::new(run, None, limits::MCP_KILL));
                    self.begin(key, now);
                }
            }
            What::List => self.finish(key, &wording::list(answer), false),
            What::Hello => self.finish(key, "HOST RUNNING\n", false),
            What::Nothing => {}
        }
    }

    fn on_started(&mut self, key: u64, answer: &Value, now: Instant) {
        let Some(run) = answer.get("run").and_then(Value::as_u64) else { return };
        self.former_runs.remove(&run);
        let Some(call) = self.calls.get_mut(&key) else {
            // The client has cancelled the call, or its time was over before the host answered.
            self.host.end(run);
            return;
        };
        let Work::Starting { background, tty } = call.work else { return };
        if background {
            call.limit = call.limit.min(now + limits::MCP_BACKGROUND_LOOK);
        }
        call.work =
            Work::Follow { run, background, excerpt: OutputExcerpt::new(format!("rexec out {run}")), ending: None };
        self.runs.insert(run, KnownRun { call: Some(key), seen: 0, tty });
        while self.runs.len() > limits::MCP_RUNS_MAX {
            self.runs.pop_first();
        }
    }

    fn on_output(&mut self, run: u64, params: &Value) {
        let Some(known) = self.runs.get_mut(&run) else { return };
        let Some(call) = known.call.and_then(|key| self.calls.get_mut(&key)) else { return };
        let Some(excerpt) = call.excerpt() else { return };
        if let Some(lost) = params.get("lost_bytes") {
            excerpt.push(&wording::gone(&json!({"bytes": lost}), run));
        }
        excerpt.push(params.get("text").and_then(Value::as_str).unwrap_or_default());
        known.seen = params.get("seq").and_then(Value::as_u64).unwrap_or(known.seen);
    }

    /// Notes that a run's shell has ended. The rest of its output follows, and then the run is closed.
    fn on_exited(&mut self, run: u64, params: &Value, now: Instant) {
        let Some(call) = self.runs.get(&run).and_then(|known| self.calls.get_mut(&known.call?)) else { return };
        if let Work::Follow { ending, .. } = &mut call.work {
            let unknown = RunEnding { exit: -1, signal: None, error: None, message: None };
            *ending = Some(RunEnding::of(params).unwrap_or(unknown));
            call.limit = now + limits::MCP_ANSWER;
        }
    }

    /// Ends the call of a run, because all its output is there.
    fn on_closed(&mut self, run: u64) {
        if let Some(key) = self.runs.get(&run).and_then(|known| known.call) {
            self.finish_following(key);
        }
    }

    /// Ends a call that follows a run, which has ended or goes on.
    fn finish_following(&mut self, key: u64) {
        let Some(PendingCall { work: Work::Follow { run, background, excerpt, ending }, .. }) =
            self.calls.get_mut(&key)
        else {
            return;
        };
        let text = std::mem::replace(excerpt, OutputExcerpt::new(String::new())).finish();
        let (run, background, ending) = (*run, *background, ending.take());
        self.unfollow(run);
        let last = match &ending {
            Some(ending) => wording::ending(ending),
            None if background => wording::in_background(run),
            None => wording::still_running(run),
        };
        self.finish(key, &(text + &last), ending.is_some_and(|ending| ending.exit != 0));
    }

    /// Takes the answer to a question for output.
    fn on_chunks(&mut self, key: u64, answer: &Value, now: Instant) {
        let Some(PendingCall { work: Work::Read(reading), .. }) = self.calls.get_mut(&key) else { return };
        if let Some(gone) = answer.get("gone").filter(|gone| gone.is_object()) {
            reading.excerpt.push(&wording::gone(gone, reading.run));
        }
        let chunks = answer.get("chunks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for chunk in chunks {
            reading.excerpt.push(chunk.get("text").and_then(Value::as_str).unwrap_or_default());
        }
        let next = answer.get("next").and_then(Value::as_u64).or(reading.after).unwrap_or_default();
        reading.after = Some(next);
        // Another client's run may have a terminal or not.
        self.runs.entry(reading.run).or_insert(KnownRun { call: None, seen: 0, tty: true }).seen = next;
        // Once a run has ended, always wait for the rest of its output. That does not take long.
        let ending = RunEnding::of(answer);
        let has_all = chunks.is_empty() && answer.get("closed").and_then(Value::as_bool) != Some(false);
        let is_over = if ending.is_some() { has_all } else { reading.until.is_none_or(|until| until <= now) };
        if !is_over {
            // The command's output until then comes in one answer.
            reading.ask_at = Some(now + limits::MCP_READ_EVERY);
        } else {
            self.finish_reading(key, ending);
        }
    }

    fn finish_reading(&mut self, key: u64, ending: Option<RunEnding>) {
        let Some(PendingCall { work: Work::Read(reading), .. }) = self.calls.get_mut(&key) else { return };
        let (run, next) = (reading.run, reading.after.unwrap_or_default());
        let text = std::mem::replace(&mut reading.excerpt, OutputExcerpt::new(String::new())).finish();
        let last = ending.map_or_else(|| wording::running(run, next), |ending| wording::ending(&ending));
        self.finish(key, &(text + &last), false);
    }

    /// Ends a call whose time is over, or takes its next step.
    pub(super) fn time_is_over(&mut self, key: u64, now: Instant) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        if call.limit > now {
            if matches!(&call.work, Work::Read(reading) if reading.ask_at.is_some_and(|at| at <= now)) {
                self.ask_output(key, now);
            }
            return;
        }
        match &mut call.work {
            Work::Follow { .. } => self.finish_following(key),
            Work::Write(write) => {
                let text = format!("[typed; run {} has not read it yet]\n", write.run);
                self.finish(key, &text, false);
            }
            _ => {
                let hint = "rexec status says how it is; the user sees it in its terminal";
                self.finish(key, &wording::problem("the host does not answer", hint), true);
            }
        }
    }

    /// Sends the output of a run to no call any more.
    pub(super) fn unfollow(&mut self, run: u64) {
        if let Some(known) = self.runs.get_mut(&run) {
            known.call = None;
        }
    }
}

/// The run that a call names.
fn about(work: &Work) -> Option<u64> {
    match work {
        Work::Read(OutputReading { run, .. }) | Work::Kill { run, .. } => Some(*run),
        Work::Write(write) => Some(write.run),
        _ => None,
    }
}

/// The request that types something for a run, which has a terminal or not. A second one, for the time after the first,
/// is left in `write`.
fn typed(write: &mut WriteArguments, tty: bool) -> (&'static str, Value) {
    let (run, mut text, mut eof, mut signal) = (write.run, std::mem::take(&mut write.text), write.eof, None);
    match write.key {
        None => {}
        Some(key) if tty || key.instead == Instead::Text => text.push_str(key.text),
        Some(Key { instead: Instead::Signal(name), .. }) => signal = Some(name),
        Some(_) => eof = true,
    }
    let signals = signal.map(|signal| (method::Signal::NAME, json!({"run": run, "signal": signal})));
    let writes = (method::Write::NAME, json!({"run": run, "text": text, "eof": eof}));
    match signals {
        Some(signals) if text.is_empty() && !eof => signals,
        next => {
            write.next = next;
            writes
        }
    }
}
