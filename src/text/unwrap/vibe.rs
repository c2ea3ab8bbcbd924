//! Mistral Vibe's shell calls: a sh asks the kernel to end it first when memory is short, and executes the shell, which
//! reads what the user's profile has defined, and then the command.
//!
//! Measured with Mistral Vibe 3.0.2.

use super::scan::{Rest, all};
use super::{Caller, Short};

/// The commands of the sh before the shell.
const FIRST: &[u8] = b"{ echo 1000 >/proc/self/oom_score_adj; } 2>&-; exec \"$0\" \"$@\"";

/// Removes both shells.
pub(super) fn wrapper(options: &[&[u8]], text: &[u8], positional: &[&[u8]], caller: &Caller<'_>) -> Option<Short> {
    let ([b"-c"], [shell, b"-c", inner]) = (options, positional) else { return None };
    (text == FIRST && caller.is_shell(shell)).then_some(())?;
    let mut short = Short::default();
    let mut rest = Rest(inner);
    let Some(file) = profile(&mut rest) else { return short.with(inner) };
    short.show_unless(is_snapshot(&file, caller), b". ", &file, b"");
    if shell.ends_with(b"zsh") {
        // It reads all of its text before it executes any of it, so the command comes later.
        rest.literal(b"eval ")?;
        let command = rest.word()?;
        rest.end()?;
        return short.with(&command);
    }
    short.with(rest.0)
}

/// Takes the line that reads what the profile has defined. Returns the file, or `None` if the text has no such line.
fn profile(rest: &mut Rest<'_>) -> Option<Vec<u8>> {
    let mut line = *rest;
    line.literal(b"{ [ -r ")?;
    let file = line.word()?;
    line.literal(b" ] && . ")?;
    (line.word()? == file).then_some(())?;
    line.literal(b"; } 2>&-\n")?;
    *rest = line;
    Some(file)
}

/// Returns true if Vibe itself has written this file, in its own folder for temporary files.
fn is_snapshot(path: &[u8], caller: &Caller<'_>) -> bool {
    const FOLDERS: [&[u8]; 2] = [b"/mistralai-vibe-login-shell-", b"/mistralai-vibe-session-"];
    let below = |path: &'_ [u8]| -> Option<()> {
        let path = path.strip_prefix(caller.var("TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or(b"/tmp"))?;
        let mut rest = Rest(FOLDERS.iter().find_map(|folder| path.strip_prefix(*folder))?);
        let folder = rest.until(b'/')?;
        rest.literal(b"/login-shell-")?;
        let key = rest.0.strip_suffix(b".sh")?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        (all(folder, 1, is_plain) && all(key, 32, u8::is_ascii_hexdigit)).then_some(())
    };
    below(path).is_some()
}

/// Returns true if this is Vibe's look at the definitions of the user's profile. It varies in one random number.
pub(super) fn is_probe(options: &[&[u8]], text: &[u8]) -> bool {
    const DEFINED: [&[u8]; 2] = [
        b"{ functions; alias -L; } 2>&-; ",
        b"{ shopt -q extglob && printf '%s\\n' 'shopt -s extglob'; declare -f; alias -p; } 2>&-; ",
    ];
    let own = || {
        let mut rest = Rest(text);
        rest.literal(b"printf '%s' ")?;
        let mark = rest.until(b';')?;
        let number = mark.strip_prefix(b"mistralai-vibe-login-env-")?;
        all(number, 16, u8::is_ascii_hexdigit).then_some(())?;
        rest.literal(b"; ")?;
        // A plain sh defines nothing.
        let _ = rest.any_of(&DEFINED);
        rest.literal(b"printf '%s' ")?;
        rest.literal(mark)?;
        rest.literal(
            b"; [ -x /usr/bin/env ] && exec /usr/bin/env -0; [ -x /bin/env ] && exec /bin/env -0; exec env -0",
        )?;
        rest.end()
    };
    options == [b"-lc"] && own().is_some()
}
