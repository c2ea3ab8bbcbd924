//! The calls to the host that tool calls need, and the handling of its answers.

use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::HOST_NOT_FOUND;
use serde::Serialize;

use super::arguments::WriteArguments;
use super::call::{KnownRun, OutputReading, PendingCall, Work};
use super::excerpt::OutputExcerpt;
use super::{McpServer, wording};
use crate::front::how_ended::HowEnded;
use crate::front::keys::{Instead, Key};
use crate::front::rpc::answers::{
    AnsweredChunk, Cancelled, ExitedNote, GoneOutput, OutputAnswer, OutputNote, OutputRest, Started,
};
use crate::front::rpc::client::{AnswerValue, HostLine, PendingCalls};
use crate::front::rpc::events::Event;
use crate::front::rpc::methods::{RpcMethod, method};
use crate::front::rpc::params::{
    CancelParams, Encoding, HelloParams, ListParams, OutputParams, SignalName, SignalParams, WriteParams,
};
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct HostSide {
    is_up: bool,
    /// Calls that begin once there is a host.
    waiting: Vec<u64>,
    calls: PendingCalls<(u64, What)>,
}

/// What a tool call has asked the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Start,
    Output,
    Write,
    Signal,
    Cancel,
    List,
    Hello,
    /// Nobody waits for the answer.
    Nothing,
}

