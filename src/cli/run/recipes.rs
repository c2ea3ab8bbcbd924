//! The ways to make each agent call rexec's shell. Pure: `rexec run --list`, the table of `rexec help agents` and the
//! tests come from here.
//!
//! Invariants: a step changes only the things that its agent needs; no agent's own files are touched; a command never
//! sees the change of a step (`protocol/environment.rs`).

/// One change of an agent's environment. Paths are those of links in the folder of [`super::links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecipeStep {
    /// `CLAUDE_CODE_SHELL` is the link for the user's shell. Claude Code takes a path only if it contains bash or zsh.
    ClaudeShell,
    /// `SHELL` is the link for the user's shell.
    Shell,
    /// The front of `PATH` is a folder that holds nothing but `bash`.
    Path,
    /// `BASH_ENV` is a file that hands each command string of a bash to the shim.
    BashEnv,
    /// `ZDOTDIR` is a folder whose .zshenv hands each command string of a zsh to the shim, if the account's shell is zsh.
    ZshFolder,
    /// `SHLVL` is 1 unless it is more. A bash with level 0 whose input may be a socket believes that a network daemon
    /// has started it, and reads ~/.bashrc instead of `BASH_ENV`.
    Level,
    /// `OPENCODE_CONFIG_CONTENT`, settings that go before those in opencode's files, names the link as the shell.
    OpencodeShell,
    /// `PYTHONPATH` has a module with an environment class for mini-swe-agent.
    Python,
    /// `LD_PRELOAD` begins with the preload, which hands over the shells that the agent's own programs start.
    Preload,
    /// These steps, if the preload cannot be loaded.
    Instead(&'static [RecipeStep]),
    /// `REXEC_WHOAMI` is the agent's name, because no variable of the agent names it, or one has another name.
    Name,
}

#[derive(Debug)]
pub(super) struct Recipe {
    /// Its name on the console.
    pub(super) agent: &'static str,
    pub(super) programs: &'static [&'static str],
    pub(super) steps: &'static [RecipeStep],
    /// Put before the arguments that the user gives it.
    pub(super) options: &'static [&'static str],
    /// The commands that reach the host.
    pub(super) seen: &'static str,
    /// The commands that do not.
    pub(super) unseen: &'static str,
}

impl RecipeStep {
    /// The name in the table.
    fn word(self) -> String {
        let word = match self {
            Self::ClaudeShell => "CLAUDE_CODE_SHELL",
            Self::Shell => "SHELL",
            Self::Path => "PATH",
            Self::BashEnv => "BASH_ENV",
            Self::ZshFolder => "ZDOTDIR",
            Self::Level => "SHLVL",
            Self::OpencodeShell => "OPENCODE_CONFIG_CONTENT",
            Self::Python => "PYTHONPATH",
            Self::Preload => "the preload",
            Self::Instead(VARIABLES) => "or variables",
            Self::Instead(steps) => return format!("or {}", words(steps)),
            Self::Name => "",
        };
        word.to_owned()
    }
}

/// The names of these steps in the table.
fn words(steps: &[RecipeStep]) -> String {
    let words: Vec<String> = steps.iter().map(|step| step.word()).filter(|word| !word.is_empty()).collect();
    words.join(", ")
}

impl Recipe {
    /// Returns true if the agent's commands can reach the host at all.
    pub(super) fn works(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Returns true if the preload is loaded into the agent, where it can be.
    pub(super) fn has_preload(&self) -> bool {
        self.steps.contains(&RecipeStep::Preload)
    }

    /// The steps if the preload can be loaded, or cannot.
    pub(super) fn steps_for(&self, is_loaded: bool) -> Vec<RecipeStep> {
        let mut steps = Vec::new();
        for step in self.steps {
            match step {
                RecipeStep::Preload if !is_loaded => {}
                RecipeStep::Instead(_) if is_loaded => {}
                RecipeStep::Instead(instead) => steps.extend_from_slice(instead),
                step => steps.push(*step),
            }
        }
        steps
    }

    /// Returns true if the same commands come without the preload.
    pub(super) fn is_whole_without_preload(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, RecipeStep::Instead(steps) if *steps != VARIABLES))
    }
}

