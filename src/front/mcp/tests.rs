//! Calls with a host and a clock that the test plays.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::message::ClientMessage;
use super::{McpIdentity, McpServer};
use crate::front::rpc::error::{NAME_TAKEN, RpcError};
use crate::front::rpc::start::StartParams;
use crate::limits;

/// A server, its time, and what both sides were told.
struct Scene {
    server: McpServer,
    now: Instant,
    ids: u64,
}

fn lines(bytes: &mut Vec<u8>) -> Vec<Value> {
    let taken = std::mem::take(bytes);
    taken
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

impl Scene {
    fn new() -> Self {
        let identity = McpIdentity { whoami: None, session: "s".to_owned(), dir: "/p".to_owned() };
        let mut scene = Self { server: McpServer::new(identity), now: Instant::now(), ids: 0 };
        scene.server.host_is_up(scene.now);
        let info = json!({"name": "codex-mcp-client", "version": "1"});
        scene.say("initialize", json!({"protocolVersion": "2025-06-18", "clientInfo": info}));
        scene.client();
        scene
    }

    fn say(&mut self, method: &str, params: Value) -> u64 {
        self.ids += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}).to_string();
        self.server.client_line(line.as_bytes(), self.now);
        self.ids
    }

    fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.say("tools/call", json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}))
    }

    fn cancel(&mut self, id: u64) {
        let line = json!({"method": "notifications/cancelled", "params": {"requestId": id}}).to_string();
        self.server.client_line(line.as_bytes(), self.now);
    }

    /// What the client was told since the last look.
    fn client(&mut self) -> Vec<Value> {
        lines(self.server.to_client())
    }

    /// The only result since the last look: its text, and whether it is an error.
    fn result(&mut self) -> (String, bool) {
        let told = self.client();
        assert_eq!(told.len(), 1, "{told:?}");
        let result = &told[0]["result"];
        (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"].as_bool().unwrap())
    }

    /// What the host was asked since the last look: method and parameters.
    fn asked(&mut self) -> Vec<(String, Value, Value)> {
        let asked = lines(self.server.to_host());
        asked
            .into_iter()
            .map(|one| (one["method"].as_str().unwrap().to_owned(), one["params"].clone(), one["id"].clone()))
            .collect()
    }

    /// The host answers the only question since the last look; returns its parameters.
    fn answer(&mut self, method: &str, result: Value) -> Value {
        let asked = self.asked();
        assert_eq!((asked.len(), asked[0].0.as_str()), (1, method), "{asked:?}");
        self.host(&json!({"id": asked[0].2, "result": result}));
        asked[0].1.clone()
    }

    fn host(&mut self, line: &Value) {
        self.server.host_line(line.to_string().as_bytes(), self.now);
    }

    fn output(&mut self, run: u64, seq: u64, text: &str) {
        self.host(
            &json!({"method": "exec.output", "params": {"run": run, "seq": seq, "stream": "stdout", "text": text}}),
        );
    }

    fn exited(&mut self, run: u64, exit: i64) {
        self.host(&json!({"method": "exec.exited", "params": {"run": run, "exit": exit, "duration_ms": 1}}));
        self.host(&json!({"method": "exec.closed", "params": {"run": run, "last_seq": 1}}));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.server.tick(self.now);
    }
}

#[test]
fn a_command_is_a_request_and_its_output_the_result() {
    let mut scene = Scene::new();
    scene.call("exec", json!({"argv": ["make"], "dir": "sub", "envs": ["A=1=2"], "timeout": 5, "why": "to see"}));
    let params = scene.answer("exec.start", json!({"run": 7}));
    let mut expected = serde_json::to_value(StartParams::default()).unwrap();
    let given = json!({
        "argv": ["make"], "dir": "/p/sub", "env": {"A": "1=2"}, "env_mode": "add", "mode": "pipes", "combined": true,
        "stream": true, "timeout": 5.0, "why": "to see", "whoami": "Codex", "caller_session": "s",
    });
    let expected = expected.as_object_mut().unwrap();
    expected.extend(given.as_object().unwrap().clone());
    expected.retain(|_, value| !value.is_null());
    assert_eq!(params.as_object(), Some(&*expected));
    scene.output(7, 1, "one\ntwo");
    scene.exited(7, 7);
    assert_eq!(scene.result(), ("one\ntwo\n[exit 7]\n".to_owned(), true));
    scene.exited(7, 7);
    assert!(scene.client().is_empty(), "one result");
    assert_eq!(scene.server.deadline(), None);
}

