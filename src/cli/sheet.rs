//! Standard output as a reader sees it: how wide it is, whether it has colours, and the human's clock.
//!
//! Invariant: what does not go to a terminal has no colours and is not cut to a width.

use std::env;
use std::io::{self, IsTerminal};
use std::time::SystemTime;

use super::when::Clock;
use crate::history::milliseconds;
use crate::journal::record::timestamp;
use crate::sys::{local_time, pty};
use crate::text::width::width;

/// The width of a terminal that does not say it.
const COLUMNS_USUAL: usize = 80;
/// The width of what is not a terminal: a command of this length is cut there too.
const COLUMNS_FILE: usize = 4_096;
/// A narrower terminal is treated as one of this width.
const COLUMNS_MIN: usize = 20;

/// How a word is drawn. Each is readable on light and on dark terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tint {
    Dim,
    Bold,
    Red,
    Yellow,
}

/// Where a verb writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sheet {
    /// How many columns a line may have.
    pub(super) columns: usize,
    is_coloured: bool,
    pub(super) clock: Clock,
}

impl Sheet {
    /// Standard output.
    pub(super) fn standard() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        let columns = match pty::size(&out).map(|size| usize::from(size.cols)) {
            _ if !is_terminal => COLUMNS_FILE,
            None | Some(0) => COLUMNS_USUAL,
            Some(columns) => columns.max(COLUMNS_MIN),
        };
        let now = milliseconds(&timestamp(SystemTime::now())).unwrap_or(0);
        let clock = Clock { now, offset: local_time::offset };
        Self { columns, is_coloured: is_terminal && !is_dumb && !is_set("NO_COLOR"), clock }
    }

    /// The text in this tint.
    pub(super) fn tinted(&self, tint: Tint, text: &str) -> String {
        let sgr = match tint {
            _ if !self.is_coloured || text.is_empty() => return text.to_owned(),
            Tint::Dim => "38;5;244",
            Tint::Bold => "1",
            Tint::Red => "31",
            Tint::Yellow => "33",
        };
        format!("\x1b[{sgr}m{text}\x1b[0m")
    }
}

/// The text with as many blanks behind it as make it this wide.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(text.chars().map(width).sum());
    format!("{text}{:blanks$}", "")
}
