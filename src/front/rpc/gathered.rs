//! The output of one stream for an answer at the end: its head and its tail, and how much is left out between them.
//!
//! Invariant: no more than the bound is held, and the memory grows with what was written.

use std::collections::VecDeque;

/// The output of one stream.
#[derive(Debug)]
pub struct GatheredOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    omitted: u64,
}

impl GatheredOutput {
    /// Nothing yet; at most `most` bytes are held, half of them of the beginning.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let tail_max = most / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_max: most - tail_max, tail_max, omitted: 0 }
    }

    /// Takes output.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.head_max - self.head.len();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        let skipped = rest.len().saturating_sub(self.tail_max);
        let beyond = (self.tail.len() + rest.len() - skipped).saturating_sub(self.tail_max);
        self.tail.drain(..beyond);
        self.tail.extend(&rest[skipped..]);
        self.omitted += u64::try_from(beyond + skipped).expect("a length fits 64 bits");
    }

    /// The memory that it takes, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// How many bytes were left out.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The output, with a line in place of what was left out.
    #[must_use]
    pub fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.omitted == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let head = crate::text::whole::without_torn_end(&self.head);
        let tail = [front, back].concat();
        let torn = tail.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
        let note = crate::text::count::bytes(self.omitted);
        format!("{}\n… {note} left out …\n{}", String::from_utf8_lossy(head), String::from_utf8_lossy(&tail[torn..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_are_kept_in_pieces_of_any_size() {
        let all: Vec<u8> = (b'a'..=b'z').collect();
        for size in 1..30 {
            let (mut small, mut large) = (GatheredOutput::new(9), GatheredOutput::new(26));
            for piece in all.chunks(size) {
                small.push(piece);
                large.push(piece);
            }
            assert_eq!((small.omitted(), small.weight()), (17, 9), "{size}");
            assert!(small.text().starts_with("abcde\n… 17 bytes left out …\nwxyz"), "{size}: {}", small.text());
            assert_eq!((large.text().as_bytes(), large.omitted()), (&*all, 0), "{size}");
        }
        let mut none = GatheredOutput::new(0);
        none.push(b"abc");
        assert_eq!((none.weight(), none.omitted()), (0, 3));
    }
}
