//! What the methods do with commands.

use serde_json::{Value, json};

use super::client::{Client, text_of};
use crate::exec::rexec;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

#[test]
fn a_terminal_takes_keys_sizes_and_interrupts() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = "stty size; tty -s && echo terminal; read x; echo got $x; stty size; exec sed -u s/^/:/";
    let run = client.start(&json!({"command": script, "mode": "pty", "size": {"rows": 11, "cols": 33}, "stream": true,
        "sanitize": "raw"}));
    let begun = json!({"run": run, "for": "text", "text": "terminal"});
    assert_eq!(client.call("exec.wait", &begun)["met"], "text");
    assert_eq!(client.call("exec.resize", &json!({"run": run, "rows": 44, "cols": 55})), json!({}));
    assert_eq!(client.call("exec.write", &json!({"run": run, "text": "word\n"}))["accepted"], 5);
    // A shell may lose an interrupt that comes between its programs, on any terminal. So the last one has begun.
    client.call("exec.write", &json!({"run": run, "text": "again\n"}));
    let wait = json!({"run": run, "for": "text", "text": ":again"});
    assert_eq!(client.call("exec.wait", &wait)["met"], "text");
    client.call("exec.write", &json!({"run": run, "text": "\u{3}"}));
    let story = client.story(run);
    let text = text_of(&story);
    assert!(text.contains("11 33\r\nterminal\r\n") && text.contains("got word\r\n"), "{text:?}");
    assert!(text.contains("44 55\r\n"), "{text:?}");
    let exited = story.iter().find(|note| note["method"] == "exec.exited").expect("an exit");
    assert_eq!((&exited["params"]["exit"], &exited["params"]["signal"]), (&json!(130), &json!(2)), "{exited}");
}

/// Before, half of these were lost: the terminal had no foreground process group yet.
#[test]
fn an_interrupt_that_is_typed_at_once_ends_a_command_that_has_hardly_begun() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    for _ in 0..32 {
        let run = client.start(&json!({"argv": ["sleep", "1000"], "mode": "pty"}));
        assert_eq!(client.call("exec.write", &json!({"run": run, "text": "\u{3}"}))["accepted"], 1);
        let ended = client.call("exec.wait", &json!({"run": run, "for": "exit", "timeout_ms": 60_000}));
        assert_eq!(ended["met"], "exit", "run {run} lives on");
    }
}

#[test]
fn input_of_megabytes_goes_through_a_pipe_as_fast_as_it_is_read() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "sleep 0.2; wc -c", "keep_stdin": true}));
    let piece = "x".repeat(500_000);
    let asked: Vec<u64> = (0..6).map(|_| client.ask("exec.write", &json!({"run": run, "text": piece}))).collect();
    for id in asked {
        assert_eq!(client.result(id)["accepted"], 500_000);
    }
    client.call("exec.write", &json!({"run": run, "eof": true}));
    assert_eq!(client.error("exec.write", &json!({"run": run, "text": "late"})).0, -32002, "the input is closed");
    assert_eq!(client.call("exec.wait", &json!({"run": run, "for": "exit"}))["exit"], 0);
    let seen = client.call("exec.output", &json!({"run": run}));
    assert_eq!(seen["chunks"][0]["text"], "3000000\n", "{seen}");
}

#[test]
fn what_is_written_behind_the_end_of_the_input_is_told_so_while_the_run_goes_on() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.say("\n \r\n");
    let run = client.start(&json!({"command": "cat; sleep 1000", "keep_stdin": true}));
    let end = client.ask("exec.write", &json!({"run": run, "text": "a", "eof": true}));
    let late = client.ask("exec.write", &json!({"run": run, "text": "b"}));
    assert_eq!(client.result(end)["accepted"], 1);
    let error = client.reply(late)["error"].take();
    assert_eq!((&error["code"], &error["data"]["input"]), (&json!(-32002), &json!("closed")), "{error}");
    client.call("exec.cancel", &json!({"run": run}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    let error = client.ask("exec.write", &json!({"run": run, "text": "b"}));
    assert_eq!(client.reply(error)["error"]["data"].get("input"), None);
}

/// A process that it left still writes to its output, so that the host reads on for a second.
#[test]
fn a_run_is_over_from_the_moment_its_exit_is_told() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    for mode in ["pipes", "pty"] {
        let command = "trap '' HUP; (while echo on; do sleep 0.02; done) & read line; exit 3";
        let start = json!({"command": command, "mode": mode, "keep_stdin": true, "name": mode});
        let run = client.start(&start);
        client.call("exec.write", &json!({"run": run, "text": "go\n"}));
        let ended = client.call("exec.wait", &json!({"run": run, "for": "exit"}));
        assert_eq!((&ended["met"], &ended["exit"]), (&json!("exit"), &json!(3)), "{ended}");
        let asked = [
            client.ask("exec.write", &json!({"run": run, "text": "b"})),
            client.ask("exec.resize", &json!({"run": run, "rows": 10, "cols": 10})),
            client.ask("exec.signal", &json!({"run": run, "signal": "TERM"})),
        ];
        for id in asked {
            let error = client.reply(id)["error"].take();
            assert_eq!(error["message"], format!("run {run} is over"), "{mode}: {error}");
            assert_eq!(error["data"].get("input"), None, "{mode}: {error}");
        }
        let next = client.start(&start);
        for run in [run, next] {
            client.call("exec.cancel", &json!({"run": run, "grace_ms": 0}));
        }
    }
}

