//! Reads the start of a row as a person sees it.
//!
//! Some signs and letters of other scripts look like ASCII, and zero-width marks are invisible.

use crate::text::width::width;

/// The most bytes at the start of a row that are read.
const BYTES_MAX: usize = 96;

/// The character that a person may see in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookalike {
    Ascii(u8),
    Letter,
    Ellipsis,
    /// A character that begins none of the host's rows.
    Other,
    /// Nothing, or a mark alone.
    Nothing,
}

impl Lookalike {
    /// Returns true if a person may take this for a character of the host's.
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

/// The row as a person sees it. `None` if its last character is incomplete.
pub(super) fn read(start: &[u8]) -> Option<Vec<Lookalike>> {
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
            '\u{226B}' | '\u{BB}' => row.extend([Lookalike::Ascii(b'>'); 2]),
            '\u{22D9}' => row.extend([Lookalike::Ascii(b'>'); 3]),
            c if width(c) > 0 || c.is_ascii() => row.push(Lookalike::of(c)),
            _ if row.is_empty() => return Some(vec![Lookalike::Nothing]),
            // A zero-width mark on a character.
            _ => {}
        }
    }
    if start.len() >= BYTES_MAX {
        // A row with this many marks is suspicious.
        return Some(vec![Lookalike::Nothing]);
    }
    Some(row)
}
