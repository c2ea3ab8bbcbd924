//! The output of one stream for an answer at the end: its head and its tail, and the number of bytes left out between
//! them.
//!
//! Invariants: it holds no more than its limit, nor than the share of all answers' memory; the memory grows with the
//! output.

use std::collections::VecDeque;

use crate::front::budget::Share;

#[derive(Debug)]
pub struct GatheredOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    share: Share,
    omitted: u64,
}

impl GatheredOutput {
    /// Nothing yet; at most `most` bytes are held, half of them from the beginning.
    #[must_use]
    pub fn new(most: usize, share: Share) -> Self {
        let tail_max = most / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_max: most - tail_max, tail_max, share, omitted: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        // Half of the free memory is for the end. Without room for more, the held end moves on.
        let free = self.share.room().saturating_sub(self.weight());
        let has_tail = self.omitted > 0 || !self.tail.is_empty();
        let room = if has_tail { 0 } else { (free / 2).min(self.head_max - self.head.len()) };
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        let tail_max = self.tail_max.min(self.tail.len() + free - head.len());
        let skipped = rest.len().saturating_sub(tail_max);
        let beyond = (self.tail.len() + rest.len() - skipped).saturating_sub(tail_max);
        self.tail.drain(..beyond);
        self.tail.extend(&rest[skipped..]);
        self.omitted += u64::try_from(beyond + skipped).expect("a length fits 64 bits");
        self.share.hold(self.weight());
    }

    fn weight(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// The number of left-out bytes.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The output, with a line in place of the left-out part.
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
    use crate::front::budget::Budget;

    #[test]
    fn head_and_tail_are_kept_in_pieces_of_any_size() {
        let all: Vec<u8> = (b'a'..=b'z').collect();
        for size in 1..30 {
            let budget = Budget::new(100, 0);
            let gathered = |most| GatheredOutput::new(most, budget.share());
            let (mut small, mut large) = (gathered(9), gathered(26));
            for piece in all.chunks(size) {
                small.push(piece);
                large.push(piece);
            }
            assert_eq!((small.omitted(), small.weight()), (17, 9), "{size}");
            assert!(small.text().starts_with("abcde\n… 17 bytes left out …\nwxyz"), "{size}: {}", small.text());
            assert_eq!((large.text().as_bytes(), large.omitted()), (&*all, 0), "{size}");
        }
        let mut none = GatheredOutput::new(0, Budget::new(100, 0).share());
        none.push(b"abc");
        assert_eq!((none.weight(), none.omitted()), (0, 3));
    }

    #[test]
    fn many_share_their_memory_and_keep_the_beginning_and_the_newest_end() {
        let budget = Budget::new(30, 4);
        let mut all: Vec<GatheredOutput> = (0..10).map(|_| GatheredOutput::new(20, budget.share())).collect();
        for letter in "abcdefghijklmnopqrstuvwxyz".chars() {
            all.iter_mut().for_each(|one| one.push(letter.to_string().as_bytes()));
            assert!(all.iter().map(GatheredOutput::weight).sum::<usize>() <= 30 + 10 * 4);
        }
        for one in &all {
            assert_eq!(one.omitted() + u64::try_from(one.weight()).unwrap(), 26);
            assert!(one.text().starts_with("abc"), "{}", one.text());
        }
        drop(all);
        assert_eq!(budget.share().room(), 34);
    }
}
