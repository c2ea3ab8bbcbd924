//! The first rules of a person who has none: packs that only watch, in a new config.toml.
//!
//! Invariants: a file that is there is never changed; `rexec uninit` takes away one that is as it was written, and no other.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use super::INIT;
use super::file::SettingsFile;
use super::plan::PlannedChange;
use crate::cli::config_file::{ConfigFile, own_path};
use crate::cli::gate::preview;
use crate::cli::told::{is_yes, tell};
use crate::cli::{accepted, say};
use crate::front::init_record::ChangedFile;
use crate::gate::{Value, load, packs};
use crate::text::settings::SettingsFormat;

/// The packs that are offered.
const OFFERED: [&str; 3] = ["git", "files", "database"];

/// The value of `--packs`, without names for `none`.
pub(super) fn packs_of(given: &str) -> Result<Vec<&'static str>, Notice> {
    if given == "none" {
        return Ok(Vec::new());
    }
    let pack = |name: &str| {
        let known = packs::NAMES.iter().copied().find(|known| *known == name);
        known.ok_or_else(|| INIT.none_of("--packs", name, &packs::NAMES))
    };
    given.split(',').map(pack).collect()
}

/// Writes rules with these packs, or asks about it at a terminal.
pub(super) fn offer(wanted: Option<&[&str]>) -> Result<(), Notice> {
    let has_terminal = [io::stdin().is_terminal(), io::stdout().is_terminal()] == [true; 2];
    let (packs, is_sure) = match wanted {
        Some([]) => return Ok(()),
        Some(packs) => (packs, true),
        None if has_terminal => (&OFFERED[..], false),
        None => return Ok(()),
    };
    let Some(path) = own_path() else {
        let hint = "set HOME or XDG_CONFIG_HOME to an absolute path";
        return Err(Notice::failed("there is no place for config.toml", hint));
    };
    if let Some(own) = ConfigFile::own()? {
        return tell_lines(&own, packs, is_sure);
    }
    let file = SettingsFile::open(path.clone())?;
    let text = text_with(packs);
    if !is_sure && !is_wanted(&path, packs, &text)? {
        return say("no rules were written; rexec init --packs LIST does it later\n").map(|_| ());
    }
    file.replace(Some(&text))?;
    accepted::follow(&path, None, Some(text.as_bytes()))?;
    say(&format!(
        "{} has the packs {}; rexec uninit takes it away\nThe host watches by them: rexec help gate.\n",
        path.display(),
        packs.join(", ")
    ))
    .map(|_| ())
}

/// Says what to add to a file that has no rules. One that has some is left alone, unless rules were wanted.
fn tell_lines(own: &ConfigFile, packs: &[&str], is_wanted: bool) -> Result<(), Notice> {
    let has_rules = !own.loaded.document.pairs("gate").is_empty() || !own.loaded.gate.rules.is_empty();
    if has_rules && !is_wanted {
        return Ok(());
    }
    let shown = own.path.display();
    if has_rules {
        tell(format_args!("{shown} has rules, and stays as it is; its table [gate] may have this line:"));
        return say(&format!("{}\n", packs_line(packs))).map(|_| ());
    }
    tell(format_args!("{shown} stays as it is; these lines in it let rules watch what agents run:"));
    say(&lines_with(packs)).map(|_| ())
}

/// Shows what the packs would have asked about, and asks.
fn is_wanted(path: &Path, packs: &[&str], text: &str) -> Result<bool, Notice> {
    let gate = load(text.as_bytes(), "config.toml").map_err(|error| Notice::failed(&error, &error.hint))?.gate;
    say(&format!(
        "\nRules can tell you of commands that destroy things. The packs {}\n\
        only watch: the console marks a command that they would ask about, and it runs.\n{}",
        packs.join(", "),
        preview(gate)?
    ))?;
    Ok(is_yes(format_args!("Write {} with them? [y/N] ", path.display())))
}

/// Plans to take away the file, if it is as it was written.
pub(super) fn plan_back() -> Option<PlannedChange> {
    let path = own_path().filter(|path| path.symlink_metadata().is_ok_and(|data| data.is_file()))?;
    let file = SettingsFile::open(path.clone()).ok()?;
    let is_as_written = file.text.as_deref().is_some_and(is_as_written);
    is_as_written.then(|| PlannedChange { file, after: None, changed: changed(&path) })
}

/// The rules are gone, if this change has taken them away.
pub(super) fn follow(change: &PlannedChange) -> Result<(), Notice> {
    let is_own = own_path().is_some_and(|path| path == change.file.path);
    let before = change.file.text.as_deref().map(str::as_bytes);
    if is_own { accepted::follow(&change.file.path, before, None) } else { Ok(()) }
}

/// The entry of a record, which names the directory that goes with the file if nothing else is in it.
fn changed(path: &Path) -> ChangedFile {
    ChangedFile {
        agent: String::new(),
        path: path.to_string_lossy().into_owned(),
        format: SettingsFormat::Toml,
        is_new: true,
        directories: path.parent().map(PathBuf::from).iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        edits: Vec::new(),
    }
}

fn is_as_written(text: &str) -> bool {
    let Ok(loaded) = load(text.as_bytes(), "config.toml") else { return false };
    let pairs = loaded.document.pairs("gate");
    let Some(Value::List(named)) = pairs.iter().find(|pair| pair.key == "packs").map(|pair| &pair.value) else {
        return false;
    };
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    text == text_with(&named)
}

fn text_with(packs: &[&str]) -> String {
    format!(
        "# Rules for the commands of your agents, written by rexec init. They only watch: the\n\
        # console marks a command that they would ask about, and it runs. With the mode\n\
        # \"enforce\" it waits for your yes. rexec help gate says more.\n\n{}",
        lines_with(packs)
    )
}

fn lines_with(packs: &[&str]) -> String {
    format!("[gate]\nmode = \"watch\"\n{}\n", packs_line(packs))
}

fn packs_line(packs: &[&str]) -> String {
    format!("packs = {packs:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_as_long_as_it_is_as_written() {
        for packs in [&OFFERED[..], &["cloud"]] {
            let text = text_with(packs);
            assert!(is_as_written(&text), "{text}");
            for other in [text.replace("watch\"", "enforce\""), text.clone() + "\n", text.replace("# ", "#")] {
                assert!(!is_as_written(&other), "{other}");
            }
        }
        assert!(!is_as_written(""));
    }

    #[test]
    fn packs_are_named_between_commas() {
        let packs = |given| packs_of(given).map_err(|notice| notice.problem);
        assert_eq!(packs("none").unwrap(), [] as [&str; 0]);
        assert_eq!(packs("git,cloud").unwrap(), ["git", "cloud"]);
        assert!(packs("git,none").unwrap_err().contains("none"));
        assert!(packs("").is_err());
    }
}
