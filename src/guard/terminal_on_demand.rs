//! A caller's terminal that is relayed on demand: how long the command keeps it once it has asked for keys.
//!
//! The shell begins in the background of its terminal. Reading the terminal, or changing its modes, stops it. The shim
//! then takes the caller's terminal and passes keys on. Other processes may want keys from the same terminal, so the
//! command gives it back when the process that asked has ended, or when everything typed is read, the terminal reads lines,
//! and no process waits for more.
//!
//! Invariants: the command keeps the terminal while a member of the foreground group waits in read(2) or poll(2), because
//! that call would never return otherwise. A process that asks later is stopped, and asks again.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::asker;
use super::control::GuardReport;
use super::foreground::Foreground;
use crate::limits;
use crate::sys::kill::Pidfd;
use crate::sys::{process, tree};
use rexec_sh::protocol::process::{Pid, ProcessGroup};

/// The mode of input (termios(3)) in which the terminal was seen since the command has asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ModeSeen {
    /// Canonical all the time: its readers get lines.
    #[default]
    Canonical,
    Noncanonical,
    /// Canonical again, since this time.
    CanonicalAgain(Instant),
}

impl ModeSeen {
    /// After another look.
    fn seen(self, reads_lines: bool, now: Instant) -> Self {
        match (self, reads_lines) {
            (_, false) => Self::Noncanonical,
            (Self::Noncanonical, true) => Self::CanonicalAgain(now),
            (before, true) => before,
        }
    }

    /// Whether nobody is about to read keys.
    fn is_canonical(self, now: Instant) -> bool {
        match self {
            Self::Canonical => true,
            Self::Noncanonical => false,
            Self::CanonicalAgain(since) => now.saturating_duration_since(since) >= limits::DEMAND_KEYS_OVER,
        }
    }

    /// Whether time alone makes a difference.
    fn may_be_canonical_soon(self, now: Instant) -> bool {
        matches!(self, Self::CanonicalAgain(_)) && !self.is_canonical(now)
    }
}

/// The demand of one command.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// The process that asked.
    asker: Option<Pidfd>,
    has_asker_ended: bool,
    /// Whether the command has the terminal.
    has_terminal: bool,
    /// Whether keys were typed since the last report that everything is read.
    has_unread: bool,
    mode: ModeSeen,
    /// The time of the next look, and the pause before it.
    look: Option<(Instant, Duration)>,
}

impl Demand {
    /// The command was stopped because this process asked; `None` when the shell itself did.
    pub(super) fn on_asked(&mut self, asker: Option<Pid>) {
        self.asker = asker.and_then(Pidfd::open);
        self.has_asker_ended = false;
    }

    /// The shim has taken the caller's terminal, and the command is in the foreground of its own.
    pub(super) fn on_granted(&mut self, now: Instant) {
        self.has_terminal = true;
        if self.has_unread || self.has_asker_ended {
            self.look_from(now);
        }
    }

    /// Keys were written to the command's terminal, which read lines or keys.
    pub(super) fn on_typed(&mut self, reads_lines: bool, now: Instant) {
        self.has_unread = true;
        self.mode = self.mode.seen(reads_lines, now);
        self.look_from(now);
    }

    fn look_from(&mut self, now: Instant) {
        self.look = Some((now + limits::DEMAND_LOOK, limits::DEMAND_LOOK));
    }

    /// A descriptor that becomes readable when the process that asked has ended.
    pub(super) fn asker(&self) -> Option<BorrowedFd<'_>> {
        self.asker.as_ref().filter(|_| self.has_terminal).map(AsFd::as_fd)
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

    /// Checks whether the command still wants keys; returns the reports for the host.
    pub(super) fn tick(&mut self, now: Instant, foreground: &mut Foreground, shell: ProcessGroup) -> Vec<GuardReport> {
        let Some((_, pause)) = self.look.filter(|(at, _)| *at <= now) else { return Vec::new() };
        let mut reports = Vec::new();
        let is_read = foreground.unread_keys() == 0;
        if is_read && std::mem::take(&mut self.has_unread) {
            reports.push(GuardReport::KeysRead);
        }
        self.mode = self.mode.seen(foreground.reads_lines(shell), now);
        let may_return = self.has_asker_ended || (is_read && self.mode.is_canonical(now));
        if self.has_terminal && may_return && foreground.withdraw(waits_for_keys) {
            *self = Self::default();
            reports.push(GuardReport::TerminalReturned);
            return reports;
        }
        let is_awaited = self.has_unread || self.has_asker_ended || self.mode.may_be_canonical_soon(now);
        let is_over = !is_awaited && pause >= limits::DEMAND_LOOK_MAX;
        let pause = (2 * pause).min(limits::DEMAND_LOOK_MAX);
        self.look = (!is_over).then_some((now + pause, pause));
        reports
    }
}

/// Whether a member of this group may be waiting for keys, or is stopped: that one may ask when it goes on.
fn waits_for_keys(group: ProcessGroup) -> bool {
    tree::descendants(process::pid())
        .iter()
        .filter(|process| process.group == group)
        .any(|process| process.is_stopped || asker::may_wait_for_keys(process.pid))
}
