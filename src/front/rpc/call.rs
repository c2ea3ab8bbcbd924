//! Parses a client's line into a call: a method with its parameters. [`super::methods`] has the methods.

use serde_json::{Map, Value};

use super::error::{BAD_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError, UNKNOWN_METHOD};
use super::methods::Call;
use super::reply::RequestId;
use crate::front::numbers::is_inexact;

#[derive(Debug)]
pub struct RpcCall {
    /// The identifier for the answer; a notification is never answered.
    pub id: Option<RequestId>,
    /// The call, or the mistake in the line.
    pub call: Result<Call, RpcError>,
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
            |code, problem: String| Some(Self { id: None, call: Err(RpcError::new(code, problem)), is_broken: true });
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
        let (id, call) = match id {
            Some(Value::Number(id)) if is_inexact(&id) => {
                (None, invalid("id: a number that 64 bits do not hold exactly; use a string"))
            }
            Some(id @ (Value::Number(_) | Value::String(_))) => (Some(RequestId(id)), Self::call(fields)),
            None => (None, Self::call(fields)),
            Some(_) => (None, invalid("id: neither a number nor a string")),
        };
        let is_broken = id.is_none() && call.as_ref().is_err_and(|error| error.code == INVALID_REQUEST);
        Self { id, call, is_broken }
    }

    fn call(mut fields: Map<String, Value>) -> Result<Call, RpcError> {
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
        Call::named(&name, params).unwrap_or_else(|| {
            let name: String = name.chars().take(64).collect();
            Err(RpcError::new(UNKNOWN_METHOD, format!("there is no method {name:?}"))
                .hint("hello lists the methods, and rexec help protocol explains them"))
        })
    }
}
