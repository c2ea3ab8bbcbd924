//! Names the caller of a command by its environment, and knows the habits of agents.

mod marks;

pub use marks::{CallerMarks, lacks_sessions};
use std::time::Duration;

use rexec_sh::protocol::agents::started;

use crate::limits;
use crate::text::agent_name::UNNAMED;
use crate::text::name::name_of;
use crate::text::unwrap::Agent;

/// The caller's name for banner and journal. `given` is its name for itself, or empty; `run` comes from `rexec run`,
/// and `known` is the agent that this or its variables name. Invisible characters and those with a meaning in a banner
/// are replaced, and the name is cut to [`limits::WHOAMI_COLUMNS`].
pub fn name(given: &[u8], run: &[u8], known: Option<&str>) -> String {
    let cut = |name: &[u8]| name_of(&String::from_utf8_lossy(name), limits::WHOAMI_COLUMNS);
    let (given, started) = (cut(given), cut(started(run)));
    match known {
        _ if !given.is_empty() => given,
        Some(known) => known.to_owned(),
        None if started.is_empty() => UNNAMED.to_owned(),
        None => started,
    }
}

/// The agent whose wrapper the caller's command may be in, by `rexec run` or the caller's variables. The caller's name
/// for itself is no proof.
pub fn agent(known: Option<&str>) -> Option<Agent> {
    match known? {
        "Claude Code" => Some(Agent::Claude),
        "Codex" => Some(Agent::Codex),
        "Gemini CLI" => Some(Agent::Gemini),
        "opencode" => Some(Agent::Opencode),
        "Kimi Code" => Some(Agent::Kimi),
        "Mistral Vibe" => Some(Agent::Vibe),
        _ => None,
    }
}

/// How long an agent waits for a command that has no output, unless its model says otherwise; then it kills the command.
/// `None` if that is not known, or it waits on.
#[must_use]
pub fn patience(agent: &str) -> Option<Duration> {
    match agent {
        "mini-swe-agent" => Some(Duration::from_secs(30)),
        "opencode" | "Qwen Code" => Some(Duration::from_secs(120)),
        "Gemini CLI" => Some(Duration::from_secs(300)),
        _ => None,
    }
}

/// Returns true if Claude Code's own program reads the output, and no model.
pub fn is_harness<'a>(mut env: impl Iterator<Item = &'a [u8]>) -> bool {
    env.any(|entry| entry.starts_with(b"AI_AGENT=claude-code") && entry.ends_with(b"_harness"))
}

/// Returns true if the caller kills the rest of its shell's process group as soon as it has the result, as Codex does
/// after every command. The caller kills the shim's group, so the host must kill the command's.
pub fn kills_group<'a>(mut env: impl Iterator<Item = &'a [u8]>) -> bool {
    env.any(|entry| entry.starts_with(b"CODEX_THREAD_ID=") || entry.starts_with(b"CODEX_CI="))
}

#[cfg(test)]
mod tests {
    use rexec_sh::protocol::agents::known_name;

    use super::*;

    fn called_below(given: &str, run: &str, env: &[&str]) -> String {
        let known = known_name(run.as_bytes(), env.iter().map(|entry| entry.as_bytes()));
        name(given.as_bytes(), run.as_bytes(), known)
    }

    fn called(given: &str, env: &[&str]) -> String {
        called_below(given, "", env)
    }

    #[test]
    fn the_callers_own_word_goes_first_then_the_surest_variable() {
        assert_eq!(called("Me", &["CLAUDECODE=1"]), "Me");
        assert_eq!(called("Me:/dir $ ls #[\n\u{200b}x]", &[]), "Me_/dir _ ls ____x_");
        assert_eq!(called(&"long ".repeat(9), &[]), "long long long long lon…");
        assert_eq!(called(" \t", &["CLAUDECODE=1"]), "Claude Code", "blank");
        let with = |variable: &str| agent(known_name(b"", [variable.as_bytes()].into_iter()));
        assert_eq!((with("CLAUDECODE=1"), with("REXEC_WHOAMI=Codex")), (Some(Agent::Claude), None));
        assert_eq!(called("", &["PATH=/bin", "CLAUDECODE=1"]), "Claude Code");
        assert_eq!(called("", &["CODEX_HOME=/h", "CODEX_CI=1"]), "Codex");
        assert_eq!(called("", &["OPENCODE=1", "KILO_PID=7"]), "Kilo Code");
        assert_eq!(called("", &["CODEX_MANAGED_BY_NPM=1", "SHLVL=1"]), "Codex", "a hook");
        assert_eq!(called("", &["CODEX_HOME=/h", "OPENCODE=1"]), "opencode", "not what a profile may set");
        assert_eq!(called("", &["CLAUDECODE=1", "GEMINI_CLI=1"]), "Gemini CLI", "the inner agent");
        assert_eq!(called("", &["HOME=/h"]), "shell");
        assert!(is_harness([b"AI_AGENT=claude-code_2-1_harness".as_slice()].into_iter()));
        assert!(!is_harness([b"AI_AGENT=claude-code_2-1_agent".as_slice()].into_iter()));
        assert!(kills_group([b"A=b".as_slice(), b"CODEX_CI=1"].into_iter()));
        assert!(!kills_group([b"CODEX_HOME=/h".as_slice(), b"CLAUDECODE=1"].into_iter()), "hooks and other agents");
    }

    #[test]
    fn what_rexec_run_has_started_is_named() {
        let called = called_below;
        assert_eq!(called("", "7:my agent", &["HOME=/h"]), "my agent");
        assert_eq!(called("", "7:my\u{200b}:agent", &[]), "my__agent");
        assert_eq!(called("Me", "7:my agent", &[]), "Me");
        let both = ["CODEX_THREAD_ID=t", "CLAUDECODE=1"];
        assert_eq!(called("", "7:Claude Code", &both), "Claude Code", "Codex is around it");
        assert_eq!(called("", "7:Codex", &both), "Codex");
        assert_eq!(called("", "7:Codex", &["CLAUDECODE=1"]), "Codex", "what was told goes before a guess");
        assert_eq!(called("", "7:Continue", &["OPENCODE=1"]), "Continue");
        assert_eq!(called("", "7:npx", &["CLAUDECODE=1"]), "Claude Code", "npx has started it");
        assert_eq!(
            (called("", "", &[]), called("", "7", &[]), called("", "7:", &[])),
            ("shell".into(), "shell".into(), "shell".into())
        );
    }
}
