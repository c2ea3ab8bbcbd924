//! Finds many values in text at once: an Aho-Corasick automaton, and a quick look that skips text without any.
//!
//! The quick look reads a word of four bytes at every fourth place: wherever a value stands, one of these words begins
//! within its first four bytes. Where all values are long enough, every eighth place will do. Its cost, and that of the
//! automaton's steps, does not depend on how many values there are.
//!
//! Source: Aho and Corasick, Efficient string matching: an aid to bibliographic search, CACM 18 (6), 1975.

use std::collections::VecDeque;

/// The shortest value, in bytes, that the quick look can find.
pub(super) const PATTERN_BYTES_MIN: usize = 8;
const GRAM: usize = 4;
const BLOCK: usize = 64;
/// The distance in bytes between the words that the quick look reads.
const STRIDE: usize = 4;
/// The distance if each value is long enough to contain one of these words.
const LONG_STRIDE: usize = 8;
const TABLE_BITS: u32 = 16;
/// Of the table that the quick look reads first, which stays in the processor's cache.
const FIRST_TABLE_BITS: u32 = 14;
pub(super) const ROOT: u32 = 0;

/// The automaton of a set of values.
#[derive(Debug)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    /// The byte that leads to each node. The children of a node are consecutive and sorted.
    bytes: Vec<u8>,
    /// One bit for each hash of a word of four bytes near a value's start.
    grams: Box<[u64; 1 << (TABLE_BITS - 6)]>,
    /// The same with a byte, 0 or 1, for each shorter hash: one read tells that there is none in most blocks.
    blocks: Box<[u8; 1 << FIRST_TABLE_BITS]>,
    /// The root's children by byte.
    first: Box<[u32; 256]>,
    /// Whether the quick look takes the longer stride.
    is_long: bool,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    children: u32,
    child_count: u16,
    /// The node of the longest proper suffix of this node's text that is a prefix of a value.
    fail: u32,
    /// The length of its text.
    depth: u32,
    /// 1 more than the index of the longest value that its text ends with, or 0.
    value: u32,
}

impl Automaton {
    /// The automaton of these values, which are sorted, distinct, and of at least [`PATTERN_BYTES_MIN`] bytes.
    pub(super) fn new(values: &[&[u8]]) -> Self {
        let root = Node { children: 0, child_count: 0, fail: ROOT, depth: 0, value: 0 };
        let mut automaton = Self {
            nodes: vec![root],
            bytes: vec![0],
            grams: Box::new([0; 1 << (TABLE_BITS - 6)]),
            blocks: Box::new([0; 1 << FIRST_TABLE_BITS]),
            first: Box::new([0; 256]),
            is_long: values.iter().all(|value| value.len() >= LONG_STRIDE + GRAM - 1),
        };
        let stride = if automaton.is_long { LONG_STRIDE } else { STRIDE };
        for value in values {
            for offset in 0..stride {
                let (word, bit) = place(&value[offset..]);
                automaton.grams[word] |= bit;
                automaton.blocks[first_place(&value[offset..])] = 1;
            }
        }
        // By depth, so that the nodes that `fail` links lead to are finished first.
        let mut queue = VecDeque::from([(ROOT, 0, values.len())]);
        while let Some((node, from, to)) = queue.pop_front() {
            automaton.expand(node, &values[from..to], from, &mut queue);
        }
        automaton
    }

