//! The lines of both protocols: requests of a client, and their answers. The lines have no `jsonrpc`, as Codex writes
//! them.

use rexec_sh::protocol::notice::{hint_in, problem_in};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::front::json_line::put_line;
use crate::front::numbers::is_inexact;
use crate::front::rpc::error::{NO_SUCH_RUN, RUN_IS_OVER, RpcError};

/// The request cannot be served in this state, or at all.
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const UNKNOWN_METHOD: i32 = -32601;
/// A parameter is missing or wrong.
pub(super) const BAD_PARAMS: i32 = -32602;
pub(super) const FAILED: i32 = -32603;
pub(super) const NO_FILE: i32 = -32004;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Refusal {
    code: i32,
    message: String,
}

impl Refusal {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The refusal with a notice's text, in one line for a model.
    pub(super) fn of_notice(rendered: &str) -> Self {
        let (problem, hint) = (problem_in(rendered), hint_in(rendered));
        let headline = if rendered.starts_with("HOST NOT FOUND") { "HOST NOT FOUND" } else { "" };
        let problem = if headline.is_empty() { problem } else { rendered.lines().nth(1).map_or("", problem_in) };
        let parts = [headline, problem].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        Self::new(FAILED, if hint.is_empty() { parts } else { format!("{parts}; {hint}") })
    }
}

impl From<RpcError> for Refusal {
    /// The host's refusal as one sentence, with the hint if there is one for this client. Hints about a run name the host's
    /// own methods.
    fn from(RpcError { code, message, data }: RpcError) -> Self {
        let is_about_run = [NO_SUCH_RUN, RUN_IS_OVER].contains(&code);
        match data.and_then(|data| data.hint).filter(|_| !is_about_run) {
            Some(hint) => Self::new(FAILED, format!("rexec: {message}; {hint}")),
            None => Self::new(FAILED, format!("rexec: {message}")),
        }
    }
}

/// A message of a client.
#[derive(Debug)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
    },
    /// An answer to a request that nobody sent.
    Answer,
}

impl Message {
    /// Reads a line; `None` for a line that is not a message.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else { return None };
        let id = fields.remove("id").filter(|id| !id.is_null());
        if id.as_ref().and_then(Value::as_number).is_some_and(is_inexact) {
            return None;
        }
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), Some(id @ (Value::Number(_) | Value::String(_)))) => {
                Some(Self::Request { id, method, params: fields.remove("params").unwrap_or(Value::Null) })
            }
            (Some(Value::String(method)), None) => Some(Self::Notification { method }),
            (None, Some(_)) => Some(Self::Answer),
            _ => None,
        }
    }
}

pub(super) fn params<P: DeserializeOwned>(params: Value) -> Result<P, Refusal> {
    serde_json::from_value(params).map_err(|error| Refusal::new(BAD_PARAMS, error.to_string()))
}

#[derive(Serialize)]
struct AnswerLine<'a, T> {
    id: &'a Value,
    result: &'a T,
}

#[derive(Serialize)]
struct RefusalLine<'a> {
    error: &'a Refusal,
    id: &'a Value,
}

#[derive(Serialize)]
struct ToldLine<'a, T> {
    method: &'a str,
    params: &'a T,
}

pub(super) fn put_result(id: &Value, result: &impl Serialize, out: &mut Vec<u8>) {
    put_line(&AnswerLine { id, result }, out);
}

pub(super) fn put_answer(id: &Value, answer: &Result<Value, Refusal>, out: &mut Vec<u8>) {
    match answer {
        Ok(result) => put_result(id, result, out),
        Err(error) => put_line(&RefusalLine { error, id }, out),
    }
}

/// Sends the client a notification.
pub(super) fn put_notification(method: &str, params: &impl Serialize, out: &mut Vec<u8>) {
    put_line(&ToldLine { method, params }, out);
}
