//! `rexec exec-server`: the protocol by which Codex runs its commands elsewhere.

mod client;
mod files;
mod hostile;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::host::{Host, MIRROR};
use crate::support::journal;
use crate::support::procs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use client::{Client, encoded};

#[test]
fn output_comes_before_the_exit_and_the_close_in_numbers_without_a_gap() {
    let host = Host::with(MIRROR);
    let mut client = Client::greeted(&host.socket());
    let told = client.run("p1", "echo one; sleep 0.1; echo two >&2; echo three; exit 3", &json!({}));
    let kinds: Vec<&str> = told.iter().map(|line| line["method"].as_str().unwrap()).collect();
    let outputs = kinds.len() - 2;
    assert!(outputs >= 2 && kinds[..outputs].iter().all(|kind| *kind == "process/output"), "{kinds:?}");
    assert_eq!(kinds[outputs..], ["process/exited", "process/closed"]);
    let numbers: Vec<u64> = told.iter().map(|line| line["params"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=told.len() as u64).collect::<Vec<_>>());
    assert_eq!(client::text(&told, "stdout"), "one\nthree\n");
    assert_eq!(client::text(&told, "stderr"), "two\n");
    assert_eq!(told[outputs]["params"]["exitCode"], 3);
    let read = client.ask("process/read", &json!({"processId": "p1", "afterSeq": 1, "maxBytes": null, "waitMs": 0}));
    assert_eq!((&read["nextSeq"], &read["closed"]), (&json!(told.len() + 1), &json!(true)));
    assert_eq!(read["chunks"].as_array().unwrap().len(), outputs - 1);
    assert_eq!(client.ask("process/terminate", &json!({"processId": "p1"})), json!({"running": false}));
    let again = client.refusal("process/start", &client::start("p1", "true", &json!({})));
    assert_eq!(again["message"], "process p1 already exists");
    let end = journal::wait_for(&host.journal_home(), PATIENCE, |journal| journal.of_type("end").next().cloned());
    assert_eq!(end.unwrap()["whoami"], "Codex");
}

#[test]
fn a_process_gets_the_environment_that_its_policy_chooses_and_its_directory() {
    let host = Host::with(MIRROR);
    let mut client = Client::greeted(&host.socket());
    let script = "echo $OWN:$MY_TOKEN:$ADDED:$SET; pwd; echo $0";
    let policy = json!({"inherit": "all", "exclude": ["own"], "set": {"SET": "1"}, "includeOnly": []});
    let more = json!({"envPolicy": policy, "env": {"ADDED": "a b"}, "cwd": "file:///usr/%6cib", "arg0": "other"});
    assert_eq!(client::text(&client.run("a", script, &more), "stdout"), "::a b:1\n/usr/lib\nother\n");
    let more = json!({"envPolicy": null, "env": {"ADDED": "1"}, "argv": ["/usr/bin/env"]});
    let whole = client::text(&client.run("b", "", &more), "stdout");
    assert!(whole.lines().all(|line| line == "ADDED=1" || line.starts_with("REXEC_")), "{whole}");
}

#[test]
fn a_request_that_is_too_long_for_the_host_is_refused_alone_and_long_input_comes_in_pieces() {
    let host = Host::with(MIRROR);
    let mut client = Client::greeted(&host.socket());
    client.send("process/start", &client::start("other", "sleep 1000", &json!({})));
    let count = 3_000_000;
    let place = TempDir::new(None);
    let long: String = ('a'..='z').cycle().take(count).collect();
    fs::write(place.join("expected"), format!("{long}end\n")).expect("a file");
    let script = format!("head -c {} | cmp - {}/expected && echo same; cat", count + 4, place.path().display());
    client.send("process/start", &client::start("pipe", &script, &json!({"pipeStdin": true})));
    for (id, text) in [("1", long.as_str()), ("2", "end\n")] {
        client.send("process/write", &json!({"processId": "pipe", "chunk": encoded(text), "writeId": id}));
    }
    let told = client.until(|line| line["method"] == "process/output");
    assert_eq!(client::text(&[told], "stdout"), "same\n");
    let argument = "x".repeat(1_200_000);
    let refused = client.refusal("process/start", &client::start("long", &argument, &json!({})));
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("too long")), "{refused}");
    for name in ["other", "pipe"] {
        assert_eq!(client.ask("process/terminate", &json!({"processId": name})), json!({"running": true}), "{name}");
    }
}

