//! The rules of a person's file in force: what they deny does not run, and what they ask about waits for that person.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::rules::{end, host};
use crate::exec::{rexec, said};
use crate::history::reading;
use crate::rpc::client::Client;
use crate::support::call::{Call, Calling, Target, dir};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::screen::Screen;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

/// Nobody is at the console of a test: with `wait`, a question waits all the same.
const RULES: &str = r#"
[gate]
mode = "enforce"
away = "wait"
ask_wait = "10m"

[[rule]]
name = "push"
do = "ask"
run = "printf"
with = ["push"]
why = "Open a pull request."

[[rule]]
name = "soon"
do = "ask"
run = "printf"
with = ["soon"]
wait = "0s"

[[rule]]
name = "here"
do = "ask"
run = "printf"
with = ["here"]
away = "deny"

[[rule]]
name = "no-sandbox"
do = "deny"
run = "printf"
with = ["never"]

[[rule]]
name = "list"
do = "deny"
run = "rm"
why = "Nothing is deleted here."
"#;

const TOO_LATE: &str = "This is not a no: tell your user, go on with something else, and run it again later.";

pub(super) fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

fn state_of(host: &Host, seq: u64) -> Value {
    let (_, lines, _) = said(rexec(host, &["ps", "--json"]));
    let mut runs = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    runs.find(|run| run["seq"] == seq).unwrap_or_default()
}

/// What `rexec answer` with these words says: its code, its output and its errors.
pub(super) fn answer(host: &Host, words: &str) -> (i32, String, String) {
    let words: Vec<&str> = std::iter::once("answer").chain(words.split(' ')).collect();
    said(rexec(host, &words))
}

pub(super) fn asks(host: &Host, seq: u64) {
    waiting::wait_until("it asks", || state_of(host, seq)["state"] == "asks");
}

/// The code and the errors of a command that did not run, with no output.
pub(super) fn refused(calling: &mut Calling) -> String {
    let ended = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((ended.out().as_str(), ended.code()), ("", 126));
    let told = ended.err();
    assert!(told.len() <= 400, "{told}");
    told
}

#[test]
fn a_denied_command_does_not_run_and_its_agent_reads_why() {
    let host = host(RULES, PLAIN);
    host.console_says("rexec: 5 rules are in force\n");
    fs::write(host.home.join("file"), "").expect("a file");
    let told = "rexec: nothing was run: \"rm -f file\" is refused by rule list: Nothing is deleted here.\n";
    assert_eq!(refused(&mut start(&host, "touch new; true && rm -f file")), told);
    assert!(host.home.join("file").exists() && !host.home.join("new").exists(), "all or nothing");
    let ended = end(&host, 1);
    assert_eq!((&ended["exit"], &ended["error"], &ended["output"]), (&json!(126), &json!("refused"), &json!("")));
    let rule = "list (config.toml:34)";
    assert_eq!(ended["gate"], json!({"do": "deny", "rule": rule, "leaf": "rm -f file", "by": "rule"}));
    let row =
        format!("… refused: rule {rule} denies `rm -f file`: Nothing is deleted here.\nrefused: nothing was run\n");
    host.console_says(&row);
    let (shown, log) =
        (reading::said(&host.journal_home(), &["show", "1"]).0, reading::said(&host.journal_home(), &["log"]).0);
    assert!(shown.contains(&format!("deny, by {rule}: rm -f file\n")), "{shown}");
    assert!(log.contains("refused"), "{log}");
    assert_eq!(host.run("printf other").out(), "other");
    host.finish();
}

/// A text of so many bytes, as agents put in front of a command, and the command.
fn long(bytes: usize, command: &str) -> String {
    let function = "f() { local a=\"$1\"; echo \"$a\" | sed s/a/b/; }\n";
    format!("{}{command}", function.repeat(bytes.div_ceil(function.len())))
}

