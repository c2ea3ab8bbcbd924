//! Checks that the changes of `rexec init` still exist, and that its links lead to this rexec.

use std::path::Path;

use super::{CheckResult, FindingState, live};
use crate::cli::init::InitStore;
use crate::cli::run::links;
use crate::front::init_record::ChangedFile;
use crate::text::settings::{self, block};

/// The findings; none if nothing was changed. `is_live` runs a command by one of the links.
pub(super) fn all(shim: &Path, is_live: bool) -> Vec<CheckResult> {
    let Ok(store) = InitStore::of_user() else { return Vec::new() };
    let record = match store.record() {
        Ok(record) if record.files.is_empty() => return Vec::new(),
        Ok(record) => record,
        Err(notice) => {
            let fix = "move it away; the settings that rexec init has changed stay as they are";
            return vec![CheckResult::new(FindingState::Broken, "rexec init", notice.problem.to_string(), fix)];
        }
    };
    let mut findings = vec![of_links(&store.links(), shim)];
    findings.extend(record.files.iter().map(of_file));
    if is_live {
        findings.push(live::probe(
            "rexec init",
            &store.links().join("rexec-bash"),
            &[],
            "rexec init repairs its links",
        ));
    }
    findings
}

/// Settings name these links, so a dangling one leaves an agent without a shell, or with another one.
fn of_links(folder: &Path, shim: &Path) -> CheckResult {
    let (place, faults) = (folder.display(), links::faults(folder, shim));
    let gone: Vec<&str> = faults.iter().copied().filter(|name| !folder.join(name).exists()).collect();
    if faults.is_empty() {
        return CheckResult::ok("rexec init", format!("its links in {place} lead to this rexec"));
    }
    if gone.is_empty() {
        let found = format!("{place} has {} of another rexec", faults.join(", "));
        return CheckResult::new(
            FindingState::Note,
            "rexec init",
            found,
            "rexec init, if this rexec is the one to use",
        );
    }
    let found = format!("{place} lacks {}, which settings of agents name", gone.join(", "));
    CheckResult::new(FindingState::Broken, "rexec init", found, "rexec init; to do without it, rexec uninit")
}

/// Looks whether a file still has its settings.
fn of_file(file: &ChangedFile) -> CheckResult {
    let name = if file.agent.is_empty() { "profile" } else { &file.agent };
    let check = format!("{name}, init");
    let text = std::fs::read_to_string(&file.path).unwrap_or_default();
    let has_all = file.edits.iter().all(|(setting, _)| match setting {
        Some(setting) => settings::has(file.format, &text, setting).unwrap_or(false),
        None => block::is_in(&text),
    });
    if has_all {
        return CheckResult::ok(check, format!("{} has what rexec init put there", file.path));
    }
    let found = format!("{} is not as rexec init has left it, so commands may go unseen", file.path);
    CheckResult::new(FindingState::Note, check, found, "rexec init puts it there again; rexec uninit forgets it")
}