/// It is told so and nothing hangs.
#[test]
fn a_command_that_reads_nothing_fills_up_and_is_left_alone() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "sleep 1000", "keep_stdin": true}));
    let piece = "x".repeat(900_000);
    let waiting: Vec<u64> = (0..4).map(|_| client.ask("exec.write", &json!({"run": run, "text": piece}))).collect();
    assert_eq!(client.error("exec.write", &json!({"run": run, "text": piece})).0, -32003);
    assert_eq!(client.call("exec.run", &json!({"command": "echo on"}))["stdout"], "on\n");
    assert_eq!(client.call("exec.cancel", &json!({"run": run})), json!({"running": true}));
    for id in waiting {
        let answer = client.reply(id);
        let is_told = answer["result"]["accepted"] == 900_000 || answer["error"]["code"] == -32002;
        assert!(is_told, "{answer}");
    }
}

#[test]
fn a_connection_that_ends_takes_its_foreground_runs_along_and_leaves_the_others() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let fore = client.start(&json!({"command": "sleep 1000"}));
    let back = client.start(&json!({"command": "sleep 1000", "background": true}));
    client.ask("exec.run", &json!({"command": "sleep 1000"}));
    client.call("exec.status", &json!({"run": back}));
    drop(client);
    let mut other = Client::new(&host);
    for run in [fore, back + 1] {
        let met = other.call("exec.wait", &json!({"run": run, "for": "exit"}));
        assert_eq!(met["met"], "exit", "{met}");
    }
    let mut listed = || {
        let runs = other.call("exec.list", &json!({}));
        let runs = runs["runs"].as_array().expect("a list");
        runs.iter().filter_map(|run| run["run"].as_u64()).collect::<Vec<u64>>()
    };
    waiting::wait_until("the others have gone", || listed() == [back]);
    assert_eq!(other.call("exec.cancel", &json!({"run": back, "grace_ms": 0}))["running"], true);
    assert_eq!(other.call("exec.wait", &json!({"run": back, "for": "exit"}))["met"], "exit");
    assert_eq!(other.call("exec.cancel", &json!({"run": back}))["running"], false);
    host.wait_for("their ends", |journal| {
        (journal.of_type("end").filter(|end| end["error"] == "aborted").count() == 3).then_some(())
    });
}

#[test]
fn half_a_connection_gets_all_its_answers() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let (one, two) = (json!({"command": "sleep 0.3; echo one"}), json!({"command": "echo two"}));
    let (one, two) = (client.ask("exec.run", &one), client.ask("exec.run", &two));
    client.stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    assert_eq!(client.result(two)["stdout"], "two\n", "the second does not wait for the first");
    assert_eq!(client.result(one)["stdout"], "one\n");
    assert_eq!(client.hear(), None, "nothing more can come");
}

