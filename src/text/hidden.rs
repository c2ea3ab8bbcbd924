//! Characters that a person does not see, or that make others appear where they do not stand.
//!
//! A command with a zero-width space in a program's name looks like the program; tag characters carry whole sentences
//! that only a model reads; bidirectional overrides reorder what is read. All of them are shown by their code points.
//!
//! Invariant: nothing here depends on how a text was cut into pieces, as long as no character was.

use std::io::Write as _;

use super::width::width;

/// The bar that begins every row of the host's own on a terminal. Output shows it by its code point, so that nothing
/// else begins with it.
pub const BAR: char = '\u{258C}';

/// Whether this character is shown by its code point: it is invisible, or it steers.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match u32::from(c) {
        0..0x80 => false,
        // C1 controls and the soft hyphen.
        0x80..=0x9F | 0xAD => true,
        // The grapheme joiner, the Arabic mark, fillers, vowels that are not written, separators of other scripts.
        0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x3164 | 0xFFA0 => true,
        // Zero widths and marks, line and paragraph separators, embeddings and overrides, joiners, isolates.
        0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F => true,
        // Variation selectors but the two that tell an emoji from a sign, the byte order mark, annotations.
        0xFE00..=0xFE0D | 0xFEFF | 0xFFF0..=0xFFFB => true,
        // Shorthand and musical controls, tags, more variation selectors.
        0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF => true,
        _ => false,
    }
}

/// Whether this character is the host's bar.
#[must_use]
pub fn is_bar(c: char) -> bool {
    c == BAR
}

/// Whether this is a bar that is hard to tell from the host's, in some colours, where it begins a row.
fn is_like_bar(c: char) -> bool {
    matches!(u32::from(c), 0x2589..=0x2590 | 0x2595 | 0x1FB70..=0x1FB75 | 0x1FB87..=0x1FB8F)
}

/// Where in its row the next character stands, as far as that is certain on any terminal.
#[derive(Debug)]
pub struct Place {
    /// The terminal's width.
    columns: u32,
    /// Columns since the line's start. If they are not exact, the terminal counts no more than these.
    column: u32,
    is_exact: bool,
    /// A character stands before it, or room for one.
    is_within: bool,
}

/// The width of a terminal that does not tell it.
const WIDTH_USUAL: u32 = 80;

impl Default for Place {
    fn default() -> Self {
        Self { columns: WIDTH_USUAL, column: 0, is_exact: true, is_within: false }
    }
}

impl Place {
    /// The terminal is now so many columns wide.
    pub fn resize(&mut self, columns: u16) {
        self.columns = if columns == 0 { WIDTH_USUAL } else { columns.into() };
        if self.is_within {
            (self.column, self.is_exact) = (u32::MAX, false);
        }
    }

    /// The cursor stands in this column, or in the last one.
    pub fn at_column(&mut self, column: u32) {
        *self = Self { column, is_exact: column < self.columns, is_within: column > 0, ..*self };
    }

    /// The cursor went to the right, as far as the row goes.
    pub fn moved_right(&mut self, columns: u32) {
        let column = self.column.saturating_add(columns);
        *self = Self { column, is_exact: self.is_exact && column < self.columns, is_within: true, ..*self };
    }

    /// The cursor went to the left, nobody counts how far.
    pub fn moved_left(&mut self) {
        (self.is_exact, self.is_within) = (false, false);
    }

    /// Something else was done here. Terminals differ in whether a full row is then left with the next character.
    pub fn touched(&mut self) {
        self.is_exact &= self.column < self.columns;
    }

