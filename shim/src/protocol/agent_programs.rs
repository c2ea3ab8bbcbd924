//! Programs by their names: those of agents, and those that stand between an agent and its shell.

/// Programs that start a shell for another one. The agent is above them.
const BETWEEN: [&str; 16] = [
    "sh", "bash", "zsh", "dash", "ksh", "mksh", "fish", "busybox", "env", "nice", "setsid", "nohup", "timeout",
    "stdbuf", "sudo", "rexec",
];

/// The agent whose program has this name.
#[must_use]
pub fn named_by_program(program: &str) -> Option<&'static str> {
    Some(match program.trim_start_matches('.') {
        "claude" => "Claude Code",
        "codex" => "Codex",
        "gemini" => "Gemini CLI",
        "qwen" => "Qwen Code",
        "opencode" => "opencode",
        "kilo" => "Kilo Code",
        // The second one is its process's own name.
        "kimi" | "kimi-code" => "Kimi Code",
        "letta" => "Letta Code",
        "vibe" | "vibe-rs" | "vibe-app-server" => "Mistral Vibe",
        "pi" => "pi",
        "copilot" => "Copilot CLI",
        "cline" => "Cline",
        "crush" => "Crush",
        "goose" => "Goose",
        "aider" => "Aider",
        "mini" | "mini-swe-agent" => "mini-swe-agent",
        _ => return None,
    })
}

/// Returns true if a program of this name only stands between a shell and the process that wants it.
#[must_use]
pub fn is_between(program: &str) -> bool {
    BETWEEN.contains(&program.strip_prefix("rexec-").unwrap_or(program))
}
