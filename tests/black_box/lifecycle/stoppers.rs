//! Who ended a run, and with which code: its caller, the journal, lists and clients tell the same.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::exec::{rexec, said};
use crate::rpc::client::Client;
use crate::support::host::{Host, PLAIN};
use crate::support::journal::Journal;
use crate::support::waiting;

/// Code, signal, word and stopper, in any form in JSON.
fn told(end: &Value) -> (u64, Option<u64>, Option<&str>, Option<&str>) {
    (end["exit"].as_u64().expect("a code"), end["signal"].as_u64(), end["error"].as_str(), end["by"].as_str())
}

/// What is told of a run that got SIGTERM by this one's will.
fn stopped(by: &str) -> (u64, Option<u64>, Option<&str>, Option<&str>) {
    (143, Some(15), Some("aborted"), Some(by))
}

/// The run's end in the journal. It is the same in `rexec log --json` and `rexec show --json`.
fn recorded(host: &Host, command: &str) -> Value {
    let record = host.wait_for(command, |journal| journal.end_of(command).cloned());
    let seq = record["seq"].to_string();
    let listed = said(rexec(host, &["log", "--json"])).1;
    let mut lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let listed = lines.find(|line| line["seq"] == record["seq"]).expect("it is listed");
    assert_eq!(told(&listed), told(&record), "rexec log");
    let shown: Value = serde_json::from_str(&said(rexec(host, &["show", "--json", &seq])).1).expect("JSON");
    assert_eq!(told(&shown["record"]), told(&record), "rexec show");
    record
}

#[test]
fn everybody_tells_the_same_end_and_who_ended_it() {
    let host = Host::with(PLAIN);
    let home = host.journal_home();
    let mut client = Client::new(&host);
    let limit = (124, Some(15), Some("timeout"), Some("timeout"));
    assert_eq!(said(rexec(&host, &["exec", "--timeout", "0.2", "--", "sleep", "1001"])).0, 124);
    assert_eq!(told(&recorded(&host, "sleep 1001")), limit);
    let late = client.call("exec.run", &json!({"command": "exec sleep 1002", "timeout": 0.2}));
    assert_eq!(told(&late), limit);
    assert_eq!(told(&recorded(&host, "exec sleep 1002")), limit);

    let killed = client.start(&json!({"command": "exec sleep 1003", "stream": true}));
    assert_eq!(said(rexec(&host, &["kill", &killed.to_string()])).0, 0);
    assert_eq!(told(&client.note("exec.exited", killed)), stopped("kill"));
    assert_eq!(told(&recorded(&host, "exec sleep 1003")), stopped("kill"));

    let cancelled = client.start(&json!({"command": "exec sleep 1004", "stream": true}));
    client.call("exec.cancel", &json!({"run": cancelled}));
    assert_eq!(told(&client.note("exec.exited", cancelled)), stopped("caller"));
    assert_eq!(told(&recorded(&host, "exec sleep 1004")), stopped("caller"));
    let others = client.start(&json!({"command": "exec sleep 1005", "stream": true}));
    Client::new(&host).call("exec.cancel", &json!({"run": others}));
    assert_eq!(told(&client.note("exec.exited", others)), stopped("client"));
    assert_eq!(told(&recorded(&host, "exec sleep 1005")), stopped("client"));

    let mut caller = rexec(&host, &["exec", "--", "sleep", "1006"]).spawn().expect("the program starts");
    let has_begun = |journal: &Journal| journal.of_type("start").any(|start| start["command"] == "sleep 1006");
    host.wait_for("the start", |journal| has_begun(journal).then_some(()));
    caller.kill().expect("it lives");
    caller.wait().expect("it ends");
    assert_eq!(told(&recorded(&host, "sleep 1006")), stopped("caller"));

    let own = client.call("exec.run", &json!({"command": "kill -TERM $$"}));
    assert_eq!(told(&own), (143, Some(15), None, None), "nobody else ended it");
    assert_eq!(told(&recorded(&host, "kill -TERM $$")), told(&own));
    let text = said(rexec(&host, &["log"])).1;
    assert!(
        ["  by kill  ", "  by caller  ", "  by client  ", "  timeout  "].iter().all(|word| text.contains(word)),
        "{text}"
    );
    waiting::wait_until("the console tells", || {
        let console = host.console_text();
        console.contains("exit 124 · SIGTERM · ") && console.contains(" · aborted by kill")
    });

    client.start(&json!({"command": "exec sleep 1007"}));
    host.wait_for("the start", |journal| {
        journal.of_type("start").any(|start| start["command"] == "exec sleep 1007").then_some(())
    });
    let (_home, _warden) = host.end_by(Signal::SIGTERM);
    assert_eq!(told(Journal::read(&home).end_of("exec sleep 1007").expect("a record")), stopped("host"));
}

#[test]
fn the_end_of_a_project_session_is_told_as_the_one_who_ended_its_run() {
    let host = Host::with(PLAIN);
    let mut client = Client::new(&host);
    let dir = host.home.join("shop");
    std::fs::create_dir(&dir).expect("a directory");
    let project = client.call("session.create", &json!({"dir": dir}));
    let run = client.start(&json!({"command": "exec sleep 1008", "dir": dir, "stream": true}));
    client.call("session.destroy", &json!({"session": project["session"]}));
    assert_eq!(told(&client.note("exec.exited", run)), stopped("project"));
    assert_eq!(told(&recorded(&host, "exec sleep 1008")), stopped("project"));
    waiting::wait_until("the console tells", || host.console_text().contains(" · aborted by project"));
}
