//! Pauses a command: every process of its tree is stopped, and the same ones are continued later.
//!
//! Invariants: a process that was stopped before the pause stays stopped after it; a process that was forked meanwhile is
//! stopped, too, because a process with a pending SIGSTOP cannot fork (fork(2) is restarted after the stop).

use std::collections::BTreeSet;

use super::supervisor::Supervisor;
use crate::limits;
use crate::sys::kill::{self, CONT, STOP};
use crate::sys::process;
use crate::sys::tree::{self, Process};
use rexec_sh::protocol::process::Signal;

impl Supervisor {
    /// Stops every process of the command. Those of other users, as below sudo(8), cannot be stopped.
    pub(super) fn pause(&mut self) {
        let stopped = self.paused.get_or_insert_default();
        let mut seen: BTreeSet<_> = stopped.iter().map(identity).collect();
        for _ in 0..limits::PAUSE_ROUNDS_MAX {
            let mut news: Vec<Process> = tree::descendants(process::pid());
            news.retain(|process| seen.insert(identity(process)));
            if news.is_empty() {
                return;
            }
            news.retain(|process| !process.is_stopped && kill::process(process.pid, STOP).is_ok());
            stopped.append(&mut news);
        }
    }

    /// Continues what [`Supervisor::pause`] has stopped.
    pub(super) fn unpause(&mut self) {
        let Some(stopped) = self.paused.take() else { return };
        for before in stopped {
            // The number may belong to another process by now.
            if tree::process(before.pid).is_some_and(|now| now.start == before.start) {
                let _ = kill::process(before.pid, CONT);
            }
        }
        for (pid, signal) in std::mem::take(&mut self.stopped_before_pause) {
            if tree::process(pid).is_some_and(|now| now.is_stopped) {
                self.on_stopped(pid, signal);
            }
        }
    }

    /// Sends a signal to every process that the ended shell left running.
    pub(super) fn signal_left(&self, signal: Signal) {
        if self.shell.is_none() {
            for process in tree::descendants(process::pid()) {
                let _ = kill::process(process.pid, signal);
            }
        }
    }
}

/// What tells a process from any other one.
fn identity(process: &Process) -> (i32, u64) {
    (process.pid.number(), process.start)
}
