//! What the start of a row looks like to a person, whatever its characters are.
//!
//! Signs and letters of other scripts look like those of ASCII, and marks without a width are not seen at all.

use crate::text::width::width;

/// More than this at the start of a row is not read, bytes.
const BYTES_MAX: usize = 96;

/// What a character may be taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// Itself, or a letter, digit or sign that is drawn like it.
    Ascii(u8),
    /// Some letter.
    Letter,
    Ellipsis,
    /// A character that is like none of the host's.
    Other,
    /// Nothing is seen, but perhaps a mark on nothing.
    Nothing,
}

impl Looks {
    /// Whether a person may take this for the other one.
    pub(super) fn may_be(self, own: Self) -> bool {
        match (self, own) {
            (Self::Ascii(a), Self::Ascii(b)) => a.eq_ignore_ascii_case(&b),
            (Self::Letter, Self::Ascii(b)) => b.is_ascii_alphabetic(),
            (Self::Ellipsis, Self::Ellipsis) => true,
            _ => false,
        }
    }

    fn of(c: char) -> Self {
        const MATHEMATICAL: u32 = 0x1D400;
        const DIGITS: u32 = 0x1D7CE;
        match c {
            c if c.is_ascii() => Self::Ascii(c as u8),
            '\u{2045}' | '\u{2772}' | '\u{27E6}' | '\u{301A}' | '\u{FF3B}' => Self::Ascii(b'['),
            '\u{203A}' | '\u{276F}' | '\u{2771}' | '\u{2C3}' | '\u{1433}' | '\u{232A}' | '\u{27E9}' | '\u{3009}'
            | '\u{FF1E}' => Self::Ascii(b'>'),
            '\u{2024}'..='\u{2026}' | '\u{22EF}' | '\u{1801}' => Self::Ellipsis,
            '\u{1D400}'..='\u{1D7CD}' => match ((u32::from(c) - MATHEMATICAL) % 52) as u8 {
                letter @ 0..26 => Self::Ascii(b'A' + letter),
                letter => Self::Ascii(b'a' + letter - 26),
            },
            '\u{1D7CE}'..='\u{1D7FF}' => Self::Ascii(b'0' + ((u32::from(c) - DIGITS) % 10) as u8),
            c if c.is_alphabetic() => Self::Letter,
            _ => Self::Other,
        }
    }
}

/// What the row looks like as far as it goes. `None` where a character is not whole, or its marks may go on.
pub(super) fn read(start: &[u8]) -> Option<Vec<Looks>> {
    let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
    if std::str::from_utf8(start).is_err_and(is_cut) && start.len() < BYTES_MAX {
        return None;
    }
    let mut row = Vec::new();
    for c in start
        .utf8_chunks()
        .flat_map(|chunk| chunk.valid().chars().chain((!chunk.invalid().is_empty()).then_some('\u{FFFD}')))
    {
        match c {
            '\u{226B}' | '\u{BB}' => row.extend([Looks::Ascii(b'>'); 2]),
            '\u{22D9}' => row.extend([Looks::Ascii(b'>'); 3]),
            c if width(c) > 0 || c.is_ascii() => row.push(Looks::of(c)),
            _ if row.is_empty() => return Some(vec![Looks::Nothing]),
            // A mark on a character.
            _ => {}
        }
    }
    if start.len() >= BYTES_MAX {
        // So many marks stand there for nothing good.
        return Some(vec![Looks::Nothing]);
    }
    Some(row)
}
