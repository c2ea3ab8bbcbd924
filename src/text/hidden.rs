//! Characters that are invisible, or that make others appear in another place.
//!
//! All of them are shown by their code points.
//!
//! Invariant: the result does not depend on how a text was cut into pieces, as long as no character was cut.

use std::io::Write as _;

pub use rexec_sh::protocol::shown::{is_bar, is_hidden};

use super::width::width;

/// Returns true if this character at the start of a row is hard to tell from the host's bar, in some colour.
fn is_like_bar(c: char) -> bool {
    matches!(u32::from(c), 0x2589..=0x2590 | 0x2595 | 0x1FB70..=0x1FB75 | 0x1FB87..=0x1FB8F)
}

/// The column of the next character in its row, if that is certain on any terminal.
#[derive(Debug)]
pub struct RowPosition {
    columns: u32,
    /// Columns since the start of the line. If not exact, an upper bound.
    column: u32,
    is_exact: bool,
    /// A character, or room for one, stands before it in the line.
    is_within: bool,
}

/// The assumed width of a terminal that does not report it.
const WIDTH_USUAL: u32 = 80;

impl Default for RowPosition {
    fn default() -> Self {
        Self { columns: WIDTH_USUAL, column: 0, is_exact: true, is_within: false }
    }
}

impl RowPosition {
    /// Sets the terminal's width; 0 if unknown.
    pub fn resize(&mut self, columns: u16) {
        self.columns = if columns == 0 { WIDTH_USUAL } else { columns.into() };
        if self.is_within {
            (self.column, self.is_exact) = (u32::MAX, false);
        }
    }

    /// Moves the cursor to this column, or to the last one.
    pub fn moved_to_column(&mut self, column: u32) {
        *self = Self { column, is_exact: column < self.columns, is_within: column > 0, ..*self };
    }

    /// Moves the cursor to the right, within the row.
    pub fn moved_right(&mut self, columns: u32) {
        let column = self.column.saturating_add(columns);
        *self = Self { column, is_exact: self.is_exact && column < self.columns, is_within: true, ..*self };
    }

    /// Moves the cursor to the left, by an unknown distance.
    pub fn moved_left(&mut self) {
        (self.is_exact, self.is_within) = (false, false);
    }

    /// Records another operation here. Terminals differ in whether the next character then leaves a full row.
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
            // Terminals agree on the width of ASCII, boxes and blocks, and the scripts of East Asia.
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

    /// As [`Self::printed`], but faster, for text without other characters.
    fn printed_ascii(&mut self, text: &[u8]) {
        let printable = text.iter().filter(|byte| matches!(byte, b' '..=b'~')).count();
        let tabs = if printable < text.len() { text.iter().filter(|&&byte| byte == b'\t').count() } else { 0 };
        let columns = printable + 8 * tabs + 2 * (text.len() - printable - tabs);
        self.is_exact &= printable == text.len();
        self.column = self.column.saturating_add(u32::try_from(columns).unwrap_or(u32::MAX));
        self.is_within = true;
    }

    /// Returns true if the next character may begin a row.
    fn may_begin_row(&self) -> bool {
        match self.is_exact {
            true => !self.is_within || self.column.is_multiple_of(self.columns),
            false => !self.is_within || self.column.saturating_add(2) > self.columns,
        }
    }
}

/// Copies UTF-8 text. Hidden characters and the host's bar `▌` become code points like `⟨200B⟩`, and so do characters like
/// the bar where they may begin a row.
pub fn show_in(run: &[u8], position: &mut RowPosition, out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(next) = beyond_ascii(&run[at..]).map(|next| at + next) {
        out.extend_from_slice(&run[at..next]);
        position.printed(&run[at..next]);
        let (c, length) = first_char(&run[next..]);
        at = next + length;
        let start = out.len();
        match c.filter(|&c| is_hidden(c) || is_bar(c) || (is_like_bar(c) && position.may_begin_row())) {
            Some(c) => write!(out, "⟨{:04X}⟩", u32::from(c)).expect("writing to memory cannot fail"),
            None => out.extend_from_slice(&run[next..at]),
        }
        position.printed(&out[start..]);
    }
    out.extend_from_slice(&run[at..]);
    position.printed(&run[at..]);
}

/// As [`show_in`], for text in a row of unknown width. `begins_row` says whether the text begins the row.
pub fn show(run: &[u8], begins_row: bool, out: &mut Vec<u8>) {
    if run.is_ascii() {
        return out.extend_from_slice(run);
    }
    let mut position = RowPosition { columns: u32::MAX, is_within: !begins_row, ..RowPosition::default() };
    show_in(run, &mut position, out);
}

/// The place of the first byte that is not ASCII.
fn beyond_ascii(run: &[u8]) -> Option<usize> {
    const STRIDE: usize = 64;
    let stride = run.chunks(STRIDE).position(|stride| !stride.is_ascii())? * STRIDE;
    run[stride..].iter().position(|byte| !byte.is_ascii()).map(|at| stride + at)
}

/// The first character and its length; `None` and 1 if the first byte begins no character.
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
    fn invisible_characters_are_shown_by_their_code_points() {
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
        assert_eq!(out, b"\xff\xe2\x96 \xc2", "bytes that are not characters pass");
    }
}
