//! The script with which Claude Code looks at the user's functions, aliases and options when it starts.
//!
//! Invariant: a script is known only if each of its lines is. Its output becomes part of every later command, so its
//! paths must be the caller's own, or are shown: 2.1.331 does not name its program in the environment. Blank lines and
//! comments may be others, because releases differ in those most of all.
//!
//! Measured with 2.1.329 and 2.1.331, in bash and zsh, with a profile and without.

use super::super::Caller;
use super::super::scan::{Rest, all};
use super::is_snapshot;

const SCRIPT: &str = include_str!("../claude-snapshot.sh");
const STATE_OF_BASH: &str = include_str!("../claude-snapshot-profile.sh");
const STATE_OF_ZSH: &str = include_str!("../claude-snapshot-zsh.sh");
/// The state that bash writes without a profile.
const ALIASES: &str = "      echo \"shopt -s expand_aliases\" >> \"$SNAPSHOT_FILE\"\n";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum KnownScript {
    /// Known to its last byte.
    Whole,
    /// Known except for the program that it calls in the place of others. Nothing proves that this is the caller's.
    By(String),
}

/// Returns the kind of the script if it is the one that writes this caller's snapshot.
pub(super) fn script(text: &[u8], caller: &Caller<'_>) -> Option<KnownScript> {
    let mut rest = Rest(text);
    rest.literal(b"SNAPSHOT_FILE=")?;
    let snapshot = rest.until(b'\n').filter(|path| is_snapshot(path, caller))?;
    let is_zsh = memchr::memmem::find(snapshot, b"/snapshot-zsh-").is_some();
    let end = memchr::memmem::find(text, b"'CLAUDE_CODE_END_").map(|at| &text[at + b"'CLAUDE_CODE_END_".len()..])?;
    let end = Rest(end).until(b'\'').filter(|end| all(end, 1, u8::is_ascii_alphanumeric))?;
    let named = caller.var("CLAUDE_CODE_EXECPATH");
    let program = named.or_else(|| called(text))?;
    let own = if is_zsh { ".zshrc" } else { ".bashrc" };
    let source = format!("source \"{{home}}/{own}\" < /dev/null");
    let (aliases, state) = if is_zsh { ("", STATE_OF_ZSH) } else { (ALIASES, STATE_OF_BASH) };
    let mut without = SCRIPT.replace("{profile}", "").replace("{state}", aliases);
    let mut with = SCRIPT.replace("{profile}", &source).replace("{state}", state);
    for (hole, value) in [
        ("{snapshot}", snapshot),
        ("{end}", end),
        ("{program}", program),
        ("{home}", caller.var("HOME")?),
        ("{path}", caller.var("PATH")?),
    ] {
        let value = plain(value)?;
        without = without.replace(hole, value);
        with = with.replace(hole, value);
    }
    let known = if named.is_some() { KnownScript::Whole } else { KnownScript::By(plain(program)?.to_owned()) };
    (is_alike(text, &without) || is_alike(text, &with)).then_some(known)
}

/// The program that the script calls as `rg`.
fn called(text: &[u8]) -> Option<&[u8]> {
    const BEFORE: &[u8] = b"  if [[ -x ";
    let at = memchr::memmem::find(text, BEFORE)? + BEFORE.len();
    Rest(&text[at..]).until(b' ').filter(|path| path.starts_with(b"/"))
}

/// A value without characters that a shell interprets.
fn plain(value: &[u8]) -> Option<&str> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._:+-@".contains(byte);
    std::str::from_utf8(value).ok().filter(|value| all(value.as_bytes(), 1, is_plain))
}

/// Returns true if two scripts have the same lines, except for blank ones and comments.
fn is_alike(text: &[u8], script: &str) -> bool {
    let says = |line: &&[u8]| !is_silent(line);
    text.split(|byte| *byte == b'\n').filter(says).eq(script.as_bytes().split(|byte| *byte == b'\n').filter(says))
}

/// Returns true if a line can do nothing wherever it stands. A quote in a comment would end a text that spans lines.
fn is_silent(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || (line[0] == b'#' && !line.iter().any(|byte| b"'\"`$\\".contains(byte)))
}
