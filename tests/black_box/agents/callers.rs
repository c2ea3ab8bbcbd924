//! Which agent calls, in which session, as the console, the journal and `rexec` tell.

use serde_json::Value;

use super::{Place, host, printed};
use crate::support::call::Target;
use crate::support::host::Host;
use crate::support::programs;
use crate::verbs::live;

/// Runs a command below these variables; returns the record of its end.
fn called(host: &Host, number: u32, variables: &[&str]) -> Value {
    let command = format!("echo call {number}");
    let call = variables.iter().fold(host.call(&command), |call, variable| call.env(variable));
    assert_eq!(call.run(Target::Shim(&host.socket())).code(), 0);
    host.wait_for("its end", |journal| journal.end_of(&command).cloned())
}

/// Some fields of a record, by name.
fn fields(record: &Value, names: &[&str]) -> String {
    names.iter().map(|name| record[*name].to_string()).collect::<Vec<_>>().join(" ")
}

const MARKS: [&str; 6] = ["agent", "agent_version", "session", "session_number", "call", "role"];

/// What `rexec` prints with these arguments.
fn rexec(host: &Host, args: &[&str]) -> String {
    let live::Said { code, out, err } = live::rexec(host, args);
    assert!(code == 0 && err.is_empty(), "{args:?}: {code} {err}");
    out
}

