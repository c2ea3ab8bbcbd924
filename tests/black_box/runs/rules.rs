//! The rules of a person's file, which the host watches: what they say of a command is on the console and in the journal,
//! and the command runs as it would without them.

use std::fs;

use serde_json::{Value, json};

use crate::history::reading::said;
use crate::support::call::Target;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::temp::TempDir;

const RULES: &str = r#"
[[rule]]
name = "push"
do = "ask"
run = "printf"
with = ["push"]
why = "Ask first."

[[rule]]
name = "token"
do = "deny"
run = "true"

[[rule]]
do = "ask"
with = ["--program"]
"#;

/// A host in a home whose file has this text.
pub(crate) fn host(text: &str, setup: Setup) -> Host {
    let home = TempDir::new(None);
    let folder = home.path().join(".config/rexec");
    fs::create_dir_all(&folder).expect("a directory");
    fs::write(folder.join("config.toml"), text).expect("a file");
    Host::in_dir(home, setup)
}

pub(super) fn end(host: &Host, seq: u64) -> Value {
    host.wait_for("its end", |journal| journal.of_type("end").find(|end| end["seq"] == seq).cloned())
}

#[test]
fn a_command_runs_whatever_the_rules_say_and_the_person_reads_it() {
    let host = host(RULES, PLAIN);
    host.console_says("rexec: 3 rules are watched and hold no command\n");
    let seen = host.run("printf plain; echo push >&2; exit 3");
    assert_eq!((seen.out(), seen.err(), seen.code()), ("plain".to_owned(), "push\n".to_owned(), 3));
    assert_eq!(host.run("printf other").out(), "other");
    assert_eq!(host.run("sh -c 'printf \"%s\" push /etc'").out(), "push/etc");
    assert_eq!((end(&host, 1)["gate"].clone(), end(&host, 2)["gate"].clone()), (Value::Null, Value::Null));
    let rule = "push (config.toml:2)";
    let leaf = "printf %s push /etc";
    assert_eq!(end(&host, 3)["gate"], json!({"do": "ask", "rule": rule, "leaf": leaf, "by": "watch"}));
    let row = format!("… watched: rule {rule} asks about `{leaf}`: Ask first.\n");
    host.console_says(&row);
    let shown = said(&host.journal_home(), &["show", "3"]).0;
    assert!(shown.contains(&format!("ask, by {rule}: {leaf}\n")), "{shown}");
    host.finish();
}

/// A leaf shows values of variables that the text only names.
#[test]
fn what_rules_say_shows_no_secret() {
    let host = host(RULES, PLAIN);
    // The rules read it, and the shell does not run it.
    let script = "if false; then true --to \"$API_TOKEN\" x-$(echo y)\"$API_TOKEN\" >\"/dev/null/$API_TOKEN\"; fi";
    for (seq, secret) in
        ["s3cr3t-value-of-a-token", "quoted'value of\ta token", "lines of\na token", "é-\u{1b}[1m-token"]
            .into_iter()
            .enumerate()
    {
        let call = host.call(script).env(&format!("API_TOKEN={secret}"));
        assert_eq!(call.run(Target::Shim(&host.socket())).code(), 0);
        let gate = end(&host, seq as u64 * 2 + 1)["gate"].clone();
        assert_eq!(gate["do"], "deny", "{gate}");
        host.console_says("… watched: rule token (config.toml:9) denies `true --to ");
        let call = host.call("if false; then \"$API_TOKEN\" --program; fi").env(&format!("API_TOKEN={secret}"));
        assert_eq!(call.run(Target::Shim(&host.socket())).code(), 0);
        let program = end(&host, seq as u64 * 2 + 2)["gate"].clone();
        assert!(program["leaf"].as_str().is_some_and(|leaf| leaf.ends_with(" --program")), "{program}");
        let (gate, console) = (format!("{gate}{program}"), host.console_text());
        for part in secret.split(['\'', '\n', '\t', '\u{1b}']).filter(|part| part.len() > 5) {
            assert!(!gate.contains(part) && !console.contains(part), "{part}: {gate}\n{console}");
        }
    }
    host.finish();
}

#[test]
fn without_rules_and_with_no_config_nothing_is_watched() {
    for (text, flags) in [("[host]\nmarkers = true\n", &[][..]), (RULES, &["--no-config"][..])] {
        let host = host(text, Setup { flags, ..PLAIN });
        assert_eq!(host.run("true").code(), 0);
        assert_eq!(end(&host, 1)["gate"], Value::Null);
        assert!(!host.console_text().contains("watched"), "{}", host.console_text());
        host.finish();
    }
}

#[test]
fn a_long_call_is_read_and_one_beyond_the_bounds_is_one_of_which_nothing_is_known() {
    let host = host("[gate]\nopaque = 'ask'\n", PLAIN);
    let begins = "rexec: the settings of [gate] are watched and hold no command\n";
    host.console_says(begins);
    let long = format!("true {}", "x".repeat(9_000));
    let many = "true;".repeat(5_000);
    assert_eq!([host.run(&long).code(), host.run(&many).code()], [0; 2]);
    assert_eq!(end(&host, 1)["gate"], Value::Null);
    assert_eq!(end(&host, 2)["gate"], json!({"do": "ask", "leaf": "(there are too many programs)", "by": "watch"}));
    host.finish();
}
