//! The terminal's foreground, and the groups that were stopped for want of it.
//!
//! The guard's own group has the foreground. A group that stops at the terminal is told to the host once; when the host
//! has typed the end of the input it is lent the foreground for a slice. Invariants: one stopped group at a time is
//! before the host or has the foreground; the foreground comes back before the slave is closed; who was hung up and
//! still asks is killed, because it can neither be answered nor left to stop and go on for ever. Only the asker is, so
//! that its shell goes on as if it had failed, unless one asker follows the other.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

use super::control::Report;
use crate::limits;
use crate::sys::kill::{self, CONT};
use crate::sys::program::Program;
use crate::sys::{process, pty, tree};
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// Leaves the alternate screen, which a program that is hung up may not come to.
const LEAVE_SCREEN: &[u8] = b"\x1b[?1049l";

/// A group that was stopped at the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoppedGroup {
    pub(super) group: ProcessGroup,
    /// It wants input; else it only changes the terminal's modes.
    pub(super) reads: bool,
    /// The process for whose sake it was stopped.
    pub(super) asker: Pid,
    pub(super) program: Program,
}

/// Who has the foreground and who waits for it.
#[derive(Debug)]
pub(super) struct Foreground {
    /// Until the shell's end.
    slave: Option<OwnedFd>,
    /// The terminal's modes before the shell began.
    modes: Option<Termios>,
    owner: ProcessGroup,
    waiting: VecDeque<StoppedGroup>,
    reported: Option<StoppedGroup>,
    lent_until: Option<Instant>,
    is_second_slice: bool,
    hung_up_askers: Vec<Pid>,
    hung_up_groups: Vec<ProcessGroup>,
    /// Who gets it when the caller of a relayed terminal has its own again.
    away: Option<ProcessGroup>,
}

impl Foreground {
    /// The guard has it.
    pub(super) fn new(slave: OwnedFd) -> Self {
        let owner = process::pid().as_group();
        Self {
            modes: tcgetattr(&slave).ok(),
            slave: Some(slave),
            owner,
            waiting: VecDeque::new(),
            reported: None,
            lent_until: None,
            is_second_slice: false,
            hung_up_askers: Vec::new(),
            hung_up_groups: Vec::new(),
            away: None,
        }
    }

    /// The command begins while its caller is in the background of a terminal that is relayed.
    pub(super) fn begin_away(&mut self, shell: ProcessGroup) {
        self.away = Some(shell);
    }

    /// The caller of a relayed terminal goes on, in its foreground or not: so does the command.
    pub(super) fn resume(&mut self, is_foreground: bool, shell: ProcessGroup) {
        let Some(slave) = &self.slave else { return };
        let now = pty::foreground(slave).unwrap_or(self.owner);
        if is_foreground && let Some(group) = self.away.take() {
            let _ = pty::set_foreground(slave, group);
        } else if !is_foreground && now != self.owner {
            self.away = Some(now);
            self.take();
        }
        let group = if now == self.owner { shell } else { now };
        let _ = kill::group(group, CONT);
        if group != shell {
            let _ = kill::group(shell, CONT);
        }
    }

    /// The command does not ask for keys any more: the next that does is stopped. It stays in the foreground where
    /// somebody in it still waits for keys; whether it does not.
    pub(super) fn withdraw(&mut self, waits_for_keys: impl Fn(ProcessGroup) -> bool) -> bool {
        let Some(slave) = &self.slave else { return false };
        let Some(group) = pty::foreground(slave).ok().filter(|group| *group != self.owner) else { return false };
        if waits_for_keys(group) {
            return false;
        }
        self.take();
        // Between the look and this, somebody may have begun to wait.
        if waits_for_keys(group) {
            let _ = pty::set_foreground(slave, group);
            return false;
        }
        self.away = Some(group);
        true
    }

    /// Whether the terminal's other end is closed.
    pub(super) fn has_hung_up(&self) -> bool {
        let Some(slave) = &self.slave else { return false };
        let mut end = [PollFd::new(slave.as_fd(), PollFlags::empty())];
        poll(&mut end, PollTimeout::ZERO).is_ok_and(|found| found > 0)
    }

    /// Keys that the terminal has for its readers, bytes; whole lines only, where it reads lines.
    pub(super) fn unread_keys(&self) -> usize {
        self.slave.as_ref().map_or(0, pty::unread)
    }

    /// Whether this group has the foreground of a terminal that reads lines.
    pub(super) fn reads_lines(&self, group: ProcessGroup) -> bool {
        let Some(slave) = &self.slave else { return false };
        pty::reads_lines(slave) && pty::foreground(slave).is_ok_and(|now| now == group)
    }

    /// When the slice of the group that has it is over.
    pub(super) fn lent_until(&self) -> Option<Instant> {
        self.lent_until
    }

