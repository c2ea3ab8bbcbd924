//! Manages the terminal's foreground process group, and the groups that were stopped because they are not it.
//!
//! The guard's own group is the foreground group. The guard reports to the host, once, a group that stops at the
//! terminal. When the host has typed ^D, that group becomes the foreground group for a slice of time and is continued,
//! so that it reads end of file. A group that only changes the modes gets its slice without ^D: it may read next, and
//! then it asks. If a person answers, the group keeps the foreground until that person leaves (`answer`).
//!
//! A program of another session that asks for a password has no part in all this (`elsewhere`).
//!
//! Invariants: only one stopped group at a time is reported or has a slice, the others wait. The guard's group is the
//! foreground group again before the slave is closed. A process that got SIGHUP and asks again is killed, because it
//! can be neither answered nor left alone. Its shell goes on as if that program had failed, unless too many follow.

mod answer;
mod elsewhere;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

use self::answer::Leaving;
use super::asker;
use super::control::GuardReport;
use crate::core::entry::TerminalWish;
use crate::limits;
use crate::sys::kill::{self, CONT};
use crate::sys::program::Program;
use crate::sys::{process, pty, tree};
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// Leaves the alternate screen, for a program that is hung up before it does so itself.
const LEAVE_SCREEN: &[u8] = b"\x1b[?1049l";

/// The way in which a process group asks for the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Stopped,
    /// It began to read while it was in the foreground, so it was not stopped.
    Reading,
    /// It belongs to another session, so it was not stopped.
    Elsewhere,
}

/// A process group that asks for the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoppedGroup {
    pub(super) group: ProcessGroup,
    /// True if it reads the terminal. Otherwise it only changes the modes, or begins its job control.
    pub(super) reads: bool,
    pub(super) how: Asking,
    /// The process that asked for the terminal; the rest of the group was stopped with it.
    pub(super) asker: Pid,
    pub(super) program: Program,
}

/// The reason why a group has the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lease {
    /// To read end of file.
    EndOfFile,
    /// To change the modes.
    Modes,
    /// To read a person's keys.
    Answer,
}

/// The group in the foreground, and the groups that wait for it.
#[derive(Debug)]
pub(super) struct Foreground {
    /// `None` once the shell has ended.
    slave: Option<OwnedFd>,
    /// The terminal's modes before the shell began.
    modes: Option<Termios>,
    /// The guard's own group.
    own: ProcessGroup,
    waiting: VecDeque<StoppedGroup>,
    reported: Option<StoppedGroup>,
    slice_until: Option<Instant>,
    purpose: Lease,
    is_second_slice: bool,
    /// A person types for the command.
    is_answered: bool,
    /// Another group had the foreground at some time.
    was_lent: bool,
    leaving: Option<Leaving>,
    /// The process of another session that was given end of file and may still read.
    ended_elsewhere: Option<Pid>,
    hung_up_askers: Vec<Pid>,
    hung_up_groups: Vec<ProcessGroup>,
    /// On a relayed terminal whose caller is in the background: the group to restore when the caller returns.
    away: Option<ProcessGroup>,
}

impl Foreground {
    /// The state of a terminal whose foreground group is the guard's.
    pub(super) fn new(slave: OwnedFd) -> Self {
        Self {
            modes: tcgetattr(&slave).ok(),
            slave: Some(slave),
            own: process::pid().as_group(),
            waiting: VecDeque::new(),
            reported: None,
            slice_until: None,
            purpose: Lease::EndOfFile,
            is_second_slice: false,
            is_answered: false,
            was_lent: false,
            leaving: None,
            ended_elsewhere: None,
            hung_up_askers: Vec::new(),
            hung_up_groups: Vec::new(),
            away: None,
        }
    }

    /// Returns true if the command has a terminal that it may stop at.
    pub(super) fn has_terminal(&self) -> bool {
        self.slave.is_some()
    }

    /// Notes that the command begins while its caller is in the background of a relayed terminal.
    pub(super) fn begin_away(&mut self, shell: ProcessGroup) {
        self.away = Some(shell);
    }

    /// Adapts to the caller of a relayed terminal, which goes on, in the foreground or not; with `continues`, the
    /// command goes on, too.
    pub(super) fn resume(&mut self, is_foreground: bool, continues: bool, shell: ProcessGroup) {
        let Some(slave) = &self.slave else { return };
        let now = pty::foreground(slave).unwrap_or(self.own);
        if is_foreground && let Some(group) = self.away.take() {
            let _ = pty::set_foreground(slave, group);
        } else if !is_foreground && now != self.own {
            self.away = Some(now);
            self.take_back();
        }
        if !continues {
            return;
        }
        let group = if now == self.own { shell } else { now };
        let _ = kill::group(group, CONT);
        if group != shell {
            let _ = kill::group(shell, CONT);
        }
    }