/// The variables that cannot harm an agent into which no library can be loaded.
const VARIABLES: &[RecipeStep] = &[
    RecipeStep::ClaudeShell,
    RecipeStep::Shell,
    RecipeStep::Path,
    RecipeStep::BashEnv,
    RecipeStep::ZshFolder,
    RecipeStep::Level,
    RecipeStep::OpencodeShell,
];
/// The name of these variables in the table.
const ALL_VARIABLES: &str = "the variables of all others but PYTHONPATH";
/// For an agent whose shells the preload sees.
const PRELOADED: &[RecipeStep] = &[RecipeStep::Preload, RecipeStep::Instead(VARIABLES), RecipeStep::Name];
/// As [`PRELOADED`], for an agent that takes its shell from `SHELL`, which other programs would see too.
const PRELOAD_OR_SHELL: &[RecipeStep] =
    &[RecipeStep::Preload, RecipeStep::Instead(&[RecipeStep::Shell]), RecipeStep::Name];
/// The commands of these agents that the preload does not see.
const NOT_PRELOADED: &str = "programs that it starts without a shell";

/// The known agents.
pub(super) const RECIPES: [Recipe; 18] = [
    Recipe {
        agent: "Claude Code",
        programs: &["claude"],
        steps: &[RecipeStep::ClaudeShell],
        options: &[],
        seen: "every command of the Bash tool, background ones too",
        unseen: "hooks, status line, MCP servers",
    },
    Recipe {
        agent: "Codex",
        programs: &["codex"],
        // Its sandbox refuses bash's question whether the input is a socket.
        steps: &[RecipeStep::BashEnv, RecipeStep::ZshFolder, RecipeStep::Level],
        // Its terminal interface would hand commands to a daemon that may have been started without rexec.
        options: &["-c", "features.daemon_auto_start=false"],
        seen: "every command, terminals and hooks too",
        unseen: "all if the account's shell is sh",
    },
    Recipe {
        agent: "Gemini CLI",
        programs: &["gemini"],
        steps: &[RecipeStep::Path],
        options: &[],
        seen: "every command, hooks too",
        unseen: "all in its sandbox",
    },
    Recipe {
        agent: "Qwen Code",
        programs: &["qwen"],
        steps: &[RecipeStep::Path],
        options: &[],
        seen: "every command, hooks too",
        unseen: "all in its sandbox",
    },
    Recipe {
        agent: "opencode",
        programs: &["opencode"],
        steps: &[RecipeStep::OpencodeShell],
        options: &[],
        seen: "every command of the bash tool",
        unseen: "language servers, MCP servers, formatters",
    },
    Recipe {
        agent: "pi",
        programs: &["pi"],
        steps: &[RecipeStep::BashEnv],
        options: &[],
        seen: "every command",
        unseen: "all if its shellPath is not a bash",
    },
    Recipe {
        agent: "Copilot CLI",
        programs: &["copilot"],
        steps: &[RecipeStep::BashEnv],
        options: &["--bash-env=on"],
        seen: "every command",
        unseen: "MCP servers",
    },
    Recipe {
        agent: "Cline",
        programs: &["cline"],
        steps: &[RecipeStep::BashEnv, RecipeStep::Level],
        options: &[],
        seen: "every command",
        unseen: "MCP servers; a background hub that runs already",
    },
    Recipe {
        agent: "Continue",
        programs: &["cn"],
        steps: PRELOAD_OR_SHELL,
        options: &[],
        seen: "every command",
        unseen: NOT_PRELOADED,
    },
    Recipe {
        agent: "mini-swe-agent",
        programs: &["mini", "mini-swe-agent"],
        steps: &[RecipeStep::Python, RecipeStep::Name],
        options: &["--environment-class", "rexec_mini.RexecEnvironment"],
        seen: "every command",
        unseen: "all with another --environment-class",
    },
    Recipe {
        agent: "Aider",
        programs: &["aider"],
        steps: PRELOAD_OR_SHELL,
        options: &[],
        seen: "every command; by SHELL those at its terminal alone",
        unseen: "git, and other programs that it starts without a shell",
    },
    Recipe {
        agent: "Goose",
        programs: &["goose"],
        steps: &[RecipeStep::BashEnv],
        options: &[],
        seen: "every command",
        unseen: "MCP servers",
    },
    Recipe {
        agent: "Kilo Code",
        programs: &["kilo", "kilocode"],
        steps: PRELOADED,
        options: &[],
        seen: "every command of the bash tool",
        unseen: NOT_PRELOADED,
    },
    Recipe {
        agent: "Kimi Code",
        programs: &["kimi"],
        steps: PRELOADED,
        options: &[],
        seen: "every command",
        unseen: NOT_PRELOADED,
    },
    Recipe {
        agent: "Letta Code",
        programs: &["letta"],
        steps: PRELOADED,
        options: &[],
        seen: "every command of the Bash tool",
        unseen: NOT_PRELOADED,
    },
    Recipe {
        agent: "Mistral Vibe",
        programs: &["vibe"],
        steps: PRELOADED,
        options: &[],
        seen: "every command",
        unseen: NOT_PRELOADED,
    },
    Recipe {
        agent: "Crush",
        programs: &["crush"],
        steps: &[],
        options: &[],
        seen: "nothing",
        unseen: "everything: it starts programs without a shell",
    },
    Recipe {
        agent: "OpenHands",
        programs: &["openhands"],
        // tmux starts its commands by SHELL, and is no program of the agent's own.
        steps: &[RecipeStep::Shell, RecipeStep::Name],
        options: &[],
        seen: "its shell in tmux, as one run on a terminal: all output",
        unseen: "single commands: it types them into that shell",
    },
];

