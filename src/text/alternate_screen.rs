//! Whether a program draws on the alternate screen, as full-screen programs do.

use memchr::memchr;

/// The normal screen, with the cursor where it is (xterm): for a terminal that a program may have left in the alternate one.
pub const NORMAL_SCREEN: &[u8] = b"\x1b[?1047l";

/// What switches to the alternate screen, and back.
const SWITCHES: [(&[u8], bool); 6] = [
    (b"\x1b[?1049h", true),
    (b"\x1b[?1047h", true),
    (b"\x1b[?47h", true),
    (b"\x1b[?1049l", false),
    (b"\x1b[?1047l", false),
    (b"\x1b[?47l", false),
];

/// Follows a program's output, in pieces of any size.
#[derive(Debug, Default)]
pub struct AlternateScreen {
    is_on: bool,
    /// The beginning of a switch.
    open: Vec<u8>,
}

impl AlternateScreen {
    /// Takes the next bytes.
    pub fn push(&mut self, mut rest: &[u8]) {
        loop {
            if self.open.is_empty() {
                let Some(at) = memchr(b'\x1b', rest) else { return };
                rest = &rest[at..];
            }
            let Some((&byte, after)) = rest.split_first() else { return };
            rest = after;
            if byte == b'\x1b' {
                self.open.clear();
            }
            self.open.push(byte);
            if let Some((_, is_on)) = SWITCHES.iter().find(|(switch, _)| *switch == self.open) {
                self.is_on = *is_on;
            }
            let is_begun =
                |(switch, _): &(&[u8], bool)| switch.len() > self.open.len() && switch.starts_with(&self.open);
            if !SWITCHES.iter().any(is_begun) {
                self.open.clear();
            }
        }
    }

    /// Whether the program is there.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }
}
