//! The host's side of a session: its answers, and its messages about runs.

use serde_json::json;

use super::ExecSession;
use crate::cli::exec_server::dialect::Dialect;
use crate::cli::exec_server::message::{FAILED, Refusal, put_answer};
use crate::cli::exec_server::process::{ClientProcess, Purpose, Stage, Wish};
use crate::core::entry::Stream;
use crate::front::rpc::answers::{ExitedNote, Started};
use crate::front::rpc::client::{AnswerValue, HostLine};
use crate::front::rpc::events::Event;
use crate::front::rpc::reply::stream_word;
use crate::limits;

impl ExecSession {
    /// Takes a line of the host. Returns the number of bytes of output that follow it.
    pub(super) fn on_host_line(&mut self, line: &[u8]) -> usize {
        match HostLine::read(line) {
            Some(HostLine::Event(Event::Output(note))) => {
                self.output_next = stream_named(&note.stream).map(|stream| (note.run, stream));
                return note.bytes.unwrap_or(0);
            }
            Some(HostLine::Event(Event::Exited(note))) => self.on_exited(*note),
            Some(HostLine::Event(Event::Closed(note))) => self.on_closed(note.run),
            Some(HostLine::Answer(id, answer)) => {
                if let Some(then) = self.host.answered(id) {
                    self.on_answer(then, answer.map_err(Refusal::from));
                }
            }
            _ => {}
        }
        0
    }

    pub(super) fn on_answer(&mut self, then: Purpose, answer: Result<AnswerValue, Refusal>) {
        match (then, answer) {
            (Purpose::Answer { id, result }, Ok(_)) => put_answer(&id, &Ok(result), &mut self.to_client),
            // A command that has ended meanwhile needs neither a signal nor an end.
            (Purpose::Answer { id, result }, Err(_))
                if result.get("status").is_none() && result.get("accepted").is_none() =>
            {
                let result = if result.get("running").is_some() { json!({"running": false}) } else { result };
                put_answer(&id, &Ok(result), &mut self.to_client);
            }
            (Purpose::Answer { id, .. }, Err(refusal)) => put_answer(&id, &Err(refusal), &mut self.to_client),
            (Purpose::Start { process, id }, Ok(answer)) => {
                let Some(Started { run }) = answer.form() else {
                    let refusal = Refusal::new(FAILED, "the host's answer has no run");
                    return self.on_answer(Purpose::Start { process, id }, Err(refusal));
                };
                self.dialect.put_started(&id, &process, &mut self.to_client);
                self.runs.insert(run, process.clone());
                let Some(known) = self.processes.get_mut(&process) else { return };
                known.stage = Stage::Runs(run);
                self.serve_wishes(&process);
            }
            (Purpose::Write { process, mut rest, id, result }, Ok(_)) if !rest.is_empty() => {
                let piece = rest.pop().unwrap_or_default();
                let then = Purpose::Write { process: process.clone(), rest, id, result };
                if let Some(known) = self.processes.get_mut(&process) {
                    known.is_writing = false;
                    self.wish(&process, Wish::Input(piece), then);
                }
            }
            (Purpose::Write { process, id, result, .. }, answer) => {
                put_answer(&id, &answer.map(|_| result), &mut self.to_client);
                if let Some(known) = self.processes.get_mut(&process) {
                    known.is_writing = false;
                    self.serve_wishes(&process);
                }
            }
            (Purpose::Start { process, id }, Err(refusal)) => {
                let waiting = self.processes.remove(&process).map(|process| process.waiting).unwrap_or_default();
                put_answer(&id, &Err(refusal.clone()), &mut self.to_client);
                waiting.into_iter().for_each(|(.., then)| self.on_answer(then, Err(refusal.clone())));
            }
        }
    }

    /// Serves the waiting wishes, in their order.
    fn serve_wishes(&mut self, name: &str) {
        let waiting = self.processes.get_mut(name).map(|process| std::mem::take(&mut process.waiting));
        for (wish, then) in waiting.unwrap_or_default() {
            self.wish(name, wish, then);
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

    fn on_exited(&mut self, ExitedNote { run, end, .. }: ExitedNote) {
        let Some(name) = self.runs.get(&run).cloned() else { return };
        if let Some(message) = &end.message {
            // The output of a shell reports a command that could not be started, too.
            self.tell_output(&name, "stderr", message.as_bytes());
        }
        self.exit(&name, i64::from(end.exit));
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

    fn on_closed(&mut self, run: u64) {
        if let Some(name) = self.runs.remove(&run) {
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
        let mut given_up = self.host.give_up();
        while !given_up.is_empty() {
            given_up.into_iter().for_each(|then| self.on_answer(then, Err(refusal.clone())));
            // A write that was refused has made room for the next one.
            given_up = self.host.give_up();
        }
    }
}

/// The stream of this name, which clients know as well.
fn stream_named(name: &str) -> Option<&'static str> {
    [Stream::Out, Stream::Err, Stream::Tty].map(stream_word).into_iter().find(|word| *word == name)
}
