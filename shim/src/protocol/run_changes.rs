//! The changes of `rexec run` in an agent's environment, and how a command gets the user's own values back. Pure.
//!
//! `rexec run` names the variables that it has set in [`SET`]. The user's own value of such a variable `X`, if there is
//! one, is in the variable `REXEC_OWN_X`. A folder in front of PATH does not count, because agents put folders of their
//! own before it: [`without_folders`] takes it out.

use std::ffi::CStr;

/// The variable with the names of the variables that `rexec run` has set, separated by `:`.
pub const SET: &str = "REXEC_RUN_SET";
/// The beginning of the names of variables with a user's own values.
pub const OWN: &str = "REXEC_OWN_";
/// The variables that the preload alone reads, or sets.
pub const PRELOAD: [&str; 4] = [PRELOAD_LINKS, PRELOAD_PROGRAM, PRELOAD_PACKAGE, PRELOAD_FED];
/// The variable with the folder of the links, for the preload.
pub const PRELOAD_LINKS: &str = "REXEC_PRELOAD_LINKS";
/// The variable with the program that executes the agent.
pub const PRELOAD_PROGRAM: &str = "REXEC_PRELOAD_PROGRAM";
/// The variable with the folder of the agent's package; empty if there is none.
pub const PRELOAD_PACKAGE: &str = "REXEC_PRELOAD_PACKAGE";
/// The variable in which the preload reports to the shim that its shell, which has no arguments, reads commands from a
/// pipe: `1`, or [`FED_IF_PIPE`].
pub const PRELOAD_FED: &str = "REXEC_PRELOAD_FED";
/// The value if the preload could not tell. Without a pipe the shim becomes the shell, which sees nothing of rexec.
pub const FED_IF_PIPE: &str = "if-pipe";
/// The variables that describe the agent of `rexec run` to the shim.
pub const AGENTS: [&str; 3] = ["REXEC_RUN_AGENT", "REXEC_WHOAMI", "REXEC_BUDGET"];
/// The name of the folder that `rexec run` puts in front of PATH. It holds a link named `bash` and nothing else.
pub const BASH_ONLY: &str = "bash-only";

/// The value of [`SET`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunChanges<'a>(pub &'a [u8]);

/// An entry without the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone<'s> {
    /// It is none of them.
    Same,
    /// The user has no such entry.
    Gone,
    /// It carried this entry of the user's.
    Own(&'s CStr),
}

impl RunChanges<'_> {
    /// Returns true if this variable is among the changed ones.
    #[must_use]
    pub fn names(&self, name: &[u8]) -> bool {
        !name.is_empty() && self.0.split(|&byte| byte == b':').any(|set| set == name)
    }

    /// Undoes the changes to this entry.
    #[must_use]
    pub fn undo<'s>(&self, entry: &'s CStr) -> Undone<'s> {
        if self.0.is_empty() {
            return Undone::Same;
        }
        let bytes = entry.to_bytes();
        let name = &bytes[..bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len())];
        match name.strip_prefix(OWN.as_bytes()) {
            Some(own) if own.len() + OWN.len() < bytes.len() && self.names(own) => {
                let own = &entry.to_bytes_with_nul()[OWN.len()..];
                Undone::Own(CStr::from_bytes_with_nul(own).expect("the tail of a C string is one"))
            }
            _ if self.names(name) => Undone::Gone,
            _ => Undone::Same,
        }
    }
}

/// The user's own value of a variable in an environment; empty if it has none.
#[must_use]
pub fn own_value<'e>(env: &[&'e CStr], name: &[u8]) -> &'e [u8] {
    let value = |entry: &&'e CStr| {
        let entry: &'e CStr = entry;
        entry.to_bytes().strip_prefix(OWN.as_bytes())?.strip_prefix(name)?.strip_prefix(b"=")
    };
    env.iter().find_map(value).unwrap_or_default()
}

/// The value of PATH without the folders named [`BASH_ONLY`] that are rexec's; `None` if it has none.
pub fn without_folders(path: &[u8], mut is_ours: impl FnMut(&[u8]) -> bool) -> Option<Vec<u8>> {
    let is_named = |folder: &[u8]| folder.rsplit(|&byte| byte == b'/').next() == Some(BASH_ONLY.as_bytes());
    let folders = || path.split(|&byte| byte == b':');
    if !folders().any(is_named) {
        return None;
    }
    let kept: Vec<&[u8]> = folders().filter(|folder| !(is_named(folder) && is_ours(folder))).collect();
    (kept.len() < folders().count()).then(|| kept.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_values_come_back() {
        let changes = RunChanges(b"BASH_ENV:SHLVL");
        for (entry, undone) in [
            (c"BASH_ENV=/run/x/rexec-env.sh", Undone::Gone),
            (c"REXEC_OWN_BASH_ENV=/mine", Undone::Own(c"BASH_ENV=/mine")),
            (c"SHLVL=1", Undone::Gone),
            (c"REXEC_OWN_PATH=/x", Undone::Same),
            (c"REXEC_OWN_BASH_ENV", Undone::Same),
            (c"REXEC_OWN_=x", Undone::Same),
            (c"BASH_ENVX=1", Undone::Same),
            (c"=x", Undone::Same),
            (c"", Undone::Same),
        ] {
            assert_eq!(changes.undo(entry), undone, "{entry:?}");
        }
        assert_eq!(RunChanges::default().undo(c"BASH_ENV=/x"), Undone::Same);
    }

    #[test]
    fn only_rexecs_folders_leave_path() {
        let without = |path: &str, ours: &str| {
            let kept = without_folders(path.as_bytes(), |folder| folder == ours.as_bytes());
            kept.map(|path| String::from_utf8(path).unwrap())
        };
        assert_eq!(without("/a:/l/bash-only:/b", "/l/bash-only").as_deref(), Some("/a:/b"));
        assert_eq!(without("/l/bash-only::", "/l/bash-only").as_deref(), Some(":"));
        assert_eq!(without("/l/bash-only", "/l/bash-only").as_deref(), Some(""));
        assert_eq!(without("/a:/m/bash-only", "/l/bash-only"), None);
        assert_eq!((without("/a:/b", "/b"), without("", "")), (None, None));
    }
}
