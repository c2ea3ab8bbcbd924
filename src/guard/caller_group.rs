//! The state of the caller's process group, in which the command would be without rexec.
//!
//! A group is orphaned when no member of it has a parent in another group of its session, which could continue it. Then
//! SIGTSTP, SIGTTIN and SIGTTOU stop no member. If it has a stopped member at that moment, all of it gets SIGHUP and
//! SIGCONT (setpgid(2)).

use std::time::{Duration, Instant};

use crate::limits;
use crate::sys::tree::{self, Process};
use rexec_sh::protocol::process::Pid;

/// The known facts about the caller's group.
#[derive(Debug)]
pub(super) struct CallerGroup {
    /// The caller, if it is a process of this system.
    caller: Option<Pid>,
    is_orphaned: bool,
    /// The time of the next look at the group, because the command is stopped, and the pause before it.
    look: Option<(Instant, Duration)>,
}

impl CallerGroup {
    /// The group of this caller. With `is_orphaned` it was orphaned when the command began, and stays so.
    pub(super) fn new(caller: Option<Pid>, is_orphaned: bool) -> Self {
        Self { caller, is_orphaned, look: None }
    }

    /// Returns true if the group is orphaned by now.
    pub(super) fn is_orphaned(&mut self) -> bool {
        self.is_orphaned = self.is_orphaned || self.caller.is_some_and(is_in_orphaned_group);
        self.is_orphaned
    }

    /// Looks at the group from now on, because the command was stopped. A group orphaned just before the stop counts as
    /// orphaned after it.
    pub(super) fn watch(&mut self, now: Instant) {
        if self.caller.is_some() && !self.is_orphaned && self.look.is_none() {
            let pause = limits::ORPHANED_GROUP_LOOK;
            self.look = Some((now + pause, pause));
        }
    }

    /// The time at which [`CallerGroup::is_due`] may return true.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look.map(|(at, _)| at)
    }

    /// Returns true if it is time for a look. The next one is due later, unless [`CallerGroup::leave`] is called.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.look.filter(|(at, _)| now >= *at);
        if let Some((_, pause)) = due {
            let pause = (pause * 2).min(limits::ORPHANED_GROUP_LOOK_MAX);
            self.look = Some((now + pause, pause));
        }
        due.is_some()
    }

    /// Ends the looks, because the command is not stopped any more.
    pub(super) fn leave(&mut self) {
        self.look = None;
    }
}

/// Returns true if a process is a member of an orphaned group.
fn is_in_orphaned_group(pid: Pid) -> bool {
    let Some(caller) = tree::process(pid).filter(|caller| !caller.is_zombie) else { return false };
    let all: Vec<Process> = tree::all().collect();
    let mut members = all.iter().filter(|process| process.group == caller.group && !process.is_zombie);
    let can_continue = |parent: &Process, member: &Process| {
        parent.pid == member.parent && parent.session == member.session && parent.group != member.group
    };
    !members.any(|member| all.iter().any(|parent| can_continue(parent, member)))
}
