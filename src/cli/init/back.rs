//! `rexec uninit`: takes back the changes of `rexec init`.

use std::fs;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::agent;
use super::file::SettingsFile;
use super::plan::{self, PlannedChange};
use super::rules;
use super::store::{InitStore, Links};
use crate::cli::run::permanent::{self, KnownAgent};
use crate::cli::say;
use crate::cli::told::tell;
use crate::cli::verb::{Call, Group, Opt, Values, Verb, Words};
use crate::front::init_record::{ChangedFile, InitRecord};
use crate::text::settings::{self, SettingsError, SettingsFormat, block};

pub(in crate::cli) const UNINIT: Verb = Verb {
    term: "uninit",
    group: Group::Agents,
    summary: "take back what rexec init has changed",
    text: "\
Each file gets back the bytes that it had before rexec init. What others have
changed in it since stays. You see each change as a diff, and are asked.
Without AGENT this takes back everything. The links go with the last setting
that names them; as long as a file names one, they stay, and you are told.
Without AGENT, a config.toml that rexec init wrote goes, too, if nobody has
changed it.
Aliases that an earlier rexec init has put into a profile go together, with
any agent that has no file of settings.

Agents that run go on with the settings that they have read: restart them.
",
    codes: &[(1, "nothing was changed, or a file cannot be changed")],
    examples: &["rexec uninit", "rexec uninit claude"],
    call: &Call::<UninitCall> {
        options: &[Opt::flag("-y, --yes", |q| q.is_sure = true, "do not ask")],
        words: Words::many("[AGENT...]", Values::Words(&permanent::PROGRAMS), |q, w| q.agents.extend(agent(w))),
        run: |UninitCall { agents, is_sure }| uninit(&agents, is_sure),
    },
};

#[derive(Default)]
struct UninitCall {
    agents: Vec<KnownAgent>,
    is_sure: bool,
}

fn uninit(agents: &[KnownAgent], is_sure: bool) -> Result<u8, Notice> {
    let store = InitStore::of_user()?;
    let mut record = store.record()?;
    let is_meant = |file: &ChangedFile| agents.is_empty() || agents.iter().any(|agent| concerns(file, agent));
    let (meant, kept): (Vec<_>, Vec<_>) = record.files.into_iter().partition(is_meant);
    record.files = kept;
    let rules = if agents.is_empty() { rules::plan_back() } else { None };
    if meant.is_empty() && rules.is_none() {
        // Links that a setting named when the last change was taken back.
        let has_links = agents.is_empty() && record.files.is_empty() && store.links().exists();
        let are_gone = has_links && finish(&store, &record, &[])?;
        return say(if are_gone { "the links are gone\n" } else { "nothing to do\n" });
    }
    let paths: Vec<PathBuf> = meant.iter().map(|file| PathBuf::from(&file.path)).collect();
    let has_agents = !meant.is_empty();
    let changes = meant.into_iter().map(plan_back).collect::<Result<Vec<_>, _>>()?;
    let needed: Vec<PlannedChange> = changes.into_iter().chain(rules).filter(PlannedChange::is_needed).collect();
    plan::show(&needed)?;
    if !needed.is_empty() && !is_sure && !plan::is_wanted(needed.len(), "rexec uninit")? {
        return say("nothing was changed\n").map(|_| exit_code::FAILURE);
    }
    // The directories made for one file may hold a later file.
    needed.iter().rev().try_for_each(|change| change.make().map(|_| ()))?;
    needed.iter().try_for_each(rules::follow)?;
    needed.iter().for_each(|change| leave_directories(&change.changed, &mut record));
    finish(&store, &record, &paths)?;
    say(if has_agents { "done; restart the agents that run\n" } else { "done\n" })
}

/// Hands the directories that stay, because a file of the record is in them, over to that file.
fn leave_directories(changed: &ChangedFile, record: &mut InitRecord) {
    for directory in &changed.directories {
        let heir = record.files.iter_mut().find(|file| Path::new(&file.path).starts_with(directory));
        if let Some(heir) = heir.filter(|heir| !heir.directories.contains(directory)) {
            heir.directories.push(directory.clone());
        }
    }
}

/// Returns true if a file was changed for this agent. An earlier release has put aliases for agents without a settings
/// file into a shell profile; they go together.
fn concerns(file: &ChangedFile, agent: &KnownAgent) -> bool {
    file.agent == agent.name() || (file.agent.is_empty() && !permanent::PROGRAMS.contains(&agent.program()))
}

/// Writes the record. The links go if nothing is left of it, unless a setting names them: an agent without its shell
/// would run nothing, or run it unseen. `paths` are the files changed until now. Returns true if the links are gone.
fn finish(store: &InitStore, record: &InitRecord, paths: &[PathBuf]) -> Result<bool, Notice> {
    if !record.files.is_empty() {
        store.give_up(record, Links::Named)?;
        return Ok(false);
    }
    let files = naming_links(store, paths);
    let links = store.links();
    for path in &files {
        let path = path.display();
        tell(format!(
            "{path} names a link in {}, so the links stay; change it and call rexec uninit again",
            links.display()
        ));
    }
    store.give_up(record, if files.is_empty() { Links::Unnamed } else { Links::Named })?;
    Ok(files.is_empty())
}

/// The settings files, and those of these paths, that name one of the links.
pub(super) fn naming_links(store: &InitStore, paths: &[PathBuf]) -> Vec<PathBuf> {
    let links = store.links();
    let folder = format!("{}/", links.display());
    let names_link =
        |path: &PathBuf| fs::read(path).is_ok_and(|text| memchr::memmem::find(&text, folder.as_bytes()).is_some());
    let mut files = permanent::files(&store.home, &links.to_string_lossy());
    files.extend_from_slice(paths);
    files.sort();
    files.dedup();
    files.retain(names_link);
    files
}

/// Plans to take back the changes of a file.
fn plan_back(changed: ChangedFile) -> Result<PlannedChange, Notice> {
    let path = PathBuf::from(&changed.path);
    let file = SettingsFile::open(path.clone())?;
    let wrong = |error: SettingsError| {
        let problem = format_args!("{}, {error}", path.display());
        Notice::failed(problem, "nothing was changed; take the setting out by hand, and call rexec uninit again")
    };
    let Some(mut text) = file.text.clone() else {
        return Ok(PlannedChange { file, after: None, changed });
    };
    for (setting, edit) in changed.edits.iter().rev() {
        // Somebody may have added comments since.
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