#[test]
fn a_terminal_takes_keys_and_a_pipe_takes_input_and_both_take_an_interrupt() {
    let host = Host::with(MIRROR);
    let mut client = Client::greeted(&host.socket());
    client
        .send("process/start", &client::start("tty", "stty size; read x; echo got=$x; exit 4", &json!({"tty": true})));
    let write = json!({"processId": "tty", "chunk": encoded("hello\n"), "writeId": "1"});
    assert_eq!(client.ask("process/write", &write), json!({"status": "accepted"}));
    let told = client.until_closed("tty");
    let text = client::text(&told, "pty");
    assert!(text.contains("24 80\r\n") && text.contains("got=hello\r\n"), "{text:?}");
    client.send("process/start", &client::start("pipe", "cat", &json!({"pipeStdin": true})));
    let write = json!({"processId": "pipe", "chunk": encoded("line\n"), "writeId": "w"});
    for _ in 0..2 {
        assert_eq!(client.ask("process/write", &write), json!({"status": "accepted"}), "the same write, once");
    }
    client.until(|line| line["method"] == "process/output");
    assert_eq!(client.ask("process/signal", &json!({"processId": "pipe", "signal": "interrupt"})), json!({}));
    let told = client.until_closed("pipe");
    assert_eq!(client::exit(&told), 130);
    assert_eq!(client::text(&told, "stdout"), "", "it came once");
    client.send("process/start", &client::start("shut", "sleep 1000", &json!({})));
    let write = json!({"processId": "shut", "chunk": "eA==", "writeId": ""});
    assert_eq!(client.ask("process/write", &write), json!({"status": "stdinClosed"}));
    assert_eq!(client.ask("process/terminate", &json!({"processId": "shut"})), json!({"running": true}));
    assert_eq!(client::exit(&client.until_closed("shut")), 143);
    let unknown = json!({"processId": "none", "chunk": "eA==", "writeId": ""});
    assert_eq!(client.ask("process/write", &unknown), json!({"status": "unknownProcess"}));
    let wrong = json!({"processId": "shut", "signal": "terminate"});
    assert_eq!(client.refusal("process/signal", &wrong)["code"], -32602);
}

#[test]
fn a_process_is_closed_although_a_job_holds_its_output() {
    let host = Host::with(MIRROR);
    let mut client = Client::greeted(&host.socket());
    let told =
        client.run("p", "sleep 1000 & echo $! >left; echo marker", &json!({"cwd": client::uri(host.home.path())}));
    assert_eq!(client::text(&told, "stdout"), "marker\n");
    let left: i32 = fs::read_to_string(host.home.join("left")).unwrap().trim().parse().unwrap();
    assert!(procs::is_alive(left));
    procs::Process::of(left).unwrap().signal(nix::sys::signal::Signal::SIGKILL);
}

#[test]
fn a_command_that_asks_for_a_sandbox_is_refused_and_so_is_one_without_a_program() {
    let host = Host::with(MIRROR);
    let mut client = Client::greeted(&host.socket());
    for more in [json!({"sandbox": {"permissions": []}}), json!({"enforceManagedNetwork": true})] {
        let refusal = client.refusal("process/start", &client::start("p", "touch ran", &more));
        assert!(refusal["message"].as_str().unwrap().contains("sandbox"), "{refusal}");
    }
    let refusal = client.refusal("process/start", &client::start("p", "", &json!({"argv": []})));
    assert_eq!(refusal, json!({"code": -32602, "message": "argv must not be empty"}));
    let refusal = client.refusal("process/start", &client::start("p", "true", &json!({"cwd": "tmp"})));
    assert_eq!(refusal["code"], -32602);
    let told = client.run("absent", "", &json!({"argv": ["/no/such/program"]}));
    assert_eq!(client::exit(&told), 127);
    assert!(client::text(&told, "stderr").contains("/no/such/program: not found"));
}