impl HostSide {
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.calls.out()
    }

    /// Calls the host. Returns false if the call is longer than the host accepts.
    fn ask<M: RpcMethod<Params: Serialize>>(&mut self, call: u64, what: What, params: &M::Params) -> bool {
        self.calls.send::<M>(params, (call, what)).is_ok()
    }

    /// Ends a run that nobody waits for.
    pub(super) fn end(&mut self, run: u64) {
        let grace_ms = u64::try_from(limits::GRACE_CALLER_GONE.as_millis()).ok();
        self.ask::<method::Cancel>(0, What::Nothing, &CancelParams { run, grace_ms });
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
        self.host.is_up = false;
        self.host.waiting.clear();
        self.host.calls.give_up();
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
        let host = &mut self.host;
        let is_sent = match &mut call.work {
            Work::Start(params) => {
                let params = std::mem::take(&mut **params);
                call.work = Work::Starting { background: params.background, tty: params.is_pty() };
                host.ask::<method::Start>(key, What::Start, &params)
            }
            Work::Undo(params) => {
                let params = std::mem::take(&mut **params);
                call.work = Work::Starting { background: false, tty: false };
                host.ask::<method::Undo>(key, What::Start, &params)
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
                match typed(write, tty) {
                    Typed::Write(params) => host.ask::<method::Write>(key, What::Write, &params),
                    Typed::Signal(params) => host.ask::<method::Signal>(key, What::Write, &params),
                }
            }
            Work::Kill { run, signal: Some(signal) } => {
                let params = SignalParams { run: *run, signal: signal.clone() };
                host.ask::<method::Signal>(key, What::Signal, &params)
            }
            Work::Kill { run, signal: None } => {
                host.ask::<method::Cancel>(key, What::Cancel, &CancelParams { run: *run, grace_ms: None })
            }
            Work::List { all } => {
                host.ask::<method::List>(key, What::List, &ListParams { all: *all, ..ListParams::default() })
            }
            Work::CheckHost => host.ask::<method::Hello>(key, What::Hello, &HelloParams::default()),
            Work::Starting { .. } | Work::Follow { .. } => return,
        };
        if !is_sent {
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
        let params = OutputParams {
            run: reading.run,
            after,
            max_bytes: Some(limits::MCP_READ_BYTES),
            wait_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            encoding: Encoding::Text,
        };
        self.host.ask::<method::Output>(key, What::Output, &params);
    }

    /// Takes a line of the host.
    pub fn host_line(&mut self, line: &[u8], now: Instant) {
        match HostLine::read(line) {
            Some(HostLine::Event(Event::Output(note))) => self.on_output(&note),
            Some(HostLine::Event(Event::Exited(note))) => self.on_exited(*note, now),
            Some(HostLine::Event(Event::Closed(note))) => self.on_closed(note.run),
            Some(HostLine::Answer(id, answer)) => {
                let Some((call, what)) = self.host.calls.answered(id) else { return };
                match answer {
                    Err(error) => self.finish(call, &wording::host_error(error), true),
                    Ok(answer) => {
                        if self.on_answer(call, what, answer, now).is_none() {
                            self.finish(call, &wording::problem("the host's answer is not understood", ""), true);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes an answer. Returns `None` if it has not the form of its method's answers.
    fn on_answer(&mut self, key: u64, what: What, answer: AnswerValue, now: Instant) -> Option<()> {
        match what {
            What::Start => self.on_started(key, &answer.form()?, now),
            What::Output => self.on_chunks(key, answer.form()?, now),
            What::Write => self.on_written(key, now),
            What::Signal => {
                let sent = self.calls.get(&key).and_then(|call| about(&call.work));
                self.finish(key, &format!("run {} was sent the signal\n", sent.unwrap_or_default()), false);
            }
            What::Cancel => self.on_cancelled(key, &answer.form()?, now),
            What::List => self.finish(key, &wording::list(&answer.form()?), false),
            What::Hello => self.finish(key, "HOST RUNNING\n", false),
            What::Nothing => {}
        }
        Some(())
    }

    fn on_written(&mut self, key: u64, now: Instant) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Work::Write(write) = &mut call.work else { return };
        if let Some(params) = write.next.take() {
            self.host.ask::<method::Signal>(key, What::Write, &params);
            return;
        }
        call.work = Work::Read(OutputReading::new(write.run, None, write.wait));
        self.begin(key, now);
    }

    fn on_cancelled(&mut self, key: u64, Cancelled { running }: &Cancelled, now: Instant) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Work::Kill { run, .. } = call.work else { return };
        if *running {
            // Its last words come with the result.
            call.work = Work::Read(OutputReading::new(run, None, limits::MCP_KILL));
            self.begin(key, now);
        } else {
            self.finish(key, &format!("run {run} was over\n"), false);
        }
    }

    fn on_started(&mut self, key: u64, &Started { run }: &Started, now: Instant) {
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

    fn on_output(&mut self, note: &OutputNote) {
        let Some(known) = self.runs.get_mut(&note.run) else { return };
        let Some(call) = known.call.and_then(|key| self.calls.get_mut(&key)) else { return };
        let Some(excerpt) = call.excerpt() else { return };
        if let Some(lost) = note.lost_bytes {
            excerpt.push(&wording::gone(lost, note.run));
        }
        excerpt.push(note.text.as_deref().unwrap_or_default());
        known.seen = note.seq;
    }

    /// Notes that a run's shell has ended. The rest of its output follows, and then the run is closed.
    fn on_exited(&mut self, ExitedNote { run, end, .. }: ExitedNote, now: Instant) {
        let Some(call) = self.runs.get(&run).and_then(|known| self.calls.get_mut(&known.call?)) else { return };
        if let Work::Follow { ending, .. } = &mut call.work {
            *ending = Some(end);
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
    fn on_chunks(&mut self, key: u64, OutputAnswer { chunks, rest }: OutputAnswer, now: Instant) {
        let Some(PendingCall { work: Work::Read(reading), .. }) = self.calls.get_mut(&key) else { return };
        let OutputRest { next, gone, exit, closed, .. } = rest;
        if let Some(GoneOutput { gone, .. }) = gone {
            reading.excerpt.push(&wording::gone(gone.bytes, reading.run));
        }
        for AnsweredChunk { text, .. } in &chunks {
            reading.excerpt.push(text.as_deref().unwrap_or_default());
        }
        reading.after = Some(next);
        // Another client's run may have a terminal or not.
        self.runs.entry(reading.run).or_insert(KnownRun { call: None, seen: 0, tty: true }).seen = next;
        // Once a run has ended, always wait for the rest of its output. That does not take long.
        let ending = exit.map(|exit| HowEnded { exit, ..HowEnded::default() });
        let has_all = chunks.is_empty() && closed;
        let is_over = if ending.is_some() { has_all } else { reading.until.is_none_or(|until| until <= now) };
        if !is_over {
            // The command's output until then comes in one answer.
            reading.ask_at = Some(now + limits::MCP_READ_EVERY);
        } else {
            self.finish_reading(key, ending);
        }
    }

    fn finish_reading(&mut self, key: u64, ending: Option<HowEnded>) {
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

/// The call that types something for a run.
enum Typed {
    Write(WriteParams),
    Signal(SignalParams),
}

/// The call that types something for a run, which has a terminal or not. A signal for the time after it is left in
/// `write`.
fn typed(write: &mut WriteArguments, tty: bool) -> Typed {
    let (run, mut text, mut eof, mut signal) = (write.run, std::mem::take(&mut write.text), write.eof, None);
    match write.key {
        None => {}
        Some(key) if tty || key.instead == Instead::Text => text.push_str(key.text),
        Some(Key { instead: Instead::Signal(name), .. }) => {
            signal = Some(SignalParams { run, signal: SignalName::Name(name.to_owned()) });
        }
        Some(_) => eof = true,
    }
    match signal {
        Some(signal) if text.is_empty() && !eof => Typed::Signal(signal),
        next => {
            write.next = next;
            Typed::Write(WriteParams { run, text: Some(text), base64: None, eof })
        }
    }
}
