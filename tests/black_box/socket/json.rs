//! Plain requests in JSON: their environment, their ends, and the errors for what they must not contain.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::crowd::{answer, ask_in_json};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

fn ask(host: &Host, request: &Value) -> Value {
    answer(ask_in_json(host, request))
}

fn output(host: &Host, request: &Value) -> String {
    ask(host, request)["output"].as_str().expect("output").to_owned()
}

/// Another environment below a host than it would have by itself.
fn with_env(entries: &[String], flags: &'static [&'static str]) -> Host {
    let words: Vec<&str> = entries.iter().map(|entry| &*entry.clone().leak()).collect();
    let wrapper: Vec<&str> = ["env"].into_iter().chain(words).collect();
    Host::with(Setup { wrapper: wrapper.leak(), flags, ..PLAIN })
}

#[test]
fn words_obey_the_rules_for_the_environment() {
    let link = programs::shims().join("bash");
    let env = [
        format!("SHELL={}", link.display()),
        "CLAUDE_CODE_SHELL=/x/rexec-bash".to_owned(),
        "BASH_ENV=/x/rexec-env".to_owned(),
        "REXEC_ENV_DROP=DROPPED_*".to_owned(),
        "DROPPED_ONE=1".to_owned(),
        "KEPT=1".to_owned(),
    ];
    for (flags, has_pager) in [(&[][..], true), (&["--no-pty"][..], false)] {
        let host = with_env(&env, flags);
        let seen = output(&host, &json!({"whoami": "Me", "dir": "/", "exec": ["env"], "envs": {"GIVEN": "2"}}));
        let has = |entry: &str| seen.lines().any(|line| line.starts_with(entry));
        assert!(has("KEPT=1") && has("GIVEN=2") && has("REXEC_INSIDE="), "{seen}");
        let shell = crate::support::call::real_shell("bash");
        assert!(has(&format!("SHELL={shell}")) || has("SHELL=/bin/bash"), "{seen}");
        for name in ["CLAUDE_CODE_SHELL=", "BASH_ENV=", "REXEC_ENV_DROP=", "REXEC_SOCKET=", "DROPPED_ONE="] {
            assert!(!has(name), "{name}: {seen}");
        }
        assert_eq!(has("GIT_PAGER=cat"), has_pager, "{flags:?}: {seen}");
        let cleared =
            json!({"whoami": "Me", "dir": "/", "exec": ["/usr/bin/env"], "envs": {"GIVEN": "2"}, "clear_env": true});
        let seen = output(&host, &cleared);
        let names: Vec<&str> = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        assert_eq!(names, ["GIVEN", "REXEC_INSIDE", "REXEC_WHOAMI"], "{seen}");
    }
}

#[test]
fn words_are_found_and_placed_as_execvp_would() {
    let host = Host::start();
    let place = host.home.path();
    fs::create_dir(place.join("bin")).expect("a directory");
    let tool = place.join("bin/tool");
    fs::write(&tool, "echo script \"$@\" in $PWD").expect("a file");
    let request = |exec: &[&str], path: &str, dir: &std::path::Path| json!({"whoami": "Me", "dir": dir, "exec": exec, "envs": {"PATH": path}});
    let path = format!("/no/such/place:{}:/usr/bin:/bin", place.join("bin").display());
    let seen = ask(&host, &request(&["tool", "a b"], &path, place));
    assert_eq!((&seen["exit"], &seen["error"]), (&json!(127), &json!("spawn_failed")), "not executable: {seen}");
    programs::write(&tool, b"echo script \"$@\" in $PWD");
    let said = format!("script a b in {}\n", fs::canonicalize(place).expect("it is there").display());
    assert_eq!(output(&host, &request(&["tool", "a b"], &path, place)), said, "a script without #! is one for sh");
    assert_eq!(output(&host, &request(&["tool", "a b"], "bin", place)), said, "a PATH is relative to dir");
    assert_eq!(output(&host, &request(&["./tool", "a b"], "", &place.join("bin"))), said.replace('\n', "/bin\n"));
    let missing = ask(&host, &request(&["no-such-tool"], &path, place));
    assert_eq!((&missing["exit"], &missing["error"]), (&json!(127), &json!("not_found")), "{missing}");
    assert!(missing["message"].as_str().is_some_and(|text| text.contains("no-such-tool: not found")), "{missing}");
    for dir in ["/no/such/place", "/etc/passwd", ""] {
        let seen = ask(&host, &request(&["true"], "/bin", std::path::Path::new(dir)));
        assert_eq!((&seen["exit"], &seen["error"]), (&json!(127), &json!("spawn_failed")), "{dir}: {seen}");
    }
}

