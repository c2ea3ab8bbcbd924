//! A report names its rexec-sh. Whatever it names, nobody but its own command is hit by what a person does to it.

use rexec_sh::protocol::report::{Report, RunKey, ShimPlace};
use serde_json::json;

use super::reporters::{Liar, beginning, own_namespace, records, write};
use super::reports::{begin, can_run, ended, rexec};
use crate::rpc::client::Client;
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR};
use crate::support::waiting::PATIENCE;

/// Reports a command of this name whose rexec-sh is said to be this process.
fn report(host: &Host, key: RunKey, command: &str, pid: i32) {
    let place = ShimPlace { namespace: own_namespace(), pid, mark: [key[0]; 16], ..ShimPlace::default() };
    let piece = beginning(command, place);
    write(host, &records(key, &[Report::Begin { piece: &piece, is_last: true }]));
}

/// The same of a process that is found. Returns the command's number.
fn claim(host: &Host, key: RunKey, command: &str, pid: i32) -> String {
    report(host, key, command, pid);
    let is_it = |start: &&serde_json::Value| start["command"].as_str() == Some(command);
    let start = host.wait_for("its start", |journal| journal.of_type("start").find(is_it).cloned());
    start["seq"].as_u64().expect("a number").to_string()
}

#[test]
fn a_report_that_names_the_host_gives_nobody_a_way_to_the_commands_of_others() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "echo ready; while ! test -e done; do sleep .02; done; exit 5";
    let mut innocent = host.call(script).start(Target::Shim(&host.socket())).expect("it starts");
    assert!(innocent.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE), "it never began");
    for (key, pid) in [([1; 16], host.pid()), ([2; 16], std::process::id().cast_signed())] {
        report(&host, key, &format!("names {pid}"), pid);
    }
    let mut liar = Liar::start(&host);
    let seq = claim(&host, [4; 16], "names a liar", liar.place.pid);
    for verb in [&["kill", &seq][..], &["pause", &seq], &["kill", "-s", "KILL", &seq]] {
        let said = rexec(&host, verb);
        assert!(said.contains("cannot be found"), "{verb:?}: {said}");
    }
    let mut client = Client::new(&host);
    let run: u64 = seq.parse().expect("a number");
    for (method, params) in [
        ("exec.pause", json!({"run": run})),
        ("exec.signal", json!({"run": run, "signal": "KILL"})),
        ("exec.cancel", json!({"run": run})),
    ] {
        let (code, sentence) = client.error(method, &params);
        assert!(code == -32_010 && sentence.contains("cannot be found"), "{method}: {code} {sentence}");
    }
    assert!(liar.lives(), "it executes no rexec-sh, and was killed");
    let of_host = format!("names {}", host.pid());
    assert!(!host.console_text().contains(&of_host), "it reads the FIFO, too: {}", host.console_text());
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert_eq!(innocent.finish(PATIENCE).expect("it goes on to its end").code(), 5);
}

#[test]
fn a_report_that_names_the_shell_of_another_one_gives_nobody_a_way_to_that() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "echo ready; while ! test -e done; do sleep .02; done; exit 5";
    let (mut innocent, own) = begin(&host, script);
    assert!(innocent.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE), "it never began");
    let seq = claim(&host, [3; 16], "names another", innocent.pid());
    for verb in [&["kill", &seq][..], &["pause", &seq], &["kill", "-s", "KILL", &seq]] {
        let said = rexec(&host, verb);
        assert!(said.contains("cannot be found"), "{verb:?}: {said}");
    }
    let own = own.to_string();
    assert!(rexec(&host, &["pause", &own]).contains("is paused"), "its own number reaches it");
    assert!(rexec(&host, &["resume", &own]).contains("goes on"), "its own number reaches it");
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert_eq!(innocent.finish(PATIENCE).expect("it goes on to its end").code(), 5);
    assert_eq!(ended(&host, script)["exit"].as_i64(), Some(5));
}
