//! The agents on PATH whose commands the person's rules do not see.

use super::{CheckResult, FindingState};
use crate::cli::config_file::ConfigFile;
use crate::cli::init::InitStore;
use crate::cli::run::probe::InstalledAgent;

/// A finding, if there are rules.
pub(super) fn finding(agents: &[InstalledAgent]) -> Option<CheckResult> {
    let file = ConfigFile::own().ok().flatten();
    file.filter(|file| file.loaded.gate.is_used())?;
    let record = InitStore::of_user().and_then(|store| store.record()).unwrap_or_default();
    let is_set_up = |agent: &InstalledAgent| record.files.iter().any(|file| file.agent == agent.name);
    let is_seen = |agent: &InstalledAgent| agent.works && agent.faults.is_empty();
    let names = |wanted: &dyn Fn(&InstalledAgent) -> bool| {
        let names: Vec<&str> = agents.iter().filter(|agent| wanted(agent)).map(|agent| agent.name).collect();
        names.join(", ")
    };
    let never = names(&|agent| !is_seen(agent));
    let by_run = names(&|agent| is_seen(agent) && !is_set_up(agent));
    let mut found = Vec::new();
    if !never.is_empty() {
        found.push(format!("your rules see not all commands, or none, of {never}"));
    }
    if !by_run.is_empty() {
        found.push(format!("they see those of {by_run} only where rexec run starts it"));
    }
    if found.is_empty() {
        let found = "they see the commands of all agents on PATH, but not in an agent's own sandbox";
        return Some(CheckResult::ok("rules", found));
    }
    let fix = "rexec init where an agent has a setting for its shell; rexec help gate says what else is not seen";
    Some(CheckResult::new(FindingState::Note, "rules", found.join("\n"), fix))
}
