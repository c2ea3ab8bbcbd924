//! The look of the host's own rows: they begin with a mark with which no row of output can begin.
//!
//! Invariants: only [`SafeText`] is shown; every row of the host's on a terminal begins with the mark; a row made of
//! parts is one row, whatever they contain; the host's own words follow the mark, or a blank where a remark continues
//! from the row above. So the text of a command cannot make a row look like another one.

use rexec_sh::protocol::shown::BAR_TEXT;

use crate::text::rows::CHEVRONS;
use crate::text::safe_text::SafeText;
use crate::text::width::width;

/// The beginning of a row that continues a remark.
const INDENT: &str = "  ";
const RESET: &str = "\x1b[0m";
/// Narrower terminals, and those that do not say how wide they are, get rows as if they had this many columns.
const COLUMNS_MIN: u16 = 20;
/// The width to assume for a terminal that does not report it.
pub(super) const COLUMNS_USUAL: u16 = 80;

/// The kind of thing that the console is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleKind {
    /// A terminal with UTF-8. Colours and moves within lines pass. The host's rows begin with a bar, which output
    /// shows as `⟨258C⟩`.
    Terminal,
    /// A terminal that shows only text, or no UTF-8. The host's rows begin with `>>> `.
    Dumb {
        /// It shows more than ASCII.
        has_utf8: bool,
    },
    /// A file or a pipe, which gets only text. The host's rows are known by their wording.
    Text,
}

/// The colours that the console itself adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colours {
    /// None at all, and none of the commands' own.
    Never,
    /// None of the console's own.
    Off,
    /// Those of the host's own rows.
    Rows,
    /// Also in output that has none of its own.
    #[default]
    Highlighted,
}

/// How a part of a row is drawn. Each is readable on light and on dark terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Dim,
    Bold,
    Red,
    Yellow,
    /// One of the agents' colours.
    Agent(u8),
}

/// The agents' colours in the palette of 256: magenta, teal, blue, orange, green, violet.
const AGENT_SGR: [&str; AGENT_COLOURS as usize] = [
    "\x1b[1;38;5;133m",
    "\x1b[1;38;5;30m",
    "\x1b[1;38;5;33m",
    "\x1b[1;38;5;166m",
    "\x1b[1;38;5;64m",
    "\x1b[1;38;5;99m",
];
pub(super) const AGENT_COLOURS: u8 = 6;

impl Ink {
    fn sgr(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\x1b[38;5;244m",
            Self::Bold => "\x1b[1m",
            Self::Red => "\x1b[31m",
            Self::Yellow => "\x1b[33m",
            Self::Agent(number) => AGENT_SGR[usize::from(number % AGENT_COLOURS)],
        }
    }
}

/// The look of the host's rows on one console.
#[derive(Debug, Clone, Copy)]
pub(super) struct Face {
    pub(super) kind: ConsoleKind,
    /// The terminal's width, or 0 if it is unknown.
    pub(super) columns: u16,
    pub(super) colours: Colours,
    /// The human's keys reach this console.
    pub(super) has_keys: bool,
}

impl Face {
    /// Returns true if rows have the form for files and pipes.
    pub(super) fn is_text(self) -> bool {
        self.kind == ConsoleKind::Text
    }

    /// The columns of a row behind its mark. A column stays free: terminals differ in what a full row does to the cursor.
    pub(super) fn room(self) -> usize {
        let columns = if self.columns == 0 { COLUMNS_USUAL } else { self.columns.max(COLUMNS_MIN) };
        usize::from(columns) - self.mark().chars().count() - 1
    }

    pub(super) fn has_colours(self) -> bool {
        self.kind == ConsoleKind::Terminal && self.colours >= Colours::Rows
    }

    fn mark(self) -> &'static str {
        match self.kind {
            ConsoleKind::Terminal => BAR_TEXT,
            ConsoleKind::Dumb { .. } => CHEVRONS,
            ConsoleKind::Text => "",
        }
    }

    fn put(self, ink: Ink, text: &str, out: &mut Vec<u8>) {
        let sgr = if self.has_colours() { ink.sgr() } else { "" };
        let end = if sgr.is_empty() { "" } else { RESET };
        [sgr, text, end].into_iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    }

    /// Appends one row of parts. What does not fit is cut, and `…` stands in its place.
    pub(super) fn row(self, bar: Ink, parts: &[(Ink, SafeText)], out: &mut Vec<u8>) {
        let parts: Vec<(Ink, String)> = parts.iter().map(|(ink, text)| (*ink, self.spelled(text))).collect();
        let total: usize = parts.iter().map(|(_, text)| columns(text)).sum();
        let ellipsis = self.spelled("…");
        let mut room = if self.is_text() || total <= self.room() { total } else { self.room() - columns(&ellipsis) };
        self.put(bar, self.mark(), out);
        for (ink, text) in &parts {
            let fits = fitting(text, room);
            room -= columns(fits);
            self.put(*ink, fits, out);
            if fits.len() < text.len() {
                self.put(Ink::Dim, &ellipsis, out);
                break;
            }
        }
        out.push(b'\n');
    }

    /// Appends a remark of the host's, in as many rows as it takes.
    pub(super) fn remark(self, ink: Ink, line: impl Into<SafeText>, out: &mut Vec<u8>) {
        let line = line.into();
        // In files and on pipes, all of the host's remarks begin with the sign that the journal is printed with.
        let line = match line.strip_prefix("… ") {
            Some(rest) if !self.is_text() => self.spelled(&format!("⋯ {rest}")),
            _ => self.spelled(&line),
        };
        let room = if self.is_text() { usize::MAX } else { self.room() };
        for (number, row) in line.split('\n').flat_map(|line| rows(line, room).into_iter().enumerate()) {
            let indent = if number == 0 { "" } else { INDENT };
            self.put(ink, &[self.mark(), indent, row].concat(), out);
            out.push(b'\n');
        }
    }

    /// Spells a text as this console can show it.
    pub(super) fn spelled(self, text: &str) -> String {
        match self.kind {
            ConsoleKind::Dumb { .. } => ascii(text),
            ConsoleKind::Terminal | ConsoleKind::Text => text.to_owned(),
        }
    }
}

pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The beginning of a text that fits in this many columns.
fn fitting(text: &str, room: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|&(_, c)| {
        used += width(c);
        used > room
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Splits a line into rows that are no wider than `columns_max`, between words unless a row would be less than half full.
/// All rows but the first have room for the indent. There is at least one row.
fn rows(line: &str, columns_max: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    let (mut rest, mut room) = (line, columns_max);
    loop {
        let fits = fitting(rest, room);
        if fits.len() == rest.len() {
            rows.push(rest);
            return rows;
        }
        // A blank that follows the row ends its last word, too.
        let next = rest[fits.len()..].chars().next().map_or(0, char::len_utf8);
        let word = rest[..fits.len() + next].rfind(' ').filter(|&at| columns(&rest[..at]) * 2 > room);
        rows.push(&rest[..word.unwrap_or(fits.len())]);
        rest = &rest[word.map_or(fits.len(), |at| at + 1)..];
        room = columns_max.saturating_sub(INDENT.len()).max(2);
    }
}

/// Spells the host's own signs in ASCII and every other character as its code point.
fn ascii(line: &str) -> String {
    let mut ascii = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '…' | '⋯' => ascii.push_str("..."),
            '·' => ascii.push('-'),
            '✓' => ascii.push('+'),
            '✗' => ascii.push('x'),
            '■' => ascii.push('#'),
            '○' => ascii.push('o'),
            '⏱' => ascii.push('t'),
            '⏎' => ascii.push_str("<-"),
            '×' => ascii.push('x'),
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

    fn face(kind: ConsoleKind, columns: u16) -> Face {
        Face { kind, columns, colours: Colours::Off, has_keys: false }
    }

    fn shown(kind: ConsoleKind, columns: u16, line: &'static str) -> String {
        let mut out = Vec::new();
        face(kind, columns).remark(Ink::Dim, line, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_row_of_a_remark_has_the_mark() {
        let long = "0123456789abcdefghij日本";
        assert_eq!(shown(ConsoleKind::Terminal, 20, long), "▌0123456789abcdefgh\n▌  ij日本\n");
        let words = "a sentence of words breaks at blanks";
        assert_eq!(shown(ConsoleKind::Terminal, 20, words), "▌a sentence of\n▌  words breaks at\n▌  blanks\n");
        assert_eq!(shown(ConsoleKind::Terminal, 0, "0123456789abcdef"), "▌0123456789abcdef\n");
        assert_eq!(shown(ConsoleKind::Text, 12, long), format!("{long}\n"));
        let dumb = ConsoleKind::Dumb { has_utf8: false };
        assert_eq!(shown(dumb, 80, "⋯ exit 1 · ⟨258C⟩ é"), ">>> ... exit 1 - <258C> \\u{e9}\n");
        assert_eq!(shown(dumb, 80, ""), ">>> \n");
    }

    #[test]
    fn parts_are_one_row_however_long_they_are() {
        let row = |columns: u16, parts: &[(Ink, SafeText)]| {
            let mut out = Vec::new();
            face(ConsoleKind::Terminal, columns).row(Ink::Agent(1), parts, &mut out);
            String::from_utf8(out).unwrap()
        };
        let parts = [(Ink::Dim, "12:00:00 ".into()), (Ink::Plain, "日本語日本語日本語".into())];
        assert_eq!(row(80, &parts), "▌12:00:00 日本語日本語日本語\n");
        assert_eq!(row(20, &parts), "▌12:00:00 日本語日…\n");
        let coloured = Face { colours: Colours::Rows, ..face(ConsoleKind::Terminal, 80) };
        let mut out = Vec::new();
        coloured.row(Ink::Red, &[(Ink::Plain, "a".into()), (Ink::Bold, "b".into())], &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\x1b[31m▌\x1b[0ma\x1b[1mb\x1b[0m\n");
    }
}
