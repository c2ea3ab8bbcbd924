//! Claude Code's shell calls. The model's text is one quoted word; the rest is Claude Code's.
//!
//! What comes before the model's text is read step by step, in any order and number, so that a release may add a name to one
//! of them: it switches options off, removes definitions, sets variables. Each step is known to execute nothing, or is shown.
//!
//! Measured with 2.1.197, 2.1.250, 2.1.329 and 2.1.331, in bash and zsh; with the sandbox 2.1.329.

mod snapshot;

use snapshot::KnownScript;

use super::scan::{Rest, all};
use super::{Caller, Short};

/// The end of each step that may fail.
const OR_TRUE: &[u8] = b" 2>/dev/null || true && ";

/// The start of all sandboxed calls: it closes the descriptor of the sandbox's helper.
const SANDBOX: &[u8] = b"exec 3<&- || exit 126; ";
/// The text before the port of the sandbox's proxy …
const PROXY: &[u8] = b"export GIT_CONFIG_PARAMETERS=\"${GIT_CONFIG_PARAMETERS:+${GIT_CONFIG_PARAMETERS} }\
                       'credential.http://127.0.0.1:";
/// … and after it.
const NO_HELPER: &[u8] = b".helper='\" && ";

/// The script of the outer shell in the sandbox: it waits for the two ways to the proxy.
const SANDBOX_SCRIPT: &[u8] = include_bytes!("claude-sandbox.sh");
/// The text before the shell that the sandbox's helper starts with the command.
const HELPER: &[u8] = b"SRT_ALLOW_NESTED_USERNS=0 ARGV0=apply-seccomp /proc/self/fd/3 ";

pub(super) fn wrapper(text: &[u8], caller: &Caller<'_>) -> Option<Short> {
    match helped(text, caller) {
        Some(text) => plain(&text, caller).filter(|short| short.is_sandboxed),
        None => plain(text, caller),
    }
}

/// Removes the shell around the helper of the sandbox. It calls the caller's own shell twice, one inside the other. Without
/// the helper, where the sandbox allows all sockets, the inner one evaluates the text.
fn helped(text: &[u8], caller: &Caller<'_>) -> Option<Vec<u8>> {
    let script = text_for_shell(Rest(text), caller)?;
    let mut rest = Rest(&script);
    while way_to_proxy(&mut rest).is_some() {}
    rest.like(SANDBOX_SCRIPT)?;
    if rest.literal(b"eval ").is_some() {
        let text = rest.word()?;
        rest.end()?;
        return Some(text);
    }
    rest.literal(HELPER)?;
    text_for_shell(rest, caller)
}

/// The argument of `-c` in a call of the caller's own shell; `None` if there is anything else.
fn text_for_shell(mut rest: Rest<'_>, caller: &Caller<'_>) -> Option<Vec<u8>> {
    rest.word().filter(|shell| is_own_shell(shell, caller))?;
    rest.literal(b" -c ")?;
    let text = rest.word()?;
    rest.end()?;
    Some(text)
}

/// Returns true if this is the caller's shell, or the one that Claude Code is set to.
fn is_own_shell(path: &[u8], caller: &Caller<'_>) -> bool {
    caller.is_shell(path) || caller.var("CLAUDE_CODE_SHELL").is_some_and(|set| set.starts_with(b"/") && set == path)
}

/// Removes a listener on a port that passes everything to the proxy's socket, and the variable with its number. Neither a
/// port nor a path without a comma can execute anything.
fn way_to_proxy(rest: &mut Rest<'_>) -> Option<()> {
    let is_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let mut way = *rest;
    way.literal(b"{ socat TCP6-LISTEN:")?;
    let port = way.until(b',').filter(|port| all(port, 1, u8::is_ascii_digit))?;
    way.literal(b",ipv6only=0,fork,reuseaddr,backlog=4096 UNIX-CONNECT:")?;
    let socket = way.until(b' ').filter(|socket| all(socket, 1, is_path))?;
    way.literal(b" || exec socat TCP4-LISTEN:")?;
    way.literal(&[port, b",fork,reuseaddr,backlog=4096 UNIX-CONNECT:", socket].concat())?;
    way.literal(b"; } >/dev/null 2>&1 &\n_srt_")?;
    way.name()?;
    way.literal(b"=$!\n")?;
    *rest = way;
    Some(())
}

fn plain(text: &[u8], caller: &Caller<'_>) -> Option<Short> {
    let mut rest = Rest(text);
    let is_sandboxed = rest.literal(SANDBOX).is_some();
    let mut short = Short { is_sandboxed, ..Short::default() };
    while rest.literal(b"eval ").is_none() {
        step(&mut rest, caller, &mut short)?;
    }
    let command = rest.word()?;
    let _ = rest.literal(b" < /dev/null");
    rest.literal(b" && pwd -P >| ")?;
    let file = rest.word()?;
    rest.end()?;
    is_directory_file(&file).then(|| short.with(&command))?
}

