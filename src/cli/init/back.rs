//! `rexec uninit`: takes back what `rexec init` has changed.

use std::path::{Path, PathBuf};

use lexopt::prelude::{Long, Value};
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::file::SettingsFile;
use super::plan::{self, PlannedChange};
use super::store::InitStore;
use super::{YES, agent, misunderstood};
use crate::cli::run::permanent;
use crate::cli::say;
use crate::cli::told::tell;
use crate::cli::verb::{Group, Values, Verb};
use crate::front::init_record::ChangedFile;
use crate::text::settings::{self, SettingsError, SettingsFormat, block};

pub(in crate::cli) const UNINIT: Verb = Verb {
    name: "uninit",
    short: None,
    group: Group::Agents,
    arguments: "[AGENT...]",
    values: Values::Words(&permanent::PROGRAMS),
    summary: "take back what rexec init has changed",
    text: "\
Each file gets back the bytes that it had before rexec init. What others have
changed in it since stays. You see each change as a diff, and are asked.
Without AGENT this takes back everything, and removes the links.

Agents that run go on with the settings that they have read: restart them.
",
    options: &[YES],
    codes: &[(1, "nothing was changed, or a file cannot be changed")],
    examples: &["rexec uninit", "rexec uninit claude"],
    run: |parser| {
        let (mut names, mut is_sure) = (Vec::new(), false);
        while let Some(argument) = parser.next().map_err(|error| UNINIT.wrong(&error))? {
            match argument {
                Long("yes") | lexopt::Arg::Short('y') => is_sure = true,
                Value(word) => names.push(agent(&word.to_string_lossy())?.name()),
                other => return Err(UNINIT.unexpected(other)),
            }
        }
        uninit(&names, is_sure)
    },
};

fn uninit(names: &[&str], is_sure: bool) -> Result<u8, Notice> {
    let store = InitStore::of_user()?;
    let mut record = store.record()?;
    let is_meant = |file: &ChangedFile| names.is_empty() || names.contains(&file.agent.as_str());
    let (meant, kept): (Vec<_>, Vec<_>) = record.files.into_iter().partition(is_meant);
    record.files = kept;
    if meant.is_empty() {
        return say("nothing to do\n");
    }
    let changes = meant.into_iter().map(plan_back).collect::<Result<Vec<_>, _>>()?;
    let needed: Vec<PlannedChange> = changes.into_iter().filter(PlannedChange::is_needed).collect();
    plan::show(&needed)?;
    if !needed.is_empty() && !is_sure && !plan::is_wanted(needed.len(), "rexec uninit")? {
        return say("nothing was changed\n").map(|_| exit_code::FAILURE);
    }
    needed.iter().try_for_each(|change| change.make().map(|_| ()))?;
    store.give_up(&record)?;
    say("done; restart the agents that run\n")
}

/// The file without what was changed in it.
fn plan_back(changed: ChangedFile) -> Result<PlannedChange, Notice> {
    let path = PathBuf::from(&changed.path);
    let file = SettingsFile::open(path.clone())?;
    let wrong = |error: SettingsError| misunderstood(&path, &error);
    let Some(mut text) = file.text.clone() else {
        return Ok(PlannedChange { file, after: None, changed });
    };
    for (setting, edit) in changed.edits.iter().rev() {
        // Comments may have come in since.
        let format = match changed.format {
            SettingsFormat::Json => SettingsFormat::JsonWithComments,
            format => format,
        };
        let back = match setting {
            Some(setting) => settings::undo(format, &text, setting, edit),
            None => block::unset(&text, edit),
        };
        match back.map_err(wrong)? {
            Some(back) => text = back,
            None => say_gone(&path, setting.as_ref()),
        }
    }
    let is_empty = ["", "{}"].contains(&text.split_whitespace().collect::<String>().as_str());
    let after = if changed.is_new && is_empty { None } else { Some(text) };
    Ok(PlannedChange { file, after, changed })
}

fn say_gone(path: &Path, setting: Option<&settings::Setting>) {
    let what = setting.map_or("the block".to_owned(), |setting| setting.keys.join("."));
    tell(format!("{}: {what} is not as rexec init has left it, and stays", path.display()));
}
