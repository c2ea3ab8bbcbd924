//! Finds rows that look like the host's although no bar begins them: something like a bar, and after it the signs that
//! follow the bar in the host's rows.
//!
//! A full block, a heavy line, or a coloured blank in the first column is hard to tell from the bar. Alone it is a
//! progress bar or a frame, so it passes. If a time, a sign of the host's or its name follows, the code point of the
//! first column's character interrupts the row as soon as that is certain: earlier text is on the terminal already.
//!
//! Invariants: passed text is never changed, only added to; the verdict depends on at most [`READ_MAX`] characters
//! after the first column, however they came; an unknown first column counts as like a bar.

/// The most characters of a row's beginning that are read.
const READ_MAX: usize = 4;
/// The bytes of a text that are read: enough for that many characters after a first one and some blanks.
const HEAD_BYTES: usize = 96;
/// The host's signs, and characters that are hard to tell from them.
const SIGNS: &str = "⋯…✓✔✗✘×■□▪○◯⏱⏎↵";

/// The beginning of the row in which the cursor is.
#[derive(Debug, Default)]
pub(super) struct NearBar {
    /// The bar-like character in the first column.
    first: Option<char>,
    /// The text printed after it, until the verdict.
    behind: String,
    /// Blanks are drawn in a colour.
    background: Background,
}

/// The attributes that make a blank visible.
#[derive(Debug, Clone, Copy, Default)]
struct Background {
    is_coloured: bool,
    is_inverse: bool,
}

impl Background {
    fn is_visible(self) -> bool {
        self.is_coloured || self.is_inverse
    }
}

impl NearBar {
    pub(super) fn row_begins(&mut self) {
        (self.first, self.behind) = (None, String::new());
    }

    /// The cursor is in an unknown row.
    pub(super) fn row_is_unknown(&mut self) {
        (self.first, self.behind) = (Some(' '), String::new());
    }

    pub(super) fn moved(&mut self) {
        self.behind.clear();
    }

    pub(super) fn erased(&mut self) {
        if self.background.is_visible() {
            self.first = Some(' ');
        }
    }

    /// Takes the parameters of `CSI … m`.
    pub(super) fn coloured(&mut self, params: impl Iterator<Item = u16>) {
        let mut params = params.peekable();
        if params.peek().is_none() {
            self.background = Background::default();
        }
        while let Some(param) = params.next() {
            match param {
                0 => self.background = Background::default(),
                7 => self.background.is_inverse = true,
                27 => self.background.is_inverse = false,
                40..=47 | 100..=107 => self.background.is_coloured = true,
                49 => self.background.is_coloured = false,
                // The colour's own numbers follow.
                38 | 48 | 58 => {
                    self.background.is_coloured |= param == 48;
                    let count = if params.next() == Some(2) { 3 } else { 1 };
                    params.by_ref().take(count).for_each(drop);
                }
                _ => {}
            }
        }
    }

    /// Returns true if the starts of this text's rows matter. Otherwise the printed text is like no bar.
    pub(super) fn reads(&self, text: &[u8]) -> bool {
        self.first.is_some() || self.background.is_visible() || !text.is_ascii()
    }

    /// Takes text printed within a row, whose first character stands in this column, if that is known. Returns the
    /// place of an addition in it, and the addition.
    pub(super) fn printed(&mut self, text: &[u8], column: Option<u32>) -> Option<(usize, String)> {
        let head = &text[..text.len().min(HEAD_BYTES)];
        let mut rest = head.utf8_chunks().next()?.valid().char_indices();
        if column == Some(0) {
            let (_, first) = rest.next()?;
            self.row_begins();
            self.first = Some(first).filter(|&c| is_like_bar(c) || (c == ' ' && self.background.is_visible()));
        } else if self.behind.is_empty() && column.is_some_and(|column| column > 2) {
            return None;
        }
        for (at, c) in rest {
            let first = self.first?;
            if self.behind.is_empty() && (is_like_bar(c) || c == ' ') {
                continue;
            }
            self.behind.push(c);
            match verdict(&self.behind) {
                Some(false) => self.first = None,
                Some(true) => {
                    self.first = None;
                    return Some((at, format!("⟨{:04X}⟩", u32::from(first))));
                }
                None => {}
            }
        }
        None
    }
}