#[test]
fn a_name_is_taken_until_its_command_ends_or_is_restarted() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let web = json!({"command": "echo up; sleep 1000", "name": "web", "background": true});
    let first = client.start(&web);
    let id = client.ask("exec.start", &web);
    let refused = client.reply(id);
    assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["run"]), (&json!(-32006), &json!(first)));
    let mut elsewhere = web.clone();
    elsewhere["dir"] = json!("/");
    let other = client.start(&elsewhere);
    let mut again = web.clone();
    again["restart"] = json!(true);
    let second = client.start(&again);
    assert!(second > other);
    assert_eq!(client.call("exec.status", &json!({"run": first}))["state"], "closed", "it has ended before");
    for run in [second, other] {
        client.call("exec.cancel", &json!({"run": run}));
        client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    }
    let hostile = client.ask("exec.start", &json!({"command": "true", "name": "$(touch ran)"}));
    assert_eq!(client.reply(hostile)["error"]["code"], -32602, "a shell would expand it");
    let third = client.start(&json!({"command": "true", "name": "web"}));
    assert_eq!(client.call("exec.wait", &json!({"run": third, "for": "exit"}))["exit"], 0);
}

#[test]
fn ports_and_texts_and_times_are_awaited() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); print('starting', flush=True); s.listen(); \
                  print('on', s.getsockname()[1], flush=True); time.sleep(1000)";
    let run = client.start(&json!({"argv": ["python3", "-c", script], "background": true}));
    let port = client.call("exec.wait", &json!({"run": run, "for": "port"}));
    let line = client.call("exec.wait", &json!({"run": run, "for": "text", "text": "on "}))["line"].take();
    let port = port["port"].as_u64().unwrap_or_else(|| panic!("{port}"));
    assert!(line.as_str().is_some_and(|line| line.starts_with("on ")), "{line}");
    assert_eq!(client.call("exec.status", &json!({"run": run}))["ports"], json!([port]));
    let nothing = json!({"run": run, "for": "text", "text": "never", "timeout_ms": 50});
    assert_eq!(client.call("exec.wait", &nothing), json!({"met": "time"}));
    assert_eq!(client.call("exec.wait", &json!({"run": run, "for": "time", "timeout_ms": 1}))["met"], "time");
    let waits = client.ask("exec.wait", &json!({"run": run, "for": "text", "text": "never"}));
    client.call("exec.signal", &json!({"run": run, "signal": "SIGTERM"}));
    assert_eq!(client.result(waits), json!({"met": "exit", "exit": 143}));
    assert_eq!(client.error("exec.signal", &json!({"run": run, "signal": 15})).0, -32002);
}

/// Listens on a port, and later on another one.
const SERVER: &str = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); time.sleep(0.3); \
                      print('late', flush=True); t=socket.socket(); t.bind(('127.0.0.1',0)); t.listen(); \
                      time.sleep(1000)";

#[test]
fn a_client_is_told_of_ports_and_of_who_holds_them() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.call("events.subscribe", &json!({"events": ["port", "exit"]}));
    let run = client.start(&json!({"argv": ["python3", "-c", SERVER], "background": true}));
    let first = client.note("exec.port", run)["port"].take();
    let second = client.note("exec.port", run)["port"].take();
    assert_ne!(first, second);
    let mut late = Client::new(&host);
    late.call("events.subscribe", &json!({"events": ["port"], "runs": [run]}));
    let both = [late.note("exec.port", run)["port"].take(), late.note("exec.port", run)["port"].take()];
    assert_eq!(both, [first.clone(), second.clone()], "one that comes later is told of open ports");
    let listed = client.call("exec.list", &json!({}))["runs"][0].take();
    let ports = listed["ports"].as_array().unwrap_or_else(|| panic!("{listed}"));
    assert!(ports.contains(&first) && ports.contains(&second) && listed["processes"] == 1, "{listed}");
    let fails = format!("echo 'listen tcp 127.0.0.1:{first}: bind: address already in use' >&2; exit 1");
    let failed = client.call("exec.run", &json!({"command": fails, "whoami": "other"}));
    assert_eq!(failed["port_held"], json!({"port": first, "run": run, "whoami": "rpc"}), "{failed}");
    let told = client.note("exec.exited", run + 1);
    assert_eq!(told["port_held"], failed["port_held"], "{told}");
    client.call("exec.cancel", &json!({"run": run, "grace_ms": 0}));
    assert_eq!(client.note("exec.exited", run).get("port_held"), None);
}

#[test]
fn a_run_of_another_door_tells_what_it_is_for() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let mut exec = rexec(&host, &["exec", "--why", "to see", "--", "sleep", "1000"]).spawn().expect("rexec");
    let mut listed = || client.call("exec.list", &json!({}))["runs"][0].clone();
    waiting::wait_until("it is listed", || listed()["command"] == "sleep 1000");
    let run = listed();
    assert_eq!((&run["why"], run.get("name")), (&json!("to see"), None), "{run}");
    client.call("exec.cancel", &json!({"run": run["run"], "grace_ms": 0}));
    exec.wait().expect("its end");
}

