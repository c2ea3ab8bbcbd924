//! Writes the control sequences that the safe console sends on.

use std::io::Write as _;

/// Appends a move by `count` rows or columns, in the direction of `last`.
pub(super) fn move_by(out: &mut Vec<u8>, count: u32, last: u8) {
    write(out, count, b"\x1b[", last);
}

/// Appends a sequence with one number.
pub(super) fn write(out: &mut Vec<u8>, number: u32, start: &[u8], last: u8) {
    out.extend_from_slice(start);
    write!(out, "{number}").expect("writing to memory cannot fail");
    out.push(last);
}
