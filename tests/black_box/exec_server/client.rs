//! A client of `rexec exec-server`, as Codex is one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::programs;
use crate::support::waiting::PATIENCE;

pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Tells the reader to begin.
    gate: Sender<()>,
    last: u64,
    /// Notifications that came while an answer was awaited.
    early: Vec<Value>,
}

impl Client {
    pub(super) fn start(socket: &Path, args: &[&str]) -> Self {
        let client = Self::with(socket, args);
        client.read_on();
        client
    }

    /// A client that does not read until [`Client::read_on`].
    pub(super) fn paused(socket: &Path) -> Self {
        Self::with(socket, &[])
    }

    pub(super) fn read_on(&self) {
        self.gate.send(()).expect("its thread waits");
    }

    fn with(socket: &Path, args: &[&str]) -> Self {
        let mut command = programs::command(programs::rexec());
        command.arg("exec-server").args(args).env_clear().env("PATH", programs::PATH);
        command.envs([("OWN", "own"), ("MY_TOKEN", "secret"), ("SHELL", "/bin/bash")]).env("REXEC_SOCKET", socket);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let ((told, lines), (gate, opened)) = (channel(), channel());
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            opened.recv().ok()?;
            output.lines().map_while(Result::ok).try_for_each(|line| told.send(line)).ok()
        });
        Self { input: child.stdin.take(), child, lines, gate, last: 100_000, early: Vec::new() }
    }

    /// A client that has shaken hands.
    pub(super) fn greeted(socket: &Path) -> Self {
        let mut client = Self::start(socket, &[]);
        let greeting = client.ask("initialize", &json!({"clientName": "codex-environment", "resumeSessionId": null}));
        assert_eq!(greeting["environmentInfo"]["shell"], json!({"name": "bash", "path": "/bin/bash"}));
        assert!(greeting["sessionId"].is_string());
        client.raw(r#"{"method":"initialized","params":{}}"#);
        client
    }

    pub(super) fn raw(&mut self, line: &str) {
        writeln!(self.input.as_ref().expect("it is open"), "{line}").expect("it is read");
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.input.as_ref().expect("it is open").write_all(bytes).expect("it is read");
    }

    pub(super) fn line(&mut self) -> Option<String> {
        self.lines.recv_timeout(PATIENCE).ok()
    }

    pub(super) fn is_silent(&mut self, time: Duration) -> bool {
        self.lines.recv_timeout(time).is_err()
    }

    pub(super) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.raw(&json!({"id": self.last, "method": method, "params": params}).to_string());
        self.last
    }

    fn answer(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        loop {
            let line: Value = serde_json::from_str(&self.line().expect("an answer")).expect("a line of JSON");
            if line["id"] == id {
                return line;
            }
            if line["method"].is_string() {
                self.early.push(line);
            }
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(super) fn refusal(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer["result"].is_null(), "{method}: {answer}");
        answer["error"].take()
    }

    /// The next notification.
    fn notification(&mut self) -> Value {
        if !self.early.is_empty() {
            return self.early.remove(0);
        }
        loop {
            let line: Value = serde_json::from_str(&self.line().expect("a notification")).expect("a line of JSON");
            if line["method"].is_string() {
                return line;
            }
            assert!(line["error"].is_null(), "{line}");
        }
    }

    /// The first notification that is like this.
    pub(super) fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.notification();
            if is_it(&line) {
                return line;
            }
        }
    }

    /// All notifications of a process.
    pub(super) fn until_closed(&mut self, process: &str) -> Vec<Value> {
        let mut told = Vec::new();
        loop {
            let line = self.notification();
            if line["params"]["processId"] == process {
                let is_last = line["method"] == "process/closed";
                told.push(line);
                if is_last {
                    return told;
                }
            }
        }
    }

    pub(super) fn run(&mut self, process: &str, script: &str, more: &Value) -> Vec<Value> {
        self.send("process/start", &start(process, script, more));
        self.until_closed(process)
    }

    /// Closes its input; returns the exit code.
    pub(super) fn close(&mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().expect("it ends").code()
    }

    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let code = self.close();
        assert!(std::thread::panicking() || code == Some(0), "it ends with {code:?}");
    }
}

/// The parameters with which Codex starts a command.
pub(super) fn start(process: &str, script: &str, more: &Value) -> Value {
    let mut params = json!({
        "processId": process, "argv": ["/bin/bash", "-c", script], "cwd": "file:///tmp",
        "metadata": {"threadId": "thread-1", "toolCallId": "call-1"},
        "envPolicy": {"inherit": "all", "ignoreDefaultExcludes": true, "exclude": [], "set": {}, "includeOnly": []},
        "env": {"CODEX_CI": "1"}, "tty": false, "pipeStdin": false, "arg0": null, "sandbox": null,
        "enforceManagedNetwork": false, "managedNetwork": null,
    });
    for (name, value) in more.as_object().expect("an object") {
        params[name] = value.clone();
    }
    params
}

pub(super) fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

pub(super) fn encoded(text: &str) -> String {
    rexec_host::text::encode::base64(text.as_bytes())
}

/// What these notifications have of a stream.
pub(super) fn text(told: &[Value], stream: &str) -> String {
    let of_stream = told.iter().filter(|line| line["params"]["stream"] == stream);
    let chunks = of_stream.map(|line| line["params"]["chunk"].as_str().expect("a chunk"));
    let bytes: Vec<u8> =
        chunks.flat_map(|chunk| rexec_host::text::encode::from_base64(chunk).expect("base64")).collect();
    String::from_utf8(bytes).expect("text")
}

/// The exit code among these notifications.
pub(super) fn exit(told: &[Value]) -> i64 {
    let exited = told.iter().find(|line| line["method"] == "process/exited").expect("an exit");
    exited["params"]["exitCode"].as_i64().expect("a code")
}
