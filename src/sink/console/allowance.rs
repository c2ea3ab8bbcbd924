//! How many lines of a command are shown as they come, before it counts as a flood.
//!
//! Invariants: pure, the caller passes the time; a flood ends when its command writes next to nothing for a while; a
//! console that has no flood has no deadline here.

use std::time::{Duration, Instant};

use crate::limits;

/// The lines that a command may write a second without ever being cut short.
const LINES_A_SECOND: u32 = 2;
/// A flood has ended when so few lines came within [`limits::CONSOLE_QUIET`].
const QUIET_LINES: u64 = 10;

/// How many lines of a command may still be shown as they come.
#[derive(Debug)]
pub(super) enum Allowance {
    /// All of them.
    Unlimited,
    Limited {
        lines: usize,
        /// When it was last raised.
        raised: Instant,
        flood: FloodState,
    },
}

/// How much a command writes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FloodState {
    /// All of it is shown.
    Calm,
    /// More than anybody could read. The console has watched it since then; `before` lines had come by then.
    Flood { since: Instant, before: u64 },
    /// The flood has ended, and its end is not shown yet.
    Over,
}

impl Allowance {
    pub(super) fn new(lines: usize, now: Instant) -> Self {
        Self::Limited { lines, raised: now, flood: FloodState::Calm }
    }

    pub(super) fn lines(&self) -> usize {
        match self {
            Self::Unlimited => usize::MAX,
            Self::Limited { lines, .. } => *lines,
        }
    }

    /// Raises it with the time. A flood gets nothing.
    pub(super) fn raise(&mut self, now: Instant) {
        let Self::Limited { lines, raised, flood: FloodState::Calm } = self else { return };
        let seconds = now.saturating_duration_since(*raised).as_secs();
        *raised += Duration::from_secs(seconds);
        let more = usize::try_from(seconds).unwrap_or(usize::MAX).saturating_mul(LINES_A_SECOND as usize);
        *lines = lines.saturating_add(more).min(limits::CONSOLE_LIVE_LINES.max(*lines));
    }

    pub(super) fn spend(&mut self, spent: usize) {
        if let Self::Limited { lines, .. } = self {
            *lines = lines.saturating_sub(spent);
        }
    }

    /// Begins to watch a flood, or finds that it is over. The command has written this many lines, the last of them at
    /// this time.
    pub(super) fn look(&mut self, has_flood: bool, written: u64, wrote: Instant, now: Instant) {
        let Self::Limited { flood, lines, .. } = self else { return };
        match *flood {
            _ if !has_flood => *flood = FloodState::Calm,
            FloodState::Calm => *flood = FloodState::Flood { since: now, before: written },
            FloodState::Flood { since, before } if now >= since + limits::CONSOLE_QUIET => {
                let is_quiet = written - before <= QUIET_LINES || now >= wrote + limits::CONSOLE_QUIET;
                *flood = FloodState::Flood { since: now, before: written };
                if is_quiet {
                    (*flood, *lines) = (FloodState::Over, limits::CONSOLE_TAIL_LINES);
                }
            }
            FloodState::Flood { .. } | FloodState::Over => {}
        }
    }

    /// Returns true if the command's output is only counted for now.
    pub(super) fn is_flooded(&self) -> bool {
        matches!(self, Self::Limited { flood: FloodState::Flood { .. }, .. })
    }

    /// When to check again whether the flood is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Limited { flood: FloodState::Flood { since, .. }, .. } => Some(*since + limits::CONSOLE_QUIET),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_ends_in_silence_and_a_slow_command_never_begins_one() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut allowance = Allowance::new(200, start);
        allowance.spend(200);
        allowance.look(true, 1_000, start, start);
        assert!(allowance.is_flooded());
        allowance.raise(at(9_000));
        assert_eq!((allowance.lines(), allowance.deadline()), (0, Some(at(2_000))), "a flood gets nothing");
        allowance.look(true, 9_000, at(1_999), at(2_000));
        assert!(allowance.is_flooded(), "it goes on");
        allowance.look(true, 9_005, at(3_999), at(4_000));
        assert!(!allowance.is_flooded() && allowance.lines() == 40 && allowance.deadline().is_none());

        let mut slow = Allowance::new(200, start);
        for second in 1..10_000 {
            slow.raise(at(second * 1_000));
            assert!(slow.lines() >= 2, "{second}");
            slow.spend(2);
        }
        slow.raise(at(99_999_000));
        assert_eq!(slow.lines(), 200);
    }
}
