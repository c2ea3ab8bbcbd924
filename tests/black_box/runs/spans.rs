//! `rexec otlp`: spans in a file and for a collector, and what a command gets in `TRACEPARENT`.

use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::exec::{rexec, said};
use crate::support::call::{self, Call, Target};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::reader::read_some;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn tracing() -> Host {
    Host::with(Setup { flags: &["--trace"], ..MIRROR })
}

/// `rexec otlp` on the journal of this host.
fn otlp(host: &Host, args: &[&str]) -> Command {
    rexec(host, &[&["otlp"], args].concat())
}

/// `rexec otlp --follow`.
struct Exporter {
    process: Child,
    said: PathBuf,
}

impl Exporter {
    /// Begins, and waits until no end can be missed any more.
    fn of(host: &Host, to: &str) -> Exporter {
        let said = host.home.join("exporter");
        let process = otlp(host, &["--follow", "--to", to]).stderr(File::create(&said).expect("a file")).spawn();
        let exporter = Exporter { process: process.expect("it starts"), said };
        exporter.says("from now on");
        exporter
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).expect("a file")
    }

    fn says(&self, words: &str) {
        assert!(waiting::until_true(PATIENCE, || self.said().contains(words)), "{words}: {}", self.said());
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("it runs until then");
    }
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
    let host = tracing();
    let file = host.home.join("spans.jsonl");
    let exporter = Exporter::of(&host, &file.display().to_string());
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
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    drop(exporter);
    host.finish();
}

#[test]
fn each_command_is_a_span_that_says_what_the_journal_says() {
    let host = tracing();
    let traced = host.call("echo $TRACEPARENT").env(&format!("TRACEPARENT={PARENT}"));
    let header = traced.run(Target::Shim(&host.socket())).out().trim().to_owned();
    assert_eq!((header.len(), &header[..36]), (PARENT.len(), &PARENT[..36]), "{header}");
    let own = host.call("echo $TRACEPARENT; exit 3").env("API_TOKEN=hunter2hunter2");
    let own = own.run(Target::Shim(&host.socket())).out().trim().to_owned();
    let secret = host.call("curl -H 'Authorization: Bearer hunter2hunter2' || :").env("API_TOKEN=hunter2hunter2");
    secret.run(Target::Shim(&host.socket()));
    let named = host.call("zip -P z1psecret9 a b || :").env("REXEC_WHOAMI=me hunter2hunter2");
    named.env("API_TOKEN=hunter2hunter2").run(Target::Shim(&host.socket()));
    rexec(&host, &["exec", "--timeout", "0.2", "--", "sleep", "1000"]).output().expect("it starts");
    host.wait_for("five ends", |journal| (journal.of_type("end").count() == 5).then_some(()));
    let (code, text, _) = said(otlp(&host, &[]));
    let seen = spans(&text);
    assert_eq!((code, seen.len()), (0, 5), "{text}");
    assert_eq!(
        (&seen[0]["parentSpanId"], &seen[0]["spanId"]),
        (&Value::from(&PARENT[36..52]), &Value::from(&header[36..52]))
    );
    assert_eq!((&seen[1]["traceId"], &seen[1]["spanId"]), (&Value::from(&own[3..35]), &Value::from(&own[36..52])));
    assert_eq!(attribute(&seen[1], "exec.exit_code")["intValue"], "3");
    assert_eq!(attribute(&seen[1], "exec.command")["stringValue"], "echo $TRACEPARENT; exit 3");
    let names = |span: &Value| -> Vec<String> {
        span["events"].as_array().expect("events").iter().map(|event| event["name"].to_string()).collect()
    };
    assert_eq!(names(&seen[1]), ["\"exec.output_end\""]);
    assert_eq!(names(&seen[4]), ["\"exec.output_end\"", "\"exec.error\""]);
    let times = ["startTimeUnixNano", "endTimeUnixNano"]
        .map(|name| seen[1][name].as_str().and_then(|time| time.parse::<u128>().ok()).expect("nanoseconds"));
    assert!(times[0] > 1_700_000_000_000_000_000 && times[0] <= times[1], "{times:?}");
    assert!(!text.contains("hunter2") && !text.contains("z1psecret9"), "{text}");
    for (span, start) in seen.iter().zip(host.journal().of_type("start")) {
        for (attribute_name, field) in
            [("exec.command", "command"), ("exec.agent", "whoami"), ("exec.directory", "dir")]
        {
            assert_eq!(attribute(span, attribute_name)["stringValue"], start[field], "{attribute_name}");
        }
    }
    assert_eq!(said(otlp(&host, &[])).1, text, "the same journal makes the same spans");
    host.finish();
}

/// A journal without identifiers makes spans, too, and the same ones each time.
#[test]
fn commands_without_a_trace_of_their_own_have_one_in_the_export() {
    let host = Host::with(MIRROR);
    let call = host.call("echo $TRACEPARENT").env(&format!("TRACEPARENT={PARENT}"));
    assert_eq!(call.run(Target::Shim(&host.socket())).out(), format!("{PARENT}\n"), "a caller's trace passes as it is");
    assert_eq!(host.run("echo ${TRACEPARENT-none}").out(), "none\n");
    host.wait_for("two ends", |journal| (journal.of_type("end").count() == 2).then_some(()));
    let seen = spans(&said(otlp(&host, &[])).1);
    assert!(seen.len() == 2 && seen[0]["traceId"] != seen[1]["traceId"], "{seen:?}");
    assert_eq!(spans(&said(otlp(&host, &[])).1), seen);
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
    let host = tracing();
    let exporter = Exporter::of(&host, &format!("http://{}", listener.local_addr().expect("an address")));
    assert_eq!(host.run("echo one").out(), "one\n");
    let seen = spans(&answer(&listener, "200 OK"));
    assert_eq!((seen.len(), &seen[0]["name"]), (1, &Value::from("exec: echo one")));
    assert_eq!(host.run("echo two").out(), "two\n");
    answer(&listener, "503 Service Unavailable");
    exporter.says("spans cannot be exported: the collector answers 503");
    assert_eq!(host.run("echo three").out(), "three\n");
    let mut names = Vec::new();
    while names.len() < 2 {
        names.extend(spans(&answer(&listener, "200 OK")).iter().map(|span| span["name"].to_string()));
        // Where the first answer came too late.
        names.retain(|name| name != "\"exec: echo one\"");
    }
    assert_eq!(names, ["\"exec: echo two\"", "\"exec: echo three\""]);
    exporter.says("exported again; 0 were dropped");
    drop(exporter);
    host.finish();
}

