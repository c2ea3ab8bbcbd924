//! The checks that start something: a shell as each agent would start it, and how long a login shell takes.
#![expect(clippy::disallowed_methods, reason = "a person has asked for these probes, and waits for them")]

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{CheckResult, FindingState};
use crate::cli::run::probe::InstalledAgent;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// A login shell that takes longer makes agents slow that start one for each command.
const SLOW: Duration = Duration::from_millis(200);
/// Columns of what a probe said that are shown. The rest is cut.
const SAID_COLUMNS: usize = 200;

/// Runs a command by the shell that the agent would start. It prints 1 if the host has run it.
pub(super) fn round_trip(agent: &InstalledAgent) -> CheckResult {
    probe(agent.name, &agent.shell, &agent.set)
}

/// The same by a shell with these variables.
pub(super) fn probe(name: &str, shell: &Path, set: &[(String, OsString)]) -> CheckResult {
    let check = format!("{name}, live");
    let mut command = Command::new(shell);
    command.args(["-c", "echo $REXEC_INSIDE"]).stdin(Stdio::null());
    command.envs(set.iter().map(|(name, value)| (name, value)));
    command.env("REXEC_WHOAMI", "rexec doctor").env_remove("REXEC_INSIDE");
    let shell = shell.display();
    match command.output() {
        Ok(output) if output.status.success() && output.stdout == b"1\n" => {
            CheckResult::ok(check, format!("a command of {shell} arrived at the host"))
        }
        Ok(output) => CheckResult::new(
            FindingState::Broken,
            check,
            said(&output),
            "rexec help agents; then run rexec doctor again",
        ),
        Err(error) => {
            CheckResult::new(FindingState::Broken, check, format!("{shell}: {}", reason(&error)), "install that shell")
        }
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stderr[..], &output.stdout].concat();
    let first = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
    format!("a command did not arrive at the host: {}", escape_line(&first, SAID_COLUMNS))
}

/// How long a login shell takes to start.
pub(super) fn start_of_bash() -> CheckResult {
    let from = Instant::now();
    let mut command = Command::new("/bin/bash");
    // As a command's shell starts, which has no recipe.
    command.args(["-lc", "true"]).env_remove("BASH_ENV");
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let took = from.elapsed();
    let found = format!("bash -lc true takes {} ms", took.as_millis());
    match ended {
        Err(error) => {
            CheckResult::new(FindingState::Note, "shell", format!("/bin/bash: {}", reason(&error)), "install bash")
        }
        Ok(_) if took > SLOW => {
            let fix =
                "see what ~/.bash_profile, ~/.profile and ~/.bashrc start; some agents run them for every command";
            CheckResult::new(FindingState::Note, "shell", found, fix)
        }
        Ok(_) => CheckResult::ok("shell", found),
    }
}
