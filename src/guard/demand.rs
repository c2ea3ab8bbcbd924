//! A caller's terminal on demand: how long the command keeps it, once it has asked for keys.
//!
//! The shell begins in the background of its terminal. A read, or a change of modes, stops it, and the caller's shim
//! takes the terminal and hands keys on. Other processes may want the same terminal's keys, so it goes back when the
//! process that asked has ended, or when all that was typed is read and nobody waits for more. Invariants: it never goes
//! back while a member of the foreground group waits in a read or a poll, because that would wait for ever; what asks
//! after it went back is stopped, and asks again.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::control::Report;
use super::foreground::Foreground;
use crate::limits;
use crate::sys::kill::Pidfd;
use crate::sys::{process, tree};
use rexec_sh::protocol::process::{Pid, ProcessGroup};

/// The demand of one command.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// Ends with the process that asked.
    asker: Option<Pidfd>,
    has_asker_ended: bool,
    is_lent: bool,
    /// Keys were typed of which the host has not heard that they were read.
    has_unread: bool,
    /// When to look next, and how long to wait after that.
    look: Option<(Instant, Duration)>,
}

impl Demand {
    /// The command was stopped for the sake of this process, unless that is the shell itself.
    pub(super) fn on_asked(&mut self, asker: Option<Pid>) {
        self.asker = asker.and_then(Pidfd::open);
        self.has_asker_ended = false;
    }

    /// The caller's terminal is taken, and the command is in the foreground of its own.
    pub(super) fn on_lent(&mut self) {
        self.is_lent = true;
    }

    /// Keys were written to the command's terminal.
    pub(super) fn on_typed(&mut self, now: Instant) {
        self.has_unread = true;
        self.look_from(now);
    }

    fn look_from(&mut self, now: Instant) {
        self.look = Some((now + limits::DEMAND_LOOK, limits::DEMAND_LOOK));
    }

    /// What tells, by becoming readable, that the process that asked has ended.
    pub(super) fn asker(&self) -> Option<BorrowedFd<'_>> {
        self.asker.as_ref().filter(|_| self.is_lent).map(AsFd::as_fd)
    }

    /// The process that asked has ended.
    pub(super) fn on_asker_ended(&mut self, now: Instant) {
        self.asker = None;
        self.has_asker_ended = true;
        self.look = Some((now, limits::DEMAND_LOOK));
    }

    /// When [`Demand::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look.map(|(at, _)| at)
    }

    /// Looks whether the command still wants keys; returns what the host has to hear.
    pub(super) fn tick(&mut self, now: Instant, foreground: &mut Foreground, shell: ProcessGroup) -> Vec<Report> {
        let Some((_, pause)) = self.look.filter(|(at, _)| *at <= now) else { return Vec::new() };
        let mut reports = Vec::new();
        let is_read = foreground.unread_keys() == 0;
        if is_read && std::mem::take(&mut self.has_unread) {
            reports.push(Report::KeysRead);
        }
        let may_return = self.has_asker_ended || (is_read && foreground.reads_lines(shell));
        if self.is_lent && may_return && foreground.withdraw(waits_for_keys) {
            *self = Self::default();
            reports.push(Report::TerminalReturned);
            return reports;
        }
        let is_over = pause >= limits::DEMAND_LOOK_MAX && !self.has_unread && !self.has_asker_ended;
        let pause = (2 * pause).min(limits::DEMAND_LOOK_MAX);
        self.look = (!is_over).then_some((now + pause, pause));
        reports
    }
}

/// Whether a member of this group may be waiting for keys.
fn waits_for_keys(group: ProcessGroup) -> bool {
    tree::descendants(process::pid())
        .iter()
        .any(|process| process.group == group && tree::may_wait_for_keys(process.pid))
}
