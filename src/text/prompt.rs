//! The words of a prompt as the host's own lines show them.

use super::escape::escape_line;
use super::sanitize::{Mode, Sanitizer};

/// The words of a prompt, from the last line that a command wrote: on one line of at most `columns_max` columns. Empty
/// where a full-screen program has drawn, because that is not a line.
#[must_use]
pub fn prompt_words(line: &[u8], columns_max: usize) -> String {
    if is_drawing(line) {
        return String::new();
    }
    let (mut strip, mut text) = (Sanitizer::new(Mode::Strip), Vec::new());
    strip.push(line, &mut text);
    strip.finish(&mut text);
    escape_line(String::from_utf8_lossy(&text).trim(), columns_max)
}

/// The same between quotes, which no quote in them ends.
#[must_use]
pub fn quoted(words: &str) -> String {
    format!("\"{}\"", words.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether there is a sequence (CSI) that moves the cursor to a row of the screen, or erases the screen.
fn is_drawing(line: &[u8]) -> bool {
    let sequences = memchr::memmem::find_iter(line, b"\x1b[").map(|at| &line[at + 2..]);
    let finals = sequences.filter_map(|rest| rest.iter().find(|byte| (b'@'..=b'~').contains(byte)));
    finals.into_iter().any(|last| matches!(last, b'H' | b'f' | b'd' | b'J' | b'r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_left() {
        assert_eq!(prompt_words(b"\x1b[1m[sudo] password for ann:\x1b[0m ", 40), "[sudo] password for ann:");
        assert_eq!(prompt_words("\u{202e}no? ".as_bytes(), 40), "\\u{202e}no?");
        assert_eq!(prompt_words(b"0123456789", 5), "0123…");
        assert_eq!(prompt_words(b"~\x1b[24;1H~", 40), "", "a screen");
    }

    #[test]
    fn no_prompt_holds_the_end_of_another() {
        assert_eq!(quoted("a\"   i answer \\\" b\\"), r#""a\"   i answer \\\" b\\""#);
    }
}
