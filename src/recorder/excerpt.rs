//! The beginning and the end of a run's output as a person would read it, in bounded memory.
//!
//! The output goes to a simulated terminal of the run's own size, all streams in the order in which they came. The
//! text is what scrolls off that terminal and what it shows in the end, so a progress bar leaves only its last state.
//!
//! Invariants: at most `head_max + tail_max` bytes of text are kept; until something is left out, head and tail
//! together are the whole text; no character is cut in half.

use std::collections::VecDeque;

use crate::text::sanitize::{Mode, Sanitizer};
use crate::text::whole::without_torn_end;

/// The first and the last bytes of the text.
#[derive(Debug)]
pub(super) struct Excerpt {
    sanitizer: Sanitizer,
    /// The sanitizer's last output.
    fresh: Vec<u8>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    /// The length of the whole text, bytes.
    len: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExcerptText {
    pub(super) text: String,
    /// How many bytes `text` leaves out.
    pub(super) omitted: u64,
    /// The offset in `text` at which those bytes would stand.
    pub(super) cut: usize,
}

impl Excerpt {
    /// Begins an excerpt with a terminal of this size. `head_max` and `tail_max` are bytes.
    pub(super) fn new((rows, cols): (u16, u16), head_max: usize, tail_max: usize) -> Excerpt {
        Excerpt {
            sanitizer: Sanitizer::new(Mode::Collapse { rows, cols }),
            fresh: Vec::new(),
            head: Vec::new(),
            tail: VecDeque::new(),
            head_max,
            tail_max,
            len: 0,
        }
    }

    /// Adds raw output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.fresh.clear();
        self.sanitizer.push(bytes, &mut self.fresh);
        self.keep_fresh();
    }

    /// Ends the output: adds what the terminal still shows.
    pub(super) fn finish(&mut self) {
        self.fresh.clear();
        self.sanitizer.finish(&mut self.fresh);
        self.keep_fresh();
    }

    /// Counts output between the beginning and the end, which begins here. Call it when the beginning is complete.
    pub(super) fn leave_out(&mut self, bytes: u64) {
        self.finish();
        self.tail.clear();
        self.len += bytes;
    }