    /// Takes the foreground from a command that asks for keys no longer, so that the next process that does is stopped.
    /// Returns false, and changes nothing, if a member of the foreground group still waits for keys.
    pub(super) fn withdraw(&mut self, waits_for_keys: impl Fn(ProcessGroup) -> bool) -> bool {
        let Some(slave) = &self.slave else { return false };
        let Some(group) = pty::foreground(slave).ok().filter(|group| *group != self.own) else { return false };
        if waits_for_keys(group) {
            return false;
        }
        self.take_back();
        // A member may have begun to wait between the look and this moment.
        if waits_for_keys(group) {
            let _ = pty::set_foreground(slave, group);
            return false;
        }
        self.away = Some(group);
        true
    }

    /// Returns true if the terminal's master is closed.
    pub(super) fn has_hung_up(&self) -> bool {
        let Some(slave) = &self.slave else { return false };
        let mut end = [PollFd::new(slave.as_fd(), PollFlags::empty())];
        poll(&mut end, PollTimeout::ZERO).is_ok_and(|found| found > 0)
    }

    /// The bytes that the terminal has for its readers. In line mode, only complete lines count.
    pub(super) fn unread_keys(&self) -> usize {
        self.slave.as_ref().map_or(0, pty::unread)
    }

    /// Returns true if this group is the foreground group of a terminal in line mode.
    pub(super) fn reads_lines(&self, group: ProcessGroup) -> bool {
        let Some(slave) = &self.slave else { return false };
        pty::reads_lines(slave) && pty::foreground(slave).is_ok_and(|now| now == group)
    }

    /// The group for the human's ^C: the foreground group, else the one that waits for input, else the shell's. The
    /// terminal keeps the number of a group that has no members any more, which may be that of another command by then.
    pub(super) fn interruptible(
        &self,
        shell: ProcessGroup,
        has_members: impl Fn(ProcessGroup) -> bool,
    ) -> ProcessGroup {
        let foreground = self.slave.as_ref().and_then(|slave| pty::foreground(slave).ok());
        let waiting = self.reported.filter(|asking| asking.how != Asking::Elsewhere).map(|asking| asking.group);
        let mut asked = foreground.filter(|group| *group != self.own).into_iter().chain(waiting);
        asked.find(|&group| has_members(group)).unwrap_or(shell)
    }

    /// Returns true if the reported group has its slice.
    pub(super) fn has_slice(&self) -> bool {
        self.slice_until.is_some()
    }

    /// Returns true if a group waits for its slice. A group that stops again within its slice must ask again. So must
    /// one that stops after a report that it went on reading: it may be stopped for something else.
    pub(super) fn knows(&self, group: ProcessGroup) -> bool {
        let has_foreground = self.slice_until.is_some() || self.is_answered;
        let is_reported = self.reported.is_some_and(|known| known.group == group && known.how == Asking::Stopped);
        let is_reported = is_reported && !has_foreground;
        is_reported || self.waiting.iter().any(|known| known.group == group)
    }

    /// Notes a stopped group; returns the report for the host.
    pub(super) fn on_stopped(&mut self, stopped: StoppedGroup) -> Option<GuardReport> {
        if self.is_answered {
            self.let_answer(stopped);
            return None;
        }
        if !self.knows(stopped.group) {
            self.waiting.push_back(stopped);
        }
        self.next_report()
    }

