//! The JSONL language: one request per connection, lines in, one line out. For the `rexec` command and for programs
//! that speak JSON; its commands get the host's environment plus `envs`. Answers about other commands: [`super::answer`].
//!
//! ```text
//! {"action":"ping"}                                            ▶ {"result":"pong","version":"…","pid":…}
//! {"whoami":"Me","dir":"/p","exec":["ls"],"envs":{},"stdin":"…"} ▶ {"exit":0,"output":"…"}
//!                                    besides: "timeout":1.5 (seconds), "clear_env":true; nothing else is taken
//! {"action":"abort"}                                           (after a request; closing the connection is the same)
//! ```

use std::collections::BTreeMap;
use std::fmt::Display;

use rexec_sh::protocol::exit_code::{NOT_FOUND, OWN_FAILURE, TIMED_OUT};
use rexec_sh::protocol::notice::Notice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PeerRequest;
use super::answer::Answer;
use super::budget::{Budget, Share};
use crate::core::entry::{Entry, Outcome, Reason};
use crate::core::log::Item;
use crate::limits;
use crate::text::sanitize::{Mode, Sanitizer};

/// A command as words, to be run with the host's environment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// Who asks.
    pub whoami: String,
    /// The working directory.
    pub dir: String,
    /// Variables added to the host's environment.
    #[serde(default)]
    pub envs: BTreeMap<String, String>,
    /// Program, found by PATH, and arguments.
    pub exec: Vec<String>,
    /// The command's standard input; without it, it is /dev/null.
    #[serde(default)]
    pub stdin: Option<String>,
    /// The command gets nothing of the host's environment, only `envs`.
    #[serde(default)]
    pub clear_env: bool,
    /// The command is ended after this time, seconds; 0 is none.
    #[serde(default)]
    pub timeout: f64,
}

/// What is asked besides a command.
#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
enum Action {
    Ping {},
    Abort {},
    List {},
    Kill { seq: u64 },
}

#[derive(Serialize)]
struct Response<'a> {
    exit: u8,
    output: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    output_omitted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One JSONL connection.
#[derive(Debug)]
pub struct Jsonl {
    sanitizer: Sanitizer,
    output: Vec<u8>,
    /// What this connection holds of the output of all.
    share: Share,
    omitted: u64,
    has_asked: bool,
    is_over: bool,
}

impl Jsonl {
    /// A connection that has said nothing yet.
    #[must_use]
    pub fn new(outputs: &Budget) -> Self {
        Self {
            share: outputs.share(),
            sanitizer: Sanitizer::new(Mode::Strip),
            output: Vec::new(),
            omitted: 0,
            has_asked: false,
            is_over: false,
        }
    }

