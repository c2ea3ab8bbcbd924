//! Subscriptions that another connection resumes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::Client;
use crate::runs::rules::host;
use crate::support::host::{Host, MIRROR};

const BAD_PARAMS: i64 = -32_602;

/// What a subscription that can be resumed has told: the events, and the place behind them.
#[derive(Debug)]
struct Told {
    events: Vec<(String, u64)>,
    cursor: Value,
    /// Events that it said are gone.
    gone: u64,
}

/// Listens until a subscription has told this event of this run, and the place behind it.
fn hear_until(client: &mut Client, name: &str, run: u64) -> Told {
    let mut told = Told { events: Vec::new(), cursor: Value::Null, gone: 0 };
    loop {
        let line = client.hear().expect("the connection stays");
        match line["method"].as_str() {
            Some("events.cursor") => {
                told.cursor = line["params"]["cursor"].clone();
                told.gone += line["params"]["gone"]["events"].as_u64().unwrap_or_default();
                if told.events.iter().any(|(seen, of)| seen == name && *of == run) {
                    return told;
                }
            }
            Some(seen) => told.events.push((seen.to_owned(), line["params"]["run"].as_u64().expect("a run"))),
            None => client.keep(line),
        }
    }
}

/// The events of a run among these, in their order.
fn of_run(told: &Told, run: u64) -> Vec<&str> {
    told.events.iter().filter(|(_, of)| *of == run).map(|(name, _)| name.as_str()).collect()
}

fn begin(host: &Host) -> (Client, Value) {
    let mut client = Client::new(host);
    let answer = client.call("events.subscribe", &json!({"after": "now"}));
    assert_eq!(answer.get("gone"), None, "{answer}");
    (client, answer["cursor"].clone())
}

#[test]
fn a_client_that_comes_back_is_told_what_it_has_missed() {
    let host = Host::with(MIRROR);
    let mut other = Client::new(&host);
    let early = other.start(&json!({"command": "cat", "keep_stdin": true}));
    let (mut client, from) = begin(&host);
    let seen = other.start(&json!({"command": "echo seen"}));
    let told = hear_until(&mut client, "exec.closed", seen);
    assert_eq!(of_run(&told, seen), ["exec.started", "exec.exited", "exec.closed"], "no output is told");
    drop(client);
    // An agent's command, and the end of one that the client knew.
    host.run("echo missed");
    let missed = seen + 1;
    other.call("exec.write", &json!({"run": early, "text": "", "eof": true}));
    other.call("exec.wait", &json!({"run": early, "for": "exit"}));
    let last = other.call("exec.run", &json!({"command": "true"}))["run"].as_u64().expect("a number");
    let mut client = Client::new(&host);
    let answer = client.call("events.subscribe", &json!({"after": told.cursor}));
    assert_eq!((&answer["cursor"], answer.get("gone")), (&told.cursor, None), "{answer}");
    let again = hear_until(&mut client, "exec.closed", last);
    assert_eq!(of_run(&again, seen), [""; 0], "nothing comes twice");
    assert_eq!(of_run(&again, missed), ["exec.started", "exec.exited", "exec.closed"]);
    assert_eq!(of_run(&again, early), ["exec.exited", "exec.closed"]);
    // It goes on, and by choice with some words only; everything is still there behind the first place.
    let next = other.start(&json!({"command": "true"}));
    hear_until(&mut client, "exec.closed", next);
    client.call("events.subscribe", &json!({"after": from, "events": ["start"]}));
    let told = hear_until(&mut client, "exec.started", next);
    let runs: BTreeSet<u64> = told.events.iter().map(|(_, run)| *run).collect();
    assert_eq!(runs, [seen, missed, last, next].into());
    assert!(told.events.iter().all(|(name, _)| name == "exec.started"), "{told:?}");
}

#[test]
fn what_is_gone_is_counted_to_the_event() {
    let host = Host::with(MIRROR);
    let (client, from) = begin(&host);
    drop(client);
    let mut other = Client::new(&host);
    // Starts of this length fill the list.
    let why = "x".repeat(900_000);
    for _ in 0..3 {
        other.call("exec.run", &json!({"command": "true", "why": why}));
    }
    let mut client = Client::new(&host);
    let answer = client.call("events.subscribe", &json!({"after": from}));
    let gone = answer["gone"]["events"].as_u64().expect("a number");
    let told = hear_until(&mut client, "exec.closed", 3);
    assert_eq!(gone + told.events.len() as u64, 9, "three events of each run: {answer} {told:?}");
    assert!(gone > 3 && told.gone == 0, "{answer} {told:?}");
    // Of another host, nobody can say how many there were.
    let other_host = Host::with(MIRROR);
    for _ in 0..2 {
        let mut stranger = Client::new(&other_host);
        let answer = stranger.call("events.subscribe", &json!({"after": told.cursor}));
        assert_eq!(answer["gone"], json!({}), "{answer}");
        assert_ne!(answer["cursor"], told.cursor);
    }
}

#[test]
fn a_client_that_takes_nothing_is_told_how_much_it_has_missed() {
    let host = Host::with(MIRROR);
    let (mut client, _) = begin(&host);
    let mut other = Client::new(&host);
    let why = "x".repeat(900_000);
    let runs = 12;
    for _ in 0..runs {
        other.call("exec.run", &json!({"command": "true", "why": why}));
    }
    let last = other.call("exec.run", &json!({"command": "true"}))["run"].as_u64().expect("a number");
    let told = hear_until(&mut client, "exec.closed", last);
    assert!(told.gone > 0, "{told:?}");
    assert_eq!(told.gone + told.events.len() as u64, 3 * (runs + 1), "{told:?}");
}

#[test]
fn a_decision_is_told_to_one_who_comes_back() {
    let host = host("[gate]\nmode = 'enforce'\naway = 'wait'\n[[rule]]\ndo = 'ask'\nrun = 'echo'\n", MIRROR);
    let (client, from) = begin(&host);
    drop(client);
    let mut other = Client::new(&host);
    let held = other.start(&json!({"command": "echo"}));
    other.call("exec.decide", &json!({"run": held, "allow": true}));
    other.call("exec.wait", &json!({"run": held, "for": "exit"}));
    let mut client = Client::new(&host);
    client.call("events.subscribe", &json!({"after": from}));
    let told = hear_until(&mut client, "exec.exited", held);
    assert_eq!(of_run(&told, held)[..4], ["exec.started", "exec.held", "exec.decided", "exec.exited"], "{told:?}");
}

#[test]
fn what_such_a_subscription_cannot_do_is_refused() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    for (params, field) in [
        (json!({"after": "yesterday"}), "after: "),
        (json!({"after": ""}), "after: "),
        (json!({"after": "now", "runs": [1]}), "runs: "),
        (json!({"after": "now", "events": ["exit", "output"]}), "events: "),
    ] {
        let (code, sentence) = client.error("events.subscribe", &params);
        assert_eq!(code, BAD_PARAMS, "{params}");
        assert!(sentence.starts_with(field), "{params}: {sentence}");
    }
    let number = client.call("events.subscribe", &json!({"after": "now"}))["subscription"].clone();
    client.call("events.unsubscribe", &json!({"subscription": number}));
    let run = client.call("exec.run", &json!({"command": "true"}))["run"].as_u64().expect("a number");
    client.call("hello", &json!({}));
    assert_eq!(client.told(run), [Value::Null; 0], "nothing is told any more");
}
