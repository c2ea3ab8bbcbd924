//! The JSONL language: one request at a time, lines in, one line out. The `rexec` command and programs that write JSON
//! speak it. Its commands get the host's environment and `envs`. [`super::answer`] has the answers to actions.
//!
//! ```text
//! {"action":"ping"}                                              ▶ {"result":"pong","version":"…","pid":…}
//! {"whoami":"Me","dir":"/p","exec":["ls"],"envs":{},"stdin":"…"} ▶ {"exit":0,"output":"…"}
//!                                    also: "timeout":1.5 (seconds), "clear_env":true; nothing else is accepted
//! {"action":"abort"}                                             (after a request; closing the connection is the same)
//! ```

mod request;
mod response;
pub mod transcript;

use std::time::Duration;

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Signal;

use super::answer::{Answer, WrittenBefore};
use super::budget::Budget;
use super::json_line::put_line;
use super::{PeerRequest, Supervision};
use crate::core::entry::{Entry, Stream};
use crate::core::log::Item;
use crate::limits;
use crate::text::redact::{Redactor, StreamRedactor};
use request::{Action, JsonLine, violation};
pub use request::{
    AgentRequest, AttachRequest, CommandInput, CommandRequest, OutputPlace, SendRequest, WatchLook, WatchRequest,
};
use response::Gathered;

#[derive(Debug)]
pub struct Jsonl {
    output: Gathered,
    has_begun: bool,
    /// The client has asked for the host's presence.
    has_pinged: bool,
    has_asked: bool,
    is_over: bool,
    /// The client broke the rules, or cannot be served.
    has_failed: bool,
    outputs: Budget,
    /// Masks secrets in the output, if the host does that.
    mask: Option<Box<StreamRedactor>>,
}

impl Jsonl {
    /// A new connection. Its buffered output counts against `outputs`.
    #[must_use]
    pub fn new(outputs: &Budget) -> Self {
        Self {
            output: Gathered::new(outputs.share()),
            has_begun: false,
            has_pinged: false,
            has_asked: false,
            is_over: false,
            has_failed: false,
            outputs: outputs.clone(),
            mask: None,
        }
    }

    /// Masks these secrets in the command's output.
    pub fn mask(&mut self, secrets: &Redactor) {
        self.mask = Some(Box::new(StreamRedactor::new(secrets)));
    }

    /// Returns true if a line has come.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns true if the client has asked for the host's presence, as one that keeps its connection does.
    #[must_use]
    pub fn has_pinged(&self) -> bool {
        self.has_pinged
    }

