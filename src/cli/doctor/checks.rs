//! The checks of `rexec doctor`. They change nothing, except that they make or repair the links, as `rexec run` would.

use std::ffi::OsString;
use std::path::Path;

use rexec_sh::protocol::environment::{is_recipe, names_shim};
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::place::{self, PlaceError};

use super::{CheckResult, FindingState};
use super::{live, permanent, rules, silent};
use crate::cli::accepted;
use crate::cli::ask::AskError;
use crate::cli::config_file::ConfigFile;
use crate::cli::run::probe::InstalledAgent;
use crate::cli::run::{links, probe};
use crate::cli::status::RESTART;
use crate::cli::{check, host as host_options, installed, socket_path, status};
use crate::front::answer::HostStatus;
use crate::sys::process;
use crate::text::banner::duration;
use crate::text::escape::escape_line;

/// Columns of a host's version that are shown. The rest is cut.
const VERSION_COLUMNS: usize = 20;

/// All findings, in display order.
pub(super) fn all(is_live: bool) -> Result<Vec<CheckResult>, Notice> {
    let socket = socket_path()?;
    let mut findings = programs();
    findings.push(directory(&socket));
    let (finding, host) = host(&socket);
    let has_host = host.is_some();
    findings.push(finding);
    findings.extend(config());
    findings.extend(environment());
    let Some(shim) = installed::shim() else { return Ok(findings) };
    let folder = links::folder(&socket);
    let missing = links::faults(&folder, &shim);
    let place = folder.display();
    findings.push(if missing.is_empty() {
        CheckResult::ok("links", place.to_string())
    } else if folder.exists() {
        let found = format!("{place} lacks {}, or has old ones", missing.join(", "));
        CheckResult::new(FindingState::Note, "links", found, "rexec run repairs them")
    } else {
        CheckResult::new(FindingState::Note, "links", format!("{place} does not exist yet; rexec run makes it"), "")
    });
    if is_live && has_host {
        links::provide(&socket, &shim)?;
    }
    let agents = probe::agents(&folder);
    for agent in &agents {
        findings.push(of_agent(agent));
        if is_live && has_host && agent.works {
            findings.push(live::round_trip(agent));
        }
    }
    findings.extend(rules::finding(&agents));
    findings.extend(permanent::all(&shim, is_live && has_host));
    if let Some(host) = host.filter(|_| is_live) {
        findings.extend(silent::all(&host));
    }
    if is_live && !has_host {
        findings.push(CheckResult::new(
            FindingState::Broken,
            "live",
            "nothing was tried, because no host runs",
            "start rexec-host",
        ));
    }
    Ok(findings)
}

/// The person's file, if there is one.
fn config() -> Option<CheckResult> {
    match ConfigFile::own().and_then(|file| host_options::keys(file.as_ref()).map(|_| file)) {
        Ok(file) => file.map(|file| match accepted::text_of(&file.path) {
            Ok(Some(accepted)) if accepted != file.text => {
                let found = format!("{} is not as you have accepted it: the rules of both hold", file.path.display());
                CheckResult::new(FindingState::Note, "config", found, "rexec config diff, then rexec config accept")
            }
            _ => CheckResult::ok("config", file.path.display().to_string()),
        }),
        Err(wrong) => Some(CheckResult::new(FindingState::Broken, "config", wrong.problem, wrong.hint)),
    }
}

fn programs() -> Vec<CheckResult> {
    let both = [("rexec-host", installed::program("rexec-host")), ("rexec-sh", installed::shim())];
    let finding = |(name, path): (&str, Option<std::path::PathBuf>)| match path {
        Some(path) => CheckResult::ok(name, format!("{} ({})", path.display(), env!("CARGO_PKG_VERSION"))),
        None => {
            CheckResult::new(FindingState::Broken, name, "it is not installed with this rexec", "install rexec again")
        }
    };
    both.into_iter().map(finding).collect()
}

