//! Shows text from others on a person's terminal: characters that are not plain text are spelled out.
//!
//! A terminal obeys controls. Characters that are invisible, or that make others appear in another place, hide a text's
//! meaning: a program's name with a zero-width space in it looks like the name without it; tag characters carry whole
//! sentences that only a model reads; bidirectional overrides reorder text. And no text may begin a row as the host
//! does.

use std::fmt::Write as _;

/// The bar that begins each row of the host on a terminal. In any other text it is shown by its code point, so that no
/// other row begins with it.
pub const BAR: char = '\u{258C}';
/// The bar as a text.
pub const BAR_TEXT: &str = "\u{258C}";

/// Returns true if this character is shown by its code point, because it is invisible or affects others.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match u32::from(c) {
        0..0x80 => false,
        // C1 controls and the soft hyphen.
        0x80..=0x9F | 0xAD => true,
        // The grapheme joiner, the Arabic letter mark, fillers, inherent vowels, separators of other scripts.
        0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x3164 | 0xFFA0 => true,
        // Zero widths and marks, line and paragraph separators, embeddings and overrides, joiners, isolates.
        0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F => true,
        // Variation selectors except those for text and emoji, the byte order mark, annotations.
        0xFE00..=0xFE0D | 0xFEFF | 0xFFF0..=0xFFFB => true,
        // Shorthand and musical controls, tags, more variation selectors.
        0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF => true,
        _ => false,
    }
}

#[must_use]
pub fn is_bar(c: char) -> bool {
    c == BAR
}

/// Returns true if this character may stand unchanged in a line from others.
#[must_use]
pub fn is_plain(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_hidden(c) || is_bar(c))
}

/// Appends `c`, spelled out if need be. `keep_layout` passes line feeds, tabs and other blanks.
pub fn push_escaped(line: &mut String, c: char, keep_layout: bool) {
    let written = match c {
        '\n' | '\t' if keep_layout => line.write_char(c),
        '\n' => line.write_str("\\n"),
        '\t' => line.write_str("\\t"),
        '\r' => line.write_str("\\r"),
        '\0'..='\x1f' | '\x7f' => write!(line, "\\x{:02x}", u32::from(c)),
        c if is_bar(c) => write!(line, "⟨{:X}⟩", u32::from(c)),
        c if is_hidden(c) || (!keep_layout && c != ' ' && c.is_whitespace()) => {
            write!(line, "\\u{{{:x}}}", u32::from(c))
        }
        c => line.write_char(c),
    };
    written.expect("writing to memory cannot fail");
}

/// `text` on one line, however long it is.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    text.chars().for_each(|c| push_escaped(&mut line, c, false));
    line
}

/// `text` with its line feeds and tabs.
#[must_use]
pub fn escaped_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    text.chars().for_each(|c| push_escaped(&mut lines, c, true));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_is_plain_and_stays_as_it_is() {
        let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
        let line = escaped(&all);
        assert!(line.chars().all(is_plain));
        assert_eq!(escaped(&line), line);
        assert_eq!(escaped("größe 日本 😀 \\x1b"), "größe 日本 😀 \\x1b");
        assert_eq!(escaped("a\tb\r\n\u{9b}2J\u{202e}▌"), "a\\tb\\r\\n\\u{9b}2J\\u{202e}⟨258C⟩");
        assert_eq!(escaped_lines("a\tb\r\n\u{9b}2J\u{202e}x\x7f\0"), "a\tb\\r\n\\u{9b}2J\\u{202e}x\\x7f\\x00");
    }
}
