//! Claude Code's shell calls. The model's text is one quoted word; the rest is Claude Code's.
//!
//! Measured with 2.1.197 and 2.1.329, in bash; with the sandbox 2.1.329.

use super::scan::{Rest, all};
use super::{Caller, Short};

/// The options that Claude Code switches off before a command.
const OPTIONS: [&[u8]; 4] = [
    b"\\builtin shopt -u extglob 2>/dev/null || true && ",
    b"shopt -u extglob 2>/dev/null || true && ",
    b"\\builtin setopt NO_EXTENDED_GLOB 2>/dev/null || true && ",
    b"setopt NO_EXTENDED_GLOB 2>/dev/null || true && ",
];

/// The definitions of a user's profile that Claude Code removes.
const NAMES: [&[u8]; 2] = [
    b"{ \\builtin unalias -- 'which'; \\builtin unset -f -- 'which'; } >/dev/null 2>&1 || true && ",
    b"{ \\builtin unalias -- 'unsetenv'; \\builtin unset -f -- 'unsetenv'; } >/dev/null 2>&1 || true && ",
];

/// What Claude Code puts before all of it in its sandbox: the end of the descriptor of its helper.
const SANDBOX: &[u8] = b"exec 3<&- || exit 126; ";
/// Before the port of the sandbox's proxy …
const PROXY: &[u8] = b"export GIT_CONFIG_PARAMETERS=\"${GIT_CONFIG_PARAMETERS:+${GIT_CONFIG_PARAMETERS} }\
                       'credential.http://127.0.0.1:";
/// … and behind it.
const NO_HELPER: &[u8] = b".helper='\" && ";

/// What the shell around it does in the sandbox: it waits for the two ways to the proxy.
const SANDBOX_SCRIPT: &[u8] = include_bytes!("claude-sandbox.sh");
/// Before the shell that the sandbox's helper starts with the command.
const HELPER: &[u8] = b"SRT_ALLOW_NESTED_USERNS=0 ARGV0=apply-seccomp /proc/self/fd/3 ";

/// Removes the wrapper from the command.
pub(super) fn wrapper(text: &[u8], caller: &Caller<'_>) -> Option<Short> {
    match helped(text, caller) {
        Some(text) => plain(&text, caller).filter(|short| short.is_sandboxed),
        None => plain(text, caller),
    }
}

/// Removes the shell around the helper of the sandbox. It calls the caller's own shell twice, one inside the other.
fn helped(text: &[u8], caller: &Caller<'_>) -> Option<Vec<u8>> {
    let script = text_for_shell(Rest(text), caller)?;
    let mut rest = Rest(&script);
    way_to_proxy(&mut rest, b"_srt_http=$!\n")?;
    way_to_proxy(&mut rest, b"_srt_socks=$!\n")?;
    rest.literal(SANDBOX_SCRIPT)?;
    rest.literal(HELPER)?;
    text_for_shell(rest, caller)
}

/// The text that the caller's own shell is called with, if there is nothing else.
fn text_for_shell(mut rest: Rest<'_>, caller: &Caller<'_>) -> Option<Vec<u8>> {
    rest.word().filter(|shell| is_own_shell(shell, caller))?;
    rest.literal(b" -c ")?;
    let text = rest.word()?;
    rest.end()?;
    Some(text)
}

/// Whether this is the caller's shell, or the one that Claude Code is set to.
fn is_own_shell(path: &[u8], caller: &Caller<'_>) -> bool {
    caller.is_shell(path) || caller.var("CLAUDE_CODE_SHELL").is_some_and(|set| set.starts_with(b"/") && set == path)
}

/// Removes a listener on a port that passes everything to the proxy's socket. Neither a port nor a path without a comma
/// can execute anything.
fn way_to_proxy(rest: &mut Rest<'_>, name: &[u8]) -> Option<()> {
    let is_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    rest.literal(b"{ socat TCP6-LISTEN:")?;
    let port = rest.until(b',').filter(|port| all(port, 1, u8::is_ascii_digit))?;
    rest.literal(b",ipv6only=0,fork,reuseaddr,backlog=4096 UNIX-CONNECT:")?;
    let socket = rest.until(b' ').filter(|socket| all(socket, 1, is_path))?;
    rest.literal(b" || exec socat TCP4-LISTEN:")?;
    rest.literal(&[port, b",fork,reuseaddr,backlog=4096 UNIX-CONNECT:", socket].concat())?;
    rest.literal(b"; } >/dev/null 2>&1 &\n")?;
    rest.literal(name)
}

fn plain(text: &[u8], caller: &Caller<'_>) -> Option<Short> {
    let mut rest = Rest(text);
    let is_sandboxed = rest.literal(SANDBOX).is_some();
    let mut short = Short { is_sandboxed, ..Short::default() };
    if rest.literal(b"source ").is_some() {
        let snapshot = rest.word()?;
        rest.literal(b" 2>/dev/null || true && ")?;
        short.show_unless(is_snapshot(&snapshot, caller), b"source ", &snapshot, b" 2>/dev/null || true");
    }
    if is_sandboxed {
        of_sandbox(&mut rest)?;
    }
    let _ = rest.any_of(&OPTIONS);
    NAMES.iter().for_each(|name| {
        let _ = rest.literal(name);
    });
    rest.literal(b"eval ")?;
    let command = rest.word()?;
    let _ = rest.literal(b" < /dev/null");
    rest.literal(b" && pwd -P >| ")?;
    let file = rest.word()?;
    rest.end()?;
    is_directory_file(&file).then(|| short.with(&command))?
}

