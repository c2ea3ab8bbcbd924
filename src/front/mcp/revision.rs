//! The revisions of the protocol: those that begin with `initialize`, and the stateless one, whose requests name it
//! in their `_meta` and may ask for `server/discover` first.

use serde_json::{Map, Value, json};

use super::message::{INVALID_PARAMS, ProtocolError, UNSUPPORTED_VERSION};
use super::tools;

/// The revisions with a handshake, newest first. A client that asks for another one is offered the first.
const WITH_HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The only revision in which a line may hold several messages.
const WITH_BATCHES: &str = "2025-03-26";
/// The revisions without one.
const STATELESS: [&str; 1] = ["2026-07-28"];

/// The key of the revision in a request of a stateless revision.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of its client.
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
/// The key of this server in the result.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The time for which a client of a stateless revision may keep the list of tools, ms. It only changes with the
/// program.
const LIST_LIFE_MS: u64 = 3_600_000;

/// The description of this server for the agent's model.
const INSTRUCTIONS: &str = "\
Runs shell commands in the user's rexec host, where the user sees them live and can stop them. A call of exec returns \
when the command ends, or within 50 seconds with the number of the run; output then waits for more, write types, kill \
ends it. Use background for servers.";

/// The form of a request and of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// After a handshake.
    Handshake,
    /// With all facts in the request.
    Stateless,
}

impl Era {
    /// The era of a request.
    ///
    /// # Errors
    /// The request names an unknown revision, or one that is not a string.
    pub(super) fn of(params: &Map<String, Value>) -> Result<Self, ProtocolError> {
        let meta = params.get("_meta").and_then(Value::as_object);
        match meta.and_then(|meta| meta.get(VERSION_KEY)) {
            None => Ok(Self::Handshake),
            Some(Value::String(version)) if STATELESS.contains(&version.as_str()) => Ok(Self::Stateless),
            Some(Value::String(version)) => Err(ProtocolError {
                code: UNSUPPORTED_VERSION,
                message: "Unsupported protocol version".to_owned(),
                data: Some(json!({"supported": STATELESS, "requested": version})),
            }),
            Some(_) => Err(ProtocolError::new(INVALID_PARAMS, format!("{VERSION_KEY} is a string"))),
        }
    }

    /// The answer with this result, which is an object.
    pub(super) fn answer(self, id: &Value, mut result: Value) -> Value {
        if self == Self::Stateless {
            result["resultType"] = json!("complete");
            result["_meta"] = json!({SERVER_KEY: server()});
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }
}

/// The result of `initialize`, and the revision of the connection from now on.
pub(super) fn initialize(params: &Map<String, Value>) -> (Value, &'static str) {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let revision = WITH_HANDSHAKE.into_iter().find(|known| *known == asked).unwrap_or(WITH_HANDSHAKE[0]);
    let result = json!({
        "protocolVersion": revision,
        "capabilities": capabilities(),
        "serverInfo": server(),
        "instructions": INSTRUCTIONS,
    });
    (result, revision)
}

pub(super) fn discover() -> Value {
    cacheable(json!({
        "supportedVersions": STATELESS,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    }))
}

pub(super) fn tool_list(era: Era) -> Value {
    let list = json!({"tools": tools::all()});
    if era == Era::Stateless { cacheable(list) } else { list }
}

/// Returns true if a line may hold several messages.
pub(super) fn has_batches(revision: &str) -> bool {
    revision == WITH_BATCHES
}

/// The client's name in a request's own `_meta`.
pub(super) fn client_of(params: &Map<String, Value>) -> Option<&str> {
    params.get("_meta")?.get(CLIENT_KEY)?.get("name")?.as_str()
}

fn cacheable(mut result: Value) -> Value {
    result["ttlMs"] = json!(LIST_LIFE_MS);
    result["cacheScope"] = json!("private");
    result
}

fn capabilities() -> Value {
    json!({"tools": {}})
}

fn server() -> Value {
    json!({"name": "rexec", "title": "rexec", "version": env!("CARGO_PKG_VERSION")})
}