/// Removes one step before the model's text.
fn step(rest: &mut Rest<'_>, caller: &Caller<'_>, short: &mut Short) -> Option<()> {
    if rest.literal(b"source ").is_some() {
        let snapshot = rest.word()?;
        rest.literal(OR_TRUE)?;
        short.show_unless(is_snapshot(&snapshot, caller), b"source ", &snapshot, b" 2>/dev/null || true");
        return Some(());
    }
    if short.is_sandboxed && rest.literal(PROXY).is_some() {
        rest.until(b'.').filter(|port| all(port, 1, u8::is_ascii_digit))?;
        return rest.literal(NO_HELPER);
    }
    if short.is_sandboxed && rest.literal(b"export ").is_some() {
        return variable(rest, short);
    }
    if rest.literal(b"{ ").is_some() {
        return definitions(rest);
    }
    let _ = rest.any_of(&[b"\\builtin ", b"builtin "]);
    options(rest, short)
}

/// Removes a variable of the sandbox. A folder for temporary files can execute nothing; another variable is shown.
fn variable(rest: &mut Rest<'_>, short: &mut Short) -> Option<()> {
    let name = rest.name()?;
    rest.literal(b"=")?;
    let value = rest.word()?;
    rest.literal(b" && ")?;
    short.show_unless(name == b"TMPDIR", &[b"export ", name, b"="].concat(), &value, b"");
    Some(())
}

/// Removes a group that deletes definitions of a user's profile: aliases and functions, by their names.
fn definitions(rest: &mut Rest<'_>) -> Option<()> {
    loop {
        let _ = rest.any_of(&[b"\\builtin ", b"builtin "]);
        rest.any_of(&[b"unalias -- ", b"unset -f -- "])?;
        rest.word()?;
        rest.literal(b"; ")?;
        if rest.literal(b"} >/dev/null 2>&1 || true && ").is_some() {
            return Some(());
        }
    }
}

/// Removes a list of options that are switched off. Options that are switched on are shown, because they may make the
/// shell execute more than is seen, as `PROMPT_SUBST` does.
fn options(rest: &mut Rest<'_>, short: &mut Short) -> Option<()> {
    let setter: &[u8] =
        [&b"shopt -u"[..], b"setopt", b"unsetopt"].into_iter().find(|setter| rest.literal(setter).is_some())?;
    let mut names = Vec::new();
    while rest.literal(OR_TRUE).is_none() {
        rest.literal(b" ")?;
        names.push(rest.name()?);
    }
    // zsh ignores `_` and case in a name; `no` before it inverts the meaning.
    let is_turned =
        |name: &&[u8]| name.iter().filter(|byte| **byte != b'_').take(2).map(u8::to_ascii_lowercase).eq(*b"no");
    let is_off = match setter {
        b"shopt -u" => names.iter().all(|name| !name.iter().any(u8::is_ascii_uppercase)).then_some(true)?,
        b"setopt" => names.iter().all(is_turned),
        _ => !names.iter().any(is_turned),
    };
    if !is_off {
        short.before.extend([setter, b" ", &names.join(&b' '), b"; "].concat());
    }
    (!names.is_empty()).then_some(())
}

/// Returns true if this is a file to which Claude Code wrote the user's functions and aliases.
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

/// Returns true if this is a file from which Claude Code reads the directory after a command.
fn is_directory_file(path: &[u8]) -> bool {
    let name = path.strip_prefix(b"/").and_then(|path| path.rsplit(|byte| *byte == b'/').next());
    // The second form is that of the sandbox.
    let hex = name.and_then(|name| {
        name.strip_prefix(b"claude-").and_then(|name| name.strip_suffix(b"-cwd")).or_else(|| name.strip_prefix(b"cwd-"))
    });
    hex.is_some_and(|hex| all(hex, 4, u8::is_ascii_hexdigit))
}

/// Returns true if this is Claude Code's look at the shell when it starts: at the environment, or at functions and
/// aliases.
pub(super) fn is_probe(options: &[&[u8]], text: &[u8], caller: &Caller<'_>) -> bool {
    match options {
        [b"-c"] => is_harness(caller) && text == b"env",
        _ => snapshot(options, text, caller) == Some(KnownScript::Whole),
    }
}

/// The text shown for a look at functions and aliases that is known except for its program.
pub(super) fn look(options: &[&[u8]], text: &[u8], caller: &Caller<'_>) -> Option<Short> {
    let KnownScript::By(program) = snapshot(options, text, caller)? else { return None };
    Short::default().with(format!("a look at the shell; rg, find and grep become {program}").as_bytes())
}

fn snapshot(options: &[&[u8]], text: &[u8], caller: &Caller<'_>) -> Option<KnownScript> {
    (is_harness(caller) && matches!(options, [b"-c", b"-l"])).then(|| snapshot::script(text, caller))?
}

/// Returns true if this is Claude Code itself and not its model.
fn is_harness(caller: &Caller<'_>) -> bool {
    let is_own = |value: &[u8]| value.starts_with(b"claude-code") && value.ends_with(b"_harness");
    caller.var("CLAUDECODE").is_some() && caller.var("AI_AGENT").is_some_and(is_own)
}