    /// Whether it has asked for a command.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// Whether everything was said.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes whole lines off the front of `inbox`; gives the next thing asked, if there is one.
    ///
    /// # Errors
    /// A line that is too long, no JSON, or no request.
    pub fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        while let Some(end) = memchr::memchr(b'\n', inbox) {
            let line: Vec<u8> = inbox.drain(..=end).collect();
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(asked) = self.line(&line, out)? {
                return Ok(Some(asked));
            }
        }
        if inbox.len() > limits::JSON_LINE_BYTES_MAX {
            return Err(violation(format_args!("a line of over {} bytes", limits::JSON_LINE_BYTES_MAX)));
        }
        Ok(None)
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        let no_json = |error: serde_json::Error| violation(format_args!("no request: {error}"));
        let mut value: Value = serde_json::from_slice(line).map_err(no_json)?;
        if value.get("action").is_some_and(|action| !action.is_null()) {
            let action = Action::deserialize(value).map_err(|error| violation(format_args!("no action: {error}")))?;
            return self.act(&action, out);
        }
        // Said to be none.
        value.as_object_mut().and_then(|fields| fields.remove("action"));
        if self.has_asked {
            return Err(violation("a second request on one connection"));
        }
        let request = CommandRequest::deserialize(value).map_err(no_json)?;
        check(&request)?;
        self.has_asked = true;
        Ok(Some(PeerRequest::RunWords(Box::new(request))))
    }

    fn act(&mut self, action: &Action, out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        match action {
            Action::Ping {} => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                self.answer(&Answer::Pong { version, pid: std::process::id() }, out);
                Ok(None)
            }
            Action::Abort {} if self.has_asked => Ok(Some(PeerRequest::Abort)),
            Action::Abort {} => Err(violation("the action abort comes after a request")),
            Action::List {} | Action::Kill { .. } if self.has_asked => {
                Err(violation("an action about other commands on a connection that has one"))
            }
            Action::List {} => Ok(Some(PeerRequest::List)),
            Action::Kill { seq } => {
                self.has_asked = true;
                Ok(Some(PeerRequest::Kill(*seq)))
            }
        }
    }

    /// Takes one item of the job's log; the response is made of all of them.
    pub fn accept(&mut self, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Entry(Entry::Output { bytes, .. }) => {
                let mut taken = 0;
                while taken < bytes.len() {
                    taken += self.output(&bytes[taken..]);
                }
            }
            Item::Entry(Entry::Closed { outcome, .. }) => self.close(outcome, out),
            Item::Entry(_) | Item::Missed { .. } => {}
        }
    }

    /// Takes output of the command, from the front of these bytes on; tells how many.
    pub fn output(&mut self, bytes: &[u8]) -> usize {
        let piece = &bytes[..bytes.len().min(limits::FILTERED_PIECE_BYTES)];
        let before = self.output.len();
        self.sanitizer.push(piece, &mut self.output);
        self.bound(before);
        piece.len()
    }

    /// One line holds the whole output, so there has to be an end to it; and once something is left out, nothing follows.
    fn bound(&mut self, before: usize) {
        let most = if self.omitted > 0 { before } else { limits::JSON_OUTPUT_BYTES_MAX.min(self.share.room()) };
        self.cut(most);
        self.share.hold(self.output.len());
    }

    fn cut(&mut self, most: usize) {
        if let Some(beyond) = self.output.len().checked_sub(most) {
            self.omitted += u64::try_from(beyond).expect("a length fits 64 bits");
            self.output.truncate(most);
        }
    }

    fn close(&mut self, outcome: &Outcome, out: &mut Vec<u8>) {
        let (before, start) = (self.output.len(), out.len());
        self.sanitizer.finish(&mut self.output);
        self.bound(before);
        self.cut(prefix_within(&self.output, self.share.room()));
        let (exit, error, message) = match outcome {
            Outcome::Ended { stopped: Some(Reason::TimedOut), .. } => (TIMED_OUT, Some("timeout"), None),
            Outcome::Ended { exit, stopped } => (exit.code(), stopped.map(Reason::word), None),
            Outcome::NotStarted(why) => {
                let error = if why.code == NOT_FOUND { "not_found" } else { "spawn_failed" };
                (NOT_FOUND, Some(error), Some(Notice::from(why.as_ref()).to_string()))
            }
            Outcome::NeverRun(_) => (OWN_FAILURE, Some("aborted"), None),
            Outcome::Lost { .. } => (OWN_FAILURE, Some("lost"), None),
        };
        let output = String::from_utf8_lossy(&self.output);
        let (message, output_omitted) = (message.as_deref(), self.omitted);
        put_line(&Response { exit, output: &output, error, message, output_omitted }, out);
        drop(output);
        self.output = Vec::new();
        self.share.hold(out.len() - start);
        self.is_over = true;
    }

    /// The one answer to an action.
    pub fn answer(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        put_line(answer, out);
        self.is_over = true;
    }

    /// The last word to a peer that broke the rules, or that cannot be served.
    pub fn fail(&mut self, notice: &Notice, out: &mut Vec<u8>) {
        let (exit, message) = (notice.code, notice.to_string());
        let (output, error, message) = ("", Some("refused"), Some(message.as_str()));
        put_line(&Response { exit, output, error, message, output_omitted: 0 }, out);
        self.is_over = true;
    }
}

