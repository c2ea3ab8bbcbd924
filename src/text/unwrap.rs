//! Finds the model's command in a shell call of an agent.
//!
//! Agents wrap the command in text of their own: Claude Code sources a snapshot and writes a directory file, Codex restores
//! variables and ends in an `exec`, Gemini CLI collects job numbers, opencode reads the user's aliases, Kimi Code goes to a
//! directory, Mistral Vibe starts its shell by another one.
//!
//! Invariants: a wrapper is removed only if the *whole* text is the wrapper of the agent that the caller's environment
//! names. Each variable part of it is the command, or cannot execute anything, or is the caller's by its environment, or is
//! shown before the command. So nobody can hide a command in such a text. If an agent changes its wrapper, only the short
//! form is lost.

mod claude;
mod codex;
mod others;
mod scan;
mod vibe;

pub use scan::quoted as shell_word;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code, by Anthropic.
    Claude,
    /// Codex, by OpenAI.
    Codex,
    /// Gemini CLI, by Google.
    Gemini,
    /// opencode, by opencode.ai.
    Opencode,
    /// Kimi Code, by Moonshot AI.
    Kimi,
    /// Mistral Vibe, by Mistral AI.
    Vibe,
}

/// The caller of a shell, known by the environment that the agent set. A model cannot write that.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// The agent that the environment names.
    pub agent: Option<Agent>,
    /// The environment, as `NAME=value`.
    pub env: &'a [&'a [u8]],
    /// The shell's `argv[0]`.
    pub shell: &'a [u8],
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unwrapped {
    pub command: Vec<u8>,
    /// True if an agent's wrapper was left out; otherwise the command is the caller's whole text.
    pub is_unwrapped: bool,
    /// True if that wrapper is the one of the agent's own sandbox.
    pub is_sandboxed: bool,
    /// True if this is an agent's own look at the shell, known to its last byte, and not a command of the model.
    pub is_probe: bool,
    /// True if it begins like an agent's look at the shell, so that its output is for a program.
    pub is_for_program: bool,
}

impl<'a> Caller<'a> {
    fn var(&self, name: &str) -> Option<&'a [u8]> {
        self.env.iter().find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Returns true if `path` is the called shell, or a shell of the system.
    fn is_shell(&self, path: &[u8]) -> bool {
        const FOLDERS: [&[u8]; 4] = [b"/bin/", b"/usr/bin/", b"/usr/local/bin/", b""];
        let name = FOLDERS.iter().find_map(|folder| path.strip_prefix(*folder));
        (!path.is_empty() && path == self.shell) || name.is_some_and(|name| SHELLS.contains(&name))
    }
}

const SHELLS: [&[u8]; 4] = [b"bash", b"sh", b"zsh", b"dash"];

#[derive(Debug, Default)]
struct Short {
    /// The variable parts of the wrapper that are not known to be harmless.
    before: Vec<u8>,
    /// True if the wrapper is that of the agent's sandbox.
    is_sandboxed: bool,
}

impl Short {
    /// Shows a part of the wrapper, unless it is the caller's own.
    fn show_unless(&mut self, is_own: bool, start: &[u8], word: &[u8], end: &[u8]) {
        if !is_own {
            self.before.extend([start, &scan::quoted(word), end, b"; "].concat());
        }
    }

    /// Adds the command; `None` if it is blank.
    fn with(mut self, command: &[u8]) -> Option<Self> {
        self.before.extend_from_slice(command);
        (!command.trim_ascii().is_empty()).then_some(self)
    }
}

#[derive(Debug)]
struct ShellCall<'a> {
    options: &'a [&'a [u8]],
    text: &'a [u8],
    /// The text's `$0`, `$1`, …
    positional: &'a [&'a [u8]],
}