#[test]
fn it_answers_without_a_host_and_finds_the_next_one() {
    let home = TempDir::new(None);
    let socket = home.join("host.sock");
    let mut client = Client::greeted(&socket);
    let refusal = client.refusal("process/start", &client::start("p", "true", &json!({})));
    assert_eq!(refusal["code"], -32603);
    assert!(refusal["message"].as_str().unwrap().starts_with("HOST NOT FOUND: no rexec-host is listening on "));
    let host = Host::in_dir(home, MIRROR);
    assert_eq!(host.socket(), socket, "the test knows where the host will be");
    assert_eq!(client::exit(&client.run("p", "exit 5", &json!({}))), 5);
    client.send("process/start", &client::start("lost", "echo marker; sleep 1000", &json!({})));
    client.until(|line| line["method"] == "process/output");
    let (home, _) = host.kill();
    let told = client.until_closed("lost");
    assert_eq!(client::exit(&told), 125);
    assert!(client::text(&told, "stderr").contains("the host went away"));
    let host = Host::in_dir(home, MIRROR);
    assert_eq!(client::exit(&client.run("next", "exit 6", &json!({}))), 6);
    drop(client);
    // The command of the host that was killed has an end, too.
    host.wait_for("the repair", |journal| journal.faults(0).is_empty().then_some(()));
    drop(host);
}

#[test]
fn what_runs_ends_with_the_client() {
    let host = Host::with(MIRROR);
    let mut client = Client::greeted(&host.socket());
    client.send("process/start", &client::start("p", "echo $$; exec sleep 1000", &json!({})));
    let line = client.until(|line| line["method"] == "process/output");
    let pid: i32 = client::text(&[line], "stdout").trim().parse().unwrap();
    assert!(procs::is_alive(pid));
    client.close();
    waiting::wait_until("the command ends", || !procs::is_alive(pid));
}

/// The session that the protocol is described with. Codex of today sends more, and gets more: those fields may follow.
#[test]
fn the_protocol_is_spoken_as_it_is_described() {
    let host = Host::with(MIRROR);
    let mut client = Client::start(&host.socket(), &[]);
    let mut exchange = |line: &str, answers: &[&str]| {
        client.raw(line);
        for answer in answers {
            let (answer, said): (Value, _) = (serde_json::from_str(answer).unwrap(), client.line().unwrap());
            let said: Value = serde_json::from_str(&said).unwrap();
            assert!(is_within(&answer, &said), "{said} lacks something of {answer}");
        }
    };
    exchange(
        r#"{"id":1,"method":"initialize","params":{"clientName":"example-client"}}"#,
        &[r#"{"id":1,"result":{}}"#],
    );
    exchange(r#"{"method":"initialized","params":{}}"#, &[]);
    exchange(
        r#"{"id":2,"method":"process/start","params":{"processId":"proc-1","argv":["bash","-c","stty -echo -onlcr; printf 'ready\\n'; while IFS= read -r line; do printf 'echo:%s\\n' \"$line\"; done"],"cwd":"/tmp","env":{"PATH":"/usr/bin:/bin"},"tty":true,"pipeStdin":false,"arg0":null}}"#,
        &[
            r#"{"id":2,"result":{"processId":"proc-1"}}"#,
            r#"{"method":"process/output","params":{"processId":"proc-1","seq":1,"stream":"pty","chunk":"cmVhZHkK"}}"#,
        ],
    );
    exchange(
        r#"{"id":3,"method":"process/write","params":{"processId":"proc-1","chunk":"aGVsbG8K"}}"#,
        &[
            r#"{"id":3,"result":{"status":"accepted"}}"#,
            r#"{"method":"process/output","params":{"processId":"proc-1","seq":2,"stream":"pty","chunk":"ZWNobzpoZWxsbwo="}}"#,
        ],
    );
    exchange(
        r#"{"id":4,"method":"process/terminate","params":{"processId":"proc-1"}}"#,
        &[
            r#"{"id":4,"result":{"running":true}}"#,
            r#"{"method":"process/exited","params":{"processId":"proc-1","seq":3,"exitCode":143}}"#,
            r#"{"method":"process/closed","params":{"processId":"proc-1"}}"#,
        ],
    );
}

/// Whether the second value has everything that the first one has.
fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| is_within(part, whole)))
        }
        _ => part == whole,
    }
}