/// Returns true if these characters begin the text of a row of the host's; `None` while that is not certain.
fn verdict(behind: &str) -> Option<bool> {
    const TIME: &str = "00:0";
    const NAMES: [&str; 2] = ["rexe", "exit"];
    if behind.chars().next().is_some_and(|c| SIGNS.contains(c)) {
        return Some(true);
    }
    let length = behind.chars().count();
    let is_time =
        behind.chars().zip(TIME.chars()).all(|(c, own)| if own == '0' { c.is_numeric() } else { is_colon(c) });
    let is_name = NAMES.iter().any(|name| name.starts_with(&behind.to_lowercase()));
    (length >= READ_MAX || !(is_time || is_name)).then_some(is_time || is_name)
}

fn is_colon(c: char) -> bool {
    matches!(c, ':' | '∶' | '：' | 'ː' | '꞉')
}

/// Returns true if this character is hard to tell from the host's bar in the first column. Those that are even more
/// like it never begin a row, see [`crate::text::hidden`].
fn is_like_bar(c: char) -> bool {
    matches!(u32::from(c), 0x2580..=0x259F | 0x2502 | 0x2503 | 0x2551 | 0x2758..=0x275A | 0x23D0 | 0x2016 | 0x2223 | 0x2225)
        || matches!(u32::from(c), 0x25A0 | 0x25AE | 0x25AF | 0x2B1B | 0x1FB00..=0x1FBAF | 0xFF5C)
        // Dashed lines, parts of brackets, small squares, patterns of dots, and vertical strokes of other scripts.
        || matches!(u32::from(c), 0x2506 | 0x2507 | 0x250A | 0x250B | 0x254E | 0x254F | 0x23B8 | 0x23B9 | 0x25AA | 0x25B0)
        || matches!(u32::from(c), 0x25FC | 0x25FE | 0x25D6 | 0x2BC0 | 0x2801..=0x28FF | 0x4E28 | 0x3163 | 0xFE31 | 0xFE33)
}

#[cfg(test)]
mod tests {
    use crate::text::safe::SafeFilter;

    fn shown(pieces: &[&str]) -> String {
        let mut filter = SafeFilter::new();
        let mut out = Vec::new();
        filter.resize(80);
        pieces.iter().for_each(|piece| filter.push(piece.as_bytes(), &mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_that_look_like_the_hosts_say_what_begins_them() {
        for forged in [
            "█12:03:51 #41 claude api  ls",
            "┃✓ 0.4 s",
            "❚⋯ #41 runs on",
            "┃ ⏎ #1 waits: \"Password:\"",
            "█\x1b[0m✗ exit 1",
            "\x1b[43m \x1b[0m12:03:51 #41",
            "\x1b[7m \x1b[27m✓ 0.4 s",
            "\x1b[48;5;214m \x1b[m⏎ #1 waits",
            "\x1b[43m\x1b[K\x1b[0m\x1b[C12:03:51 #41",
            "█\r\x1b[C✓ 0.4 s",
            "a line\n│rexec journal: x",
            "two\n█\x1b[A\r\x1b[C✓",
            "┃exit 1",
            "┇12:03:51 #41",
            "⣿✓ 0.4 s",
            "丨⏎ #1 waits",
            &format!("{}█12:03:51 #41", "x".repeat(80)),
            &format!("x{}\x1b[43m \x1b[0m✓", " ".repeat(79)),
        ] {
            let whole = shown(&[forged]);
            assert!(whole.contains('⟨'), "{forged:?}: {whole:?}");
            let bytes: Vec<String> = forged.chars().map(String::from).collect();
            let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
            assert_eq!(shown(&bytes), whole, "{forged:?}");
        }
    }

    #[test]
    fn progress_bars_frames_and_tables_pass() {
        for plain in [
            "█████░░░ 50%",
            "┃ name ┃ size ┃",
            "│ 12 │ ok ✓ │",
            "| 12:03 | a |",
            "\x1b[43mcoloured\x1b[0m 12:03:51",
            "\x1b[42m PASS \x1b[0m src/a.test.ts",
            "12:03:51 started",
            "✓ done",
            " ✓ done",
            "a █✓",
            "\x1b[A\r✓ done",
            "║ 2024 ║",
            "█ 12 of 13",
            "⠋ building",
        ] {
            assert_eq!(shown(&[plain]).matches('⟨').count(), 0, "{plain:?}");
        }
    }
}