    fn printed(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if text.is_ascii() {
            return self.printed_ascii(text);
        }
        for c in text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            // Terminals agree on these: ASCII, boxes and blocks, the scripts of East Asia.
            let is_sure = matches!(c, ' '..='~' | '\u{2500}'..='\u{25A0}' | '\u{27E8}' | '\u{27E9}' | '\u{3041}'..='\u{3096}')
                || matches!(c, '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}');
            let columns = match c {
                '\t' => 8,
                _ if is_sure => u32::try_from(width(c)).unwrap_or(2),
                _ => 2,
            };
            self.is_exact &= is_sure;
            if self.is_exact && columns == 2 && self.column % self.columns == self.columns - 1 {
                self.column += 1;
            }
            self.column = self.column.saturating_add(columns);
            self.is_within = self.is_within || width(c) > 0;
        }
    }

    /// As [`Self::printed`] does it character by character, for the most usual text.
    fn printed_ascii(&mut self, text: &[u8]) {
        let printable = text.iter().filter(|byte| matches!(byte, b' '..=b'~')).count();
        let tabs = if printable < text.len() { text.iter().filter(|&&byte| byte == b'\t').count() } else { 0 };
        let columns = printable + 8 * tabs + 2 * (text.len() - printable - tabs);
        self.is_exact &= printable == text.len();
        self.column = self.column.saturating_add(u32::try_from(columns).unwrap_or(u32::MAX));
        self.is_within = true;
    }

    /// Whether a character may begin a row here.
    fn may_begin_row(&self) -> bool {
        match self.is_exact {
            true => !self.is_within || self.column.is_multiple_of(self.columns),
            false => !self.is_within || self.column.saturating_add(2) > self.columns,
        }
    }
}

/// Copies UTF-8 text with its hidden characters as `⟨200B⟩`, and the host's bar too: `▌`. What looks like it is shown the
/// same way where it may begin a row.
pub fn show_in(run: &[u8], place: &mut Place, out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(next) = beyond_ascii(&run[at..]).map(|next| at + next) {
        out.extend_from_slice(&run[at..next]);
        place.printed(&run[at..next]);
        let (c, length) = first_char(&run[next..]);
        at = next + length;
        let start = out.len();
        match c.filter(|&c| is_hidden(c) || is_bar(c) || (is_like_bar(c) && place.may_begin_row())) {
            Some(c) => write!(out, "⟨{:04X}⟩", u32::from(c)).expect("writing to memory cannot fail"),
            None => out.extend_from_slice(&run[next..at]),
        }
        place.printed(&out[start..]);
    }
    out.extend_from_slice(&run[at..]);
    place.printed(&run[at..]);
}

/// The same at the start of a row of unknown width.
pub fn show(run: &[u8], begins_row: bool, out: &mut Vec<u8>) {
    if run.is_ascii() {
        return out.extend_from_slice(run);
    }
    let mut place = Place { columns: u32::MAX, is_within: !begins_row, ..Place::default() };
    show_in(run, &mut place, out);
}

/// The place of the first byte that is not ASCII.
fn beyond_ascii(run: &[u8]) -> Option<usize> {
    const STRIDE: usize = 64;
    let stride = run.chunks(STRIDE).position(|stride| !stride.is_ascii())? * STRIDE;
    run[stride..].iter().position(|byte| !byte.is_ascii()).map(|at| stride + at)
}

/// The character that begins with this byte, and its length; what is no character is passed by byte for byte.
fn first_char(bytes: &[u8]) -> (Option<char>, usize) {
    let length = match bytes[0] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let c = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()?.chars().next());
    (c, if c.is_some() { length } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Vec::new();
        show(text.as_bytes(), true, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_cannot_be_seen_is_shown_by_its_code_point() {
        for (text, expected) in [
            ("plain größe 日本 😀 ❤\u{fe0f}", "plain größe 日本 😀 ❤\u{fe0f}"),
            ("a\u{200b}b\u{ad}c\u{2060}\u{3164}", "a⟨200B⟩b⟨00AD⟩c⟨2060⟩⟨3164⟩"),
            ("\u{e0041}\u{e0100}\u{feff}", "⟨E0041⟩⟨E0100⟩⟨FEFF⟩"),
            ("a\u{202e}b", "a⟨202E⟩b"),
            ("50%|██▌ |", "50%|██⟨258C⟩ |"),
            ("▋ x ▋", "⟨258B⟩ x ▋"),
        ] {
            assert_eq!(shown(text), expected);
        }
        let mut out = Vec::new();
        show(b"\xff\xe2\x96 \xc2", true, &mut out);
        assert_eq!(out, b"\xff\xe2\x96 \xc2", "what is no character passes");
    }
}
