//! Parses a client's line into a call: a method with its parameters.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::{BAD_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError, UNKNOWN_METHOD};
use super::params::{
    CancelParams, HelloParams, ListParams, NoParams, OutputParams, ResizeParams, RunParams, SignalParams,
    SubscribeParams, UnsubscribeParams, WaitParams, WriteParams,
};
use super::projects::SessionParams;
use super::reply::RequestId;
use super::start::{StartParams, StreamMode};
use crate::front::numbers::{is_inexact, make_whole};
use crate::front::projects::ProjectDefinition;

#[derive(Debug)]
pub enum Method {
    /// Gives the client's name; the answer has the host's methods.
    Hello(HelloParams),
    /// Runs a command; the answer comes at its end.
    Run(Box<StartParams>),
    /// Starts a command; the answer comes at once.
    Start(Box<StartParams>),
    /// Writes to a run's input.
    Write(WriteParams),
    /// Changes the size of a run's terminal.
    Resize(ResizeParams),
    /// Signals a run.
    Signal(SignalParams),
    /// Ends a run.
    Cancel(CancelParams),
    /// Reads a run's output.
    Output(OutputParams),
    /// Waits for something about a run.
    Wait(WaitParams),
    /// Returns the facts about a run.
    Status(RunParams),
    /// Lists the runs.
    List(ListParams),
    /// Reports events from now on.
    Subscribe(SubscribeParams),
    /// Ends a subscription.
    Unsubscribe(UnsubscribeParams),
    /// Defines a project session.
    CreateSession(Box<ProjectDefinition>),
    /// Lists the project sessions.
    ListSessions,
    /// Ends a project session.
    DestroySession(SessionParams),
    /// Returns the variables for the commands of a project session.
    SessionEnv(SessionParams),
    /// Pauses a project session.
    SuspendSession(SessionParams),
    /// Resumes a project session.
    ResumeSession(SessionParams),
    /// Returns the host's state.
    HostStatus,
}

pub const METHODS: [&str; 25] = [
    "hello",
    "exec.run",
    "exec.start",
    "exec.runBackground",
    "exec.write",
    "exec.resize",
    "exec.signal",
    "exec.cancel",
    "exec.output",
    "exec.wait",
    "exec.status",
    "exec.list",
    "events.subscribe",
    "events.unsubscribe",
    "session.create",
    "session.list",
    "session.destroy",
    "session.env",
    "session.suspend",
    "session.resume",
    "host.status",
    "pty.spawn",
    "pty.write",
    "pty.resize",
    "pty.close",
];

#[derive(Debug)]
pub struct RpcCall {
    /// The identifier for the answer; a notification is never answered.
    pub id: Option<RequestId>,
    /// The method, or the mistake in the line.
    pub method: Result<Method, RpcError>,
    /// True if the line is a request without a readable identifier. Then its error is sent.
    pub is_broken: bool,
}

impl RpcCall {
    #[must_use]
    pub fn read(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        let broken =
            |code, problem: String| Some(Self { id: None, method: Err(RpcError::new(code, problem)), is_broken: true });
        match serde_json::from_slice(line) {
            Err(error) => broken(PARSE_ERROR, format!("the line is not JSON: {error}")),
            Ok(Value::Object(fields)) => Some(Self::of(fields)),
            Ok(Value::Array(_)) => {
                broken(INVALID_REQUEST, "batches are not understood; send each request as a line".to_owned())
            }
            Ok(_) => broken(INVALID_REQUEST, "a request is an object with a method".to_owned()),
        }
    }

    fn of(mut fields: Map<String, Value>) -> Self {
        let id = fields.remove("id").filter(|id| !id.is_null());
        let invalid = |problem: &str| Err(RpcError::new(INVALID_REQUEST, problem));
        let (id, method) = match id {
            Some(Value::Number(id)) if is_inexact(&id) => {
                (None, invalid("id: a number that 64 bits do not hold exactly; use a string"))
            }
            Some(id @ (Value::Number(_) | Value::String(_))) => (Some(RequestId(id)), Self::method(fields)),
            None => (None, Self::method(fields)),
            Some(_) => (None, invalid("id: neither a number nor a string")),
        };
        let is_broken = id.is_none() && method.as_ref().is_err_and(|error| error.code == INVALID_REQUEST);
        Self { id, method, is_broken }
    }

