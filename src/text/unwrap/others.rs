//! The shell calls of Gemini CLI, opencode and Kimi Code: a beginning and an end of their own, and between them the command
//! as written.
//!
//! Measured with Gemini CLI 0.61.0, opencode 1.18.33 and Kimi Code 2.1.0.

use super::scan::{Rest, all, quoted};
use super::{Caller, Short};

/// Removes Gemini CLI's wrapper, which lists the jobs that a command leaves in the background.
pub(super) fn gemini(text: &[u8]) -> Option<Short> {
    let mut rest = Rest(text);
    rest.literal(b"shopt -u promptvars nullglob extglob nocaseglob dotglob; _bgpids_file=")?;
    let list = rest.until(b'\n')?;
    let path = list.strip_suffix(b"/bgpids.tmp")?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let folder = path.rsplit(|byte| *byte == b'/').next()?.strip_prefix(b"gemini-shell-")?;
    (path.starts_with(b"/") && all(path, 1, is_plain) && all(folder, 6, u8::is_ascii_alphanumeric)).then_some(())?;
    rest.literal(b"\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n")?;
    Short::default().with(rest.0.strip_suffix(b"\n)\n__code=$?\nexit $__code")?)
}

/// Removes opencode's wrapper of a command that a person types after `!`.
pub(super) fn opencode(options: &[&[u8]], text: &[u8], positional: &[&[u8]], caller: &Caller<'_>) -> Option<Short> {
    let ([b"-l", b"-c"], [b"opencode", dir]) = (options, positional) else { return None };
    let mut rest = Rest(text);
    rest.literal(
        b"\n        shopt -s expand_aliases\n        [[ -f ~/.bashrc ]] && source ~/.bashrc >/dev/null 2>&1 || true\n",
    )?;
    rest.literal(b"        cd -- \"$1\"\n        eval \"")?;
    let command = rest.0.strip_suffix(b"\"\n      ")?;
    let mut short = Short::default();
    short.show_unless(caller.var("PWD") == Some(dir), b"cd -- ", dir, b"");
    // The shell expands it once before it evaluates it. If more than quotes are escaped, it stays as written.
    let escapes = command.windows(2).filter(|pair| pair[0] == b'\\' && pair[1] != b'"').count();
    if escapes > 0 || command.ends_with(b"\\") {
        return short.with(&[b"eval \"", command, b"\""].concat());
    }
    short.with(&command.iter().copied().filter(|byte| *byte != b'\\').collect::<Vec<u8>>())
}

/// Removes the `cd` that Kimi Code puts before each command, if it leads to the caller's directory.
pub(super) fn kimi(text: &[u8], caller: &Caller<'_>) -> Option<Short> {
    let mut rest = Rest(text);
    rest.literal(b"cd ")?;
    let folder = rest.word().filter(|folder| folder.starts_with(b"/"))?;
    rest.literal(b" && ")?;
    (caller.var("PWD") == Some(&folder)).then_some(())?;
    Short::default().with(rest.0)
}

pub(super) fn spelled(argv: &[&[u8]]) -> Vec<u8> {
    argv.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(&b' ')
}
