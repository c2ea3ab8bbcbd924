//! Rules about the processes that a command would signal: those of others, of the host, and the command's own.

use std::fs;

use serde_json::json;

use super::rules::{end, host};
use crate::support::call::{Calling, Outcome, Target};
use crate::support::host::{Host, PLAIN};
use crate::support::waiting::{self, PATIENCE};

const RULES: &str = r#"
[gate]
mode = "enforce"
away = "wait"
perhaps = "deny"

[[rule]]
name = "others"
do = "deny"
kills = "others"
why = "They are not yours."
"#;

const CLAUDE: [&str; 2] = ["CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=a-1"];
const CODEX: [&str; 2] = ["CODEX_CI=1", "CODEX_THREAD_ID=c-1"];

fn start(host: &Host, env: &[&str], script: &str) -> Calling {
    let call = env.iter().fold(host.call(script), |call, entry| call.env(entry));
    call.start(Target::Shim(&host.socket())).expect("the shim starts")
}

fn run(host: &Host, env: &[&str], script: &str) -> Outcome {
    start(host, env, script).finish(PATIENCE).expect("it ends")
}

/// What an agent reads of a command that did not run.
#[track_caller]
fn refused(host: &Host, env: &[&str], script: &str) -> String {
    let ended = run(host, env, script);
    assert_eq!((ended.out().as_str(), ended.code()), ("", 126), "{script}: {}", ended.err());
    ended.err()
}

#[test]
fn a_command_ends_no_process_of_others_and_any_of_its_own() {
    let host = host(RULES, PLAIN);
    let marker = format!("{}.25", 100_000 + host.pid());
    let file = host.home.join("number");
    let sleeps = format!("echo $$ >{}; exec sleep {marker}", file.display());
    let mut sleeper = start(&host, &CLAUDE, &sleeps);
    waiting::wait_until("it sleeps", || fs::read_to_string(&file).is_ok_and(|number| number.ends_with('\n')));
    let number = fs::read_to_string(&file).expect("a number").trim().to_owned();

    let hit = format!("It would hit #1 of claude (process {number}, sleep).");
    let [pattern, by_hand] = [format!("pkill -f '^sleep {marker}'"), format!("kill -9 {number}")];
    let piped = format!("pgrep -f '^sleep {marker}' | xargs kill");
    for script in [&pattern, &by_hand, &piped] {
        let told = refused(&host, &CODEX, script);
        assert!(told.contains("is refused by rule others: They are not yours. It would hit #1 of"), "{script}: {told}");
    }
    let gate = end(&host, 2)["gate"].clone();
    assert_eq!((&gate["do"], &gate["by"]), (&json!("deny"), &json!("rule")), "{gate}");
    host.console_says(&hit);

    let told = refused(&host, &CODEX, &format!("kill {}", host.pid()));
    assert!(told.contains("It would hit rexec-host (process"), "{told}");
    let told = refused(&host, &CODEX, &format!("kill {}", std::process::id()));
    assert!(told.contains(&format!("(process {}, ", std::process::id())), "{told}");
    let told = refused(&host, &CODEX, "kill $(cat number)");
    assert!(!told.contains("It would hit"), "{told}");

    let own = run(&host, &CODEX, "sleep 100 & kill $!; wait $!; echo $?; pkill -x no-such-name; kill -0 1; echo");
    assert_eq!((own.out().as_str(), own.code()), ("143\n\n", 0), "{}", own.err());
    // The same agent and session.
    assert_eq!(run(&host, &CLAUDE, &pattern).code(), 0);
    assert_eq!(sleeper.finish(PATIENCE).expect("it ends").code(), 143);
    host.finish();
}
