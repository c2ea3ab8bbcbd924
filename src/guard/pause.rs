//! Pauses the guard's command, and signals what it has left running.

use super::orphans;
use super::supervisor::Supervisor;
use crate::limits;
use crate::sys::{process, tree};
use rexec_sh::protocol::process::Signal;

impl Supervisor {
    pub(super) fn pause(&mut self) {
        let paused = self.paused.get_or_insert_default();
        paused.stop(limits::PAUSE_ROUNDS_MAX, || tree::descendants(process::pid()));
    }

    /// Continues the processes that [`Supervisor::pause`] has stopped.
    pub(super) fn unpause(&mut self) {
        let Some(paused) = self.paused.take() else { return };
        paused.resume();
        for (pid, signal) in std::mem::take(&mut self.stopped_before_pause) {
            if tree::process(pid).is_some_and(|now| now.is_stopped) {
                self.on_stopped(pid, signal);
            }
        }
    }

    /// Sends a signal to every process that the ended shell left running.
    pub(super) fn signal_left(&self, signal: Signal) {
        if self.shell.is_none() {
            orphans::signal(&tree::descendants(process::pid()), signal);
        }
    }
}
