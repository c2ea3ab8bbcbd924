//! Colours and attributes: the parameters of `CSI … m` that may be shown.
//!
//! Concealed and blinking text are refused. One colour is reserved for the console's headers, so that a program cannot
//! print a line that looks like one.

use crate::text::csi::first_number;

/// The beginning of the console's headers: white on the reserved colour, which no run can produce.
pub const HEADER_SGR: &[u8] = b"\x1b[97;48;5;24m";

/// The reserved colour as a palette entry and as RGB.
const RESERVED_INDEX: u16 = 24;
const RESERVED_RGB: [u16; 3] = [0, 95, 135];

/// The longest body that is read, in bytes.
const BODY_BYTES_MAX: usize = 64;

/// Appends the sequence without refused parameters, or nothing if none is left.
pub(crate) fn filter(params: &[u8], out: &mut Vec<u8>) {
    if params.len() > BODY_BYTES_MAX {
        return;
    }
    let start = out.len();
    out.extend_from_slice(b"\x1b[");
    let body = out.len();
    let mut any = false;
    let mut rest = Some(params);
    while let Some(params) = rest {
        let (unit, after) = next_unit(params);
        rest = after;
        if is_allowed(unit) {
            if any {
                out.push(b';');
            }
            any = true;
            out.extend_from_slice(unit);
        }
    }
    // An empty sequence would be a reset, which the program did not ask for.
    if any || out.len() > body {
        out.push(b'm');
    } else {
        out.truncate(start);
    }
}

/// The first attribute, which is a parameter or a colour with all its parts; and the parameters after its `;`, if any.
fn next_unit(params: &[u8]) -> (&[u8], Option<&[u8]>) {
    let nth = |n: usize| params.iter().enumerate().filter(|&(_, &b)| b == b';').nth(n).map(|(at, _)| at);
    let cut = |parts: usize| match nth(parts - 1) {
        Some(at) => (&params[..at], Some(&params[at + 1..])),
        None => (params, None),
    };
    let (first, after) = cut(1);
    let is_colour = !first.contains(&b':') && matches!(first_number(first), 38 | 48 | 58);
    match after {
        Some(after) if is_colour => match first_number(after.split(|&b| b == b';').next().unwrap_or_default()) {
            5 => cut(3),
            2 => cut(5),
            _ => cut(2),
        },
        _ => (first, after),
    }
}

fn is_allowed(unit: &[u8]) -> bool {
    if unit.contains(&b';') && unit.contains(&b':') {
        // Terminals disagree on the meaning of such a mixture.
        return false;
    }
    let parts = || unit.split(|b| matches!(b, b';' | b':')).map(first_number);
    match parts().next().unwrap_or(0) {
        5 | 6 | 8 => false,
        38 | 48 | 58 => is_colour_allowed(parts().skip(1)),
        _ => true,
    }
}

/// Returns true if a colour is whole, and not the reserved one. The colon form may hold an empty colour space.
fn is_colour_allowed(mut parts: impl Iterator<Item = u16>) -> bool {
    match parts.next() {
        Some(5) => parts.next().is_some_and(|index| index != RESERVED_INDEX),
        Some(2) => {
            let parts: Vec<u16> = parts.take(5).collect();
            parts.len() >= 3 && !parts.windows(3).any(|rgb| rgb == RESERVED_RGB)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(params: &str) -> String {
        let mut out = Vec::new();
        filter(params.as_bytes(), &mut out);
        String::from_utf8(out).unwrap().replace('\x1b', "^")
    }

    #[test]
    fn attributes_pass_and_hiding_ones_do_not() {
        for (params, expected) in [
            ("", "^[m"),
            ("0", "^[0m"),
            ("1;31", "^[1;31m"),
            (";1", "^[;1m"),
            ("8", ""),
            ("5;6;8", ""),
            ("08", ""),
            ("31;8;1", "^[31;1m"),
            ("8;0", "^[0m"),
            ("38;5;8", "^[38;5;8m"),
            ("38;2;8;5;6;1", "^[38;2;8;5;6;1m"),
            ("38;5;24;1", "^[1m"),
            ("48;2;0;95;135", ""),
            ("48:2::0:95:135", ""),
            ("38:5:24", ""),
            ("4:3", "^[4:3m"),
            ("38;8", ""),
            ("38;5:9;5", ""),
            ("38;5", ""),
            ("38;2;1;2", ""),
            ("97;48;5;24", "^[97m"),
        ] {
            assert_eq!(filtered(params), expected, "{params}");
        }
        assert_eq!(filtered(&"1;".repeat(40)), "");
    }
}
