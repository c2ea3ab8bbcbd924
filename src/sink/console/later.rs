//! What is learned of commands that have no block any more: they were shown to their end, or never, and may still have
//! processes.
//!
//! Invariant: at most `STRAGGLERS_MAX` commands are followed, the newest ones, and as many lines wait.

use std::collections::VecDeque;
use std::time::Instant;

use crate::core::engine::{Cursor, Engine};
use crate::core::entry::Entry;
use crate::core::log::{Item, Taken};
use crate::journal::entry_words::console_line;
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct LaterFacts {
    /// Oldest first.
    cursors: VecDeque<Cursor>,
    lines: VecDeque<String>,
}

impl LaterFacts {
    /// Follows a command whose block is gone, from this place in its log; `None` if that has its last entry.
    pub(super) fn follow(&mut self, cursor: Option<Cursor>) {
        self.cursors.extend(cursor);
    }

    /// Takes all that is new in the logs.
    pub(super) fn take(&mut self, engine: &mut Engine, now: Instant) {
        let surplus = self.cursors.len().saturating_sub(limits::STRAGGLERS_MAX);
        self.cursors.drain(..surplus).for_each(|cursor| engine.detach(cursor));
        let Self { cursors, lines } = self;
        cursors.retain(|&cursor| {
            engine.read(cursor, |item| {
                match item {
                    Item::Entry(Entry::Over) => return Taken::Last,
                    // What came before belongs into a block, and does not name its command.
                    Item::Entry(entry) if entry.may_follow_end() && lines.len() < limits::STRAGGLERS_MAX => {
                        lines.extend(console_line(entry, cursor.job, now));
                    }
                    Item::Entry(_) | Item::Missed { .. } => {}
                }
                Taken::All
            })
        });
    }

    /// The next line to show.
    pub(super) fn next_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Stops reading all logs.
    pub(super) fn abandon(&mut self, engine: &mut Engine) {
        self.cursors.drain(..).for_each(|cursor| engine.detach(cursor));
    }
}
