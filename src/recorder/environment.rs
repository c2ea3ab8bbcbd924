//! Which variables of a run's environment the journal keeps, so that the run can be repeated.
//!
//! Invariant: a value is kept only if nothing in it may be a secret. It is left out if its name is a secret's, if any of
//! it would be masked in output, or if a part of it looks random. Of those that are left out the names are kept.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::journal::frame::variables;
use crate::journal::record::KeptEnvironment;
use crate::limits;
use crate::text::redact::{Redactor, is_secret_name, looks_random};

/// The newest environments, because that of the next run is often the same.
#[derive(Debug, Default)]
pub(super) struct EnvironmentCache {
    /// Each with the entries and the directory that it was made of.
    known: VecDeque<(Vec<u8>, String, Rc<KeptEnvironment>)>,
}

impl EnvironmentCache {
    /// What is kept of these entries, as they came in frames, for a run in this directory.
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

/// Whether a name is kept. The shell sets `_`, and rexec its own.
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
            && !is_secret_name(name.as_bytes())
            && !looks_random(value)
            && is_unmasked(value, redactor)
            && is_unmasked(&format!("{name}={value}"), redactor))
}

/// Whether the journal would keep this text as it is.
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
    fn values_that_may_be_secret_are_left_out_and_named() {
        let token = format!("ghp_{}", "aB3".repeat(12));
        let environment = of(&[
            "HOME=/home/ann",
            "PATH=/usr/bin:/opt/x1/y2",
            "EMPTY=",
            "GITHUB_TOKEN=short",
            "API_KEY=",
            &format!("NOTE=the token is {token}"),
            "DATABASE=postgres://ann:hunter22@db/app",
            "SERVICE_SECRET=very long secret words",
            "COPY=has very long secret words in it",
            "PLAIN_NAME=8Jk2mQz7LpXv4Rt9WnYb3Hc6",
            "HEX=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "RUN_OF=550e8400-e29b-41d4-a716-446655440000",
            "PWD=/work",
            "_=/usr/bin/env",
            "REXEC_INSIDE=1",
            &format!("{token}=x"),
            "NO_EQUALS",
        ]);
        let names: Vec<&str> = environment.set.keys().map(String::as_str).collect();
        assert_eq!(names, ["API_KEY", "EMPTY", "HOME", "PATH", "RUN_OF"]);
        let left_out: Vec<&str> = environment.left_out.iter().map(String::as_str).collect();
        let secret = ["COPY", "DATABASE", "GITHUB_TOKEN", "HEX", "NOTE", "PLAIN_NAME", "SERVICE_SECRET"];
        assert_eq!(left_out, secret);
    }

    #[test]
    fn an_environment_is_bounded_and_names_what_did_not_fit() {
        let long = format!("LONG={}", "x ".repeat(limits::JOURNAL_VALUE_BYTES));
        let many: Vec<String> =
            (0..limits::JOURNAL_VARIABLES_MAX + 9).map(|n| format!("N{n}={}", "y ".repeat(60))).collect();
        let entries: Vec<&str> = [long.as_str()].into_iter().chain(many.iter().map(String::as_str)).collect();
        let environment = of(&entries);
        let bytes: usize = environment.set.values().map(String::len).sum();
        assert!(bytes <= limits::JOURNAL_ENVIRONMENT_BYTES && environment.left_out.contains("LONG"), "{bytes}");
        assert_eq!(environment.set.len() + environment.left_out.len(), limits::JOURNAL_VARIABLES_MAX);
    }
}
