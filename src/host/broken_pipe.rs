//! SIGPIPE for output that nobody reads any more, where the terminal in between would take it for ever.
//!
//! Invariants: what is written before the caller's word is nobody's fault; a guard is asked for one strike at a time;
//! who ignores a strike gets the next one no sooner than a pause after it.

use std::time::Instant;

use crate::limits;

/// When the next byte of a command is worth a strike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BrokenPipe {
    /// Somebody reads.
    #[default]
    Never,
    /// From this time on.
    From(Instant),
    /// When the guard has answered that it struck.
    Asked,
}

impl BrokenPipe {
    /// Nobody reads from now on.
    pub(super) fn begin(&mut self, now: Instant) {
        if *self == Self::Never {
            *self = Self::From(now);
        }
    }

    /// The command has written; whether its guard is to strike.
    pub(super) fn on_output(&mut self, now: Instant) -> bool {
        let is_due = matches!(self, Self::From(from) if now >= *from);
        if is_due {
            *self = Self::Asked;
        }
        is_due
    }

    /// The guard has struck. What the command writes right after it may have been on its way before.
    pub(super) fn on_struck(&mut self, now: Instant) {
        *self = Self::From(now + limits::BROKEN_PIPE_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn output_that_nobody_reads_is_struck_once_and_again_after_a_pause() {
        let (mut strike, start) = (BrokenPipe::default(), Instant::now());
        assert!(!strike.on_output(start), "somebody reads");
        strike.begin(start);
        assert!(strike.on_output(start));
        assert!(!strike.on_output(start + Duration::from_secs(3_600)), "its guard has not answered");
        strike.begin(start);
        assert!(!strike.on_output(start), "told again, it is asked no more");
        strike.on_struck(start);
        let over = start + limits::BROKEN_PIPE_PAUSE;
        assert!(!strike.on_output(over - Duration::from_millis(1)));
        assert!(strike.on_output(over));
    }
}
