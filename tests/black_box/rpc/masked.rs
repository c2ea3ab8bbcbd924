//! `--redact-agents`: no way to a command's output shows its secrets, whoever has started it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use rexec_host::limits;
use serde_json::{Value, json};

use super::client::Client;
use crate::prompts::waits;
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::typist::{At, Typist};
use crate::support::waiting::{self, PATIENCE};

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

/// `rexec` with its output in a file.
fn rexec_into(host: &Host, name: &str, args: &[&str]) -> Child {
    let out = fs::File::create(host.home.join(name)).expect("a file");
    let mut command = Command::new(programs::rexec());
    command.args(args).env_clear().env("REXEC_SOCKET", host.socket()).env("REXEC_HOME", host.journal_home());
    command.stdin(Stdio::null()).stdout(out).stderr(Stdio::inherit()).spawn().expect("the program starts")
}

fn text(host: &Host, name: &str) -> String {
    fs::read_to_string(host.home.join(name)).unwrap_or_default()
}

fn wait_for(host: &Host, name: &str, words: &str) {
    let is_there = || text(host, name).contains(words);
    assert!(waiting::until_true(PATIENCE, is_there), "{name} lacks {words}: {}", text(host, name));
}

#[test]
fn no_door_shows_the_secrets_of_a_shims_command() {
    let host = Host::with(MASKING);
    let mut early = Client::new(&host);
    early.call("events.subscribe", &json!({"events": ["start", "output", "exit"]}));
    let mut all = rexec_into(&host, "all", &["tail"]);
    let mut call = host.call(TELLS).env(TOKEN).start(Target::Shim(&host.socket())).expect("the shim starts");
    wait_for(&host, "all", "first");
    let mut late = Client::new(&host);
    late.call("events.subscribe", &json!({"runs": [1], "events": ["output", "exit"]}));
    let mut one = rexec_into(&host, "one", &["tail", "-f", "1"]);
    wait_for(&host, "one", "first");
    let mut transcript = UnixStream::connect(host.socket()).expect("a host");
    writeln!(transcript, r#"{{"action":"attach","ansi":true}}"#).expect("it listens");
    let env = [format!("REXEC_SOCKET={}", host.socket().display()), "TERM=xterm".to_owned()];
    let argv = ["rexec", "attach", "--watch", "1"];
    let mut person = Typist::start(programs::rexec(), &argv, &env, host.home.path(), [At::Terminal; 3]);
    let listed = late.call("exec.list", &json!({}));
    fs::write(host.home.join("go"), "").expect("a file");
    let caller = call.finish(PATIENCE).expect("it ends");
    assert_masked("the shim", &(caller.out() + "DB_PASS «redacted:DB_PASS»"));
    let watched = person.sees("#1 ended");
    let mut line = String::new();
    BufReader::new(transcript).read_line(&mut line).expect("an entry");
    assert!(one.wait().expect("it ends").success());
    wait_for(&host, "all", "end\n");
    let kept = late.call("exec.output", &json!({"run": 1}));
    let story = |client: &mut Client| client.story(1).iter().map(Value::to_string).collect::<String>();
    for (what, seen) in [
        ("tail", text(&host, "all")),
        ("tail of one", text(&host, "one")),
        ("the transcript", line),
        ("attach", watched),
        ("exec.output", kept.to_string()),
        ("an early subscriber", story(&mut early)),
        ("a late subscriber", story(&mut late)),
    ] {
        assert_masked(what, &seen);
    }
    assert!(!listed.to_string().contains("hunter22x") && listed.to_string().contains("DB_PASS=«redacted:DB_PASS»"));
    assert!(host.console_text().contains("correct-horse-battery"), "the person sees everything");
    all.kill().expect("it runs");
    all.wait().expect("it is over");
    drop((early, late));
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

#[test]
fn a_prompt_is_never_held_back() {
    let flags = &["--redact-agents", "--prompts", "ask", "--prompt-wait", "300"];
    let host = Host::with(Setup { flags, terminal: true, ..MIRROR });
    let script = "read -p 'Password: ' x </dev/tty; read -p 'Token' y </dev/tty; echo \"<$x$y>\"";
    let mut call = host.call(script).env(TOKEN).start(Target::Shim(&host.socket())).expect("the shim starts");
    let env = [format!("REXEC_SOCKET={}", host.socket().display()), "TERM=xterm".to_owned()];
    waits(&host, 1);
    let argv = ["rexec", "attach", "1"];
    let mut person = Typist::start(programs::rexec(), &argv, &env, host.home.path(), [At::Terminal; 3]);
    person.sees("Password: ");
    let mut tail = rexec_into(&host, "tail", &["tail", "-f", "1"]);
    // So slowly that what a mask holds back goes on between two keys.
    for key in b"kiwi-9" {
        person.types(&[*key]);
        std::thread::sleep(2 * limits::MASK_HOLD);
    }
    person.sees("⟨typed⟩");
    person.types(b"\r");
    person.sees("Token");
    person.types(b"t\r");
    let seen = person.sees("<kiwi-9t>");
    assert_eq!(call.finish(PATIENCE).expect("it ends").out(), "<kiwi-9t>\n");
    assert!(tail.wait().expect("it ends").success());
    for (what, seen) in [("attach", seen), ("tail", text(&host, "tail"))] {
        let before = seen.split("<kiwi").next().expect("a beginning");
        assert!(before.contains("⟨typed⟩") && !before.contains("wi"), "{what}: {seen}");
    }
    host.finish();
}
