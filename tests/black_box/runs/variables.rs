//! The variables that the host adds to a command's environment.

use serde_json::{Value, json};

use crate::support::crowd::{answer, ask_in_json};
use crate::support::host::{Host, MIRROR, Setup};

/// The environment that a request's command has.
fn environment(host: &Host, request: &Value) -> Vec<String> {
    let mut request = request.clone();
    for (field, value) in [("whoami", json!("Me")), ("dir", json!("/")), ("exec", json!(["/usr/bin/env"]))] {
        request[field] = value;
    }
    let seen = answer(ask_in_json(host, &request));
    seen["output"].as_str().unwrap_or_else(|| panic!("output: {seen}")).lines().map(str::to_owned).collect()
}

fn value<'a>(env: &'a [String], name: &str) -> Option<&'a str> {
    env.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

#[test]
fn a_command_in_json_knows_its_number_and_its_caller() {
    let host = Host::with(MIRROR);
    let env = environment(&host, &json!({}));
    let start = host.wait_for("its start", |journal| journal.of_type("start").next().cloned());
    assert_eq!(value(&env, "REXEC_SEQ"), Some(start["seq"].to_string().as_str()), "{env:?}");
    assert_eq!(value(&env, "REXEC_AGENT"), Some("Me"), "{env:?}");
    let env = environment(&host, &json!({"envs": {"REXEC_SEQ": "7", "REXEC_AGENT": "forged", "REXEC_WHOAMI": "you"}}));
    let all: Vec<&String> = env.iter().filter(|entry| entry.starts_with("REXEC_")).collect();
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(value(&env, "REXEC_WHOAMI"), Some("Me"), "as the first tool of this name does");
    assert_eq!((value(&env, "REXEC_SEQ"), value(&env, "REXEC_AGENT")), (Some("2"), Some("Me")));
    let cleared = environment(&host, &json!({"clear_env": true}));
    assert_eq!(cleared, ["REXEC_INSIDE=1", "REXEC_WHOAMI=Me"], "it gets what its caller gives");
}

/// An agent keeps what its shell exports and sets it again later, so nothing in a shim's environment may differ from run
/// to run, unless a person wants that.
#[test]
fn a_shims_command_has_markers_only_where_they_are_wanted() {
    let host = Host::with(MIRROR);
    let show = "env | grep ^REXEC_ | sort";
    let seen = [host.run(show).out(), host.run(show).out()];
    assert_eq!(seen, ["REXEC_INSIDE=1\n", "REXEC_INSIDE=1\n"]);
    let host = Host::with(Setup { flags: &["--markers"], ..MIRROR });
    for seq in 1..=3 {
        let seen = host.run(show);
        assert_eq!(seen.out(), format!("REXEC_AGENT=shell\nREXEC_INSIDE=1\nREXEC_SEQ={seq}\n"));
    }
    let named = host.call("echo $REXEC_AGENT $REXEC_SEQ").env("REXEC_WHOAMI=Ann").env("REXEC_SEQ=99");
    let seen = named.run(crate::support::call::Target::Shim(&host.socket()));
    assert_eq!(seen.out(), "Ann 4\n");
    let look = host.call("env").env("CLAUDECODE=1").env("AI_AGENT=claude-code_2-1-329_harness");
    let seen = look.run(crate::support::call::Target::Shim(&host.socket())).out();
    assert!(seen.contains("AI_AGENT=") && !seen.contains("REXEC_SEQ="), "an agent's look at the shell: {seen}");
}

#[test]
fn the_profile_ci_is_set_before_the_requests_own_variables() {
    let host = Host::with(Setup { flags: &["--prompts", "fail"], ..MIRROR });
    let plain = environment(&host, &json!({}));
    assert_eq!(value(&plain, "CI"), None, "{plain:?}");
    assert_eq!(environment(&host, &json!({"profile": "plain"})).len(), plain.len());
    let own = json!({"profile": "ci", "envs": {"PAGER": "more", "MINE": "1"}});
    let env = environment(&host, &own);
    for (name, expected) in [
        ("CI", "true"),
        ("NO_COLOR", "1"),
        ("TERM", "dumb"),
        ("GIT_PAGER", "cat"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("PAGER", "more"),
        ("MINE", "1"),
    ] {
        assert_eq!(value(&env, name), Some(expected), "{name}: {env:?}");
    }
    let attended = Host::with(Setup { flags: &["--prompts", "ask"], ..MIRROR });
    assert_eq!(value(&environment(&attended, &json!({"profile": "ci"})), "GIT_TERMINAL_PROMPT"), None);
    let terminal = Host::start();
    let env = environment(&terminal, &json!({"profile": "ci"}));
    assert_ne!(value(&env, "TERM"), Some("dumb"), "its output is a terminal: {env:?}");
    let wrong = json!({"whoami": "Me", "dir": "/", "exec": ["true"], "profile": "dev"});
    let seen = answer(ask_in_json(&terminal, &wrong));
    assert!(seen["message"].as_str().is_some_and(|text| text.contains("`dev`")), "{seen}");
}
