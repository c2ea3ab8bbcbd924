//! Whether output draws pictures on a whole screen, as editors and `top` do, instead of lines.

use super::csi::Csi;
use super::parser::{Parser, Sink};

/// The alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];
/// A program that moves the cursor to a place this often draws pictures. clear(1) moves it once.
const PLACINGS_MIN: u32 = 2;

/// Looks at a program's output, in pieces of any size.
#[derive(Debug, Default)]
pub struct FullScreenSigns {
    parser: Parser,
    seen: SeenSigns,
}

#[derive(Debug, Default)]
struct SeenSigns {
    is_alternate: bool,
    placings: u32,
}

impl FullScreenSigns {
    /// Takes the next bytes.
    pub fn push(&mut self, output: &[u8]) {
        self.parser.push(output, &mut self.seen);
    }

    /// Whether the output so far was that of a full-screen program.
    #[must_use]
    pub fn are_seen(&self) -> bool {
        self.seen.is_alternate || self.seen.placings >= PLACINGS_MIN
    }
}

impl Sink for SeenSigns {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, _: &[u8]) {}

    fn control(&mut self, _: u8) {}

    fn escape(&mut self, _: &[u8], _: u8) {}

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h') => self.is_alternate |= csi.values().any(|mode| ALTERNATE.contains(&mode)),
            (None, [], b'H' | b'd' | b'f') => self.placings += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_told_from_lines_however_the_output_is_cut() {
        for (output, is_full_screen) in [
            (&b"before\r\n\x1b[?1049hdrawn\x1b[?1049l"[..], true),
            (b"\x1b[?25;47hdrawn", true),
            (b"one\x1b[Htwo\x1b[2;3Hthree", true),
            (b"made\r\n\x1b[H\x1b[2J\x1b[3J", false),
            (b"\x1b[1mlines\x1b[m\r\n10 %\r50 %\x1b[K\x1b[2A\x1b[?1049l", false),
        ] {
            for length in [1, 3, output.len()] {
                let mut signs = FullScreenSigns::default();
                output.chunks(length).for_each(|piece| signs.push(piece));
                assert_eq!(signs.are_seen(), is_full_screen, "{:?}", String::from_utf8_lossy(output));
            }
        }
    }
}
