//! A thousand requests of all methods come in one write. Each is answered once, on one connection and on many at once,
//! and a client that takes none of its answers holds up nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::client::Client;
use crate::support::host::{Host, MIRROR};
use crate::support::procs;
use crate::support::waiting;

/// The runs and the directory that requests are about.
#[derive(Debug, Clone)]
struct Targets {
    /// Takes input, and lives.
    live: u64,
    /// Has ended.
    ended: u64,
    dir: String,
}

impl Targets {
    fn new(client: &mut Client, dir: String) -> Self {
        let live = client.start(&json!({"command": "cat", "keep_stdin": true, "dir": "/"}));
        let ended = client.call("exec.run", &json!({"command": "echo out", "dir": "/"}))["run"].as_u64();
        Self { live, ended: ended.expect("a number"), dir }
    }

    /// Parameters for a method. The `round` is how often it was asked before.
    fn params(&self, method: &str, round: u64) -> Value {
        let Self { live, ended, dir } = self;
        match method {
            // Most starts are refused: commands take longer than requests.
            "exec.run" | "exec.start" | "exec.runBackground" | "pty.spawn" if !round.is_multiple_of(8) => {
                json!({"argv": []})
            }
            "exec.run" | "exec.start" | "exec.runBackground" | "pty.spawn" => json!({"argv": ["true"], "dir": "/"}),
            "exec.write" => json!({"run": live, "text": format!("{round}\n")}),
            "exec.pause" | "exec.resume" | "exec.status" => json!({"run": live}),
            "exec.signal" => json!({"run": live, "signal": "CONT"}),
            "history.log" => json!({"number": 1}),
            // It is on disk a moment after it has begun.
            "history.show" | "history.out" => json!({"run": ended}),
            "exec.output" => json!({"run": ended, "after": round % 2, "wait_ms": 600_000}),
            "exec.wait" => match round % 4 {
                0 => json!({"run": ended, "for": "exit"}),
                1 => json!({"run": live, "for": "time", "timeout_ms": 1}),
                2 => json!({"run": ended, "for": "port"}),
                _ => json!({"run": live, "for": "text", "text": "0"}),
            },
            "exec.decide" => json!({"run": live, "allow": true}),
            // It keeps nothing.
            "exec.undo" => json!({"run": ended}),
            "events.subscribe" => json!({"runs": [live]}),
            "events.unsubscribe" => json!({"subscription": round}),
            "session.create" => json!({"dir": dir}),
            "exec.resize" | "pty.resize" => json!({"run": live, "rows": 10, "cols": 10}),
            "exec.cancel" | "pty.close" | "pty.write" => json!({"run": ended}),
            // It is there for the other methods in every other round.
            "session.destroy" if round.is_multiple_of(2) => json!({"session": "none"}),
            _ if method.starts_with("session.") && method != "session.list" => json!({"session": dir}),
            _ => json!({}),
        }
    }
}

/// The requests, their identifiers from 1 on, as they are written. What is between them gets no answer.
fn requests(count: u64, methods: &[String], targets: &Targets) -> Vec<u8> {
    let mut lines = Vec::new();
    for id in 1..=count {
        let (place, round) = (id % (methods.len() as u64 + 1), id / (methods.len() as u64 + 1));
        let place = usize::try_from(place).expect("a place");
        let method = methods.get(place).map_or("dance", |method| method);
        let request = json!({"id": id, "method": method, "params": targets.params(method, round)});
        writeln!(lines, "{request}").expect("memory");
        if place == 0 {
            writeln!(lines, "{}", json!({"method": "exec.status", "params": {"run": targets.live}})).expect("memory");
        }
    }
    lines
}

/// Another thread writes, because the host hears nobody who takes no answers.
fn write(client: &Client, lines: Vec<u8>) -> JoinHandle<()> {
    let mut stream: UnixStream = client.stream.try_clone().expect("a descriptor");
    std::thread::spawn(move || stream.write_all(&lines).expect("it is read"))
}

/// Reads until every request has its answer. Returns the number of good ones by method.
fn answers(client: &mut Client, count: u64, methods: &[String]) -> BTreeMap<String, u64> {
    let (mut open, mut good) = ((1..=count).collect::<BTreeSet<u64>>(), BTreeMap::new());
    while !open.is_empty() {
        let line = client.hear().expect("the connection stays");
        let Some(id) = line["id"].as_u64() else {
            assert!(line["method"].is_string(), "neither an event nor an answer: {line}");
            continue;
        };
        assert!(open.remove(&id), "a second answer, or to nobody's request: {line}");
        assert_ne!(line["error"]["code"], -32_603, "{line}");
        let place = usize::try_from(id % (methods.len() as u64 + 1)).expect("a place");
        if line["result"].is_object() {
            *good.entry(methods[place].clone()).or_default() += 1;
        }
    }
    good
}

fn greet(host: &Host) -> (Client, Vec<String>) {
    let mut client = Client::new(host);
    let methods = client.call("hello", &json!({}))["methods"].take();
    (client, serde_json::from_value(methods).expect("names"))
}

