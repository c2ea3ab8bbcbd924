//! The command a person would recognise, out of what an agent hands to its shell.
//!
//! Agents wrap the model's command in text of their own: Claude Code sources a snapshot and writes a directory file,
//! Codex restores variables and ends in an `exec`, Gemini CLI collects job numbers, opencode reads the user's aliases.
//! Where a wrapper is recognised, what it wraps is given; anything else is given whole. A wrapper that changes costs
//! nothing but the short form.

/// What a shell call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwrapped {
    /// The command.
    pub command: Vec<u8>,
    /// It is an agent's look at the shell and not a command of the model's.
    pub is_probe: bool,
}

/// The command in a shell's arguments, unwrapped.
pub fn unwrap<'a>(argv: impl Iterator<Item = &'a [u8]>) -> Unwrapped {
    let argv: Vec<&[u8]> = argv.collect();
    let Some(text) = command_string(&argv) else {
        return Unwrapped { command: argv.join(&b' '), is_probe: false };
    };
    let command = [claude, codex, gemini, opencode].into_iter().find_map(|wrapped| wrapped(text));
    Unwrapped { command: command.unwrap_or_else(|| text.to_vec()), is_probe: is_probe(text) }
}

/// The argument that a shell takes as its command string.
fn command_string<'a>(argv: &[&'a [u8]]) -> Option<&'a [u8]> {
    let mut arguments = argv.iter().skip(1);
    let mut has_command = false;
    while let Some(argument) = arguments.next() {
        match argument {
            [b'-' | b'+'] => continue,
            [b'-', b'-', ..] => continue,
            [sign @ (b'-' | b'+'), letters @ ..] => {
                has_command |= *sign == b'-' && letters.contains(&b'c');
                if letters.iter().any(|letter| matches!(letter, b'o' | b'O')) {
                    arguments.next();
                }
            }
            text if has_command => return Some(text),
            _ => return None,
        }
    }
    None
}

fn claude(text: &[u8]) -> Option<Vec<u8>> {
    const EVAL: &[u8] = b" eval ";
    let start = memchr::memmem::find(text, b"&& eval ").map(|at| at + 2)?;
    let tail = memchr::memmem::rfind(text, b" && pwd -P >| ")?;
    let body = text.get(start + EVAL.len()..tail)?;
    unquote(body.strip_suffix(b" < /dev/null").unwrap_or(body))
}

fn codex(text: &[u8]) -> Option<Vec<u8>> {
    if !text.starts_with(b"__CODEX_") {
        return None;
    }
    let last = memchr::memmem::rfind(text, b"\nexec '").map(|at| at + b"\nexec ".len())?;
    let mut rest = &text[last..];
    let mut words = std::iter::from_fn(|| {
        let (word, tail) = first_word(rest)?;
        rest = tail;
        Some(word)
    });
    words.find(|word| word.first() == Some(&b'-') && word.last() == Some(&b'c'))?;
    words.next()
}

fn gemini(text: &[u8]) -> Option<Vec<u8>> {
    const OPENING: &[u8] = b"' EXIT\n";
    if !text.starts_with(b"shopt -u promptvars") {
        return None;
    }
    let start = memchr::memmem::find(text, OPENING)? + OPENING.len();
    let end = memchr::memmem::rfind(text, b"\n)\n__code=$?")?;
    text.get(start..end).map(<[u8]>::to_vec)
}

/// What a person types after `!`, where the shell is called just bash.
fn opencode(text: &[u8]) -> Option<Vec<u8>> {
    const EVAL: &[u8] = b"\n        cd -- \"$1\"\n        eval ";
    let text = text.trim_ascii();
    if !text.starts_with(b"shopt -s expand_aliases\n") {
        return None;
    }
    unquote(&text[memchr::memmem::find(text, EVAL)? + EVAL.len()..])
}

/// The agents' own looks at the shell: environment, snapshots of functions and aliases, their checks.
fn is_probe(text: &[u8]) -> bool {
    let has = |needle: &[u8]| memchr::memmem::find(text, needle).is_some();
    text.starts_with(b"SNAPSHOT_FILE=")
        || (text.starts_with(b"if [ -z \"${BASH_ENV-}\" ]") && has(b"declare -f"))
        || (text.starts_with(b"set -e; . \"") && has(b"shell_snapshots/"))
}

/// A whole text that is one shell word, without its quotes.
fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let (word, rest) = first_word(text)?;
    rest.is_empty().then_some(word)
}

