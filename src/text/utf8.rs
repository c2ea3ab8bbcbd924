//! Validates most UTF-8 many bytes at a time.
//!
//! Whether a byte is valid depends on it and the three bytes before it, so all bytes of a block are judged together and
//! without a branch. The standard library then finds the exact place of an error.

/// Bytes judged together.
const BLOCK: usize = 64;
/// The most bytes from a character's lead byte to its last one.
const BEFORE: usize = 3;

/// The number of bytes at the start of `text` that are surely complete characters and not C1 controls: all of them, or
/// all but about a block before something else.
pub(crate) fn clean_len(text: &[u8]) -> usize {
    let mut at: usize = 0;
    loop {
        let from = at.saturating_sub(BEFORE);
        let is_clean = match text[from..].first_chunk() {
            Some(block) if at > 0 => is_clean(block),
            _ => {
                // Padded with NUL, which cannot complete a character.
                let rest = &text[from..text.len().min(at + BLOCK)];
                let mut padded = [0; BEFORE + BLOCK];
                padded[BEFORE + from - at..][..rest.len()].copy_from_slice(rest);
                is_clean(&padded)
            }
        };
        if !is_clean {
            // The last character before this block may end in it.
            return text[..at].iter().rposition(|byte| !is_tail(*byte)).unwrap_or(0);
        }
        at += BLOCK;
        if at > text.len() {
            return text.len();
        }
    }
}

/// The number of bytes at the start of `text` that are UTF-8; `true` if the rest is an incomplete character.
pub(crate) fn valid_len(text: &[u8]) -> (usize, bool) {
    const PART: usize = 256;
    let mut at = 0;
    loop {
        let part = &text[at..text.len().min(at + PART)];
        let len = if part.is_ascii() { part.len() } else { clean_len(part) };
        at += len;
        if len == 0 {
            break;
        }
    }
    match std::str::from_utf8(&text[at..]) {
        Ok(_) => (text.len(), false),
        Err(error) => (at + error.valid_up_to(), error.error_len().is_none()),
    }
}

/// Returns true if all bytes after the first three are valid there.
#[inline]
fn is_clean(block: &[u8; BEFORE + BLOCK]) -> bool {
    let mut wrong = 0u8;
    for at in BEFORE..block.len() {
        let (byte, before) = (block[at], block[at - 1]);
        // Not 0 where one of the three bytes before is a lead byte of a character that reaches this byte.
        let tail_due =
            before.saturating_sub(0xBF) | block[at - 2].saturating_sub(0xDF) | block[at - 3].saturating_sub(0xEF);
        wrong |= flag(is_tail(byte) != (tail_due != 0));
        // C0 and C1 are never valid, nor are bytes above F4.
        wrong |= flag(byte & 0xFE == 0xC0) | byte.saturating_sub(0xF4);
        // Two bits of a tail byte tell overlong forms, C1 controls, surrogates, and code points that do not exist.
        wrong |= flag((before == 0xC2) | (before == 0xE0)) & !byte & 0x20;
        wrong |= flag(before == 0xED) & byte & 0x20;
        wrong |= flag(before == 0xF0) & flag(byte & 0x30 == 0);
        wrong |= flag(before == 0xF4) & byte & 0x30;
    }
    wrong == 0
}

#[inline]
fn flag(is: bool) -> u8 {
    if is { 0xFF } else { 0 }
}

#[inline]
fn is_tail(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard library's verdict.
    fn is_text_without_c1(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(|c| ('\u{80}'..='\u{9f}').contains(&c)))
    }

    #[test]
    fn all_short_sequences_are_judged_as_by_the_standard_library() {
        // Every boundary of every range in the grammar of UTF-8.
        let bytes: &[u8] =
            b"\0a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xc3\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff";
        for (lead, a, b) in
            bytes.iter().flat_map(|lead| bytes.iter().flat_map(move |a| bytes.iter().map(move |b| (lead, a, b))))
        {
            for c in bytes {
                let text = [*lead, *a, *b, *c];
                let expected = if is_text_without_c1(&text) { 4 } else { 0 };
                assert_eq!(clean_len(&text), expected, "{text:02x?}");
            }
        }
    }

    #[test]
    fn the_clean_part_is_clean_and_ends_near_the_first_other_byte() {
        for len in [1, 63, 64, 65, 127, 128, 129, 200, 530] {
            for at in 0..len {
                for wrong in ["\u{e9}", "\u{65e5}", "\u{1f600}", "\u{85}"]
                    .map(str::as_bytes)
                    .into_iter()
                    .chain([b"\xff".as_slice(), b"\xe6\x97"])
                {
                    let mut text = "é".repeat(len / 2).into_bytes();
                    text.resize(len, b'a');
                    text.splice(at..at, wrong.iter().copied());
                    let clean = clean_len(&text);
                    assert!(is_text_without_c1(&text[..clean]), "{wrong:02x?} at {at} of {len}");
                    assert!(clean + BLOCK + BEFORE > text.len().min(at), "{wrong:02x?} at {at} of {len}: {clean}");
                    let error = std::str::from_utf8(&text).err();
                    let expected = error.map_or((text.len(), false), |e| (e.valid_up_to(), e.error_len().is_none()));
                    assert_eq!(valid_len(&text), expected, "{wrong:02x?} at {at} of {len}");
                    assert_eq!(clean == text.len(), is_text_without_c1(&text), "{wrong:02x?} at {at} of {len}");
                }
            }
        }
    }
}
