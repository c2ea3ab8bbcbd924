//! `rexec answer N always`: a person saves what allows more than one run, from any terminal of theirs.

use std::fs;

use serde_json::{Value, json};

use super::held::{answer, asks, refused, start};
use super::rules::{end, host};
use crate::exec::{rexec, said};
use crate::rpc::client::Client;
use crate::support::host::{Host, PLAIN};
use crate::support::programs;
use crate::support::typist::{At, Typist};
use crate::support::waiting::PATIENCE;
use crate::support::warden::Ended;

/// Nobody is at the console of a test.
const RULES: &str = r#"
[gate]
mode = "enforce"
away = "wait"

[[rule]]
name = "push"
do = "ask"
run = "printf"
with = ["push"]

[[rule]]
name = "here"
do = "ask"
run = "printf"
with = ["here"]
away = "deny"
"#;

const ALLOWED: &str = "`printf push one` in ~ for shell";

fn learned(host: &Host) -> String {
    fs::read_to_string(host.journal_home().join("learned.toml")).unwrap_or_default()
}

/// A person at a terminal of their own, who answers a command with always.
fn person(host: &Host) -> Typist {
    let env = [
        format!("HOME={}", host.home.path().display()),
        format!("REXEC_HOME={}", host.journal_home().display()),
        format!("REXEC_SOCKET={}", host.socket().display()),
    ];
    let argv = ["rexec", "answer", "1", "always"];
    Typist::start(programs::rexec(), &argv, &env, host.home.path(), [At::Terminal; 3])
}

#[test]
fn a_person_reads_what_is_saved_and_says_yes_to_it() {
    let host = host(RULES, PLAIN);
    let mut held = start(&host, "printf push one");
    asks(&host, 1);
    for (keys, code) in [(&b"\n"[..], 1), (b"n\n", 1), (b"y\n", 0)] {
        assert_eq!(learned(&host), "");
        let mut person = person(&host);
        let shown = person.sees("from now on? [y/N] ");
        assert!(shown.contains("#1 asks: printf push one\r\n"), "{shown:?}");
        assert!(shown.contains(&format!("Allow {ALLOWED} from now on?")), "{shown:?}");
        person.types(keys);
        person.sees(if code == 0 { "#1 may run; allowed from now on: " } else { "nothing was changed" });
        assert_eq!(person.ends(), Ended::Code(code));
    }
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "push");
    assert_eq!(end(&host, 1)["gate"]["by"], "client");
    host.console_says(&format!("… always allowed from now on: {ALLOWED} (rexec gate learned)\n"));
    assert!(learned(&host).contains("words = [\"printf\", \"push\", \"one\"]\n"), "{}", learned(&host));
    assert_eq!(host.run("printf push one").out(), "push");
    assert_eq!(end(&host, 2)["gate"]["by"], "learned");
    host.finish();
}

#[test]
fn without_a_terminal_only_yes_saves_it_and_an_agent_never_does() {
    let host = host(RULES, PLAIN);
    let mut held = start(&host, "printf push one");
    asks(&host, 1);
    let (code, told, errors) = answer(&host, "1 always");
    assert!(code == 1 && told.is_empty() && errors.contains("there is no terminal to ask at"), "{told}{errors}");
    assert!(errors.contains("hint: rexec answer 1 always --yes does it"), "{errors}");
    let program = programs::rexec().display().to_string();
    for wrapped in ["{} answer 1 always --yes", "setsid --wait {} answer 1 always --yes"] {
        let tried = host.run(&wrapped.replace("{}", &program));
        assert!(tried.code() == 1 && tried.err().contains("no agent changes rules for its user"), "{}", tried.err());
    }
    // A program of an agent's that asks the host itself.
    let bare = format!("env -u REXEC_INSIDE {program} answer 1 always --yes");
    let tried = host.run(&bare);
    assert!(tried.code() == 1 && tried.err().contains("no agent "), "{}", tried.err());
    for (words, said) in [
        ("1 always --why x", "answer: --why goes with yes or no"),
        ("1 always --token /dev/null", "answer: --token goes with yes or no"),
        ("1 yes --yes", "answer: --yes goes with always"),
        ("1 allways", "did you mean always?"),
    ] {
        let (code, _, errors) = answer(&host, words);
        assert!(code == 2 && errors.contains(said), "{words}: {code} {errors}");
    }
    assert_eq!(learned(&host), "");
    let (code, told, errors) = answer(&host, "1 always --yes --json");
    assert_eq!(code, 0, "{errors}");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told, json!({"v": 1, "seq": 1, "result": "always", "always": ALLOWED}));
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "push");
    assert_eq!(answer(&host, "1 always --yes").0, 1, "it asks nothing");
    assert_eq!(answer(&host, "99 always --yes").0, 3, "it is not there");
    host.finish();
}

