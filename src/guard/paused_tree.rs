//! A process tree that a person has paused: every process of it is stopped, and the same ones are continued later.
//!
//! Invariants: a process that was stopped before the pause stays stopped after it; a process that was forked meanwhile is
//! stopped, too, because a process with a pending SIGSTOP cannot fork (fork(2) is restarted after the stop).

use std::collections::BTreeSet;

use super::orphans;
use crate::sys::kill::{CONT, STOP};
use crate::sys::tree::Process;

/// The processes that a pause has stopped.
#[derive(Debug, Default)]
pub struct PausedTree(Vec<Process>);

impl PausedTree {
    #[must_use]
    pub fn of(stopped: Vec<Process>) -> Self {
        Self(stopped)
    }

    /// Stops every process of a tree that `look` returns, until it returns no new ones, with at most `looks_max` looks.
    /// Processes of other users, as below sudo(8), cannot be stopped.
    pub fn stop(&mut self, looks_max: u32, look: impl Fn() -> Vec<Process>) {
        let mut seen: BTreeSet<_> = self.0.iter().map(identity).collect();
        for _ in 0..looks_max {
            let mut news = look();
            news.retain(|process| seen.insert(identity(process)));
            if news.is_empty() {
                return;
            }
            news.retain(|process| !process.is_stopped);
            orphans::signal(&news, STOP);
            self.0.append(&mut news);
        }
    }

    pub fn resume(self) {
        orphans::signal(&self.0, CONT);
    }
}

/// The identity of a process.
fn identity(process: &Process) -> (i32, u64) {
    (process.pid.number(), process.start)
}
