//! The processes that a killed guard leaves behind. They become children of the host, the subreaper above its guards.
//!
//! A guard that ends by itself has no children left. Invariants: children that the host had before it became the host,
//! and their descendants, never count as orphans. A process is identified by its number and its start, and signalled
//! through a descriptor that was checked against both, because the kernel reaps orphans at any time.

use std::collections::{BTreeMap, BTreeSet};

use crate::sys::kill::{self as sending, CONT, Pidfd};
use crate::sys::process;
use crate::sys::tree::{self, Process};
use rexec_sh::protocol::process::{Pid, Signal};

/// The processes that were below the host before it became the host, and their sessions. A process that leaves a
/// session enters a new one, so no descendant of a guard is ever in one of these sessions.
#[derive(Debug)]
pub struct Kin {
    pids: BTreeSet<(Pid, u64)>,
    sessions: BTreeSet<Pid>,
}

impl Kin {
    /// The processes below this one now.
    #[must_use]
    pub fn now() -> Self {
        let me = process::pid();
        let below = tree::descendants(me);
        let sessions = below.iter().map(|process| process.session);
        let sessions = sessions.chain(tree::process(me).map(|process| process.session)).collect();
        Self { pids: below.iter().map(|process| (process.pid, process.start)).collect(), sessions }
    }

    fn has(&self, process: &Process) -> bool {
        self.pids.contains(&(process.pid, process.start)) || self.sessions.contains(&process.session)
    }
}

#[derive(Debug)]
pub struct Orphans {
    /// The guard, which led the session of the command.
    session: Pid,
    /// Number and start of each orphan at the last look. They identify one whose parent has ended.
    seen: BTreeMap<Pid, u64>,
    sessions: BTreeSet<Pid>,
}

/// Children of the host that are not orphans of the guard in question.
#[derive(Debug)]
pub struct Others<'a> {
    /// From before this process became the host.
    pub kin: &'a Kin,
    /// Guards and helper processes. Processes in a session of one of them belong to it.
    pub known: BTreeSet<Pid>,
    /// Orphans of other guards.
    pub orphans: Vec<&'a Orphans>,
    /// Number and start of the processes that other commands have left running.
    pub left: BTreeSet<(Pid, u64)>,
}

/// The result of a look at the orphans of one guard.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Living orphans, nearest first.
    Living(Vec<Process>),
    /// None, while the host got further children. A process that forks and ends just then leaves its child to the host.
    Unsure,
    Nothing,
}

impl Orphans {
    /// The orphans of a guard. `seen` has number and start of processes that were seen below it.
    #[must_use]
    pub fn of(guard: Pid, seen: &[(Pid, u64)]) -> Self {
        Self { session: guard, seen: seen.iter().copied().collect(), sessions: BTreeSet::new() }
    }

    /// Returns true if the guard has not ended yet. While a process ends, its descriptors are closed before its
    /// children get another parent.
    #[must_use]
    pub fn is_guard_alive(&self) -> bool {
        is_child(self.session)
    }

    /// Looks for the orphans that live. If `takes_strays` returns true, children of the host that belong to nothing else
    /// count as orphans, because nothing identifies a process in a session of its own when its guard has just died. It is
    /// called once the host's children are known: a guard that is alive then has none among them.
    pub fn look(&mut self, others: &Others<'_>, takes_strays: impl FnOnce() -> bool) -> Found {
        let before = tree::children(process::pid());
        let takes_strays = takes_strays();
        let children = before.iter().copied().filter_map(tree::process);
        let is_ours = |child: &Process| {
            let is_helper = others.known.contains(&child.pid) || others.known.contains(&child.session);
            let is_known = is_helper || others.left.contains(&(child.pid, child.start));
            let is_free = || !others.kin.has(child) && !others.orphans.iter().any(|other| other.claims(child));
            !is_known && (self.claims(child) || (takes_strays && is_free()))
        };
        let mut living = Vec::new();
        for child in children.filter(is_ours) {
            living.extend((!child.is_zombie).then_some(child));
            living.extend(tree::walk(child.pid));
        }
        self.seen = living.iter().map(|process| (process.pid, process.start)).collect();
        self.sessions = living.iter().map(|process| process.session).collect();
        let has_new = || tree::children(process::pid()).iter().any(|child| !before.contains(child));
        match living.is_empty() {
            false => Found::Living(living),
            true if has_new() => Found::Unsure,
            true => Found::Nothing,
        }
    }

    fn claims(&self, child: &Process) -> bool {
        child.session == self.session
            || self.seen.get(&child.pid) == Some(&child.start)
            || self.sessions.contains(&child.session)
    }
}

/// Kills a child of this process. Does nothing if the number belongs to another process now.
pub fn kill_child(pid: Pid) {
    let child = tree::process(pid).filter(|child| child.parent == process::pid());
    kill(child.as_slice());
}

/// Kills processes, each one only if its number still belongs to it.
pub fn kill(processes: &[Process]) {
    signal(processes, Signal::KILL);
}

/// Sends SIGTERM to processes, then SIGCONT, so that stopped ones act on it.
pub fn terminate(processes: &[Process]) {
    for process in processes {
        signal(&[*process], Signal::TERM);
        signal(&[*process], CONT);
    }
}

/// Sends a signal to processes, each one only if its number still belongs to it.
pub fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        let pidfd = Pidfd::open(process.pid);
        if tree::process(process.pid).is_none_or(|now| now.start != process.start) {
            continue;
        }
        match pidfd {
            Some(pidfd) => pidfd.send(signal),
            // There is no descriptor left.
            None => drop(sending::process(process.pid, signal)),
        }
    }
}

/// Returns true if this is a child of this process that has not ended.
pub(crate) fn is_child(pid: Pid) -> bool {
    tree::process(pid).is_some_and(|child| !child.is_zombie && child.parent == process::pid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn what_was_there_before_is_no_orphan() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = Pid::new(child.id().cast_signed());
        let kin = Kin::now();
        let others = Others { kin: &kin, known: BTreeSet::new(), orphans: Vec::new(), left: BTreeSet::new() };
        let seen = |mut orphans: Orphans, takes_strays| match orphans.look(&others, || takes_strays) {
            Found::Living(living) => living.into_iter().filter(|process| process.pid == pid).collect(),
            Found::Unsure | Found::Nothing => Vec::new(),
        };
        assert_eq!(seen(Orphans::of(Pid::new(i32::MAX), &[]), true), []);
        let session = tree::process(pid).unwrap().session;
        let it = seen(Orphans::of(session, &[]), false);
        assert_eq!(it.len(), 1, "the session is the guard's");
        kill(&[Process { start: it[0].start + 1, ..it[0] }]);
        assert!(child.try_wait().unwrap().is_none(), "another process of that number is not signalled");
        kill(&it);
        child.wait().unwrap();
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn a_child_that_comes_after_the_question_about_strays_is_no_orphan() {
        // Other tests of this process have children as well.
        let others = Others { kin: &Kin::now(), known: BTreeSet::new(), orphans: Vec::new(), left: BTreeSet::new() };
        let mut stray = None;
        let found = Orphans::of(Pid::new(i32::MAX), &[]).look(&others, || {
            let mut program = std::process::Command::new("setsid");
            stray = Some(program.args(["sleep", "100"]).spawn().unwrap());
            true
        });
        let mut stray = stray.unwrap();
        let pid = Pid::new(stray.id().cast_signed());
        let is_taken = matches!(found, Found::Living(living) if living.iter().any(|process| process.pid == pid));
        stray.kill().unwrap();
        stray.wait().unwrap();
        assert!(!is_taken);
    }
}
