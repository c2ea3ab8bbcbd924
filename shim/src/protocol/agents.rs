//! Agents by the variables that they set for their commands.

/// Variables that name an agent, the surer ones first. An agent inside another one inherits the outer one's variables.
/// So variables that only an agent's own commands get rank before those of a session.
const KNOWN: [(&[u8], &str); 17] = [
    (b"CODEX_THREAD_ID=", "Codex"),
    (b"CODEX_CI=", "Codex"),
    (b"GEMINI_CLI=", "Gemini CLI"),
    (b"QWEN_CODE=", "Qwen Code"),
    (b"OPENCODE=", "opencode"),
    (b"PI_CODING_AGENT=", "pi"),
    (b"COPILOT_CLI=", "Copilot CLI"),
    (b"CLINE_CONNECTOR_CLI_LAUNCH=", "Cline"),
    (b"CRUSH=", "Crush"),
    (b"GOOSE_TERMINAL=", "Goose"),
    (b"OR_APP_NAME=Aider", "Aider"),
    (b"MSWEA_", "mini-swe-agent"),
    (b"CLAUDECODE=", "Claude Code"),
    (b"AI_AGENT=claude-code", "Claude Code"),
    (b"GEMINI_SESSION_ID=", "Gemini CLI"),
    (b"QWEN_CODE_SESSION_ID=", "Qwen Code"),
    // Codex starts its hooks and its looks at the shell with its own environment only.
    (b"CODEX_", "Codex"),
];

/// The name of the agent that `rexec run` has started, as `REXEC_RUN_AGENT` has it behind a number; empty if there is none.
#[must_use]
pub fn started(run: &[u8]) -> &[u8] {
    run.iter().position(|&byte| byte == b':').map_or(b"", |colon| &run[colon + 1..])
}

/// The name that the surest variable of an environment stands for. Inside another agent, variables of both are there. The
/// one that `rexec run` has started goes first then.
pub fn known_name<'a>(run: &[u8], env: impl Iterator<Item = &'a [u8]>) -> Option<&'static str> {
    let rank = |(rank, name): &(usize, &str)| (name.as_bytes() != started(run), *rank);
    env.filter_map(known).min_by_key(rank).map(|(_, name)| name)
}

fn known(entry: &[u8]) -> Option<(usize, &'static str)> {
    let at = KNOWN.iter().position(|(prefix, _)| entry.starts_with(prefix))?;
    Some((at, KNOWN[at].1))
}
