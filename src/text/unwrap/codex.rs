//! Codex's shell calls. The model can write the outer text too, so that must not hide anything: the wrapper is rebuilt from
//! its few variable parts and compared; parts that are not the caller's own are shown.
//!
//! Measured with 0.169.0. The wrapper saves variables, sources the snapshot of the user's shell, restores the variables
//! and ends in an `exec` of the shell with the command.

use super::scan::{Rest, all};
use super::{Caller, Short};

const PROXY: &[u8] = b"PROXY_";

pub(super) fn wrapper(text: &[u8], caller: &Caller<'_>) -> Option<Short> {
    let mut rest = Rest(text);
    let mut short = Short::default();
    let (variables, proxies) = (saved(&mut rest, b"")?, saved(&mut rest, PROXY)?);
    rest.literal(b"__CODEX_SNAPSHOT_PROXY_ENV_SET=\"${CODEX_NETWORK_PROXY_ACTIVE+x}\"\n\nif . ")?;
    let snapshot = rest.word()?;
    rest.literal(b" >/dev/null 2>&1; then :; fi\n\n")?;
    short.show_unless(is_snapshot(&snapshot, caller), b". ", &snapshot, b"");
    rest.literal(&restored(&variables, b""))?;
    rest.literal(
        b"if [ -n \"$__CODEX_SNAPSHOT_PROXY_ENV_SET\" ] || [ -n \"${CODEX_NETWORK_PROXY_ACTIVE+x}\" ]; then\n",
    )?;
    rest.literal(&restored(&proxies, PROXY))?;
    rest.literal(b"fi\n")?;
    while rest.literal(b"if [ -n \"${PATH:-}\" ]; then export PATH=").is_some() {
        let length = memchr::memmem::find(rest.0, b":\"$PATH\"; else ")?;
        let spelled = &rest.0[..length];
        let mut word = Rest(spelled);
        let folder = word.word()?;
        word.end()?;
        rest.literal(&[spelled, b":\"$PATH\"; else export PATH=", spelled, b"; fi\n"].concat())?;
        short.show_unless(is_on_path(&folder, caller), b"PATH=", &folder, b":\"$PATH\"");
    }
    rest.literal(b"\nexec ")?;
    let last = rest.0;
    let shell = rest.word()?;
    rest.literal(b" -c ")?;
    let command = rest.word()?;
    rest.end()?;
    if caller.is_shell(&shell) { short.with(&command) } else { short.with(&[b"exec ", last].concat()) }
}

/// The names of the saved variables; those of proxies are saved apart.
fn saved<'a>(rest: &mut Rest<'a>, kind: &[u8]) -> Option<Vec<&'a [u8]>> {
    let mut names = Vec::new();
    loop {
        let number = names.len().to_string();
        let variable = [b"__CODEX_SNAPSHOT_", kind, b"OVERRIDE_"].concat();
        if rest.literal(&[&variable, b"SET_".as_slice(), number.as_bytes(), b"=\"${"].concat()).is_none() {
            return Some(names);
        }
        let name = rest.name()?;
        rest.literal(b"+x}\"\n")?;
        rest.literal(&[&variable, number.as_bytes(), b"=\"${", name, b"-}\"\n"].concat())?;
        names.push(name);
    }
}

/// The lines that restore these variables.
fn restored(names: &[&[u8]], kind: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    let kind = String::from_utf8_lossy(kind);
    for (number, name) in names.iter().enumerate() {
        let name = String::from_utf8_lossy(name);
        let (set, old) = (
            format!("__CODEX_SNAPSHOT_{kind}OVERRIDE_SET_{number}"),
            format!("__CODEX_SNAPSHOT_{kind}OVERRIDE_{number}"),
        );
        text += &format!(
            "if [ -n \"${{{set}}}\" ]; then\n  \
             if [ -z \"${{{name}+x}}\" ] || [ \"${{{name}-}}\" != \"${{{old}}}\" ]; then export {name}=\"${{{old}}}\"; \
             else export {name}; fi\n\
             else builtin unset {name} 2>/dev/null || command unset {name}; fi\n\
             builtin unset {set} {old} 2>/dev/null || command unset {set} {old}\n"
        );
    }
    text.into_bytes()
}

/// Returns true if this is the snapshot that Codex wrote for the caller's session.
fn is_snapshot(path: &[u8], caller: &Caller<'_>) -> bool {
    let own = || -> Option<()> {
        let mut rest = Rest(path);
        match caller.var("CODEX_HOME") {
            Some(folder) => rest.literal(folder)?,
            None => {
                rest.literal(caller.var("HOME").filter(|home| home.starts_with(b"/"))?)?;
                rest.literal(b"/.codex")?;
            }
        }
        rest.literal(b"/shell_snapshots/")?;
        let session = rest.until(b'.')?;
        let is_session = |name| caller.var(name).is_some_and(|id| !id.is_empty() && id == session);
        (is_session("CODEX_SESSION_ID") || is_session("CODEX_THREAD_ID")).then_some(())?;
        let stamp = rest.literal(b".").and_then(|()| rest.until(b'.'))?;
        all(stamp, 1, u8::is_ascii_digit).then_some(())?;
        rest.literal(b".sh")?;
        rest.end()
    };
    own().is_some()
}

/// Returns true if this folder is in the caller's PATH.
fn is_on_path(folder: &[u8], caller: &Caller<'_>) -> bool {
    caller.var("PATH").is_some_and(|path| path.split(|byte| *byte == b':').any(|other| other == folder))
}

/// Returns true if this is Codex's first look at the shell when it starts, which never varies. The second one sources a
/// file, and is a command like any other.
pub(super) fn is_probe(options: &[&[u8]], text: &[u8]) -> bool {
    let is_login = options == [b"-lc"] || options == [b"-l", b"-c"];
    is_login && text == include_bytes!("codex-snapshot.sh")
}
