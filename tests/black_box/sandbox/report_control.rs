//! What people do to commands that run in their callers' sandboxes: signal, pause, resume, look; and what is not possible.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::json;

use super::reports::{begin, caged, can_run, ended, plain, rexec};
use crate::rpc::client::Client;
use crate::support::call::{Calling, Target};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

fn has_written(calling: &Calling, text: &str) -> bool {
    let reader = calling.stdout.as_ref().expect("a pipe");
    waiting::until_true(PATIENCE, || String::from_utf8_lossy(&reader.so_far()).contains(text))
}

/// What runs of a reported command, beside the shim itself. A process that ended when its parent was stopped stays a
/// zombie.
fn shells(calling: &Calling) -> Vec<Process> {
    let is_shim = |process: &Process| {
        let program = std::fs::read_link(format!("/proc/{}/exe", process.pid)).unwrap_or_default();
        program.file_name().is_some_and(|name| name == "rexec-sh")
    };
    procs::descendants(calling.pid()).into_iter().filter(|process| process.state != 'Z' && !is_shim(process)).collect()
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

#[test]
fn a_signal_for_a_sandboxed_command_reaches_its_processes() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let inner = r#"trap "echo inner; exit 4" USR1; echo ready; while :; do sleep .02; done"#;
    let script = format!("trap 'echo outer' USR1; bash -c '{inner}'; echo $?");
    let (mut calling, seq) = begin(&host, &script);
    assert!(has_written(&calling, "ready"));
    let said = rexec(&host, &["kill", "--signal", "USR1", &seq.to_string()]);
    assert!(said.contains(&format!("#{seq} got the signal")), "{said}");
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert!(["inner\n", "outer\n", "4\n"].iter().all(|word| seen.out().contains(word)), "{seen:?}");
    ended(&host, &script);
    assert!(rexec(&host, &["kill", "--signal", "USR1", &seq.to_string()]).contains("no command"), "it has ended");
}

#[test]
fn a_sandboxed_command_is_paused_and_resumed() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let (mut calling, seq) = begin(&host, "while :; do echo tick >>ticks; sleep .01; done | cat");
    let (seq, ticks) = (seq.to_string(), host.home.join("ticks"));
    assert!(waiting::until_true(PATIENCE, || size(&ticks) > 0));
    assert!(rexec(&host, &["resume", &seq]).contains("is not paused"));
    let said = rexec(&host, &["pause", &seq]);
    assert!(said.contains("is paused"), "{said}");
    // The kernel stops a process at its next return to its own code, which on a busy machine comes after the answer.
    waiting::wait_until("the stop", || shells(&calling).iter().all(|process| process.state == 'T'));
    let before = size(&ticks);
    let listed = rexec(&host, &["ps", "--json"]);
    assert!(listed.contains(r#""state":"paused""#), "{listed}");
    assert_eq!(size(&ticks), before, "a process goes on");
    let said = rexec(&host, &["resume", &seq]);
    assert!(said.contains("goes on"), "{said}");
    assert!(waiting::until_true(PATIENCE, || size(&ticks) > before), "it does not go on");
    assert!(rexec(&host, &["pause", &seq]).contains("is paused"));
    let said = rexec(&host, &["kill", &seq]);
    assert!(said.contains("has ended"), "{said}");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 143);
    ended(&host, "while :; do echo tick >>ticks; sleep .01; done | cat");
    let said = rexec(&host, &["status"]);
    assert!(said.contains("1 command, 1 failed"), "{said}");
}

/// Nobody could continue it any more.
#[test]
fn a_paused_sandboxed_command_goes_on_when_the_host_ends() {
    if !can_run() {
        return;
    }
    // Nobody is asked before SIGKILL, so the shim has to notice by itself.
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let host = Host::with(MIRROR);
        let script = "echo ready; (while ! test -e done; do sleep .01; done; echo over) | cat";
        let (mut calling, seq) = begin(&host, script);
        assert!(has_written(&calling, "ready"));
        assert!(rexec(&host, &["pause", &seq.to_string()]).contains("is paused"));
        std::fs::write(host.home.join("done"), "").expect("the directory is ours");
        let _home = host.end_by(signal);
        assert_eq!(calling.finish(PATIENCE).expect("it ends").out(), "ready\nover\n", "{signal}");
    }
}

#[test]
fn nobody_types_for_a_sandboxed_command_and_a_person_is_told_why() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let (mut calling, seq) = begin(&host, "echo ready; while ! test -e done; do sleep .01; done");
    let seq = seq.to_string();
    for verb in [&["send", &seq, "yes"][..], &["send", "--force", &seq, "yes"]] {
        let said = rexec(&host, verb);
        assert!(said.contains(&format!("#{seq} runs in its sandbox (no_new_privs)")), "{said}");
        assert!(said.contains("hint: its agent alone can answer it"), "{said}");
    }
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").out(), "ready\n");
}

