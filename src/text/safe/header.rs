//! Somebody else's bytes within a line of our own: a command, a directory, an agent's name.

use std::io::Write as _;

use super::bidi_control;
use crate::text::width::width;

/// How much of a command a header shows, in columns.
const HEADER_COLUMNS_MAX: usize = 400;

/// Appends `bytes` as part of one line: controls as `\x1b`, `\n` or `\u{9b}`, bytes that are not UTF-8 as `\xff`,
/// reordering characters as `⟨202E⟩`, and an `…` where it became too long.
pub fn escape_header(bytes: &[u8], out: &mut Vec<u8>) {
    escape_line(bytes, HEADER_COLUMNS_MAX, out);
}

/// As [`escape_header`], within so many columns.
pub fn escape_line(bytes: &[u8], columns_max: usize, out: &mut Vec<u8>) {
    let mut columns = 0;
    // Where the text is cut if it turns out not to fit: the last place that left room for the ellipsis.
    let mut cut = out.len();
    let mut shown = Vec::new();
    let mut zero_width = 0;
    for chunk in bytes.utf8_chunks() {
        let invalid = chunk.invalid().iter().map(|&byte| Item::Byte(byte));
        for item in chunk.valid().chars().map(Item::Char).chain(invalid) {
            shown.clear();
            item.show(&mut shown);
            let needs = columns_of(&shown);
            zero_width = if needs == 0 { zero_width + 1 } else { 0 };
            if columns + needs > columns_max || zero_width > MARKS_MAX {
                out.truncate(cut);
                out.extend_from_slice("…".as_bytes());
                return;
            }
            columns += needs;
            out.extend_from_slice(&shown);
            if columns < columns_max {
                cut = out.len();
            }
        }
    }
}

/// Combining marks in a row before the text counts as too long: they take no columns, but they take bytes.
const MARKS_MAX: usize = 16;

enum Item {
    Char(char),
    Byte(u8),
}

impl Item {
    fn show(&self, out: &mut Vec<u8>) {
        let written = match *self {
            Self::Byte(byte) => write!(out, "\\x{byte:02x}"),
            Self::Char('\n') => write!(out, "\\n"),
            Self::Char('\r') => write!(out, "\\r"),
            Self::Char('\t') => write!(out, "\\t"),
            Self::Char(c) if c.is_ascii_control() => write!(out, "\\x{:02x}", u32::from(c)),
            Self::Char(c @ ('\u{80}'..='\u{9F}' | '\u{2028}' | '\u{2029}')) => write!(out, "\\u{{{:x}}}", u32::from(c)),
            Self::Char(c) => {
                let mut buffer = [0; 4];
                let bytes = c.encode_utf8(&mut buffer).as_bytes();
                match bidi_control(bytes) {
                    Some(code) => write!(out, "⟨{code:04X}⟩"),
                    None => out.write_all(bytes),
                }
            }
        };
        written.expect("writing to memory cannot fail");
    }
}

fn columns_of(shown: &[u8]) -> usize {
    shown.utf8_chunks().flat_map(|chunk| chunk.valid().chars()).map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(bytes: &[u8], columns: usize) -> String {
        let mut out = b"> ".to_vec();
        escape_line(bytes, columns, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn controls_are_visible_and_length_is_bounded() {
        assert_eq!(escaped(b"echo 'a\x1b[31m\n\t'", 80), "> echo 'a\\x1b[31m\\n\\t'");
        assert_eq!(escaped("é \u{9b} \u{202e}x".as_bytes(), 80), "> é \\u{9b} ⟨202E⟩x");
        assert_eq!(escaped(b"\xff\xe2\x98", 80), "> \\xff\\xe2\\x98");
        assert_eq!(escaped(b"12345", 5), "> 12345");
        assert_eq!(escaped(b"123456", 5), "> 1234…");
        assert_eq!(escaped("日本語".as_bytes(), 5), "> 日本…");
        assert_eq!(escaped("日本語".as_bytes(), 4), "> 日…");
        assert!(escaped("\u{301}".repeat(10_000).as_bytes(), 5).len() < 100);
        assert!(escaped("a\u{301}".repeat(10_000).as_bytes(), 400).len() < 2000);
    }
}