#[must_use]
pub fn unwrap<'a>(argv: impl Iterator<Item = &'a [u8]>, env: &[&[u8]], agent: Option<Agent>) -> Unwrapped {
    let argv: Vec<&[u8]> = argv.collect();
    let Some(call) = shell_call(&argv) else {
        return Unwrapped { command: others::spelled(&argv), ..Unwrapped::default() };
    };
    let caller = Caller { agent, env, shell: argv[0] };
    let ShellCall { options, text, positional } = call;
    let is_for_program = is_for_program(text);
    let is_plain = match positional {
        [] => true,
        [name] => caller.is_shell(name),
        _ => false,
    };
    if is_plain && is_probe(options, text, &caller) {
        return Unwrapped { command: text.to_vec(), is_probe: true, is_for_program, ..Unwrapped::default() };
    }
    let short = match agent {
        Some(Agent::Opencode) => others::opencode(options, text, positional, &caller),
        Some(Agent::Vibe) => vibe::wrapper(options, text, positional, &caller),
        Some(_) if !is_plain => None,
        Some(Agent::Claude) => claude::wrapper(text, &caller).or_else(|| claude::look(options, text, &caller)),
        Some(Agent::Codex) => codex::wrapper(text, &caller),
        Some(Agent::Gemini) => others::gemini(text),
        Some(Agent::Kimi) => others::kimi(text, &caller),
        None => None,
    };
    if let Some(Short { before, is_sandboxed }) = short {
        let unwrapped = Unwrapped { command: before, is_unwrapped: true, is_sandboxed, ..Unwrapped::default() };
        return Unwrapped { is_for_program, ..unwrapped };
    }
    // The text may execute its positional arguments, so they are shown with it.
    let command = if is_plain { text.to_vec() } else { others::spelled(&argv) };
    Unwrapped { command, is_for_program, ..Unwrapped::default() }
}

fn is_probe(options: &[&[u8]], text: &[u8], caller: &Caller<'_>) -> bool {
    match caller.agent {
        Some(Agent::Claude) => claude::is_probe(options, text, caller),
        Some(Agent::Codex) => codex::is_probe(options, text),
        Some(Agent::Vibe) => vibe::is_probe(options, text),
        Some(Agent::Kimi) => options == [b"-l", b"-c"] && text == b"/usr/bin/env",
        _ => false,
    }
}

/// Returns true if the text begins like an agent's look at the shell: environment, functions and aliases, or checks.
fn is_for_program(text: &[u8]) -> bool {
    let has = |needle: &[u8]| memchr::memmem::find(text, needle).is_some();
    text.starts_with(b"SNAPSHOT_FILE=")
        || (text.starts_with(b"if [ -z \"${BASH_ENV-}\" ]") && has(b"declare -f"))
        || (text.starts_with(b"set -e; . \"") && has(b"shell_snapshots/"))
}

/// The arguments as a shell reads them; `None` without a command string, or with an option that may change the executed
/// text or that shells read differently.
fn shell_call<'a>(argv: &'a [&'a [u8]]) -> Option<ShellCall<'a>> {
    const WORDS: [&[u8]; 4] = [b"--norc", b"--noprofile", b"--login", b"--posix"];
    const LETTERS: &[u8] = b"acefhiklmntuvxBET";
    let (mut at, mut has_command) = (1, false);
    loop {
        match *argv.get(at)? {
            b"-" | b"--" => {
                at += 1;
                break;
            }
            word if WORDS.contains(&word) => at += 1,
            [sign @ (b'-' | b'+'), letters @ ..] => {
                let named = letters.strip_suffix(b"o").or_else(|| letters.strip_suffix(b"O"));
                let flags = named.unwrap_or(letters);
                flags.iter().all(|letter| LETTERS.contains(letter)).then_some(())?;
                has_command |= *sign == b'-' && flags.contains(&b'c');
                at += 1 + usize::from(named.is_some());
            }
            _ => break,
        }
    }
    let text = argv.get(at).filter(|_| has_command)?;
    Some(ShellCall { options: &argv[1..at], text, positional: &argv[at + 1..] })
}

#[cfg(test)]
mod tests;