#[test]
fn a_timeout_ends_a_command() {
    let host = Host::start();
    let script = "echo before; echo $$ >pid; sleep 1000";
    // On a busy machine the command may need longer for its first line than the shortest of these.
    let pid = [0.3, 1.0, 5.0, 25.0].into_iter().find_map(|seconds| {
        let request =
            json!({"whoami": "Me", "dir": host.home.path(), "exec": ["sh", "-c", script], "timeout": seconds});
        let seen = ask(&host, &request);
        assert_eq!((&seen["exit"], &seen["error"]), (&json!(124), &json!("timeout")), "{seen}");
        let pid = fs::read_to_string(host.home.join("pid")).ok()?.trim().parse().ok()?;
        assert_eq!(seen, json!({"exit": 124, "output": "before\n", "error": "timeout"}));
        Some(pid)
    });
    let pid = pid.expect("it ran");
    assert!(waiting::until_true(PATIENCE, || Process::of(pid).is_none_or(|process| !process.is_alive())));
    let request = json!({"whoami": "Me", "dir": "/", "exec": ["echo", "quick"], "timeout": 1000});
    assert_eq!(ask(&host, &request), json!({"exit": 0, "output": "quick\n"}));
    assert_eq!(ask(&host, &json!({"whoami": "Me", "dir": "/", "exec": ["echo", "none"], "timeout": 0}))["exit"], 0);
    let end = host.wait_for("its end", |journal| journal.of_type("end").next().cloned());
    assert_eq!(end["error"], "timeout", "{end}");
}

#[test]
fn a_field_that_means_nothing_is_named() {
    let host = Host::start();
    for (field, value) in [("sandbox", json!(true)), ("timout", json!(5)), ("env", json!({}))] {
        let mut request = json!({"whoami": "Me", "dir": "/", "exec": ["true"]});
        request[field] = value;
        let seen = ask(&host, &request);
        let message = seen["message"].as_str().unwrap_or_default();
        assert!(seen["error"] == "refused" && message.contains(&format!("`{field}`")), "{seen}");
    }
    assert_eq!(host.journal().of_type("start").count(), 0);
}

#[test]
fn a_client_that_shut_only_its_writing_side_gets_its_answer() {
    let host = Host::start();
    let half_closed = |text: &str| {
        let mut socket = UnixStream::connect(host.socket()).expect("a host");
        socket.write_all(text.as_bytes()).expect("it takes bytes");
        socket.shutdown(Shutdown::Write).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut said = String::new();
        socket.read_to_string(&mut said).expect("an answer and an end");
        said
    };
    let slow = r#"{"whoami":"Me","dir":"/","exec":["sh","-c","sleep 0.5; echo late"]}"#;
    assert_eq!(half_closed(&format!("{slow}\n")), "{\"exit\":0,\"output\":\"late\\n\"}\n");
    assert_eq!(half_closed(slow), "{\"exit\":0,\"output\":\"late\\n\"}\n", "the end is the end of the line");
    assert!(half_closed("{\"action\":\"ping\"}").starts_with("{\"result\":\"pong\""));
    assert!(half_closed("{\"action\":\"list\"}\n").starts_with("{\"result\":\"list\""));
    assert!(half_closed("{\"whoami\":").contains("refused"));
    assert_eq!(half_closed(""), "");
    for (tool, args) in [("nc", vec!["-N", "-U"]), ("socat", vec!["-t", "100", "-"])] {
        if !programs::has(tool) {
            continue;
        }
        let help = programs::command(tool).arg("-h").output().expect("it starts");
        let help = String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).into_owned();
        if tool == "nc" && !(help.contains("-N") && help.contains("-U")) {
            programs::skipped("this nc knows no Unix sockets");
            continue;
        }
        let mut command = programs::command(tool);
        let socket = host.socket();
        let place =
            if tool == "nc" { socket.display().to_string() } else { format!("UNIX-CONNECT:{}", socket.display()) };
        let mut child =
            command.args(args).arg(place).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        writeln!(child.stdin.take().expect("a pipe"), "{slow}").expect("it takes a line");
        let said = child.wait_with_output().expect("it ends").stdout;
        assert_eq!(String::from_utf8_lossy(&said), "{\"exit\":0,\"output\":\"late\\n\"}\n", "{tool}");
    }
}

