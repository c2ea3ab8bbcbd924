//! The environment of a command: the rules by which a caller's environment travels, for the shim and for the host's own
//! (JSONL) alike. They work on `NAME=value` byte strings and are pure.
//!
//! Invariants: an entry that no rule names passes unchanged and in its order, as with execve(2); also entries without `=`
//! or without a name, repeated ones, and bytes that are not text. The rules look at names only, and at the values of
//! `BASH_ENV` and `SHELL`.
//!
//! [`DEFAULTS`] exist because a command with a terminal that its caller lacks would start pagers that wait for a key.
//! [`LIVE`] exists because runtimes buffer output to a pipe. Only the host knows where the output goes, so the guard
//! adds both where it starts the shell.

use std::ffi::{CStr, CString};

use crate::protocol::mark::INSIDE;
use crate::protocol::run_changes::{RunChanges, SET, Undone};

/// Added for a command whose output is a terminal, unless its caller has set the name.
pub const DEFAULTS: [&CStr; 7] = [
    c"PAGER=cat",
    c"GIT_PAGER=cat",
    c"GH_PAGER=cat",
    c"MANPAGER=cat",
    c"SYSTEMD_PAGER=cat",
    c"AWS_PAGER=",
    c"TERM=xterm-256color",
];

/// Added for a command whose output is a pipe, if that is wanted, unless its caller has set the name. With these
/// variables a runtime does not buffer its standard output: see "Command line and environment" in Python's manual and
/// "Runtime" in GNU Fortran's.
pub const LIVE: [&CStr; 2] = [c"PYTHONUNBUFFERED=1", c"GFORTRAN_UNBUFFERED_PRECONNECTED=y"];

/// The fate of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Keep,
    /// It does not pass.
    Drop,
    /// It is a `SHELL` that leads to the shim. The real shell's path takes its place.
    Shell,
}

/// The rules for one command.
#[derive(Debug, Clone)]
pub struct Rules<'a> {
    /// The entry that takes the place of a `SHELL` that leads to the shim.
    shell: CString,
    /// A `SHELL` that leads to the shim although its name does not say so.
    link: &'a [u8],
    drop: &'a [u8],
    changes: RunChanges<'a>,
    /// The entry that takes the place of a `PATH` with one of rexec's folders.
    path: Option<CString>,
}

impl<'a> Rules<'a> {
    /// Rules for a command whose `SHELL` would be this path without rexec. `drop` is the value of `REXEC_ENV_DROP`.
    #[must_use]
    pub fn new(shell: &[u8], drop: &'a [u8]) -> Self {
        let shell = CString::new([b"SHELL=", shell].concat()).expect("it comes from C strings");
        Self { shell, link: &[], drop, changes: RunChanges::default(), path: None }
    }

    /// The rules for a caller whose `SHELL` is this path, which leads to the shim under any name.
    #[must_use]
    pub fn with_link(self, link: &'a [u8]) -> Self {
        Self { link, ..self }
    }

    /// The rules for a caller with these changes to its environment. `path` is the entry for its `PATH`, if that has
    /// one of rexec's folders.
    #[must_use]
    pub fn undoing(self, changes: RunChanges<'a>, path: Option<CString>) -> Self {
        Self { changes, path, ..self }
    }

    #[must_use]
    pub fn fate(&self, entry: &[u8]) -> Fate {
        let name = name(entry);
        let ours = match entry.first() {
            Some(b'R') => name.starts_with(b"REXEC_"),
            Some(b'C') => entry.strip_prefix(b"CLAUDE_CODE_SHELL=").is_some_and(|path| self.is_ours(path)),
            Some(b'B' | b'Z') => is_recipe(entry),
            _ => false,
        };
        if ours || is_listed(name, self.drop) {
            Fate::Drop
        } else if entry.strip_prefix(b"SHELL=").is_some_and(|path| self.is_ours(path)) {
            Fate::Shell
        } else {
            Fate::Keep
        }
    }

    fn is_ours(&self, shell: &[u8]) -> bool {
        names_shim(shell) || (!shell.is_empty() && shell == self.link)
    }

