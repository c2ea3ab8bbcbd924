//! Filters the output of verbs to a person's terminal: plain text and the verbs' own colours pass.
//!
//! Verbs escape texts from others where they put them into their lines. This filter catches the text that one of them
//! forgets.
//!
//! Invariants: nothing else passes; the result is the same however the text is split; only an incomplete character or
//! colour is held back.

use std::fmt::Write as _;

use super::escape::push_escaped;

/// The colours that verbs use.
const COLOURS: [&str; 7] = ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[38;5;244m"];

#[derive(Debug, Default)]
pub struct TerminalText {
    /// The beginning of a character or a colour.
    held: Vec<u8>,
}

impl TerminalText {
    /// Takes the next bytes, and appends the part that may be shown.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            joined = [&std::mem::take(&mut self.held), bytes].concat();
            &joined
        };
        while !rest.is_empty() {
            let length = match next(rest) {
                Next::Shown(text) => {
                    out.push_str(text);
                    text.len()
                }
                Next::Spelled(length, c) => {
                    push_escaped(out, c, true);
                    length
                }
                Next::Open => {
                    self.held = rest.to_vec();
                    return;
                }
            };
            rest = &rest[length..];
        }
    }

    /// Ends the output, and spells out the held bytes.
    pub fn finish(&mut self, out: &mut String) {
        for byte in std::mem::take(&mut self.held) {
            write!(out, "\\x{byte:02x}").expect("writing to memory cannot fail");
        }
    }
}

/// The next piece of text.
enum Next<'a> {
    Shown(&'a str),
    /// This many bytes make this character, which is spelled out if need be.
    Spelled(usize, char),
    /// More bytes are needed.
    Open,
}

fn next(text: &[u8]) -> Next<'_> {
    let plain = text.iter().take_while(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')).count();
    if plain > 0 {
        return Next::Shown(str::from_utf8(&text[..plain]).expect("it is ASCII"));
    }
    if text[0] == 0x1b {
        if let Some(colour) = COLOURS.iter().find(|colour| text.starts_with(colour.as_bytes())) {
            return Next::Shown(colour);
        }
        let is_begun = COLOURS.iter().any(|colour| colour.as_bytes().starts_with(text));
        return if is_begun { Next::Open } else { Next::Spelled(1, '\x1b') };
    }
    let chunk = text.utf8_chunks().next().expect("there is some text");
    match chunk.valid().chars().next() {
        Some(c) => Next::Spelled(c.len_utf8(), c),
        None if is_begun(text) => Next::Open,
        None => Next::Spelled(chunk.invalid().len(), char::REPLACEMENT_CHARACTER),
    }
}

/// Returns true if these bytes are the beginning of one character.
fn is_begun(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8], length: usize) -> String {
        let mut filter = TerminalText::default();
        let mut out = String::new();
        text.chunks(length).for_each(|piece| filter.push(piece, &mut out));
        filter.finish(&mut out);
        out
    }

    #[test]
    fn only_text_and_own_colours_pass_however_they_are_split() {
        for (text, expected) in [
            (&b"plain\ttext\n"[..], "plain\ttext\n"),
            ("größe 日本 😀 \u{a0}x\n".as_bytes(), "größe 日本 😀 \u{a0}x\n"),
            (b"\x1b[31mred\x1b[0m \x1b[38;5;244mgrey\x1b[0m", "\x1b[31mred\x1b[0m \x1b[38;5;244mgrey\x1b[0m"),
            (b"\x1b[8mhid\x1b[38;5;2m\x1b[2J\x1b]0;t\x07\r", "\\x1b[8mhid\\x1b[38;5;2m\\x1b[2J\\x1b]0;t\\x07\\r"),
            ("▌a\u{9b}2J\u{202e}\u{e0041}".as_bytes(), "⟨258C⟩a\\u{9b}2J\\u{202e}\\u{e0041}"),
            (b"a\xffb\xe2\x96", "a\u{fffd}b\\xe2\\x96"),
            (b"\x1b[3", "\\x1b\\x5b\\x33"),
        ] {
            for length in [1, 2, 3, 5, text.len()] {
                assert_eq!(shown(text, length), expected, "{:?} by {length}", String::from_utf8_lossy(text));
            }
        }
    }
}
