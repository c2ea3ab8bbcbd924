//! A person who is not there is told by `--notify` of what was refused, and may say yes for the next run by its token.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::held::{KEEPS_TOKEN, answer, asks, refused, start};
use super::rules::{end, host};
use crate::exec::{rexec, said};
use crate::rpc::client::Client;
use crate::support::call::Target;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::waiting;

/// Nobody is at the console of a test.
const RULES: &str = r#"
[gate]
mode = "enforce"
away = "deny"

[[rule]]
name = "brief"
do = "ask"
run = "printf"
with = ["brief"]
away = "wait"
wait = "1s"

[[rule]]
name = "here"
do = "ask"
run = "printf"
with = ["here"]
"#;

fn token(host: &Host, run: u64) -> String {
    fs::read_to_string(host.home.join(&format!("token-{run}"))).unwrap_or_default()
}

/// Waits until the command of `--notify` has the token of a run.
fn is_told_of(host: &Host, run: u64) {
    waiting::wait_until("the token is there", || !token(host, run).is_empty());
}

/// What `rexec answer` with these words says to an agent's command.
fn tries(host: &Host, words: &str) -> (i32, String, String) {
    let ended = host.run(&format!("{} answer {words}", programs::rexec().display()));
    (ended.code(), ended.out(), ended.err())
}

#[test]
fn a_person_is_told_once_of_what_was_refused_and_lets_its_next_run_pass() {
    let host = host(RULES, Setup { flags: &["--notify", KEEPS_TOKEN], ..PLAIN });
    let mut client = Client::new(&host);
    client.call("events.subscribe", &json!({"events": ["held"]}));
    let here = "printf here; touch ran";
    refused(&mut start(&host, here));
    let held = client.note("exec.held", 1);
    assert_eq!((&held["leaf"], &held["wait_ms"]), (&json!("printf here"), &json!(0)), "{held}");
    let decided = json!({"run": 1, "allow": false, "by": "away", "waited_ms": 0});
    assert_eq!(client.note("exec.decided", 1), decided);
    is_told_of(&host, 1);
    let environment = fs::read_to_string(host.home.join("env")).expect("a file");
    let message = "REXEC_MESSAGE=#1 was refused, for nobody is there; may it run next time: printf here\n";
    assert!(environment.contains(message) && environment.contains("REXEC_COMMAND=printf here; touch ran\n"));
    assert!(!environment.contains(token(&host, 1).trim()), "{environment}");
    // The same again, and another one.
    refused(&mut start(&host, here));
    refused(&mut start(&host, "printf here too"));
    is_told_of(&host, 3);
    for words in ["1 yes --token token-3", "2 yes --token token-1", "2 yes --token token-2", "1 yes --token /dev/null"]
    {
        assert_eq!(tries(&host, words).0, 1, "{words}");
    }
    let (code, told, errors) = tries(&host, "1 yes --token - <token-1");
    assert!(code == 0 && told.starts_with("#1 has ended; the next run of it may pass, until "), "{told}{errors}");
    host.console_says("… what #2 asked about may run next time: who has its token said yes\n");
    assert_eq!(client.note("exec.decided", 2)["by"], "away");
    let mut note = client.note("exec.decided", 2);
    assert!(note["waited_ms"].take().is_u64(), "{note}");
    let decided = json!({"run": 2, "allow": true, "by": "token", "waited_ms": null, "next_ms": 600_000});
    assert_eq!(note, decided);
    let (_, _, errors) = tries(&host, "1 no --token token-1");
    assert!(errors.contains("it is not that of run 1, or that asks no more"), "{errors}");
    assert_eq!(host.run(here).out(), "here");
    assert!(host.home.join("ran").exists());
    host.wait_for("the end of what passed", |journal| {
        journal.of_type("end").find(|end| end["gate"]["by"] == "later").map(|_| ())
    });
    assert_eq!(tries(&host, "3 no --token token-3").0, 0);
    assert_eq!(answer(&host, "3 yes").0, 1, "a no takes it off the list");
    drop(client);
    assert_eq!(token(&host, 2), "");
    host.finish();
}

/// A phone may be looked at when the time for its answer is over.
#[test]
fn the_token_of_a_held_command_outlives_its_hold() {
    let host = host(RULES, Setup { flags: &["--notify", KEEPS_TOKEN], ..PLAIN });
    let mut held = start(&host, "printf brief");
    asks(&host, 1);
    is_told_of(&host, 1);
    refused(&mut held);
    assert_eq!(end(&host, 1)["gate"]["by"], "timeout");
    let (code, told, errors) = tries(&host, "1 yes --token token-1");
    assert!(code == 0 && told.starts_with("#1 has ended; the next run of it may pass, until "), "{told}{errors}");
    assert_eq!(host.run("printf brief").out(), "brief");
    assert_eq!(tries(&host, "1 yes --token token-1").0, 1, "once");
    host.finish();
}

/// An agent that tries one command after the other starts no process for each, and hides no other agent and nothing that
/// waits.
#[test]
fn an_agent_with_many_refused_commands_calls_its_user_a_few_times() {
    const WAITS: &str = "cd; echo $REXEC_AGENT >>told; exec sleep 1000";
    let host = host(RULES, Setup { flags: &["--notify", WAITS], ..PLAIN });
    let told = || fs::read_to_string(host.home.join("told")).unwrap_or_default();
    let refuse = |script: &str, env: &[&str]| {
        let call = env.iter().fold(host.call(script), |call, entry| call.env(entry));
        refused(&mut call.start(Target::Shim(&host.socket())).expect("the shim starts"));
    };
    for number in 0..20 {
        refuse(&format!("printf here {number}"), &[]);
        waiting::wait_until("it is called", || told().lines().count() >= (number + 1).min(8));
    }
    host.console_says("… --notify: too many refused commands within 10 minutes; rexec ps --asks lists further ones\n");
    refuse("printf here", &["CODEX_CI=1", "CODEX_THREAD_ID=c-1"]);
    waiting::wait_until("another agent is heard", || told().lines().count() == 9);
    assert!(told().ends_with("Codex\n"), "{}", told());
    assert_eq!(host.console_text().matches("too many refused").count(), 1);
    let mut held = start(&host, "printf brief");
    waiting::wait_until("the user is called for what waits", || told().lines().count() == 10);
    refused(&mut held);
    let lines = said(rexec(&host, &["ps", "--asks", "--json"])).1;
    let runs: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(runs.len(), 22);
    let sleepers = || host.tree().into_iter().filter(|process| process.comm == "sleep").collect::<Vec<_>>();
    waiting::wait_until("all calls are on their way", || sleepers().len() == 10);
    sleepers().iter().for_each(|sleeper| sleeper.signal(Signal::SIGKILL));
    host.finish();
}