    /// Returns true if the client has asked for a command, or for the end of one.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// Returns true if the answer is written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns true if the answer is written, and the client may make another request once it has taken that.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        self.is_over && !self.has_failed
    }

    /// Prepares for another request. Returns `false` if the connection carries no other.
    pub fn go_on(&mut self) -> bool {
        let goes_on = self.may_go_on();
        if goes_on {
            *self = Self { has_begun: true, has_pinged: self.has_pinged, ..Self::new(&self.outputs) };
        }
        goes_on
    }

    /// Takes whole lines off the front of `inbox`; returns the next request, if there is one.
    ///
    /// # Errors
    /// A line that is longer than [`limits::JSON_LINE_BYTES_MAX`], not JSON, or not a request.
    pub fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        while !self.is_over
            && let Some(end) = memchr::memchr(b'\n', inbox)
        {
            let line: Vec<u8> = inbox.drain(..=end).collect();
            self.has_begun = true;
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(request) = self.translate(JsonLine::read(&line)?, out)? {
                return Ok(Some(request));
            }
        }
        if inbox.len() > limits::JSON_LINE_BYTES_MAX {
            return Err(violation(format_args!("a line of over {} bytes", limits::JSON_LINE_BYTES_MAX)));
        }
        Ok(None)
    }

    fn translate(&mut self, line: JsonLine, out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        match line {
            JsonLine::Command(_) if self.has_asked => Err(violation("a second request before the answer to the first")),
            JsonLine::Command(request) => {
                self.has_asked = true;
                Ok(Some(PeerRequest::RunWords(request)))
            }
            JsonLine::Action(Action::Ping {}) => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                put_line(&Answer::Pong { version, pid: std::process::id() }, out);
                self.has_pinged = true;
                // In the middle of a request, this is no request of its own.
                self.is_over |= !self.has_asked;
                Ok(None)
            }
            JsonLine::Action(Action::Abort {}) if self.has_asked => Ok(Some(PeerRequest::Abort)),
            JsonLine::Action(Action::Abort {}) => Err(violation("the action abort comes after a request")),
            JsonLine::Action(Action::Resize { columns }) if self.has_asked => {
                Ok(Some(PeerRequest::Supervise(Supervision::Resize(columns))))
            }
            JsonLine::Action(Action::Resize { .. }) => Err(violation("the action resize comes after watch")),
            JsonLine::Action(_) if self.has_asked => {
                Err(violation("an action about other commands on a connection that has one"))
            }
            JsonLine::Action(Action::List {}) => Ok(Some(PeerRequest::Supervise(Supervision::List))),
            JsonLine::Action(Action::Agent(AgentRequest { name })) => {
                Ok(Some(PeerRequest::Supervise(Supervision::Agent { name })))
            }
            JsonLine::Action(Action::Stop { force }) => Ok(Some(PeerRequest::Supervise(Supervision::Stop { force }))),
            JsonLine::Action(Action::Status {}) => Ok(Some(PeerRequest::Supervise(Supervision::Status))),
            JsonLine::Action(Action::Watch(request)) => {
                self.has_asked = true;
                Ok(Some(PeerRequest::Supervise(Supervision::Watch(request))))
            }
            JsonLine::Action(Action::Transcript { ansi }) => {
                self.has_asked = true;
                Ok(Some(PeerRequest::Supervise(Supervision::Transcript { ansi })))
            }
            JsonLine::Action(Action::Pause { seq }) => Ok(Some(PeerRequest::Supervise(Supervision::Pause(seq)))),
            JsonLine::Action(Action::Resume { seq }) => Ok(Some(PeerRequest::Supervise(Supervision::Resume(seq)))),
            JsonLine::Action(Action::Send(request)) => {
                self.has_asked = true;
                Ok(Some(PeerRequest::Send(request)))
            }
            JsonLine::Action(Action::Attach(request)) => {
                self.has_asked = true;
                Ok(Some(PeerRequest::Attach(request)))
            }
            JsonLine::Action(Action::Kill { signal: Some(0 | 65..), .. }) => {
                Err(violation("not a valid action: signal is not a number from 1 to 64"))
            }
            JsonLine::Action(Action::Kill { seq, signal }) => {
                self.has_asked = true;
                Ok(Some(PeerRequest::Supervise(match signal.map(Signal::new) {
                    None => Supervision::Kill { seq, at_once: false },
                    Some(Signal::KILL) => Supervision::Kill { seq, at_once: true },
                    Some(signal) => Supervision::Signal(seq, signal),
                })))
            }
        }
    }

    /// Takes one item of the job's log. The response comes with the last one.
    pub fn accept(&mut self, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Entry(Entry::Output { stream, bytes, .. }) => {
                let mut taken = 0;
                while taken < bytes.len() {
                    taken += self.output(*stream, &bytes[taken..]);
                }
            }
            Item::Entry(Entry::Ended(end)) => {
                if let Some(mut mask) = self.mask.take() {
                    let mut rest = Vec::new();
                    mask.finish(&mut rest);
                    self.output.push_all(&rest);
                }
                self.output.respond(end, out);
                self.is_over = true;
            }
            Item::Entry(_) | Item::Missed { .. } => {}
        }
    }

    /// Takes the first bytes of the command's output; returns their number.
    pub fn output(&mut self, stream: Stream, bytes: &[u8]) -> usize {
        let Some(mask) = &mut self.mask else { return self.output.push(bytes) };
        let piece = &bytes[..bytes.len().min(limits::FILTERED_PIECE_BYTES)];
        let mut masked = Vec::new();
        mask.push(stream as u8, piece, &mut masked);
        self.output.push_all(&masked);
        piece.len()
    }

    /// Writes the line before a console's bytes. `ran` is the age of its only command, and `before` the earlier output
    /// of that.
    pub fn begin_console(&mut self, ran: Option<Duration>, before: Option<WrittenBefore>, out: &mut Vec<u8>) {
        let ran_ms = ran.map(|ran| u64::try_from(ran.as_millis()).unwrap_or(u64::MAX));
        put_line(&Answer::Watch { version: env!("CARGO_PKG_VERSION").to_owned(), ran_ms, before }, out);
    }

    /// Writes the answer to an action.
    pub fn answer(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        put_line(answer, out);
        self.is_over = true;
    }

    /// Writes the last line to a client that broke the rules, or that cannot be served.
    pub fn fail(&mut self, notice: &Notice, out: &mut Vec<u8>) {
        response::refuse(notice, out);
        (self.is_over, self.has_failed) = (true, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::end::{End, How};
    use crate::core::entry::SecretEcho;
    use rexec_sh::protocol::process::Exit;
    use serde_json::Value;
    use std::time::Duration;

    #[test]
    fn a_client_that_has_pinged_is_known_for_the_next_request() {
        for (first, has_pinged) in [("{\"action\":\"ping\"}\n", true), ("{\"action\":\"list\"}\n", false)] {
            let (mut jsonl, mut out) = (Jsonl::new(&Budget::new(1 << 20, 0)), Vec::new());
            let asked = jsonl.take(&mut first.as_bytes().to_vec(), &mut out).unwrap();
            if asked.is_some() {
                jsonl.answer(&Answer::Pong { version: String::new(), pid: 1 }, &mut out);
            }
            assert!(jsonl.go_on());
            assert_eq!(jsonl.has_pinged(), has_pinged, "{first}");
        }
    }

    fn take(lines: &str) -> (Result<Option<PeerRequest>, Notice>, String) {
        let (mut jsonl, mut out) = (Jsonl::new(&Budget::new(1 << 20, 0)), Vec::new());
        let asked = jsonl.take(&mut lines.as_bytes().to_vec(), &mut out);
        (asked, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_ping_is_answered_and_nonsense_is_named() {
        let (asked, out) = take("{\"action\":\"ping\"}\n");
        assert!(matches!(asked, Ok(None)) && out.starts_with("{\"result\":\"pong\",\"version\":\""), "{out}");
        for (line, words) in [
            ("{\"action\":\"dance\"}\n", "unknown variant `dance`"),
            ("{\"action\":\"list\",\"colour\":1}\n", "unknown field `colour`"),
            ("{\"action\":\"ping\",\"colour\":1}\n", "unknown field `colour`"),
            ("{\"whoami\":\"a\",\"dir\":\"/\",\"exec\":[\"a\"],\"sandbox\":true}\n", "unknown field `sandbox`"),
            ("{\"whoami\":\"a\",\"dir\":\"/\",\"exec\":[\"a\"],\"timeout\":-1}\n", "timeout"),
            (
                "{\"whoami\":\"a\",\"dir\":\"/\",\"exec\":[\"a\"],\"timeout\":\"1\"}\n",
                "not a valid request: invalid type",
            ),
            ("{\"action\":\n", "not a valid request"),
            ("{\"action\":\"abort\"}\n", "after a request"),
            ("{\"action\":\"kill\"}\n", "missing field `seq`"),
            ("{\"action\":\"kill\",\"seq\":-1}\n", "not a valid action"),
            ("{\"whoami\":\"a\",\"dir\":\"/\",\"exec\":[]}\n", "exec is empty"),
            ("{\"whoami\":\"a\",\"dir\":\"/\",\"exec\":[\"a\"],\"envs\":{\"A=B\":\"c\"}}\n", "envs"),
        ] {
            assert!(take(line).0.unwrap_err().problem.contains(words), "{line}");
        }
        assert!(matches!(take("{\"whoami\":").0, Ok(None)));
    }

    #[test]
    fn a_request_becomes_one_line_of_clean_output() {
        let (mut jsonl, mut out) = (Jsonl::new(&Budget::new(1 << 20, 0)), Vec::new());
        let line = b"{\"whoami\":\"Me\",\"dir\":\"/tmp\",\"exec\":[\"ls\"]}\n";
        assert!(matches!(jsonl.take(&mut line.to_vec(), &mut out), Ok(Some(PeerRequest::RunWords(_)))));
        let entry = Entry::Output {
            stream: Stream::Tty,
            bytes: b"\x1b[1mfoo\x1b[0m\r\n".as_slice().into(),
            at: Duration::ZERO,
            echo: SecretEcho::No,
        };
        jsonl.accept(&Item::Entry(&entry), &mut out);
        let end = Entry::Ended(End {
            how: How::Exited(Exit::Code(1)),
            by: None,
            queued: Duration::ZERO,
            took: Duration::ZERO,
        });
        jsonl.accept(&Item::Entry(&end), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"exit\":1,\"output\":\"foo\\n\"}\n");
        assert!(jsonl.is_over());
    }

    #[test]
    fn answers_hold_no_more_together_than_they_may() {
        let budget = Budget::new(1_000, 100);
        let end = Entry::Ended(End {
            how: How::Exited(Exit::Code(0)),
            by: None,
            queued: Duration::ZERO,
            took: Duration::ZERO,
        });
        let mut held = Vec::new();
        for (byte, expected, omitted) in
            [(b'x', 1_100, 1_900), (b'y', 100, 2_900), (b'"', 50, 2_950), (b'\n', 50, 2_950), (0xff, 33, 8_901)]
        {
            let (mut jsonl, mut out) = (Jsonl::new(&budget), Vec::new());
            for _ in 0..30 {
                let entry = Entry::Output {
                    stream: Stream::Out,
                    bytes: [byte; 100].as_slice().into(),
                    at: Duration::ZERO,
                    echo: SecretEcho::No,
                };
                jsonl.accept(&Item::Entry(&entry), &mut out);
            }
            jsonl.accept(&Item::Entry(&end), &mut out);
            let answer: Value = serde_json::from_slice(&out).unwrap();
            let length = answer["output"].as_str().unwrap().chars().count();
            assert_eq!((length, answer["output_omitted"].as_u64()), (expected, Some(omitted)), "{byte}");
            held.push(jsonl);
        }
        drop(held);
        assert_eq!(budget.share().room(), 1_100);
    }
}