fn directory(socket: &Path) -> CheckResult {
    let directory = place::directory(socket);
    match place::check_directory(directory, process::uid()) {
        Ok(()) => CheckResult::ok("socket", socket.display().to_string()),
        Err(PlaceError::Missing) => {
            let found = format!("{} does not exist yet; a host makes it", directory.display());
            CheckResult::new(FindingState::Note, "socket", found, "")
        }
        Err(error) => {
            let found = format!("{}: {error}", directory.display());
            let fix = "make it a directory of your own with mode 0700, or set REXEC_SOCKET to a path in one";
            CheckResult::new(FindingState::Broken, "socket", found, fix)
        }
    }
}

/// The host, and its status if one answers.
fn host(socket: &Path) -> (CheckResult, Option<HostStatus>) {
    let finding = |state, found: &str, fix: &str| CheckResult::new(state, "host", found, fix);
    const START: &str = "start rexec-host; rexec run starts one, too";
    let status = match status::of(socket) {
        Ok(status) => status,
        Err(AskError::NoHost { .. }) if socket.exists() => {
            return (finding(FindingState::Note, "none runs; one that was killed has left its socket", START), None);
        }
        Err(AskError::NoHost { .. }) => return (finding(FindingState::Note, "none runs", START), None),
        Err(error @ AskError::Lost(_)) => {
            let fix = "look at its terminal; if it does not go on, end its process and start rexec-host again";
            return (finding(FindingState::Broken, &error.to_string(), fix), None);
        }
        Err(AskError::Unclear | AskError::Refused(_)) if check::is_running(socket) => {
            let found = "the one that runs is of another version, which does not tell its status";
            return (finding(FindingState::Note, found, RESTART), Some(HostStatus::default()));
        }
        Err(error) => return (finding(FindingState::Broken, &error.to_string(), "set REXEC_SOCKET"), None),
    };
    let (version, pid, up) = (escape_line(&status.version, VERSION_COLUMNS), status.pid, duration(status.up_ms));
    let found = format!("{version}, process {pid}, up {up}");
    let found = match status::outdated(&status) {
        Some(why) => finding(FindingState::Note, &format!("{found}; {why}"), RESTART),
        None => CheckResult::ok("host", found),
    };
    (found, Some(status))
}

/// The findings about the user's own environment and account.
fn environment() -> Vec<CheckResult> {
    let value = |name: &str| std::env::var_os(name).unwrap_or_default();
    let is_shim = |path: OsString| names_shim(path.as_encoded_bytes());
    let mut findings = Vec::new();
    let mut add =
        |state, check: &str, found: &str, fix: &str| findings.push(CheckResult::new(state, check, found, fix));
    if process::login_shell().is_some_and(|shell| is_shim(shell.into_os_string())) {
        let found = "your login shell is rexec's: without a host, ssh, scp and cron fail";
        add(FindingState::Broken, "login shell", found, "chsh -s /bin/bash");
    }
    let is_started = std::env::var_os("REXEC_RUN_AGENT").is_some();
    if !is_started && is_recipe(&[b"BASH_ENV=", value("BASH_ENV").as_encoded_bytes()].concat()) {
        let found = "it leads to rexec in this shell, so every bash -c that you run goes to the host";
        add(FindingState::Note, "BASH_ENV", found, "take it out of your profile; rexec run sets it for an agent alone");
    }
    if !is_started && is_shim(value("SHELL")) {
        let found = "it leads to rexec in this shell, so other programs use it too";
        add(FindingState::Note, "SHELL", found, "take it out of your profile; rexec run sets it for an agent alone");
    }
    if value("REXEC_FALLBACK") == "shell" {
        let found = "commands run unseen while no host runs (REXEC_FALLBACK=shell)";
        add(FindingState::Note, "fallback", found, "unset REXEC_FALLBACK to let them fail instead");
    }
    findings
}

fn of_agent(agent: &InstalledAgent) -> CheckResult {
    if let Some(fault) = agent.faults.first() {
        let fix = "change that, or start the agent without rexec run";
        return CheckResult::new(FindingState::Broken, agent.name, fault.as_str(), fix);
    }
    let (program, shell) = (agent.program.display(), agent.shell.display());
    let shell = if agent.works { format!("shell: {shell}, by {}\n", agent.by) } else { String::new() };
    let found = format!("{program}\n{shell}seen: {}\nnot seen: {}", agent.seen, agent.unseen);
    CheckResult::new(if agent.works { FindingState::Ok } else { FindingState::Note }, agent.name, found, "")
}
