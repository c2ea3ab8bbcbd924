//! Finds filters after an ended shell: processes that still work on its output, as `exec > >(sort)` makes one.
//!
//! A filter reads a pipe to which the shell, or one of its programs, wrote. Its parent has ended, so it is a child of
//! the guard's by now. A server that the shell has left running reads no such pipe, and a server's own filters have a
//! living parent. Invariants: nothing is taken out of a pipe; a process that just executes a program is not examined,
//! because that might wait (see `sys/looker.rs`).

use super::control::GuardReport;
use super::supervisor::Supervisor;
use crate::limits;
use crate::sys::tree::{self, Process};
use crate::sys::{process, standard_input};

impl Supervisor {
    pub(super) fn look_for_filters(&self) {
        let own = process::pid();
        let children = tree::children(own).into_iter().take(limits::DRAIN_LOOK_PROCESSES).filter_map(tree::process);
        let mut orphans = children.filter(|process| process.start > 0 && !process.is_zombie && !process.is_stopped);
        self.report(&[GuardReport::LookedForFilters { has_any: orphans.any(|process| self.is_fed(&process)) }]);
    }

    /// Returns true if a process has bytes to read in its pipe, or is at the end of it and will act on that soon, or
    /// computes. The command's own input does not count: the shell did not write it.
    fn is_fed(&self, process: &Process) -> bool {
        let pipe = standard_input::pipe_of(process.pid).filter(|&(number, _)| Some(number) != self.own_input);
        pipe.is_some_and(|(_, is_ready)| is_ready || process.is_running)
    }
}
