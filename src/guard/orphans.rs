//! What a dead guard left behind: children of the host now, because the host is the subreaper above its guards.
//!
//! A guard that ends in order has no children left, so orphans are there after a violent death only. Invariants: the
//! children that the host had before it became the host, and what descends from them, are never taken for orphans; a
//! process is named by its number and its start, and signalled through a descriptor that was checked against both,
//! because orphans are reaped by the kernel.

use std::collections::{BTreeMap, BTreeSet};

use crate::sys::kill::{CONT, Pidfd};
use crate::sys::process;
use crate::sys::tree::{self, Process};
use rexec_sh::protocol::process::{Pid, Signal};

/// The processes that the host had below it from the start, and the sessions that were there before it. Whoever leaves a
/// session enters a new one, so no descendant of a guard can ever be in one of these.
#[derive(Debug)]
pub struct Kin {
    pids: BTreeSet<(Pid, u64)>,
    sessions: BTreeSet<Pid>,
}

impl Kin {
    /// Those that are there now.
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

/// The orphans of one guard.
#[derive(Debug)]
pub struct Orphans {
    /// The guard's number: it led the command's session.
    session: Pid,
    /// What was seen of them, so that one whose parent has ended is known again.
    seen: BTreeMap<Pid, u64>,
    sessions: BTreeSet<Pid>,
}

/// Whose a child of the host may be, besides the orphans that are looked for.
#[derive(Debug)]
pub struct Others<'a> {
    /// Of the time before the host.
    pub kin: &'a Kin,
    /// Guards and the recorder.
    pub known: BTreeSet<Pid>,
    /// Orphans of other guards.
    pub orphans: Vec<&'a Orphans>,
    /// What other commands have left, by number and start, whether their guards live or not.
    pub left: BTreeSet<(Pid, u64)>,
}

impl Orphans {
    /// Those of the guard with this number. These were seen below it, with their starts.
    #[must_use]
    pub fn of(guard: Pid, seen: &[(Pid, u64)]) -> Self {
        Self { session: guard, seen: seen.iter().copied().collect(), sessions: BTreeSet::new() }
    }

    /// Whether the guard is still on its way out. Its descriptors are closed before its children become the host's.
    #[must_use]
    pub fn is_guard_alive(&self) -> bool {
        is_child(self.session)
    }

    /// Those that live, nearest first. With `takes_strays`, children of the host that are nobody's count as theirs: what
    /// made a session of its own is known by nothing else when its guard has just died.
    pub fn look(&mut self, others: &Others<'_>, takes_strays: bool) -> Vec<Process> {
        let children = tree::children(process::pid()).into_iter().filter_map(tree::process);
        let is_ours = |child: &Process| {
            let is_known = others.known.contains(&child.pid) || others.left.contains(&(child.pid, child.start));
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
        living
    }

    fn claims(&self, child: &Process) -> bool {
        child.session == self.session
            || self.seen.get(&child.pid) == Some(&child.start)
            || self.sessions.contains(&child.session)
    }
}

/// Kills a child of this process, if the number is still that child's.
pub fn kill_child(pid: Pid) {
    let child = tree::process(pid).filter(|child| child.parent == process::pid());
    kill(child.as_slice());
}

/// Kills these processes, each of them only if it still is the one that was seen.
pub fn kill(processes: &[Process]) {
    processes.iter().for_each(|process| signal(process, Signal::KILL));
}

/// Terminates these processes, and continues them so that they can act on it.
pub fn terminate(processes: &[Process]) {
    for process in processes {
        signal(process, Signal::TERM);
        signal(process, CONT);
    }
}

fn signal(process: &Process, signal: Signal) {
    if let Some(pidfd) = Pidfd::open(process.pid)
        && tree::process(process.pid).is_some_and(|now| now.start == process.start)
    {
        pidfd.send(signal);
    }
}

/// Whether this is a child of this process that has not ended.
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
        let is_seen = |living: Vec<Process>| living.iter().any(|process| process.pid == pid);
        assert!(!is_seen(Orphans::of(Pid::new(i32::MAX), &[]).look(&others, true)));
        let session = tree::process(pid).unwrap().session;
        let seen = Orphans::of(session, &[]).look(&others, false);
        let it: Vec<Process> = seen.into_iter().filter(|process| process.pid == pid).collect();
        assert_eq!(it.len(), 1, "the session is the guard's");
        kill(&[Process { start: it[0].start + 1, ..it[0] }]);
        assert!(child.try_wait().unwrap().is_none(), "another process of that number is not signalled");
        kill(&it);
        child.wait().unwrap();
    }
}
