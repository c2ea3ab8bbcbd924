//! The host's own rows: they begin with a mark with which no row of output can begin.
//!
//! Invariant: the host's own words follow the mark, or a blank where a line continues from the row above. So the text
//! of a command cannot make a row of its banner look like another banner.

use crate::text::hidden::BAR;
use crate::text::rows::CHEVRONS;
use crate::text::safe::HEADER_SGR;
use crate::text::width::width;

/// The beginning of a row that continues a line.
const INDENT: &str = "  ";

/// What the console is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleKind {
    /// A terminal with UTF-8. Colours and moves within lines pass. The host's rows begin with a bar, which output
    /// shows as `⟨258C⟩`.
    Terminal,
    /// A terminal that shows only text, or no UTF-8. The host's rows begin with `>>> `.
    Dumb {
        /// Whether it shows more than ASCII.
        has_utf8: bool,
    },
    /// A file or a pipe, which gets only text. The host's rows are known by their wording.
    Text,
}

/// Appends a line of the host's, in as many rows as it takes on a terminal with this many columns (0 if unknown).
pub(super) fn header(kind: ConsoleKind, columns: u16, line: &str, out: &mut Vec<u8>) {
    let bar = BAR.to_string();
    let (style, mark, end) = match kind {
        ConsoleKind::Terminal => (HEADER_SGR, bar.as_str(), b"\x1b[0m\n".as_slice()),
        ConsoleKind::Dumb { .. } => (b"".as_slice(), CHEVRONS, b"\n".as_slice()),
        ConsoleKind::Text => (b"".as_slice(), "", b"\n".as_slice()),
    };
    let line = match kind {
        ConsoleKind::Dumb { .. } => ascii(line),
        ConsoleKind::Terminal | ConsoleKind::Text => line.to_owned(),
    };
    // A column stays free: terminals differ in what a full row does to the cursor.
    let room = usize::from(columns).saturating_sub(mark.chars().count() + 1);
    let room = if kind == ConsoleKind::Text || room < 8 { usize::MAX } else { room };
    for (number, row) in line.split('\n').flat_map(|line| rows(line, room).into_iter().enumerate()) {
        let indent = if number == 0 { "" } else { INDENT };
        let parts = [style, mark.as_bytes(), indent.as_bytes(), row.as_bytes(), end];
        parts.into_iter().for_each(|part| out.extend_from_slice(part));
    }
}

/// Splits a line into rows that are no wider than `columns_max`. All rows but the first have room for the indent.
/// There is at least one row.
fn rows(line: &str, columns_max: usize) -> Vec<&str> {
    let (mut rows, mut start, mut columns) = (Vec::new(), 0, 0);
    for (at, c) in line.char_indices() {
        columns += width(c);
        if columns > columns_max {
            rows.push(&line[start..at]);
            (start, columns) = (at, INDENT.len() + width(c));
        }
    }
    rows.push(&line[start..]);
    rows
}

/// Spells the host's own signs in ASCII and every other character as its code point.
fn ascii(line: &str) -> String {
    let mut ascii = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '…' => ascii.push_str("..."),
            '·' => ascii.push('-'),
            '⟨' => ascii.push('<'),
            '⟩' => ascii.push('>'),
            c if c.is_ascii() => ascii.push(c),
            c => ascii.extend(c.escape_unicode()),
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: ConsoleKind, columns: u16, line: &str) -> String {
        let mut out = Vec::new();
        header(kind, columns, line, &mut out);
        String::from_utf8(out).unwrap().replace("\x1b[97;48;5;24m", "").replace("\x1b[0m", "")
    }

    #[test]
    fn every_row_of_a_line_has_the_mark() {
        assert_eq!(shown(ConsoleKind::Terminal, 12, "0123456789abcdef日本"), "▌0123456789\n▌  abcdef日\n▌  本\n");
        assert_eq!(shown(ConsoleKind::Terminal, 0, "0123456789abcdef"), "▌0123456789abcdef\n");
        assert_eq!(shown(ConsoleKind::Text, 12, "0123456789abcdef"), "0123456789abcdef\n");
        let dumb = ConsoleKind::Dumb { has_utf8: false };
        assert_eq!(shown(dumb, 80, "… exit 1 · ⟨258C⟩ é"), ">>> ... exit 1 - <258C> \\u{e9}\n");
        assert_eq!(shown(dumb, 80, ""), ">>> \n");
    }
}