#[test]
fn spans_that_a_collector_refuses_do_not_stand_in_the_way_of_later_ones() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = tracing();
    let exporter = Exporter::of(&host, &format!("http://{}", listener.local_addr().expect("an address")));
    host.run("echo one");
    answer(&listener, "400 Bad Request");
    exporter.says("spans are dropped: the collector answers 400");
    host.run("echo two");
    let seen = spans(&answer(&listener, "200 OK"));
    assert_eq!((seen.len(), &seen[0]["name"]), (1, &Value::from("exec: echo two")));
    exporter.says("exported again; 1 were dropped");
    host.run("echo three");
    let (mut stream, _) = request(&listener);
    let body = r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too \u001b[31mold"}}"#;
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it takes an answer");
    exporter.says("the collector keeps not all spans; it rejects 1: too ");
    assert!(!exporter.said().contains('\x1b'));
    drop(exporter);
    host.finish();
}

/// A read with a time limit fails with EINTR in a process that was stopped and goes on.
#[test]
fn an_exporter_that_is_stopped_and_goes_on_waits_for_its_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = tracing();
    let exporter = Exporter::of(&host, &format!("http://{}", listener.local_addr().expect("an address")));
    let pid = i32::try_from(exporter.process.id()).expect("a process id");
    let is_in = |state: char| waiting::until_true(PATIENCE, || Process::of(pid).is_some_and(|p| p.state == state));
    assert_eq!(host.run("echo one").out(), "one\n");
    let (mut stream, _) = request(&listener);
    assert!(is_in('S'), "it waits for its answer");
    Process::of(pid).expect("it runs").signal(Signal::SIGSTOP);
    assert!(is_in('T'));
    Process::of(pid).expect("it is stopped").signal(Signal::SIGCONT);
    assert!(is_in('S'));
    // On a busy machine its patience may be over: then it has closed this, and sends the span again.
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}");
    drop(stream);
    assert_eq!(host.run("echo two").out(), "two\n");
    while !answer(&listener, "200 OK").contains("exec: echo two") {}
    assert!(!exporter.said().contains("Interrupted"), "{}", exporter.said());
    drop(exporter);
    host.finish();
}

/// What a command does while a collector takes connections and says nothing, and when the exporter is killed.
#[test]
fn a_silent_collector_and_a_killed_exporter_delay_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = tracing();
    let exporter = Exporter::of(&host, &format!("http://{}", silent.local_addr().expect("an address")));
    assert_eq!(host.run("echo first").out(), "first\n");
    let (stream, _) = request(&silent);
    for round in 0..20 {
        assert_eq!(host.run(&format!("echo {round}")).out(), format!("{round}\n"));
    }
    drop((exporter, stream));
    assert_eq!(host.run("echo on").out(), "on\n");
    // Nobody listens there on any machine that tests run on.
    let (code, _, err) = said(otlp(&host, &["--to", "http://127.0.0.1:1"]));
    assert!(code == 1 && err.contains("spans cannot be exported: Connection refused"), "{code}: {err}");
    host.finish();
}

/// An export goes on with the journal of the next host.
#[test]
fn an_exporter_follows_the_next_host_too() {
    let (first, second) = (tracing(), Host::with(MIRROR));
    let to = first.home.join("spans.jsonl");
    let exporter = Exporter::of(&first, &to.display().to_string());
    second.run("echo later");
    second.wait_for("an end", |journal| journal.end_of("echo later").cloned());
    // As another host would have written it.
    let file = fs::read_dir(second.journal_home()).expect("a folder").flatten().map(|entry| entry.path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).expect("a journal");
    let name = "2026-05-21-09:42:18.jsonl";
    fs::copy(&file, first.home.join("copy")).expect("a file");
    fs::rename(first.home.join("copy"), first.journal_home().join(name)).expect("one file system");
    let text = || fs::read_to_string(&to).unwrap_or_default();
    let seen = waiting::until(PATIENCE, || spans(&text()).pop()).expect("a span");
    assert_eq!(seen["name"], "exec: echo later");
    assert_eq!(attribute(&seen, "exec.session_id")["stringValue"], "2026-05-21-09:42:18");
    drop(exporter);
    fs::remove_file(first.journal_home().join(name)).expect("it is there");
    first.finish();
    second.finish();
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
        let mut command = programs::command(programs::rexec());
        command.args(["otlp", "--to", target]).env("REXEC_HOME", place.join("journal"));
        let (code, _, err) = said(command);
        assert!(code != 0 && err.contains(problem) && err.contains("hint: "), "{target}: {err}");
    }
}

#[test]
fn the_host_names_the_command_that_took_the_option_s_place() {
    let mut command = programs::command(programs::host());
    command.args(["--otlp", "http://127.0.0.1:4318"]);
    let (code, _, err) = said(command);
    assert!(code == 2 && err.contains("rexec otlp --follow --to http://127.0.0.1:4318"), "{code}: {err}");
}
