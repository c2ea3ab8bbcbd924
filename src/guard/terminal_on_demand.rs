//! A caller's terminal that is relayed on demand: decides how long the command keeps it after asking for keys.
//!
//! The shell begins in the background of its terminal. Reading the terminal, or changing its modes, stops it. The shim
//! then takes the caller's terminal and passes keys on. Other processes may want keys from the same terminal, so the
//! command gives it back when the process that asked has ended, or when everything typed is read and no process waits
//! for more; a while after the last key, if a program has read it that lives.
//!
//! Invariants: the command keeps the terminal while a member of the foreground group waits in read(2) or poll(2),
//! because that call would never return otherwise. A process that asks later is stopped, and asks again.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::asker;
use super::control::GuardReport;
use super::foreground::Foreground;
use crate::limits;
use crate::sys::kill::Pidfd;
use crate::sys::{process, tree};
use rexec_sh::protocol::process::{Pid, ProcessGroup};

/// The demand of one command.
#[derive(Debug, Default)]
pub(super) struct Demand {
    reader: Reader,
    /// True if the command has the terminal.
    has_terminal: bool,
    /// True if keys were typed since the last report that all are read.
    has_unread: bool,
    /// Until then a program that reads keeps the terminal.
    kept_until: Option<Instant>,
    /// The time of the next look, and the pause before it.
    look: Option<(Instant, Duration)>,
}

/// Who reads the keys.
#[derive(Debug, Default)]
enum Reader {
    /// The shell itself has asked.
    #[default]
    Shell,
    /// The program that has asked.
    Asker(Pidfd),
    /// The program that had asked, and has ended.
    Ended,
    /// Another one, which waited for keys when the one that had asked was gone.
    Other,
}

impl Demand {
    /// Notes that the command was stopped because this process asked; `None` if the shell itself did.
    pub(super) fn on_asked(&mut self, asker: Option<Pid>) {
        self.reader = asker.and_then(Pidfd::open).map_or(Reader::Shell, Reader::Asker);
    }

    /// Notes that the shim has taken the caller's terminal, and that the command is in the foreground of its own.
    pub(super) fn on_granted(&mut self, now: Instant) {
        self.has_terminal = true;
        if self.has_unread || self.has_asker_ended() {
            self.look_from(now);
        }
    }

    /// Notes that keys were written to the command's terminal.
    pub(super) fn on_typed(&mut self, now: Instant) {
        self.has_unread = true;
        // One that has ended may have read them. The shell goes on with its next command.
        let is_program = matches!(self.reader, Reader::Asker(_) | Reader::Other);
        self.kept_until = is_program.then(|| now + limits::DEMAND_KEPT);
        self.look_from(now);
    }

    fn look_from(&mut self, now: Instant) {
        self.look = Some((now + limits::DEMAND_LOOK, limits::DEMAND_LOOK));
    }

    /// A descriptor that becomes readable when the process that asked has ended.
    pub(super) fn asker(&self) -> Option<BorrowedFd<'_>> {
        match &self.reader {
            Reader::Asker(asker) if self.has_terminal => Some(asker.as_fd()),
            _ => None,
        }
    }

    /// Notes that the process that asked has ended.
    pub(super) fn on_asker_ended(&mut self, now: Instant) {
        (self.reader, self.kept_until) = (Reader::Ended, None);
        self.look = Some((now, limits::DEMAND_LOOK));
    }

    fn has_asker_ended(&self) -> bool {
        matches!(self.reader, Reader::Ended | Reader::Other)
    }

    /// The time at which [`Demand::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look.map(|(at, _)| at)
    }

    /// Checks if the command still wants keys; returns the reports for the host.
    pub(super) fn tick(&mut self, now: Instant, foreground: &mut Foreground, shell: ProcessGroup) -> Vec<GuardReport> {
        let Some((_, pause)) = self.look.filter(|(at, _)| *at <= now) else { return Vec::new() };
        let mut reports = Vec::new();
        let is_read = foreground.unread_keys() == 0;
        if is_read && std::mem::take(&mut self.has_unread) {
            reports.push(GuardReport::KeysRead);
        }
        let is_kept = self.kept_until.is_some_and(|until| now < until);
        let may_return = !is_kept && (self.has_asker_ended() || (is_read && foreground.reads_lines(shell)));
        if self.has_terminal && may_return {
            if foreground.withdraw(waits_for_keys) {
                *self = Self::default();
                reports.push(GuardReport::TerminalReturned);
                return reports;
            }
            if self.has_asker_ended() {
                self.reader = Reader::Other;
            }
        }
        let is_over = pause >= limits::DEMAND_LOOK_MAX && !self.has_unread && !self.has_asker_ended();
        let pause = (2 * pause).min(limits::DEMAND_LOOK_MAX);
        self.look = (!is_over).then_some((now + pause, pause));
        reports
    }
}

/// Returns true if a member of this group may be waiting for keys, or is stopped: that one may ask when it goes on.
fn waits_for_keys(group: ProcessGroup) -> bool {
    tree::descendants(process::pid())
        .iter()
        .filter(|process| process.group == group)
        .any(|process| process.is_stopped || asker::may_wait_for_keys(process.pid))
}