#[test]
fn output_that_comes_behind_the_exit_is_in_the_result() {
    let mut scene = Scene::new();
    scene.call("exec", json!({"command": "make"}));
    scene.answer("exec.start", json!({"run": 7}));
    scene.output(7, 1, "one\n");
    scene.host(&json!({"method": "exec.exited", "params": {"run": 7, "exit": 0, "duration_ms": 1}}));
    scene.output(7, 2, "two\n");
    assert!(scene.client().is_empty());
    scene.host(&json!({"method": "exec.closed", "params": {"run": 7, "last_seq": 2}}));
    assert_eq!(scene.result(), ("one\ntwo\n[exit 0]\n".to_owned(), false));
    // A look waits for it, too.
    scene.call("output", json!({"run": 7, "after": 0}));
    scene.answer("exec.output", json!({"chunks": [], "next": 1, "exited": true, "exit": 0, "closed": false}));
    assert!(scene.client().is_empty());
    scene.pass(Duration::from_millis(100));
    let chunk = json!({"seq": 2, "stream": "stdout", "text": "two\n", "at_ms": 5});
    let answer = json!({"chunks": [chunk], "next": 2, "exited": true, "exit": 0, "closed": true});
    scene.answer("exec.output", answer);
    scene.pass(Duration::from_millis(100));
    scene.client();
    scene.answer("exec.output", json!({"chunks": [], "next": 2, "exited": true, "exit": 0, "closed": true}));
    assert_eq!(scene.result().0, "two\n[exit 0]\n");
}

