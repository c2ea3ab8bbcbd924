//! The orders to a guard, and what the guard owes the host for them, until when.
//!
//! ```text
//! RUN  ─▶ owes Ready, then Begun unless it is told to begin
//!                      ── in time ─▶ nothing     ── late ─▶ it is killed; nothing ran, another guard gets the command
//! Kill ─▶ owes Hunting ── in time ─▶ owes its end ─ late ─▶ it is killed; the host hunts what was below it
//! ```
//!
//! A command can send SIGSTOP to its guard, or to another's. So the host continues a guard with every order, and
//! repeatedly while it owes something. Invariants: a debt has a time at which the guard is killed, and a killed guard has
//! a time at which it counts as gone; signals that a guard got before it began are kept for the next one.

use std::time::Instant;

use crate::core::job::Order;
use crate::guard::control;
use crate::io::outlet::Outlet;
use crate::limits;
use rexec_sh::protocol::process::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// The report that it is ready to begin, and then that it begins, unless the host tells it to.
    Begun,
    /// The report that it kills the command's tree.
    Hunting,
    /// Its end, or the names of what it cannot kill.
    End,
    /// Its death, because it was killed.
    Death,
}

#[derive(Debug, Clone, Copy)]
struct Debt {
    owed: Owed,
    due: Instant,
    wake_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Continue the guard, which may be stopped.
    Wake,
    /// Kill the guard, because its time is over.
    Kill,
    /// Count the guard as gone: it was killed and does not go.
    Bury,
}

/// A guard's progress with its command. It begins when the host tells it to, or says that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The host knows nothing of it.
    Receives,
    /// It has the whole command and is ready to begin, with the guard's terminal or without one.
    IsReady { is_detached: bool },
    /// It has begun, or may have.
    HasBegun,
}

#[derive(Debug)]
pub(super) struct Orders {
    /// The rest of the RUN frame, then orders.
    pub(super) out: Outlet,
    /// Signals that it got before it began.
    early: Vec<Signal>,
    progress: Progress,
    killed_at: Option<Instant>,
    debt: Option<Debt>,
}

impl Orders {
    /// The orders to a guard that has just got a command, which `attempt` guards had before.
    pub(super) fn new(attempt: u32, now: Instant) -> Self {
        let patience = limits::START_PATIENCE * 2_u32.saturating_pow(attempt.min(8));
        let debt = Debt { owed: Owed::Begun, due: now + patience, wake_at: now + limits::WAKE_EVERY };
        let (out, progress) = (Outlet::default(), Progress::Receives);
        Self { out, early: Vec::new(), progress, killed_at: None, debt: Some(debt) }
    }

    pub(super) fn give(&mut self, order: Order, now: Instant) {
        self.out.buffer().extend_from_slice(&control::encode_order(order));
        match order {
            Order::Signal(signal) if !self.has_begun() => self.early.push(signal),
            Order::Kill if self.killed_at.is_none() => {
                self.killed_at = Some(now);
                self.owe(Owed::Hunting, now + limits::ORDER_PATIENCE, now);
            }
            _ => {}
        }
    }

    fn owe(&mut self, owed: Owed, due: Instant, now: Instant) {
        self.debt = Some(Debt { owed, due, wake_at: now + limits::WAKE_EVERY });
    }

    /// The guard has the whole command and waits for the order to begin.
    pub(super) fn on_ready(&mut self, is_detached: bool) {
        if self.progress == Progress::Receives {
            self.progress = Progress::IsReady { is_detached };
        }
    }

    /// What the command may destroy is being kept until then, and the guard begins after that.
    pub(super) fn on_keeping(&mut self, until: Instant, now: Instant) {
        if self.debt.is_some_and(|debt| debt.owed == Owed::Begun) {
            self.owe(Owed::Begun, until + limits::START_PATIENCE, now);
        }
    }

