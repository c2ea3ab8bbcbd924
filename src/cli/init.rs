//! `rexec init` and `rexec uninit`: settings by which agents use rexec's shell without `rexec run`, and back again.
//!
//! Invariants: every change is shown before; nothing is changed twice; `uninit` leaves each file as it was before,
//! except for the changes of others. No shell profile and no login shell is changed.

mod back;
mod file;
mod plan;
mod rules;
mod store;

use std::path::Path;

use rexec_sh::protocol::environment::names_shim;
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::run;
use super::run::permanent::{self, KnownAgent, PermanentSetting};
use super::told::tell;
use super::verb::{Call, Given, Group, Opt, Values, Verb, Words};
use super::{installed, quoted, say};
use crate::front::init_record::{ChangedFile, InitRecord};
use crate::text::settings::{self, SettingChange, SettingsError};
pub(super) use back::UNINIT;
use file::SettingsFile;
use plan::PlannedChange;
pub(super) use store::InitStore;
use store::Links;

pub(super) const INIT: Verb = Verb {
    term: "init",
    group: Group::Agents,
    summary: "let agents use rexec's shell whenever they start",
    text: "\
This puts rexec's shell into the settings of each AGENT, so that its commands
reach the host without rexec run. Without AGENT it takes all agents on PATH.
You see each change as a diff, and are asked. A file keeps its comments, its
order and its form. rexec uninit takes the changes back. Where a file cannot be
edited safely, nothing is changed, and you get the lines to paste.

Some agents have no setting for their shell: rexec run starts those. No profile
and no login shell is changed.

The links that the settings name are in ~/.local/share/rexec/shells. No host is
started for such an agent: while none runs, its commands fail.

On a terminal, you are then asked whether rules shall watch what agents run, if
you have no ~/.config/rexec/config.toml: you see what the packs git, files and
database would have asked about in the last 14 days. A file that is there is
never changed; you get the lines for it. rexec uninit takes the file away, as
long as it is as it was written. rexec help gate says what rules do.
",
    codes: &[(1, "nothing was changed, or a file names another shell")],
    examples: &["rexec init", "rexec init claude codex", "rexec init --yes --packs git,files,database"],
    call: &Call::<InitCall> {
        options: &[
            Opt::flag("-y, --yes", |q| q.is_sure = true, "do not ask"),
            Opt::value(
                "--packs LIST",
                |q, v| q.packs = v.check(rules::packs_of(&v.text())),
                "write a config.toml with these packs, as git,files,database, without a question; none: write none",
            ),
            Opt::flag("--force", |q| q.force = true, "replace another shell that a file names; uninit puts it back"),
        ],
        words: Words::many("[AGENT...]", Values::Words(&permanent::PROGRAMS), |q, w| {
            let agent = agent(w);
            q.agents.retain(|other| agent.as_ref().is_none_or(|agent| other.name() != agent.name()));
            q.agents.extend(agent);
        }),
        run: |call| {
            let (wanted, may_ask) = (call.packs.clone(), !call.is_sure);
            let code = set_agents(call)?;
            // After a no, there is no second question.
            if wanted.is_some() || (may_ask && code == exit_code::SUCCESS) {
                rules::offer(wanted.as_deref())?;
            }
            Ok(code)
        },
    },
};

#[derive(Debug, Default)]
struct InitCall {
    agents: Vec<KnownAgent>,
    is_sure: bool,
    force: bool,
    packs: Option<Vec<&'static str>>,
}

fn agent(given: &mut Given<'_>) -> Option<KnownAgent> {
    let word = given.text();
    given.check(permanent::named(&word).ok_or_else(|| {
        let problem = format!("rexec does not know an agent {}", quoted(word));
        Notice::usage(problem, "rexec run --list names the agents")
    }))
}

fn set_agents(mut call: InitCall) -> Result<u8, Notice> {
    let shim = installed::shim().ok_or(run::NO_SHIM)?;
    let store = InitStore::of_user()?;
    let links = store.links();
    let Some(shown_links) = links.to_str() else {
        let problem = format!("the folder {} has a name that is not UTF-8", links.display());
        return Err(Notice::failed(problem, "settings files cannot name it; set XDG_DATA_HOME"));
    };
    let mut record = store.record()?;
    if call.agents.is_empty() {
        call.agents = permanent::installed();
        if call.agents.is_empty() && record.files.is_empty() {
            return Err(Notice::failed("no agent that rexec knows is on PATH", "name one, as in rexec init claude"));
        }
    }
    let (mut changes, mut is_left) = (Vec::new(), false);
    for agent in &call.agents {
        match agent.permanent(&store.home, shown_links) {
            Some(setting) => match plan_settings(&setting, &record, call.force)? {
                Some(change) => changes.push(change),
                None => is_left = true,
            },
            None if agent.works() => {
                let (name, program) = (agent.name(), agent.program());
                tell(format!("{name} has no setting for its shell; start it by rexec run {program}"));
            }
            None => tell(format!("{} cannot be seen: rexec help agents says why", agent.name())),
        }
    }
    changes.retain(PlannedChange::is_needed);
    let code = if is_left { exit_code::FAILURE } else { exit_code::SUCCESS };
    if changes.is_empty() {
        // The programs may have moved.
        if !record.files.is_empty() && !run::links::faults(&links, &shim).is_empty() {
            store.keep(&mut record, &shim)?;
            say(&format!("the links in {shown_links} lead to this rexec now\n"))?;
        } else if !is_left {
            say("nothing to do\n")?;
        }
        return Ok(code);
    }
    plan::show(&changes)?;
    if !call.is_sure && !plan::is_wanted(changes.len(), "rexec init")? {
        return say("nothing was changed\n").map(|_| exit_code::FAILURE);
    }
    make(&store, &mut record, &changes, &shim)?;
    say(
        "done; rexec uninit takes it back\nWhile no host runs, the commands of these agents fail: start rexec-host first.\n",
    )?;
    Ok(code)
}

