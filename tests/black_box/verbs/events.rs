//! `rexec events`: a line for each thing that happens to commands.

use std::fs;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::live::rexec;
use crate::rpc::client::Client;
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// `rexec events` with its output in a file. It tells already when this returns.
fn events(host: &Host, name: &str, args: &[&str], client: &mut Client) -> Child {
    let out = fs::File::create(host.home.join(name)).expect("a file");
    let mut command = programs::command(programs::rexec());
    command.arg("events").args(args).env_clear().env("REXEC_SOCKET", host.socket());
    let child = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::inherit()).spawn().expect("the program starts");
    let tells = || {
        client.call("exec.run", &json!({"command": "true"}));
        !shown(host, name).is_empty()
    };
    assert!(waiting::until_true(PATIENCE, tells), "{name} says nothing");
    child
}

fn shown(host: &Host, name: &str) -> String {
    fs::read_to_string(host.home.join(name)).unwrap_or_default()
}

/// The words of a line without the times in it.
fn timeless(line: &str) -> String {
    line.split(" after ").next().unwrap_or_default().to_owned()
}

#[test]
fn a_command_that_is_held_is_told_with_the_decision() {
    let rules = "[gate]\nmode = 'enforce'\naway = 'wait'\n[[rule]]\ndo = 'ask'\nrun = 'echo'\n";
    let host = crate::runs::rules::host(rules, MIRROR);
    let mut client = Client::new(&host);
    let mut people = events(&host, "people", &[], &mut client);
    for allow in [true, false] {
        let run = client.start(&json!({"command": "true; echo x"}));
        client.call("exec.decide", &json!({"run": run, "allow": allow}));
        let decided = if allow { "may run" } else { "may not run" };
        let expected = format!("#{run} asks whether it may run: echo x\n#{run} {decided}\n");
        // The end of the run before may come between.
        let own = |text: String| -> String {
            text.split_inclusive('\n').filter(|line| line.starts_with(&format!("#{run} "))).collect()
        };
        let is_there = || own(shown(&host, "people")).contains(&expected);
        assert!(waiting::until_true(PATIENCE, is_there), "{}", shown(&host, "people"));
    }
    people.kill().expect("it runs");
    people.wait().expect("its end");
}

#[test]
fn events_are_told_until_the_host_ends() {
    let mut host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let mut people = events(&host, "people", &[], &mut client);
    let mut json = events(&host, "json", &["--json"], &mut client);
    let params = json!({"command": "exit 3", "whoami": "Ann", "why": "a try"});
    let run = client.call("exec.run", &params)["run"].as_u64().expect("a number");
    let is_there =
        || shown(&host, "people").contains(&format!("#{run} ended")) && shown(&host, "json").ends_with("0}}\n");
    assert!(waiting::until_true(PATIENCE, is_there), "{}", shown(&host, "people"));
    host.signal(Signal::SIGTERM);
    assert!(people.wait().expect("it ends with the host").success());
    assert!(json.wait().expect("it ends with the host").success());
    let lines = shown(&host, "people");
    let of_run: Vec<String> =
        lines.lines().filter(|line| line.starts_with(&format!("#{run} "))).map(timeless).collect();
    assert_eq!(of_run, [format!("#{run} Ann started: exit 3"), format!("#{run} ended with 3")]);
    let told: Vec<Value> =
        shown(&host, "json").lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let told: Vec<&Value> = told.iter().filter(|event| event["params"]["run"] == run).collect();
    let names: Vec<&str> = told.iter().filter_map(|event| event["method"].as_str()).collect();
    assert_eq!(names, ["exec.started", "exec.exited", "exec.closed"]);
    assert_eq!(told[0]["params"]["why"], "a try");
    drop(client);
    host.check_end();
}

#[test]
fn a_later_call_goes_on_behind_the_last_cursor() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let mut first = events(&host, "first", &["--json", "--after", "now"], &mut client);
    let event = |line: &str| serde_json::from_str::<Value>(line).expect("an event");
    let is_told = || shown(&host, "first").lines().last().is_some_and(|line| line.contains("events.cursor"));
    let run = client.call("exec.run", &json!({"command": "true"}))["run"].clone();
    let is_over = || {
        let lines = shown(&host, "first");
        is_told()
            && lines.lines().map(event).any(|told| told["method"] == "exec.closed" && told["params"]["run"] == run)
    };
    assert!(waiting::until_true(PATIENCE, is_over), "{}", shown(&host, "first"));
    first.kill().expect("it runs");
    first.wait().expect("its end");
    let missed = client.call("exec.run", &json!({"command": "exit 5"}))["run"].clone();
    let lines = shown(&host, "first");
    let cursor = event(lines.lines().last().expect("a line"))["params"]["cursor"].clone();
    let mut again = events(&host, "again", &["--json", "--after", cursor.as_str().expect("a text")], &mut client);
    let starts = || -> Vec<Value> {
        let lines = shown(&host, "again");
        let told = lines.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(event);
        told.filter(|told| told["method"] == "exec.started").map(|mut told| told["params"]["run"].take()).collect()
    };
    assert!(waiting::until_true(PATIENCE, || !starts().is_empty()), "{}", shown(&host, "again"));
    assert_eq!(starts()[0], missed, "nothing before it, and it first");
    let lines = shown(&host, "again");
    let begin = event(lines.lines().next().expect("a line"));
    assert_eq!((&begin["method"], &begin["params"]["cursor"]), (&json!("events.cursor"), &cursor));
    assert_eq!(begin["params"].get("gone"), None);
    again.kill().expect("it runs");
    again.wait().expect("its end");
}

#[test]
fn events_of_one_command_end_with_it() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let start = json!({"command": "read line; exit 4", "keep_stdin": true, "background": true, "name": "web"});
    let run = client.start(&start);
    let other = client.start(&json!({"command": "sleep 1000"}));
    let mut command = programs::command(programs::rexec());
    command.args(["events", "web"]).env_clear().env("REXEC_SOCKET", host.socket()).current_dir(host.home.path());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
    client.call("exec.write", &json!({"run": run, "text": "go\n"}));
    let output = child.wait_with_output().expect("it ends with the command");
    assert_eq!(timeless(&String::from_utf8_lossy(&output.stdout)), format!("#{run} ended with 4"));
    let killed = client.start(&json!({"command": "sleep 1000", "timeout": 0.01}));
    client.call("exec.wait", &json!({"run": killed, "for": "exit"}));
    let past = rexec(&host, &["events", &killed.to_string()]);
    assert!(past.out.ends_with(": timeout\n") && past.code == 0, "what has ended is told at once: {}", past.out);
    assert_eq!(rexec(&host, &["events", "77"]).code, 3);
    client.call("exec.cancel", &json!({"run": other}));
    client.call("exec.wait", &json!({"run": other, "for": "exit"}));
    drop(client);
    host.finish();
}