#[test]
fn long_output_is_cut_in_the_middle_and_names_the_rest() {
    let mut scene = Scene::new();
    scene.call("exec", json!({"command": "seq 100000"}));
    scene.answer("exec.start", json!({"run": 7}));
    for seq in 1..=1_000 {
        let text: String = (1..=100).map(|n| format!("{}\n", (seq - 1) * 100 + n)).collect();
        scene.output(7, seq, &text);
    }
    scene.exited(7, 0);
    let told = scene.client();
    let text = told.last().unwrap()["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("99999\n100000\n[exit 0]\n"), "{text}");
    assert!(text.contains(" left out; rexec out 7 --lines "), "{text}");
    assert!(text.len() < limits::MCP_TEXT_BYTES + 200, "{}", text.len());
}

#[test]
fn progress_has_the_last_line_four_times_a_second_at_most() {
    let mut scene = Scene::new();
    scene.call("exec", json!({"command": "make"}));
    scene.answer("exec.start", json!({"run": 7}));
    let mut told = Vec::new();
    for step in 0..100 {
        scene.output(7, step + 1, &format!("step {step}\n"));
        scene.pass(Duration::from_millis(20));
        told.extend(scene.client());
    }
    assert!((6..=8).contains(&told.len()), "{} in two seconds", told.len());
    for (at, one) in told.iter().enumerate() {
        assert_eq!(one["method"], "notifications/progress");
        let params = &one["params"];
        assert_eq!((&params["progressToken"], &params["progress"]), (&json!("t"), &json!(at + 1)));
        assert!(params["message"].as_str().unwrap().starts_with("step "), "{one}");
    }
    scene.pass(Duration::from_secs(1));
    assert_eq!(scene.client().len(), 1, "the last line");
    scene.pass(Duration::from_secs(9));
    assert!(scene.client().is_empty(), "nothing new, nothing told");
}

#[test]
fn a_call_returns_before_clients_give_it_up_and_the_command_goes_on() {
    let mut scene = Scene::new();
    scene.call("exec", json!({"command": "make"}));
    scene.answer("exec.start", json!({"run": 7}));
    scene.output(7, 1, "compiling\n");
    scene.pass(Duration::from_millis(300));
    scene.client();
    let left = scene.server.deadline().unwrap() - scene.now;
    assert!(left < Duration::from_secs(45), "{left:?}");
    scene.pass(left);
    let (text, is_error) = scene.result();
    assert!(text.starts_with("compiling\n[still running, run 7: ") && !is_error, "{text}");
    assert!(scene.asked().is_empty(), "the command is left alone");
    scene.output(7, 2, "linking\n");
    scene.call("output", json!({"run": 7, "wait": 30}));
    let chunk = json!({"seq": 2, "stream": "stdout", "text": "linking\n", "at_ms": 5});
    let params = scene.answer("exec.output", json!({"chunks": [chunk], "next": 2, "exited": false, "closed": false}));
    assert_eq!((&params["after"], &params["wait_ms"]), (&json!(1), &json!(30_000)));
    scene.pass(Duration::from_millis(300));
    let params =
        scene.answer("exec.output", json!({"chunks": [], "next": 2, "exited": true, "exit": 0, "closed": true}));
    assert_eq!((&params["after"], &params["wait_ms"]), (&json!(2), &json!(29_700)));
    let told = scene.client();
    assert_eq!(told.last().unwrap()["result"]["content"][0]["text"], "linking\n[exit 0]\n");
}

#[test]
fn a_cancelled_call_ends_its_run_and_gets_no_answer() {
    let mut scene = Scene::new();
    let ends = |asked: &[(String, Value, Value)], run: u64| {
        asked.len() == 1 && asked[0].0 == "exec.cancel" && asked[0].1["run"] == run
    };
    let id = scene.call("exec", json!({"command": "sleep 9"}));
    scene.answer("exec.start", json!({"run": 7}));
    scene.cancel(id);
    let asked = scene.asked();
    assert!(ends(&asked, 7), "{asked:?}");
    scene.exited(7, 143);
    // Before the host has said the number.
    let id = scene.call("exec", json!({"command": "sleep 9"}));
    scene.cancel(id);
    scene.answer("exec.start", json!({"run": 8}));
    let asked = scene.asked();
    assert!(ends(&asked, 8), "{asked:?}");
    // After the result, and of what never was.
    let id = scene.call("list", json!({}));
    scene.answer("exec.list", json!({"runs": []}));
    assert_eq!(scene.result().0, "nothing runs\n");
    scene.cancel(id);
    scene.cancel(999);
    assert!(scene.asked().is_empty() && scene.client().is_empty());
    assert_eq!(scene.server.deadline(), None);
}

#[test]
fn a_host_that_does_not_answer_is_told_and_a_late_start_is_undone() {
    let mut scene = Scene::new();
    scene.call("exec", json!({"command": "make"}));
    scene.call("check_host", json!({}));
    scene.pass(Duration::from_secs(5));
    assert_eq!(scene.result(), scene_error("the host does not answer"));
    scene.pass(Duration::from_secs(41));
    assert_eq!(scene.result(), scene_error("the host does not answer"));
    let asked = scene.asked();
    assert_eq!(asked[0].0, "exec.start");
    scene.host(&json!({"id": asked[0].2, "result": {"run": 3}}));
    assert_eq!(scene.asked()[0].0, "exec.cancel");
}

/// The host's hints are for programs that call its methods.
#[test]
fn a_refusal_names_tools_and_no_methods() {
    for (error, hint) in [
        (RpcError::no_such_run(7), "list has the runs that there are"),
        (RpcError::run_is_over(7), "output shows how it ended"),
        (RpcError::input_is_closed(7), "start it with keep_stdin, or with tty"),
        (RpcError::new(NAME_TAKEN, "taken").hint("say exec.again"), "kill ends that one; or choose another name"),
        (RpcError::busy("the host is busy").hint("say exec.again"), "say exec.again"),
    ] {
        // The words of the sentence say nothing about what helps.
        for message in [error.message.clone(), "run 7 is over".to_owned()] {
            let mut scene = Scene::new();
            scene.call("write", json!({"run": 7, "text": "x"}));
            let id = scene.asked()[0].2.clone();
            let error = RpcError { message: message.clone(), ..error.clone() };
            scene.host(&json!({"id": id, "error": error}));
            assert_eq!(scene.result(), (format!("rexec: {message}\nhint: {hint}\n"), true));
        }
    }
}

fn scene_error(problem: &str) -> (String, bool) {
    let hint = "rexec status says how it is; the user sees it in its terminal";
    (format!("rexec: {problem}\nhint: {hint}\n"), true)
}

/// Gemini's arguments are of a type with one kind of numbers.
#[test]
fn a_run_may_be_written_with_a_point_and_an_id_that_loses_digits_is_refused() {
    let mut scene = Scene::new();
    scene.call("output", json!({"run": 7.0, "after": 3.0}));
    let (method, params, _) = scene.asked().remove(0);
    assert_eq!((&*method, &params["run"], &params["after"]), ("exec.output", &json!(7), &json!(3)));
    let id = "12345678901234567890123";
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    assert!(matches!(ClientMessage::read(line.as_bytes()), ClientMessage::Wrong(Value::Null, _)));
}

#[test]
fn numbers_of_an_earlier_host_do_not_reach_the_next_one() {
    let mut scene = Scene::new();
    scene.call("exec", json!({"command": "sleep 9"}));
    scene.answer("exec.start", json!({"run": 7}));
    scene.output(7, 1, "so far\n");
    scene.server.host_is_gone();
    let (text, is_error) = scene.result();
    assert!(text.starts_with("so far\nrexec: the host went away while run 7 ran; its outcome is unknown\n"), "{text}");
    assert!(is_error);
    scene.call("output", json!({"run": 7}));
    assert!(scene.server.wants_host());
    scene.server.host_is_up(scene.now);
    let (text, is_error) = scene.result();
    assert!(text.contains("run 7 was one of an earlier host's") && is_error, "{text}");
    assert!(scene.asked().is_empty());
    scene.call("exec", json!({"command": "true"}));
    scene.answer("exec.start", json!({"run": 7}));
    scene.call("kill", json!({"run": 7}));
    assert_eq!(scene.asked()[0].0, "exec.cancel", "it is the new host's now");
}

#[test]
fn keys_are_signals_where_there_is_no_terminal() {
    let mut scene = Scene::new();
    for (run, tty) in [(1, true), (2, false)] {
        scene.call("exec", json!({"command": "cat", "tty": tty, "background": true, "keep_stdin": true}));
        scene.answer("exec.start", json!({"run": run}));
    }
    let mut typed = |arguments: Value| {
        let id = scene.call("write", arguments);
        let asked = scene.asked();
        scene.cancel(id);
        asked.into_iter().map(|(method, params, _)| (method, params)).collect::<Vec<_>>()
    };
    let write =
        |run: u64, text: &str, eof: bool| ("exec.write".to_owned(), json!({"run": run, "text": text, "eof": eof}));
    assert_eq!(typed(json!({"run": 1, "text": "y", "key": "enter"})), [write(1, "y\r", false)]);
    assert_eq!(typed(json!({"run": 1, "key": "ctrl-c"})), [write(1, "\x03", false)]);
    assert_eq!(typed(json!({"run": 2, "text": "y\n", "key": "ctrl-d"})), [write(2, "y\n", true)]);
    let signal = ("exec.signal".to_owned(), json!({"run": 2, "signal": "INT"}));
    assert_eq!(typed(json!({"run": 2, "key": "ctrl-c"})), std::slice::from_ref(&signal));
    let both = json!({"run": 2, "text": "y", "key": "ctrl-c"});
    assert_eq!(typed(both.clone()), [write(2, "y", false)]);
    scene.call("write", both.clone());
    assert_eq!(scene.answer("exec.write", json!({})), write(2, "y", false).1);
    assert_eq!(scene.answer("exec.signal", json!({})), signal.1);
    assert_eq!(scene.asked()[0].0, "exec.output", "what it says to that is the result");
    // The answer to the text counts, too.
    scene.call("write", both);
    let id = scene.asked()[0].2.clone();
    scene.host(&json!({"id": id, "error": {"code": -32_000, "message": "too much input waits"}}));
    let (text, is_error) = scene.result();
    assert!(text.contains("too much input waits") && is_error, "{text}");
    assert!(scene.asked().is_empty());
}

#[test]
fn what_waits_is_bounded() {
    let mut scene = Scene::new();
    for _ in 0..limits::MCP_CALLS_MAX {
        scene.call("exec", json!({"command": "sleep 9"}));
    }
    assert!(scene.client().is_empty());
    scene.call("list", json!({}));
    assert!(scene.result().0.contains("too many calls wait"));
    let mut scene = Scene::new();
    scene.call("exec", json!({"command": "cat", "stdin": "x".repeat(limits::JSON_LINE_BYTES_MAX)}));
    assert!(scene.result().0.contains("the call is too long"));
    assert!(scene.asked().is_empty());
}
