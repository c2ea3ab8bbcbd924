//! The host's way out: what is left to say is said, the terminal is given back as it was, the journal is finished.
//!
//! Every step is bounded, because nobody may be there to read.

use std::time::Instant;

use super::Host;
use super::screen::Question;
use crate::limits;
use crate::sink::console::View;

impl Host {
    /// The way out: what is left to say is said, within a bound, and the terminal is given back.
    pub(super) fn close(mut self) {
        self.tell_given_up();
        let now = Instant::now();
        let end = now + limits::CONSOLE_FAREWELL;
        self.show_until(now + limits::CONSOLE_FAREWELL / 2);
        self.console.leave(self.screen.out.buffer());
        let question = if self.options.view == View::Raw { self.screen.question() } else { None };
        self.show_until(end);
        if let Some(question) = question {
            self.hear_terminal_out(question);
        }
        self.screen.give_back(end.saturating_duration_since(Instant::now()));
        // A recorder that was behind left some of it in the commands' logs, ends among it.
        self.journal.finish(&mut self.engine, self.scribe.out.buffer(), Instant::now());
        self.scribe.finish(&mut self.poller, &mut self.engine, &mut self.journal);
    }

    /// Shows what there is to show, until then at most.
    fn show_until(&mut self, end: Instant) {
        loop {
            self.pump_console();
            if self.screen.out.is_empty() || !self.screen.flush() {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || (!self.screen.out.is_empty() && self.wait(Some(left)).is_err()) {
                return;
            }
        }
    }

    /// Commands may have asked the terminal something, and its replies are typed on our standard input. They are for
    /// nobody, and must not be left for the parent shell. Commands may also have asked what we ask, so the first reply
    /// need not be the last: silence has to follow it.
    fn hear_terminal_out(&mut self, mut question: Question) {
        let end = Instant::now() + limits::REPLIES_MAX;
        let mut until = end;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(Some(left)).is_err() {
                return;
            }
            if self.screen.listen(&mut self.poller, &mut question) && question.is_answered {
                until = end.min(Instant::now() + limits::REPLIES_SILENCE);
            }
        }
    }
}