fn dir(host: &Host, name: &str) -> String {
    let dir = host.home.path().join(name);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir.display().to_string()
}

/// Checks that a command that echoes got what was written to it in the order of the requests.
fn check_order(client: &mut Client, targets: &Targets, written: u64) {
    // It may have been paused last.
    let resume = client.ask("exec.resume", &json!({"run": targets.live}));
    client.reply(resume);
    client.call("exec.write", &json!({"run": targets.live, "eof": true}));
    assert_eq!(client.call("exec.wait", &json!({"run": targets.live, "for": "exit"}))["exit"], 0);
    let output = client.call("exec.output", &json!({"run": targets.live}));
    let texts = output["chunks"].as_array().expect("chunks").iter().map(|chunk| chunk["text"].as_str().expect("text"));
    let numbers: Vec<u64> = texts.collect::<String>().lines().map(|line| line.parse().expect("a number")).collect();
    assert!(numbers.is_sorted() && numbers.len() as u64 == written, "{written} were taken: {numbers:?}");
}

#[test]
fn every_one_of_a_thousand_requests_in_one_write_is_answered_once() {
    let host = Host::with(MIRROR);
    let (mut client, methods) = greet(&host);
    let targets = Targets::new(&mut client, dir(&host, "project"));
    let writer = write(&client, requests(1_000, &methods, &targets));
    let good = answers(&mut client, 1_000, &methods);
    writer.join().expect("it is read");
    let refused = ["exec.resize", "exec.decide", "exec.undo", "pty.resize", "pty.write"];
    let silent = methods.iter().filter(|method| !good.contains_key(*method) && !refused.contains(&method.as_str()));
    assert_eq!(silent.collect::<Vec<_>>(), Vec::<&String>::new(), "no good answer");
    check_order(&mut client, &targets, good["exec.write"]);
}

#[test]
fn eight_clients_at_once_and_a_deaf_one_hold_up_no_command() {
    const CLIENTS: usize = 8;
    let count = waiting::size(160, 1_000) as u64;
    let host = Host::with(MIRROR);
    let (mut deaf, methods) = greet(&host);
    let long = deaf.start(&json!({"command": "head -c 9000 /dev/zero | tr '\\0' x", "background": true}));
    deaf.call("exec.wait", &json!({"run": long, "for": "exit"}));
    let asked: String = (1..=1_000)
        .map(|id| format!("{}\n", json!({"id": id, "method": "exec.output", "params": {"run": long}})))
        .collect();
    let deaf_writer = write(&deaf, asked.into_bytes());
    let mut clients: Vec<(Client, Targets)> = (0..CLIENTS)
        .map(|number| {
            let (mut client, _) = greet(&host);
            let targets = Targets::new(&mut client, dir(&host, &format!("project{number}")));
            (client, targets)
        })
        .collect();
    let writers: Vec<_> =
        clients.iter().map(|(client, targets)| write(client, requests(count, &methods, targets))).collect();
    // Nobody reads yet.
    assert_eq!(host.run("echo on").out(), "on\n");
    let memory = procs::memory(host.pid());
    assert!(memory < 40 << 20, "{memory} bytes");
    let readers: Vec<_> = clients
        .drain(..)
        .map(|(mut client, targets)| {
            let methods = methods.clone();
            std::thread::spawn(move || {
                let good = answers(&mut client, count, &methods);
                check_order(&mut client, &targets, good["exec.write"]);
            })
        })
        .collect();
    readers.into_iter().for_each(|reader| reader.join().expect("every request is answered"));
    writers.into_iter().for_each(|writer| writer.join().expect("it is read"));
    let memory = procs::memory(host.pid());
    assert!(memory < 40 << 20, "{memory} bytes");
    assert_eq!(host.run("echo on").out(), "on\n");
    for id in 1..=1_000 {
        let told = deaf.hear().expect("an answer");
        assert_eq!((&told["id"], &told["result"]["closed"]), (&json!(id), &json!(true)), "{told}");
    }
    deaf_writer.join().expect("it is read");
}

/// Before, the first one had all of its requests served, and then the second one.
#[test]
fn a_client_with_few_requests_does_not_wait_for_one_with_many() {
    let host = Host::with(MIRROR);
    let (busy, _) = greet(&host);
    let (mut other, _) = greet(&host);
    // These take long. The last one leaves something to see.
    let mut lines: String = (1..600).map(|id| format!("{}\n", json!({"id": id, "method": "rules.reread"}))).collect();
    let last = json!({"id": 600, "method": "session.create", "params": {"dir": dir(&host, "project")}});
    lines.push_str(&format!("{last}\n"));
    let writer = write(&busy, lines.into_bytes());
    // One request may be served as soon as it comes.
    for _ in 0..4 {
        other.call("hello", &json!({}));
    }
    assert_eq!(other.call("session.list", &json!({})), json!({"sessions": []}), "the other one is done already");
    writer.join().expect("it is read");
}
