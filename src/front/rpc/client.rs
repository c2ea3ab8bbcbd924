//! Calls, answers and events on a client's side.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RpcError;
use super::events::Event;
use super::methods::RpcMethod;
use super::reply::VERSION;
use crate::front::json_line::put_line;
use crate::limits;

/// A call is longer than a host accepts: it would end the connection, and the runs with it.
#[derive(Debug)]
pub struct CallTooLong;

/// A call of this method, as a line.
///
/// # Errors
/// The line has over [`limits::JSON_LINE_BYTES_MAX`] bytes.
pub fn call_line<M: RpcMethod<Params: Serialize>>(id: u64, params: &M::Params) -> Result<Vec<u8>, CallTooLong> {
    #[derive(Serialize)]
    struct CallLine {
        jsonrpc: &'static str,
        id: u64,
        method: &'static str,
        params: Value,
    }
    let mut params = serde_json::to_value(params).expect("parameters always serialize into memory");
    if let Value::Object(fields) = &mut params {
        // An older host refuses a parameter that it does not know, even if it is null.
        fields.retain(|_, value| !value.is_null());
    }
    let mut line = Vec::new();
    put_line(&CallLine { jsonrpc: VERSION, id, method: M::NAME, params }, &mut line);
    if line.len() > limits::JSON_LINE_BYTES_MAX { Err(CallTooLong) } else { Ok(line) }
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

/// A line of the host.
#[derive(Debug)]
pub enum HostLine {
    /// The answer to the call of this number.
    Answer(u64, Result<AnswerValue, RpcError>),
    Event(Event),
}

impl HostLine {
    /// Reads a line. `None` for one that is neither an answer nor an event that this version knows.
    #[must_use]
    pub fn read(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct LineFields {
            id: Option<u64>,
            method: Option<String>,
            #[serde(default)]
            params: Value,
            #[serde(default)]
            result: Value,
            error: Option<RpcError>,
        }
        let LineFields { id, method, params, result, error } = serde_json::from_slice(line).ok()?;
        match method {
            Some(name) => Event::named(&name, params).map(Self::Event),
            None => Some(Self::Answer(id?, error.map_or(Ok(AnswerValue(result)), |error| Err(error.as_heard())))),
        }
    }
}

/// The calls of a client that have no answer yet, each with the purpose of its answer. The owner moves the bytes to and
/// from the host.
#[derive(Debug)]
pub struct PendingCalls<P> {
    last_id: u64,
    purposes: BTreeMap<u64, P>,
    out: Vec<u8>,
}

impl<P> Default for PendingCalls<P> {
    fn default() -> Self {
        Self { last_id: 0, purposes: BTreeMap::new(), out: Vec::new() }
    }
}

impl<P> PendingCalls<P> {
    /// The bytes for the host. The owner removes the sent ones from the front.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Returns true if bytes wait for the host.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        !self.out.is_empty()
    }

    /// Makes a call.
    ///
    /// # Errors
    /// Returns the purpose of a call that is too long.
    pub fn send<M: RpcMethod<Params: Serialize>>(&mut self, params: &M::Params, purpose: P) -> Result<(), P> {
        self.last_id += 1;
        let Ok(line) = call_line::<M>(self.last_id, params) else { return Err(purpose) };
        self.out.extend(line);
        self.purposes.insert(self.last_id, purpose);
        Ok(())
    }

    /// Takes the purpose of a call that is answered; `None` if there is no such call.
    pub fn answered(&mut self, id: u64) -> Option<P> {
        self.purposes.remove(&id)
    }

    /// Gives all calls up, because there is no host to answer them. Returns their purposes.
    pub fn give_up(&mut self) -> Vec<P> {
        self.out.clear();
        std::mem::take(&mut self.purposes).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::rpc::methods::method;
    use crate::front::rpc::params::{RunParams, WaitParams, WriteParams};

    #[test]
    fn what_a_client_writes_is_what_the_host_reads() {
        let line = call_line::<method::Status>(3, &RunParams { run: 4 }).unwrap();
        let expected = r#"{"jsonrpc":"2.0","id":3,"method":"exec.status","params":{"run":4}}"#;
        assert_eq!(String::from_utf8(line).unwrap().trim_end(), expected);
        let wait = r#"{"run":1,"for":"port","port":80,"text":null,"timeout_ms":null}"#;
        let read: WaitParams = serde_json::from_str(wait).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), wait);
        let line = call_line::<method::Wait>(4, &read).unwrap();
        let expected = r#"{"jsonrpc":"2.0","id":4,"method":"exec.wait","params":{"for":"port","port":80,"run":1}}"#;
        assert_eq!(String::from_utf8(line).unwrap().trim_end(), expected);
        let answer = |line: &str| match HostLine::read(line.as_bytes()) {
            Some(HostLine::Answer(7, answer)) => answer,
            other => panic!("{other:?}"),
        };
        let run = answer(r#"{"id":7,"result":{"run":9}}"#).unwrap().form::<RunParams>();
        assert_eq!(run.map(|params| params.run), Some(9));
        let refused = answer(r#"{"id":7,"error":{"code":-1,"message":"no"}}"#).unwrap_err();
        assert_eq!(refused, RpcError::new(-1, "no"));
        assert!(HostLine::read(b"{}").is_none() && HostLine::read(b"x").is_none());
        let exited = r#"{"jsonrpc":"2.0","method":"exec.exited","params":{"run":7,"exit":143,"signal":15,"error":"new","duration_ms":3}}"#;
        let Some(HostLine::Event(Event::Exited(note))) = HostLine::read(exited.as_bytes()) else { panic!("{exited}") };
        assert_eq!((note.run, note.end.exit, note.end.signal, note.end.error), (7, 143, Some(15), None));
        assert!(HostLine::read(br#"{"method":"exec.danced","params":{}}"#).is_none());
    }

    /// As a host of the release before the table of methods has written them.
    #[test]
    fn a_host_that_does_not_know_what_it_is_asked_is_an_older_one() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"events: unknown variant `held`, expected one of `start`, `output`, `prompt`, `port`, `exit`"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"params: unknown field `after`, expected one of `runs`, `events`, `encoding`"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"there is no method \"exec.asks\"","data":{"hint":"hello lists the methods, and rexec help protocol explains them"}}}"#,
        ] {
            let Some(HostLine::Answer(1, Err(error))) = HostLine::read(line.as_bytes()) else { panic!("{line}") };
            assert!(error.message.contains("an earlier release"), "{error:?}");
            assert!(error.data.is_some_and(|data| data.hint.is_some_and(|hint| hint.contains("start it again"))));
        }
        let line = r#"{"id":1,"error":{"code":-32602,"message":"timeout: over 365 days"}}"#;
        let Some(HostLine::Answer(1, Err(error))) = HostLine::read(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(error, RpcError::new(-32_602, "timeout: over 365 days"));
    }

    #[test]
    fn a_call_that_the_host_would_not_take_is_not_sent() {
        let mut calls = PendingCalls::default();
        calls.send::<method::Status>(&RunParams { run: 4 }, "first").unwrap();
        let length = calls.out().len();
        let text = Some("x".repeat(limits::JSON_LINE_BYTES_MAX));
        assert_eq!(calls.send::<method::Write>(&WriteParams { text, ..WriteParams::default() }, "long"), Err("long"));
        assert_eq!(calls.out().len(), length);
        calls.send::<method::Status>(&RunParams { run: 5 }, "third").unwrap();
        assert_eq!((calls.answered(2), calls.answered(3), calls.answered(3)), (None, Some("third"), None));
        assert_eq!((calls.give_up(), calls.out().len()), (vec!["first"], 0));
    }
}
