//! The settings by which an agent finds rexec's shell without `rexec run`: the file, the keys, and the values.
//!
//! Invariant: this names a settings file only if the agent takes its shell from it in every folder. Other agents have
//! no such file, and `rexec run` starts them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::process::Pid;

use super::launch::{self, Situation};
use super::links::ZSH_FOLDER;
use super::recipes::{RECIPES, Recipe};
use crate::sys::process;
use crate::text::settings::{Setting, SettingValue, SettingsFormat};

/// The variable with the user's own `ZDOTDIR`.
const OWN_ZDOTDIR: &str = concat!("REXEC_OWN_", "ZDOTDIR");

/// The file of an agent, and its settings.
#[derive(Debug)]
pub(in crate::cli) struct PermanentSetting {
    /// The agent's name on the console.
    pub(in crate::cli) agent: &'static str,
    pub(in crate::cli) path: PathBuf,
    pub(in crate::cli) format: SettingsFormat,
    pub(in crate::cli) settings: Vec<Setting>,
    /// Facts that keep it from working here.
    pub(in crate::cli) remarks: Vec<String>,
}

/// An agent that `rexec init` may be asked for.
#[derive(Debug)]
pub(in crate::cli) struct KnownAgent {
    recipe: &'static Recipe,
}

/// The agents on PATH.
pub(in crate::cli) fn installed() -> Vec<KnownAgent> {
    let is_there = |recipe: &&Recipe| recipe.programs.iter().any(|name| super::on_path(OsStr::new(name)).is_some());
    RECIPES.iter().filter(is_there).map(|recipe| KnownAgent { recipe }).collect()
}

/// The agent of this program or name.
pub(in crate::cli) fn named(word: &str) -> Option<KnownAgent> {
    let is_it = |recipe: &&Recipe| recipe.programs.contains(&word) || recipe.agent.eq_ignore_ascii_case(word);
    RECIPES.iter().find(is_it).map(|recipe| KnownAgent { recipe })
}

impl KnownAgent {
    pub(in crate::cli) fn name(&self) -> &'static str {
        self.recipe.agent
    }

    /// The program as one types it.
    pub(in crate::cli) fn program(&self) -> &'static str {
        self.recipe.programs[0]
    }

    /// Returns true if `rexec run` can start it.
    pub(in crate::cli) fn works(&self) -> bool {
        self.recipe.works()
    }

    /// Its settings file, if it has one. `links` is the folder of the permanent links.
    pub(in crate::cli) fn permanent(&self, home: &Path, links: &str) -> Option<PermanentSetting> {
        use SettingsFormat::{Json, JsonWithComments, Toml, Yaml};
        let link = |name: &str| SettingValue::Text(format!("{links}/{name}"));
        let (path, format, settings) = match self.recipe.agent {
            "Claude Code" => {
                let link = with_situation(|user| link(launch::claudes_link(user)));
                let keys: &[&str] = &["env", "CLAUDE_CODE_SHELL"];
                (folder("CLAUDE_CONFIG_DIR", home, ".claude").join("settings.json"), Json, vec![(keys, link)])
            }
            "Codex" => {
                // With its snapshot, the shell in its sandbox is no login shell. If SHLVL is not set, that shell reads
                // no BASH_ENV.
                let mut settings: Vec<(&[&str], _)> = vec![
                    (&["features", "shell_snapshot"], SettingValue::False),
                    (&["shell_environment_policy", "set", "BASH_ENV"], link("rexec-env.sh")),
                ];
                if with_situation(|user| user.has_account_with("zsh")) {
                    settings.push((&["shell_environment_policy", "set", "ZDOTDIR"], link(ZSH_FOLDER)));
                    let own = with_situation(|user| user.own("ZDOTDIR")).and_then(|path| path.into_string().ok());
                    let own = own.map(SettingValue::Text);
                    settings.extend(own.map(|own| (&["shell_environment_policy", "set", OWN_ZDOTDIR][..], own)));
                }
                (folder("CODEX_HOME", home, ".codex").join("config.toml"), Toml, settings)
            }
            "opencode" | "Kilo Code" => {
                // The first existing one of these counts most.
                let (name, names): (_, &[&str]) = match self.recipe.agent {
                    "opencode" => ("opencode", &["opencode.jsonc", "opencode.json", "config.json"]),
                    // It is made from opencode, and reads its files too.
                    _ => ("kilo", &["opencode.jsonc", "opencode.json", "kilo.jsonc", "kilo.json", "config.json"]),
                };
                let link = with_situation(|user| link(launch::users_link(user)));
                let keys: &[&str] = &["shell"];
                let folder = folder("XDG_CONFIG_HOME", home, ".config").join(name);
                let path = names.iter().map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok());
                let usual = || folder.join(format!("{name}.json"));
                (path.unwrap_or_else(usual), JsonWithComments, vec![(keys, link)])
            }
            "pi" => {
                let keys: &[&str] = &["shellPath"];
                let folder = folder("PI_CODING_AGENT_DIR", home, ".pi/agent");
                (folder.join("settings.json"), Json, vec![(keys, link("rexec-bash"))])
            }
            "Aider" => {
                let shell = format!("SHELL={links}/{}", with_situation(launch::users_link));
                let keys: &[&str] = &["set-env"];
                (home.join(".aider.conf.yml"), Yaml, vec![(keys, SettingValue::Text(shell))])
            }
            _ => return None,
        };
        let settings = settings
            .into_iter()
            .map(|(keys, value)| Setting { keys: keys.iter().map(|key| (*key).to_owned()).collect(), value });
        Some(PermanentSetting {
            agent: self.recipe.agent,
            path,
            format,
            settings: settings.collect(),
            remarks: self.remarks(),
        })
    }

    /// Facts that hide the agent's commands, with and without `rexec run`.
    fn remarks(&self) -> Vec<String> {
        with_situation(|user| launch::launch(self.recipe, None, user).map(|start| start.remarks).unwrap_or_default())
    }
}

/// The settings files of all agents, whether they exist or not.
pub(in crate::cli) fn files(home: &Path, links: &str) -> Vec<PathBuf> {
    let known = RECIPES.iter().map(|recipe| KnownAgent { recipe });
    known.filter_map(|agent| agent.permanent(home, links)).map(|setting| setting.path).collect()
}

/// The names that complete `rexec init`.
pub(in crate::cli) const PROGRAMS: [&str; 6] = ["claude", "codex", "opencode", "pi", "aider", "kilo"];

/// The folder that a variable names, or this one in the home folder.
fn folder(variable: &str, home: &Path, usual: &str) -> PathBuf {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    set.unwrap_or_else(|| home.join(usual))
}

/// Runs `work` with the user's situation. The links' folder and the agent's process do not count here.
fn with_situation<T>(work: impl FnOnce(&Situation<'_>) -> T) -> T {
    let variable = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let login_shell = process::login_shell();
    work(&Situation {
        variable: &variable,
        login_shell: login_shell.as_deref(),
        has_zsh: super::on_path(OsStr::new("zsh")).is_some(),
        links: Path::new(""),
        program: OsStr::new(""),
        preload: None,
        pid: Pid::new(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_completed_names_are_those_with_a_file_of_settings() {
        let all = RECIPES.iter().map(|recipe| KnownAgent { recipe });
        let with_file = all.filter(|agent| agent.permanent(Path::new("/srv/x"), "/l").is_some());
        assert!(with_file.map(|agent| agent.program()).eq(PROGRAMS));
    }
}
