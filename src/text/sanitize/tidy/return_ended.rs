//! Tells a text whose lines end in CR alone, as on old Macs, from a bar that is redrawn over and over.
//!
//! Both are pieces with a CR between them. The pieces of a bar are mostly states of one line: they have the same letters,
//! and differ in their numbers and figures. Lines of a text mostly have letters of their own. Without any letters, pieces
//! of numbers are lines only if they all came in one moment, because a counter takes its time. A piece of blanks erases the
//! one before. A bar may also begin with its CR, which a text does not.

use crate::text::sanitize::hold::letters;

/// Returns true if this is a text whose lines end in CR alone. `is_ended`: a CR follows. Without that, two pieces are
/// rather a line that was rewritten once.
pub(super) fn is_return_ended(text: &[u8], is_ended: bool, is_of_one_moment: bool) -> bool {
    if text.starts_with(b"\r") {
        return false;
    }
    let mut pieces = text.split(|&byte| byte == b'\r').filter(|piece| !piece.is_empty());
    let Some(mut before) = pieces.next() else { return false };
    let (mut pairs, mut frames) = (0, 0);
    for piece in pieces {
        pairs += 1;
        frames += usize::from(is_frame(before, piece, is_of_one_moment));
        before = piece;
    }
    let least = if is_ended { 1 } else { 2 };
    pairs >= least && frames * 2 < pairs
}

/// Returns true if a piece is the next state of the line in the one before.
fn is_frame(before: &[u8], piece: &[u8], is_of_one_moment: bool) -> bool {
    if piece.iter().all(|&byte| byte == b' ') {
        return true;
    }
    if letters(before).next().is_none() && letters(piece).next().is_none() {
        return !(is_of_one_moment && is_numbers(before) && is_numbers(piece));
    }
    letters(before).eq(letters(piece))
}

fn is_numbers(piece: &[u8]) -> bool {
    piece.iter().all(|byte| byte.is_ascii_digit() || b" \t,.;:+-".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_letters_of_their_own_and_states_of_a_bar_have_the_same() {
        for text in ["a\rb\rc", "one\r\rtwo", "name,age\rann,31\rbob,44", "1\r2\r3", "x: 1\ry: 2\ry: 3\rz: 4"] {
            assert!(is_return_ended(text.as_bytes(), true, true), "{text:?}");
        }
        let bars = ["\r1\r2", "1%\r2%", "[=> ]\r[==>]", "|\r/\r-", "load 1\rload 2\rload 3", "done\r    ", "only"];
        for bar in bars {
            assert!(!is_return_ended(bar.as_bytes(), true, true), "{bar:?}");
        }
        assert!(!is_return_ended(b"working\rdone", false, true), "rewritten once");
        assert!(is_return_ended(b"one\rtwo\rthree", false, true));
        assert!(!is_return_ended(b"1\r2\r3", true, false), "a counter");
    }
}
