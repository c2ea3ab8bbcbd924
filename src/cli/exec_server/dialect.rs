//! The two protocols: the one that Codex speaks now, and its first form, `exec-server.v0`.

use serde::Serialize;
use serde_json::{Value, json};

use super::files;
use super::message::{Refusal, params, put_notification, put_result};
use super::requests::{self, Identity, OldStartAsk, StartAsk};
use crate::text::encode::{base64, put_base64};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The one that Codex speaks now.
    #[default]
    Current,
    /// `exec-server.v0`.
    V0,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Started<'a> {
    process_id: &'a str,
    sandbox_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OldStarted<'a> {
    process_id: &'a str,
    running: bool,
    exit_code: Option<i64>,
    stdout: Option<&'a str>,
    stderr: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputDelta<'a> {
    process_id: &'a str,
    stream: &'a str,
    chunk: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exited<'a> {
    process_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    exit_code: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_denied: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Closed<'a> {
    process_id: &'a str,
    seq: u64,
}

impl Dialect {
    /// A method's action, in one word; `None` for an unknown method.
    pub(super) fn method(self, method: &str) -> Option<&'static str> {
        const CURRENT: [(&str, &str); 8] = [
            ("process/start", "start"),
            ("process/read", "read"),
            ("process/write", "write"),
            ("process/signal", "signal"),
            ("process/terminate", "terminate"),
            ("process/resize", "resize"),
            ("environment/info", "environment/info"),
            ("environment/status", "environment/status"),
        ];
        const V0: [(&str, &str); 3] =
            [("command/exec", "start"), ("command/exec/write", "write"), ("command/exec/terminate", "terminate")];
        let known: &[(&str, &'static str)] = match self {
            Self::Current => &CURRENT,
            Self::V0 => &V0,
        };
        let found = known.iter().find(|(name, _)| *name == method).map(|(_, what)| *what);
        found.or_else(|| (self == Self::Current && method.starts_with("fs/")).then_some("file"))
    }

    pub(super) fn greeting(self, identity: &Identity) -> Value {
        match self {
            Self::Current => json!({"sessionId": identity.session, "environmentInfo": requests::environment()}),
            Self::V0 => json!({"protocolVersion": "exec-server.v0"}),
        }
    }

    pub(super) fn start(self, given: Value) -> Result<StartAsk, Refusal> {
        let start: StartAsk = match self {
            Self::Current => params(given)?,
            Self::V0 => params::<OldStartAsk>(given)?.into(),
        };
        if start.wants_sandbox() {
            return Err(files::no_sandbox());
        }
        start.check(self == Self::Current)
    }

    pub(super) fn put_started(self, id: &Value, process: &str, out: &mut Vec<u8>) {
        match self {
            Self::Current => put_result(id, &Started { process_id: process, sandbox_type: "none" }, out),
            Self::V0 => {
                let (stdout, stderr) = (None, None);
                let started = OldStarted { process_id: process, running: true, exit_code: None, stdout, stderr };
                put_result(id, &started, out);
            }
        }
    }

    /// Reports the end of a process, in the protocol that numbers it.
    pub(super) fn put_exited(process: &str, seq: u64, exit_code: i64, out: &mut Vec<u8>) {
        let exited = Exited { process_id: process, seq: Some(seq), exit_code, sandbox_denied: Some(false) };
        put_notification("process/exited", &exited, out);
    }

    /// Reports that no more messages of a process follow.
    pub(super) fn put_closed(self, process: &str, seq: u64, exit_code: i64, out: &mut Vec<u8>) {
        match self {
            Self::Current => put_notification("process/closed", &Closed { process_id: process, seq }, out),
            // The exit message promises that all output has come.
            Self::V0 => {
                let exited = Exited { process_id: process, seq: None, exit_code, sandbox_denied: None };
                put_notification("command/exec/exited", &exited, out);
            }
        }
    }

    /// Reports output. This is written by hand, because whole builds go through it.
    pub(super) fn put_output(self, process: &str, seq: u64, stream: &str, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Current => {
                out.extend_from_slice(br#"{"method":"process/output","params":{"processId":"#);
                serde_json::to_writer(&mut *out, process).expect("text always serializes into memory");
                let fields = format!(r#","seq":{seq},"stream":"{stream}","chunk":""#);
                out.extend_from_slice(fields.as_bytes());
                put_base64(bytes, out);
                out.extend_from_slice(b"\"}}\n");
            }
            Self::V0 => {
                let stream = if stream == "pty" { "stdout" } else { stream };
                let delta = OutputDelta { process_id: process, stream, chunk: &base64(bytes) };
                put_notification("command/exec/outputDelta", &delta, out);
            }
        }
    }
}