#[test]
fn a_long_call_is_judged_as_a_short_one_and_the_others_do_not_wait_for_it() {
    let host = host(RULES, PLAIN);
    fs::write(host.home.join("file"), "").expect("a file");
    let told = "rexec: nothing was run: \"rm -f file\" is refused by rule list: Nothing is deleted here.\n";
    let mut denied: Vec<Calling> = (0..8).map(|_| start(&host, &long(20_000, "touch new; rm -f file"))).collect();
    assert_eq!(host.run("printf other").out(), "other");
    for calling in &mut denied {
        assert_eq!(refused(calling), told);
    }
    assert!(host.home.join("file").exists() && !host.home.join("new").exists());
    let mut held = start(&host, &long(20_000, "printf push"));
    asks(&host, 10);
    assert_eq!(answer(&host, "10 yes").0, 0);
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "push");
    assert_eq!(host.run(&long(20_000, "printf plain")).out(), "plain");
    assert_eq!(end(&host, 11)["gate"], Value::Null);
    host.finish();
}

#[test]
fn what_is_beyond_the_bounds_is_named_and_does_what_the_rules_say_of_it() {
    let many = format!("{}rm -f file", "true;".repeat(5_000));
    let host_of = |opaque: &str| host(&RULES.replace("[gate]\n", &format!("[gate]\nopaque = \"{opaque}\"\n")), PLAIN);
    let host = host_of("allow");
    assert_eq!(host.run(&many).code(), 0);
    let gate = json!({"do": "allow", "leaf": "(there are too many programs)", "by": "unread"});
    assert_eq!(end(&host, 1)["gate"], gate);
    let row = "… allowed, though not all of it was read: it is not known what `(there are too many programs)` runs \
               (opaque = \"allow\")\n";
    host.console_says(row);
    host.finish();
    let host = host_of("deny");
    let told = "rexec: nothing was run: \"(there are too many programs)\" is refused by the rules of your user: it is not \
                known what it runs\n";
    assert_eq!(refused(&mut start(&host, &many)), told);
    host.finish();
}

/// A word by which Codex knows its own sandbox would make it offer a run outside of that.
#[test]
fn an_agent_never_reads_the_words_of_its_own_sandbox() {
    let host = host(RULES, PLAIN);
    let told = refused(&mut start(&host, "printf never 'permission denied'"));
    assert_eq!(told, "rexec: nothing was run: \"printf\" is refused by the rules of your user\n");
    let mut held = start(&host, "printf push");
    asks(&host, 2);
    let (code, _, told) = answer(&host, "2 no --why sandbox");
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("why: it says \"sandbox\""), "{told}");
    assert_eq!(answer(&host, "2 no").0, 0);
    assert_eq!(refused(&mut held), "rexec: nothing was run: your user refused \"printf push\"\n");
    host.finish();
}

#[test]
fn a_command_that_is_asked_about_runs_after_a_yes_as_if_nothing_had_been() {
    let host = host(RULES, PLAIN);
    let mut held = start(&host, "printf push; echo error >&2; exit 3");
    asks(&host, 1);
    let listed = state_of(&host, 1);
    assert_eq!(listed["held"], "printf push", "{listed}");
    // Others run meanwhile.
    assert_eq!(host.run("printf other").out(), "other");
    let (_, told, errors) = answer(&host, "1 yes --json");
    assert_eq!(told, "{\"v\":1,\"seq\":1,\"result\":\"allowed\"}\n", "{errors}");
    let ended = held.finish(PATIENCE).expect("it ends");
    assert_eq!((ended.out(), ended.code()), ("push".to_owned(), 3));
    assert!(ended.err().ends_with("error\n"), "{}", ended.err());
    let ended = end(&host, 1);
    assert_eq!((&ended["gate"]["by"], &ended["error"]), (&json!("client"), &Value::Null), "{ended}");
    assert!(ended["gate"]["after_ms"].is_u64() && ended["queued_ms"].as_u64() >= ended["gate"]["after_ms"].as_u64());
    host.console_says("… #1 may run: a client of yours said yes\n");
    for (line, code) in [("1 yes", 1), ("9 yes", 3), ("1 maybe", 2), ("1", 2), ("1 yes yes", 2), ("1 yes --why x", 1)] {
        assert_eq!(answer(&host, line).0, code, "{line}");
    }
    host.finish();
}

