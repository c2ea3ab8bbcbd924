//! Prompts that a person answers: what asks waits, the answer reaches it and nothing else, and the journal counts it.

mod answers;
mod attached;
mod console;
mod elsewhere;
mod secrets;
mod typing;

use std::io::Write;

use serde_json::{Value, json};

use crate::support::call::{Calling, Target};
use crate::support::crowd::{answer, ask_in_json};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::screen::Screen;
use crate::support::waiting::{self, PATIENCE};

/// A host where somebody answers. The wait is longer than any test's patience.
const ATTENDED: Setup = Setup { flags: &["--prompts", "ask", "--prompt-wait", "300"], ..MIRROR };

/// A host where somebody answers on the console.
const CONSOLE: Setup = Setup { terminal: true, ..ATTENDED };
/// The size of its terminal.
const SIZE: (u16, u16) = (120, 40);

/// Types on the console.
fn types(host: &Host, keys: &[u8]) {
    host.terminal.as_ref().expect("it has one").master_file().write_all(keys).expect("the terminal takes keys");
}

/// The console's screen.
fn screen(host: &Host) -> String {
    Screen::of(host.console_text().as_bytes(), SIZE).text()
}

/// Waits until the last row of the console says this.
fn last_row_says(host: &Host, text: &str) {
    let says = || screen(host).lines().nth(usize::from(SIZE.1) - 1).is_some_and(|row| row.contains(text));
    assert!(waiting::until_true(PATIENCE, says), "the last row never says {text:?}: {}", screen(host));
}

/// Presses the key that answers, once the console says that this command is answered by it.
fn begins_to_answer(host: &Host, seq: u64) {
    last_row_says(host, &format!("i answer #{seq} "));
    types(host, b"i");
    last_row_says(host, &format!("your keys go to #{seq} "));
}

/// Starts a script by the shim.
fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

/// What the host lists.
fn list(host: &Host) -> Vec<Value> {
    answer(ask_in_json(host, &json!({"action": "list"})))["runs"].as_array().cloned().unwrap_or_default()
}

/// Waits until the command waits for an answer; returns what the host lists of it.
pub(crate) fn waits(host: &Host, seq: u64) -> Value {
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
