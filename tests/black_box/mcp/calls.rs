//! Calls of the tools, with a host.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::agent::{Agent, run_in};
use crate::exec::{rexec, said};
use crate::support::host::{Host, MIRROR};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE, wait_until};

fn host() -> Host {
    Host::with(MIRROR)
}

#[test]
fn a_command_runs_in_the_host_under_the_agents_name() {
    let host = host();
    let mut agent = Agent::of(&host);
    let home = host.home.path().display().to_string();
    assert_eq!(agent.run("echo one; echo two >&2; pwd"), format!("one\ntwo\n{home}\n"));
    let failed = agent.call("exec", &json!({"argv": ["sh", "-c", "printf half; exit 7"]}));
    assert_eq!((failed.text.as_str(), failed.is_error), ("half\n[exit 7]\n", true));
    assert_eq!(agent.run("true"), "");
    let given =
        json!({"command": "cat; echo $A $B; pwd", "dir": "/", "stdin": "in\n", "envs": ["A=1"], "env": {"B": "2"}});
    assert_eq!(agent.call("exec", &given).text, "in\n1 2\n/\n[exit 0]\n");
    let cleared = json!({"argv": ["/usr/bin/env"], "clear_env": true, "env": {"ONLY": "this"}});
    let text = agent.call("exec", &cleared).text;
    assert!(text.contains("ONLY=this\n") && !text.contains("PATH="), "{text}");
    let missing = agent.call("exec", &json!({"argv": ["no-such-program"]}));
    assert!(
        missing.is_error && missing.text.starts_with("rexec: no-such-program: not found\nhint: "),
        "{}",
        missing.text
    );
    assert!(missing.text.ends_with("\n[exit 127]\n"), "{}", missing.text);
    let nowhere = agent.call("exec", &json!({"command": "true", "dir": "/no/such/dir"}));
    assert!(nowhere.is_error && nowhere.text.contains("/no/such/dir"), "{}", nowhere.text);
    // On a busy machine the command may need longer for its first line than the shortest of these.
    let has_written = [0.3, 1.0, 5.0, 25.0].into_iter().any(|seconds| {
        let slow = agent.call("exec", &json!({"command": "echo begun; sleep 300", "timeout": seconds}));
        assert!(slow.is_error && slow.text.contains("[exit 124: its timeout was over]"), "{}", slow.text);
        slow.text.starts_with("begun\n")
    });
    assert!(has_written, "it never wrote in time");
    assert_eq!(agent.call("check_host", &json!({})).text, "HOST RUNNING\n");
    let whoami = host.wait_for("the first command", |journal| {
        let mut ends = journal.of_type("end");
        Some(ends.find(|end| end["output"] == "half")?["whoami"].clone())
    });
    assert_eq!(whoami, "Claude Code");
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn files_come_back_after_the_users_yes() {
    let home = TempDir::new(None);
    let folder = home.join(".config/rexec");
    fs::create_dir_all(&folder).expect("a directory");
    fs::write(folder.join("config.toml"), "[gate]\naway = 'wait'\n").expect("a file");
    let host = Host::in_dir(home, MIRROR);
    let mut agent = Agent::of(&host);
    fs::write(host.home.join("notes"), "of a week").expect("a file");
    assert_eq!(agent.run("rm notes"), "");
    host.console_says("gone or changed: rexec undo 1\n");
    for (word, text, is_error) in
        [("no", "your user refused \"rexec undo 1 notes\"", true), ("yes", "restored 1 file", false)]
    {
        let id = agent.begin("undo", &json!({"run": 1, "paths": ["notes"]}));
        let asks = || said(rexec(&host, &["ps", "--asks", "--json"])).1;
        let asked =
            waiting::until(PATIENCE, || serde_json::from_str::<Value>(asks().lines().next()?).ok()?["run"].as_u64());
        let run = asked.expect("it asks").to_string();
        assert_eq!(said(rexec(&host, &["answer", &run, word])).0, 0);
        let result = agent.result(id);
        assert!(result.text.contains(text) && result.is_error == is_error, "{}", result.text);
    }
    assert_eq!(fs::read_to_string(host.home.join("notes")).expect("it is back"), "of a week");
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn the_name_may_be_given() {
    let host = host();
    for args in
        [&["mcp", "--whoami", "My Agent"][..], &["--mcp-stdio", "--whoami", "My Agent"], &["-m", "--whoami=My Agent"]]
    {
        let mut agent = Agent::at(host.home.path(), args);
        agent.shake_hands("codex-mcp-client");
        assert_eq!(agent.run("echo hello"), "hello\n");
        assert_eq!(agent.leave(), Some(0));
    }
    let named = host.wait_for("three ends", |journal| {
        let ends: Vec<_> = journal.of_type("end").collect();
        (ends.len() == 3).then(|| ends.iter().all(|end| end["whoami"] == "My Agent"))
    });
    assert!(named);
}

#[test]
fn a_cancelled_call_ends_its_command_at_once_and_is_not_answered() {
    let host = host();
    let mut agent = Agent::of(&host);
    let id = agent.begin("exec", &json!({"command": "sleep 300 & echo $! >child; echo $$ >shell; wait"}));
    let files = ["shell", "child"].map(|name| host.home.join(name));
    wait_until("the command runs", || {
        files.iter().all(|file| fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n')))
    });
    let pids = files.map(|file| fs::read_to_string(file).expect("a number").trim().parse::<i32>().expect("a number"));
    agent.cancel(id);
    agent.cancel(id);
    agent.cancel(12_345);
    wait_until("its processes are gone", || {
        pids.iter().all(|&pid| Process::of(pid).is_none_or(|left| left.is_zombie()))
    });
    assert_eq!(agent.run("echo after"), "after\n");
    assert!(!agent.has_answered(id), "{:#?}", agent.said());
}

#[test]
fn progress_shows_the_last_line() {
    let host = host();
    let mut agent = Agent::of(&host);
    let command = "until [ -e enough ]; do echo step $((n += 1)); sleep 0.02; done";
    let began = Instant::now();
    let id = agent.begin_with_progress("exec", &json!({"command": command, "dir": host.home.path()}), "bar");
    let is_progress = |one: &&Value| one["method"] == "notifications/progress";
    wait_until("it is told twice", || agent.said().iter().filter(is_progress).count() > 1);
    fs::write(host.home.join("enough"), "").expect("a file");
    assert!(!agent.result(id).is_error);
    let said = agent.said();
    let told: Vec<_> = said.iter().filter(is_progress).collect();
    assert!(told.len() as u128 <= began.elapsed().as_millis() / 250 + 1, "{told:#?}");
    for one in told {
        assert_eq!(one["params"]["progressToken"], "bar");
        assert!(one["params"]["message"].as_str().expect("text").starts_with("step "), "{one}");
    }
    let id = agent.begin("exec", &json!({"command": "echo one; sleep 0.6; echo two"}));
    agent.result(id);
    assert_eq!(agent.said().len(), said.len() + 1, "without a token there is no progress");
}

#[test]
fn of_long_output_both_ends_come_and_the_rest_can_be_printed() {
    let host = host();
    let mut agent = Agent::of(&host);
    let text = agent.run("seq 1 20000");
    assert!(text.starts_with("1\n2\n3\n") && text.ends_with("19999\n20000\n") && text.len() < 10_200, "{}", text.len());
    let line = text.lines().find(|line| line.contains(" left out; rexec out ")).expect("a line about the rest");
    let hint = line.split_once("left out; ").expect("it says so").1.split(" | ").next().expect("a command");
    let words: Vec<&str> = hint.split_whitespace().skip(1).collect();
    host.wait_for("the end", |journal| journal.of_type("end").next().map(drop));
    let mut command = programs::command(programs::rexec());
    command.args(words).env("REXEC_HOME", host.journal_home()).env("REXEC_SOCKET", host.socket());
    let printed = command.output().expect("rexec");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let head = text.lines().take_while(|line| !line.contains("left out")).count();
    assert!(printed.starts_with(&format!("{}\n", head + 1)), "{hint}: {printed}");
}

/// More than the host holds of it at once, from a program that does not wait for a reader.
#[test]
fn the_end_of_long_output_is_always_there() {
    let host = host();
    let mut agent = Agent::of(&host);
    for _ in 0..20 {
        let text = agent.run("seq 100001 120000");
        assert!(text.ends_with("\n119999\n120000\n"), "{}", &text[text.len() - 40..]);
    }
}

#[test]
fn eight_calls_run_at_once() {
    let host = host();
    let mut agent = Agent::of(&host);
    // Each waits for all others to have begun.
    let command =
        |n: usize| format!("touch {n}; while [ $(ls [1-8] 2>/dev/null | wc -l) -lt 8 ]; do sleep 0.05; done; echo {n}");
    let ids: Vec<u64> = (1..=8).map(|n| agent.begin("exec", &json!({"command": command(n)}))).collect();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(agent.result(*id).text, format!("{}\n[exit 0]\n", n + 1));
    }
}

#[test]
fn a_command_in_the_background_is_looked_at_and_ended() {
    let host = host();
    let mut agent = Agent::of(&host);
    let server = json!({"command": "echo ready; while ! [ -e go ]; do sleep 0.05; done; echo more; sleep 300",
                        "background": true, "name": "web", "why": "to see the page"});
    let started = agent.call("exec", &server);
    assert!(started.text.contains("[runs in the background, run ") && !started.is_error, "{}", started.text);
    let run = run_in(&started.text);
    // On a busy machine its first line may come after the first look.
    if !started.text.starts_with("ready\n") {
        wait_until("it is ready", || agent.call("output", &json!({"run": run})).text.starts_with("ready\n"));
    }
    let again = agent.call("exec", &server);
    assert!(again.is_error && again.text.contains(&format!("run {run}")), "one name, one command: {}", again.text);
    let listed = agent.call("list", &json!({})).text;
    assert!(listed.contains(&format!("run {run} · running")) && listed.contains("name web"), "{listed}");
    let nothing = agent.call("output", &json!({"run": run})).text;
    assert!(nothing.starts_with(&format!("[run {run} is running; next: after ")), "{nothing}");
    fs::write(host.home.join("go"), "").expect("a file");
    wait_until("more is there", || {
        agent.call("output", &json!({"run": run, "after": 0})).text.starts_with("ready\nmore\n")
    });
    let killed = agent.call("kill", &json!({"run": run}));
    assert!(killed.text.contains("[exit 143") || killed.text.contains("[exit 137"), "{}", killed.text);
    let over = agent.call("kill", &json!({"run": run}));
    assert_eq!(over.text, format!("run {run} was over\n"));
    // On a busy machine its end may come after the first look.
    let is_told = (0..20).any(|_| {
        let failed = agent.call("exec", &json!({"command": "echo no port; exit 3", "background": true}));
        (failed.text.as_str(), failed.is_error) == ("no port\n[exit 3]\n", true)
    });
    assert!(is_told, "a failure is told at once");
    let unknown = agent.call("output", &json!({"run": 999}));
    assert!(unknown.is_error && unknown.text.starts_with("rexec: "), "{}", unknown.text);
}

#[test]
fn a_terminal_and_a_pipe_can_be_typed_to() {
    let host = host();
    let mut agent = Agent::of(&host);
    let ask = json!({"command": "printf 'Name? '; read name; echo \"hello $name\"; sleep 300", "tty": true, "background": true});
    let run = run_in(&agent.call("exec", &ask).text);
    let said = agent.call("write", &json!({"run": run, "text": "Ann\n", "wait": 0.2})).text;
    let mut all = said.clone();
    wait_until("the greeting is there", || {
        all = agent.call("output", &json!({"run": run, "after": 0})).text;
        all.contains("hello Ann")
    });
    let ended = agent.call("write", &json!({"run": run, "key": "ctrl-c", "wait": 40})).text;
    assert!(ended.contains("[exit 130"), "{ended}");
    let cat = json!({"command": "cat; echo end of file", "keep_stdin": true, "background": true});
    let run = run_in(&agent.call("exec", &cat).text);
    let ended = agent.call("write", &json!({"run": run, "text": "line\n", "eof": true, "wait": 40})).text;
    assert_eq!(ended, "line\nend of file\n[exit 0]\n");
    let late = agent.call("write", &json!({"run": run, "text": "x"}));
    assert!(late.is_error, "{}", late.text);
}

/// An agent that takes each answer, but asks faster than it is answered: what it says is read no faster.
#[test]
fn an_agent_that_asks_faster_than_it_is_answered_is_held_back() {
    let home = TempDir::new(None);
    let mut command = programs::command(programs::rexec());
    command.arg("mcp").env_clear().env("REXEC_SOCKET", home.join("host.sock"));
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("rexec can be started");
    let (mut input, mut output) = (server.stdin.take().expect("a pipe"), server.stdout.take().expect("a pipe"));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}});
    writeln!(input, "{hello}").expect("the server reads");
    let line = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n";
    let (piece, sent) = (line.repeat(100), Arc::new(AtomicUsize::new(0)));
    let counted = sent.clone();
    let asking = std::thread::spawn(move || {
        while input.write_all(piece.as_bytes()).is_ok() {
            counted.fetch_add(piece.len(), Ordering::Relaxed);
        }
    });
    let (mut answered, mut buffer) = (0, vec![0; 1 << 20]);
    while answered < waiting::size(2_000, 8_000) {
        let length = output.read(&mut buffer).expect("a pipe");
        assert!(length > 0, "the server lives");
        answered += memchr::memchr_iter(b'\n', &buffer[..length]).count();
        let waiting = sent.load(Ordering::Relaxed).saturating_sub(answered * line.len());
        assert!(waiting < 1 << 20, "{waiting} bytes wait in the server after {answered} answers");
    }
    server.kill().expect("it runs");
    server.wait().expect("it ends");
    asking.join().expect("the writer ends");
}

#[test]
fn what_was_asked_before_the_end_of_standard_input_is_answered() {
    let host = Host::with(MIRROR);
    let lines = |command: &str| {
        let greeting = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x"}});
        let call = json!({"name": "exec", "arguments": {"command": command}});
        [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        ]
        .map(|line| format!("{line}\n"))
        .concat()
    };
    for (command, wanted, is_error) in [
        ("echo marker", "marker", false),
        ("sleep 1000", "standard input was closed before the call had a result", true),
    ] {
        let input = host.home.join("input");
        fs::write(&input, lines(command)).expect("a file");
        let output = programs::command(programs::rexec())
            .arg("mcp")
            .env("REXEC_SOCKET", host.socket())
            .stdin(fs::File::open(&input).expect("a file"))
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).expect("text");
        let last: Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
        assert_eq!((&last["id"], &last["result"]["isError"]), (&json!(2), &json!(is_error)), "{said}");
        assert!(last["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains(wanted)), "{said}");
    }
    host.wait_for("both ends", |journal| (journal.of_type("end").count() == 2).then_some(()));
}
