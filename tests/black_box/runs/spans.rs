//! `--otlp`: spans in a file and for a collector, and what a command gets in `TRACEPARENT`.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::call::{self, Call, Target};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::reader::read_some;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn exporting(to: &str) -> Host {
    let flags: &[&str] = vec!["--otlp", to.to_owned().leak()].leak();
    Host::with(Setup { flags, ..MIRROR })
}

/// The spans in the bodies of requests, as far as these are whole.
fn spans(bodies: &str) -> Vec<Value> {
    let whole = bodies.rfind('\n').map_or("", |end| &bodies[..end]);
    let bodies = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON on each line"));
    let resources = bodies.flat_map(|body| body["resourceSpans"].as_array().expect("an array").clone());
    resources.map(|resource| resource["scopeSpans"][0]["spans"][0].clone()).collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().expect("attributes");
    &all.iter().find(|attribute| attribute["key"] == key).unwrap_or_else(|| panic!("{key}: {span}"))["value"]
}

#[test]
fn a_span_names_the_project_of_its_command() {
    let place = TempDir::new(None);
    let file = place.join("spans.jsonl");
    let host = exporting(&file.display().to_string());
    let shop = host.home.join("shop");
    fs::create_dir_all(shop.join(".git")).expect("a directory");
    host.run("cd shop && true");
    let shim = host.call("true");
    Call { dir: call::dir(&shop), ..shim }.run(Target::Shim(&host.socket()));
    let text = || fs::read_to_string(&file).unwrap_or_default();
    let seen = waiting::until(PATIENCE, || Some(spans(&text())).filter(|spans| spans.len() == 2)).expect("two spans");
    assert!(!seen[0].to_string().contains("exec.project_id"), "{}", seen[0]);
    let top = fs::canonicalize(shop).expect("it is there");
    assert_eq!(attribute(&seen[1], "exec.project_id")["stringValue"], top.display().to_string());
    host.finish();
}

#[test]
fn each_command_is_a_span_in_a_file() {
    let place = TempDir::new(None);
    let file = place.join("spans.jsonl");
    let host = exporting(&file.display().to_string());
    let traced = host.call("echo $TRACEPARENT").env(&format!("TRACEPARENT={PARENT}"));
    let header = traced.run(Target::Shim(&host.socket())).out().trim().to_owned();
    assert_eq!((header.len(), &header[..36]), (PARENT.len(), &PARENT[..36]), "{header}");
    let own = host.call("echo $TRACEPARENT; exit 3").env("API_TOKEN=hunter2hunter2");
    let own = own.run(Target::Shim(&host.socket())).out().trim().to_owned();
    let secret = host.call("curl -H 'Authorization: Bearer hunter2hunter2' || :").env("API_TOKEN=hunter2hunter2");
    secret.run(Target::Shim(&host.socket()));
    let named = host.call("zip -P z1psecret9 a b || :").env("REXEC_WHOAMI=me hunter2hunter2");
    named.env("API_TOKEN=hunter2hunter2").run(Target::Shim(&host.socket()));
    let text = || fs::read_to_string(&file).unwrap_or_default();
    let seen = waiting::until(PATIENCE, || Some(spans(&text())).filter(|spans| spans.len() == 4)).expect("four spans");
    assert_eq!(
        (&seen[0]["parentSpanId"], &seen[0]["spanId"]),
        (&Value::from(&PARENT[36..52]), &Value::from(&header[36..52]))
    );
    assert_eq!((&seen[1]["traceId"], &seen[1]["spanId"]), (&Value::from(&own[3..35]), &Value::from(&own[36..52])));
    assert_eq!(attribute(&seen[1], "exec.exit_code")["intValue"], "3");
    assert_eq!(attribute(&seen[1], "exec.command")["stringValue"], "echo $TRACEPARENT; exit 3");
    let times = ["startTimeUnixNano", "endTimeUnixNano"]
        .map(|name| seen[1][name].as_str().and_then(|time| time.parse::<u128>().ok()).expect("nanoseconds"));
    assert!(times[0] > 1_700_000_000_000_000_000 && times[0] <= times[1], "{times:?}");
    assert!(!text().contains("hunter2") && !text().contains("z1psecret9"), "{}", text());
    // A span says what the journal says.
    for (span, start) in seen.iter().zip(host.journal().of_type("start")) {
        for (attribute_name, field) in
            [("exec.command", "command"), ("exec.agent", "whoami"), ("exec.directory", "dir")]
        {
            assert_eq!(attribute(span, attribute_name)["stringValue"], start[field], "{attribute_name}");
        }
    }
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    host.finish();
}

/// Takes one request and answers it. An exporter that has waited for two seconds has left, and asks again later.
fn answer(listener: &TcpListener, status: &str) -> String {
    loop {
        let (mut stream, body) = request(listener);
        if write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}").is_ok() {
            return body;
        }
    }
}

/// Takes one request, which waits for its answer on this connection.
fn request(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().expect("a request");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut bytes = Vec::new();
    let whole = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?.parse::<usize>().ok()?;
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n") && head.contains("application/json"), "{head}");
        (body.len() >= length).then(|| body.to_owned())
    };
    loop {
        if let Some(body) = whole(&bytes) {
            // A file has one of them on each line.
            return (stream, body + "\n");
        }
        let mut piece = [0; 4096];
        let length = read_some(&mut stream, &mut piece).expect("a request");
        assert!(length > 0, "the request ends early");
        bytes.extend_from_slice(&piece[..length]);
    }
}

