//! Prompts that a person answers: what asks waits, the answer reaches it and nothing else, and the journal counts it.

mod answers;
mod attached;
mod console;
mod elsewhere;

use serde_json::{Value, json};

use crate::support::call::{Calling, Target};
use crate::support::crowd::{answer, ask_in_json};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::waiting::{self, PATIENCE};

/// A host where somebody answers. The wait is longer than any test's patience.
const ATTENDED: Setup = Setup { flags: &["--prompts", "ask", "--prompt-wait", "300"], ..MIRROR };

/// Starts a script by the shim.
fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

/// What the host lists.
fn list(host: &Host) -> Vec<Value> {
    answer(ask_in_json(host, &json!({"action": "list"})))["runs"].as_array().cloned().unwrap_or_default()
}

/// Waits until the command waits for an answer; returns what the host lists of it.
fn waits(host: &Host, seq: u64) -> Value {
    let waiting = || list(host).into_iter().find(|run| run["seq"] == seq && run["state"] == "waiting");
    waiting::until(PATIENCE, waiting).unwrap_or_else(|| panic!("#{seq} never waits: {:?}", list(host)))
}

/// Types a text; returns what the host says to that.
fn send(host: &Host, seq: u64, text: &str) -> Value {
    answer(ask_in_json(host, &json!({"action": "send", "seq": seq, "text": text})))
}

/// The end of a call.
fn ends(call: &mut Calling) -> crate::support::call::Outcome {
    call.finish(PATIENCE).expect("the command ends")
}
