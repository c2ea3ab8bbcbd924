//! The Model Context Protocol: the tool calls of an agent become requests to the host. [`McpServer`] is the side that the
//! agent sees; it takes the lines of the agent and of the host, and the time, and makes the bytes for both.
//!
//! Invariants: a request gets one answer, and none once the client has cancelled it; a tool call has its result within
//! [`limits::MCP_CALL`], whatever the host does; no client or host can make this grow without bound, because its
//! owner reads on only while little waits in [`McpServer::to_client`] and [`McpServer::to_host`].
//!
//! `message` reads the client's lines, `revision` knows the revisions of the protocol, `tools` and `arguments` the
//! tools, `call` has the calls that wait, and `host_side` asks the host and takes its answers.

mod arguments;
mod call;
mod excerpt;
mod host_side;
mod message;
mod revision;
#[cfg(test)]
mod tests;
mod tools;
mod wording;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::json_line::put_line;
use crate::limits;
use crate::text::name::name_of;
use arguments::ToolCall;
use call::{KnownRun, PendingCall, Work};
use host_side::HostSide;
use message::{ClientMessage, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, ProtocolError};
use revision::Era;

/// The name of this server's commands, and their place.
#[derive(Debug, Clone)]
pub struct McpIdentity {
    /// The caller's name; without it, the client's own name for itself.
    pub whoami: Option<String>,
    /// Tells this agent's session from its others.
    pub session: String,
    /// The default directory of commands, absolute.
    pub dir: String,
}

/// The server's side of one connection.
#[derive(Debug)]
pub struct McpServer {
    identity: McpIdentity,
    /// The client's name for itself.
    client: String,
    /// The revision that the handshake has settled.
    revision: &'static str,
    host: HostSide,
    calls: BTreeMap<u64, PendingCall>,
    last_call: u64,
    runs: BTreeMap<u64, KnownRun>,
    /// Runs of an earlier host; their numbers may mean other runs now.
    former_runs: BTreeSet<u64>,
    to_client: Vec<u8>,
}

/// Beginnings of clients' own names, and the agents' names elsewhere.
const AGENTS: [(&str, &str); 10] = [
    ("claude-code", "Claude Code"),
    ("codex", "Codex"),
    ("gemini-cli", "Gemini CLI"),
    ("opencode", "opencode"),
    ("qwen", "Qwen Code"),
    ("cline", "Cline"),
    ("continue", "Continue"),
    ("crush", "Crush"),
    ("goose", "Goose"),
    ("github-copilot", "Copilot CLI"),
];

impl McpServer {
    #[must_use]
    pub fn new(identity: McpIdentity) -> Self {
        Self {
            identity,
            client: String::new(),
            revision: "",
            host: HostSide::default(),
            calls: BTreeMap::new(),
            last_call: 0,
            runs: BTreeMap::new(),
            former_runs: BTreeSet::new(),
            to_client: Vec::new(),
        }
    }