    /// The environment of the command: the caller's by the rules, then the additions.
    #[must_use]
    pub fn apply<'s>(&'s self, entries: impl IntoIterator<Item = &'s CStr>) -> Vec<&'s CStr> {
        let entries = entries.into_iter();
        let mut env = Vec::with_capacity(entries.size_hint().0 + 1);
        for entry in entries {
            let entry = match self.changes.undo(entry) {
                Undone::Same => entry,
                Undone::Own(own) if !is_listed(name(own.to_bytes()), self.drop) => {
                    env.push(own);
                    continue;
                }
                Undone::Own(_) | Undone::Gone => continue,
            };
            match self.fate(entry.to_bytes()) {
                Fate::Keep => env.push(self.path_for(entry)),
                Fate::Drop => {}
                Fate::Shell => env.push(&*self.shell),
            }
        }
        env.push(INSIDE);
        env
    }
}

impl Rules<'_> {
    /// The environment of a command string that runs in its caller's place, because no host runs it. rexec's own variables
    /// stay: a shim that it calls needs them.
    #[must_use]
    pub fn apply_in_place<'s>(&'s self, entries: &[&'s CStr]) -> Vec<&'s CStr> {
        let applied = |entry: &&'s CStr| match self.changes.undo(entry) {
            Undone::Gone => None,
            Undone::Own(own) => Some(own),
            Undone::Same if is_recipe(entry.to_bytes()) => None,
            // A shim below would undo the changes again.
            Undone::Same if name(entry.to_bytes()) == SET.as_bytes() => None,
            Undone::Same if self.fate(entry.to_bytes()) == Fate::Shell => Some(&*self.shell),
            Undone::Same => Some(self.path_for(entry)),
        };
        entries.iter().filter_map(applied).collect()
    }

    /// The entry, or its replacement if it is `PATH`.
    fn path_for<'s>(&'s self, entry: &'s CStr) -> &'s CStr {
        self.path.as_deref().filter(|_| entry.to_bytes().starts_with(b"PATH=")).unwrap_or(entry)
    }
}

/// The defaults whose names this environment leaves unset.
pub fn missing<'s, const N: usize>(
    defaults: [&'static CStr; N],
    entries: impl IntoIterator<Item = &'s CStr>,
) -> impl Iterator<Item = &'static CStr> {
    let mut unset = [true; N];
    for default in entries.into_iter().filter_map(|entry| default_of(&defaults, entry.to_bytes())) {
        unset[default] = false;
    }
    defaults.into_iter().zip(unset).filter_map(|(default, unset)| unset.then_some(default))
}

/// Returns true if an entry is the recipe that makes bash or zsh hand its commands to the shim: a `BASH_ENV` whose
/// file, or a `ZDOTDIR` whose folder is ours. Such a shell would return to the shim again and again, so no real shell
/// ever gets it from us.
#[must_use]
pub fn is_recipe(entry: &[u8]) -> bool {
    entry.strip_prefix(b"BASH_ENV=").or_else(|| entry.strip_prefix(b"ZDOTDIR=")).is_some_and(|path| {
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        file.starts_with(b"rexec")
    })
}

/// Returns true if a path names the shim, or one of the links that are installed with it.
#[must_use]
pub fn names_shim(path: &[u8]) -> bool {
    let is_link = path.rsplit(|&byte| byte == b'/').next().is_some_and(|file| file.starts_with(b"rexec-"));
    is_link || path.ends_with(b"/bash-only/bash")
}

/// The name of an entry: the part before its first `=`, or all of it without one.
fn name(entry: &[u8]) -> &[u8] {
    let end = entry.iter().position(|&byte| byte == b'=').unwrap_or(entry.len());
    &entry[..end]
}

/// The default that this entry makes needless.
fn default_of(defaults: &[&CStr], entry: &[u8]) -> Option<usize> {
    // Most entries are none of them, which their first byte shows.
    if !matches!(entry.first(), Some(b'P' | b'G' | b'M' | b'S' | b'A' | b'T')) {
        return None;
    }
    let name = name(entry);
    defaults.iter().position(|default| name.len() < entry.len() && self::name(default.to_bytes()) == name)
}

