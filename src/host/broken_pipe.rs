//! When to send SIGPIPE because the output has no reader any more.
//!
//! The kernel sends SIGPIPE to a writer on a pipe. A terminal takes the bytes for ever, so there the guard sends it.
//! Invariants: only output after the caller's word counts; a guard is asked for one SIGPIPE at a time; a program that
//! ignores it gets the next one after a pause at the earliest.

use std::time::Instant;

use crate::limits;

/// If and when output of a command brings it SIGPIPE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BrokenPipe {
    /// The output has a reader.
    #[default]
    Never,
    /// Output from this time on brings SIGPIPE.
    From(Instant),
    /// The host has asked the guard to send SIGPIPE, and has no answer yet.
    Asked,
}

impl BrokenPipe {
    /// The output has no reader from now on.
    pub(super) fn begin(&mut self, now: Instant) {
        if *self == Self::Never {
            *self = Self::From(now);
        }
    }

    /// The command has written. Returns true if the guard is to send SIGPIPE.
    pub(super) fn on_output(&mut self, now: Instant) -> bool {
        let is_due = matches!(self, Self::From(from) if now >= *from);
        if is_due {
            *self = Self::Asked;
        }
        is_due
    }

    /// The guard has sent SIGPIPE. Output right after it may have been on its way before.
    pub(super) fn on_signalled(&mut self, now: Instant) {
        *self = Self::From(now + limits::BROKEN_PIPE_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn output_without_a_reader_brings_sigpipe_once_and_again_after_a_pause() {
        let (mut broken_pipe, start) = (BrokenPipe::default(), Instant::now());
        assert!(!broken_pipe.on_output(start), "it has a reader");
        broken_pipe.begin(start);
        assert!(broken_pipe.on_output(start));
        assert!(!broken_pipe.on_output(start + Duration::from_secs(3_600)), "its guard has not answered");
        broken_pipe.begin(start);
        assert!(!broken_pipe.on_output(start), "told again, it is asked no more");
        broken_pipe.on_signalled(start);
        let over = start + limits::BROKEN_PIPE_PAUSE;
        assert!(!broken_pipe.on_output(over - Duration::from_millis(1)));
        assert!(broken_pipe.on_output(over));
    }
}