#[test]
fn a_no_has_a_reason_and_a_question_that_nobody_answers_is_no_no() {
    let host = host(RULES, PLAIN);
    let away = format!("rexec: nothing was run: nobody is there to say whether \"printf here\" may run. {TOO_LATE}\n");
    assert_eq!(refused(&mut start(&host, "printf here; touch ran")), away);
    let mut held = start(&host, "printf push; touch ran");
    asks(&host, 2);
    assert_eq!(said(rexec(&host, &["answer", "2", "no", "--why", "not on a Friday"])).0, 0);
    assert_eq!(refused(&mut held), "rexec: nothing was run: your user refused \"printf push\": not on a Friday\n");
    let late =
        format!("rexec: nothing was run: nobody answered within 0 s whether \"printf soon\" may run. {TOO_LATE}\n");
    assert_eq!(refused(&mut start(&host, "printf soon; touch ran")), late);
    assert!(!host.home.join("ran").exists());
    let by = [1, 2, 3].map(|seq| end(&host, seq)["gate"]["by"].clone());
    assert_eq!(by, ["away", "client", "timeout"]);
    host.finish();
}

fn asks_of(host: &Host) -> Vec<Value> {
    let (_, lines, _) = said(rexec(host, &["ps", "--asks", "--json"]));
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A person who comes back answers what was asked meanwhile, and the agent's next try passes.
#[test]
fn a_yes_that_comes_too_late_lets_the_next_run_pass_once() {
    let host = host(RULES, PLAIN);
    let [here, soon] = ["printf here; touch ran", "printf soon \"$word\""];
    refused(&mut start(&host, here));
    let with_word =
        |word: &str| host.call(soon).env(word).start(Target::Shim(&host.socket())).expect("the shim starts");
    refused(&mut with_word("word=one"));
    let mut held = start(&host, "printf push");
    asks(&host, 3);
    let listed = asks_of(&host);
    let shown: Vec<_> = listed.iter().map(|ask| (&ask["run"], ask["state"].as_str(), ask["leaf"].as_str())).collect();
    let expected = [
        (&json!(1), Some("expired"), Some("printf here")),
        (&json!(2), Some("expired"), Some("printf soon one")),
        (&json!(3), Some("held"), Some("printf push")),
    ];
    assert_eq!(shown, expected);
    assert_eq!(listed[0]["rule"], "here (config.toml:21)", "{}", listed[0]);
    let (code, told, errors) = answer(&host, "1 yes");
    assert!(code == 0 && told.starts_with("#1 has ended; the next run of it may pass, until "), "{told}{errors}");
    let (_, told, errors) = answer(&host, "2 yes --json");
    assert_eq!(told, "{\"v\":1,\"seq\":2,\"result\":\"next\",\"next_ms\":600000}\n", "{errors}");
    assert_eq!(answer(&host, "2 no --why x").0, 1, "nobody reads why");
    // Another text, another value, and another directory are other commands.
    refused(&mut start(&host, "printf soon one"));
    refused(&mut with_word("word=other"));
    let elsewhere = Call { dir: dir(Path::new("/")), ..host.call(soon).env("word=one") };
    refused(&mut elsewhere.start(Target::Shim(&host.socket())).expect("the shim starts"));
    assert!(!host.home.join("ran").exists());
    let mut passed = with_word("word=one");
    assert_eq!(passed.finish(PATIENCE).expect("it ends").out(), "soon");
    assert_eq!(host.run(here).out(), "here");
    assert!(host.home.join("ran").exists());
    let gate = end(&host, 8)["gate"].clone();
    let rule = "here (config.toml:21)";
    assert_eq!(gate, json!({"do": "ask", "rule": rule, "leaf": "printf here", "by": "later"}));
    let row = format!("… #8 may run, as you said of #1: rule {rule} asks about `printf here`\n");
    host.console_says(&row);
    refused(&mut with_word("word=one"));
    assert_eq!(answer(&host, "9 no").0, 0);
    assert_eq!(answer(&host, "9 yes").0, 1, "a no takes it off the list");
    refused(&mut with_word("word=one"));
    assert_eq!(answer(&host, "3 yes").0, 0);
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "push");
    let tried = host.run(&format!("{} answer 10 yes", programs::rexec().display()));
    assert!(tried.err().contains("no agent decides for its user"), "{}", tried.err());
    let table = said(rexec(&host, &["ps", "--asks"])).1;
    assert!(table.contains("expired") && table.contains("printf soon one"), "{table}");
    host.finish();
}

