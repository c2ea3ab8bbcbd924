//! Standard output for the verbs about the past: its look, and the human's clock.

use std::time::SystemTime;

use super::look::{Look, columns_of};
use super::when::Clock;
use crate::history::milliseconds;
use crate::journal::record::timestamp;
use crate::sys::local_time;

/// The longest line without a terminal, columns.
const COLUMNS_MAX: usize = 4_096;
/// A narrower terminal is treated as one of this width.
const COLUMNS_MIN: usize = 20;

/// The look of a word. Each is readable on light and on dark terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tint {
    Dim,
    Bold,
    Red,
    Yellow,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sheet {
    pub(super) look: Look,
    /// The most columns of a line.
    pub(super) columns: usize,
    pub(super) clock: Clock,
}

impl Sheet {
    pub(super) fn standard() -> Self {
        let look = Look::of_output();
        Self { look, columns: look.columns.clamp(COLUMNS_MIN, COLUMNS_MAX), clock: clock() }
    }

    pub(super) fn tinted(&self, tint: Tint, text: &str) -> String {
        match tint {
            Tint::Dim => self.look.dim(text),
            Tint::Bold => self.look.coloured("1", text),
            Tint::Red => self.look.coloured("31", text),
            Tint::Yellow => self.look.coloured("33", text),
        }
    }

    /// A command on one line of at most this many columns.
    pub(super) fn command(&self, text: &str, columns: usize) -> String {
        self.look.command(text, columns)
    }

    /// Text on one line of at most this many columns.
    pub(super) fn cut(&self, text: &str, columns: usize) -> String {
        self.look.cut(text, columns)
    }
}

pub(super) fn clock() -> Clock {
    let now = milliseconds(&timestamp(SystemTime::now())).unwrap_or(0);
    Clock { now, offset: local_time::offset }
}

/// The text, padded with blanks to this width.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(columns_of(text));
    format!("{text}{:blanks$}", "")
}
