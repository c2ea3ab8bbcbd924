//! `rexec rerun`: a command of the past runs again as it did, without a secret from the journal.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use super::live::{Said, rexec};
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::programs;
use crate::support::temp::TempDir;

/// Prints its arguments' and its environment's parts, and ends with 7.
const SCRIPT: &str =
    r#"if test -t 1; then on=terminal; else on=pipe; fi; echo "$NODE_ENV/${#SOME_WORD}/$PWD $on"; echo e >&2; exit 7"#;

fn ends(host: &Host, count: usize) {
    host.wait_for("the ends", |journal| (journal.of_type("end").count() == count).then_some(()));
}

fn text_of_journal(host: &Host) -> String {
    let (path, _) = host.journal().records.first().cloned().expect("a record");
    fs::read_to_string(path).expect("a journal")
}

/// `rexec rerun` beside this host and these journals, with a variable of the caller's own.
fn rerun_with(host: &Host, home: &Path, args: &[&str], (name, value): (&str, &str)) -> Said {
    let mut command = programs::command(programs::rexec());
    command.arg("rerun").args(args).env_clear().env("PATH", programs::PATH).env(name, value);
    command.env("REXEC_SOCKET", host.socket()).env("REXEC_HOME", home).stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Said { code: output.status.code().expect("it exits"), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_command_runs_again_with_its_own_variables_directory_and_code() {
    let host = Host::with(MIRROR);
    let call = |script: &str| host.call(script).env("NODE_ENV=a b").env("SOME_WORD=open sesame").env("CLAUDECODE=1");
    let first = call(SCRIPT).run(crate::support::call::Target::Shim(&host.socket()));
    assert_eq!(first.code(), 7);
    ends(&host, 1);
    let dir = host.home.path().display().to_string();
    let said = rexec(&host, &["rerun", "1"]);
    assert_eq!((said.code, said.out), (7, format!("a b/0/{dir} pipe\n")));
    let (err, lacks) = (said.err, "in neither the journal nor this environment: ");
    assert!(err.ends_with("e\n") && err.contains(lacks) && err.contains(" SOME_WORD"), "{err}");
    // The secret comes from whoever runs it again.
    let said = rerun_with(&host, &host.journal_home(), &["1", "--as", "me"], ("SOME_WORD", "from here"));
    assert_eq!((said.code, said.out), (7, format!("a b/9/{dir} pipe\n")));
    assert!(said.err.contains("taken from this environment: SOME_WORD"), "{}", said.err);
    ends(&host, 3);
    let names: Vec<String> =
        host.journal().of_type("end").map(|end| end["whoami"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(names, ["Claude Code", "claude-rerun", "me"]);
    let text = text_of_journal(&host);
    assert!(!text.contains("sesame") && text.matches("\"type\":\"environment\"").count() == 1, "{text}");
    // The second one's own record leads to the same.
    assert_eq!(rexec(&host, &["rerun", "-2"]).code, 7);
}

#[test]
fn a_command_on_a_terminal_and_one_that_came_as_json_run_again_as_they_were() {
    let host = Host::with(Setup { tty: "auto", ..PLAIN });
    let terminal = host.call(SCRIPT).env("REXEC_TTY=always").run(crate::support::call::Target::Shim(&host.socket()));
    assert!(terminal.out().contains("terminal"));
    let request = json!({"whoami": "Me", "dir": "/", "exec": ["printf", "%s|", "a b", "c'd"], "envs": {"X": "y"}});
    let mut stream = UnixStream::connect(host.socket()).expect("the host listens");
    stream.write_all(format!("{request}\n").as_bytes()).expect("the host reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the host answers");
    assert!(answer.contains("a b|c'd|"), "{answer}");
    ends(&host, 2);
    assert!(rexec(&host, &["rerun", "1"]).out.contains(" terminal"));
    let said = rexec(&host, &["rerun", "2"]);
    assert_eq!((said.code, said.out.as_str()), (0, "a b|c'd|"));
    ends(&host, 4);
    let last = host.journal().of_type("end").last().map(|end| end["whoami"].clone());
    assert_eq!(last, Some("Me-rerun".into()));
}

#[test]
fn what_cannot_run_again_is_refused_with_its_reason() {
    let host = Host::with(MIRROR);
    host.run("echo ghp_abcdefghijklmnopqrstuvwxyz0123456789");
    host.run("true");
    ends(&host, 2);
    let lines = [
        r#"{"v":1,"type":"start","seq":90,"time":"2026-05-21T09:42:18.123Z","dir":"/","exec":[],"command":"x"}"#,
        r#"{"v":1,"type":"start","seq":91,"dir":"/","exec":["sh","-c","true"],"clipped":true}"#,
        r#"{"v":1,"type":"start","seq":92,"dir":"/","exec":["sh","-c","true"],"sandbox":"Landlock"}"#,
        r#"{"v":1,"type":"start","seq":93,"dir":"/no/such/place","exec":["sh","-c","true"]}"#,
        r#"{"v":1,"type":"start","seq":94,"dir":"/","exec":["sh","-c","echo \"<$KEPT>\""],"shell":"/bin/sh"}"#,
    ];
    let open = r#"{"v":1,"type":"open","time":"2026-05-21T09:42:18.123Z","pid":1,"version":"0.1.0"}"#;
    let text = [open].iter().chain(&lines).map(|line| format!("{line}\n")).collect::<String>();
    let name = "2026-05-21-09:42:18";
    let planted = TempDir::new(None);
    fs::write(planted.path().join(format!("{name}.jsonl")), text).expect("a journal");
    let of = |seq: u32| format!("{name}:{seq}");
    let own = rexec(&host, &["rerun", "1"]);
    assert!(own.code == 1 && own.err.contains("has a secret in it"), "{}", own.err);
    for (run, code, problem) in [
        (of(77), 3, "there is no run 77"),
        (of(90), 1, "has no call in the journal"),
        (of(91), 1, "is longer than what the journal kept of it"),
        (of(92), 1, "ran in a sandbox (Landlock)"),
        (of(93), 1, "/no/such/place of command 93 is not there"),
    ] {
        let said = rerun_with(&host, planted.path(), &[&run], ("KEPT", "mine"));
        assert!(said.err.contains(problem) && said.err.contains("hint: "), "{run}: {}", said.err);
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{run}");
    }
    assert_eq!(rexec(&host, &["rerun"]).code, 2);
    // A record of an older host has no environment.
    let said = rerun_with(&host, planted.path(), &[&of(94)], ("KEPT", "mine"));
    assert_eq!((said.code, said.out.as_str()), (0, "<mine>\n"));
    assert!(said.err.contains("no environment of command 94"), "{}", said.err);
}

#[test]
fn a_host_can_be_told_to_keep_no_environments() {
    let host = Host::with(Setup { flags: &["--no-environments"], ..MIRROR });
    host.call("true").env("NODE_ENV=plain words").run(crate::support::call::Target::Shim(&host.socket()));
    ends(&host, 1);
    let text = text_of_journal(&host);
    assert!(!text.contains("plain words") && !text.contains("\"environment\""), "{text}");
}

#[test]
fn a_program_that_was_called_by_its_path_in_words_is_what_runs_again() {
    let host = Host::with(PLAIN);
    let program = host.home.join("tool");
    programs::write(&program, b"#!/bin/sh\necho \"tool: $# [$1] [$2]\"\nexit 3\n");
    let program = program.display().to_string();
    let wanted = (3, "tool: 2 [a  b] [$HOME]\n".to_owned());
    let first = rexec(&host, &["exec", "--", &program, "a  b", "$HOME"]);
    assert_eq!((first.code, first.out), wanted);
    let request = json!({"whoami": "Me", "dir": "/", "exec": [program, "a  b", "$HOME"]});
    let mut stream = UnixStream::connect(host.socket()).expect("the host listens");
    stream.write_all(format!("{request}\n").as_bytes()).expect("the host reads");
    stream.read_to_string(&mut String::new()).expect("the host answers");
    ends(&host, 2);
    for number in ["1", "2"] {
        let again = rexec(&host, &["rerun", number]);
        assert_eq!((again.code, again.out), wanted, "{number}: {}", again.err);
    }
    ends(&host, 4);
    let journal = host.journal();
    let calls: Vec<_> = journal.of_type("start").map(|start| start["exec"].clone()).collect();
    assert!(calls.iter().all(|call| *call == calls[0]), "{calls:?}");
}
