//! Applies a recipe to one call: makes the agent's arguments and its environment. Pure: the caller passes the facts of
//! the user's environment and account.
//!
//! Invariants: variables that no step of the recipe names pass unchanged; a shell that the user has chosen stays that
//! kind of shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rexec_sh::protocol::invocation::Shell;
use rexec_sh::protocol::process::Pid;
use rexec_sh::protocol::run_changes::{
    BASH_ONLY, OWN, PRELOAD, PRELOAD_LINKS, PRELOAD_PACKAGE, PRELOAD_PROGRAM, RunChanges, SET,
};

use super::links::ZSH_FOLDER;
use super::preload::Preload;
use super::recipes::{Recipe, RecipeStep};
use crate::front::opencode;

/// The variable by which a caller names itself.
const WHOAMI: &str = "REXEC_WHOAMI";
/// The variable with the agent's name and the number of its process.
const AGENT: &str = "REXEC_RUN_AGENT";
/// Variables whose changes other rules hide from a command: a folder goes out of `PATH`, the real shell's path takes
/// the place of `SHELL`, and the environment class cleans `PYTHONPATH`.
const BY_RULE: [&str; 4] = ["PATH", "SHELL", "PYTHONPATH", WHOAMI];

/// The user's environment and account.
#[derive(Clone, Copy)]
pub(super) struct Situation<'a> {
    /// Reads a variable of the environment. An empty one counts as unset.
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The login shell of the account, if it is known.
    pub(super) login_shell: Option<&'a Path>,
    /// True if zsh is on PATH.
    pub(super) has_zsh: bool,
    pub(super) links: &'a Path,
    pub(super) program: &'a OsStr,
    /// The way to load the preload into it, if its recipe wants that.
    pub(super) preload: Option<&'a Preload>,
    /// The number that the agent's process will have.
    pub(super) pid: Pid,
}

/// The start of an agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AgentStart {
    pub(super) set: Vec<(String, OsString)>,
    /// The agent's name.
    pub(super) name: OsString,
    /// One sentence each, for the user.
    pub(super) remarks: Vec<String>,
}

/// The agent cannot be started this way because of the user's settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadSettings;

/// The changes of this recipe. `name` is the user's name for the agent.
pub(super) fn launch(recipe: &Recipe, name: Option<&OsStr>, user: &Situation<'_>) -> Result<AgentStart, BadSettings> {
    let mut launch = AgentStart::default();
    for step in recipe.steps_for(user.preload.is_some()) {
        launch.add(step, recipe, user)?;
    }
    if let Some(name) = name {
        launch.set.retain(|(variable, _)| variable != WHOAMI);
        launch.put(WHOAMI, name.to_owned());
    }
    launch.tell_shim(user);
    let mut started = OsString::from(format!("{}:", user.pid));
    started.push(user.name_of(recipe));
    launch.put(AGENT, started);
    launch.name = name.unwrap_or_else(|| user.name_of(recipe)).to_owned();
    if recipe.agent == "Codex" {
        launch.remarks.extend(codex_ignores(user));
    }
    Ok(launch)
}