/// One line over a connection, and the line that answers it.
fn say_and_hear(stream: &mut UnixStream, line: &str) -> String {
    stream.write_all(format!("{line}\n").as_bytes()).expect("it takes a line");
    // Nothing comes behind an answer until the next request.
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    while heard.last() != Some(&b'\n') {
        let count = stream.read(&mut piece).unwrap_or_else(|error| panic!("{error} after {}", heard.escape_ascii()));
        assert!(count > 0, "the end after {}", heard.escape_ascii());
        heard.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(heard).expect("text")
}

/// The published client asks whether the host is there before each request, and keeps its connection.
#[test]
#[ignore = "long: waits out 10 s for a next request"]
fn one_connection_carries_requests_one_after_another() {
    let host = Host::start();
    let mut stream = UnixStream::connect(host.socket()).expect("a host");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    for round in 0..20 {
        assert!(say_and_hear(&mut stream, r#"{"action":"ping"}"#).starts_with(r#"{"result":"pong""#), "{round}");
        let request = format!(r#"{{"whoami":"Me","dir":"/","envs":{{"N":"{round}"}},"exec":["sh","-c","echo $N"]}}"#);
        assert_eq!(say_and_hear(&mut stream, &request), format!("{{\"exit\":0,\"output\":\"{round}\\n\"}}\n"));
    }
    let long = json!({"whoami": "Me", "dir": "/", "exec": ["sh", "-c", "head -c 900000 /dev/zero | tr '\\0' x"]});
    let answer: Value = serde_json::from_str(&say_and_hear(&mut stream, &long.to_string())).expect("JSON");
    assert_eq!(answer["output"].as_str().map(str::len), Some(900_000));
    assert!(say_and_hear(&mut stream, r#"{"action":"list"}"#).starts_with(r#"{"result":"list""#));
    let slow = json!({"whoami": "Me", "dir": host.home.path(), "exec": ["sh", "-c", "echo >began; sleep 1000"]});
    stream.write_all(format!("{slow}\n").as_bytes()).expect("it takes a line");
    assert!(waiting::until_true(PATIENCE, || host.home.join("began").exists()));
    assert!(say_and_hear(&mut stream, r#"{"action":"ping"}"#).contains("pong"), "in the middle of a command");
    let aborted: Value = serde_json::from_str(&say_and_hear(&mut stream, r#"{"action":"abort"}"#)).expect("JSON");
    assert_eq!(aborted["error"], "aborted", "{aborted}");
    let missing = say_and_hear(&mut stream, r#"{"whoami":"Me","dir":"/","exec":["no-such-tool"]}"#);
    assert!(missing.starts_with(r#"{"exit":127,"output":"","error":"not_found""#), "{missing}");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the host ends it");
    assert_eq!(rest, "", "without a word");
}

#[test]
#[ignore = "long: waits out 10 s for a next request"]
fn requests_that_come_together_are_answered_in_their_order() {
    let host = Host::start();
    let one = r#"{"whoami":"Me","dir":"/","exec":["echo","one"]}"#;
    for (text, shuts, answers) in [
        (format!("{{\"action\":\"ping\"}}\n{one}\n"), true, 2),
        (format!("{{\"action\":\"ping\"}}\n{{\"action\":\"ping\"}}\n{one}\n"), false, 3),
        (format!("{{\"action\":\"ping\"}}\n\n{{\"action\":\"status\"}}\n{one}"), true, 3),
    ] {
        let mut stream = UnixStream::connect(host.socket()).expect("a host");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(text.as_bytes()).expect("it takes lines");
        if shuts {
            stream.shutdown(Shutdown::Write).expect("a socket");
        }
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("answers and an end");
        assert_eq!(said.lines().count(), answers, "{text}: {said}");
        assert!(said.ends_with("\n{\"exit\":0,\"output\":\"one\\n\"}\n"), "{text}: {said}");
    }
    // A second command while the first one runs is refused, and ends it.
    let slow = r#"{"whoami":"Me","dir":"/","exec":["sleep","1000"]}"#;
    let mut stream = UnixStream::connect(host.socket()).expect("a host");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    assert!(say_and_hear(&mut stream, &format!("{slow}\n{one}")).contains("refused"));
    host.wait_idle();
}

#[test]
fn a_client_that_is_gone_ends_its_command() {
    let host = Host::start();
    let path = host.home.join("pid");
    for shuts_first in [false, true] {
        let script = "echo $$ >pid; exec sleep 1000";
        let request = json!({"whoami": "Me", "dir": host.home.path(), "exec": ["sh", "-c", script]});
        let socket = ask_in_json(&host, &request);
        if shuts_first {
            socket.shutdown(Shutdown::Write).expect("a socket");
        }
        let process = || Process::of(fs::read_to_string(&path).ok()?.trim().parse().ok()?);
        let process = waiting::until(PATIENCE, process).expect("it runs");
        fs::remove_file(&path).expect("it was read");
        // A host that took the half-close for an end would have ended it by now.
        assert_eq!(host.run("echo on").out(), "on\n");
        assert!(process.is_alive());
        drop(socket);
        assert!(waiting::until_true(PATIENCE, || !process.is_alive()), "{:#?}", host.tree());
    }
}

/// The output of each is bounded, and so is that of all.
#[test]
#[ignore = "long: 25 answers of 3 MB"]
fn twenty_five_answers_of_three_megabytes_stay_within_one_bound() {
    let host = Host::with(Setup { flags: &["--no-pty"], ..PLAIN });
    let script = "head -c 3000000 /dev/zero | tr '\\0' x";
    let request = json!({"whoami": "Me", "dir": "/", "exec": ["sh", "-c", script]});
    let mut asked: Vec<UnixStream> = (0..25).map(|_| ask_in_json(&host, &request)).collect();
    // Nobody reads until all have ended, so that every answer has to be kept.
    let ended = || host.journal().of_type("end").count();
    waiting::wait_until_grown("all have ended", 25, PATIENCE * 4, ended);
    let memory = procs::memory(host.pid());
    assert!(memory < 92 << 20, "the host has {memory} bytes");
    let mut omitted = 0;
    for socket in asked.drain(..) {
        let answer = answer(socket);
        let length = answer["output"].as_str().expect("output").len();
        omitted += answer["output_omitted"].as_u64().unwrap_or(0);
        assert_eq!(
            length as u64 + answer["output_omitted"].as_u64().unwrap_or(0),
            3_000_000,
            "what is missing is counted"
        );
        assert!(length >= 16 << 10, "a little of each is always there: {length}");
    }
    assert!(omitted > 0, "75 MB fit into the bound");
    assert_eq!(output(&host, &json!({"whoami": "Me", "dir": "/", "exec": ["echo", "after"]})), "after\n");
}

/// The bytes of the published client of version 0.5.3: it asks with ping as it connects and again before each request, and
/// closes its connection when it has read the answer's line.
#[test]
fn the_published_client_of_the_seed_is_served_as_it_expects() {
    let host = Host::start();
    let ping = r#"{"action":"ping"}"#;
    let requests = [
        (r#""envs":{},"exec":["echo","hi"]}"#, r#"{"exit":0,"output":"hi\n"}"#),
        (r#""envs":{"A":"b"},"exec":["sh","-c","echo $A; exit 3"]}"#, r#"{"exit":3,"output":"b\n"}"#),
        (r#""envs":{},"exec":["cat"],"stdin":"input\n"}"#, r#"{"exit":0,"output":"input\n"}"#),
        (r#""envs":{},"exec":["sleep","9"],"timeout":1}"#, r#"{"exit":124,"output":"","error":"timeout"}"#),
        (
            r#""envs":{},"clear_env":true,"exec":["/usr/bin/env"]}"#,
            r#"{"exit":0,"output":"REXEC_INSIDE=1\nREXEC_WHOAMI=Me\n"}"#,
        ),
        (r#""envs":{"REXEC_WHOAMI":"you"},"exec":["sh","-c","echo $REXEC_WHOAMI"]}"#, r#"{"exit":0,"output":"Me\n"}"#),
        (r#""envs":{},"exec":["no-such-tool"]}"#, r#"{"exit":127,"output":"","error":"not_found","#),
    ];
    for (request, answer) in requests {
        let mut stream = UnixStream::connect(host.socket()).expect("a host");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        for _ in 0..2 {
            assert!(say_and_hear(&mut stream, ping).starts_with(r#"{"result":"pong""#));
        }
        let heard = say_and_hear(&mut stream, &format!(r#"{{"whoami":"Me","dir":"/tmp",{request}"#));
        assert!(heard.starts_with(answer), "{request}: {heard}");
    }
}

/// One line for each command that ends, whoever asked for it, in the form in which the published client reads it.
#[test]
fn the_published_client_attaches_to_the_transcript() {
    let host = Host::start();
    let attach = |ansi: bool| {
        let mut stream = UnixStream::connect(host.socket()).expect("a host");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        assert!(say_and_hear(&mut stream, r#"{"action":"ping"}"#).starts_with(r#"{"result":"pong""#));
        stream.write_all(format!("{{\"action\":\"attach\",\"ansi\":{ansi}}}\n").as_bytes()).expect("it takes a line");
        stream
    };
    let attached = [attach(false), attach(true)];
    // They are attached when another connection has been served since.
    assert_eq!(host.run("echo before").out(), "before\n");
    let request = json!({"whoami": "Me", "dir": "/tmp", "exec": ["printf", "\u{1b}[31mred\u{1b}[0m\n"], "timeout": 9});
    assert_eq!(output(&host, &request), "red\n");
    assert_eq!(host.run("echo from a shim; exit 3").code(), 3);
    for (stream, red) in attached.into_iter().zip(["red\n", "\u{1b}[31mred\u{1b}[0m\n"]) {
        let events = BufReader::new(stream).lines().map(|line| line.expect("a line"));
        let mut entries = events.map(|line| serde_json::from_str::<Value>(&line).expect("JSON")).map(|mut event| {
            assert_eq!(event["event"], "transcript");
            event["entry"].take()
        });
        let mut words = entries.by_ref().skip_while(|entry| entry["whoami"] != "Me").take(1);
        let words = words.next().expect("the command that was given as words");
        assert_eq!((&words["output"], &words["timeout"], &words["exit"]), (&json!(red), &json!(9), &json!(0)));
        assert_eq!((&words["dir"], &words["exec"][0]), (&json!("/tmp"), &json!("printf")));
        let line = entries.next().expect("the shim's command");
        assert_eq!(line["exec"], json!(["sh", "-c", "echo from a shim; exit 3"]));
        assert_eq!((&line["output"], &line["exit"]), (&json!("from a shim\n"), &json!(3)));
    }
}
