//! A guard's reactions to processes of its command that stop at the terminal.
//!
//! Stops of the guard's own children, adopted ones included, arrive with SIGCHLD. For processes further below, the
//! guard looks through the tree when the host orders it. Invariants: it leaves alone processes at another terminal or
//! at none, and those stopped by a signal from elsewhere.

use std::collections::BTreeSet;
use std::time::Instant;

use super::asker::{self, Want};
use super::control::GuardReport;
use super::foreground::{Asking, StoppedGroup};
use super::supervisor::Supervisor;
use crate::sys::kill::{self, CONT, TSTP, TTIN, TTOU};
use crate::sys::process;
use crate::sys::tree::{self, Process};
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

impl Supervisor {
    /// Handles the stop of a child.
    pub(super) fn on_stopped(&mut self, pid: Pid, signal: Signal) {
        if self.paused.is_some() {
            if matches!(signal, TTIN | TTOU) {
                self.stopped_before_pause.push((pid, signal));
            }
            return;
        }
        if self.relayed.is_some() {
            if Some(pid) == self.shell {
                self.note_asker(signal);
                self.report(&[GuardReport::ShellStopped { signal }]);
            }
            return;
        }
        if self.shell.is_some() && tree::process(pid).is_some_and(|process| process.group == self.group) {
            self.is_reusable = false;
            // Without a terminal, these come only from kill(2).
            let is_asking = matches!(signal, TTIN | TTOU) && self.foreground.has_terminal();
            let stops_no_orphan = matches!(signal, TSTP | TTIN | TTOU) && !is_asking;
            if stops_no_orphan && self.caller.is_orphaned() {
                let _ = kill::process(pid, CONT);
                return;
            }
            self.caller.watch(Instant::now());
        }
        // Another stop signal has a sender, who will also continue the process.
        if !matches!(signal, TTIN | TTOU) {
            return;
        }
        let Some(process) = tree::process(pid).filter(is_at_run_terminal) else { return };
        let group = process.group;
        if self.shell.is_none() {
            self.foreground.hang_up_group(group);
        } else if self.foreground.has_terminal() && !self.foreground.knows(group) {
            self.on_group_stopped(group, signal == TTIN, &members_of(group));
        }
    }

    /// Reports that the shell goes on after a stop.
    pub(super) fn on_continued(&self, pid: Pid) {
        if self.relayed.is_some() && Some(pid) == self.shell {
            self.report(&[GuardReport::ShellContinued]);
        }
    }

    /// Checks if the caller's group was orphaned while the command is stopped. A process that asks for the terminal is
    /// not stopped in its caller's place.
    pub(super) fn look_at_caller(&mut self) {
        let members = members_of(self.group);
        if self.shell.is_none() || !members.iter().any(|process| process.is_stopped) {
            return self.caller.leave();
        }
        let asks = self.paused.is_some() || self.foreground.has_slice() || self.foreground.knows(self.group);
        if !asks && self.caller.is_orphaned() {
            self.caller.leave();
            let _ = kill::group(self.group, Signal::HUP);
            let _ = kill::group(self.group, CONT);
        }
    }

    /// Notes the process that asked for a terminal relayed on demand.
    fn note_asker(&mut self, signal: Signal) {
        let Some(demand) = self.demand.as_mut().filter(|_| matches!(signal, TTIN | TTOU)) else { return };
        let members = members_of(self.group);
        let asker = asker::asker(&members, signal == TTIN).map(|(asker, _)| asker.pid);
        demand.on_asked(asker.filter(|&asker| Some(asker) != self.shell));
    }

    fn on_group_stopped(&mut self, group: ProcessGroup, reads: bool, members: &[Process]) {
        let Some((asker, want)) = asker::asker(members, reads) else { return };
        let reads = want == Want::Input;
        let stopped = StoppedGroup { group, reads, how: Asking::Stopped, asker: asker.pid, program: asker.program };
        let report = self.foreground.on_stopped(stopped);
        self.report(report.as_slice());
    }

    /// Looks for stopped groups whose processes are not the guard's children: their stops are reported to other parents,
    /// such as timeout(1).
    pub(super) fn look(&mut self) {
        if self.shell.is_none() || self.relayed.is_some() || self.paused.is_some() || self.foreground.has_slice() {
            return;
        }
        if !self.foreground.has_terminal() {
            return;
        }
        let reports = self.foreground.check_asker();
        self.report(&reports);
        let reports = self.foreground.retake();
        self.report(&reports);
        let missed = self.foreground.find_missed_reader();
        self.report(missed.as_slice());
        let elsewhere = self.foreground.find_reader_elsewhere();
        self.report(elsewhere.as_slice());
        let guard = process::pid();
        let below: Vec<_> = tree::descendants(guard).into_iter().filter(is_at_run_terminal).collect();
        let is_stopped_by_key = |process: &&Process| process.is_stopped && process.stop_signal == Some(TSTP);
        let in_group = |process: &&Process| process.group == self.group;
        let stopped: Vec<Pid> =
            below.iter().filter(is_stopped_by_key).filter(in_group).map(|process| process.pid).collect();
        if !stopped.is_empty() {
            self.is_reusable = false;
            if self.caller.is_orphaned() {
                stopped.into_iter().for_each(|pid| _ = kill::process(pid, CONT));
            } else {
                self.caller.watch(Instant::now());
            }
        }
        let stopped = below.iter().filter(|process| process.is_stopped && process.parent != guard);
        for group in stopped.map(|process| process.group).collect::<BTreeSet<_>>() {
            let members: Vec<_> = below.iter().filter(|process| process.group == group).copied().collect();
            if let Some(reads) = asker::reads_at_stop(&members).filter(|_| !self.foreground.knows(group)) {
                self.on_group_stopped(group, reads, &members);
            }
        }
    }

    /// Hangs up the groups that are stopped at the terminal when the shell has ended: nobody will continue them.
    pub(super) fn hang_up_stopped(&mut self, left: &[Process]) {
        let stopped = left.iter().filter(|process| process.is_stopped && is_at_run_terminal(process));
        for group in stopped.map(|process| process.group).collect::<BTreeSet<_>>() {
            self.foreground.hang_up_group(group);
        }
    }
}

/// The processes of a group, in the order of [`tree::descendants`].
fn members_of(group: ProcessGroup) -> Vec<Process> {
    tree::descendants(process::pid()).into_iter().filter(|process| process.group == group).collect()
}

/// Returns true if a process is in the session of the run's terminal. Processes that made a session of their own, or
/// run below script(1) or tmux(1), stop at another terminal or at none.
fn is_at_run_terminal(process: &Process) -> bool {
    process.session == process::pid()
}
