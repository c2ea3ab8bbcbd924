//! Filters a command's output for the human: one filter for each kind of console.

use super::face::{COLUMNS_USUAL, Colours, ConsoleKind, Face};
use crate::limits;
use crate::text::hidden;
use crate::text::rows::{RowStyle, Rows};
use crate::text::safe::SafeFilter;
use crate::text::safe::raw::RawFilter;
use crate::text::sanitize::{Mode, Sanitizer};

/// The part of a command's output that reaches a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// Text, and escape sequences whose effect ends with the command's turn.
    #[default]
    Safe,
    /// Every byte. The terminal's modes are reset after each turn.
    Raw,
}

#[derive(Debug)]
pub(super) enum Filter {
    Safe(SafeFilter),
    Raw(RawFilter),
    Text { sanitizer: Sanitizer, rows: Rows },
}

impl Filter {
    pub(super) fn new(face: Face, view: View) -> Self {
        let Face { kind, columns, colours, .. } = face;
        let text = |mark| Self::Text { sanitizer: Sanitizer::new(Mode::Strip), rows: Rows::new(mark) };
        match (kind, view) {
            (ConsoleKind::Terminal, View::Safe) => {
                let mut filter = SafeFilter::new();
                filter.keep_colours(colours != Colours::Never);
                filter.resize(columns);
                filter.cut_lines(line_columns(columns));
                Self::Safe(filter)
            }
            (ConsoleKind::Terminal | ConsoleKind::Dumb { .. }, View::Raw) => Self::Raw(RawFilter::new()),
            (ConsoleKind::Dumb { has_utf8 }, View::Safe) => text(RowStyle::Chevrons { columns, has_utf8 }),
            (ConsoleKind::Text, _) => text(RowStyle::Wording),
        }
    }

    pub(super) fn resize(&mut self, columns: u16) {
        match self {
            Self::Safe(filter) => filter.resize(columns),
            Self::Raw(_) => {}
            Self::Text { rows, .. } => rows.resize(columns),
        }
    }

    /// Sets whether the rest of a line beyond some rows is counted instead of shown. It is at first.
    pub(super) fn cut_lines(&mut self, is_cut: bool, columns: u16) {
        match self {
            Self::Safe(filter) => filter.cut_lines(if is_cut { line_columns(columns) } else { 0 }),
            Self::Raw(_) => {}
            Self::Text { rows, .. } => rows.cut_lines(is_cut),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Safe(filter) => filter.push(bytes, out),
            Self::Raw(filter) => filter.push(bytes, out),
            Self::Text { sanitizer, rows } => {
                let mut text = Vec::new();
                sanitizer.push(bytes, &mut text);
                push_rows(&text, rows, out);
            }
        }
    }

    pub(super) fn is_line_start(&self) -> bool {
        match self {
            Self::Safe(filter) => filter.at_line_start(),
            Self::Raw(filter) => filter.at_line_start(),
            Self::Text { rows, .. } => rows.is_line_start(),
        }
    }

    /// Ends the turn: resets the terminal's modes and goes to the start of a line.
    pub(super) fn end_turn(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Safe(filter) => filter.end_block(out),
            Self::Raw(filter) => filter.end_block(out),
            Self::Text { sanitizer, rows } => {
                let mut text = Vec::new();
                sanitizer.finish(&mut text);
                push_rows(&text, rows, out);
                if !rows.is_line_start() {
                    push_rows(b"\n", rows, out);
                }
            }
        }
    }

    /// Restores the pending-wrap state, which saving and restoring the cursor loses.
    pub(super) fn mend_cursor(&self, out: &mut Vec<u8>) {
        if let Self::Safe(filter) = self {
            filter.mend_cursor(out);
        }
    }

    /// How many bytes of a full-screen program were not shown since the last call.
    pub(super) fn take_hidden_bytes(&mut self) -> u64 {
        match self {
            Self::Safe(filter) => filter.take_hidden_bytes(),
            Self::Raw(_) | Self::Text { .. } => 0,
        }
    }
}

/// The columns of the longest line that is shown whole.
fn line_columns(columns: u16) -> u32 {
    let columns = if columns == 0 { COLUMNS_USUAL } else { columns };
    u32::from(columns) * u32::from(limits::CONSOLE_LINE_ROWS)
}

fn push_rows(text: &[u8], rows: &mut Rows, out: &mut Vec<u8>) {
    let mut shown = Vec::with_capacity(text.len());
    hidden::show(text, false, &mut shown);
    rows.push(&shown, out);
}