#[test]
fn a_subscriber_sees_what_agents_run() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.call("events.subscribe", &json!({}));
    assert_eq!(host.run("echo by an agent; exit 4").code(), 4);
    let story = client.story(1);
    let methods: Vec<&str> = story.iter().filter_map(|note| note["method"].as_str()).collect();
    assert_eq!(methods, ["exec.started", "exec.output", "exec.exited", "exec.closed"], "{story:?}");
    assert_eq!((text_of(&story).as_str(), &story[2]["params"]["exit"]), ("by an agent\n", &json!(4)));
    assert_eq!(client.call("exec.output", &json!({"run": 1}))["chunks"][0]["text"], "by an agent\n");
    assert_eq!(client.call("events.unsubscribe", &json!({"subscription": 1})), json!({}));
    assert_eq!(client.error("events.unsubscribe", &json!({"subscription": 1})).0, -32602);
}

#[test]
fn json_is_parsed_and_a_command_gets_the_environment_it_asks_for() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let mut run = |params| client.call("exec.run", &params);
    assert_eq!(run(json!({"command": "echo '{\"a\":[1]}'", "parse": true}))["json"], json!({"a": [1]}));
    let lines = run(json!({"command": "echo 1; echo '{}'", "parse": true}));
    assert_eq!((lines.get("json"), &lines["json_lines"]), (None, &json!([1, {}])));
    let together = run(json!({"command": "echo a; echo b >&2; echo c", "combined": true}));
    assert_eq!(together["output"], "a\nb\nc\n");
    let whole = run(json!({"argv": ["/usr/bin/env"], "env": {"A": "b"}, "env_mode": "whole"}));
    let names: Vec<&str> =
        whole["stdout"].as_str().expect("text").lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(names, ["A", "REXEC_INSIDE"]);
    assert_eq!(run(json!({"argv": ["sh", "-c", "echo $0"], "arg0": "other"}))["stdout"], "other\n");
    assert_eq!(run(json!({"command": "cat", "stdin_base64": "aGk="}))["stdout"], "hi");
    let cut = run(json!({"command": "seq 100000", "max_output_bytes": 1000}));
    let text = cut["stdout"].as_str().expect("text");
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n100000\n") && text.len() < 1_100, "{text}");
    assert_eq!(cut["omitted_bytes"], 588_895 - 1_000);
    // On a busy machine the command may need longer for its first line than the shortest of these.
    let has_written = [0.2, 1.0, 5.0, 25.0].into_iter().any(|seconds| {
        let late = run(json!({"command": "echo before; exec sleep 1000", "timeout": seconds}));
        assert_eq!((&late["exit"], &late["error"]), (&json!(124), &json!("timeout")));
        late["stdout"] == "before\n"
    });
    assert!(has_written, "it never wrote in time");
}

/// What they leave behind would stay otherwise.
#[test]
fn the_end_of_the_host_ends_background_runs_and_is_told() {
    let mut host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "echo $$ > pid; exec sleep 1000", "background": true, "dir": host.home.path(), "notify": ["exit"]}));
    let pid = waiting::until(PATIENCE, || std::fs::read_to_string(host.home.join("pid")).ok()?.trim().parse().ok());
    let process = Process::of(pid.expect("it runs")).expect("it runs");
    host.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(client.note("exec.exited", run)["error"], "aborted");
    assert!(waiting::until_true(PATIENCE, || !process.is_alive()));
    while client.hear().is_some() {}
    host.check_end();
}