#[test]
fn a_collector_gets_spans_and_one_that_was_away_gets_them_later() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let host = exporting(&format!("http://{address}"));
    assert_eq!(host.run("echo one").out(), "one\n");
    let seen = spans(&answer(&listener, "200 OK"));
    assert_eq!((seen.len(), &seen[0]["name"]), (1, &Value::from("exec: echo one")));
    assert_eq!(host.run("echo two").out(), "two\n");
    answer(&listener, "503 Service Unavailable");
    let said = || host.console_text().contains("spans cannot be exported: the collector answers 503");
    assert!(waiting::until_true(PATIENCE, said), "{}", host.console_text());
    assert_eq!(host.run("echo three").out(), "three\n");
    let mut names = Vec::new();
    while names.len() < 2 {
        names.extend(spans(&answer(&listener, "200 OK")).iter().map(|span| span["name"].to_string()));
        // Where the first answer came too late.
        names.retain(|name| name != "\"exec: echo one\"");
    }
    assert_eq!(names, ["\"exec: echo two\"", "\"exec: echo three\""]);
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains("exported again; 0 were dropped")));
    drop(listener);
    host.finish();
}

#[test]
fn spans_that_a_collector_refuses_do_not_stand_in_the_way_of_later_ones() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = exporting(&format!("http://{}", listener.local_addr().expect("an address")));
    let says = |words: &str| {
        let said = || host.console_text().contains(words);
        assert!(waiting::until_true(PATIENCE, said), "{words}: {}", host.console_text());
    };
    host.run("echo one");
    answer(&listener, "400 Bad Request");
    says("spans are dropped: the collector answers 400");
    host.run("echo two");
    let seen = spans(&answer(&listener, "200 OK"));
    assert_eq!((seen.len(), &seen[0]["name"]), (1, &Value::from("exec: echo two")));
    says("exported again; 1 were dropped");
    host.run("echo three");
    let (mut stream, _) = request(&listener);
    let body = r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too \u001b[31mold"}}"#;
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it takes an answer");
    says("the collector keeps not all spans; it rejects 1: too ");
    host.finish();
}

/// A read with a time limit fails with EINTR in a process that was stopped and goes on.
#[test]
fn an_exporter_that_is_stopped_and_goes_on_waits_for_its_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = exporting(&format!("http://{}", listener.local_addr().expect("an address")));
    let is_exporter = |process: &Process| process.comm == "rexec-spans";
    let find = || procs::children(host.pid()).into_iter().find(is_exporter);
    let exporter = waiting::until(PATIENCE, find).expect("an exporter");
    let is_in =
        |state: char| waiting::until_true(PATIENCE, || Process::of(exporter.pid).is_some_and(|p| p.state == state));
    assert_eq!(host.run("echo one").out(), "one\n");
    let (mut stream, _) = request(&listener);
    assert!(is_in('S'), "it waits for its answer");
    exporter.signal(Signal::SIGSTOP);
    assert!(is_in('T'));
    exporter.signal(Signal::SIGCONT);
    assert!(is_in('S'));
    // On a busy machine its patience may be over: then it has closed this, and sends the span again.
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}");
    drop(stream);
    assert_eq!(host.run("echo two").out(), "two\n");
    while !answer(&listener, "200 OK").contains("exec: echo two") {}
    assert!(!host.console_text().contains("Interrupted"), "{}", host.console_text());
    host.finish();
}

#[test]
#[ignore = "long: waits out the 10 s for a collector"]
fn a_dead_or_silent_collector_delays_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let host = exporting(&format!("http://{address}"));
    for round in 0..20 {
        assert_eq!(host.run(&format!("echo {round}")).out(), format!("{round}\n"));
    }
    let said = || host.console_text().matches("the collector does not answer").count() == 1;
    assert!(waiting::until_true(PATIENCE, said), "{}", host.console_text());
    host.finish();
    // Nobody listens there on any machine that tests run on.
    let host = exporting("http://127.0.0.1:1");
    assert_eq!(host.run("echo on").out(), "on\n");
    assert!(waiting::until_true(PATIENCE, || host
        .console_text()
        .contains("spans cannot be exported: Connection refused")));
    host.finish();
}

#[test]
fn without_the_option_a_caller_s_trace_passes_as_it_is() {
    let host = Host::with(MIRROR);
    let call = host.call("echo $TRACEPARENT").env(&format!("TRACEPARENT={PARENT}"));
    assert_eq!(call.run(Target::Shim(&host.socket())).out(), format!("{PARENT}\n"));
    assert_eq!(host.run("echo ${TRACEPARENT-none}").out(), "none\n");
}

#[test]
fn only_this_machine_is_a_target() {
    for (target, problem) in [
        ("http://192.0.2.1:4318", "is not on this machine"),
        ("https://127.0.0.1:4318", "neither a file nor an http:// address"),
        ("http://nowhere", "has no address"),
        ("/no/such/place/spans", "cannot be written"),
    ] {
        let place = TempDir::new(None);
        let output = programs::command(programs::host())
            .args(["--otlp", target])
            .env("REXEC_HOME", place.join("journal"))
            .env("REXEC_SOCKET", place.join("host.sock"))
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(problem) && said.contains("hint: "), "{target}: {said}");
    }
}
