//! Cuts output so that no character and no escape sequence is torn.
//!
//! Invariant: the held part is bounded, because a longer sequence counts as whole.

use memchr::{memchr, memchr3};

/// The longest sequence that is held back, bytes. It has room for a title or a link, and not for an image.
const SEQUENCE_BYTES_MAX: usize = 4 << 10;

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;

/// The length of the longest part of `output` that ends neither within a character nor within an escape sequence.
/// `output` must begin outside of both.
#[must_use]
pub fn whole_len(output: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = memchr(ESC, &output[at..]) {
        at += next;
        match sequence_len(&output[at..]) {
            Some(length) => at += length,
            None if output.len() - at <= SEQUENCE_BYTES_MAX => return at,
            None => return output.len(),
        }
    }
    without_torn_end(output).len()
}

/// The text without the bytes of a character that is not complete.
#[must_use]
pub fn without_torn_end(text: &[u8]) -> &[u8] {
    for back in 1..=text.len().min(3) {
        let at = text.len() - back;
        let needs = match text[at] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if needs > back { &text[..at] } else { text };
    }
    text
}

/// The length of the escape sequence at the beginning; `None` if its end has not come.
fn sequence_len(output: &[u8]) -> Option<usize> {
    match output.get(1)? {
        b'[' => {
            let last = 2 + output[2..].iter().position(|byte| !(0x20..=0x3f).contains(byte))?;
            // A second escape begins a new sequence, and so does any other byte that is not a final one.
            Some(if (0x40..=0x7e).contains(&output[last]) { last + 1 } else { last })
        }
        b']' | b'P' | b'X' | b'^' | b'_' => string_len(output),
        0x20..=0x2f => Some(2 + output[2..].iter().position(|byte| !(0x20..=0x2f).contains(byte))?),
        _ => Some(2),
    }
}

/// The length of a string sequence: an operating system command and its kin.
fn string_len(output: &[u8]) -> Option<usize> {
    let rest = &output[2..];
    let at = 2 + memchr3(BEL, ESC, CAN, rest).into_iter().chain(memchr(SUB, rest)).min()?;
    match (output[at], output.get(at + 1)) {
        (ESC, None) => None,
        (ESC, Some(b'\\')) => Some(at + 2),
        // It ends the string and begins another sequence.
        (ESC, Some(_)) => Some(at),
        _ => Some(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_torn_wherever_output_is_cut() {
        let units: [&[u8]; 12] = [
            b"plain",
            "é".as_bytes(),
            "日".as_bytes(),
            "𝄞".as_bytes(),
            b"\x1b[1;31m",
            b"\x1b[?1049h",
            b"\x1b[3 q",
            b"\x1b(B",
            b"\x1b7",
            b"\x1b]0;title\x07",
            b"\x1b]8;;http://x/\x1b\\",
            b"\x1bPq#0\x1b\\",
        ];
        for unit in units {
            let all = [b"a".as_slice(), unit].concat();
            assert_eq!(whole_len(&all), all.len(), "{unit:?}");
            for cut in 1..all.len() {
                let whole = if unit == b"plain" { cut } else { 1 };
                assert_eq!(whole_len(&all[..cut]), whole, "{unit:?} at {cut}");
            }
        }
    }

    #[test]
    fn what_is_held_back_is_bounded() {
        let image = [b"\x1bPq".as_slice(), &[b'x'; SEQUENCE_BYTES_MAX]].concat();
        assert_eq!(whole_len(&image), image.len());
        assert_eq!(whole_len(&image[..100]), 0);
        assert_eq!([whole_len(b"\xff\xff"), whole_len(b"\x80\x80\x80\x80"), whole_len(b"")], [2, 4, 0]);
    }
}