#[test]
fn a_key_that_is_a_signal_reaches_a_sandboxed_command() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let (mut calling, seq) = begin(&host, "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep .02; done");
    assert!(has_written(&calling, "ready"));
    let said = rexec(&host, &["send", &seq.to_string(), "--key", "ctrl-c"]);
    let seen = calling.finish(PATIENCE).unwrap_or_else(|| panic!("it goes on: {said}"));
    assert_eq!((seen.out().as_str(), seen.code()), ("ready\ncaught\n", 7));
}

#[test]
fn programs_see_a_sandboxed_command_as_people_do_and_none_of_its_secrets() {
    if !can_run() {
        return;
    }
    let host = Host::with(Setup { flags: &["--redact-agents"], ..MIRROR });
    let script = "until test -e go; do sleep .01; done; DB_PASS=hunter22x true; echo is-hunter${NO}22x; \
                  until test -e done; do sleep .01; done";
    let mut calling = caged(&host, script).start(Target::Real).expect("it starts");
    let seq = host.wait_for("its start", |journal| journal.of_type("start").next()?["seq"].as_u64());
    let mut client = Client::new(&host);
    let listed = client.call("exec.list", &json!({}))["runs"][0].clone();
    assert_eq!(listed["run"], json!(seq), "{listed}");
    let status = client.call("exec.status", &json!({"run": seq}));
    for run in [&listed, &status] {
        assert!(run["sandbox"].as_str().is_some_and(|sandbox| !sandbox.is_empty()), "{run}");
        assert!(run["processes"].as_u64().is_some_and(|processes| processes > 0), "{run}");
    }
    let command = listed["command"].as_str().unwrap_or_default();
    assert!(command.contains("«redacted:DB_PASS»") && command.contains("test -e done"), "{listed}");
    std::fs::write(host.home.join("go"), "").expect("the directory is ours");
    let written = client.call("exec.output", &json!({"run": seq, "wait_ms": 60_000})).to_string();
    assert!(written.contains("is-«redacted:DB_PASS»") && !written.contains("hunter22x"), "{written}");
    let paused = rexec(&host, &["pause", &seq.to_string()]);
    assert_eq!(client.call("exec.status", &json!({"run": seq}))["state"], "paused", "{paused}");
    rexec(&host, &["resume", &seq.to_string()]);
    assert_eq!(client.call("exec.status", &json!({"run": seq}))["state"], "running");
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert!(calling.finish(PATIENCE).expect("it ends").out().contains("is-hunter22x"), "its caller sees everything");
}

/// The sandboxes of agents nest: a shell in one starts a helper, which starts a shell in a pid namespace of its own.
#[test]
fn a_shell_that_cannot_see_the_reporting_one_above_it_makes_no_second_run() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let shim = programs::shims().join("bash");
    let cage = "unshare --user --map-root-user --pid --fork --mount-proc";
    if plain(&host, &format!("{cage} true")).run(Target::Real).code() != 0 {
        return programs::skipped("no pid namespace can be had here");
    }
    let nested = |env: &str, command: &str| format!("env {env} {cage} '{}' -c '{command}'", shim.display());
    let quick = nested("-u REXEC_REPORT", "echo nested; exit 5");
    let seen = caged(&host, &quick).run(Target::Real);
    assert_eq!((seen.out().as_str(), seen.err().as_str(), seen.code()), ("nested\n", "", 5));
    let end = ended(&host, &quick);
    assert_eq!((end["output"].as_str(), end["exit"].as_i64()), (Some("nested\n"), Some(5)));
    // A sandbox may clear the environment.
    let slow = nested("-u REXEC_REPORTED", "echo beg\"\"un; while ! test -e done; do sleep .01; done");
    let (mut calling, _) = begin(&host, &slow);
    let is_shown = || host.console_text().contains("begun");
    assert!(waiting::until_true(PATIENCE, is_shown), "{}", host.console_text());
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").out(), "begun\n");
    ended(&host, &slow);
    // What the outer one does not report, the inner one does.
    let seen = caged(&host, &quick).env("REXEC_REPORT=never").run(Target::Real);
    assert_eq!((seen.out().as_str(), seen.code()), ("nested\n", 5));
    assert_eq!(ended(&host, "echo nested; exit 5")["output"], "nested\n");
    let starts = host.journal().of_type("start").count();
    assert_eq!(starts, 3, "{:#?}", host.journal());
    // This line comes after any wrong one about an earlier command would have come.
    let is_told = || host.console_text().contains("unseen: env -u REXEC_REPORT unshare");
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    assert_eq!(host.console_text().matches("unseen").count(), 1, "{}", host.console_text());
}