/// For an unknown program.
pub(super) const ANY: Recipe = Recipe {
    agent: "any other",
    programs: &["PROGRAM"],
    steps: PRELOADED,
    options: &[],
    seen: "shells with a command; one that a pipe feeds, as one run",
    unseen: "shells on a terminal; programs it starts without a shell",
};

/// For an unknown program into which no library can be loaded. It may only start the agent, so it has no name.
pub(super) const UNKNOWN: Recipe = Recipe {
    agent: "any, no preload",
    programs: &["PROGRAM"],
    steps: VARIABLES,
    options: &[],
    seen: "shells from SHELL or PATH, and bash",
    unseen: "/bin/sh; programs that it starts without a shell",
};

pub(super) fn named(file: &[u8]) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.programs.iter().any(|program| program.as_bytes() == file))
}

/// The names that complete `rexec run`.
pub(super) const PROGRAMS: [&str; 17] = [
    "claude",
    "codex",
    "gemini",
    "qwen",
    "opencode",
    "pi",
    "copilot",
    "cline",
    "cn",
    "mini",
    "aider",
    "goose",
    "kilo",
    "kimi",
    "letta",
    "vibe",
    "openhands",
];

/// All recipes as a table, for `rexec run --list`.
pub(super) fn table() -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for recipe in RECIPES.iter().chain([&ANY, &UNKNOWN]) {
        let start = match recipe.works() {
            true => format!("rexec run {}", recipe.programs[0]),
            false => "-".to_owned(),
        };
        let _ = writeln!(text, "{:<16}{start}", recipe.agent);
        if recipe.works() {
            let by = if recipe.steps == VARIABLES { ALL_VARIABLES.to_owned() } else { words(recipe.steps) };
            let _ = writeln!(text, "    by          {by}");
        }
        let _ = writeln!(text, "    seen        {}", recipe.seen);
        let _ = writeln!(text, "    not seen    {}", recipe.unseen);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_completed_names_are_those_that_work() {
        let working = RECIPES.iter().filter(|recipe| recipe.works()).map(|recipe| recipe.programs[0]);
        assert!(working.eq(PROGRAMS));
        assert_eq!(named(b"mini-swe-agent").unwrap().agent, "mini-swe-agent");
        assert!(named(b"PROGRAM").is_none() && named(b"").is_none());
    }

    #[test]
    fn the_manual_has_this_table() {
        let page = include_str!("../help/agents.md");
        let indented: String = table().lines().map(|line| format!("    {line}\n")).collect();
        assert!(indented.lines().all(|line| line.chars().count() <= 80), "{indented}");
        assert!(page.contains(&indented), "help/agents.md lacks this table:\n{indented}");
    }
}
