//! The host's side of a session: its answers, and its messages about runs.

use serde_json::{Value, json};

use super::{Ask, ExecSession};
use crate::cli::exec_server::dialect::Dialect;
use crate::cli::exec_server::host_line::HostLine;
use crate::cli::exec_server::message::{FAILED, Refusal, put_answer};
use crate::cli::exec_server::process::{ClientProcess, Stage};
use crate::front::rpc::methods::{RpcMethod, method};
use crate::limits;

impl ExecSession {
    /// Takes a line of the host. Returns the number of bytes of output that follow it.
    pub(super) fn on_host_line(&mut self, line: &[u8]) -> usize {
        let Some(line) = HostLine::read(line) else { return 0 };
        match line.method {
            Some("exec.output") => {
                self.output_next = line.params.run.zip(line.params.stream());
                return line.params.bytes.unwrap_or(0);
            }
            Some("exec.exited") => self.on_exited(&line),
            Some("exec.closed") => self.on_closed(line.params.run),
            Some(_) => {}
            None => {
                let answer = match (line.error, line.result) {
                    (Some(error), _) => Err(Refusal::new(FAILED, error.sentence())),
                    (None, result) => Ok(result.unwrap_or(Value::Null)),
                };
                if let Some(ask) = line.id.and_then(|id| self.asked.remove(&id)) {
                    self.on_answer(ask, answer);
                }
            }
        }
        0
    }

    pub(super) fn on_answer(&mut self, ask: Ask, answer: Result<Value, Refusal>) {
        match (ask, answer) {
            (Ask::Answer { id, result }, Ok(_)) => put_answer(&id, &Ok(result), &mut self.to_client),
            // A command that has ended meanwhile needs neither a signal nor an end.
            (Ask::Answer { id, result }, Err(_))
                if result.get("status").is_none() && result.get("accepted").is_none() =>
            {
                let result = if result.get("running").is_some() { json!({"running": false}) } else { result };
                put_answer(&id, &Ok(result), &mut self.to_client);
            }
            (Ask::Answer { id, .. }, Err(refusal)) => put_answer(&id, &Err(refusal), &mut self.to_client),
            (Ask::Start { process, id }, Ok(answer)) => {
                let Some(run) = answer.get("run").and_then(Value::as_u64) else {
                    let refusal = Refusal::new(FAILED, "the host's answer has no run");
                    return self.on_answer(Ask::Start { process, id }, Err(refusal));
                };
                self.dialect.put_started(&id, &process, &mut self.to_client);
                self.runs.insert(run, process.clone());
                let Some(known) = self.processes.get_mut(&process) else { return };
                known.stage = Stage::Runs(run);
                self.ask_waiting(&process);
            }
            (Ask::Write { process, mut rest, id, result }, Ok(_)) if !rest.is_empty() => {
                let piece = rest.pop().unwrap_or_default();
                let then = Ask::Write { process: process.clone(), rest, id, result };
                if let Some(known) = self.processes.get_mut(&process) {
                    known.is_writing = false;
                    self.ask_of(&process, method::Write::NAME, json!({"base64": piece}), then);
                }
            }
            (Ask::Write { process, id, result, .. }, answer) => {
                put_answer(&id, &answer.map(|_| result), &mut self.to_client);
                if let Some(known) = self.processes.get_mut(&process) {
                    known.is_writing = false;
                    self.ask_waiting(&process);
                }
            }
            (Ask::Start { process, id }, Err(refusal)) => {
                let waiting = self.processes.remove(&process).map(|process| process.waiting).unwrap_or_default();
                put_answer(&id, &Err(refusal.clone()), &mut self.to_client);
                waiting.into_iter().for_each(|(.., then)| self.on_answer(then, Err(refusal.clone())));
            }
        }
    }

    /// Sends the waiting requests, in their order.
    fn ask_waiting(&mut self, name: &str) {
        let waiting = self.processes.get_mut(name).map(|process| std::mem::take(&mut process.waiting));
        for (method, ask, then) in waiting.unwrap_or_default() {
            self.ask_of(name, method, ask, then);
        }
    }

    /// Takes the output that the last line announced.
    pub(super) fn on_output(&mut self, bytes: &[u8]) {
        let Some((run, stream)) = self.output_next.take() else { return };
        if let Some(name) = self.runs.get(&run).cloned() {
            self.tell_output(&name, stream, bytes);
        }
    }

    fn tell_output(&mut self, name: &str, stream: &'static str, bytes: &[u8]) {
        let Some(process) = self.processes.get_mut(name) else { return };
        let seq = process.number();
        self.dialect.put_output(name, seq, stream, bytes, &mut self.to_client);
        if self.dialect == Dialect::Current {
            process.keep(seq, stream, bytes);
            self.serve_reads(None);
        }
    }

    fn on_exited(&mut self, line: &HostLine<'_>) {
        let Some(name) = line.params.run.and_then(|run| self.runs.get(&run)).cloned() else { return };
        if let Some(message) = &line.params.message {
            // The output of a shell reports a command that could not be started, too.
            self.tell_output(&name, "stderr", message.as_bytes());
        }
        self.exit(&name, line.params.exit.unwrap_or(125));
    }

    fn exit(&mut self, name: &str, code: i64) {
        let Some(process) = self.processes.get_mut(name).filter(|process| process.exit().is_none()) else { return };
        process.stage = Stage::Exited(code);
        if self.dialect == Dialect::Current {
            let seq = process.number();
            Dialect::put_exited(name, seq, code, &mut self.to_client);
        }
        self.serve_reads(None);
    }

    fn on_closed(&mut self, run: Option<u64>) {
        if let Some(name) = run.and_then(|run| self.runs.remove(&run)) {
            self.close(&name);
        }
    }

    fn close(&mut self, name: &str) {
        let Some(process) = self.processes.get_mut(name) else { return };
        let Stage::Exited(code) = process.stage else { return };
        process.stage = Stage::Closed(code);
        let seq = process.number();
        self.dialect.put_closed(name, seq, code, &mut self.to_client);
        self.serve_reads(None);
        self.closed.push_back(name.to_owned());
        if self.closed.len() > limits::EXEC_SERVER_READABLE_MAX {
            let old = &self.closed[self.closed.len() - limits::EXEC_SERVER_READABLE_MAX - 1];
            self.processes.get_mut(old).into_iter().for_each(ClientProcess::shed);
        }
        if self.closed.len() > limits::EXEC_SERVER_CLOSED_MAX
            && let Some(oldest) = self.closed.pop_front()
        {
            self.processes.remove(&oldest);
        }
    }

    /// Ends all processes, because the host is gone, and every command there with it.
    pub(super) fn end_all(&mut self) {
        let sentence = "rexec: the host went away in mid-run; whether the command finished is unknown\n";
        for name in std::mem::take(&mut self.runs).into_values() {
            self.tell_output(&name, "stderr", sentence.as_bytes());
            self.exit(&name, 125);
            self.close(&name);
        }
        self.refuse_all(&Refusal::new(FAILED, "rexec: the host went away before it answered; start rexec-host again"));
    }

    pub(super) fn refuse_all(&mut self, refusal: &Refusal) {
        self.to_host.clear();
        for ask in std::mem::take(&mut self.asked).into_values() {
            self.on_answer(ask, Err(refusal.clone()));
        }
        self.to_host.clear();
    }
}
