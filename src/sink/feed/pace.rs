//! How far the recorder is behind.
//!
//! Invariants: bytes of frames are counted, from zero for each recorder; the human learns once that the recorder is
//! behind, and once that it has caught up; time in which the host itself was stopped does not count.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::limits;

/// Bytes that are sent within this time of each other count as sent together.
const GRAIN: Duration = Duration::from_millis(100);

/// How much was sent to the recorder, how much of that it has dealt with, and since when the rest waits.
#[derive(Debug, Default)]
pub(super) struct Pace {
    sent: u64,
    /// How many of them the recorder has dealt with.
    handled: u64,
    /// How many bytes had been sent at which moment, for those that are not dealt with.
    marks: VecDeque<(Instant, u64)>,
    /// When the recorder last made progress, or got bytes while it had none.
    moved: Option<Instant>,
    /// When output began to wait for room.
    full_since: Option<Instant>,
    /// The human knows that the recorder is behind.
    is_behind: bool,
}

impl Pace {
    /// Begins with a new recorder. It stays behind if the one before was.
    pub(super) fn begin(&mut self, now: Instant) {
        *self = Self { is_behind: self.is_behind, moved: Some(now), ..Self::default() };
    }

    /// Notes that time has passed. If the host wakes long after its deadline, it was stopped, as by Ctrl-Z or on a
    /// machine that slept. The recorder had none of that time either.
    pub(super) fn tick(&mut self, is_stalled: bool, is_down: bool, now: Instant) {
        let late = self.deadline(is_stalled, is_down).and_then(|at| now.checked_duration_since(at));
        let Some(late) = late.filter(|&late| late >= limits::HOST_STOPPED) else { return };
        let moments = self.marks.iter_mut().map(|(at, _)| at);
        for at in moments.chain(&mut self.moved).chain(&mut self.full_since) {
            *at = (*at + late).min(now);
        }
    }

    /// Notes that bytes were queued for the recorder.
    pub(super) fn on_sent(&mut self, bytes: usize, now: Instant) {
        if bytes == 0 {
            return;
        }
        if self.in_flight() == 0 {
            self.moved = Some(now);
        }
        self.sent += bytes as u64;
        match self.marks.back_mut() {
            Some((at, sent)) if now < *at + GRAIN => *sent = self.sent,
            _ => self.marks.push_back((now, self.sent)),
        }
    }

    /// Notes how many bytes the recorder has dealt with in all. Returns true if that is more than before.
    pub(super) fn on_handled(&mut self, handled: u64, now: Instant) -> bool {
        if handled <= self.handled {
            return false;
        }
        self.handled = handled.min(self.sent);
        while self.marks.front().is_some_and(|&(_, sent)| sent <= self.handled) {
            self.marks.pop_front();
        }
        (self.moved, self.full_since) = (Some(now), None);
        true
    }

    /// Bytes that the recorder has not dealt with.
    fn in_flight(&self) -> u64 {
        self.sent - self.handled
    }

    /// Returns true if more output may be sent. A command's first output has more room.
    pub(super) fn has_room(&self, is_first: bool) -> bool {
        let high = if is_first { limits::RECORDER_FIRST_HIGH_BYTES } else { limits::RECORDER_HIGH_BYTES };
        self.in_flight() < high as u64
    }

    /// Notes that output waits because there is no room.
    pub(super) fn on_full(&mut self, now: Instant) {
        self.full_since.get_or_insert(now);
    }

    fn stall_at(&self) -> Option<Instant> {
        self.full_since.map(|since| since.max(self.moved.unwrap_or(since)) + limits::RECORDER_STALL)
    }

    /// Returns true if output has waited too long for room.
    pub(super) fn is_stalled(&self, now: Instant) -> bool {
        self.stall_at().is_some_and(|at| now >= at)
    }

    fn stuck_at(&self) -> Option<Instant> {
        self.moved.filter(|_| self.in_flight() > 0).map(|moved| moved + limits::RECORDER_STUCK)
    }

    /// Returns true if the recorder has made no progress for so long that it never will.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        self.stuck_at().is_some_and(|at| now >= at)
    }

    /// When the recorder will count as stalled, stuck or behind.
    pub(super) fn deadline(&self, is_stalled: bool, is_down: bool) -> Option<Instant> {
        let stall = self.stall_at().filter(|_| !is_stalled);
        let stuck = self.stuck_at().filter(|_| !is_down);
        let behind = self.marks.front().filter(|_| !self.is_behind).map(|&(at, _)| at + limits::RECORDER_BEHIND);
        [stall, stuck, behind].into_iter().flatten().min()
    }

    /// Reports, once each, that the recorder is behind or has caught up.
    pub(super) fn take_notice(&mut self, now: Instant) -> Option<String> {
        let age = self.marks.front().map_or(Duration::ZERO, |&(at, _)| now.saturating_duration_since(at));
        if !self.is_behind && age >= limits::RECORDER_BEHIND {
            self.is_behind = true;
            return Some(format!("the journal is {} s behind", age.as_secs()));
        }
        if self.is_behind && age <= limits::RECORDER_CAUGHT_UP {
            self.is_behind = false;
            return Some("the journal has caught up".to_owned());
        }
        None
    }
}
