//! A person's answer: gives the foreground to the process group that asks, and takes it back afterwards.
//!
//! Invariants: keys typed before the foreground was given are dropped, except for a process that has been reading
//! since; while a person answers, every group that stops gets the foreground at once; after the foreground was taken
//! back, a process that still reads is reported like a stopped one.

use std::time::Instant;

use super::{Asking, Foreground, Lease, StoppedGroup};
use crate::guard::asker;
use crate::guard::control::GuardReport;
use crate::limits;
use crate::sys::{process, pty, tree};
use rexec_sh::protocol::process::ProcessGroup;

/// The departure of the person who answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    /// The next check that all keys are read.
    pub(super) look_at: Instant,
    /// The time at which the foreground is taken back in any case.
    latest: Instant,
}

impl Foreground {
    /// Gives the foreground to the group that asks, or else to the shell's.
    pub(in crate::guard) fn give(&mut self, shell: ProcessGroup) -> GuardReport {
        let was_answered = std::mem::replace(&mut self.is_answered, true);
        (self.leaving, self.was_lent) = (None, true);
        if !was_answered && !self.reported.is_some_and(|asking| asking.how != Asking::Stopped) {
            self.drop_typed();
        }
        match self.reported {
            Some(asking) => self.let_answer(asking),
            None => {
                if let Some(slave) = &self.slave {
                    let _ = pty::set_foreground(slave, shell);
                }
            }
        }
        GuardReport::Given
    }

    /// Lets a group that asks read the answer of the person who is there.
    pub(super) fn let_answer(&mut self, asking: StoppedGroup) {
        self.reported = Some(asking);
        self.continue_in_foreground(Lease::Answer);
    }

    fn drop_typed(&self) {
        if let Some(slave) = &self.slave {
            pty::drop_unread(slave);
        }
    }

    /// Begins the person's departure. The command has a moment to read the keys.
    pub(in crate::guard) fn leave(&mut self, now: Instant) {
        if self.is_answered {
            self.leaving = Some(Leaving { look_at: now + limits::FOREGROUND_SLICE, latest: now + limits::ANSWER_READ });
        }
    }

    /// Takes the foreground back once all keys are read.
    pub(super) fn tick_leaving(&mut self, leaving: Leaving, now: Instant) -> Vec<GuardReport> {
        if now < leaving.latest && self.unread_keys() > 0 {
            self.leaving = Some(Leaving { look_at: now + limits::FOREGROUND_SLICE, ..leaving });
            return Vec::new();
        }
        let answered = self.reported.take();
        (self.leaving, self.is_answered, self.slice_until) = (None, false, None);
        self.take_back();
        match answered {
            Some(asking) if asking.how == Asking::Elsewhere => self.next_report().into_iter().collect(),
            _ => self.after_taking_back(),
        }
    }

    /// The reports after the foreground was taken back. A process that still reads was not stopped, and would take the
    /// next keys of the host.
    pub(super) fn after_taking_back(&mut self) -> Vec<GuardReport> {
        let Some(reading) = self.find_reader(self.hides_keys()) else {
            return [GuardReport::TookBack].into_iter().chain(self.next_report()).collect();
        };
        self.waiting.push_front(reading);
        self.next_report().into_iter().collect()
    }

    /// Looks for a process that reads the terminal unnoticed: it was in the foreground, and had not gone to sleep yet
    /// when that was taken back. Returns the report for the host.
    pub(in crate::guard) fn find_missed_reader(&mut self) -> Option<GuardReport> {
        let is_lent = self.slice_until.is_some() || self.is_answered;
        if !self.was_lent || is_lent || self.reported.is_some() || !self.waiting.is_empty() {
            return None;
        }
        // Only the hidden keys show that another user's process reads, and it may have hidden them for something else
        // by now.
        let reading = self.find_reader(false)?;
        self.waiting.push_back(reading);
        self.next_report()
    }

    /// A process that reads the terminal although it is no longer in the foreground.
    fn find_reader(&self, hides_keys: bool) -> Option<StoppedGroup> {
        let below: Vec<_> = tree::descendants(process::pid());
        let below: Vec<_> = below.into_iter().filter(|other| other.session == process::pid()).collect();
        let found = asker::reader(&below, hides_keys)?;
        Some(StoppedGroup {
            group: found.group,
            reads: true,
            how: Asking::Reading,
            asker: found.pid,
            program: found.program,
        })
    }

    fn hides_keys(&self) -> bool {
        self.slave.as_ref().is_some_and(pty::hides_keys)
    }

    /// Forgets the reported group if it asks no more; returns the reports for the host.
    pub(in crate::guard) fn check_asker(&mut self) -> Vec<GuardReport> {
        let is_idle = self.slice_until.is_none() && !self.is_answered;
        let Some(asking) = self.reported.filter(|_| is_idle) else { return Vec::new() };
        if self.still_asks(&asking) {
            return Vec::new();
        }
        self.reported = None;
        [GuardReport::AskerGone].into_iter().chain(self.next_report()).collect()
    }

    /// Returns true if a group is stopped or, if it was not when it was reported, still reads.
    pub(super) fn still_asks(&self, asking: &StoppedGroup) -> bool {
        let members = tree::descendants(process::pid());
        let mut members = members.iter().filter(|other| other.group == asking.group);
        match asking.how {
            Asking::Elsewhere => self.reads_elsewhere(asking.asker),
            Asking::Reading => {
                members.any(|other| other.pid == asking.asker && asker::still_reads(other, self.hides_keys()))
            }
            Asking::Stopped => members.any(|other| other.is_stopped),
        }
    }

    /// The time at which [`Foreground::tick`] has something to do.
    pub(in crate::guard) fn deadline(&self) -> Option<Instant> {
        self.slice_until.into_iter().chain(self.leaving.map(|leaving| leaving.look_at)).min()
    }
}