#[test]
fn a_held_command_whose_caller_is_gone_or_that_is_ended_never_runs() {
    let host = host(RULES, PLAIN);
    let script = "printf push; touch ran";
    let mut ends: Vec<Calling> = (1..=4).map(|_| start(&host, script)).collect();
    (1..=4).for_each(|seq| asks(&host, seq));
    // Calls come in any order, so each is ended in every way.
    kill(Pid::from_raw(ends[0].pid()), Signal::SIGKILL).expect("a signal");
    kill(Pid::from_raw(ends[1].pid()), Signal::SIGTERM).expect("a signal");
    let is_over = |seq: u64| host.journal().of_type("end").any(|end| end["seq"] == seq);
    waiting::wait_until("two have ended", || (1..=4).filter(|seq| is_over(*seq)).count() == 2);
    let held: Vec<u64> = (1..=4).filter(|seq| !is_over(*seq)).collect();
    let number = held[0].to_string();
    assert_eq!(said(rexec(&host, &["kill", &number])).0, 0);
    waiting::wait_until("three have ended", || (1..=4).filter(|seq| is_over(*seq)).count() == 3);
    let last = held[1];
    assert_eq!(answer(&host, &format!("{number} yes")).0, 1, "it is too late");
    assert_eq!(answer(&host, &format!("{last} no")).0, 0);
    for calling in &mut ends {
        calling.finish(PATIENCE).expect("it ends");
    }
    assert!(!host.home.join("ran").exists());
    assert_eq!(end(&host, held[0])["gate"]["by"], "nobody");
    host.finish();
}

/// A host that ends does not leave a caller waiting, and does not run what it was asked about.
#[test]
fn the_end_of_the_host_refuses_what_is_held() {
    let mut host = host(RULES, PLAIN);
    let mut held = start(&host, "printf push; touch ran");
    asks(&host, 1);
    host.end_unchecked(Signal::SIGTERM);
    let ended = held.finish(PATIENCE).expect("it ends");
    assert_eq!((ended.out().as_str(), ended.code()), ("", 125));
    assert!(!host.home.join("ran").exists());
}

#[test]
fn an_agents_command_does_not_answer_for_its_user() {
    let host = host(RULES, PLAIN);
    let mut held = start(&host, "printf push");
    asks(&host, 1);
    let program = programs::rexec();
    for wrapped in ["{} answer 1 yes", "setsid {} answer 1 yes", "({} answer 1 yes & wait)"] {
        let tried = host.run(&wrapped.replace("{}", &program.display().to_string()));
        assert!(tried.err().contains("belongs to a command of this host, and no agent decides"), "{}", tried.err());
    }
    assert_eq!(state_of(&host, 1)["state"], "asks");
    assert_eq!(answer(&host, "1 yes").0, 0);
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "push");
    host.finish();
}

/// A command for `--notify` that keeps its token in a file.
pub(super) const KEEPS_TOKEN: &str =
    "read -r token; cd; env >env; n=token-$REXEC_RUN; echo \"$token\" >$n.new; mv $n.new $n";

