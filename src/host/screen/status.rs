//! The screen's part of the status line, and of the modes that the keyboard needs.
//!
//! Invariants: nothing is queued for a terminal that has no room; what `enter` switches on, `give_up` switches off.

use std::time::Instant;

use super::Screen;
use crate::core::engine::JobId;
use crate::limits;
use crate::sink::console::Flood;
use crate::sink::console::status_line::{self, StatusFacts};
use crate::sys::terminal::Keys;
use crate::text::alternate_screen::NORMAL_SCREEN;
use crate::text::safe_text::SafeText;

/// Bracketed paste (xterm): the terminal marks pasted text, so that it is not taken for keys.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
pub(super) const MARK_NO_PASTES: &[u8] = b"\x1b[?2004l";

impl Screen {
    /// Prepares the terminal, which a host that was killed may have left otherwise.
    pub(super) fn enter(&mut self, is_after_kill: bool) {
        if !self.is_clever {
            return;
        }
        if is_after_kill {
            self.out.buffer().extend_from_slice(NORMAL_SCREEN);
        }
        status_line::forget_region(self.out.buffer());
        if is_after_kill {
            self.attention.clean_up(self.out.buffer());
        }
        self.mark_pastes(true);
        self.set_undo(b"");
    }

    /// Gives the last row back, with the modes. The cursor is at the start of a row.
    pub(super) fn give_up(&mut self) {
        if self.is_clever {
            self.status.leave(self.out.buffer());
            self.attention.leave(self.out.buffer());
            self.mark_pastes(false);
        }
    }

    /// Switches the marks that the terminal puts around pasted text. A run that the human answers must not get them.
    pub(in crate::host) fn mark_pastes(&mut self, are_marked: bool) {
        if self.is_clever && self.keys.is_some() {
            self.out.buffer().extend_from_slice(if are_marked { MARK_PASTES } else { MARK_NO_PASTES });
        }
    }

    /// The status line may be out of date.
    pub(in crate::host) fn touch_status(&mut self, now: Instant) {
        self.status.touch(now);
    }

    pub(in crate::host) fn is_status_due(&self, now: Instant) -> bool {
        let is_over = self.message.as_ref().is_some_and(|(_, until)| now >= *until);
        self.has_room() && (is_over || self.status.is_due(now))
    }

    /// Draws the status line, where there is one.
    pub(in crate::host) fn draw_status(&mut self, mut facts: StatusFacts, now: Instant) {
        self.message.take_if(|(_, until)| now >= *until);
        self.drawn_shown = Some(facts.shown.map(JobId));
        facts.has_keyboard = self.keys.is_some();
        facts.followed = self.console.followed().map(|job| job.0);
        facts.is_frozen = self.frozen.is_some();
        let question = self.keyboard.question(facts.runs.len(), |run| self.name_of(run));
        facts.question = question.map(|question| (question, self.keyboard.way_out()));
        let answerable = facts.answerable();
        facts.unclear_until = self.named.unclear_until(&answerable, now).filter(|_| !answerable.is_empty());
        facts.message = self.message.as_ref().map(|(message, _)| message.to_string());
        if self.status.is_on() {
            self.named.note(self.status.named_in(&facts), now);
            self.questions.note(self.status.held_in(&facts), now);
        }
        if self.status.refresh(&facts, now, self.out.buffer()) {
            self.console.mend_cursor(self.out.buffer());
        }
        self.attention.entitle(facts.title().into(), self.out.buffer());
    }

    /// Rings for the human, on a terminal that has room.
    pub(in crate::host) fn ring(&mut self, message: &SafeText) {
        if self.output.is_terminal() && self.has_room() {
            self.attention.ring(message, self.out.buffer());
        }
    }

    /// When the status line has something new to say.
    pub(super) fn status_deadline(&self) -> Option<Instant> {
        let over = self.message.as_ref().map(|(_, until)| *until);
        self.status.deadline().into_iter().chain(over).min().filter(|_| self.has_room())
    }

    /// The commands whose output the console only counts for now.
    pub(in crate::host) fn floods(&self) -> Vec<Flood> {
        self.console.overview().floods
    }

    /// The command that ^C stops, as the status line says; `None` without a status line.
    pub(in crate::host) fn said_to_stop(&self) -> Option<Option<JobId>> {
        self.drawn_shown.filter(|_| self.status.is_on())
    }

    /// Tells the human at the keyboard what a key did, or why it did nothing.
    pub(in crate::host) fn tell(&mut self, text: impl Into<SafeText>, now: Instant) {
        let text = text.into();
        if self.status.is_on() {
            self.message = Some((text, now + limits::STATUS_MESSAGE));
            self.status.touch_now(now);
        } else {
            self.say(format_args!("… {text}"));
        }
    }

    /// Takes back the last message to the human. The caller draws the line.
    pub(in crate::host) fn forget_message(&mut self) {
        self.message = None;
    }

    /// Shows the keyboard's question; once, if there is no status line.
    pub(in crate::host) fn show_question(&mut self, running: usize, now: Instant) {
        let question = self.keyboard.question(running, |run| self.name_of(run));
        let question = question.filter(|_| self.status.is_on() || self.keyboard.takes_answer());
        let was_asking = std::mem::replace(&mut self.is_asking, question.is_some());
        if self.status.is_on() {
            return self.status.touch_now(now);
        }
        if let Some(question) = question.filter(|_| !was_asking) {
            let way_out = self.keyboard.way_out().map_or_else(String::new, |way_out| format!(" · {way_out}"));
            self.say(format_args!("… {question}{way_out}"));
        }
    }

    /// Sets the terminal up again and draws the line, as after another program has written to it.
    pub(in crate::host) fn redraw(&mut self, now: Instant) {
        if self.is_clever {
            self.out.buffer().extend_from_slice(PLAIN);
            self.mark_pastes(!self.keyboard.is_answering());
            self.size_status(now);
        }
    }

    /// Takes the terminal over again after the host was stopped and goes on.
    pub(in crate::host) fn retake(&mut self, now: Instant) {
        self.keys.iter().for_each(Keys::retake);
        if self.taken.is_none() {
            self.redraw(now);
        }
    }

    pub(super) fn size_status(&mut self, now: Instant) {
        let size = self.output.size().filter(|_| self.has_status);
        let out = self.out.buffer();
        if self.status.resize(size.map(|size| (size.cols, size.rows)), now, out) {
            self.console.mend_cursor(out);
        }
    }

    fn has_room(&self) -> bool {
        self.out.pending() < limits::CONSOLE_HIGH_BYTES
    }
}

/// No colours, the cursor shown, lines wrapped.
const PLAIN: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?7h";