impl AgentStart {
    fn add(&mut self, step: RecipeStep, recipe: &Recipe, user: &Situation<'_>) -> Result<(), BadSettings> {
        let link = |name: &str| user.links.join(name).into_os_string();
        let get = user.variable;
        match step {
            RecipeStep::ClaudeShell => self.put("CLAUDE_CODE_SHELL", link(claudes_link(user))),
            RecipeStep::Shell => self.put("SHELL", link(users_link(user))),
            RecipeStep::Path => self.put("PATH", in_front(link(BASH_ONLY), get("PATH"))),
            RecipeStep::BashEnv => self.put("BASH_ENV", link("rexec-env.sh")),
            RecipeStep::ZshFolder if user.has_account_with("zsh") => self.put("ZDOTDIR", link(ZSH_FOLDER)),
            RecipeStep::ZshFolder => {}
            RecipeStep::Level => {
                let level = get("SHLVL").and_then(|level| level.to_str()?.parse::<u32>().ok());
                if level.unwrap_or(0) == 0 {
                    self.put("SHLVL", "1".into());
                }
            }
            RecipeStep::OpencodeShell => {
                const SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";
                let own = user.own(SETTINGS).unwrap_or_default();
                let shell = link(users_link(user));
                let settings = opencode::with_shell(&own.to_string_lossy(), &shell.to_string_lossy());
                self.put(SETTINGS, settings.ok_or(BadSettings)?.into());
            }
            RecipeStep::Python => self.put("PYTHONPATH", in_front(link("python"), get("PYTHONPATH"))),
            RecipeStep::Preload => user.preload.into_iter().for_each(|preload| {
                self.put("LD_PRELOAD", in_front(preload.library.clone().into(), user.own("LD_PRELOAD")));
                self.put(PRELOAD_LINKS, user.links.into());
                self.put(PRELOAD_PROGRAM, preload.program.clone().into());
                self.put(PRELOAD_PACKAGE, preload.package.clone().unwrap_or_default().into());
            }),
            RecipeStep::Instead(_) => {}
            RecipeStep::Name if get(WHOAMI).is_none() => self.put(WHOAMI, user.name_of(recipe).to_owned()),
            RecipeStep::Name => {}
        }
        Ok(())
    }

    fn put(&mut self, variable: &str, value: OsString) {
        self.set.push((variable.to_owned(), value));
    }

    /// Adds the facts that the shim needs to undo the changes for a command: the names, and the user's own values.
    fn tell_shim(&mut self, user: &Situation<'_>) {
        if self.set.iter().any(|(name, _)| name == "SHELL") {
            // A command gets it back by a rule, and the shim reads the shell's path there.
            let earlier = (user.variable)(&format!("{OWN}SHELL"));
            let own = earlier.or_else(|| user.own("SHELL"));
            own.into_iter().for_each(|own| self.put(&format!("{OWN}SHELL"), own));
        }
        let has_shell = self.set.iter().any(|(name, _)| name.strip_prefix(OWN) == Some("SHELL"));
        // If the user has none, a command gets none.
        let has_rule = |name: &str| BY_RULE.contains(&name) && (name != "SHELL" || has_shell);
        let is_told = |name: &&str| !has_rule(name) && !name.starts_with(OWN) && !PRELOAD.contains(name);
        let names: Vec<String> =
            self.set.iter().map(|(name, _)| name.as_str()).filter(is_told).map(str::to_owned).collect();
        if names.is_empty() {
            return;
        }
        for name in &names {
            if let Some(own) = user.own(name) {
                self.put(&format!("{OWN}{name}"), own);
            }
        }
        let earlier = (user.variable)(SET).and_then(|names| names.into_string().ok()).unwrap_or_default();
        let earlier = earlier.split(':').filter(|name| !name.is_empty() && !names.iter().any(|new| new == name));
        let all: Vec<&str> = names.iter().map(String::as_str).chain(earlier).collect();
        self.put(SET, all.join(":").into());
    }
}

impl Situation<'_> {
    /// The user's own value of a variable, also inside an agent that `rexec run` has started.
    pub(super) fn own(&self, name: &str) -> Option<OsString> {
        let changed = (self.variable)(SET).unwrap_or_default();
        match RunChanges(changed.as_bytes()).names(name.as_bytes()) {
            true => (self.variable)(&format!("{OWN}{name}")),
            false => (self.variable)(name),
        }
    }

    /// The agent's name: that of its recipe, or the program's if the recipe is for any.
    fn name_of(&self, recipe: &Recipe) -> &OsStr {
        let is_known = recipe.programs.iter().any(|program| *program == self.program);
        if is_known { OsStr::new(recipe.agent) } else { self.program }
    }

    /// Returns true if the login shell has this file name.
    pub(super) fn has_account_with(&self, shell: &str) -> bool {
        self.login_shell.and_then(Path::file_name).is_some_and(|name| name == shell)
    }
}

/// A list like `PATH` with one more entry at its front.
fn in_front(first: OsString, rest: Option<OsString>) -> OsString {
    let mut list = first;
    if let Some(rest) = rest {
        list.push(":");
        list.push(rest);
    }
    list
}

