//! One client's session: passes its requests to the host, and reports its runs to it.
//!
//! Invariants: a request is answered exactly once; a process that the host has lost ends for the client, too; without a
//! host every start is refused with one sentence, and the next one looks for a host again.

mod host_side;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use serde_json::{Value, json};

use super::dialect::Dialect;
use super::files;
use super::message::{FAILED, INVALID_REQUEST, Message, Refusal, UNKNOWN_METHOD, params, put_answer};
use super::process::{ClientProcess, Purpose, Stage, Wish};
use super::requests::{self, Identity};
use crate::cli::stdio_server::StdioSession;
use crate::front::rpc::client::PendingCalls;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::SignalName;
use crate::limits;

#[derive(Debug)]
struct WaitingRead {
    id: Value,
    process: String,
    after: u64,
    most: usize,
    until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    None,
    Initialized,
    Done,
}

#[derive(Debug)]
pub(super) struct ExecSession {
    dialect: Dialect,
    identity: Identity,
    handshake: Handshake,
    processes: BTreeMap<String, ClientProcess>,
    /// The processes' names by their runs.
    runs: BTreeMap<u64, String>,
    /// Closed processes, the oldest first.
    closed: VecDeque<String>,
    host: PendingCalls<Purpose>,
    /// The run and the stream of the next output from the host.
    output_next: Option<(u64, &'static str)>,
    reads: Vec<WaitingRead>,
    /// Lines for the client.
    to_client: Vec<u8>,
}

impl ExecSession {
    pub(super) fn new(dialect: Dialect, identity: Identity) -> Self {
        Self {
            dialect,
            identity,
            handshake: Handshake::None,
            processes: BTreeMap::new(),
            runs: BTreeMap::new(),
            closed: VecDeque::new(),
            host: PendingCalls::default(),
            output_next: None,
            reads: Vec::new(),
            to_client: Vec::new(),
        }
    }

    fn on_client_line(&mut self, line: &[u8], now: Instant) {
        match Message::read(line) {
            Some(Message::Request { id, method, params }) => {
                if let Some(answer) = self.request(&id, &method, params, now) {
                    put_answer(&id, &answer, &mut self.to_client);
                }
            }
            Some(Message::Notification { method }) if method == "initialized" => {
                if self.handshake == Handshake::Initialized {
                    self.handshake = Handshake::Done;
                }
            }
            Some(Message::Notification { method }) => {
                let method: String = method.chars().take(64).collect();
                self.complain(&format!("unexpected notification `{method}`"));
            }
            Some(Message::Answer) => {}
            None => self.complain("not a message: an object in JSON with a method is needed"),
        }
    }

    /// Reports a message that cannot be answered to the client.
    fn complain(&mut self, problem: &str) {
        put_answer(&json!(-1), &Err(Refusal::new(INVALID_REQUEST, problem)), &mut self.to_client);
    }

    /// Serves a request. Returns the answer if it is known already.
    fn request(&mut self, id: &Value, method: &str, given: Value, now: Instant) -> Option<files::FileAnswer> {
        if method == "initialize" {
            return Some(self.initialize(&given));
        }
        if self.handshake != Handshake::Done && method != "environment/status" {
            let missing = if self.handshake == Handshake::None { "call initialize" } else { "send initialized" };
            let group = match method.split('/').next() {
                Some("fs") => "filesystem",
                Some("environment") => "environment info",
                _ => "exec",
            };
            let message = format!("client must {missing} before using {group} methods");
            return Some(Err(Refusal::new(INVALID_REQUEST, message)));
        }
        let answer = match self.dialect.method(method) {
            Some("start") => self.start(id, given).err().map(Err),
            Some("read") => self.read(id, given, now).transpose(),
            Some("write") => self.write(id, given).transpose(),
            Some("signal") => self.signal(id, given).transpose(),
            Some("terminate") => self.terminate(id, given).transpose(),
            Some("resize") => self.resize(id, given).transpose(),
            Some("environment/info") => Some(Ok(requests::environment())),
            Some("environment/status") => Some(Ok(json!({"status": "ready"}))),
            Some(_) => files::answer(method, &given),
            None => return Some(Err(unknown(method))),
        };
        match answer {
            None if self.dialect.method(method).is_some_and(|known| known == "file") => Some(Err(unknown(method))),
            answer => answer,
        }
    }

