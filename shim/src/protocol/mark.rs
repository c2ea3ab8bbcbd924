//! The mark of a run: `REXEC_INSIDE`, by which a shim knows that the host already has its command.
//!
//! Anybody can set a variable, in an agent's settings for instance, so it counts only if a guard is really above. Its
//! value is the same in every run, because agents keep what a shell exports and set it again in the next one.

use std::ffi::CStr;

use super::agent_programs::{is_between, named_by_program};
use super::process::Pid;

/// The entry that marks everything below a run.
pub const INSIDE: &CStr = c"REXEC_INSIDE=1";
/// Returns true if this is the name of a variable that is true of one run only. An agent or a host started in a run
/// must not pass it on.
#[must_use]
pub fn is_mark(name: &std::ffi::OsStr) -> bool {
    ["REXEC_INSIDE", "REXEC_REPORTED", "REXEC_SEQ", "REXEC_AGENT"].iter().any(|mark| name == *mark)
}

/// The name of a guard's process.
pub const GUARD_NAME: &CStr = c"rexec-guard";
/// The most examined ancestors.
const ANCESTORS_MAX: u32 = 4_096;

/// Returns true if a guard is among the ancestors. `parent` is the caller's own, `stat_of` reads `/proc/PID/stat`.
pub fn is_guard_above(parent: Pid, stat_of: impl FnMut(Pid) -> Option<ProcessStat>) -> bool {
    guard_above(parent, stat_of).is_some()
}

/// The nearest guard among the ancestors. Its parent is the host.
pub fn guard_above(parent: Pid, mut stat_of: impl FnMut(Pid) -> Option<ProcessStat>) -> Option<ProcessStat> {
    let mut pid = parent;
    for _ in 0..ANCESTORS_MAX {
        let stat = (pid.number() > 1).then(|| stat_of(pid)).flatten()?;
        if stat.program == NamedProgram::Guard && stat.session == pid {
            return Some(stat);
        }
        pid = stat.parent;
    }
    None
}

/// The kind of a process, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedProgram {
    Guard,
    Agent,
    /// A shell, or a program that starts one for another program.
    Between,
    /// Anything else.
    Other,
}

/// The needed facts of a `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    pub pid: Pid,
    /// The kind of the process, by its name.
    pub program: NamedProgram,
    /// The parent; 0 if it is outside of this pid namespace.
    pub parent: Pid,
    /// The session. A guard leads one.
    pub session: Pid,
    /// Its start. Start and number together identify a process.
    pub start: u64,
}

impl ProcessStat {
    /// Reads the text of the file. The name may hold anything, so it ends at the last parenthesis.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let mut fields = std::str::from_utf8(text.get(close + 1..)?).ok()?.split_ascii_whitespace();
        // The state is the third field, the parent the fourth, the session the sixth, the start the twenty-second.
        let mut pid = || fields.nth(1)?.parse().ok().map(Pid::new);
        let (parent, session) = (pid()?, pid()?);
        let start = fields.nth(15)?.parse().ok()?;
        let own = std::str::from_utf8(text.get(..open)?).ok()?.trim_ascii_end().parse().ok()?;
        Some(Self { pid: Pid::new(own), program: NamedProgram::of(text.get(open + 1..close)?), parent, session, start })
    }
}

impl NamedProgram {
    /// The kind of a process with this name.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        match std::str::from_utf8(name) {
            _ if name == GUARD_NAME.to_bytes() => Self::Guard,
            Ok(name) if named_by_program(name).is_some() => Self::Agent,
            Ok(name) if is_between(name) => Self::Between,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(program: NamedProgram, pid: i32, parent: i32, session: i32) -> ProcessStat {
        let [pid, parent, session] = [pid, parent, session].map(Pid::new);
        ProcessStat { pid, program, parent, session, start: 99 }
    }

    #[test]
    fn a_stat_is_read_whatever_the_name() {
        let read = |name: &str| {
            let fields = "S 41 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 99 1";
            ProcessStat::read(format!("42 ({name}) {fields}").as_bytes()).unwrap()
        };
        let names = [
            ("rexec-guard", NamedProgram::Guard),
            ("claude", NamedProgram::Agent),
            ("timeout", NamedProgram::Between),
            (") R (x", NamedProgram::Other),
        ];
        for (name, program) in names {
            assert_eq!(read(name), stat(program, 42, 41, 6));
        }
        assert_eq!(ProcessStat::read(b"42 (sh) S 41"), None);
        let own = std::fs::read("/proc/self/stat").unwrap();
        let own = ProcessStat::read(&own).unwrap();
        assert_eq!(own.pid.number(), std::process::id().cast_signed());
        assert_eq!(own.parent.number(), std::os::unix::process::parent_id().cast_signed());
    }

    #[test]
    fn a_mark_counts_below_a_guard_alone() {
        let tree = |is_guard, session: Pid| {
            let program = if is_guard { NamedProgram::Guard } else { NamedProgram::Other };
            move |pid: Pid| match pid.number() {
                30 => Some(stat(NamedProgram::Other, 30, 20, 10)),
                20 => Some(stat(NamedProgram::Other, 20, 10, 10)),
                10 => Some(stat(program, 10, 1, session.number())),
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
