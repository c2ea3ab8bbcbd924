//! A `rexec` of an earlier release (7e62603, before the table of methods): the host answers what that writes, as it was
//! recorded, with all that it reads.
//!
//! One thing is not as recorded: the run of its start takes input, so that more can be asked about it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::client::Client;
use crate::support::host::{Host, MIRROR};

/// Calls about run 1, in their order, with the fields of each answer.
const CALLS: &[(&str, &[&str])] = &[
    (
        r#"{"id":1,"method":"exec.start","params":{"command":null,"argv":["sh","-c","echo up; read x; echo got $x; sleep 1000"],"arg0":null,"dir":"/","env":{"PATH":"/usr/bin:/bin"},"env_mode":"whole","whoami":"shell","caller_session":null,"why":null,"name":"svc","stdin":null,"keep_stdin":true,"mode":"pipes","size":null,"timeout":0.0,"background":true,"stream":false,"sanitize":null,"encoding":"text","max_output_bytes":null,"parse":false,"combined":false,"notify":[],"restart":false,"profile":"plain","session":null,"ports":null,"umask":18,"limits":[[18446744073709551615,18446744073709551615]]}}"#,
        &["run"],
    ),
    (
        r#"{"id":2,"method":"exec.status","params":{"run":1}}"#,
        &["run", "whoami", "dir", "command", "name", "background", "state", "started_ms_ago", "ports", "bytes"],
    ),
    (
        r#"{"id":3,"method":"exec.wait","params":{"run":1,"for":"text","port":null,"text":"up","timeout_ms":60000}}"#,
        &["met", "line"],
    ),
    (r#"{"id":4,"method":"exec.list","params":{"session":null,"all":true}}"#, &["runs"]),
    (r#"{"id":5,"method":"session.list","params":{}}"#, &["sessions"]),
    (
        r#"{"id":6,"method":"exec.output","params":{"run":1,"after":0,"max_bytes":4194304,"wait_ms":0,"encoding":"text"}}"#,
        &["chunks", "next", "exited", "closed"],
    ),
];

/// Actions, each on a connection of its own, with the fields of each answer.
const ACTIONS: &[(&str, &[&str])] = &[
    (r#"{"action":"ping"}"#, &["version", "pid"]),
    (
        r#"{"action":"status"}"#,
        &["version", "pid", "up_ms", "session", "commands", "failed", "running", "waiting", "paused", "left", "agents"],
    ),
    (r#"{"action":"list"}"#, &["runs"]),
    (r#"{"action":"agent"}"#, &[]),
    (r#"{"action":"pause","seq":1}"#, &["seq", "guard"]),
    (r#"{"action":"resume","seq":1}"#, &["seq"]),
    (r#"{"action":"watch","columns":0,"look":"text","colours":false}"#, &["version"]),
    (r#"{"action":"attach","seq":1,"watch":true,"rows":0,"cols":0}"#, &["seq", "command"]),
    (r#"{"action":"send","seq":1,"text":"ann\n","eof":false,"force":true}"#, &["seq", "bytes"]),
    (r#"{"action":"kill","seq":1}"#, &["seq", "unkillable"]),
];

fn has_all(answer: &Value, fields: &[&str], line: &str) {
    fields.iter().for_each(|field| assert!(answer.get(*field).is_some(), "{field} of {line}: {answer}"));
}

#[test]
fn what_a_rexec_of_an_earlier_release_writes_is_understood() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    for (line, fields) in CALLS {
        client.say(line);
        let answer = client.hear().expect("an answer");
        has_all(&answer["result"], fields, line);
    }
    for (line, fields) in ACTIONS {
        let mut stream = UnixStream::connect(host.socket()).expect("a host");
        writeln!(stream, "{line}").expect("it listens");
        let mut heard = String::new();
        BufReader::new(stream).read_line(&mut heard).expect("an answer");
        let answer: Value = serde_json::from_str(&heard).unwrap_or_else(|error| panic!("{line}: {error}: {heard}"));
        let action: Value = serde_json::from_str(line).expect("JSON");
        let is_greeting = action["action"] == "ping" || action["action"] == "agent";
        let word = if is_greeting { &json!("pong") } else { &action["action"] };
        assert_eq!(&answer["result"], word, "{line}: {answer}");
        has_all(&answer, fields, line);
    }
    client.say(
        r#"{"id":7,"method":"exec.wait","params":{"run":1,"for":"exit","port":null,"text":null,"timeout_ms":null}}"#,
    );
    has_all(&client.hear().expect("an answer")["result"], &["met", "exit"], "the wait");
}
