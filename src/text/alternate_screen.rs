//! Tells when a program draws on the alternate screen, as full-screen programs do.

use memchr::{memmem, memrchr};

/// The normal screen, with the cursor where it is (xterm): for a terminal that a program may have left in the alternate one.
pub const NORMAL_SCREEN: &[u8] = b"\x1b[?1047l";

/// The sequences that switch to the alternate screen (`true`), and back.
const SWITCHES: [(&[u8], bool); 6] = [
    (b"\x1b[?1049h", true),
    (b"\x1b[?1047h", true),
    (b"\x1b[?47h", true),
    (b"\x1b[?1049l", false),
    (b"\x1b[?1047l", false),
    (b"\x1b[?47l", false),
];
/// The common beginning of all of them. Colours begin otherwise, so hardly anything is compared with the switches.
const BEGINNING: &[u8] = b"\x1b[?";
/// The most bytes of a switch that an earlier piece can end with.
const OPEN_BYTES_MAX: usize = b"\x1b[?1049".len();

/// Follows a program's output, in pieces of any size.
#[derive(Debug, Default)]
pub struct AlternateScreen {
    is_on: bool,
    /// The beginning of a switch at the end of the last piece.
    open: Vec<u8>,
}

impl AlternateScreen {
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.open.is_empty() {
            let mut joined = std::mem::take(&mut self.open);
            joined.extend_from_slice(&bytes[..bytes.len().min(OPEN_BYTES_MAX)]);
            self.follow(&joined);
            self.open = open_switch(&joined).to_vec();
        }
        self.follow(bytes);
        if bytes.len() > OPEN_BYTES_MAX || self.open.is_empty() {
            self.open = open_switch(bytes).to_vec();
        }
    }

    fn follow(&mut self, bytes: &[u8]) {
        for at in memmem::find_iter(bytes, BEGINNING) {
            if let Some((_, is_on)) = SWITCHES.iter().find(|(switch, _)| bytes[at..].starts_with(switch)) {
                self.is_on = *is_on;
            }
        }
    }

    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }
}

/// The beginning of a switch at the end of the bytes.
fn open_switch(bytes: &[u8]) -> &[u8] {
    let last = &bytes[bytes.len().saturating_sub(OPEN_BYTES_MAX)..];
    let open = memrchr(b'\x1b', last).map_or(&[][..], |at| &last[at..]);
    let is_begun = SWITCHES.iter().any(|(switch, _)| switch.len() > open.len() && switch.starts_with(open));
    if is_begun { open } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte at a time, and in pieces of each length, the program is where a look at the whole text finds it.
    #[test]
    fn switches_are_found_however_the_output_is_cut() {
        let text = b"\x1b[?1049h\x1b[1;31m\x1b[?25l\x1b\x1b[?47l x\x1b[?104\x1b[?1047h\x1b[?1049\x1b[?47\x1b[?1047l\x1b[?1049hz";
        let expected = |end: usize| {
            let last = |(switch, is_on)| memmem::rfind(&text[..end], switch).map(|at| (at, is_on));
            SWITCHES.into_iter().filter_map(last).max().is_some_and(|(_, is_on)| is_on)
        };
        for length in 1..=text.len() {
            let (mut screen, mut end) = (AlternateScreen::default(), 0);
            for piece in text.chunks(length) {
                screen.push(piece);
                end += piece.len();
                assert_eq!(screen.is_on(), expected(end), "pieces of {length}, {end} bytes");
            }
            assert!(screen.is_on());
        }
    }
}
