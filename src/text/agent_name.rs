//! An agent's name as a person sees it: `claude`, `claude~2` for its second session, `codex/hook` for one of its hooks.
//!
//! Invariant: nothing in a name that a caller chose can look like the number of a session, a role or the next field.

use std::collections::BTreeSet;

use super::name::name_of;

/// The most columns of a name, without session and role.
const NAME_COLUMNS: usize = 16;

/// The name of a caller that is no known agent and gave no name.
pub const UNNAMED: &str = "shell";

/// The short name of a known agent; empty for any other name.
#[must_use]
pub fn short_name(whoami: &str) -> &'static str {
    const SHORT: [(&str, &str); 18] = [
        ("Claude Code", "claude"),
        ("Codex", "codex"),
        ("Gemini CLI", "gemini"),
        ("Qwen Code", "qwen"),
        ("opencode", "opencode"),
        ("Kilo Code", "kilo"),
        ("Kimi Code", "kimi"),
        ("Letta Code", "letta"),
        ("Mistral Vibe", "vibe"),
        ("pi", "pi"),
        ("Copilot CLI", "copilot"),
        ("Cline", "cline"),
        ("Continue", "continue"),
        ("Crush", "crush"),
        ("Goose", "goose"),
        ("Aider", "aider"),
        ("mini-swe-agent", "mini-swe"),
        (UNNAMED, UNNAMED),
    ];
    SHORT.iter().find(|(known, _)| *known == whoami).map_or("", |(_, short)| short)
}

/// The name of session `number` (from 1) of the caller `whoami`. `role` is empty for the agent itself.
#[must_use]
pub fn agent_name(whoami: &str, number: u32, role: &str) -> String {
    let mut name = match short_name(whoami) {
        "" => name_of(whoami, NAME_COLUMNS).replace([' ', '~', '/'], "-"),
        short => short.to_owned(),
    };
    if number > 1 {
        name += &format!("~{number}");
    }
    if !role.is_empty() {
        name += "/";
        name += &name_of(role, NAME_COLUMNS);
    }
    name
}

/// The number of agents among these callers: all sessions of an agent are one, and a caller without a name is none.
#[must_use]
pub fn count_agents<'a>(callers: impl Iterator<Item = &'a str>) -> usize {
    callers.filter(|whoami| is_agent(whoami)).map(|whoami| agent_name(whoami, 1, "")).collect::<BTreeSet<_>>().len()
}

/// Returns true if a caller of this name is an agent. One without a name is a shell or a script.
#[must_use]
pub fn is_agent(whoami: &str) -> bool {
    whoami != UNNAMED
}

/// Returns true if a person means this caller by `wanted`: its whole name or the first word of it, its short name, or
/// what [`agent_name`] returns, in any case of letters.
#[must_use]
pub fn is_meant(wanted: &str, whoami: &str, number: u32, role: &str) -> bool {
    let first = whoami.split(' ').next().unwrap_or_default();
    // An unknown name has no short form, and an empty word means nobody.
    let is_one = [whoami, first, short_name(whoami)].iter().any(|name| name.eq_ignore_ascii_case(wanted))
        || agent_name(whoami, number, role).eq_ignore_ascii_case(wanted)
        || agent_name(whoami, number, "").eq_ignore_ascii_case(wanted);
    is_one && !wanted.is_empty()
}

/// Returns true if `wanted` may mean a caller of this name, in any session and role.
#[must_use]
pub fn may_be_meant(wanted: &str, whoami: &str) -> bool {
    let name = wanted.split_once(['~', '/']).map_or(wanted, |(name, _)| name);
    is_meant(wanted, whoami, 1, "") || is_meant(name, whoami, 1, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_session_and_which_part_of_the_agent() {
        assert_eq!(agent_name("Claude Code", 1, ""), "claude");
        assert_eq!(agent_name("Claude Code", 2, ""), "claude~2");
        assert_eq!(agent_name("Codex", 1, "hook"), "codex/hook");
        assert_eq!(agent_name("Codex", 3, "subagent"), "codex~3/subagent");
        assert_eq!(agent_name("my agent~2/hook", 1, ""), "my-agent-2-hook", "a name that imitates the rest");
        let is = |wanted: &str| is_meant(wanted, "Claude Code", 2, "hook");
        assert!(["claude code", "CLAUDE", "claude~2", "claude~2/hook"].into_iter().all(is));
        assert!(!["claude~1", "claude~3", "claude/hook", "code", ""].into_iter().any(is));
        assert!(is_meant("mini-swe", "mini-swe-agent", 1, ""));
        assert!(!is_meant("", "my agent", 1, "") && !may_be_meant("", "my agent"), "a caller without a short name");
        let callers = ["Claude Code", "shell", "claude", "Codex", "Claude Code"];
        assert_eq!(count_agents(callers.into_iter()), 2, "sessions of one agent, and a script");
        let may = |wanted| may_be_meant(wanted, "Claude Code");
        assert!(may("claude~7") && may("claude/hook") && may("Claude") && !may("codex~2") && !may(""));
    }
}