/// Makes the changes. The record is written first, so that every change can be taken back.
fn make(store: &InitStore, record: &mut InitRecord, changes: &[PlannedChange], shim: &Path) -> Result<(), Notice> {
    for change in changes {
        let (new, mut before) = (&change.changed, record.clone());
        record.files.retain(|old| (&old.agent, &old.path) != (&new.agent, &new.path));
        record.files.push(new.clone());
        store.keep(record, shim)?;
        let made = match change.make() {
            Ok(made) => made,
            Err(notice) => {
                // Nothing of it is there.
                before.directories.clone_from(&record.directories);
                let are_named = !back::naming_links(store, &[]).is_empty();
                store.give_up(&before, if are_named { Links::Named } else { Links::Unnamed })?;
                return Err(notice);
            }
        };
        if let Some(file) = record.files.last_mut().filter(|_| !made.is_empty()) {
            file.directories = made.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        }
    }
    store.keep(record, shim)
}

/// Plans the change of an agent's file. `None` if the file names another shell, after a message.
fn plan_settings(wanted: &PermanentSetting, record: &InitRecord, force: bool) -> Result<Option<PlannedChange>, Notice> {
    let file = SettingsFile::open(wanted.path.clone())?;
    let wrong = |error: SettingsError| refused(wanted, &error);
    wanted.remarks.iter().for_each(tell);
    let mut text = file.text.clone().unwrap_or_default();
    let mut changed = known(record, wanted.agent, &wanted.path).unwrap_or_else(|| ChangedFile {
        agent: wanted.agent.to_owned(),
        path: wanted.path.to_string_lossy().into_owned(),
        format: wanted.format,
        is_new: file.text.is_none(),
        directories: Vec::new(),
        edits: Vec::new(),
    });
    // Edits of an earlier init, when the links were elsewhere.
    while let Some(at) =
        changed.edits.iter().rposition(|(old, _)| !wanted.settings.iter().any(|new| old.as_ref() == Some(new)))
    {
        if let (Some(setting), edit) = changed.edits.remove(at) {
            text = settings::undo(wanted.format, &text, &setting, &edit).map_err(wrong)?.unwrap_or(text);
        }
    }
    let mut is_taken = false;
    for setting in &wanted.settings {
        match settings::set(wanted.format, &text, setting, force).map_err(wrong)? {
            SettingChange::Same => {}
            SettingChange::Taken(was) if is_working_link(&was) => {}
            SettingChange::Taken(was) => {
                is_taken = true;
                let (path, key) = (wanted.path.display(), setting.keys.join("."));
                let was = super::quoted(was);
                tell(format!("{}: {path} has {was} for {key}; --force replaces it", wanted.agent));
            }
            SettingChange::Edit(edit) => {
                text = settings::applied(&text, &edit.splices).expect("the splices are of this text");
                changed.edits.retain(|(old, _)| old.as_ref() != Some(setting));
                changed.edits.push((Some(setting.clone()), edit));
            }
        }
    }
    let after = if text.is_empty() && file.text.is_none() { None } else { Some(text) };
    Ok((!is_taken).then_some(PlannedChange { file, after, changed }))
}

/// Returns true if a written value names an existing link to rexec's shell. The user has then set it by hand.
fn is_working_link(written: &str) -> bool {
    let path = written.trim_matches(['"', '\'']);
    let is_env = path.ends_with("/rexec-env.sh");
    (is_env || names_shim(path.as_bytes())) && Path::new(path).exists()
}

fn known(record: &InitRecord, agent: &str, path: &Path) -> Option<ChangedFile> {
    record.files.iter().find(|file| file.agent == agent && Path::new(&file.path) == path).cloned()
}

/// Prints the lines that a person must put into a file that rexec cannot edit.
fn refused(wanted: &PermanentSetting, error: &SettingsError) -> Notice {
    // Without a standard output the notice says the rest.
    let _ = say(&settings::lines(wanted.format, &wanted.settings));
    let problem = format_args!("{}, {error}", wanted.path.display());
    Notice::failed(problem, "nothing was changed; put the lines above into it by hand, or start the agent by rexec run")
}