    fn method(mut fields: Map<String, Value>) -> Result<Method, RpcError> {
        let invalid = |problem: String| Err(RpcError::new(INVALID_REQUEST, problem));
        let version = fields.remove("jsonrpc");
        if version.is_some_and(|version| version != "2.0") {
            return invalid("jsonrpc: not \"2.0\"".to_owned());
        }
        let params = match fields.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(RpcError::new(BAD_PARAMS, "params: not an object with named fields")),
        };
        let Some(Value::String(name)) = fields.remove("method") else {
            return invalid("method: missing, or not a string".to_owned());
        };
        if let Some(unknown) = fields.keys().next() {
            return invalid(format!("{unknown}: no field of a request; parameters belong into params"));
        }
        named(&name, params)
    }
}

fn named(name: &str, params: Map<String, Value>) -> Result<Method, RpcError> {
    Ok(match name {
        "hello" => Method::Hello(read(params)?),
        "exec.run" => Method::Run(read(params)?),
        "exec.start" => Method::Start(read(params)?),
        "exec.runBackground" => Method::Start(Box::new(StartParams { background: true, ..read(params)? })),
        "pty.spawn" => Method::Start(Box::new(StartParams { mode: StreamMode::Pty, ..read(params)? })),
        "exec.write" | "pty.write" => Method::Write(read(params)?),
        "exec.resize" | "pty.resize" => Method::Resize(read(params)?),
        "exec.signal" => Method::Signal(read(params)?),
        "exec.cancel" | "pty.close" => Method::Cancel(read(params)?),
        "exec.output" => Method::Output(read(params)?),
        "exec.wait" => Method::Wait(read(params)?),
        "exec.status" => Method::Status(read(params)?),
        "exec.list" => Method::List(read(params)?),
        "events.subscribe" => Method::Subscribe(read(params)?),
        "events.unsubscribe" => Method::Unsubscribe(read(params)?),
        "session.create" => Method::CreateSession(read(params)?),
        "session.list" => read(params).map(|NoParams {}| Method::ListSessions)?,
        "session.destroy" => Method::DestroySession(read(params)?),
        "session.env" => Method::SessionEnv(read(params)?),
        "session.suspend" => Method::SuspendSession(read(params)?),
        "session.resume" => Method::ResumeSession(read(params)?),
        "host.status" => read(params).map(|NoParams {}| Method::HostStatus)?,
        _ => {
            let name: String = name.chars().take(64).collect();
            return Err(RpcError::new(UNKNOWN_METHOD, format!("there is no method {name:?}"))
                .hint("hello lists the methods, and rexec help protocol explains them"));
        }
    })
}

/// Reads parameters. A parameter that is null counts as one that is left out. The error names the field.
fn read<P: DeserializeOwned>(mut params: Map<String, Value>) -> Result<P, RpcError> {
    let refused = |words: String| RpcError::new(BAD_PARAMS, words);
    let nulls: Vec<String> = params.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.clone()).collect();
    params.retain(|_, value| !value.is_null());
    params.values_mut().for_each(make_whole);
    for name in nulls {
        // An unknown parameter is refused with any value.
        let alone = Map::from_iter([(name, Value::Null)]);
        let words = P::deserialize(&alone).err().map(|error| error.to_string()).unwrap_or_default();
        if words.starts_with("unknown field") {
            return Err(refused(format!("params: {words}")));
        }
    }
    P::deserialize(&params).map_err(|error| {
        // serde's words do not name a field whose value has a wrong type.
        let words = error.to_string();
        let is_culprit = |field: &&String| {
            let mut others = params.clone();
            others.remove(*field);
            P::deserialize(&others).map_or_else(|other| other.to_string() != words, |_| true)
        };
        let is_told = words.contains("field `");
        let culprit = if is_told { None } else { params.keys().find(is_culprit) };
        refused(culprit.map_or_else(|| format!("params: {words}"), |field| format!("{field}: {words}")))
    })
}
