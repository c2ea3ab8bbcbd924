//! Escapes untrusted text for the host's own lines: a command, a directory, an agent's name, a journal's output.
//!
//! Invariant: the result has no control character, no character that is invisible or reorders text, and no bar of the
//! host's, but for line feeds and tabs in [`escape_text`]. Such characters are spelled out: `\x1b`, `\n`, `\u{202e}`,
//! `⟨258C⟩`.

pub use rexec_sh::protocol::shown::escaped_lines as escape_text;
pub(super) use rexec_sh::protocol::shown::push_escaped;

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
}
