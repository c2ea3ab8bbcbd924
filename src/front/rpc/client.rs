//! Calls and answers on a client's side.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RpcError;
use super::events::Event;
use super::methods::RpcMethod;
use crate::front::json_line::put_line;

/// A call of this method, as a line.
pub fn call_line<M: RpcMethod<Params: Serialize>>(id: u64, params: &M::Params) -> Vec<u8> {
    #[derive(Serialize)]
    struct CallLine<'a, T> {
        id: u64,
        method: &'static str,
        params: &'a T,
    }
    let mut line = Vec::new();
    put_line(&CallLine { id, method: M::NAME, params }, &mut line);
    line
}

/// The value of an answer.
#[derive(Debug)]
pub struct AnswerValue(Value);

impl AnswerValue {
    /// The answer in this form; `None` if it has another one.
    #[must_use]
    pub fn form<T: DeserializeOwned>(self) -> Option<T> {
        serde_json::from_value(self.0).ok()
    }
}

/// Reads an answer: its call's number, and its result. `None` for a line that is not an answer.
#[must_use]
pub fn read_answer(line: &[u8]) -> Option<(u64, Result<AnswerValue, RpcError>)> {
    #[derive(Deserialize)]
    struct AnswerFields {
        id: u64,
        #[serde(default)]
        result: Value,
        #[serde(default)]
        error: Option<RpcError>,
    }
    let AnswerFields { id, result, error } = serde_json::from_slice(line).ok()?;
    Some((id, error.map_or(Ok(AnswerValue(result)), Err)))
}

/// Reads an event. `None` for a line that is not one, and for an event that this version does not know.
#[must_use]
pub fn read_event(line: &[u8]) -> Option<Event> {
    #[derive(Deserialize)]
    struct EventFields {
        method: String,
        params: Value,
    }
    let EventFields { method, params } = serde_json::from_slice(line).ok()?;
    Event::named(&method, params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::rpc::methods::method;
    use crate::front::rpc::params::{RunParams, WaitParams};

    #[test]
    fn what_a_client_writes_is_what_the_host_reads() {
        let line = call_line::<method::Status>(3, &RunParams { run: 4 });
        assert_eq!(String::from_utf8(line).unwrap(), "{\"id\":3,\"method\":\"exec.status\",\"params\":{\"run\":4}}\n");
        let wait = r#"{"run":1,"for":"port","port":80,"text":null,"timeout_ms":null}"#;
        let read: WaitParams = serde_json::from_str(wait).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), wait);
        let (id, answer) = read_answer(br#"{"id":7,"result":{"run":9}}"#).unwrap();
        assert_eq!((id, answer.unwrap().form::<RunParams>().map(|params| params.run)), (7, Some(9)));
        let (_, answer) = read_answer(br#"{"id":7,"error":{"code":-1,"message":"no"}}"#).unwrap();
        assert_eq!(answer.unwrap_err(), RpcError::new(-1, "no"));
        assert!(read_answer(b"{}").is_none() && read_answer(b"x").is_none());
        let exited = r#"{"jsonrpc":"2.0","method":"exec.exited","params":{"run":7,"exit":143,"signal":15,"error":"new","duration_ms":3}}"#;
        let Some(Event::Exited(note)) = read_event(exited.as_bytes()) else { panic!("{exited}") };
        assert_eq!((note.run, note.end.exit, note.end.signal, note.end.error), (7, 143, Some(15), None));
        assert!(read_event(br#"{"method":"exec.danced","params":{}}"#).is_none() && read_event(b"{}").is_none());
    }
}
