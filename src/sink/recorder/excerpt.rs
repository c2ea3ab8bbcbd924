//! The beginning and the end of a run's output, in bounded memory.
//!
//! Invariants: never more than `head_max + tail_max` bytes are kept; as long as nothing was left out, head and tail
//! together are everything that was pushed, in order.

use std::collections::VecDeque;

use crate::text::sanitize::{Mode, Sanitizer};

/// The first and the last bytes of what was pushed.
#[derive(Debug)]
pub(super) struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    pushed: u64,
}

/// An excerpt as clean text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    /// Raw bytes left out, and the byte of `text` at which they would stand.
    pub(super) omitted: u64,
    pub(super) cut: usize,
}

impl Excerpt {
    pub(super) fn new(head_max: usize, tail_max: usize) -> Excerpt {
        Excerpt { head: Vec::new(), tail: VecDeque::new(), head_max, tail_max, pushed: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pushed += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// All bytes that were ever pushed.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Whether `more` bytes can be pushed without anything being left out.
    pub(super) fn has_room_for(&self, more: usize) -> bool {
        self.pushed + more as u64 <= (self.head_max + self.tail_max) as u64
    }

    /// What is kept, in order.
    pub(super) fn parts(&self) -> [&[u8]; 3] {
        let (front, back) = self.tail.as_slices();
        [&self.head, front, back]
    }

    /// The excerpt for the record. No character that the cut went through is shown in halves.
    pub(super) fn into_text(mut self) -> Text {
        let kept = (self.head.len() + self.tail.len()) as u64;
        if kept == self.pushed {
            self.head.extend(self.tail);
            let text = clean(&self.head);
            return Text { cut: text.len(), text, omitted: 0 };
        }
        let head = without_torn_end(&self.head);
        let tail = without_torn_start(self.tail.make_contiguous());
        let mut text = clean(head);
        let cut = text.len();
        text.push_str(&clean(tail));
        Text { text, omitted: self.pushed - (head.len() + tail.len()) as u64, cut }
    }
}

/// What a person would read in `bytes`: no escape sequence, no control character but tab and newline, valid UTF-8.
fn clean(bytes: &[u8]) -> String {
    let mut sanitizer = Sanitizer::new(Mode::Strip);
    let mut text = Vec::with_capacity(bytes.len());
    sanitizer.push(bytes, &mut text);
    sanitizer.finish(&mut text);
    // The sanitizer promises UTF-8; a record must be valid even if it should break its word.
    String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn without_torn_end(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if needs > back { &bytes[..at] } else { bytes };
    }
    bytes
}

fn without_torn_start(bytes: &[u8]) -> &[u8] {
    let torn = bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
    &bytes[torn..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition, with every way to cut the input in pieces of one size.
    #[test]
    fn head_and_tail_are_exact() {
        let all: Vec<u8> = (0..40).map(|n| b'a' + n % 26).collect();
        for length in 0..=all.len() {
            for size in 1..=all.len() {
                let mut excerpt = Excerpt::new(7, 5);
                for piece in all[..length].chunks(size) {
                    excerpt.push(piece);
                }
                assert!(excerpt.head.len() <= 7 && excerpt.tail.len() <= 5);
                let expected =
                    if length <= 12 { all[..length].to_vec() } else { [&all[..7], &all[length - 5..length]].concat() };
                assert_eq!(excerpt.parts().concat(), expected);
                let text = excerpt.into_text();
                assert_eq!(text.text.as_bytes(), expected);
                assert_eq!(text.omitted, length.saturating_sub(12) as u64);
                assert_eq!(text.cut, if length <= 12 { length } else { 7 });
            }
        }
    }

    #[test]
    fn no_character_in_halves() {
        for shift in 0..4 {
            let mut excerpt = Excerpt::new(8 + shift, 8 + shift);
            excerpt.push("𝄞".repeat(100).as_bytes());
            let text = excerpt.into_text();
            assert_eq!(text.text, "𝄞".repeat(4));
            assert_eq!((text.omitted, text.cut), (384, 8));
        }
        let mut excerpt = Excerpt::new(3, 3);
        excerpt.push(&[0xff; 9]);
        assert_eq!(excerpt.into_text(), Text { text: "\u{fffd}".repeat(6), omitted: 3, cut: 9 });
    }

    #[test]
    fn clean_text_has_no_controls() {
        assert_eq!(clean(b"\x1b[31mred\x1b[0m\tx\r\ny\x07\x1b]0;title\x07z\0\xff"), "red\tx\nyz\u{fffd}");
        let all: Vec<u8> = (0..=255).collect();
        assert!(clean(&all).chars().all(|c| !c.is_control() || c == '\t' || c == '\n'));
    }
}
