//! Escapes untrusted text for the host's own lines: a command, a directory, an agent's name, a journal's output.
//!
//! Invariant: the result has no control character, no character that is invisible or reorders text, and no bar of the
//! host's, but for line feeds and tabs in [`escape_text`]. Such characters are spelled out: `\x1b`, `\n`, `\u{202e}`,
//! `⟨258C⟩`.

use std::fmt::Write as _;

use super::hidden::{is_bar, is_hidden};
use super::width::width;

/// The most zero-width marks in a row. A text with more counts as too long, because marks take bytes but no columns.
const MARKS_MAX: usize = 16;
const ELLIPSIS: char = '…';

/// `text` on one line of at most `columns_max` columns; a longer text ends in `…`.
#[must_use]
pub fn escape_line(text: &str, columns_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(columns_max));
    let (mut columns, mut marks) = (0, 0);
    // The last place with room for the ellipsis.
    let mut cut = 0;
    for c in text.chars() {
        let before = line.len();
        push_escaped(&mut line, c, false);
        let needed: usize = line[before..].chars().map(width).sum();
        marks = if needed == 0 { marks + 1 } else { 0 };
        columns += needed;
        if columns > columns_max || marks > MARKS_MAX {
            line.truncate(cut);
            line.push(ELLIPSIS);
            break;
        }
        if columns < columns_max {
            cut = line.len();
        }
    }
    line
}

/// `text` with its line feeds and tabs.
#[must_use]
pub fn escape_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        push_escaped(&mut shown, c, true);
    }
    shown
}

/// Appends `c`, spelled out if need be. `keep_layout` passes line feeds, tabs and other blanks.
pub(super) fn push_escaped(line: &mut String, c: char, keep_layout: bool) {
    match c {
        '\n' | '\t' if keep_layout => line.push(c),
        '\n' => line.push_str("\\n"),
        '\t' => line.push_str("\\t"),
        '\r' => line.push_str("\\r"),
        '\0'..='\x1f' | '\x7f' => {
            let _ = write!(line, "\\x{:02x}", u32::from(c));
        }
        c if is_bar(c) => {
            let _ = write!(line, "⟨{:X}⟩", u32::from(c));
        }
        c if is_hidden(c) || (!keep_layout && c != ' ' && c.is_whitespace()) => {
            let _ = write!(line, "\\u{{{:x}}}", u32::from(c));
        }
        c => line.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_visible_and_length_is_bounded() {
        for (text, columns, expected) in [
            ("echo 'a\x1b[31m\r\n\t\0\x7f'", 80, "echo 'a\\x1b[31m\\r\\n\\t\\x00\\x7f'"),
            ("é \u{9b} \u{202e}x", 80, "é \\u{9b} \\u{202e}x"),
            ("12345", 5, "12345"),
            ("123456", 5, "1234…"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("abc\u{1b}", 6, "abc…"),
            ("abc\u{1b}", 7, "abc\\x1b"),
        ] {
            assert_eq!(escape_line(text, columns), expected, "{text:?} in {columns}");
        }
        assert!(escape_line(&"\u{301}".repeat(10_000), 5).len() < 100);
        assert!(escape_line(&"a\u{301}".repeat(10_000), 400).len() < 2000);
    }

    #[test]
    fn text_keeps_its_layout_only() {
        assert_eq!(escape_text("a\tb\r\n\u{9b}2J\u{202e}x\x7f\0"), "a\tb\\r\n\\u{9b}2J\\u{202e}x\\x7f\\x00");
    }
}