    /// Returns true while the guard waits for the order to begin.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.progress, Progress::IsReady { .. })
    }

    /// Returns true if the guard said, when it was ready, that its command gets no controlling terminal.
    pub(super) fn is_detached(&self) -> bool {
        self.progress == Progress::IsReady { is_detached: true }
    }

    /// The host told the guard to begin, or the guard has begun, or has reported something that implies it.
    pub(super) fn on_begun(&mut self) {
        self.progress = Progress::HasBegun;
        self.early.clear();
        self.debt = self.debt.filter(|debt| debt.owed != Owed::Begun);
    }

    pub(super) fn on_hunting(&mut self, now: Instant) {
        let hunted_since = self.killed_at.unwrap_or(now);
        if self.debt.is_some_and(|debt| debt.owed == Owed::Hunting) {
            self.owe(Owed::End, hunted_since + limits::KILL_HUNT + limits::ORDER_PATIENCE / 2, now);
        }
    }

    /// The guard has named the processes that it cannot kill, so it can do no more.
    pub(super) fn on_given_up(&mut self) {
        self.debt = self.debt.filter(|debt| debt.owed == Owed::Death);
    }

    /// Returns true if the guard has begun, or may have.
    pub(super) fn has_begun(&self) -> bool {
        self.progress == Progress::HasBegun
    }

    /// The signals for the guard that gets the command instead.
    pub(super) fn into_early(self) -> Vec<Signal> {
        self.early
    }

    /// When [`Orders::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.debt.map(|debt| debt.due.min(debt.wake_at))
    }

    pub(super) fn tick(&mut self, now: Instant) -> Option<Step> {
        let debt = self.debt.as_mut()?;
        if now >= debt.due {
            if debt.owed == Owed::Death {
                self.debt = None;
                return Some(Step::Bury);
            }
            let patience = if self.has_begun() || self.killed_at.is_some() {
                limits::DEATH_PATIENCE
            } else {
                limits::START_PATIENCE
            };
            self.owe(Owed::Death, now + patience, now);
            return Some(Step::Kill);
        }
        if now < debt.wake_at {
            return None;
        }
        debt.wake_at = now + limits::WAKE_EVERY;
        Some(if debt.owed == Owed::Death { Step::Kill } else { Step::Wake })
    }
}

/// When a command whose guard never began goes to another guard, and the signals that came for it meanwhile.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) at: Instant,
    pub(super) signals: Vec<Signal>,
}

impl Again {
    /// Takes an order while there is no guard.
    pub(super) fn keep(&mut self, order: Order, now: Instant) {
        match order {
            Order::Signal(signal) => self.signals.push(signal),
            Order::Terminate | Order::Kill => self.at = now,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The steps against a guard that never reports anything, and how long after it got its command.
    fn silent(orders: &mut Orders, from: Instant) -> Vec<(Duration, Step)> {
        let mut steps = Vec::new();
        while let Some(at) = orders.deadline() {
            let step = orders.tick(at);
            steps.extend(
                step.filter(|step| steps.last().is_none_or(|(_, last)| last != step)).map(|step| (at - from, step)),
            );
        }
        steps
    }

    #[test]
    fn a_guard_that_does_not_begin_is_killed_and_the_next_one_has_longer() {
        let now = Instant::now();
        let (first, third) = (limits::START_PATIENCE, limits::START_PATIENCE * 4);
        for (attempt, patience, is_ready) in [(0, first, false), (2, third, false), (0, first, true)] {
            let mut orders = Orders::new(attempt, now);
            if is_ready {
                orders.on_ready(false);
            }
            orders.give(Order::Signal(Signal::new(10)), now);
            let wakes = (limits::WAKE_EVERY, Step::Wake);
            let steps = [wakes, (patience, Step::Kill), (patience + limits::START_PATIENCE, Step::Bury)];
            assert_eq!(silent(&mut orders, now), steps);
            assert!(!orders.has_begun());
            assert_eq!(orders.into_early(), [Signal::new(10)]);
        }
    }

    #[test]
    fn a_guard_that_is_told_to_kill_is_killed_in_time_whatever_it_says() {
        let now = Instant::now();
        let mut deaf = Orders::new(0, now);
        deaf.on_begun();
        assert_eq!(deaf.deadline(), None, "it owes nothing");
        deaf.give(Order::Signal(Signal::TERM), now);
        assert_eq!(deaf.deadline(), None, "nor for a signal");
        deaf.give(Order::Kill, now);
        assert_eq!(silent(&mut deaf, now)[1], (limits::ORDER_PATIENCE, Step::Kill));
        let mut hunter = Orders::new(0, now);
        hunter.on_begun();
        hunter.give(Order::Kill, now);
        hunter.on_hunting(now + limits::ORDER_PATIENCE / 2);
        let (at, step) = silent(&mut hunter, now)[1];
        assert!(step == Step::Kill && at > limits::KILL_HUNT && at + limits::ORPHAN_HUNT <= limits::KILL_TIMEOUT);
        let mut helpless = Orders::new(0, now);
        helpless.give(Order::Kill, now);
        helpless.on_hunting(now);
        helpless.on_given_up();
        assert_eq!(helpless.deadline(), None, "it has said what it could");
    }
}