/// Returns true if a name matches one of the globs in a list separated by `:`, `,` or blanks.
fn is_listed(name: &[u8], list: &[u8]) -> bool {
    list.split(|byte| matches!(byte, b':' | b',' | b' ' | b'\t' | b'\n'))
        .any(|glob| !glob.is_empty() && matches_glob(name, glob))
}

/// Returns true if a name matches a glob of `*` (any bytes) and `?` (any one byte).
#[must_use]
pub fn matches_glob(name: &[u8], glob: &[u8]) -> bool {
    let (mut n, mut g) = (0, 0);
    // The place to go on if the text after the last `*` did not match: with one byte more for the `*`.
    let mut retry = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                retry = Some((n, g));
                g += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => {
                n += 1;
                g += 1;
            }
            _ => match retry {
                Some((start, star)) => {
                    retry = Some((start + 1, star));
                    n = start + 1;
                    g = star + 1;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(drop: &str) -> Rules<'_> {
        Rules::new(b"/bin/bash", drop.as_bytes())
    }

    fn applied(rules: &Rules<'_>, entries: &[&CStr]) -> Vec<CString> {
        rules.apply(entries.iter().copied()).into_iter().map(CStr::to_owned).collect()
    }

    #[test]
    fn our_own_variables_and_recipes_do_not_travel() {
        let rules = rules("");
        for entry in [
            "REXEC_SOCKET=/x",
            "REXEC_=",
            "REXEC_ENV_DROP=A",
            "REXEC_NO_VALUE",
            "CLAUDE_CODE_SHELL=/x/rexec-bash",
            "CLAUDE_CODE_SHELL=/x/bash-only/bash",
            "BASH_ENV=/usr/lib/rexec/rexec-env",
            "BASH_ENV=rexec.sh",
            "ZDOTDIR=/run/x/shells/rexec-zdotdir",
        ] {
            assert_eq!(rules.fate(entry.as_bytes()), Fate::Drop, "{entry}");
        }
    }

    #[test]
    fn what_rexec_run_changed_is_as_the_user_has_it() {
        let path = Some(c"PATH=/bin".to_owned());
        let rules = rules("SECRET").undoing(RunChanges(b"BASH_ENV:SHLVL:CLAUDE_CODE_SHELL:SECRET"), path);
        let entries = [
            c"BASH_ENV=/run/x/shells/rexec-env.sh",
            c"REXEC_OWN_BASH_ENV=/mine.sh",
            c"PATH=/run/x/shells/bash-only:/bin",
            c"PATHS=/x",
            c"SHLVL=1",
            c"CLAUDE_CODE_SHELL=/run/x/shells/rexec-bash",
            c"REXEC_OWN_CLAUDE_CODE_SHELL=/bin/zsh",
            c"REXEC_OWN_SECRET=/x",
            c"REXEC_OWN_PATH=/x",
            c"REXEC_RUN_SET=BASH_ENV",
        ];
        let expected = [c"BASH_ENV=/mine.sh", c"PATH=/bin", c"PATHS=/x", c"CLAUDE_CODE_SHELL=/bin/zsh", INSIDE];
        assert_eq!(applied(&rules, &entries), expected.map(CStr::to_owned));
    }

    #[test]
    fn a_command_that_runs_in_place_keeps_rexecs_variables_and_gets_the_real_shell() {
        let path = Some(c"PATH=/bin".to_owned());
        let rules = rules("SECRET").with_link(b"/y").undoing(RunChanges(b"SHLVL:ZDOTDIR"), path);
        let entries = [
            c"REXEC_SOCKET=/x",
            c"REXEC_RUN_SET=SHLVL:ZDOTDIR",
            c"SHLVL=1",
            c"ZDOTDIR=/run/x/shells/rexec-zdotdir",
            c"REXEC_OWN_ZDOTDIR=/mine",
            c"BASH_ENV=/run/x/shells/rexec-env.sh",
            c"PATH=/run/x/shells/bash-only:/bin",
            c"SHELL=/y",
            c"SHELL=/x/rexec-bash",
            c"SHELL=/bin/zsh",
            c"SECRET=1",
            c"NO_VALUE",
        ];
        let expected = [
            c"REXEC_SOCKET=/x",
            c"ZDOTDIR=/mine",
            c"PATH=/bin",
            c"SHELL=/bin/bash",
            c"SHELL=/bin/bash",
            c"SHELL=/bin/zsh",
            c"SECRET=1",
            c"NO_VALUE",
        ];
        assert_eq!(rules.apply_in_place(&entries), expected);
    }

    #[test]
    fn everything_else_travels_as_it_is() {
        let rules = rules("");
        for entry in [
            &b"REXEC=1"[..],
            b"rexec_socket=/x",
            b"BASH_ENV=/rexec/env",
            b"CLAUDE_CODE_SHELL=/bin/zsh",
            b"BASH_ENV=",
            b"ZDOTDIR=/srv/x/.config/zsh",
            b"BASH_ENVX=rexec",
            b"LD_PRELOAD=/x.so",
            b"BASH_FUNC_ls%%=() { :; }",
            b"A=",
            b"B=\xff\xfe=",
            b"NO_VALUE",
            b"SHELL",
            b"=nameless",
            b"",
            b"TERM=dumb",
            b"SHELLOPTS=x",
        ] {
            assert_eq!(rules.fate(entry), Fate::Keep, "{}", entry.escape_ascii());
        }
    }

    #[test]
    fn the_order_and_double_names_stay() {
        let entries = [c"Z=1", c"A=1", c"Z=2", c"NO_VALUE", c"=x", c"SHELL=/x/rexec-bash", c"SHELL=/y", c"SHELL=/z"];
        let expected =
            [c"Z=1", c"A=1", c"Z=2", c"NO_VALUE", c"=x", c"SHELL=/bin/bash", c"SHELL=/bin/bash", c"SHELL=/z", INSIDE];
        assert_eq!(applied(&rules("").with_link(b"/y"), &entries), expected.map(CStr::to_owned));
    }

    #[test]
    fn defaults_fill_only_what_is_unset() {
        let env = [c"PAGER=less", c"AWS_PAGER=", c"TERM=dumb", c"GH_PAGER", c"MANPAGERS=x"];
        let added: Vec<&CStr> = missing(DEFAULTS, env).collect();
        assert_eq!(added, [c"GIT_PAGER=cat", c"GH_PAGER=cat", c"MANPAGER=cat", c"SYSTEMD_PAGER=cat"]);
        assert_eq!(missing(DEFAULTS, []).count(), DEFAULTS.len());
        assert_eq!(missing(LIVE, [c"PYTHONUNBUFFERED=", c"PAGER=x"]).collect::<Vec<_>>(), LIVE[1..]);
    }

    #[test]
    fn a_default_may_take_the_place_of_what_was_dropped() {
        let rules = rules("PAGER");
        let env = applied(&rules, &[c"PAGER=less"]);
        assert!(!env.contains(&c"PAGER=less".to_owned()));
        assert!(missing(DEFAULTS, env.iter().map(|entry| &**entry)).any(|default| default == c"PAGER=cat"));
    }

    #[test]
    fn a_listed_name_is_dropped_by_any_separator() {
        let rules = rules("*_TOKEN:AWS_*,SECRET  X?Z\tEXACT:");
        for name in ["GITHUB_TOKEN", "_TOKEN", "AWS_", "AWS_KEY", "SECRET", "XYZ", "EXACT"] {
            assert_eq!(rules.fate(format!("{name}=v").as_bytes()), Fate::Drop, "{name}");
        }
        for name in ["GITHUB_TOKENS", "aws_key", "SECRETS", "XZ", "XYYZ", "EXAC", "", "PATH"] {
            assert_eq!(rules.fate(format!("{name}=v").as_bytes()), Fate::Keep, "{name}");
        }
    }

    #[test]
    fn globs_backtrack() {
        for (name, glob, expected) in [
            ("abcbc", "a*bc", true),
            ("abcbd", "a*bc", false),
            ("", "*", true),
            ("", "?", false),
            ("abc", "***", true),
            ("abc", "?*?*?", true),
            ("ab", "?*?*?", false),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaab", "*a*a*a*a*a*c", false),
        ] {
            assert_eq!(matches_glob(name.as_bytes(), glob.as_bytes()), expected, "{name} {glob}");
        }
    }
}
