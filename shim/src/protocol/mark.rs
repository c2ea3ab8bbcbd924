//! The mark of a run: `REXEC_INSIDE`, by which a shim knows that the host already has its command.
//!
//! Anybody can set a variable, in an agent's settings for instance, so it counts only where a guard is really above. Its
//! value is the same in every run, because agents keep what a shell exports and set it again in the next one.

use std::ffi::CStr;

use super::process::Pid;

/// The entry that marks everything below a run.
pub const INSIDE: &CStr = c"REXEC_INSIDE=1";
/// Whether this is the name of a variable that is true of one run only. An agent or a host that is started in a run must
/// not pass it on.
#[must_use]
pub fn is_mark(name: &std::ffi::OsStr) -> bool {
    ["REXEC_INSIDE", "REXEC_REPORTED", "REXEC_SEQ", "REXEC_AGENT"].iter().any(|mark| name == *mark)
}

/// The name that a guard's process has.
pub const GUARD_NAME: &CStr = c"rexec-guard";
/// Ancestors that are looked at before the search is given up.
const ANCESTORS_MAX: u32 = 4_096;

/// Whether a guard is among the ancestors. `parent` is the caller's own, `stat_of` reads `/proc/PID/stat`.
pub fn is_guard_above(parent: Pid, stat_of: impl FnMut(Pid) -> Option<ProcessStat>) -> bool {
    guard_above(parent, stat_of).is_some()
}

/// The nearest guard among the ancestors. Its parent is the host.
pub fn guard_above(parent: Pid, mut stat_of: impl FnMut(Pid) -> Option<ProcessStat>) -> Option<ProcessStat> {
    let mut pid = parent;
    for _ in 0..ANCESTORS_MAX {
        let stat = (pid.number() > 1).then(|| stat_of(pid)).flatten()?;
        if stat.has_guards_name && stat.session == pid {
            return Some(stat);
        }
        pid = stat.parent;
    }
    None
}

/// What counts of a `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Whether it has the name of a guard.
    pub has_guards_name: bool,
    /// The parent; 0 when it is outside of this pid namespace.
    pub parent: Pid,
    /// The session, which a guard leads.
    pub session: Pid,
}

impl ProcessStat {
    /// Reads the text of the file. The name may hold anything, so it ends at the last parenthesis.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let mut fields = std::str::from_utf8(text.get(close + 1..)?).ok()?.split_ascii_whitespace();
        // The state is the third field, the parent the fourth, the session the sixth.
        let mut pid = || fields.nth(1)?.parse().ok().map(Pid::new);
        let (parent, session) = (pid()?, pid()?);
        Some(Self { has_guards_name: text.get(open + 1..close)? == GUARD_NAME.to_bytes(), parent, session })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_is_read_whatever_the_name() {
        let read = |name: &str| ProcessStat::read(format!("42 ({name}) S 41 5 6 7 8 9").as_bytes()).unwrap();
        assert_eq!(
            read("rexec-guard"),
            ProcessStat { has_guards_name: true, parent: Pid::new(41), session: Pid::new(6) }
        );
        assert_eq!(read(") R (x"), ProcessStat { has_guards_name: false, parent: Pid::new(41), session: Pid::new(6) });
        assert_eq!(ProcessStat::read(b"42 (sh) S 41"), None);
    }

    #[test]
    fn a_mark_counts_below_a_guard_alone() {
        let tree = |has_guards_name, session| {
            move |pid: Pid| match pid.number() {
                30 => Some(ProcessStat { has_guards_name: false, parent: Pid::new(20), session: Pid::new(10) }),
                20 => Some(ProcessStat { has_guards_name: false, parent: Pid::new(10), session: Pid::new(10) }),
                10 => Some(ProcessStat { has_guards_name, parent: Pid::new(1), session }),
                _ => None,
            }
        };
        assert!(
            is_guard_above(Pid::new(30), tree(true, Pid::new(10)))
                && is_guard_above(Pid::new(10), tree(true, Pid::new(10)))
        );
        assert!(!is_guard_above(Pid::new(30), tree(true, Pid::new(5))), "no session leader");
        assert!(!is_guard_above(Pid::new(30), tree(false, Pid::new(10))), "another name");
        assert!(
            !is_guard_above(Pid::new(1), tree(true, Pid::new(10)))
                && !is_guard_above(Pid::new(0), tree(true, Pid::new(10)))
        );
        assert!(!is_guard_above(Pid::new(40), tree(true, Pid::new(10))), "unreadable");
    }
}