    /// The bytes for the client. The caller removes the sent ones from the front.
    pub fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.to_client
    }

    /// The bytes for the host, likewise.
    pub fn to_host(&mut self) -> &mut Vec<u8> {
        self.host.out()
    }

    /// The time of the next call of [`McpServer::tick`], if nothing comes before.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.calls.values().map(PendingCall::deadline).min()
    }

    /// Returns true if calls wait for their results.
    #[must_use]
    pub fn owes_answers(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Ends all calls with the result that they have none, because the client asks for nothing more and does not wait
    /// longer.
    pub fn client_is_gone(&mut self) {
        let problem = "standard input was closed before the call had a result; what it runs is ended";
        let text = wording::problem(problem, "keep standard input open until the results have come");
        for key in self.calls.keys().copied().collect::<Vec<_>>() {
            self.finish(key, &text, true);
        }
    }

    /// Takes a line of the client.
    pub fn client_line(&mut self, line: &[u8], now: Instant) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match ClientMessage::read(line) {
            ClientMessage::Batch(messages)
                if revision::has_batches(self.revision) && messages.len() <= limits::MCP_BATCH_MAX =>
            {
                // Each gets an answer of its own, because the calls among them take their time.
                messages.into_iter().for_each(|message| self.message(ClientMessage::of(message), now));
            }
            ClientMessage::Batch(_) => {
                let error = ProtocolError::new(INVALID_REQUEST, "a line has one message");
                self.refuse(&Value::Null, error);
            }
            message => self.message(message, now),
        }
    }

    /// Reports that a line of the client is longer than [`limits::MCP_LINE_BYTES_MAX`], and was not kept.
    pub fn client_line_too_long(&mut self) {
        let what = format!("a line has over {} bytes", limits::MCP_LINE_BYTES_MAX);
        self.refuse(&Value::Null, ProtocolError::new(INVALID_REQUEST, what));
    }

    fn message(&mut self, message: ClientMessage, now: Instant) {
        match message {
            ClientMessage::Request { id, method, params } => {
                if let Err(error) = self.request(&id, &method, params, now) {
                    self.refuse(&id, error);
                }
            }
            ClientMessage::Notification { method, params } => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId")
                {
                    self.cancel(id);
                }
            }
            ClientMessage::Answer => {}
            ClientMessage::Batch(_) => {
                self.refuse(&Value::Null, ProtocolError::new(INVALID_REQUEST, "a batch in a batch"));
            }
            ClientMessage::Wrong(id, error) => self.refuse(&id, error),
        }
    }

    fn request(
        &mut self,
        id: &Value,
        method: &str,
        params: Map<String, Value>,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        if method == "initialize" {
            if let Some(name) = params.get("clientInfo").and_then(|info| info.get("name")).and_then(Value::as_str) {
                self.client = called(name);
            }
            let (result, revision) = revision::initialize(&params);
            self.revision = revision;
            self.send(&Era::Handshake.answer(id, result));
            return Ok(());
        }
        let era = Era::of(&params)?;
        let result = match method {
            "server/discover" => revision::discover(),
            "tools/list" => revision::tool_list(era),
            // The stateless revision has none.
            "ping" if era == Era::Handshake => json!({}),
            "tools/call" => return self.tool_call(id, era, params, now),
            _ => {
                let what = format!("there is no method {}", name_of(method, limits::WHOAMI_COLUMNS));
                return Err(ProtocolError::new(METHOD_NOT_FOUND, what));
            }
        };
        let era = if method == "server/discover" { Era::Stateless } else { era };
        self.send(&era.answer(id, result));
        Ok(())
    }

    fn tool_call(
        &mut self,
        id: &Value,
        era: Era,
        mut params: Map<String, Value>,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        let invalid = |what: &str| Err(ProtocolError::new(INVALID_PARAMS, what));
        let Some(Value::String(tool)) = params.remove("name") else { return invalid("a call has the name of a tool") };
        let arguments = match params.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return invalid("arguments is a JSON object"),
        };
        let Some(read) = ToolCall::read(&tool, arguments, &self.identity.dir) else {
            return invalid(&format!("there is no tool {}", name_of(&tool, limits::WHOAMI_COLUMNS)));
        };
        let mut call = match read {
            Ok(call) if self.calls.len() < limits::MCP_CALLS_MAX => call,
            Ok(_) => {
                let problem = wording::problem("too many calls wait for their results", "wait for some of them");
                self.result(id, era, &problem, true);
                return Ok(());
            }
            Err(sentence) => {
                self.result(id, era, &wording::problem(&sentence, ""), true);
                return Ok(());
            }
        };
        let caller = match &mut call {
            ToolCall::Exec(exec) => Some((&mut exec.whoami, &mut exec.caller_session)),
            ToolCall::Undo(undo) => Some((&mut undo.whoami, &mut undo.caller_session)),
            _ => None,
        };
        if let Some((whoami, session)) = caller {
            *whoami = Some(self.whoami(&params));
            *session = Some(self.identity.session.clone());
        }
        self.last_call += 1;
        self.calls.insert(self.last_call, PendingCall::new(id.clone(), era, &params, call, now));
        self.begin(self.last_call, now);
        Ok(())
    }

    /// The caller's name for a request's command.
    fn whoami(&self, params: &Map<String, Value>) -> String {
        let named = || revision::client_of(params).map(called).unwrap_or_else(|| self.client.clone());
        match self.identity.whoami.clone().unwrap_or_else(named) {
            name if name.is_empty() => "mcp".to_owned(),
            name => name,
        }
    }

    /// Cancels a request: it gets no answer, and its command ends.
    fn cancel(&mut self, id: &Value) {
        let cancelled: Vec<u64> = self.calls.iter().filter(|(_, call)| call.id == *id).map(|(key, _)| *key).collect();
        for key in cancelled {
            // A run without a number yet is ended once the host gives its number.
            if let Some(PendingCall { work: Work::Follow { run, .. }, .. }) = self.calls.remove(&key) {
                self.unfollow(run);
                self.host.end(run);
            }
        }
    }

    /// Does the work that is due.
    pub fn tick(&mut self, now: Instant) {
        let due: Vec<u64> = self.calls.iter().filter(|(_, call)| call.deadline() <= now).map(|(key, _)| *key).collect();
        for key in due {
            self.report_progress(key, now);
            self.time_is_over(key, now);
        }
    }

    fn report_progress(&mut self, key: u64, now: Instant) {
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.quiet_until <= now) else { return };
        let Some(token) = call.token.clone() else { return };
        let Some(line) = call.excerpt().and_then(excerpt::OutputExcerpt::take_news) else { return };
        call.progress += 1;
        call.quiet_until = now + limits::MCP_PROGRESS_EVERY;
        let params = json!({"progressToken": token, "progress": call.progress, "message": line});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }

    /// Ends a call with its result.
    fn finish(&mut self, key: u64, text: &str, is_error: bool) {
        if let Some(call) = self.calls.remove(&key) {
            self.result(&call.id, call.era, text, is_error);
        }
    }

    fn result(&mut self, id: &Value, era: Era, text: &str, is_error: bool) {
        let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
        self.send(&era.answer(id, result));
    }

    fn refuse(&mut self, id: &Value, error: ProtocolError) {
        self.send(&error.answer(id));
    }

    fn send(&mut self, message: &Value) {
        put_line(message, &mut self.to_client);
    }
}

/// A client's name, as agents are called elsewhere.
fn called(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    match AGENTS.iter().find(|(known, _)| lower.starts_with(known)) {
        Some((_, agent)) => (*agent).to_owned(),
        None => name_of(name, limits::WHOAMI_COLUMNS),
    }
}