    /// Reports the next waiting group. One that was continued since its stop asks no more.
    fn next_report(&mut self) -> Option<GuardReport> {
        if self.reported.is_some() {
            return None;
        }
        while self.reported.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            self.reported = Some(next).filter(|next| self.still_asks(next));
        }
        self.reported.map(|next| GuardReport::Stopped { wish: self.wish(&next), program: next.program })
    }

    fn wish(&self, asking: &StoppedGroup) -> TerminalWish {
        match asking.how {
            Asking::Elsewhere if !self.slave.as_ref().is_some_and(pty::reads_lines) => TerminalWish::Keys,
            _ if asking.reads => TerminalWish::Input,
            _ => TerminalWish::Modes,
        }
    }

    /// Gives the reported group its slice, in which it reads the end of file that the host has typed.
    pub(super) fn end_input(&mut self) {
        self.continue_in_foreground(Lease::EndOfFile);
    }

    /// Gives the reported group a slice to change the modes. Earlier keys, perhaps end of file, are dropped: a program
    /// that reads next must be noticed.
    pub(super) fn pass_modes(&mut self) {
        if let Some(slave) = &self.slave {
            pty::drop_unread(slave);
        }
        self.continue_in_foreground(Lease::Modes);
    }

    fn continue_in_foreground(&mut self, purpose: Lease) {
        (self.purpose, self.is_second_slice) = (purpose, false);
        self.begin_slice();
    }

    fn begin_slice(&mut self) {
        let (Some(stopped), Some(slave)) = (self.reported, &self.slave) else { return };
        if stopped.how == Asking::Elsewhere {
            self.let_read_elsewhere(stopped.asker);
        } else {
            match pty::set_foreground(slave, stopped.group) {
                Ok(()) => _ = kill::group(stopped.group, CONT),
                // A person is there to handle it.
                Err(_) if self.purpose == Lease::Answer => {}
                // Continued in the background, it would only stop again.
                Err(_) => self.hang_up(stopped),
            }
        }
        self.slice_until = Some(Instant::now() + limits::FOREGROUND_SLICE);
        self.was_lent = true;
    }

    /// Ends a slice whose time is over; returns the reports for the host.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<GuardReport> {
        if let Some(leaving) = self.leaving.filter(|leaving| now >= leaving.look_at) {
            return self.tick_leaving(leaving, now);
        }
        if self.slice_until.is_none_or(|until| now < until) {
            return Vec::new();
        }
        if !self.is_second_slice && self.reported.is_some_and(|stopped| asker::has_stopped_itself(stopped.asker)) {
            self.is_second_slice = true;
            self.begin_slice();
            return Vec::new();
        }
        self.slice_until = None;
        if self.purpose == Lease::Answer {
            return Vec::new();
        }
        let asked = self.reported.take();
        self.take_back();
        match self.purpose {
            Lease::Modes => self.after_taking_back(),
            _ if asked.is_some_and(|asking| asking.how == Asking::Elsewhere) => {
                self.next_report().into_iter().collect()
            }
            _ => [GuardReport::TookBack].into_iter().chain(self.next_report()).collect(),
        }
    }

    /// Takes the foreground back from a job-control shell that claimed it. A foreground process is never stopped for
    /// reading, so its prompt would go unnoticed.
    pub(super) fn retake(&mut self) -> Vec<GuardReport> {
        let is_claimed = |slave| pty::foreground(slave).is_ok_and(|group| group != self.own);
        let is_lent = self.slice_until.is_some() || self.is_answered;
        if is_lent || !self.slave.as_ref().is_some_and(is_claimed) {
            return Vec::new();
        }
        self.was_lent = true;
        self.take_back();
        self.after_taking_back()
    }

    fn take_back(&self) {
        if let Some(slave) = &self.slave {
            let _ = pty::set_foreground(slave, self.own);
        }
    }

    /// Hangs up the reported group's asker after too many requests; returns the report on the next group. A slice ends
    /// here, so that its end does not count as the next group's.
    pub(super) fn hang_up_reported(&mut self) -> Option<GuardReport> {
        if self.slice_until.take().is_some() {
            self.take_back();
        }
        if let Some(stopped) = self.reported.take() {
            self.hang_up(stopped);
        }
        self.next_report()
    }

    /// Sends SIGHUP to an asker, SIGKILL the second time. The whole group gets it instead if the asker belongs to
    /// another user (only the group's other members can end it then), or after too many askers.
    fn hang_up(&mut self, stopped: StoppedGroup) {
        let asker = stopped.asker;
        if stopped.how == Asking::Elsewhere {
            return;
        }
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
        // The asker's shell is still stopped with it. Its next output should not appear on the asker's screen.
        if tree::ends_within(asker, limits::HANG_UP_WAIT) {
            self.restore_terminal();
        }
        let _ = kill::group(stopped.group, CONT);
    }

    /// Restores the terminal's modes and leaves the alternate screen, if the modes have changed.
    fn restore_terminal(&self) {
        let (Some(slave), Some(modes)) = (&self.slave, &self.modes) else { return };
        if tcgetattr(slave).is_ok_and(|now| now == *modes) {
            return;
        }
        let _ = tcsetattr(slave, SetArg::TCSANOW, modes);
        // Without room, a write to a terminal that nobody reads would block the guard.
        let has_room = poll(&mut [PollFd::new(slave.as_fd(), PollFlags::POLLOUT)], PollTimeout::ZERO) == Ok(1);
        if has_room {
            let _ = nix::unistd::write(slave, LEAVE_SCREEN);
        }
    }

    /// Sends SIGHUP and SIGCONT to a whole group, SIGKILL the second time.
    pub(super) fn hang_up_group(&mut self, group: ProcessGroup) {
        if self.hung_up_groups.contains(&group) {
            let _ = kill::group(group, Signal::KILL);
            return;
        }
        self.hung_up_groups.push(group);
        let _ = kill::group(group, Signal::HUP);
        let _ = kill::group(group, CONT);
    }

    /// Leaves the command without a controlling terminal, and continues the processes stopped at it. Later readers are
    /// not stopped, and get end of file as soon as the host has hung up. Returns the processes that have asked.
    pub(super) fn give_up(&mut self) -> Vec<Pid> {
        let Some(slave) = self.slave.take() else { return Vec::new() };
        // Its SIGHUP is for the foreground group: the guard's own, which ignores it.
        let _ = pty::set_foreground(&slave, self.own);
        pty::give_up(&slave);
        let asked: Vec<_> = self.reported.take().into_iter().chain(self.waiting.drain(..)).collect();
        for stopped in &asked {
            let _ = kill::group(stopped.group, CONT);
        }
        self.close();
        asked.into_iter().map(|stopped| stopped.asker).collect()
    }

    /// Closes the terminal, because the shell has ended.
    pub(super) fn close(&mut self) {
        self.take_back();
        self.slave = None;
        (self.slice_until, self.leaving, self.reported) = (None, None, None);
        self.is_answered = false;
        self.waiting.clear();
    }
}
