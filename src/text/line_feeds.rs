//! Turns line feeds for a raw terminal into CR LF, as a cooked terminal does, except those of a full-screen program: it
//! means the plain line feed, one row down.

use super::alternate_screen::AlternateScreen;

/// The state of the terminal that decides on line feeds.
#[derive(Debug, Default)]
pub struct LineFeeds {
    screen: AlternateScreen,
    last: u8,
}

impl LineFeeds {
    /// Appends the next bytes of a command's output as the terminal needs them.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        for &byte in input {
            if byte == b'\n' && !self.screen.is_on() && self.last != b'\r' {
                out.push(b'\r');
            }
            out.push(byte);
            self.last = byte;
            self.screen.push(&[byte]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_screen_program_means_a_plain_line_feed() {
        let text = b"a\nb\r\n\x1b[?1049hc\n\x1b[\x1b[?1049ld\n";
        for size in [1, 2, 5, text.len()] {
            let (mut feeds, mut out) = (LineFeeds::default(), Vec::new());
            text.chunks(size).for_each(|piece| feeds.push(piece, &mut out));
            assert_eq!(out, b"a\r\nb\r\n\x1b[?1049hc\n\x1b[\x1b[?1049ld\r\n");
        }
    }
}