/// The first shell word of a text and what follows it. Expansions are left as they are written.
fn first_word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = text.trim_ascii_start();
    if rest.is_empty() {
        return None;
    }
    while let Some((&byte, tail)) = rest.split_first() {
        match byte {
            b' ' | b'\t' | b'\n' => break,
            b'\'' => {
                let end = memchr::memchr(b'\'', tail)?;
                word.extend_from_slice(&tail[..end]);
                rest = &tail[end + 1..];
            }
            b'"' => {
                let end = double_quoted(tail, &mut word)?;
                rest = &tail[end..];
            }
            b'\\' => {
                let (&escaped, tail) = tail.split_first()?;
                word.push(escaped);
                rest = tail;
            }
            _ => {
                word.push(byte);
                rest = tail;
            }
        }
    }
    Some((word, rest))
}

/// Appends what stands before the closing quote; gives the place behind it.
fn double_quoted(text: &[u8], word: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if matches!(text.get(at + 1)?, b'"' | b'\\' | b'$' | b'`') => {
                word.push(text[at + 1]);
                at += 2;
            }
            byte => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(argv: &[&str]) -> (String, bool) {
        let unwrapped = unwrap(argv.iter().map(|argument| argument.as_bytes()));
        (String::from_utf8(unwrapped.command).unwrap(), unwrapped.is_probe)
    }

    #[test]
    fn claude_codes_wrapper_comes_off() {
        let head = "source /h/.claude/shell-snapshots/snapshot-bash-1.sh 2>/dev/null || true && \\builtin shopt -u \
                    extglob 2>/dev/null || true && { \\builtin unalias -- 'which'; } >/dev/null 2>&1 || true && ";
        let tail = " && pwd -P >| /tmp/claude-1a2b-cwd";
        for (body, command) in [
            ("eval 'cargo test' < /dev/null", "cargo test"),
            ("eval pwd < /dev/null", "pwd"),
            (r#"eval 'echo '"'"'it && eval x'"'"'' < /dev/null"#, "echo 'it && eval x'"),
            ("eval 'cat <<X\na\nX'", "cat <<X\na\nX"),
        ] {
            assert_eq!(short(&["bash", "-c", &format!("{head}{body}{tail}")]), (command.into(), false));
        }
        let login = format!("\\builtin shopt -u extglob || true && eval 'make -j2' < /dev/null{tail}");
        assert_eq!(short(&["/x/rexec-bash", "-c", "-l", &login]), ("make -j2".into(), false));
    }

    #[test]
    fn codexs_and_geminis_wrappers_come_off() {
        let codex = "__CODEX_SNAPSHOT_OVERRIDE_SET_0=x\nexec 'old' -c 'no'\nexec '/x/bash' -c 'echo '\\''hi'\\'''";
        assert_eq!(short(&["bash", "-c", codex]), ("echo 'hi'".into(), false));
        let gemini = "shopt -u promptvars nullglob; _bgpids_file=/t/b\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n\
                      npm test\n)\n__code=$?\nexit $__code";
        assert_eq!(short(&["bash", "-c", gemini]), ("npm test".into(), false));
    }

    #[test]
    fn everything_else_is_given_whole() {
        assert_eq!(short(&["sh", "-c", "echo && eval 'x"]), ("echo && eval 'x".into(), false));
        assert_eq!(short(&["bash", "-lc", "ls", "name", "arg"]), ("ls".into(), false));
        assert_eq!(short(&["bash", "-o", "pipefail", "-O", "extglob", "-c", "ls"]), ("ls".into(), false));
        assert_eq!(short(&["bash", "--norc", "-c", "--", "ls"]), ("ls".into(), false));
        assert_eq!(short(&["grep", "-v", "foo", "bar"]), ("grep -v foo bar".into(), false));
        assert_eq!(short(&["bash"]), ("bash".into(), false));
    }

    #[test]
    fn probes_are_told_from_commands() {
        assert!(short(&["bash", "-c", "-l", "SNAPSHOT_FILE=/h/s.sh\nsource ~/.bashrc"]).1);
        assert!(short(&["bash", "-lc", "if [ -z \"${BASH_ENV-}\" ] && x; then . a; fi; declare -f"]).1);
        assert!(short(&["bash", "-c", "set -e; . \"/c/shell_snapshots/1.tmp-2\""]).1);
        assert!(!short(&["bash", "-c", "declare -f"]).1);
    }
}
