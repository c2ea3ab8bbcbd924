//! Reads the facts about one call from an agent's variables: its program, version, session and call, and the part of it
//! that calls.
//!
//! The agents were seen to set these variables. They are the caller's words: names for people to read and search, and
//! no decision depends on them. Claude Code gives a subagent's commands the same variables as its own, so those cannot
//! be told apart.

use rexec_sh::protocol::agents::started_process;
use rexec_sh::protocol::process::Pid;

use crate::core::card::{Caller, Role};
use crate::limits;
use crate::text::agent_name::short_name;

/// What an environment tells of a call. Empty texts are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerMarks {
    /// The caller, without its name.
    pub caller: Caller,
    /// The process that `rexec run` has started.
    pub started: Option<Pid>,
    /// The key that tells the session from others: its start by `rexec run`, or else its name.
    pub key: String,
}

/// The names of an agent's variables about a call.
struct Variables {
    version: &'static [u8],
    /// The more reliable ones first.
    session: &'static [&'static [u8]],
    call: &'static [u8],
}

const NONE: Variables = Variables { version: b"", session: &[], call: b"" };

fn variables(agent: &str) -> Variables {
    match agent {
        "claude" => Variables { session: &[b"CLAUDE_CODE_SESSION_ID="], call: b"CLAUDE_CODE_TOOL_USE_ID=", ..NONE },
        "codex" => Variables {
            version: b"CODEX_VERSION=",
            session: &[b"CODEX_SESSION_ID=", b"CODEX_THREAD_ID="],
            call: b"CODEX_TOOL_CALL_ID=",
        },
        "gemini" => Variables { session: &[b"GEMINI_SESSION_ID="], ..NONE },
        "qwen" => Variables { session: &[b"QWEN_CODE_SESSION_ID="], ..NONE },
        "copilot" => {
            Variables { version: b"COPILOT_CLI_BINARY_VERSION=", session: &[b"COPILOT_AGENT_SESSION_ID="], ..NONE }
        }
        "kilo" => Variables { version: b"KILOCODE_VERSION=", session: &[b"KILO_RUN_ID="], ..NONE },
        "letta" => Variables { session: &[b"LETTA_CONVERSATION_ID="], ..NONE },
        "opencode" => Variables { session: &[b"OPENCODE_PID="], ..NONE },
        _ => NONE,
    }
}

impl CallerMarks {
    /// The marks of a program that names its session; empty for one that does not.
    #[must_use]
    pub fn named(session: &str) -> Self {
        let session = plain(session.as_bytes());
        Self { key: session.clone(), caller: Caller { session, ..Caller::default() }, started: None }
    }

    /// The marks in a caller's environment. `run` comes from `rexec run`, `known` is the agent that the environment
    /// names; `is_probe` is an agent's look at the shell.
    #[must_use]
    pub fn read(run: &[u8], known: Option<&str>, env: &[&[u8]], is_probe: bool) -> Self {
        let value = |name: &[u8]| match name {
            b"" => None,
            name => env.iter().find_map(|entry| entry.strip_prefix(name)),
        };
        let text = |value: Option<&[u8]>| value.map_or_else(String::new, plain);
        let agent = known.map_or("", short_name);
        let Variables { version, session, call } = variables(agent);
        let version = if agent == "claude" { claude_version(value(b"AI_AGENT=")) } else { text(value(version)) };
        let session = session.iter().find_map(|name| value(name));
        let started = || {
            let pid = run.split(|&byte| byte == b':').next().filter(|pid| !pid.is_empty())?;
            Some(format!("run-{}", plain(pid)))
        };
        let session = session.map(plain).filter(|session| !session.is_empty());
        let session = session.or_else(started).unwrap_or_default();
        let key = if run.is_empty() { session.clone() } else { plain(run) };
        let role = if is_probe { Role::Agent } else { role(agent, value) };
        let caller = Caller { agent, version, session, call: text(value(call)), role, ..Caller::default() };
        Self { caller, started: started_process(run), key }
    }
}

/// Returns true if the agent does not name its sessions. Then each of its processes is one.
#[must_use]
pub fn lacks_sessions(caller: &Caller) -> bool {
    caller.session.is_empty() && !caller.agent.is_empty() && variables(caller.agent).session.is_empty()
}

