//! Characters that a person does not see, or that make others appear where they do not stand.
//!
//! A command with a zero-width space in a program's name looks like the program; tag characters carry whole sentences
//! that only a model reads; bidirectional overrides reorder what is read. All of them are shown by their code points.
//!
//! Invariant: nothing here depends on how a text was cut into pieces, as long as no character was.

use std::io::Write as _;

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

/// Whether this is a bar that is hard to tell from the host's, where it begins a row.
fn is_like_bar(c: char) -> bool {
    matches!(c, '\u{2589}'..='\u{258F}')
}

/// Copies UTF-8 text with its hidden characters as `⟨200B⟩`, and the host's bar too: `▌`. Where the text begins a row, bars
/// that look like it are shown the same way.
pub fn show(run: &[u8], begins_row: bool, out: &mut Vec<u8>) {
    let mut start = 0;
    let mut at = 0;
    while let Some(next) = beyond_ascii(&run[at..]).map(|next| at + next) {
        let (c, length) = first_char(&run[next..]);
        at = next + length;
        let is_shown = c.is_some_and(|c| is_hidden(c) || is_bar(c) || (begins_row && next == 0 && is_like_bar(c)));
        if let Some(c) = c.filter(|_| is_shown) {
            out.extend_from_slice(&run[start..next]);
            write!(out, "⟨{:04X}⟩", u32::from(c)).expect("writing to memory cannot fail");
            start = at;
        }
    }
    out.extend_from_slice(&run[start..]);
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