/// A bridge to a phone may run anywhere. Only the command of `--notify` gets the token.
#[test]
fn who_has_the_token_of_a_held_command_answers_it_once() {
    let host = host(RULES, Setup { flags: &["--notify", KEEPS_TOKEN], ..PLAIN });
    let mut held = [start(&host, "printf push one"), start(&host, "printf push two")];
    let token = |run: u64| fs::read_to_string(host.home.join(&format!("token-{run}"))).unwrap_or_default();
    waiting::wait_until("both tokens are there", || !token(1).is_empty() && !token(2).is_empty());
    let environment = fs::read_to_string(host.home.join("env")).expect("a file");
    assert!(environment.contains("REXEC_MESSAGE=#") && !environment.contains(token(1).trim()), "{environment}");
    let program = programs::rexec().display().to_string();
    let tries = |words: &str| host.run(&format!("{program} answer {words}"));
    for words in ["1 yes --token token-2", "1 yes --token - <token-2", "1 yes --token /dev/null", "1 yes --token - <&-"]
    {
        let told = tries(words);
        assert!(told.code() == 1 && !told.err().contains(token(2).trim()), "{words}: {} {}", told.code(), told.err());
    }
    assert_eq!(tries("1 no --why sandbox --token token-1").code(), 1, "that did not use it up");
    for words in ["1 yes --token - <token-1", "2 no --token token-2"] {
        assert_eq!(tries(words).err(), "", "{words}");
    }
    let outs = held.each_mut().map(|calling| calling.finish(PATIENCE).expect("it ends").out());
    assert!(outs.contains(&"push".to_owned()) && outs.contains(&String::new()), "{outs:?}");
    assert_eq!([1, 2].map(|seq| end(&host, seq)["gate"]["by"].clone()), ["token", "token"]);
    host.console_says("… #2 is refused: who has its token said no\n");
    let told = tries("1 yes --token token-1").err();
    assert!(told.contains("it is not that of run 1, or that asks no more"), "{told}");
    host.finish();
}

/// An agent is also known as the process from which its commands come, whatever its program is called.
#[test]
fn an_agents_own_process_does_not_answer_for_its_user() {
    if !programs::has("python3") {
        return;
    }
    let host = host(RULES, PLAIN);
    let mut held = start(&host, "printf push");
    asks(&host, 1);
    let agent = "import subprocess, sys; subprocess.run([sys.argv[1], '-c', 'true'], check=True); \
                 sys.exit(subprocess.run([sys.argv[2], 'answer', '1', 'yes']).returncode)";
    let mut command = programs::command("python3");
    command.args(["-c", agent]).arg(programs::shims().join("sh")).arg(programs::rexec());
    command.env("REXEC_SOCKET", host.socket()).env("GEMINI_CLI", "1").current_dir(host.home.path());
    let (code, _, told) = said(command);
    assert!(code == 1 && told.contains("belongs to an agent, and no agent decides for its user"), "{code} {told}");
    assert_eq!(answer(&host, "1 yes").0, 0);
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "push");
    host.finish();
}

#[test]
fn a_program_reads_what_is_held_and_what_was_refused() {
    let host = host(RULES, PLAIN);
    let mut client = Client::new(&host);
    let refused = client.call("exec.run", &json!({"command": "rm -f file"}));
    assert_eq!((&refused["exit"], &refused["error"]), (&json!(126), &json!("refused")), "{refused}");
    let told = "rexec: nothing was run: \"rm -f file\" is refused by rule list: Nothing is deleted here.\n";
    assert_eq!(refused["message"], told);
    let run = client.start(&json!({"command": "printf push", "background": true}));
    assert_eq!(client.call("exec.status", &json!({"run": run}))["state"], "held");
    let (code, sentence) = client.error("exec.decide", &json!({"run": run, "allow": true, "why": "fine"}));
    assert_eq!((code, sentence.as_str()), (-32602, "why: only a refusal has a reason"));
    assert_eq!(client.call("exec.decide", &json!({"run": run, "allow": true})), json!({}));
    let ended = client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    assert_eq!((&ended["met"], &ended["exit"]), (&json!("exit"), &json!(0)), "{ended}");
    assert_eq!(client.error("exec.decide", &json!({"run": run, "allow": true})).0, -32009);
    assert_eq!(client.error("exec.decide", &json!({"run": 99, "allow": true})).0, -32001);
    // A run in the background that is refused, and one that is ended while it is held.
    let refused = client.start(&json!({"command": "printf push", "background": true}));
    client.call("exec.decide", &json!({"run": refused, "allow": false, "why": "no"}));
    let ended = client.call("exec.wait", &json!({"run": refused, "for": "exit"}));
    assert_eq!(ended["exit"], 126, "{ended}");
    let cancelled = client.start(&json!({"command": "printf push"}));
    client.call("exec.cancel", &json!({"run": cancelled}));
    let ended = client.call("exec.wait", &json!({"run": cancelled, "for": "exit"}));
    assert_eq!(ended["exit"], 125, "{ended}");
    drop(client);
    host.finish();
}