#[test]
fn the_journal_has_the_agents_version_session_and_call() {
    let host = host();
    let claude = ["CLAUDECODE=1", "AI_AGENT=claude-code_2-1-329_agent"];
    let codex = ["CODEX_CI=1", "CODEX_VERSION=0.169.0", "CODEX_SESSION_ID=s-01a1fc3b-5baf-7452-81d2"];
    for (number, own, variables, expected) in [
        (1, &claude[..], &["CLAUDE_CODE_SESSION_ID=a-1"][..], r#""claude" "2.1.329" "a-1" null null null"#),
        (
            2,
            &claude,
            &["CLAUDE_CODE_SESSION_ID=b-8c1f9d20-77e4-4b1a"],
            r#""claude" "2.1.329" "b-8c1f9d20-77e4-4b1a" 2 null null"#,
        ),
        (
            3,
            &codex,
            &["CODEX_THREAD_ID=s-01a1fc3b-5baf-7452-81d2", "CODEX_TOOL_CALL_ID=c"],
            r#""codex" "0.169.0" "s-01a1fc3b-5baf-7452-81d2" null "c" null"#,
        ),
        (4, &codex, &["CODEX_THREAD_ID=t-9"], r#""codex" "0.169.0" "s-01a1fc3b-5baf-7452-81d2" null null "subagent""#),
        (5, &["CODEX_HOME=/h"], &[], r#""codex" null null null null "hook""#),
        (
            6,
            &codex,
            &["CODEX_THREAD_ID=s-01a1fc3b-5baf-7452-81d2", "REXEC_WHOAMI=Ann"],
            r#""codex" "0.169.0" "s-01a1fc3b-5baf-7452-81d2" null null null"#,
        ),
        (7, &[], &[], "null null null null null null"),
    ] {
        let record = called(&host, number, &[own, variables].concat());
        assert_eq!(fields(&record, &MARKS), expected, "{number}");
    }
    let listed = |args: &[&str]| {
        let lines = rexec(&host, &[&["log", "--json"], args].concat());
        let seqs = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].to_string());
        seqs.collect::<Vec<_>>().join(" ")
    };
    for (args, expected) in [
        (&["--agent", "claude"][..], "1 2"),
        (&["--agent", "claude~2"], "2"),
        (&["--agent", "codex"], "3 4 5"),
        (&["--agent", "codex/hook"], "5"),
        (&["--agent", "ann"], "6"),
        (&["--session", "s-01a1fc3b-5baf-7452-81d2"], "3 4 6"),
        (&["--session", "b"], "2"),
        (&["--agent", "codex", "--session", "s-"], "3 4"),
    ] {
        assert_eq!(listed(args), expected, "{args:?}");
    }
    let log = rexec(&host, &["log"]);
    assert!(["  claude ", "  claude~2 ", "  codex/hook ", "  Ann "].iter().all(|name| log.contains(name)), "{log}");
    let shown = rexec(&host, &["show", "2"]);
    assert!(shown.contains("claude~2 (Claude Code 2.1.329)") && shown.contains("b-8c1f9d20-77e4-4b1a"), "{shown}");
    assert!(rexec(&host, &["show", "6"]).contains("Ann (codex 0.169.0)"), "its program is named, too");
    host.finish();
}

#[test]
fn rexec_ps_tells_the_sessions_of_an_agent_apart() {
    let host = host();
    let running: Vec<_> = ["a", "b"]
        .iter()
        .map(|session| {
            let call = host.call("sleep 1000").env("CLAUDECODE=1").env(&format!("CLAUDE_CODE_SESSION_ID={session}"));
            let call = call.start(Target::Shim(&host.socket())).expect("the shim starts");
            let is_there = |journal: &crate::support::journal::Journal| {
                journal.of_type("start").any(|start| start["session"] == *session).then_some(())
            };
            host.wait_for("its start", is_there);
            call
        })
        .collect();
    let table = rexec(&host, &["ps"]);
    let agents: Vec<_> = table.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(agents.starts_with(&["AGENT", "claude", "claude~2"]), "{table}");
    assert!(table.contains("2 commands of 1 agent ·"), "two sessions are one agent: {table}");
    let first: Value =
        serde_json::from_str(rexec(&host, &["ps", "--json"]).lines().next().expect("a line")).expect("JSON");
    assert_eq!(fields(&first, &["agent", "session"]), r#""claude" "a""#);
    rexec(&host, &["kill", "--agent", "claude~2"]);
    assert_eq!(rexec(&host, &["ps"]).matches("claude").count(), 1, "the other one runs on");
    rexec(&host, &["kill", "--all"]);
    drop(running);
    host.finish();
}

/// Agents that set no variable, or none that names their sessions.
#[test]
fn an_agent_without_variables_is_known_by_its_process() {
    let (place, host) = (Place::new(), host());
    let shim = programs::shims().join("rexec-bash");
    let script = format!("#!/bin/sh\nsh -c '{} -c \"$1\"; :' sh \"$1\"; :\n", shim.display());
    let socket = host.socket();
    let calls = |program: &str, command: &str, variable: Option<(&str, &str)>| {
        let path = place.program(program, &script);
        let mut agent = place.alone(path);
        agent.env("REXEC_SOCKET", &socket).arg(command).envs(variable);
        printed(&mut agent);
        host.wait_for("its end", |journal| journal.end_of(command).cloned())
    };
    let of = |record: &Value| fields(record, &["whoami", "agent", "session_number", "role"]);
    assert_eq!(of(&calls("goose", ": 1", None)), r#""Goose" "goose" null null"#);
    assert_eq!(of(&calls("goose", ": 2", None)), r#""Goose" "goose" 2 null"#, "another process of it");
    assert_eq!(of(&calls("codex", ": 3", None)), r#""Codex" "codex" null "hook""#, "its commands have variables");
    assert_eq!(of(&calls("make", ": 4", None)), r#""shell" null null null"#);
    assert_eq!(of(&calls("goose", ": 5", Some(("REXEC_WHOAMI", "Ann")))), r#""Ann" null null null"#);
    assert_eq!(of(&calls("goose", ": 6", Some(("CLAUDECODE", "1")))), r#""Claude Code" "claude" null null"#);
    let pi = Some(("PI_CODING_AGENT", "true"));
    assert_eq!(of(&calls("node", ": 7", pi)), r#""pi" "pi" null null"#);
    assert_eq!(of(&calls("node", ": 8", pi)), r#""pi" "pi" 2 null"#);
    host.finish();
}
