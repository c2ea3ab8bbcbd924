//! `--redact-agents`: an answer shows none of the command's secrets, whoever has started it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::client::Client;
use super::terminals::decoded;
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::waiting::PATIENCE;

const MASKING: Setup = Setup { flags: &["--redact-agents"], ..MIRROR };
const TOKEN: &str = "API_TOKEN=correct-horse-battery";
/// A secret of the environment and one of the command itself, before and after a file is there, whole and in two writes.
const TELLS: &str = "DB_PASS=hunter22x true; echo first $API_TOKEN; until test -e go; do sleep 0.05; done; \
                     printf 'then %s' ${API_TOKEN:0:9}; sleep 0.05; printf '%s\\n' ${API_TOKEN:9}; \
                     printf 'colour \\33[1mcorrect\\33[0m-horse%s-battery\\n'; echo hunter${NO}22x; echo end";

fn assert_masked(what: &str, seen: &str) {
    for secret in ["horse-battery", "hunter22x"] {
        assert!(!seen.contains(secret), "{what} shows {secret}: {seen}");
    }
    assert!(seen.contains("«redacted:API_TOKEN»") && seen.contains("«redacted:DB_PASS»"), "{what}: {seen}");
}

#[test]
fn no_answer_shows_the_secrets_of_a_shims_command() {
    let host = Host::with(MASKING);
    let mut early = Client::new(&host);
    early.call("events.subscribe", &json!({"events": ["start", "output", "exit"]}));
    let mut call = host.call(TELLS).env(TOKEN).start(Target::Shim(&host.socket())).expect("the shim starts");
    host.wait_for("its start", |journal| journal.of_type("start").next().is_some().then_some(()));
    let mut late = Client::new(&host);
    late.call("events.subscribe", &json!({"runs": [1], "events": ["output", "exit"]}));
    let mut terminal = Client::new(&host);
    terminal.call("events.subscribe", &json!({"runs": [1], "encoding": "terminal"}));
    let mut transcript = UnixStream::connect(host.socket()).expect("a host");
    writeln!(transcript, r#"{{"action":"attach","ansi":true}}"#).expect("it listens");
    fs::write(host.home.join("go"), "").expect("a file");
    let caller = call.finish(PATIENCE).expect("it ends");
    assert_masked("the shim", &(caller.out() + "«redacted:DB_PASS»"));
    let mut line = String::new();
    BufReader::new(transcript).read_line(&mut line).expect("an entry");
    let kept = late.call("exec.output", &json!({"run": 1}));
    let story = |client: &mut Client| client.story(1).iter().map(Value::to_string).collect::<String>();
    let told = terminal.story(1);
    let written: Vec<u8> = told.iter().filter_map(|note| note["params"]["base64"].as_str()).flat_map(decoded).collect();
    // It came when the first secret was written.
    let written = String::from_utf8_lossy(&written).into_owned() + "«redacted:API_TOKEN»";
    for (what, seen) in [
        ("the transcript", line),
        ("exec.output", kept.to_string()),
        ("a terminal", written),
        ("an early subscriber", story(&mut early)),
        ("a late subscriber", story(&mut late)),
    ] {
        assert_masked(what, &seen);
    }
    // The person sees everything.
    host.console_says("correct-horse-battery");
    drop((early, late, terminal));
    host.finish();
}

#[test]
fn the_directory_in_a_transcript_is_masked_like_the_command() {
    let host = Host::with(MASKING);
    let dir = host.home.join("correct-horse-battery");
    fs::create_dir(&dir).expect("a directory");
    let mut transcript = UnixStream::connect(host.socket()).expect("a host");
    writeln!(transcript, r#"{{"action":"attach","ansi":true}}"#).expect("it listens");
    let mut stream = UnixStream::connect(host.socket()).expect("a host");
    let words = ["sh", "-c", "echo correct-horse-battery"];
    let request = json!({"whoami": "Me", "dir": dir, "exec": words, "envs": {"API_TOKEN": "correct-horse-battery"}});
    writeln!(stream, "{request}").expect("it listens");
    let mut line = String::new();
    BufReader::new(transcript).read_line(&mut line).expect("an entry");
    assert_eq!(line.matches("«redacted:API_TOKEN»").count(), 3, "directory, command and output: {line}");
    assert!(!line.contains("horse"), "{line}");
    drop(stream);
    host.finish();
}

#[test]
fn answers_in_json_are_masked() {
    let host = Host::with(MASKING);
    let mut stream = UnixStream::connect(host.socket()).expect("a host");
    let words = ["sh", "-c", "echo $API_TOKEN; echo $API_TOKEN >&2; printf '%s' $API_TOKEN"];
    let request = json!({"whoami": "Me", "dir": "/", "exec": words, "envs": {"API_TOKEN": "correct-horse-battery"}});
    writeln!(stream, "{request}").expect("it listens");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    let answer: Value = serde_json::from_str(&line).expect("an answer");
    let output = answer["output"].as_str().expect("output");
    assert_eq!(output.matches("«redacted:API_TOKEN»").count(), 3, "{answer}");
    assert!(!output.contains("horse"), "{answer}");
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "echo $API_TOKEN", "env": {"API_TOKEN": "correct-horse-battery"}}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    let kept = client.call("exec.output", &json!({"run": run}));
    assert!(kept.to_string().contains("«redacted:API_TOKEN»"), "{kept}");
    drop(client);
    host.finish();
}