    fn keep_fresh(&mut self) {
        self.len += self.fresh.len() as u64;
        let (head, rest) = self.fresh.split_at(self.fresh.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns true if some of the text was left out.
    pub(super) fn is_cut(&self) -> bool {
        self.len > (self.head.len() + self.tail.len()) as u64
    }

    pub(super) fn into_text(mut self) -> ExcerptText {
        if !self.is_cut() {
            self.head.extend(self.tail);
            let text = utf8(self.head);
            return ExcerptText { cut: text.len(), text, omitted: 0 };
        }
        self.head.truncate(without_torn_end(&self.head).len());
        let tail = without_torn_start(self.tail.make_contiguous());
        let omitted = self.len - (self.head.len() + tail.len()) as u64;
        let mut text = utf8(self.head);
        let cut = text.len();
        text.push_str(&utf8(tail.to_vec()));
        ExcerptText { text, omitted, cut }
    }
}

impl ExcerptText {
    /// Changes both parts by `mask`, which may make them longer. Leaves text that then has no room out of the middle.
    pub(super) fn masked(self, mut mask: impl FnMut(&str) -> String, head_max: usize, tail_max: usize) -> ExcerptText {
        let (head, tail) = self.text.split_at(self.cut);
        let (mut head, mut tail) = (mask(head), mask(tail));
        if self.omitted == 0 && head.len() + tail.len() <= head_max + tail_max {
            head.push_str(&tail);
            return ExcerptText { cut: head.len(), text: head, omitted: 0 };
        }
        if self.omitted == 0 {
            head.push_str(&tail);
            tail = head.split_off(whole_characters(&head, head_max));
        }
        let rest = head.split_off(whole_characters(&head, head_max));
        let last = &tail.as_bytes()[tail.len().saturating_sub(tail_max)..];
        let kept = tail.split_off(tail.len() - without_torn_start(last).len());
        let omitted = self.omitted + (rest.len() + tail.len()) as u64;
        let cut = head.len();
        head.push_str(&kept);
        ExcerptText { text: head, omitted, cut }
    }
}

/// The length of the whole characters in the first `bytes_max` bytes of a text.
fn whole_characters(text: &str, bytes_max: usize) -> usize {
    without_torn_end(&text.as_bytes()[..text.len().min(bytes_max)]).len()
}

/// The sanitizer promises UTF-8. A record must be valid even if it does not keep that promise.
fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn without_torn_start(bytes: &[u8]) -> &[u8] {
    let torn = bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
    &bytes[torn..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: (u16, u16) = (4, 20);

    fn excerpt(head_max: usize, tail_max: usize, pieces: &[&[u8]]) -> ExcerptText {
        let mut excerpt = Excerpt::new(SCREEN, head_max, tail_max);
        for piece in pieces {
            excerpt.push(piece);
            assert!(excerpt.head.len() <= head_max && excerpt.tail.len() <= tail_max);
        }
        excerpt.finish();
        excerpt.into_text()
    }

    /// Compares with the definition, for every size of the pieces in which the input comes.
    #[test]
    fn head_and_tail_are_exact() {
        let all: Vec<u8> = (0..40).map(|n| if n % 5 == 4 { b'\n' } else { b'a' + n % 26 }).collect();
        for length in 0..=all.len() {
            for size in 1..=all.len() {
                let text = excerpt(7, 5, &all[..length].chunks(size).collect::<Vec<_>>());
                let expected =
                    if length <= 12 { all[..length].to_vec() } else { [&all[..7], &all[length - 5..length]].concat() };
                assert_eq!(text.text.as_bytes(), expected);
                assert_eq!(text.omitted, length.saturating_sub(12) as u64);
                assert_eq!(text.cut, if length <= 12 { length } else { 7 });
            }
        }
    }

    #[test]
    fn no_character_is_cut_in_half() {
        for shift in 0..4 {
            let text = excerpt(8 + shift, 8 + shift, &["𝄞".repeat(100).as_bytes()]);
            assert_eq!(text.text, "𝄞".repeat(4));
            assert_eq!((text.omitted, text.cut), (384, 8));
        }
        let text = excerpt(3, 3, &[&[0xff; 9]]);
        assert_eq!(text, ExcerptText { text: "\u{fffd}".repeat(2), omitted: 21, cut: 3 });
    }

    #[test]
    fn masks_make_no_excerpt_longer_than_its_bound() {
        let longer = |text: &str| text.replace('x', "«é»");
        let whole = |text: &str, cut| ExcerptText { text: text.to_owned(), omitted: 0, cut };
        assert_eq!(whole("axb", 3).masked(longer, 8, 8), whole("a«é»b", 8));
        let masked = whole("axxxb", 5).masked(longer, 5, 5);
        assert_eq!(masked, ExcerptText { text: "a«éé»b".to_owned(), omitted: 10, cut: 5 });
        let masked = ExcerptText { text: "axbx".to_owned(), omitted: 100, cut: 2 }.masked(longer, 5, 4);
        assert_eq!(masked, ExcerptText { text: "a«éé»".to_owned(), omitted: 105, cut: 5 });
    }

    #[test]
    fn the_text_has_no_controls() {
        let text = |bytes: &[u8]| excerpt(4096, 4096, &[bytes]).text;
        assert_eq!(text(b"\x1b[31mred\x1b[0m\tx\r\ny\x07\x1b]0;title\x07z\0\xff"), "red\tx\nyz\u{fffd}");
        let all: Vec<u8> = (0..=255).collect();
        assert!(text(&all).chars().all(|c| !c.is_control() || c == '\t' || c == '\n'));
    }

    /// The output is much longer than what is kept, and still the text is whole.
    #[test]
    fn redrawn_output_counts_once() {
        let bar: Vec<String> = (0..=1000).map(|n| format!("\rload {:3} %", n / 10)).collect();
        let pieces: Vec<&[u8]> = bar.iter().map(String::as_bytes).chain([b"\ndone\n".as_slice()]).collect();
        assert_eq!(
            excerpt(16, 16, &pieces),
            ExcerptText { text: "load 100 %\ndone\n".to_owned(), omitted: 0, cut: 16 }
        );
        let lines: Vec<String> = (0..500).map(|n| format!("a {n}\nb {n}\n\x1b[2A")).collect();
        let pieces: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        assert_eq!(excerpt(16, 16, &pieces).text, "a 499\nb 499");
    }
}