/// How much of an output takes no more than this many bytes in JSON.
fn prefix_within(output: &[u8], most: usize) -> usize {
    // A byte takes six at most.
    if output.len() <= most / 6 {
        return output.len();
    }
    let (mut taken, mut prefix) = (0, 0);
    for chunk in output.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            taken += match byte {
                b'"' | b'\\' | b'\n' | b'\t' => 2,
                0..b' ' => 6,
                _ => 1,
            };
            if taken > most {
                return prefix;
            }
            prefix += 1;
        }
        if !chunk.invalid().is_empty() {
            taken += char::REPLACEMENT_CHARACTER.len_utf8();
            if taken > most {
                return prefix;
            }
            prefix += chunk.invalid().len();
        }
    }
    prefix
}

fn put_line(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, value).expect("these types always serialize into memory");
    out.push(b'\n');
}

fn violation(problem: impl Display) -> Notice {
    Notice::new(OWN_FAILURE, problem, "send one line of JSON with whoami, dir and exec, or an action")
}

fn check(request: &CommandRequest) -> Result<(), Notice> {
    let has_nul = |text: &String| text.contains('\0');
    if request.exec.first().is_none_or(String::is_empty) {
        return Err(violation("no request: exec is empty"));
    }
    if request.exec.iter().any(has_nul) || has_nul(&request.dir) {
        return Err(violation("no request: a NUL in exec or dir"));
    }
    let is_bad =
        |(name, value): (&String, &String)| name.is_empty() || name.contains('=') || has_nul(name) || has_nul(value);
    if !(0.0..=limits::TIMEOUT_MAX.as_secs_f64()).contains(&request.timeout) {
        let most = limits::TIMEOUT_MAX.as_secs();
        return Err(violation(format_args!("no request: timeout is no number of seconds from 0 to {most}")));
    }
    if request.envs.iter().any(is_bad) {
        return Err(violation("no request: envs holds a name or value that no environment can hold"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::entry::{Exit, Stream};
    use std::time::Duration;

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
            ("{\"whoami\":\"a\",\"dir\":\"/\",\"exec\":[\"a\"],\"timeout\":\"1\"}\n", "no request: invalid type"),
            ("{\"action\":\n", "no request"),
            ("{\"action\":\"abort\"}\n", "after a request"),
            ("{\"action\":\"kill\"}\n", "missing field `seq`"),
            ("{\"action\":\"kill\",\"seq\":-1}\n", "no action"),
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
        let entry = Entry::Output { stream: Stream::Tty, bytes: b"\x1b[1mfoo\x1b[0m\r\n".as_slice().into() };
        jsonl.accept(&Item::Entry(&entry), &mut out);
        let end =
            Entry::Closed { outcome: Outcome::Ended { exit: Exit::Code(1), stopped: None }, took: Duration::ZERO };
        jsonl.accept(&Item::Entry(&end), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"exit\":1,\"output\":\"foo\\n\"}\n");
        assert!(jsonl.is_over());
    }

    #[test]
    fn answers_hold_no_more_together_than_they_may() {
        let budget = Budget::new(1_000, 100);
        let end =
            Entry::Closed { outcome: Outcome::Ended { exit: Exit::Code(0), stopped: None }, took: Duration::ZERO };
        let mut held = Vec::new();
        for (byte, expected, omitted) in
            [(b'x', 1_100, 1_900), (b'y', 100, 2_900), (b'"', 50, 2_950), (b'\n', 50, 2_950), (0xff, 33, 8_901)]
        {
            let (mut jsonl, mut out) = (Jsonl::new(&budget), Vec::new());
            for _ in 0..30 {
                let entry = Entry::Output { stream: Stream::Out, bytes: [byte; 100].as_slice().into() };
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
