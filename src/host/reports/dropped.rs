//! The shims whose reports found no room. A process that fills the room could report such a shim as its own, with the mark
//! that it has read from the shim's command, and a person who ends the forged run would end the other command.
//!
//! Invariant: bounded; while a shim that was dropped may have been forgotten, each that is as old counts as dropped.

use std::collections::VecDeque;

use super::shim_identity::is_one;
use crate::limits;
use crate::sys::namespace::InnerProcess;
use crate::sys::tree::Process;
use crate::sys::usage;

#[derive(Debug, Default)]
pub(super) struct DroppedShims {
    newest_last: VecDeque<InnerProcess>,
    /// When one was forgotten for the last time, in clock ticks since boot.
    forgotten_at: Option<u64>,
}

impl DroppedShims {
    /// A beginning that names this shim finds no room.
    pub(super) fn note(&mut self, shim: InnerProcess) {
        if self.newest_last.contains(&shim) {
            return;
        }
        if self.newest_last.len() >= limits::REPORTS_DROPPED_KNOWN {
            self.newest_last.pop_front();
            self.forgotten_at = Some(usage::ticks_since_boot());
        }
        self.newest_last.push_back(shim);
    }

    /// Returns true if this shim, which calls itself `named`, may have been dropped before.
    pub(super) fn may_have(&self, named: InnerProcess, shim: &Process) -> bool {
        let exact = InnerProcess { start: shim.start, ..named };
        self.newest_last.iter().any(|&dropped| is_one(dropped, exact))
            || self.forgotten_at.is_some_and(|at| shim.start <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{process, tree};

    #[test]
    fn a_dropped_shim_is_known_also_when_many_others_were_dropped_after_it() {
        let own = tree::process(process::pid()).unwrap();
        let named = InnerProcess { namespace: 1, pid: own.pid.number(), start: own.start };
        let other = |pid: i32| InnerProcess { namespace: 1, pid, start: 5 };
        let mut dropped = DroppedShims::default();
        dropped.note(other(0));
        assert!(!dropped.may_have(named, &own));
        dropped.note(named);
        assert!(dropped.may_have(InnerProcess { start: 0, ..named }, &own));
        (0..=2 * i32::try_from(limits::REPORTS_DROPPED_KNOWN).unwrap()).for_each(|at| dropped.note(other(-at)));
        assert!(dropped.may_have(named, &own));
        let later = Process { start: own.start + 1_000_000_000, ..own };
        assert!(!dropped.may_have(named, &later), "one that began after them all");
    }
}
