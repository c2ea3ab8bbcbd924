//! The checks that run a command: by a shell as each agent would start it.
#![expect(clippy::disallowed_methods, reason = "a person has asked for these probes, and waits for them")]

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{CheckResult, FindingState};
use crate::cli::run::probe::InstalledAgent;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// Columns of a probe's output that are shown. The rest is cut.
const SAID_COLUMNS: usize = 200;

/// Runs a command by the shell that the agent would start. It prints 1 if the host has run it.
pub(super) fn round_trip(agent: &InstalledAgent) -> CheckResult {
    probe(agent.name, &agent.shell, &agent.set, "rexec help agents; then run rexec doctor again")
}

/// As [`round_trip`], by a shell with these variables. `fix` is the advice if the command does not arrive.
pub(super) fn probe(name: &str, shell: &Path, set: &[(String, OsString)], fix: &str) -> CheckResult {
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
        Ok(output) => CheckResult::new(FindingState::Broken, check, said(&output), fix),
        Err(error) => CheckResult::new(FindingState::Broken, check, format!("{shell}: {}", reason(&error)), fix),
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stderr[..], &output.stdout].concat();
    let first = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
    format!("a command did not arrive at the host: {}", escape_line(&first, SAID_COLUMNS))
}