    /// Adds the children of a node whose text is a prefix of all these values.
    fn expand(&mut self, at: u32, values: &[&[u8]], from: usize, queue: &mut VecDeque<(u32, usize, usize)>) {
        let depth = self.nodes[at as usize].depth as usize;
        // A value that equals the prefix is sorted first.
        let mut start = usize::from(values.first().is_some_and(|value| value.len() == depth));
        self.nodes[at as usize].children = number(self.nodes.len());
        while let Some(value) = values.get(start) {
            let byte = value[depth];
            let len = values[start..].partition_point(|other| other[depth] == byte);
            let fail = if at == ROOT { ROOT } else { self.step(self.nodes[at as usize].fail, byte) };
            let is_whole = value.len() == depth + 1;
            let value = if is_whole { number(from + start + 1) } else { self.nodes[fail as usize].value };
            let child = number(self.nodes.len());
            self.nodes.push(Node { children: 0, child_count: 0, fail, depth: number(depth + 1), value });
            self.bytes.push(byte);
            queue.push_back((child, from + start, from + start + len));
            start += len;
            self.nodes[at as usize].child_count += 1;
            if at == ROOT {
                self.first[usize::from(byte)] = child;
            }
        }
    }

    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        if node == ROOT {
            return Some(self.first[usize::from(byte)]).filter(|&child| child != ROOT);
        }
        let Node { children, child_count, .. } = self.nodes[node as usize];
        let bytes = &self.bytes[children as usize..][..usize::from(child_count)];
        bytes.binary_search(&byte).ok().map(|at| children + number(at))
    }

    /// The node after one more byte.
    pub(super) fn step(&self, mut node: u32, byte: u8) -> u32 {
        loop {
            match self.child(node, byte) {
                Some(child) => return child,
                None if node == ROOT => return ROOT,
                None => node = self.nodes[node as usize].fail,
            }
        }
    }

    /// How many of the last bytes are a prefix of a value.
    pub(super) fn depth(&self, node: u32) -> usize {
        self.nodes[node as usize].depth as usize
    }

    /// The index of the longest value that ends here.
    pub(super) fn value(&self, node: u32) -> Option<usize> {
        (self.nodes[node as usize].value as usize).checked_sub(1)
    }

    /// A place before which no value begins, not even one that the text cuts off.
    pub(super) fn skip(&self, text: &[u8]) -> usize {
        if self.is_long { self.skip_by::<LONG_STRIDE>(text) } else { self.skip_by::<STRIDE>(text) }
    }

    fn skip_by<const STRIDE: usize>(&self, text: &[u8]) -> usize {
        let is_near = |word: &[u8; STRIDE]| {
            let (at, bit) = place(word);
            self.grams[at] & bit
        };
        // One branch for a block of words.
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        let block = blocks.iter().position(|block| {
            block.as_chunks::<STRIDE>().0.iter().fold(0, |hit, word| hit | self.blocks[first_place(word)]) != 0
                && block.as_chunks().0.iter().fold(0, |hit, word| hit | is_near(word)) != 0
        });
        let start = block.unwrap_or(blocks.len()) * BLOCK;
        let rest = if block.is_some() { &text[start..] } else { rest };
        let hit = rest.as_chunks().0.iter().position(|word| is_near(word) != 0).map(|hit| start + hit * STRIDE);
        // A value with this word begins less than a stride before it; one whose word the end cuts off begins less than two
        // strides before the end.
        match hit {
            Some(hit) => hit.saturating_sub(STRIDE - 1),
            None => {
                let end = text.len().saturating_sub(2 * STRIDE - 2);
                (end..text.len()).find(|&at| self.first[usize::from(text[at])] != ROOT).unwrap_or(text.len())
            }
        }
    }
}

/// The word and the bit of the first four bytes in `grams`.
#[inline]
fn place(bytes: &[u8]) -> (usize, u64) {
    let hash = hash(bytes) >> (32 - TABLE_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// The place of the first four bytes in `blocks`.
#[inline]
fn first_place(bytes: &[u8]) -> usize {
    (hash(bytes) >> (32 - FIRST_TABLE_BITS)) as usize
}

#[inline]
fn hash(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("a word has four bytes")).wrapping_mul(0x9E37_79B1)
}

fn number(length: usize) -> u32 {
    u32::try_from(length).expect("values are bounded far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_value_is_seen_and_no_start_is_skipped() {
        let short =
            [&b"abababab"[..], b"babababa", b"ababababcd", b"xyzxyzxyz", b"zxyzxyzx", b"12345678", b"123456789"];
        let long = [&b"abababababab"[..], b"babababababa", b"xyzxyzxyzxy", b"12345678901", b"123456789012"];
        let text = b"--ababababcd..xyzxyzxyzxyz 123456789abababababababa 12345678901 12345678901234 babababababa xyzxy";
        for mut values in [short.to_vec(), long.to_vec()] {
            values.sort_unstable();
            check(&values, text);
            assert_eq!(Automaton::new(&values).skip(b"nothing of this is known, is it\n"), 32);
        }
    }

    fn check(values: &[&[u8]], text: &[u8]) {
        let automaton = Automaton::new(values);
        let mut node = ROOT;
        for end in 1..=text.len() {
            node = automaton.step(node, text[end - 1]);
            let longest = values.iter().filter(|value| text[..end].ends_with(value)).max_by_key(|value| value.len());
            assert_eq!(automaton.value(node).map(|at| values[at]), longest.copied(), "at {end}");
            let depth =
                (0..=end).rev().find(|&len| values.iter().any(|value| value.starts_with(&text[end - len..end])));
            assert_eq!(Some(automaton.depth(node)), depth.map(|len| len.min(end)), "at {end}");
        }
        for start in 0..text.len() {
            for end in start..=text.len() {
                let text = &text[start..end];
                let first = (0..text.len()).find(|&at| {
                    values.iter().any(|value| value.starts_with(&text[at..]) || text[at..].starts_with(value))
                });
                assert!(automaton.skip(text) <= first.unwrap_or(text.len()), "{start}..{end}");
            }
        }
    }
}