    fn initialize(&mut self, given: &Value) -> files::FileAnswer {
        if self.handshake != Handshake::None {
            return Err(Refusal::new(INVALID_REQUEST, "initialize may only be sent once per connection"));
        }
        self.handshake = Handshake::Initialized;
        self.identity.meet(given.get("clientName").and_then(Value::as_str).unwrap_or_default());
        Ok(self.dialect.greeting(&self.identity))
    }

    fn start(&mut self, id: &Value, given: Value) -> Result<(), Refusal> {
        let start = self.dialect.start(given)?;
        let name = start.process_id.clone();
        if self.processes.contains_key(&name) {
            return Err(Refusal::new(INVALID_REQUEST, format!("process {name} already exists")));
        }
        self.processes.insert(name.clone(), ClientProcess::new(start.tty, start.tty || start.pipe_stdin));
        let then = Purpose::Start { process: name, id: id.clone() };
        let called = self.host.send::<method::Start>(&start.call(&self.identity), then);
        self.check_length(called);
        Ok(())
    }

    fn read(&mut self, id: &Value, given: Value, now: Instant) -> Result<Option<Value>, Refusal> {
        let read: requests::ReadAsk = params(given)?;
        let Some(process) = self.processes.get(&read.process_id) else {
            return Err(Refusal::new(INVALID_REQUEST, format!("unknown process id {}", read.process_id)));
        };
        let after = read.after_seq.unwrap_or(0);
        let most = read.max_bytes.unwrap_or(usize::MAX);
        if process.has_news(after) || read.wait().is_zero() || self.reads.len() >= limits::EXEC_SERVER_READS_MAX {
            return Ok(Some(process.read(after, most)));
        }
        let until = now + read.wait();
        self.reads.push(WaitingRead { id: id.clone(), process: read.process_id, after, most, until });
        Ok(None)
    }

    fn write(&mut self, id: &Value, given: Value) -> Result<Option<Value>, Refusal> {
        let write: requests::WriteAsk = params(given)?;
        let bytes = write.bytes()?;
        let is_old = self.dialect == Dialect::V0;
        let Some(process) = self.processes.get_mut(&write.process_id) else {
            return match is_old {
                true => Err(Refusal::new(INVALID_REQUEST, format!("unknown process id {}", write.process_id))),
                false => Ok(Some(json!({"status": "unknownProcess"}))),
            };
        };
        if !process.takes_input {
            return match is_old {
                true => Err(Refusal::new(INVALID_REQUEST, "stdin is closed for this process")),
                false => Ok(Some(json!({"status": "stdinClosed"}))),
            };
        }
        if process.exit().is_some() {
            return Err(Refusal::new(FAILED, "failed to write to process stdin"));
        }
        let result = if is_old { json!({"accepted": true}) } else { json!({"status": "accepted"}) };
        if bytes.is_empty() || !process.is_new_write(&write.write_id) {
            return Ok(Some(result));
        }
        let mut rest = pieces(&bytes);
        let first = rest.pop().unwrap_or_default();
        let then = Purpose::Write { process: write.process_id.clone(), rest, id: id.clone(), result };
        self.wish(&write.process_id, Wish::Input(first), then);
        Ok(None)
    }

    fn signal(&mut self, id: &Value, given: Value) -> Result<Option<Value>, Refusal> {
        let signal: requests::SignalAsk = params(given)?;
        if self.processes.get(&signal.process_id).is_none_or(|process| process.exit().is_some()) {
            return Ok(Some(json!({})));
        }
        let then = Purpose::Answer { id: id.clone(), result: json!({}) };
        let wanted = SignalName::Name(signal.signal.name().to_owned());
        self.wish(&signal.process_id, Wish::Signal(wanted), then);
        Ok(None)
    }

    fn resize(&mut self, id: &Value, given: Value) -> Result<Option<Value>, Refusal> {
        let resize: requests::ResizeAsk = params(given)?;
        let (rows, cols) = resize.size()?;
        if self.processes.get(&resize.process_id).is_none_or(|process| process.exit().is_some() || !process.is_tty) {
            return Ok(Some(json!({})));
        }
        let then = Purpose::Answer { id: id.clone(), result: json!({}) };
        self.wish(&resize.process_id, Wish::Size { rows, cols }, then);
        Ok(None)
    }

