//! Text in Markdown. No part of it becomes markup, or ends its block.
//!
//! Invariant: the result has no control character but tab and newline, no hidden character, and no bar of the host's.

use super::escape::{escape_line, escape_text};

/// A line of text in which no character begins markup.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in escape_line(text, usize::MAX).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '@' | '!') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A block of code. Its fence is longer than any row of backticks in the text.
#[must_use]
pub fn fenced(language: &str, text: &str) -> String {
    let text = escape_text(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(markdown("a *b* `c` <d>"), "a \\*b\\* \\`c\\` \\<d\\>");
        assert_eq!(markdown("a\nb\u{1b}[2J\u{202e}"), "a\\\\nb\\\\x1b\\[2J\\\\u{202e}");
        assert_eq!(fenced("sh", "a\u{1b}[2J\t\u{9b}▌\n"), "```sh\na\\x1b[2J\t\\u{9b}⟨258C⟩\n```\n");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("text", "one\n"), "```text\none\n```\n");
        assert_eq!(fenced("", "a\n````\nb"), "`````\na\n````\nb\n`````\n");
        assert_eq!(fenced("", ""), "```\n```\n");
    }
}
