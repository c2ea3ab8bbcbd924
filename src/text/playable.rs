//! Keeps the part of a program's output that a player of casts may write to somebody's terminal: the drawing.
//!
//! Dropped are questions to the terminal, because the answers would be typed into the person's shell; all string
//! sequences (titles, the clipboard, images); mouse, focus and paste reports; the bell, C1 controls and a full reset.
//! Hidden characters are shown by their code points.

use std::io::Write as _;

use super::csi::{self, Csi};
use super::hidden::is_hidden;
use super::parser::{Parser, Sink};

/// The filter of one run's output.
#[derive(Debug, Default)]
pub struct PlayableFilter {
    parser: Parser,
}

impl PlayableFilter {
    /// Takes output, and appends the playable part.
    pub fn push(&mut self, output: &[u8], out: &mut Vec<u8>) {
        self.parser.push(output, &mut Drawn { out });
    }
}

struct Drawn<'a> {
    out: &'a mut Vec<u8>,
}

impl Sink for Drawn<'_> {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        if run.is_ascii() {
            return self.out.extend_from_slice(run);
        }
        for c in run.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
            let written = match c {
                c if is_hidden(c) => write!(self.out, "⟨{:04X}⟩", u32::from(c)),
                c => self.out.write_all(c.encode_utf8(&mut [0; 4]).as_bytes()),
            };
            written.expect("writing to memory cannot fail");
        }
    }

    fn control(&mut self, byte: u8) {
        if csi::draws(byte) {
            self.out.push(byte);
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        if csi::escape_draws(intermediates, last) {
            csi::put_escape(intermediates, last, self.out);
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (Some(b'?'), [], b'h' | b'l') => {
                for mode in csi.values().filter(|mode| csi::DRAWING_MODES.contains(mode)) {
                    csi::put(format!("?{mode}").as_bytes(), last, self.out);
                }
            }
            // The scrollback is the person's.
            (_, [], b'J') if csi.value(0) == 3 => {}
            (None, [], b'@'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'Z' | b'`' | b'a' | b'b' | b'd'..=b'h')
            | (None, [], b'l' | b'm' | b'r' | b's' | b'u')
            | (Some(b'?'), [], b'J' | b'K')
            | (None, [b' '], b'q') => csi::put(body, last, self.out),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(output: &str) -> String {
        let mut out = Vec::new();
        PlayableFilter::default().push(output.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_draws_passes_and_what_asks_or_stays_does_not() {
        for drawing in
            ["\x1b[2J\x1b[5;7Hvi\x1b[1;31m~\x1b[m\r\n\x1b[K 日本", "\x1b[?1049h\x1b[?25l\x1b[1;20r\x1b[10dx\x1b[?1049l"]
        {
            assert_eq!(played(drawing), drawing);
        }
        assert_eq!(played("a\u{9b}2Jb\u{202e}c\u{200b}"), "a2Jb⟨202E⟩c⟨200B⟩");
        assert_eq!(played("\x1b[?1006;25h"), "\x1b[?25h");
        for refused in [
            "\x1b[c",
            "\x1b[>c",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[18t",
            "\x1b[>q",
            "\x1b[?u",
            "\x1b[?25$p",
            "\x05",
            "\x1bZ",
            "\x1b]11;?\x07",
            "\x1b]52;c;?\x07",
            "\x1bP+q544e\x1b\\",
            "\x1b[x",
            "\x1bc",
            "\x1b[?1000h",
            "\x1b[?2004h",
            "\x1b]0;title\x07",
            "\x1b[8;10;10t",
            "\x07",
            "\x1b_Gx\x1b\\",
            "\x1b[?996n",
            "\x1b[?2048h",
            "\x1b[3J",
        ] {
            assert_eq!(played(refused), "", "{refused:?}");
        }
    }
}
