//! Environment profiles: variables that a caller without a shell of its own asks for by one word.
//!
//! Invariants: `plain` changes nothing; the request's own variables win over its profile, because the profile comes
//! first; a shim's command never has a profile, because its agent chose its environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

/// A set of variables by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// The unchanged environment.
    #[default]
    Plain,
    /// As on a build server: no colours, no pagers, no questions.
    Ci,
}

/// The facts on which a profile depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileFacts {
    /// True if the command's output is a terminal.
    pub has_terminal: bool,
    /// True if a person may answer a prompt.
    pub is_attended: bool,
}

/// The variables that `ci` sets.
const CI: [(&str, &str); 27] = [
    ("CI", "true"),
    ("NO_COLOR", "1"),
    ("COLORTERM", ""),
    ("LANG", "C.UTF-8"),
    ("LC_CTYPE", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("BAT_PAGER", "cat"),
    ("DELTA_PAGER", "cat"),
    ("AWS_PAGER", ""),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("NONINTERACTIVE", "1"),
    ("HOMEBREW_NO_AUTO_UPDATE", "1"),
    ("npm_config_yes", "true"),
    ("npm_config_progress", "false"),
    ("npm_config_fund", "false"),
    ("npm_config_update_notifier", "false"),
    ("PIP_NO_INPUT", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_PROGRESS_BAR", "off"),
    ("POETRY_NO_INTERACTION", "1"),
    ("COMPOSER_NO_INTERACTION", "1"),
    ("GH_PROMPT_DISABLED", "1"),
];

/// The variables that `ci` removes, because they would bring the colours back.
const COLOURS: [&str; 3] = ["FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS"];

impl Profile {
    pub const WORDS: &'static str = "plain, ci";

    /// The profile of this word.
    #[must_use]
    pub fn named(word: &[u8]) -> Option<Self> {
        match word {
            b"plain" => Some(Self::Plain),
            b"ci" => Some(Self::Ci),
            _ => None,
        }
    }

    /// Changes an environment. The request's own variables are added afterwards.
    pub fn apply(self, env: &mut BTreeMap<OsString, OsString>, facts: ProfileFacts) {
        if self == Self::Plain {
            return;
        }
        COLOURS.iter().for_each(|name| drop(env.remove(OsStr::new(name))));
        env.extend(CI.map(|(name, value)| (name.into(), value.into())));
        if !facts.has_terminal {
            env.insert("TERM".into(), "dumb".into());
        }
        if !facts.is_attended {
            env.insert("GIT_TERMINAL_PROMPT".into(), "0".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_sets_what_it_says_and_nothing_else() {
        let before = || -> BTreeMap<OsString, OsString> {
            [("FORCE_COLOR", "3"), ("TERM", "xterm"), ("PAGER", "less"), ("HOME", "/h")]
                .map(|(name, value)| (name.into(), value.into()))
                .into()
        };
        let with = |profile: Profile, has_terminal, is_attended| {
            let mut env = before();
            profile.apply(&mut env, ProfileFacts { has_terminal, is_attended });
            env
        };
        let value = |env: &BTreeMap<OsString, OsString>, name: &str| {
            env.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(with(Profile::Plain, false, false), before());
        let seen = with(Profile::Ci, false, false);
        for (name, expected) in
            [("CI", "true"), ("PAGER", "cat"), ("TERM", "dumb"), ("GIT_TERMINAL_PROMPT", "0"), ("HOME", "/h")]
        {
            assert_eq!(value(&seen, name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(value(&seen, "FORCE_COLOR"), None);
        let attended = with(Profile::Ci, true, true);
        assert_eq!(value(&attended, "TERM").as_deref(), Some("xterm"));
        assert_eq!(value(&attended, "GIT_TERMINAL_PROMPT"), None, "a person can answer");
        assert_eq!(
            ["plain", "ci", "CI"].map(|word| Profile::named(word.as_bytes())),
            [Some(Profile::Plain), Some(Profile::Ci), None]
        );
    }
}
