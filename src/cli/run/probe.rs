//! The installed agents, and the shell that each would start, for `rexec doctor`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::process::Pid;

use super::launch::{self, Situation};
use super::preload::Preload;
use super::recipes::{RECIPES, Recipe, RecipeStep};
use crate::cli::installed;
use crate::sys::{file, process};

/// An installed agent with its recipe applied.
#[derive(Debug)]
pub(in crate::cli) struct InstalledAgent {
    /// Its name on the console.
    pub(in crate::cli) name: &'static str,
    pub(in crate::cli) program: PathBuf,
    pub(in crate::cli) seen: &'static str,
    pub(in crate::cli) unseen: &'static str,
    /// True if anything of it can be seen.
    pub(in crate::cli) works: bool,
    /// Facts that hide its commands here.
    pub(in crate::cli) faults: Vec<String>,
    /// The shell that it starts for a command.
    pub(in crate::cli) shell: PathBuf,
    /// The means that make it start that shell, and make that shell hand its command to the shim.
    pub(in crate::cli) by: &'static str,
    /// The variables that its recipe sets.
    pub(in crate::cli) set: Vec<(String, OsString)>,
}

/// The agents on PATH, with recipes that use these links.
pub(in crate::cli) fn agents(links: &Path) -> Vec<InstalledAgent> {
    RECIPES.iter().filter_map(|recipe| agent(recipe, links)).collect()
}

fn agent(recipe: &'static Recipe, links: &Path) -> Option<InstalledAgent> {
    let program = recipe.programs.iter().find_map(|program| super::on_path(OsStr::new(program)))?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let (login_shell, has_zsh) = (process::login_shell(), super::on_path(OsStr::new("zsh")).is_some());
    let preload = recipe.has_preload().then(|| Preload::of(&program, installed::preload(), super::on_path));
    let preload = preload.transpose();
    let user = Situation {
        variable: &variable,
        login_shell: login_shell.as_deref(),
        has_zsh,
        links,
        program: OsStr::new(recipe.programs[0]),
        preload: preload.as_ref().ok().and_then(Option::as_ref),
        pid: Pid::new(0),
    };
    let (set, mut faults) = match launch::launch(recipe, None, &user) {
        Ok(start) => (start.set, start.remarks),
        Err(_) => (Vec::new(), vec!["OPENCODE_CONFIG_CONTENT is not a JSON object".to_owned()]),
    };
    let not_loaded = preload.as_ref().err().filter(|_| !recipe.is_whole_without_preload());
    faults.extend(not_loaded.map(|why| format!("{}, so some of its commands may go unseen", why.why())));
    let has_zsh_account = recipe.steps.contains(&RecipeStep::ZshFolder) && user.has_account_with("zsh");
    let value = |name: &str| set.iter().find(|(set, _)| set == name).map(|(_, value)| PathBuf::from(value));
    let first = recipe.steps_for(user.preload.is_some()).first().and_then(|step| match step {
        RecipeStep::ClaudeShell => Some((value("CLAUDE_CODE_SHELL")?, "CLAUDE_CODE_SHELL")),
        RecipeStep::Shell => Some((value("SHELL")?, "SHELL")),
        RecipeStep::Path => Some((first_bash(value("PATH")?.as_os_str())?, "PATH")),
        RecipeStep::OpencodeShell => Some((links.join(launch::users_link(&user)), "its setting `shell`")),
        RecipeStep::Python => Some((links.join("sh"), "its environment class")),
        RecipeStep::BashEnv if has_zsh_account => {
            Some((user.login_shell?.to_owned(), "your account, and ZDOTDIR hands its commands on"))
        }
        RecipeStep::Preload => Some((links.join("rexec-bash"), "the preload, in the place of its own choice")),
        RecipeStep::BashEnv | RecipeStep::ZshFolder | RecipeStep::Level | RecipeStep::Instead(_) | RecipeStep::Name => {
            Some((PathBuf::from("/bin/bash"), "its own choice, and BASH_ENV hands its commands on"))
        }
    });
    let (shell, by) = first.unwrap_or_default();
    let (name, seen, unseen, works) = (recipe.agent, recipe.seen, recipe.unseen, recipe.works());
    Some(InstalledAgent { name, program, seen, unseen, works, faults, shell, by, set })
}

fn first_bash(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join("bash")).find(|path| file::is_executable(path))
}
