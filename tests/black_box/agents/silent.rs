//! Agents that start shells of which none comes to the host: the console and `rexec doctor --live` say so.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::doctor::doctor;
use super::{Place, host};
use crate::support::{programs, waiting};

/// Starts a shell that nobody sees, and another one when it is told to.
const AGENT: &str = r#"#!/usr/bin/env python3
import subprocess
unseen = subprocess.Popen(["sh", "unseen.sh"])
input()
subprocess.run("echo seen", shell=True)
input()
unseen.kill()
"#;

#[test]
#[ignore = "long: an agent has a minute for its first command"]
fn an_agent_whose_shells_do_not_come_is_named_until_one_does() {
    if !programs::has("python3") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let agent = place.program("sketch", AGENT);
    place.program("unseen.sh", "sleep 300; exit\n");
    let mut agent = place.run(&host, &[agent.to_str().expect("a path in UTF-8")]);
    let mut agent = agent.stdin(Stdio::piped()).spawn().expect("it starts");
    let other = place.program("goose", "#!/bin/sh\nsh unseen.sh\ntrue\n");
    let mut other = place.alone(other).process_group(0).spawn().expect("it starts");
    let row = format!("… sketch (process {}) starts shells, and none of its commands comes here", agent.id());
    let finding = format!("sketch, process {}", agent.id());
    let is_told = || host.console_text().contains(&row);
    assert!(waiting::until_true(Duration::from_secs(180), is_told), "{}", host.console_text());
    let (text, _) = doctor(&place, &host, &["--live"], &[]);
    assert!(text.contains(&format!("goose, process {}", other.id())), "by its name: {text}");
    nix::sys::signal::killpg(Pid::from_raw(other.id().cast_signed()), Signal::SIGKILL).expect("it lives");
    other.wait().expect("it ends");
    assert!(text.contains(&finding) && text.contains("of which none has come to the host"), "{text}");
    let mut input = agent.stdin.take().expect("a pipe");
    input.write_all(b"\n").expect("it reads");
    host.wait_for("its command", |journal| journal.end_of("echo seen").map(drop));
    let (text, _) = doctor(&place, &host, &["--live"], &[]);
    assert!(!text.contains(&finding), "{text}");
    input.write_all(b"\n").expect("it reads");
    assert!(agent.wait().expect("it ends").success());
    assert_eq!(host.console_text().matches(&row).count(), 1, "{}", host.console_text());
    host.finish();
}
