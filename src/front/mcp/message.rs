//! A line from an MCP client, and the lines that answer it.

use serde_json::{Map, Value, json};

use crate::front::numbers::is_inexact;

pub(super) const PARSE_ERROR: i32 = -32_700;
/// The line is JSON, but neither a request nor a notification.
pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const METHOD_NOT_FOUND: i32 = -32_601;
pub(super) const INVALID_PARAMS: i32 = -32_602;
/// The request names a revision of the protocol that this server does not speak.
pub(super) const UNSUPPORTED_VERSION: i32 = -32_022;

/// The longest id of a request, bytes. It is kept until the answer.
const ID_BYTES_MAX: usize = 1_024;

/// An error of the protocol. Failures of a tool are results with `isError` instead.
#[derive(Debug)]
pub(super) struct ProtocolError {
    pub(super) code: i32,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl ProtocolError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The answer with this error.
    pub(super) fn answer(self, id: &Value) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}

/// A message of a client.
#[derive(Debug)]
pub(super) enum ClientMessage {
    /// It is answered, unless the client cancels it.
    Request { id: Value, method: String, params: Map<String, Value> },
    /// It is never answered.
    Notification { method: String, params: Map<String, Value> },
    /// An answer to a request that this server never sends.
    Answer,
    /// Several messages in one line.
    Batch(Vec<Value>),
    /// An invalid message. The error's answer has this id, which is null if there is none.
    Wrong(Value, ProtocolError),
}

impl ClientMessage {
    pub(super) fn read(line: &[u8]) -> Self {
        match serde_json::from_slice(line) {
            Ok(Value::Array(messages)) if !messages.is_empty() => Self::Batch(messages),
            Ok(value) => Self::of(value),
            Err(error) => {
                Self::Wrong(Value::Null, ProtocolError::new(PARSE_ERROR, format!("the line is not JSON: {error}")))
            }
        }
    }

    pub(super) fn of(value: Value) -> Self {
        let invalid = |id, why: &str| Self::Wrong(id, ProtocolError::new(INVALID_REQUEST, why));
        let Value::Object(mut fields) = value else { return invalid(Value::Null, "a message is a JSON object") };
        let id = fields.remove("id");
        let known = id.clone().filter(is_id).unwrap_or(Value::Null);
        let method = match fields.remove("method") {
            Some(Value::String(method)) => method,
            None if fields.contains_key("result") || fields.contains_key("error") => return Self::Answer,
            _ => return invalid(known, "a message has a method, which is a string"),
        };
        let params = match fields.remove("params") {
            Some(Value::Object(params)) => params,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return invalid(known, "params is a JSON object"),
        };
        match id {
            None => Self::Notification { method, params },
            Some(id) if is_id(&id) => Self::Request { id, method, params },
            Some(_) => invalid(Value::Null, "an id is a number that 64 bits hold, or a string of up to 1,024 bytes"),
        }
    }
}

/// Returns true if this can be the id of a request or its progress: the client recognizes it in the answer.
pub(super) fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.len() <= ID_BYTES_MAX,
        Value::Number(number) => !is_inexact(number),
        _ => false,
    }
}