/// Removes the variables of the sandbox. Neither a folder nor a port can execute anything.
fn of_sandbox(rest: &mut Rest<'_>) -> Option<()> {
    if rest.literal(b"export TMPDIR=").is_some() {
        rest.word()?;
        rest.literal(b" && ")?;
    }
    if rest.literal(PROXY).is_some() {
        rest.until(b'.').filter(|port| all(port, 1, u8::is_ascii_digit))?;
        rest.literal(NO_HELPER)?;
    }
    Some(())
}

/// Whether this is a file to which Claude Code wrote the user's functions and aliases.
fn is_snapshot(path: &[u8], caller: &Caller<'_>) -> bool {
    let own = || -> Option<()> {
        let mut rest = Rest(path);
        match caller.var("CLAUDE_CONFIG_DIR") {
            Some(folder) => rest.literal(folder)?,
            None => {
                rest.literal(caller.var("HOME").filter(|home| home.starts_with(b"/"))?)?;
                rest.literal(b"/.claude")?;
            }
        }
        rest.literal(b"/shell-snapshots/snapshot-")?;
        rest.any_of(&[b"bash-", b"zsh-"])?;
        let stamp = rest.until(b'-').filter(|stamp| all(stamp, 1, u8::is_ascii_digit));
        stamp.and_then(|_| rest.literal(b"-"))?;
        let random = rest.until(b'.').filter(|random| all(random, 1, u8::is_ascii_alphanumeric));
        random.and_then(|_| rest.literal(b".sh"))?;
        rest.end()
    };
    own().is_some()
}

/// Whether this is a file from which Claude Code reads the directory after a command.
fn is_directory_file(path: &[u8]) -> bool {
    let name = path.strip_prefix(b"/").and_then(|path| path.rsplit(|byte| *byte == b'/').next());
    // The second form is that of the sandbox.
    let hex = name.and_then(|name| {
        name.strip_prefix(b"claude-").and_then(|name| name.strip_suffix(b"-cwd")).or_else(|| name.strip_prefix(b"cwd-"))
    });
    hex.is_some_and(|hex| all(hex, 4, u8::is_ascii_hexdigit))
}

/// Whether this is Claude Code's look at the shell when it starts: at the environment, or at functions and aliases.
pub(super) fn is_probe(options: &[&[u8]], text: &[u8], caller: &Caller<'_>) -> bool {
    let is_harness = |value: &[u8]| value.starts_with(b"claude-code") && value.ends_with(b"_harness");
    if caller.var("CLAUDECODE").is_none() || !caller.var("AI_AGENT").is_some_and(is_harness) {
        return false;
    }
    match options {
        [b"-c"] => text == b"env",
        [b"-c", b"-l"] => snapshot_script(text, caller).is_some_and(|script| script == text),
        _ => false,
    }
}

/// The script that writes this caller's snapshot, with the user's profile if there is one. Its paths become functions of
/// every later command, so they must be the caller's own.
fn snapshot_script(text: &[u8], caller: &Caller<'_>) -> Option<Vec<u8>> {
    const SCRIPT: &str = include_str!("claude-snapshot.sh");
    const OF_PROFILE: &str = include_str!("claude-snapshot-profile.sh");
    const NO_PROFILE: &str = "# No user config file to source";
    let mut rest = Rest(text);
    rest.literal(b"SNAPSHOT_FILE=")?;
    let snapshot = rest.until(b'\n').filter(|path| is_snapshot(path, caller))?;
    let end = memchr::memmem::find(text, b"'CLAUDE_CODE_END_").map(|at| &text[at + b"'CLAUDE_CODE_END_".len()..])?;
    let end = Rest(end).until(b'\'').filter(|end| all(end, 1, u8::is_ascii_alphanumeric))?;
    let has_profile = memchr::memmem::find(text, NO_PROFILE.as_bytes()).is_none();
    let (profile, state) = match has_profile {
        true => ("source \"{home}/.bashrc\" < /dev/null", OF_PROFILE),
        false => (NO_PROFILE, "      echo \"shopt -s expand_aliases\" >> \"$SNAPSHOT_FILE\"\n\n      \n"),
    };
    let mut script = SCRIPT.replace("{profile}", profile).replace("{state}", state);
    let plain = |value: &[u8]| {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._:+-@".contains(byte);
        all(value, 1, is_plain).then(|| String::from_utf8_lossy(value).into_owned())
    };
    for (hole, value) in [
        ("{snapshot}", snapshot),
        ("{end}", end),
        ("{program}", caller.var("CLAUDE_CODE_EXECPATH")?),
        ("{home}", caller.var("HOME")?),
        ("{path}", caller.var("PATH")?),
    ] {
        script = script.replace(hole, &plain(value)?);
    }
    Some(script.into_bytes())
}
