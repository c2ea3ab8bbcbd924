//! The exchange in `rexec help protocol`, line by line, the clients in `rexec help clients`, and the script in the README.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use super::client::Client;
use crate::support::host::{Host, MIRROR};
use crate::support::programs;

/// Fields whose values differ from one time to the next.
const VARYING: [&str; 4] = ["version", "pid", "duration_ms", "at_ms"];

fn without_varying(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| !VARYING.contains(&name.as_str()));
            fields.values_mut().for_each(|field| *field = without_varying(field.take()));
        }
        Value::Array(all) => all.iter_mut().for_each(|one| *one = without_varying(one.take())),
        _ => {}
    }
    value
}

/// The lines of the exchange, unfolded: whether the client sends it, and the line.
fn exchange() -> Vec<(bool, String)> {
    let page = include_str!("../../../src/cli/help/protocol.md");
    let mut lines: Vec<(bool, String)> = Vec::new();
    for line in page.lines() {
        if let Some(sent) = line.strip_prefix("    > ") {
            lines.push((true, sent.to_owned()));
        } else if let Some(received) = line.strip_prefix("    < ") {
            lines.push((false, received.to_owned()));
        } else if let Some(more) = line.strip_prefix("      ")
            && let Some((_, last)) = lines.last_mut()
        {
            // A fold stands for a blank where it is in a text.
            let is_in_text = last.matches('"').count() - last.matches("\\\"").count();
            if !is_in_text.is_multiple_of(2) {
                last.push(' ');
            }
            last.push_str(more);
        }
    }
    lines
}

#[test]
fn the_exchange_of_the_manual_is_what_happens() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let lines = exchange();
    assert!(lines.len() > 20, "the exchange is found");
    for (is_sent, line) in &lines {
        if *is_sent {
            client.say(line);
            continue;
        }
        let expected: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let seen = client.hear().expect("the connection stays");
        assert_eq!(without_varying(seen), without_varying(expected), "{line}");
    }
}

/// The script has to work for whoever copies it.
#[test]
fn the_script_of_the_readme_starts_reads_and_kills_a_server() {
    if !programs::has("python3") {
        return programs::skipped("there is no python3");
    }
    let readme = include_str!("../../../README.md");
    let script = readme.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a script");
    assert!(script.lines().count() < 40, "{} lines", script.lines().count());
    let host = Host::with(MIRROR);
    let path = host.home.join("script.py");
    fs::write(&path, script).expect("a file");
    let mut command = programs::command("python3");
    command.arg(&path).current_dir(host.home.path()).env("REXEC_SOCKET", host.socket()).stdin(Stdio::null());
    let seen = command.output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
    assert!(seen.status.success(), "{out}{err}");
    assert!(out.contains("listens on") && out.contains("GET /") && out.contains("ended with 143"), "{out}{err}");
}

/// The longest client that somebody reads before writing one.
const CLIENT_LINES_MAX: usize = 60;

/// Saves and runs a client with the commands that the page has for it, and compares what it prints with what the page
/// says that it prints.
fn run_client(program: &str, file: &str) {
    if !programs::has(program) {
        return;
    }
    let host = Host::with(MIRROR);
    let page = programs::command(env!("CARGO_BIN_EXE_rexec")).args(["help", "clients"]).output().expect("it runs");
    let page = String::from_utf8(page.stdout).expect("text");
    let lines = || page.lines().filter_map(|line| line.strip_prefix("    "));
    let commands: Vec<&str> = lines().filter(|line| line.ends_with(file)).collect();
    assert_eq!(commands.len(), 2, "one saves it, and one runs it: {commands:?}");
    let expected: Vec<&str> = lines().filter(|line| line.starts_with("run 1") || line.starts_with("run 2")).collect();
    let ran = |command: &str| {
        let mut shell = programs::command("sh");
        let script = format!("rexec() {{ '{}' \"$@\"; }}; {command}", env!("CARGO_BIN_EXE_rexec"));
        shell.args(["-c", &script]).current_dir(host.home.path()).env("REXEC_SOCKET", host.socket());
        let seen = shell.stdin(Stdio::null()).output().expect("it runs");
        let (out, err) = (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
        assert!(seen.status.success() && err.is_empty(), "{command}: {out}{err}");
        out.into_owned()
    };
    ran(commands[0]);
    let saved = fs::read_to_string(host.home.join(file)).expect("a client");
    assert!(saved.trim().lines().count() <= CLIENT_LINES_MAX, "{} lines", saved.trim().lines().count());
    assert_eq!(ran(commands[1]).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_client_in_python_does_what_its_page_says() {
    run_client("python3", "client.py");
}

#[test]
fn the_client_in_javascript_does_what_its_page_says() {
    run_client("node", "client.mjs");
}