/// The link for the user's own shell. bash stands for a shell that rexec does not know, because most agents would take it.
pub(super) fn users_link(user: &Situation<'_>) -> &'static str {
    let shell = user.own("SHELL").and_then(|shell| Shell::named(shell.as_bytes()));
    match shell {
        Some(Shell::Zsh) => "rexec-zsh",
        Some(Shell::Sh) => "rexec-sh",
        Some(Shell::Dash) => "rexec-dash",
        Some(Shell::Ksh) => "rexec-ksh",
        Some(Shell::Mksh) => "rexec-mksh",
        Some(Shell::Fish) => "rexec-fish",
        Some(Shell::Bash | Shell::Busybox) | None => "rexec-bash",
    }
}

/// The link for the shell that Claude Code would choose: the first of its own variable and `SHELL` whose path contains
/// bash or zsh, else the first of zsh and bash that is on PATH.
pub(super) fn claudes_link(user: &Situation<'_>) -> &'static str {
    let kind = |variable: &str| {
        let path = user.own(variable)?;
        let path = path.to_string_lossy().into_owned();
        ["zsh", "bash"].into_iter().find(|kind| path.contains(kind))
    };
    match kind("CLAUDE_CODE_SHELL").or_else(|| kind("SHELL")) {
        Some("zsh") => "rexec-zsh",
        None if user.has_zsh => "rexec-zsh",
        _ => "rexec-bash",
    }
}

/// Codex starts the login shell of the account if it is bash, zsh or sh, and bash otherwise. A sh reads no file for a
/// command string.
fn codex_ignores(user: &Situation<'_>) -> Option<String> {
    let shell = user.login_shell.filter(|_| user.has_account_with("sh"))?.display();
    let could = "it could if that were bash or zsh";
    Some(format!("Codex runs commands in {shell}, your login shell, so rexec cannot see them; {could}"))
}

#[cfg(test)]
mod tests {
    use super::super::recipes::{ANY, RECIPES, UNKNOWN, named};
    use super::*;

    /// How a recipe starts its agent for a user with this login shell and these variables.
    fn started(recipe: &Recipe, name: Option<&str>, login_shell: &str, env: &[(&str, &str)]) -> AgentStart {
        let variable = |wanted: &str| env.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).into());
        let user = Situation {
            variable: &variable,
            login_shell: Some(Path::new(login_shell)),
            has_zsh: false,
            links: Path::new("/run/x/shells"),
            program: OsStr::new(recipe.programs[0]),
            preload: None,
            pid: Pid::new(7),
        };
        launch(recipe, name.map(OsStr::new), &user).unwrap()
    }

    /// The changes of a recipe for a user with these variables, whose login shell is bash.
    fn changes(recipe: &Recipe, name: Option<&str>, env: &[(&str, &str)]) -> Vec<String> {
        let mut launch = started(recipe, name, "/bin/bash", env);
        let (variable, started) = launch.set.pop().unwrap();
        assert!(variable == AGENT && started.to_str().unwrap().starts_with("7:"));
        launch.set.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect()
    }

    fn of(program: &str, env: &[(&str, &str)]) -> Vec<String> {
        changes(named(program.as_bytes()).unwrap(), None, env)
    }

    #[test]
    fn each_agent_gets_what_it_needs_and_no_more() {
        let env = [("PATH", "/bin"), ("SHELL", "/usr/bin/bash"), ("SHLVL", "2")];
        let set = |names: &str| format!("REXEC_RUN_SET={names}");
        assert_eq!(of("claude", &env), ["CLAUDE_CODE_SHELL=/run/x/shells/rexec-bash", &set("CLAUDE_CODE_SHELL")]);
        assert_eq!(of("codex", &env), ["BASH_ENV=/run/x/shells/rexec-env.sh", &set("BASH_ENV")]);
        assert_eq!(of("gemini", &env), ["PATH=/run/x/shells/bash-only:/bin"]);
        assert_eq!(of("qwen", &env), of("gemini", &env));
        let settings = r#"OPENCODE_CONFIG_CONTENT={"shell":"/run/x/shells/rexec-bash"}"#;
        assert_eq!(of("opencode", &env), [settings, &set("OPENCODE_CONFIG_CONTENT")]);
        assert_eq!((of("pi", &env), of("copilot", &env)), (of("codex", &env), of("codex", &env)));
        assert_eq!(of("cline", &env), of("codex", &env));
        assert_eq!(
            of("cn", &env),
            ["SHELL=/run/x/shells/rexec-bash", "REXEC_WHOAMI=Continue", "REXEC_OWN_SHELL=/usr/bin/bash"]
        );
        assert_eq!(of("mini", &env), ["PYTHONPATH=/run/x/shells/python", "REXEC_WHOAMI=mini-swe-agent"]);
        assert_eq!(of("aider", &env)[..2], ["SHELL=/run/x/shells/rexec-bash", "REXEC_WHOAMI=Aider"]);
        assert_eq!(RECIPES.iter().filter(|recipe| !recipe.works()).count(), 1);
    }

    #[test]
    fn an_agent_that_rexec_does_not_know_gets_the_preload_and_its_own_name() {
        let variable = |name: &str| (name == "LD_PRELOAD").then(|| "/mine.so".into());
        let preload = Preload { library: "/l/p.so".into(), program: "/bin/node".into(), package: None };
        let links = Path::new("/run/x/shells");
        let program = OsStr::new("kilo");
        let user = Situation {
            variable: &variable,
            login_shell: None,
            has_zsh: false,
            links,
            program,
            preload: Some(&preload),
            pid: Pid::new(7),
        };
        let set = launch(&ANY, None, &user).unwrap().set;
        let set: Vec<String> = set.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
        assert_eq!(
            set,
            [
                "LD_PRELOAD=/l/p.so:/mine.so",
                "REXEC_PRELOAD_LINKS=/run/x/shells",
                "REXEC_PRELOAD_PROGRAM=/bin/node",
                "REXEC_PRELOAD_PACKAGE=",
                "REXEC_WHOAMI=kilo",
                "REXEC_OWN_LD_PRELOAD=/mine.so",
                "REXEC_RUN_SET=LD_PRELOAD",
                "REXEC_RUN_AGENT=7:kilo",
            ]
        );
        let without = launch(&ANY, None, &Situation { preload: None, ..user }).unwrap().set;
        let has = |name: &str, value: &str| without.contains(&(name.to_owned(), value.into()));
        assert!(has(WHOAMI, "kilo") && has("BASH_ENV", "/run/x/shells/rexec-env.sh"), "{without:?}");
    }

    #[test]
    fn the_users_own_settings_count() {
        let zsh = [("SHELL", "/bin/zsh")];
        assert_eq!(of("claude", &zsh)[0], "CLAUDE_CODE_SHELL=/run/x/shells/rexec-zsh");
        let other = [("SHELL", "/bin/zsh"), ("CLAUDE_CODE_SHELL", "/bin/bash")];
        assert_eq!(
            of("claude", &other)[..2],
            ["CLAUDE_CODE_SHELL=/run/x/shells/rexec-bash", "REXEC_OWN_CLAUDE_CODE_SHELL=/bin/bash"]
        );
        assert_eq!(of("cn", &zsh)[0], "SHELL=/run/x/shells/rexec-zsh");
        assert_eq!(of("cn", &[("SHELL", "/usr/bin/fish")])[0], "SHELL=/run/x/shells/rexec-fish");
        assert_eq!(of("cn", &[("SHELL", "/usr/bin/nu")])[0], "SHELL=/run/x/shells/rexec-bash");
        let inside = [("SHELL", "/run/y/shells/rexec-fish"), ("REXEC_OWN_SHELL", "/usr/bin/fish")];
        assert_eq!(of("cn", &inside)[2], "REXEC_OWN_SHELL=/usr/bin/fish");
        assert_eq!(of("cn", &[])[2..], ["REXEC_RUN_SET=SHELL"], "no SHELL");
        let sh = [("SHELL", "/bin/sh"), ("REXEC_WHOAMI", "me")];
        assert_eq!(of("aider", &sh), ["SHELL=/run/x/shells/rexec-sh", "REXEC_OWN_SHELL=/bin/sh"]);
        assert_eq!(of("gemini", &[]), ["PATH=/run/x/shells/bash-only"]);
        assert_eq!(of("mini", &[("PYTHONPATH", "/a:/b")])[0], "PYTHONPATH=/run/x/shells/python:/a:/b");
        for level in [&[][..], &[("SHLVL", "0")], &[("SHLVL", "x")]] {
            assert_eq!(of("cline", level)[1], "SHLVL=1");
        }
        let settings = of("opencode", &[("OPENCODE_CONFIG_CONTENT", r#"{"autoupdate":false,"shell":"sh"}"#)]);
        let ours = r#"OPENCODE_CONFIG_CONTENT={"autoupdate":false,"shell":"/run/x/shells/rexec-bash"}"#;
        let own = r#"REXEC_OWN_OPENCODE_CONFIG_CONTENT={"autoupdate":false,"shell":"sh"}"#;
        assert_eq!(settings, [ours, own, "REXEC_RUN_SET=OPENCODE_CONFIG_CONTENT"]);
    }

    #[test]
    fn an_agent_inside_of_another_one_still_has_the_users_own_values() {
        let first = [("SHLVL", "2"), ("BASH_ENV", "/etc/mine.sh")];
        let ours = ["BASH_ENV=/run/x/shells/rexec-env.sh", "REXEC_OWN_BASH_ENV=/etc/mine.sh", "REXEC_RUN_SET=BASH_ENV"];
        assert_eq!(of("codex", &first), ours);
        let second = [
            ("SHLVL", "2"),
            ("BASH_ENV", "/run/y/shells/rexec-env.sh"),
            ("REXEC_OWN_BASH_ENV", "/etc/mine.sh"),
            ("REXEC_RUN_SET", "BASH_ENV"),
        ];
        assert_eq!(of("codex", &second), ours);
        assert_eq!(of("claude", &second)[1], "REXEC_RUN_SET=CLAUDE_CODE_SHELL:BASH_ENV");
        let without = [("SHLVL", "2"), ("BASH_ENV", "/run/y/shells/rexec-env.sh"), ("REXEC_RUN_SET", "BASH_ENV")];
        assert_eq!(of("codex", &without), ["BASH_ENV=/run/x/shells/rexec-env.sh", "REXEC_RUN_SET=BASH_ENV"]);
    }

    #[test]
    fn the_given_name_goes_first() {
        let cn = named(b"cn").unwrap();
        assert_eq!(changes(cn, Some("me"), &[("REXEC_WHOAMI", "you")])[1], "REXEC_WHOAMI=me");
        assert_eq!(changes(cn, Some("me"), &[])[1..], ["REXEC_WHOAMI=me", "REXEC_RUN_SET=SHELL"]);
        assert!(changes(&UNKNOWN, None, &[]).iter().all(|entry| !entry.starts_with(WHOAMI)));
    }

    #[test]
    fn codex_starts_the_login_shell_of_the_account() {
        let codex = named(b"codex").unwrap();
        let zsh = started(codex, None, "/usr/bin/zsh", &[("ZDOTDIR", "/mine")]);
        let set = |name: &str| zsh.set.iter().find(|(set, _)| set == name).map(|(_, value)| value.to_str().unwrap());
        assert_eq!(set("ZDOTDIR"), Some("/run/x/shells/rexec-zdotdir"));
        assert_eq!((set("REXEC_OWN_ZDOTDIR"), set(SET)), (Some("/mine"), Some("BASH_ENV:ZDOTDIR:SHLVL")));
        assert_eq!(set("SHLVL"), Some("1"), "its sandbox");
        let is_told = |shell: &str| !started(codex, None, shell, &[]).remarks.is_empty();
        assert_eq!(["/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/fish"].map(is_told), [true, false, false, false]);
    }
}
