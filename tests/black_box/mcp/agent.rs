//! An agent that speaks the Model Context Protocol with `rexec mcp`.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};

use crate::support::host::{Host, environment};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::reader::Reader;
use crate::support::waiting::{self, PATIENCE};

/// A call takes up to 50 s by itself.
pub(super) const CALL_PATIENCE: std::time::Duration = std::time::Duration::from_secs(90);

/// What a tool has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolResult {
    pub(super) text: String,
    pub(super) is_error: bool,
}

pub(super) struct Agent {
    pub(super) child: Child,
    input: Option<ChildStdin>,
    output: Reader,
    last_id: u64,
}

impl Agent {
    /// Starts the server for this host, and shakes hands.
    pub(super) fn of(host: &Host) -> Self {
        let mut agent = Self::at(host.home.path(), &["mcp"]);
        agent.shake_hands("claude-code");
        agent
    }

    /// Starts the server for the host of this directory, if there is one.
    pub(super) fn at(home: &Path, args: &[&str]) -> Self {
        let mut command = programs::command(programs::rexec());
        command.args(args).current_dir(home).env_clear();
        for entry in environment(home) {
            let entry = String::from_utf8(entry).expect("text");
            let (name, value) = entry.split_once('=').expect("a variable");
            command.env(name, value);
        }
        Self::start(command)
    }

    pub(super) fn start(mut command: Command) -> Self {
        crate::support::warden::keep_descriptors_to_ourselves();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("rexec can be started");
        let input = child.stdin.take();
        let output = Reader::new(child.stdout.take().expect("a pipe").into(), usize::MAX);
        Self { child, input, output, last_id: 0 }
    }

    pub(super) fn shake_hands(&mut self, name: &str) {
        let info = json!({"name": name, "version": "1"});
        let id =
            self.ask("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}));
        assert_eq!(self.answer(id)["result"]["protocolVersion"], "2025-11-25");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(super) fn say(&mut self, message: &Value) {
        self.say_line(&message.to_string());
    }

    pub(super) fn say_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{line}").expect("the server reads");
    }

    /// Sends a request; returns its id.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    /// Everything that the server has said.
    pub(super) fn said(&self) -> Vec<Value> {
        let bytes = self.output.so_far();
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).expect("a line is JSON")).collect()
    }

    /// Waits until the server has said something of this kind.
    pub(super) fn wait_for(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let found = waiting::until(CALL_PATIENCE, || self.said().into_iter().find(&is_it));
        found.unwrap_or_else(|| panic!("no {what} among {:#?}", self.said()))
    }

    pub(super) fn answer(&self, id: u64) -> Value {
        self.wait_for(&format!("answer to {id}"), |message| message["id"] == id)
    }

    pub(super) fn has_answered(&self, id: u64) -> bool {
        self.said().iter().any(|message| message["id"] == id)
    }

    /// Begins a call of a tool.
    pub(super) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Begins a call whose progress is told under a token of this name.
    pub(super) fn begin_with_progress(&mut self, tool: &str, arguments: &Value, token: &str) -> u64 {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        self.ask("tools/call", &params)
    }

    pub(super) fn result(&self, id: u64) -> ToolResult {
        let answer = self.answer(id);
        let result = &answer["result"];
        let content = result["content"].as_array().unwrap_or_else(|| panic!("no result: {answer}"));
        assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{answer}");
        let text = content[0]["text"].as_str().expect("text").to_owned();
        assert!(text.ends_with('\n'), "{text:?}");
        ToolResult { text, is_error: result["isError"].as_bool().expect("a flag") }
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> ToolResult {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    /// Runs a command that must succeed; returns what it prints.
    pub(super) fn run(&mut self, command: &str) -> String {
        let result = self.call("exec", &json!({"command": command}));
        assert!(!result.is_error, "{}", result.text);
        result.text.strip_suffix("[exit 0]\n").expect("its end is told").to_owned()
    }

    pub(super) fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id, "reason": "a test"});
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    /// The agent closes its side; returns the server's exit code.
    pub(super) fn leave(mut self) -> Option<i32> {
        self.input = None;
        self.exit_code()
    }

    pub(super) fn exit_code(&mut self) -> Option<i32> {
        let status = waiting::until(PATIENCE, || self.child.try_wait().expect("a child")).expect("it ends");
        status.code()
    }

    pub(super) fn process(&self) -> Process {
        Process::of(i32::try_from(self.child.id()).expect("a pid")).expect("it runs")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The number of the run that a result names.
pub(super) fn run_in(text: &str) -> u64 {
    let (_, rest) = text.split_once("run ").unwrap_or_else(|| panic!("no run in {text:?}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
}