    fn terminate(&mut self, id: &Value, given: Value) -> Result<Option<Value>, Refusal> {
        let terminate: requests::ProcessAsk = params(given)?;
        if self.processes.get(&terminate.process_id).is_none_or(|process| process.exit().is_some()) {
            return Ok(Some(json!({"running": false})));
        }
        let then = Purpose::Answer { id: id.clone(), result: json!({"running": true}) };
        self.wish(&terminate.process_id, Wish::End, then);
        Ok(None)
    }

    /// Calls the host about a process, as soon as the run's number is known. A write waits for the one before it.
    fn wish(&mut self, name: &str, wish: Wish, then: Purpose) {
        let Some(process) = self.processes.get_mut(name) else { return };
        let is_write = matches!(then, Purpose::Write { .. });
        match process.stage {
            Stage::Runs(_) if is_write && process.is_writing => process.waiting.push((wish, then)),
            Stage::Runs(run) => {
                process.is_writing |= is_write;
                let called = wish.call(run, then, &mut self.host);
                self.check_length(called);
            }
            Stage::Asked => process.waiting.push((wish, then)),
            Stage::Exited(_) | Stage::Closed(_) => {
                self.on_answer(then, Err(Refusal::new(FAILED, "failed to write to process stdin")));
            }
        }
    }

    /// Refuses what needs a call that is too long.
    fn check_length(&mut self, called: Result<(), Purpose>) {
        if let Err(then) = called {
            let most = limits::JSON_LINE_BYTES_MAX;
            let problem =
                format!("rexec: the request is too long: the host takes {most} bytes; pass long text by a file");
            self.on_answer(then, Err(Refusal::new(FAILED, problem)));
        }
    }

    /// Answers the clients whose output is there, and those whose time is over.
    fn serve_reads(&mut self, now: Option<Instant>) {
        for read in std::mem::take(&mut self.reads) {
            let process = self.processes.get(&read.process);
            let is_over = now.is_some_and(|now| read.until <= now);
            match process {
                Some(process) if process.has_news(read.after) || is_over => {
                    put_answer(&read.id, &Ok(process.read(read.after, read.most)), &mut self.to_client);
                }
                Some(_) => self.reads.push(read),
                None => {
                    let gone = Refusal::new(INVALID_REQUEST, format!("unknown process id {}", read.process));
                    put_answer(&read.id, &Err(gone), &mut self.to_client);
                }
            }
        }
    }
}

/// Input in pieces that the host takes in one call each, the last one first.
fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
    // Half of a line, in base64, leaves room for the rest of the call.
    const PIECE: usize = limits::JSON_LINE_BYTES_MAX / 8 * 3;
    bytes.chunks(PIECE).rev().map(<[u8]>::to_vec).collect()
}

impl StdioSession for ExecSession {
    const LINE_BYTES_MAX: [usize; 2] = [limits::EXEC_SERVER_LINE_BYTES_MAX; 2];

    fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.to_client
    }

    fn to_host(&mut self) -> &mut Vec<u8> {
        self.host.out()
    }

    fn client_line(&mut self, line: &[u8], now: Instant) {
        self.on_client_line(line, now);
    }

    fn client_line_too_long(&mut self) {
        self.complain(&format!("a line of more than {} bytes", limits::EXEC_SERVER_LINE_BYTES_MAX));
    }

    fn host_line(&mut self, line: &[u8], _: Instant) -> usize {
        self.on_host_line(line)
    }

    fn host_bytes(&mut self, bytes: &[u8]) {
        self.on_output(bytes);
    }

    fn wants_host(&self) -> bool {
        self.host.has_unsent()
    }

    fn host_is_up(&mut self, _: Instant) {}

    fn host_is_absent(&mut self, notice: &str) {
        self.refuse_all(&Refusal::of_notice(notice));
    }

    fn host_is_gone(&mut self) {
        self.end_all();
    }

    fn tick(&mut self, now: Instant) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.serve_reads(Some(now));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.reads.iter().map(|read| read.until).min()
    }
}

fn unknown(method: &str) -> Refusal {
    let method: String = method.chars().take(64).collect();
    Refusal::new(UNKNOWN_METHOD, format!("rexec exec-server does not implement `{method}`"))
}
