//! Orders that a run cannot take are refused with what it is that is in the way. No such refusal is a failure of the host.

use serde_json::{Value, json};

use super::client::Client;
use crate::runs::rules::host;
use crate::support::host::{Host, MIRROR};
use crate::support::waiting;

const NO_SUCH_RUN: i64 = -32_001;
const RUN_IS_OVER: i64 = -32_002;
const RUN_NOT_READY: i64 = -32_010;

/// Rules that hold a command.
const HOLDS: &str = "[gate]\nmode = 'enforce'\naway = 'wait'\n[[rule]]\ndo = 'ask'\nrun = 'echo'\n";

/// Sends an order about a run that is refused with this code, and a sentence and a hint with these words.
#[track_caller]
fn refused(client: &mut Client, method: &str, run: u64, code: i64, [words, hint]: [&str; 2]) {
    let mut params = json!({"run": run});
    match method {
        "exec.signal" => params["signal"] = json!("CONT"),
        "exec.write" => params["text"] = json!("a"),
        "exec.resize" => (params["rows"], params["cols"]) = (json!(10), json!(10)),
        _ => {}
    }
    let id = client.ask(method, &params);
    let error = client.reply(id)["error"].take();
    let says = |text: &Value, words: &str| text.as_str().is_some_and(|text| text.contains(words));
    assert!(error["code"] == code && says(&error["message"], words), "{method}: {error}");
    assert!(says(&error["data"]["hint"], hint), "{method}: {error}");
}

#[test]
fn a_run_that_is_held_is_not_paused() {
    let host = host(HOLDS, MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "echo said"}));
    assert_eq!(client.call("exec.status", &json!({"run": run}))["state"], "held");
    let sentence = format!("run {run} cannot be paused: it is held until somebody decides on it");
    refused(&mut client, "exec.pause", run, RUN_NOT_READY, [&sentence, "exec.decide lets it begin"]);
    refused(&mut client, "exec.resume", run, RUN_NOT_READY, ["is not paused", "exec.list"]);
    refused(&mut client, "exec.write", run, RUN_IS_OVER, ["has no input that is open", "keep_stdin"]);
    // It gets the signal when it begins.
    assert_eq!(client.call("exec.signal", &json!({"run": run, "signal": "CONT"})), json!({}));
    client.call("exec.decide", &json!({"run": run, "allow": true}));
    assert_eq!(client.call("exec.wait", &json!({"run": run, "for": "exit"}))["exit"], 0);
}

#[test]
fn a_run_that_waits_for_its_project_is_not_paused() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let dir = host.home.path().display().to_string();
    client.call("session.create", &json!({"dir": dir}));
    client.call("session.suspend", &json!({"session": dir}));
    let run = client.start(&json!({"command": "true", "dir": dir}));
    assert_eq!(client.call("exec.status", &json!({"run": run}))["state"], "queued");
    refused(&mut client, "exec.pause", run, RUN_NOT_READY, ["cannot be paused: it has not begun", "exec.status"]);
    refused(&mut client, "exec.resume", run, RUN_NOT_READY, ["is not paused", "exec.list"]);
    client.call("session.resume", &json!({"session": dir}));
    assert_eq!(client.call("exec.wait", &json!({"run": run, "for": "exit"}))["exit"], 0);
}

#[test]
fn a_run_that_is_about_to_end_is_not_paused() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "trap '' TERM; echo ready; while :; do sleep 0.02; done"}));
    client.call("exec.wait", &json!({"run": run, "for": "text", "text": "ready"}));
    client.call("exec.cancel", &json!({"run": run, "grace_ms": 600_000}));
    refused(&mut client, "exec.pause", run, RUN_NOT_READY, ["it is about to end", "exec.wait"]);
    refused(&mut client, "exec.resume", run, RUN_NOT_READY, ["is not paused", "exec.list"]);
    client.call("exec.cancel", &json!({"run": run, "grace_ms": 0}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    for method in ["exec.write", "exec.resize", "exec.signal"] {
        refused(&mut client, method, run, RUN_IS_OVER, ["is over", "exec.status"]);
    }
    for method in ["exec.pause", "exec.resume"] {
        // Its guard ends a little later.
        waiting::wait_until("its guard has ended", || {
            let id = client.ask(method, &json!({"run": run}));
            client.reply(id)["error"]["code"] == RUN_IS_OVER
        });
        refused(&mut client, method, run, RUN_IS_OVER, ["is over", "exec.status"]);
    }
}

/// No client has named it while it ran, so nothing of its output is kept.
#[test]
fn a_run_that_has_left_something_is_over_and_not_unknown() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    assert_eq!(host.run("sleep 1000 >/dev/null 2>&1 &").code(), 0);
    waiting::wait_until("it is listed", || client.call("exec.left", &json!({}))["runs"] != json!([]));
    for method in ["exec.write", "exec.resize", "exec.signal"] {
        refused(&mut client, method, 1, RUN_IS_OVER, ["run 1 is over", "exec.cancel ends that"]);
        refused(&mut client, method, 2, NO_SUCH_RUN, ["there is no run 2 here", "exec.list"]);
    }
    refused(&mut client, "exec.resume", 1, RUN_NOT_READY, ["is not paused", "exec.list"]);
    client.call("exec.pause", &json!({"run": 1}));
    client.call("exec.resume", &json!({"run": 1}));
    client.call("exec.cancel", &json!({"run": 1, "grace_ms": 0}));
    waiting::wait_until("it is gone", || client.call("exec.left", &json!({}))["runs"] == json!([]));
    for method in ["exec.pause", "exec.resume", "exec.signal", "exec.cancel"] {
        refused(&mut client, method, 1, NO_SUCH_RUN, ["there is no run 1 here", "rexec show 1"]);
    }
}