    /// Whether this group is on its way to its slice. One that stops within it has to ask again.
    pub(super) fn knows(&self, group: ProcessGroup) -> bool {
        let is_reported = self.reported.is_some_and(|known| known.group == group) && self.lent_until.is_none();
        is_reported || self.waiting.iter().any(|known| known.group == group)
    }

    /// A group was stopped; gives what the host is to be told.
    pub(super) fn on_stopped(&mut self, stopped: StoppedGroup) -> Option<Report> {
        if !self.knows(stopped.group) {
            self.waiting.push_back(stopped);
        }
        self.next_report()
    }

    fn next_report(&mut self) -> Option<Report> {
        if self.reported.is_some() {
            return None;
        }
        self.reported = self.waiting.pop_front();
        self.reported.map(|next| Report::Stopped { reads: next.reads, program: next.program })
    }

    /// The group that was told gets its slice.
    pub(super) fn lend(&mut self) {
        self.is_second_slice = false;
        self.continue_in_foreground();
    }

    fn continue_in_foreground(&mut self) {
        let (Some(stopped), Some(slave)) = (self.reported, &self.slave) else { return };
        match pty::set_foreground(slave, stopped.group) {
            Ok(()) => _ = kill::group(stopped.group, CONT),
            // To continue it would only stop it again.
            Err(_) => self.hang_up(stopped),
        }
        self.lent_until = Some(Instant::now() + limits::FOREGROUND_SLICE);
    }

    /// Ends a slice that is over; gives what the host is to be told.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<Report> {
        if self.lent_until.is_none_or(|until| now < until) {
            return Vec::new();
        }
        if !self.is_second_slice && self.reported.is_some_and(|stopped| tree::has_stopped_itself(stopped.asker)) {
            self.is_second_slice = true;
            self.continue_in_foreground();
            return Vec::new();
        }
        self.lent_until = None;
        self.reported = None;
        self.take();
        [Report::TookBack].into_iter().chain(self.next_report()).collect()
    }

    /// Takes it from who has helped itself to it, as shells with job control do: who reads there would never be stopped.
    pub(super) fn retake(&mut self) -> Option<Report> {
        let is_taken = |slave| pty::foreground(slave).is_ok_and(|group| group != self.owner);
        let is_taken = self.lent_until.is_none() && self.slave.as_ref().is_some_and(is_taken);
        is_taken.then(|| {
            self.take();
            Report::TookBack
        })
    }

    fn take(&self) {
        if let Some(slave) = &self.slave {
            let _ = pty::set_foreground(slave, self.owner);
        }
    }

    /// The group that was told has asked too often.
    pub(super) fn hang_up_reported(&mut self) -> Option<Report> {
        if let Some(stopped) = self.reported.take() {
            self.hang_up(stopped);
        }
        self.next_report()
    }

    /// Hangs an asker up, the second time for good. Its group goes with it when it is another user's, whom only the
    /// group's other members can end, or when there were too many before it.
    fn hang_up(&mut self, stopped: StoppedGroup) {
        let asker = stopped.asker;
        let is_again = self.hung_up_askers.contains(&asker);
        if !is_again && self.hung_up_askers.len() >= limits::HANG_UPS_MAX {
            return self.hang_up_group(stopped.group);
        }
        let sent = kill::process(asker, if is_again { Signal::KILL } else { Signal::HUP });
        if sent.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return self.hang_up_group(stopped.group);
        }
        self.hung_up_askers.push(asker);
        let _ = kill::process(asker, CONT);
        // Its shell is stopped with it and stays so: what that writes next would be on the asker's screen.
        if tree::ends_within(asker, limits::HANG_UP_WAIT) {
            self.restore_terminal();
        }
        let _ = kill::group(stopped.group, CONT);
    }

    /// Puts the terminal back as it was, if who had it did not.
    fn restore_terminal(&self) {
        let (Some(slave), Some(modes)) = (&self.slave, &self.modes) else { return };
        if tcgetattr(slave).is_ok_and(|now| now == *modes) {
            return;
        }
        let _ = tcsetattr(slave, SetArg::TCSANOW, modes);
        // A terminal that nobody reads would hold the guard up.
        let has_room = poll(&mut [PollFd::new(slave.as_fd(), PollFlags::POLLOUT)], PollTimeout::ZERO) == Ok(1);
        if has_room {
            let _ = nix::unistd::write(slave, LEAVE_SCREEN);
        }
    }

    /// Hangs a whole group up, the second time for good.
    pub(super) fn hang_up_group(&mut self, group: ProcessGroup) {
        if self.hung_up_groups.contains(&group) {
            let _ = kill::group(group, Signal::KILL);
            return;
        }
        self.hung_up_groups.push(group);
        let _ = kill::group(group, Signal::HUP);
        let _ = kill::group(group, CONT);
    }

    /// The shell has ended: the guard lets go of the terminal.
    pub(super) fn close(&mut self) {
        self.take();
        self.slave = None;
        self.lent_until = None;
        self.reported = None;
        self.waiting.clear();
    }
}
