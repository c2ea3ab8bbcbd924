//! The variables of a run's environment that the journal keeps, so that the run can be repeated.
//!
//! Invariant: a value is kept only if its variable is known to hold no secret, because nobody can tell a password from a
//! word. Of all others the names are kept. A known one is left out as well if any of its value would be masked in output.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::journal::frame::variables;
use crate::journal::record::KeptEnvironment;
use crate::limits;
use crate::text::redact::Redactor;

/// The newest environments, because that of the next run is often the same.
#[derive(Debug, Default)]
pub(super) struct EnvironmentCache {
    /// Each with the entries and the directory that it was made of.
    known: VecDeque<(Vec<u8>, String, Rc<KeptEnvironment>)>,
}

impl EnvironmentCache {
    /// The kept part of these entries, as they came in frames, for a run in this directory.
    pub(super) fn of(&mut self, entries: &[u8], dir: &str) -> Rc<KeptEnvironment> {
        let is_it = |(of, place, _): &&(Vec<u8>, String, Rc<KeptEnvironment>)| of == entries && place == dir;
        if let Some((_, _, known)) = self.known.iter().find(is_it) {
            return Rc::clone(known);
        }
        let made = Rc::new(kept(entries, dir));
        if entries.len() <= 2 * limits::JOURNAL_ENVIRONMENT_BYTES {
            self.known.push_front((entries.to_vec(), dir.to_owned(), Rc::clone(&made)));
            self.known.truncate(limits::JOURNAL_ENVIRONMENTS_KNOWN);
        }
        made
    }
}

fn kept(entries: &[u8], dir: &str) -> KeptEnvironment {
    let mut environment = KeptEnvironment::default();
    let mut redactor = Redactor::new(variables(entries));
    let mut room = limits::JOURNAL_ENVIRONMENT_BYTES;
    for (name, value) in variables(entries).take(limits::JOURNAL_VARIABLES_MAX) {
        let Some(name) = std::str::from_utf8(name).ok().filter(|name| may_be_named(name, &mut redactor)) else {
            continue;
        };
        match std::str::from_utf8(value).ok().filter(|value| may_be_kept(name, value, &mut redactor)) {
            // A repetition runs in the same directory.
            Some(value) if name == "PWD" && value == dir => {}
            Some(value) if value.len() <= room => {
                room -= value.len();
                environment.set.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
            _ => drop(environment.left_out.insert(name.to_owned())),
        }
    }
    // Of a repeated name the first entry counts, as with getenv(3).
    environment.left_out.retain(|name| !environment.set.contains_key(name));
    environment
}

/// Returns true if the name is kept. The shell sets `_`, and rexec its own.
fn may_be_named(name: &str, redactor: &mut Redactor) -> bool {
    let is_own = name == "_" || name.starts_with("REXEC_");
    !is_own
        && !name.is_empty()
        && name.len() <= limits::JOURNAL_NAME_BYTES
        && !name.chars().any(char::is_control)
        && is_unmasked(name, redactor)
}

fn may_be_kept(name: &str, value: &str, redactor: &mut Redactor) -> bool {
    value.is_empty()
        || (value.len() <= limits::JOURNAL_VALUE_BYTES
            && holds_no_secret(name)
            && is_unmasked(value, redactor)
            && is_unmasked(&format!("{name}={value}"), redactor))
}

/// The variables that programs use for places, language, look and mode of work, and that hold no secret.
const KNOWN: &[&str] = &[
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "DEBIAN_FRONTEND",
    "DISPLAY",
    "EDITOR",
    "FORCE_COLOR",
    "GIT_EDITOR",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GOPATH",
    "GOROOT",
    "HOME",
    "HOSTNAME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LESS",
    "LINES",
    "LOGNAME",
    "LS_COLORS",
    "MANPATH",
    "MAKEFLAGS",
    "NODE_ENV",
    "NODE_PATH",
    "NO_COLOR",
    "NVM_DIR",
    "OLDPWD",
    "PAGER",
    "PATH",
    "PKG_CONFIG_PATH",
    "PWD",
    "PYENV_ROOT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "RAILS_ENV",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SHELL",
    "SHLVL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "VISUAL",
];

/// Returns true if the variable is known to hold no secret.
fn holds_no_secret(name: &str) -> bool {
    let is_of_kind = name.starts_with("LC_") || name.starts_with("XDG_") || name.ends_with("PAGER");
    KNOWN.contains(&name) || is_of_kind
}

/// Returns true if the journal would keep this text as it is.
fn is_unmasked(text: &str, redactor: &mut Redactor) -> bool {
    let mut out = Vec::with_capacity(text.len());
    redactor.redact(text.as_bytes(), &mut out);
    out == text.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[&str]) -> KeptEnvironment {
        let entries: Vec<u8> = entries.iter().flat_map(|entry| [entry.as_bytes(), b"\0"].concat()).collect();
        (*EnvironmentCache::default().of(&entries, "/work")).clone()
    }

    #[test]
    fn values_are_kept_of_known_variables_only() {
        let token = format!("ghp_{}", "aB3".repeat(12));
        let environment = of(&[
            "HOME=/srv/ann",
            "PATH=/usr/bin:/opt/x1/y2",
            "LC_ALL=C.UTF-8",
            "GIT_PAGER=cat",
            "EMPTY=",
            "NOTE=a word",
            "DATABASE=postgres://ann:hunter22@db/app",
            &format!("PYTHONPATH=/a:{token}"),
            "GITHUB_TOKEN=short",
            "TERM=short",
            "PWD=/work",
            "_=/usr/bin/env",
            "REXEC_INSIDE=1",
            &format!("{token}=x"),
            "NO_EQUALS",
        ]);
        let names: Vec<&str> = environment.set.keys().map(String::as_str).collect();
        assert_eq!(names, ["EMPTY", "GIT_PAGER", "HOME", "LC_ALL", "PATH", "TERM"]);
        let left_out: Vec<&str> = environment.left_out.iter().map(String::as_str).collect();
        assert_eq!(left_out, ["DATABASE", "GITHUB_TOKEN", "NOTE", "PYTHONPATH"]);
    }

    #[test]
    fn an_environment_is_bounded_and_names_what_did_not_fit() {
        let long = format!("XDG_LONG={}", "x ".repeat(limits::JOURNAL_VALUE_BYTES));
        let many: Vec<String> =
            (0..limits::JOURNAL_VARIABLES_MAX + 9).map(|n| format!("LC_{n}={}", "y ".repeat(60))).collect();
        let entries: Vec<&str> = [long.as_str()].into_iter().chain(many.iter().map(String::as_str)).collect();
        let environment = of(&entries);
        let bytes: usize = environment.set.values().map(String::len).sum();
        assert!(bytes <= limits::JOURNAL_ENVIRONMENT_BYTES && environment.left_out.contains("XDG_LONG"), "{bytes}");
        assert_eq!(environment.set.len() + environment.left_out.len(), limits::JOURNAL_VARIABLES_MAX);
    }
}