/// The part of an agent that calls, by the variables that it has or lacks.
fn role<'a>(agent: &str, value: impl Fn(&[u8]) -> Option<&'a [u8]>) -> Role {
    let has = |name: &[u8]| value(name).is_some();
    let is_hook = match agent {
        "claude" => {
            has(b"CLAUDE_PROJECT_DIR=") && value(b"AI_AGENT=").is_some_and(|agent| agent.ends_with(b"_harness"))
        }
        "codex" => !has(b"CODEX_THREAD_ID=") && !has(b"CODEX_CI="),
        "gemini" => !has(b"GEMINI_CLI="),
        "qwen" => !has(b"QWEN_CODE="),
        _ => false,
    };
    let threads = || Some((value(b"CODEX_SESSION_ID=")?, value(b"CODEX_THREAD_ID=")?));
    match threads() {
        _ if is_hook => Role::Hook,
        Some((session, thread)) if agent == "codex" && session != thread => Role::Subagent,
        _ if agent == "letta" && value(b"LETTA_CODE_AGENT_ROLE=") == Some(b"subagent") => Role::Subagent,
        _ => Role::Agent,
    }
}

/// The version in `claude-code_2-1-329_agent`.
fn claude_version(marker: Option<&[u8]>) -> String {
    let version = || marker?.strip_prefix(b"claude-code_")?.split(|&byte| byte == b'_').next();
    version().map_or_else(String::new, |version| plain(version).replace('-', "."))
}

/// The beginning of an identifier, with `_` for characters that identifiers do not have.
fn plain(id: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+@".contains(&byte);
    let id = &id[..id.len().min(limits::CALLER_ID_BYTES)];
    id.iter().map(|&byte| if is_plain(byte) { char::from(byte) } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use rexec_sh::protocol::agents::known_name;

    use super::*;

    fn marks(run: &str, env: &[&str]) -> CallerMarks {
        let (run, env) = (run.as_bytes(), env.iter().map(|entry| entry.as_bytes()).collect::<Vec<_>>());
        CallerMarks::read(run, known_name(run, env.iter().copied()), &env, false)
    }

    #[test]
    fn an_agents_variables_tell_version_session_and_call() {
        let codex =
            ["CODEX_CI=1", "CODEX_VERSION=0.169.0", "CODEX_SESSION_ID=s", "CODEX_THREAD_ID=s", "CODEX_TOOL_CALL_ID=c"];
        let caller = Caller {
            agent: "codex",
            version: "0.169.0".into(),
            session: "s".into(),
            call: "c".into(),
            ..Caller::default()
        };
        assert_eq!(marks("", &codex), CallerMarks { caller, started: None, key: "s".into() });
        let claude =
            ["CLAUDECODE=1", "AI_AGENT=claude-code_2-1-329_agent", "CLAUDE_CODE_SESSION_ID=a-b", "CODEX_VERSION=9"];
        let found = marks("", &claude).caller;
        assert_eq!((found.agent, &*found.version, &*found.session, &*found.call), ("claude", "2.1.329", "a-b", ""));
        assert_eq!(marks("", &["HOME=/h"]), CallerMarks::default());
        assert_eq!(marks("7:pi", &["PI_CODING_AGENT=true"]).caller.session, "run-7");
        let started = marks("7:Claude Code", &claude);
        assert_eq!((&*started.caller.session, &*started.key), ("a-b", "7:Claude_Code"), "it may begin another session");
        let long = format!("CLAUDE_CODE_SESSION_ID=\x1b[2J\n{}", "x".repeat(999));
        let session = marks("", &["CLAUDECODE=1", &long]).caller.session;
        assert!(session.starts_with("__2J_xxx") && session.len() == limits::CALLER_ID_BYTES, "{session}");
        let lacks_sessions = |env: &[&str]| lacks_sessions(&marks("", env).caller);
        assert!(lacks_sessions(&["PI_CODING_AGENT=true"]) && !lacks_sessions(&codex[..2]));
    }

    #[test]
    fn hooks_and_subagents_are_told_apart() {
        let role = |env: &[&str]| marks("", env).caller.role;
        let commands = ["CODEX_CI=1", "CODEX_SESSION_ID=s", "CODEX_THREAD_ID=t"];
        assert_eq!((role(&commands), role(&commands[..2])), (Role::Subagent, Role::Agent));
        assert_eq!(role(&["CODEX_HOME=/h"]), Role::Hook);
        let letta = ["LETTA_CONVERSATION_ID=c", "LETTA_CODE_AGENT_ROLE=subagent"];
        assert_eq!((role(&letta), role(&letta[..1])), (Role::Subagent, Role::Agent));
        assert_eq!(
            CallerMarks::read(b"", Some("Codex"), &[b"CODEX_HOME=/h"], true).caller.role,
            Role::Agent,
            "a look at the shell"
        );
        let claude = ["CLAUDECODE=1", "AI_AGENT=claude-code_2-1-329_harness", "CLAUDE_PROJECT_DIR=/p"];
        assert_eq!((role(&claude), role(&claude[..2])), (Role::Hook, Role::Agent));
        assert_eq!(
            (role(&["GEMINI_SESSION_ID=s"]), role(&["GEMINI_SESSION_ID=s", "GEMINI_CLI=1"])),
            (Role::Hook, Role::Agent)
        );
    }
}
