//! A client of these tests.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::host::Host;

/// A hang guard: on a busy machine, a start may take seconds.
const HANG: Duration = Duration::from_secs(60);

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    reader: BufReader<UnixStream>,
    sent: u64,
    answers: BTreeMap<u64, Value>,
    notes: VecDeque<Value>,
}

impl Client {
    pub(crate) fn new(host: &Host) -> Self {
        let stream = UnixStream::connect(host.socket()).expect("a host");
        stream.set_read_timeout(Some(HANG)).expect("a socket");
        let reader = BufReader::new(stream.try_clone().expect("a socket"));
        Self { stream, reader, sent: 0, answers: BTreeMap::new(), notes: VecDeque::new() }
    }

    /// Sends a line as it is.
    pub(crate) fn say(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).expect("it takes a line");
    }

    /// The next line; `None` at the end of the connection.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("nothing comes: {error}"),
        }
    }

    /// The bytes that follow a line.
    pub(crate) fn bytes(&mut self, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(length).expect("a length")];
        self.reader.read_exact(&mut bytes).expect("they follow");
        bytes
    }

    /// Sends a request.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.sent += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params});
        self.say(&line.to_string());
        self.sent
    }

    /// The whole answer to a request.
    pub(crate) fn reply(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            self.sort_next();
        }
    }

    fn sort_next(&mut self) {
        let line = self.hear().expect("the connection stays");
        self.keep(line);
    }

    /// Keeps a line for later.
    pub(crate) fn keep(&mut self, line: Value) {
        match line["id"].as_u64() {
            Some(id) => _ = self.answers.insert(id, line),
            None => self.notes.push_back(line),
        }
    }

    /// The result of a request that succeeds.
    pub(crate) fn result(&mut self, id: u64) -> Value {
        let mut answer = self.reply(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Sends a request that succeeds; returns its result.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.result(id)
    }

    /// Sends a request that fails; returns the code and the sentence.
    pub(crate) fn error(&mut self, method: &str, params: &Value) -> (i64, String) {
        let id = self.ask(method, params);
        let answer = self.reply(id);
        let error = &answer["error"];
        let sentence = error["message"].as_str().unwrap_or_default().to_owned();
        (error["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}")), sentence)
    }

    /// Starts a command; returns its number.
    pub(crate) fn start(&mut self, params: &Value) -> u64 {
        self.call("exec.start", params)["run"].as_u64().expect("a number")
    }

    /// The parameters of the next notification of this kind. Others are kept.
    pub(crate) fn note(&mut self, method: &str, run: u64) -> Value {
        self.next_note(|note| note["method"] == method && note["params"]["run"] == run)
    }

    /// The parameters of the next `events.cursor`. Others are kept.
    pub(crate) fn cursor(&mut self) -> Value {
        self.next_note(|note| note["method"] == "events.cursor")
    }

    fn next_note(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(at) = self.notes.iter().position(&is_it) {
                return self.notes.remove(at).expect("it is there")["params"].take();
            }
            self.sort_next();
        }
    }

    /// The notifications about a run until it is closed, in their order.
    pub(crate) fn story(&mut self, run: u64) -> Vec<Value> {
        let closed = self.note("exec.closed", run);
        let mut story = self.told(run);
        story.push(json!({"method": "exec.closed", "params": closed}));
        story
    }

    /// The notifications about a run that have come.
    pub(crate) fn told(&mut self, run: u64) -> Vec<Value> {
        let mut story: Vec<Value> = Vec::new();
        self.notes.retain(|note| {
            let is_its = note["params"]["run"] == run;
            if is_its {
                story.push(note.clone());
            }
            !is_its
        });
        story
    }
}

/// The text of the output in a story, if its numbers have no gap.
pub(crate) fn text_of(story: &[Value]) -> String {
    let chunks: Vec<&Value> = story.iter().filter(|note| note["method"] == "exec.output").collect();
    for (at, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["params"]["seq"], at + 1, "no gap: {chunk}");
    }
    chunks.iter().map(|chunk| chunk["params"]["text"].as_str().expect("a text")).collect()
}
