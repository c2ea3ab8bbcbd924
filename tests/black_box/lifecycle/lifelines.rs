//! Whose end ends a command: its agent's, whatever stands between, and no parent's in between.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use nix::sys::signal::Signal::SIGKILL;

use super::leftovers::written;
use crate::sandbox::has_sight;
use crate::support::call::{Calling, Target};
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// What may stand between an agent and the shell that it calls.
const BETWEEN: [&str; 4] = ["", "sh -c '\"$@\"; :' sh", "timeout 1000", "setsid -w"];

/// A command with a process in a session of its own that ignores SIGTERM.
const ENDLESS: &str = "setsid sh -c 'trap \"\" TERM; echo $$ >apart; sleep 1000; :' & echo $$ >shell; sleep 1000; :";

/// Starts a program of this name that runs a script of sh in which `$call` is the shim.
fn agent(host: &Host, name: &str, text: &str) -> Calling {
    let path = host.home.join(name);
    programs::write(
        &path,
        format!("#!/bin/sh\ncall='{}'\n{text}\n", programs::shims().join("bash").display()).as_bytes(),
    );
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
    let call = host.call(&format!("unset REXEC_INSIDE; exec ./{name}"));
    let call = call.env(&format!("REXEC_SOCKET={}", host.socket().display())).env(&format!("SCRIPT={ENDLESS}"));
    call.start(Target::Real).expect("it starts")
}

fn remove(host: &Host, files: &[&str]) {
    files.iter().for_each(|file| std::fs::remove_file(host.home.join(file)).expect("a file"));
}

/// Kills an agent, and waits until nothing of its command is left.
fn ends_with_it(host: &Host, agent: &Calling, what: &str) {
    let tree = ["shell", "apart"].map(|file| written(host, file));
    agent.warden.signal(SIGKILL);
    let is_gone = waiting::until_true(PATIENCE, || !tree.iter().any(|process| process.is_alive()));
    tree.iter().for_each(|process| process.signal(SIGKILL));
    assert!(is_gone, "{what} lives on");
    remove(host, &["shell", "apart"]);
}

#[test]
fn a_command_ends_with_its_agent_whatever_stands_between() {
    if !programs::has("setsid") {
        return;
    }
    let host = Host::with(MIRROR);
    for between in BETWEEN {
        for (name, variable) in [("claude", ""), ("an-agent", "export CLAUDECODE=1;")] {
            let text = format!("{variable} {between} $call -c \"$SCRIPT\" & wait");
            ends_with_it(&host, &agent(&host, name, &text), &format!("{between} below {name}"));
        }
    }
}

#[test]
fn a_command_in_a_sandbox_ends_with_its_agent() {
    if !has_sight() || !programs::has("setpriv") || !programs::has("setsid") {
        return;
    }
    let host = Host::with(MIRROR);
    for between in BETWEEN {
        let text = format!("{between} setpriv --no-new-privs $call -c \"$SCRIPT\" & wait");
        ends_with_it(&host, &agent(&host, "claude", &text), between);
    }
}

/// It waits for the end of the process that started it, and goes on for as long as a mistaken end would take.
const OUTLIVES: &str = "until [ -s parent ]; do sleep 0.01; done; \
                        while kill -0 $(cat parent) 2>/dev/null; do sleep 0.01; done; sleep 1; echo lived >lived";

#[test]
fn a_parent_in_between_that_ends_ends_nothing() {
    let host = Host::with(MIRROR);
    for (name, outputs) in
        [("claude", ">/dev/null 2>&1"), ("claude", ""), ("nobody", ">/dev/null 2>&1"), ("nobody", "")]
    {
        let starts =
            format!("echo \\$\\$ >parent; $call -c '{}' {outputs} & until [ -e begun ]; do sleep 0.01; done", {
                format!("echo >begun; {}", OUTLIVES.replace('$', "\\$"))
            });
        let agent = agent(&host, name, &format!("sh -c \"{starts}\"; sleep 1000"));
        let lived = host.home.join("lived");
        assert!(waiting::until_true(PATIENCE, || lived.exists()), "{name} {outputs}: {}", host.console_text());
        agent.warden.signal(SIGKILL);
        remove(&host, &["lived", "begun", "parent"]);
    }
}

#[test]
fn without_a_known_agent_the_last_reader_decides_once_the_parent_has_gone() {
    let host = Host::with(MIRROR);
    let text = "$call -c \"$SCRIPT\" 2>&1 | sh -c 'echo $$ >reader; exec sleep 1000' & wait";
    let calling = agent(&host, "nobody", text);
    let (shell, reader) = (written(&host, "shell"), written(&host, "reader"));
    calling.warden.signal(SIGKILL);
    let ends_early = waiting::until_true(Duration::from_millis(700), || !shell.is_alive());
    assert!(!ends_early, "somebody reads");
    reader.signal(SIGKILL);
    assert!(waiting::until_true(PATIENCE, || !shell.is_alive()), "nobody reads");
}

#[test]
fn what_ignores_the_hangup_outlives_its_agent() {
    if !programs::has("nohup") {
        return;
    }
    let host = Host::with(MIRROR);
    let text = "echo $$ >parent; nohup $call -c 'echo >begun; until [ -s parent ]; do :; done; \
                while kill -0 $(cat parent) 2>/dev/null; do sleep 0.01; done; sleep 1; echo >lived' & wait";
    let agent = agent(&host, "claude", text);
    assert!(waiting::until_true(PATIENCE, || host.home.join("begun").exists()));
    agent.warden.signal(SIGKILL);
    assert!(waiting::until_true(PATIENCE, || host.home.join("lived").exists()), "{}", host.console_text());
}