#[test]
fn a_run_is_paused_and_resumed_and_the_console_says_for_whom() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "read line; echo got $line", "keep_stdin": true}));
    assert_eq!(client.call("exec.pause", &json!({"run": run})), json!({}));
    assert_eq!(client.call("exec.status", &json!({"run": run}))["state"], "paused");
    let is_stopped = || host.tree().iter().any(|process| process.state == 'T');
    waiting::wait_until("its guard has obeyed", is_stopped);
    client.call("exec.write", &json!({"run": run, "text": "it\n"}));
    let wait = json!({"run": run, "for": "exit", "timeout_ms": 300});
    assert_eq!(client.call("exec.wait", &wait)["met"], "time", "it is stopped");
    // Whoever may see a run may let it go on.
    let mut other = Client::new(&host);
    assert_eq!(other.call("exec.resume", &json!({"run": run})), json!({}));
    assert_eq!(client.call("exec.wait", &json!({"run": run, "for": "exit"}))["met"], "exit");
    assert_eq!(client.call("exec.output", &json!({"run": run}))["chunks"][0]["text"], "got it\n");
    for method in ["exec.pause", "exec.resume"] {
        waiting::wait_until("it is over", || {
            let id = client.ask(method, &json!({"run": run}));
            client.reply(id)["error"]["code"] == -32_002
        });
        assert_eq!(client.error(method, &json!({"run": 99})).0, -32_001);
    }
    let run = client.start(&json!({"command": "sleep 1000"}));
    assert_eq!(client.error("exec.resume", &json!({"run": run})).1, format!("run {run} is not paused"));
    let console = host.console_text();
    assert!(console.contains("… #1 is paused: a client asked\n"), "{console}");
    assert!(console.contains("… #1 is resumed\n"), "{console}");
}

#[test]
fn what_runs_have_left_running_is_listed_and_ended() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    assert_eq!(client.call("exec.left", &json!({})), json!({"runs": []}));
    let live = client.start(&json!({"command": "sleep 1000"}));
    assert_eq!(host.run("sleep 1001 >/dev/null 2>&1 & exit 3").code(), 3);
    let left = |client: &mut Client| client.call("exec.left", &json!({}))["runs"].take();
    // What the shell has forked has the shell's name until it executes its program.
    let is_sleep = |runs: &Value| runs[0]["processes"][0]["program"] == "sleep";
    waiting::wait_until("it is listed", || is_sleep(&left(&mut client)));
    let runs = left(&mut client);
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
    let run = &runs[0];
    assert_eq!((&run["run"], &run["state"], &run["whoami"]), (&json!(2), &json!("left"), &json!("shell")), "{run}");
    let pid = i32::try_from(run["processes"][0]["pid"].as_i64().expect("a number")).expect("a process id");
    assert!(Process::of(pid).is_some(), "{run}");
    client.call("exec.pause", &json!({"run": 2}));
    assert_eq!(left(&mut client)[0]["state"], "paused");
    client.call("exec.resume", &json!({"run": 2}));
    client.call("exec.cancel", &json!({"run": 2, "grace_ms": 0}));
    waiting::wait_until("it is gone", || left(&mut client) == json!([]));
    assert_eq!(client.call("exec.status", &json!({"run": live}))["state"], "running");
    let console = host.console_text();
    assert!(console.contains("… stopping what #2 left running: a client asked\n"), "{console}");
}

#[test]
fn the_console_says_whether_a_caller_asked_for_the_end_or_is_gone() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let asked = client.start(&json!({"command": "sleep 1000"}));
    client.call("exec.cancel", &json!({"run": asked}));
    let met = client.call("exec.wait", &json!({"run": asked, "for": "exit"}));
    assert_eq!(met["met"], "exit");
    assert_eq!(client.call("exec.status", &json!({"run": asked}))["by"], "caller");
    waiting::wait_until("its words", || host.console_text().contains("… stopping: its caller asked\n"));
    assert!(!host.console_text().contains("gone"), "{}", host.console_text());
    client.start(&json!({"command": "sleep 1000"}));
    drop(client);
    waiting::wait_until("its words", || host.console_text().contains("… stopping: its caller is gone\n"));
}

#[test]
fn the_console_says_that_a_run_is_paused_below_its_beginning() {
    let host = Host::with(Setup { terminal: true, ..MIRROR });
    let mut client = Client::new(&host);
    let start = json!({"id": 1, "method": "exec.start", "params": {"command": "cat", "keep_stdin": true}});
    // It is paused as soon as it has begun.
    let pauses = (2..100).map(|id| json!({"id": id, "method": "exec.pause", "params": {"run": 1}}).to_string());
    client.say(&[start.to_string()].into_iter().chain(pauses).collect::<Vec<_>>().join("\n"));
    client.result(1);
    waiting::wait_until("it is paused", || {
        let id = client.ask("exec.pause", &json!({"run": 1}));
        client.reply(id).get("error").is_none()
    });
    host.console_says("#1 is paused: a client asked");
    host.console_says("[1mcat");
    let text = host.console_text();
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
    assert!(place("[1mcat") < place("#1 is paused"), "{text}");
}