/// A person's own program asks instead of the console, whenever it has come.
#[test]
fn programs_are_told_of_what_is_held_and_of_what_was_decided() {
    let host = host(RULES, PLAIN);
    let (mut client, mut late) = (Client::new(&host), Client::new(&host));
    client.call("events.subscribe", &json!({}));
    let mut held = start(&host, "printf push");
    let note = client.note("exec.held", 1);
    let why = "rule push (config.toml:7) asks about `printf push`: Open a pull request.";
    let expected = json!({
        "run": 1, "leaf": "printf push", "rule": "push (config.toml:7)", "why": why, "wait_ms": 600_000,
    });
    assert_eq!(note, expected);
    assert_eq!(client.call("exec.status", &json!({"run": 1}))["held"], "printf push");
    late.call("events.subscribe", &json!({"runs": [1]}));
    assert_eq!(late.note("exec.held", 1), expected, "one that has come later");
    late.call("exec.decide", &json!({"run": 1, "allow": false, "why": "not today"}));
    for client in [&mut client, &mut late] {
        let mut note = client.note("exec.decided", 1);
        assert!(note["waited_ms"].take().is_u64(), "{note}");
        let decided = json!({"run": 1, "allow": false, "by": "client", "why": "not today", "waited_ms": null});
        assert_eq!(note, decided);
        client.note("exec.exited", 1);
    }
    refused(&mut held);
    assert_eq!(client.call("exec.status", &json!({"run": 1})).get("held"), None);
    let story = client.told(1);
    assert!(story.iter().all(|event| event["method"] != "exec.held"), "once: {story:?}");
    let mut last = Client::new(&host);
    last.call("events.subscribe", &json!({"runs": [1], "events": ["held", "exit"]}));
    let story = last.story(1);
    assert_eq!(story.len(), 2, "nothing asks any more: {story:?}");
    // Nobody answers in time.
    let mut held = start(&host, "printf soon");
    let note = client.note("exec.decided", 2);
    assert_eq!((&note["allow"], &note["by"]), (&json!(false), &json!("timeout")), "{note}");
    refused(&mut held);
    client.story(2);
    // Somebody answers later.
    for (allow, next) in [(true, json!(600_000)), (false, Value::Null)] {
        late.call("exec.decide", &json!({"run": 2, "allow": allow}));
        let note = client.note("exec.decided", 2);
        assert_eq!((&note["allow"], &note["by"], &note["next_ms"]), (&json!(allow), &json!("client"), &next), "{note}");
        assert!(note["waited_ms"].is_u64() && note.get("why").is_none(), "{note}");
    }
    drop((client, late, last));
    host.finish();
}

/// A limit is for the command, and a person may take longer to read it.
#[test]
fn the_time_limit_of_a_held_command_begins_with_the_command() {
    let host = host(RULES, PLAIN);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "printf push; sleep 1000", "timeout": 0.2, "stream": true}));
    let wait = json!({"run": run, "for": "exit", "timeout_ms": 600});
    assert_eq!(client.call("exec.wait", &wait)["met"], "time");
    client.call("exec.decide", &json!({"run": run, "allow": true}));
    let ended = client.note("exec.exited", run);
    assert_eq!((&ended["exit"], &ended["by"]), (&json!(124), &json!("timeout")), "{ended}");
    drop(client);
    host.finish();
}

/// The size of a test's console.
const SIZE: (u16, u16) = (120, 40);

