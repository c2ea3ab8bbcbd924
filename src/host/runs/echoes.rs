//! Reads a terminal's echo of an answer before the output that the command writes after it.
//!
//! A thread of the kernel carries the line that a person typed, and its echo back. The command has its line by then, and may
//! have written its next question to a pipe. At its real shell both go to one terminal, where the answer stands first.
//!
//! Invariant: a pipe waits for a line's echo for [`limits::ECHO_PATIENCE`] at most, and meanwhile nothing of it is lost: it
//! stays readable, and is visited when the wait is over.

use std::time::Instant;

use super::{Due, Runs};
use crate::core::engine::{Engine, JobId};
use crate::core::entry::Stream;
use crate::host::turn::Turn;
use crate::io::port::Port;
use crate::limits;

impl Runs {
    /// Returns true if this stream is a pipe of a command whose terminal has yet to show the line that a person typed.
    pub(in crate::host) fn waits_for_echo(
        &mut self,
        job: JobId,
        stream: Stream,
        turn: &mut Turn,
        engine: &mut Engine,
    ) -> bool {
        if stream == Stream::Tty || !self.awaits_echo(job) {
            return false;
        }
        // The kernel reports a terminal's output later than a pipe's.
        let terminal = self.get_mut(job).and_then(|run| run.stream(Stream::Tty));
        terminal.into_iter().for_each(Port::expect_input);
        self.visit_stream(job, Stream::Tty, turn, engine);
        self.awaits_echo(job)
    }

    /// A person typed a line that the terminal shows.
    pub(super) fn await_echo(&mut self, job: JobId) {
        self.timers.set(Due::Echo(job), Instant::now() + limits::ECHO_PATIENCE);
    }

    fn awaits_echo(&self, job: JobId) -> bool {
        self.timers.at(Due::Echo(job)).is_some()
    }

    /// A terminal has shown something. The host reads its command's later output on pipes, too.
    pub(super) fn on_shown(&mut self, job: JobId, turn: &mut Turn, engine: &Engine) {
        if self.awaits_echo(job) {
            self.timers.cancel(Due::Echo(job));
            self.revisit(job, turn, engine);
        }
    }
}
