//! Questions about the past: the journal's lines, in bounds, and never in the way of others.

use serde_json::{Value, json};

use super::client::Client;
use crate::support::host::{Host, MIRROR};
use crate::support::waiting;

const BAD_PARAMS: i64 = -32_602;
const NO_SUCH_RUN: i64 = -32_001;

fn commands(answer: &Value) -> Vec<&str> {
    let lines = answer["lines"].as_array().expect("lines");
    lines.iter().filter_map(|line| line["command"].as_str()).collect()
}

#[test]
fn the_past_is_read_in_pages_with_all_that_is_known_of_a_run() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    for command in ["echo one", "echo two; exit 3", "seq 1 9"] {
        client.call("exec.run", &json!({"command": command}));
    }
    host.wait_for("the ends", |journal| (journal.of_type("end").count() == 3).then_some(()));
    let all = client.call("history.log", &json!({}));
    assert_eq!(commands(&all), ["echo one", "echo two; exit 3", "seq 1 9"]);
    assert_eq!(all["cut"], false);
    let last = client.call("history.log", &json!({"number": 1}));
    assert_eq!(commands(&last), ["seq 1 9"]);
    let before = client.call("history.log", &json!({"number": 1, "until": last["lines"][0]["time"]}));
    assert_eq!(commands(&before), ["echo two; exit 3"], "the page before");
    assert_eq!(commands(&client.call("history.log", &json!({"exit": 3, "failed": true}))), ["echo two; exit 3"]);
    let found = client.call("history.log", &json!({"text": "two\n", "any_output": true, "agent": "-x"}));
    assert_eq!(commands(&found), [""; 0], "nothing is no error");
    let shown = client.call("history.show", &json!({"run": 2}));
    assert_eq!(shown["lines"][0]["record"]["exit"], 3, "{shown}");
    let session = last["lines"][0]["session"].clone();
    let out = client.call("history.out", &json!({"run": 3, "session": session, "lines": [2, 8], "tail": 2}));
    let texts: Vec<&str> =
        out["lines"].as_array().expect("lines").iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(texts, ["7", "8"], "{out}");
}

#[test]
fn a_question_without_an_answer_says_why() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.call("exec.run", &json!({"command": "true"}));
    host.wait_for("the end", |journal| (journal.of_type("end").count() == 1).then_some(()));
    for (method, params, code) in [
        ("history.show", json!({"run": 77}), NO_SUCH_RUN),
        ("history.out", json!({"run": 1, "session": "never"}), NO_SUCH_RUN),
        ("history.log", json!({"since": "soon"}), BAD_PARAMS),
        ("history.log", json!({"text": "\0"}), BAD_PARAMS),
        ("history.log", json!({"agent": "x".repeat(9_000)}), BAD_PARAMS),
        // It is the value of its option, and no option.
        ("history.show", json!({"run": 1, "session": "--help"}), NO_SUCH_RUN),
    ] {
        let (seen, sentence) = client.error(method, &params);
        assert_eq!(seen, code, "{method} {params}: {sentence}");
        assert!(!sentence.is_empty() && !sentence.contains('\n'), "{sentence}");
    }
}

#[test]
fn long_answers_are_cut_and_many_questions_end_with_their_client() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.call("exec.run", &json!({"command": "seq 1 200000", "max_output_bytes": 0}));
    host.wait_for("the end", |journal| (journal.of_type("end").count() == 1).then_some(()));
    let out = client.call("history.out", &json!({"run": 1}));
    let lines = out["lines"].as_array().expect("lines").len();
    assert!(out["cut"] == true && lines > 10_000, "{lines}");
    let mut many = Client::new(&host);
    for _ in 0..40 {
        many.ask("history.out", &json!({"run": 1}));
    }
    drop(many);
    client.call("history.log", &json!({}));
    let lookups = || host.tree().iter().filter(|process| ["rexec", "rexec-lookup"].contains(&&*process.comm)).count();
    waiting::wait_until("no lookup is left", || lookups() == 0);
}