/// Waits until the last row says this.
fn says(host: &Host, text: &str) {
    let row = || Screen::of(host.console_text().as_bytes(), SIZE).text().lines().last().unwrap_or_default().to_owned();
    assert!(waiting::until_true(PATIENCE, || row().contains(text)), "it never says {text:?}: {:?}", row());
}

fn types(host: &Host, keys: &[u8]) {
    host.terminal.as_ref().expect("a terminal").master_file().write_all(keys).expect("the terminal takes keys");
}

/// A person is at the console: the host has read a key.
fn attends(host: &Host) {
    says(host, "? keys");
    types(host, b"?");
    host.console_says("answer the command that the status line names");
}

/// Presses a key until the last row says this: a key that comes too soon does nothing.
fn presses(host: &Host, key: &[u8], text: &str) {
    let row = || Screen::of(host.console_text().as_bytes(), SIZE).text().lines().last().unwrap_or_default().to_owned();
    let has_come = || {
        types(host, key);
        waiting::until_true(std::time::Duration::from_millis(700), || row().contains(text))
    };
    assert!(waiting::until_true(PATIENCE, has_come), "it never says {text:?}: {:?}", row());
}

#[test]
fn keys_decide_on_what_the_status_line_names() {
    let wrapper = &["env", "TERM=xterm"];
    let host = host(RULES, Setup { terminal: true, wrapper, ..PLAIN });
    // A person at the console: then it is asked about whatever the rule says of an absent one.
    attends(&host);
    types(&host, b"y");
    let mut held = start(&host, "printf here; printf ran");
    says(&host, "#1 ASKS 9 min: printf here");
    says(&host, "y run #1 · n refuse");
    assert!(
        Screen::of(host.console_text().as_bytes(), SIZE).text().contains("1 run: #1 ASKS 9 min: printf here"),
        "no time left"
    );
    types(&host, b"yes");
    presses(&host, b"e", "y run #1");
    presses(&host, b"y", "nothing runs");
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "hereran");
    let mut held = [start(&host, "printf here one"), start(&host, "printf here two")];
    says(&host, "y run one · n refuse one");
    presses(&host, b"n", "refuse which run? #_");
    types(&host, b"2\r");
    says(&host, "1 run: #3 ASKS");
    presses(&host, b"n", "refuse which run? #_");
    types(&host, b"3\r");
    says(&host, "nothing runs");
    for calling in &mut held {
        let told = refused(calling);
        assert!(told.starts_with("rexec: nothing was run: your user refused \"printf here "), "{told}");
    }
    assert_eq!([1, 2, 3].map(|seq| end(&host, seq)["gate"]["by"].clone()), ["console", "console", "console"]);
    host.finish();
}