#[test]
fn what_has_no_narrow_form_or_a_broken_file_is_not_saved() {
    let host = host(RULES, PLAIN);
    for (seq, script, why) in [
        (1, "printf push $nothing", "its words are not all known"),
        (2, "printf push --token=hunter2hunter2", "a secret may be in it"),
    ] {
        let mut held = start(&host, script);
        asks(&host, seq);
        let (code, _, errors) = answer(&host, &format!("{seq} always --yes"));
        assert!(code == 1 && errors.contains(&format!("#{seq} can be allowed only once: {why}")), "{errors}");
        assert!(errors.contains(&format!("hint: rexec answer {seq} yes")), "{errors}");
        assert_eq!(answer(&host, &format!("{seq} no")).0, 0);
        refused(&mut held);
    }
    let mut held = start(&host, "printf push");
    asks(&host, 3);
    let broken = "[[learned]]\nrun = 3\n";
    let file = host.journal_home().join("learned.toml");
    fs::write(&file, broken).expect("a file");
    let (code, _, errors) = answer(&host, "3 always --yes");
    assert!(code == 1 && errors.contains("not saved: ") && errors.contains("learned.toml:1:1: "), "{errors}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), broken);
    assert_eq!(answer(&host, "3 no").0, 0, "it still asks");
    refused(&mut held);
    host.finish();
}

/// A person who comes back decides for all that follows.
#[test]
fn an_always_that_comes_too_late_is_saved_for_what_follows() {
    let host = host(RULES, PLAIN);
    refused(&mut start(&host, "printf here; touch ran"));
    let (code, told, errors) = answer(&host, "1 always --yes");
    assert_eq!((code, errors.as_str()), (0, ""), "{told}");
    assert_eq!(told, "#1 has ended; allowed from now on: `printf here` in ~ for shell\n");
    assert_eq!(said(rexec(&host, &["ps", "--asks"])).1, "nothing asks\n");
    assert!(!host.home.join("ran").exists(), "only that is saved");
    for _ in 0..2 {
        assert_eq!(host.run("printf here; touch ran").out(), "here");
    }
    assert_eq!(end(&host, 3)["gate"]["by"], "learned");
    assert_eq!(answer(&host, "1 yes").0, 1);
    host.finish();
}

#[test]
fn a_program_reads_what_may_be_allowed_and_saves_what_its_person_has_read() {
    let host = host(RULES, PLAIN);
    let mut client = Client::new(&host);
    client.call("events.subscribe", &json!({"events": ["held"]}));
    let mut held = start(&host, "printf push one");
    asks(&host, 1);
    assert_eq!(client.call("exec.asks", &json!({}))["asks"][0].get("always"), None);
    let listed = client.call("exec.asks", &json!({"run": 1}))["asks"].take();
    assert_eq!((&listed[0]["always"], listed[0].get("once")), (&json!(ALLOWED), None), "{listed}");
    let decide = |client: &mut Client, extra: Value| {
        let mut params = json!({"run": 1, "allow": true, "always": ALLOWED});
        extra.as_object().expect("an object").iter().for_each(|(name, value)| params[name] = value.clone());
        client.error("exec.decide", &params)
    };
    assert_eq!(decide(&mut client, json!({"allow": false})).0, -32602);
    let (code, sentence) = decide(&mut client, json!({"always": "`printf push` in ~ for shell"}));
    assert_eq!((code, sentence), (-32010, format!("run 1 asks about something else by now: {ALLOWED}")));
    assert_eq!(decide(&mut client, json!({"run": 9})).0, -32001);
    assert_eq!(learned(&host), "");
    client.call("exec.decide", &json!({"run": 1, "allow": true, "always": ALLOWED}));
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "push");
    assert_eq!(decide(&mut client, json!({})).0, -32009);
    let mut open = start(&host, "printf push $nothing");
    asks(&host, 2);
    let listed = client.call("exec.asks", &json!({"run": 2}))["asks"].take();
    assert_eq!(listed[0]["once"], "its words are not all known", "{listed}");
    assert_eq!(decide(&mut client, json!({"run": 2})).0, -32010);
    client.call("exec.decide", &json!({"run": 2, "allow": false}));
    refused(&mut open);
    drop(client);
    host.finish();
}