/// The session that the first form of the protocol is described with.
#[test]
fn the_first_protocol_is_spoken_as_it_is_described() {
    let host = Host::with(MIRROR);
    let mut client = Client::start(&host.socket(), &["--protocol", "v0"]);
    let mut exchange = |line: &str, answers: &[&str]| {
        client.raw(line);
        for answer in answers {
            assert_eq!(client.line().as_deref(), Some(*answer));
        }
    };
    exchange(
        r#"{"id":1,"method":"initialize","params":{"clientName":"example-client"}}"#,
        &[r#"{"id":1,"result":{"protocolVersion":"exec-server.v0"}}"#],
    );
    exchange(r#"{"method":"initialized","params":{}}"#, &[]);
    exchange(
        r#"{"id":2,"method":"command/exec","params":{"processId":"proc-1","argv":["bash","-c","stty -echo -onlcr; printf 'ready\\n'; while IFS= read -r line; do printf 'echo:%s\\n' \"$line\"; done"],"cwd":"/tmp","env":{"PATH":"/usr/bin:/bin"},"tty":true,"outputBytesCap":4096,"arg0":null}}"#,
        &[
            r#"{"id":2,"result":{"processId":"proc-1","running":true,"exitCode":null,"stdout":null,"stderr":null}}"#,
            r#"{"method":"command/exec/outputDelta","params":{"processId":"proc-1","stream":"stdout","chunk":"cmVhZHkK"}}"#,
        ],
    );
    exchange(
        r#"{"id":3,"method":"command/exec/write","params":{"processId":"proc-1","chunk":"aGVsbG8K"}}"#,
        &[
            r#"{"id":3,"result":{"accepted":true}}"#,
            r#"{"method":"command/exec/outputDelta","params":{"processId":"proc-1","stream":"stdout","chunk":"ZWNobzpoZWxsbwo="}}"#,
        ],
    );
    exchange(
        r#"{"id":4,"method":"command/exec/terminate","params":{"processId":"proc-1"}}"#,
        &[
            r#"{"id":4,"result":{"running":true}}"#,
            r#"{"method":"command/exec/exited","params":{"processId":"proc-1","exitCode":143}}"#,
        ],
    );
    let refused = |client: &mut Client, line: &str| {
        client.raw(line);
        let answer: Value = serde_json::from_str(&client.line().unwrap()).unwrap();
        answer["error"]["code"].as_i64()
    };
    let write = r#"{"id":5,"method":"command/exec/write","params":{"processId":"none","chunk":"eA=="}}"#;
    assert_eq!(refused(&mut client, write), Some(-32600));
    let start =
        r#"{"id":6,"method":"command/exec","params":{"processId":"p","argv":[],"cwd":"/","env":{},"tty":false}}"#;
    assert_eq!(refused(&mut client, start), Some(-32602));
    let start = r#"{"id":6,"method":"command/exec","params":{"processId":"p","argv":["true"],"cwd":"/","env":{},"tty":false,"outputBytesCap":-1}}"#;
    assert_eq!(refused(&mut client, start), Some(-32602));
    assert_eq!(refused(&mut client, r#"{"id":7,"method":"process/start","params":{}}"#), Some(-32601));
    assert_eq!(refused(&mut client, r#"{"method":"other"}"#), Some(-32600));
    assert!(client.is_silent(Duration::from_millis(50)));
}