#[test]
fn an_always_is_saved_counts_for_what_follows_and_can_be_forgotten() {
    let wrapper = &["env", "TERM=xterm"];
    let host = host(RULES, Setup { terminal: true, wrapper, ..PLAIN });
    attends(&host);
    let mut held = start(&host, "printf here one");
    says(&host, "n refuse · a always");
    presses(&host, b"a", "always allow `printf here one` in ~ for ");
    says(&host, "? y/n");
    types(&host, b"n");
    says(&host, "y run #1");
    presses(&host, b"a", "? y/n");
    types(&host, b"y");
    assert_eq!(held.finish(PATIENCE).expect("it ends").out(), "here");
    let row = "always allowed from now on: `printf here one` in ~ for ";
    host.console_says(row);
    // The same, without a question.
    assert_eq!(host.run("printf here one").out(), "here");
    assert_eq!(end(&host, 1)["gate"]["by"], "console");
    let gate = end(&host, 2)["gate"].clone();
    let expected = json!({"do": "allow", "rule": "here", "leaf": "printf here one", "by": "learned"});
    assert_eq!(gate, expected);
    let file = host.journal_home().join("learned.toml");
    let text = fs::read_to_string(&file).expect("a file");
    assert!(text.contains("\nwords = [\"printf\", \"here\", \"one\"]\n") && text.contains(":1\"\n"), "{text}");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let (code, told, errors) = said(rexec(&host, &["gate", "learned"]));
    assert!(code == 0 && told.contains("printf here one"), "{told}{errors}");
    // What has a secret in it, or is not known, is not offered.
    for (seq, script, why) in [
        (3, "printf here $nothing", "its words are not all known"),
        (4, "printf here --token=hunter2hunter2", "a secret may be in it"),
    ] {
        let mut held = start(&host, script);
        // Another one stood there a moment ago, so that it may ask which.
        let row =
            || Screen::of(host.console_text().as_bytes(), SIZE).text().lines().last().unwrap_or_default().to_owned();
        let told = format!("#{seq} can be allowed only once (y): {why}");
        let says_so = || {
            types(&host, b"\r");
            _ = waiting::until_true(std::time::Duration::from_millis(300), || row().contains("nothing else"));
            types(&host, b"a");
            waiting::until_true(std::time::Duration::from_millis(700), || row().contains(&told))
        };
        assert!(waiting::until_true(PATIENCE, says_so), "it never says {told:?}: {:?}", row());
        assert_eq!(answer(&host, &format!("{seq} no")).0, 0);
        refused(&mut held);
    }
    // An agent's command may forget, and make the host believe nothing.
    let added = text.replace("\"one\"", "\"two\"");
    fs::write(&file, format!("{text}{}", added.split_once("\n\n").expect("a head").1)).expect("a file");
    let forget = format!("{} gate forget 1", programs::rexec().display());
    let told = host.run(&forget).err();
    assert!(told.contains("a running host knows it until it ends"), "{told}");
    assert_eq!(host.run("printf here one").out(), "here");
    let (code, _, errors) = said(rexec(&host, &["gate", "forget", "--all"]));
    assert_eq!(code, 0, "{errors}");
    let mut held = start(&host, "printf here one");
    asks(&host, 7);
    assert_eq!(answer(&host, "7 no").0, 0);
    refused(&mut held);
    assert_eq!(said(rexec(&host, &["gate", "forget", "1"])).0, 1);
    host.finish();
}

/// Nothing counts of a file that is not understood, and it is not overwritten.
#[test]
fn a_broken_file_of_what_is_always_allowed_is_named_and_asks() {
    let home = TempDir::new(None);
    for (name, text) in [(".config/rexec/config.toml", RULES), ("journal/learned.toml", "[[learned]]\nrun = 3\n")] {
        let file = home.path().join(name);
        let folder = file.parent().expect("a folder");
        fs::create_dir_all(folder).expect("a directory");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("a mode");
        fs::write(file, text).expect("a file");
    }
    let wrapper = &["env", "TERM=xterm"];
    let host = Host::in_dir(home, Setup { terminal: true, wrapper, ..PLAIN });
    let problem = "learned.toml:1:1: this entry has no `run`";
    host.console_says(problem);
    attends(&host);
    let mut held = start(&host, "printf here one");
    says(&host, "a always");
    presses(&host, b"a", "? y/n");
    types(&host, b"y");
    says(&host, "not saved: ");
    assert_eq!(answer(&host, "1 no").0, 0);
    refused(&mut held);
    host.finish();
}

#[test]
fn a_refusal_on_the_console_has_a_reason() {
    let wrapper = &["env", "TERM=xterm"];
    let host = host(RULES, Setup { terminal: true, wrapper, ..PLAIN });
    attends(&host);
    let mut held = start(&host, "printf here");
    says(&host, "y run #1");
    presses(&host, b"N", "why does #1 not run? ");
    types(&host, b" it is in the sandbox");
    says(&host, "it is in the sandbox_");
    types(&host, b"\r");
    says(&host, "#1 still asks: \"sandbox\" is what agents read of their own sandbox");
    presses(&host, b"N", "why does #1 not run? ");
    types(&host, b" not on a Friday");
    says(&host, "not on a Friday_");
    types(&host, b"\r");
    let told = refused(&mut held);
    assert!(told.contains("your user refused \"printf here\": ") && told.ends_with("not on a Friday\n"), "{told}");
    host.finish();
}
