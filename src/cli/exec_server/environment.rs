//! The environment of a process, as Codex describes it: a choice from the server's own, and variables on top.

use std::collections::BTreeMap;

use rexec_sh::protocol::environment::matches_glob;
use serde::Deserialize;

pub(super) type ChosenVariables = BTreeMap<String, String>;

/// The part of the server's own environment that a process starts with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Inherit {
    #[default]
    All,
    Core,
    None,
}

/// The variables of `core`.
const CORE: [&str; 9] = ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];
/// Names that are left out unless the policy says otherwise.
const SECRETS: [&str; 3] = ["*KEY*", "*SECRET*", "*TOKEN*"];

/// A policy. Globs have `*` and `?`, and match letters of either case.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct EnvPolicy {
    inherit: Inherit,
    ignore_default_excludes: bool,
    exclude: Vec<String>,
    set: ChosenVariables,
    include_only: Vec<String>,
}

impl EnvPolicy {
    /// The environment that the policy makes of this one.
    pub(super) fn apply(&self, own: impl Iterator<Item = (String, String)>) -> ChosenVariables {
        let is_core = |name: &str| CORE.contains(&name);
        let mut chosen: ChosenVariables = own
            .filter(|(name, _)| match self.inherit {
                Inherit::All => true,
                Inherit::Core => is_core(name),
                Inherit::None => false,
            })
            .collect();
        if !self.ignore_default_excludes {
            chosen.retain(|name, _| !is_listed(name, SECRETS.iter().copied()));
        }
        chosen.retain(|name, _| !is_listed(name, self.exclude.iter().map(String::as_str)));
        chosen.extend(self.set.clone());
        if !self.include_only.is_empty() {
            chosen.retain(|name, _| is_listed(name, self.include_only.iter().map(String::as_str)));
        }
        chosen
    }
}

fn is_listed<'a>(name: &str, mut globs: impl Iterator<Item = &'a str>) -> bool {
    let name = name.to_uppercase();
    globs.any(|glob| matches_glob(name.as_bytes(), glob.to_uppercase().as_bytes()))
}

/// This process's own environment, without entries that are not text.
pub(super) fn own() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(policy: &str) -> String {
        let policy: EnvPolicy = serde_json::from_str(policy).unwrap();
        let own = ["HOME", "PATH", "API_KEY", "my_token", "EDITOR"].map(|name| (name.to_owned(), "x".to_owned()));
        policy.apply(own.into_iter()).into_keys().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_policy_chooses_in_its_order() {
        assert_eq!(names("{}"), "EDITOR HOME PATH");
        assert_eq!(names(r#"{"inherit":"all","ignoreDefaultExcludes":true}"#), "API_KEY EDITOR HOME PATH my_token");
        assert_eq!(names(r#"{"inherit":"core"}"#), "HOME PATH");
        assert_eq!(names(r#"{"inherit":"none","set":{"A_KEY":"1"}}"#), "A_KEY");
        assert_eq!(names(r#"{"exclude":["ed*","H?ME"]}"#), "PATH");
        assert_eq!(names(r#"{"set":{"B":"1"},"includeOnly":["p*","b"]}"#), "B PATH");
    }
}
