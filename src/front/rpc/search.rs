//! Searches output that comes in pieces for texts, and returns the lines that contain them.
//!
//! All waits for a text in the same output share one search, so each byte is examined once, however many texts there
//! are and however nearly the output matches them (Aho and Corasick, 1975).
//!
//! Invariants: a text has at most [`limits::RPC_TEXT_BYTES`]; the memory is bounded, however long a line becomes; each
//! text is found at the end of its first occurrence.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ring::OutputRing;
use crate::core::entry::Stream;
use crate::limits;

/// The awaited texts in the output of one run.
#[derive(Debug, Default)]
pub struct TextSearch {
    /// In order.
    texts: Vec<Box<[u8]>>,
    /// Made from the texts when needed.
    automaton: Option<TextAutomaton>,
    streams: [SearchedStream; Stream::ALL.len()],
    /// The last searched chunk.
    seen: u64,
    /// The lines that contain texts, until they are taken.
    found: BTreeMap<Box<[u8]>, String>,
}

/// The state of one stream.
#[derive(Debug, Default)]
struct SearchedStream {
    /// The end of the output: from the beginning of its last line, up to the length of a text.
    end: Vec<u8>,
    /// The state of the automaton.
    state: u16,
}

impl TextSearch {
    /// Adds a text, and searches the kept output for it. Returns the line if that contains it already; otherwise the
    /// text is awaited.
    pub fn add(&mut self, text: &[u8], ring: &OutputRing) -> Option<String> {
        let mut alone = Self { texts: vec![text.into()], ..Self::default() };
        alone.follow(ring);
        if let Some(line) = alone.found.remove(text) {
            return Some(line);
        }
        if self.texts.is_empty() {
            *self = Self { found: std::mem::take(&mut self.found), ..alone };
            return None;
        }
        self.follow(ring);
        if let Err(place) = self.texts.binary_search_by(|known| (**known).cmp(text)) {
            self.texts.insert(place, text.into());
            self.automaton = None;
        }
        None
    }

    /// Searches the new chunks.
    pub fn follow(&mut self, ring: &OutputRing) {
        for chunk in ring.after(self.seen) {
            if self.texts.is_empty() {
                return;
            }
            self.seen = chunk.seq;
            self.look(chunk.stream, &chunk.bytes);
        }
    }

    /// The found texts, each with its line. They are no longer awaited.
    pub fn take_found(&mut self) -> BTreeMap<Box<[u8]>, String> {
        std::mem::take(&mut self.found)
    }

    /// Searches for these texts only.
    pub fn keep(&mut self, wanted: &BTreeSet<&[u8]>) {
        self.forget(|text| !wanted.contains(text));
    }

    fn forget(&mut self, is_over: impl Fn(&[u8]) -> bool) {
        let before = self.texts.len();
        self.texts.retain(|text| !is_over(text));
        if self.texts.len() < before {
            self.automaton = None;
        }
    }

    fn look(&mut self, stream: Stream, bytes: &[u8]) {
        let searched = &mut self.streams[stream as usize];
        let old = searched.end.len();
        searched.end.extend_from_slice(bytes);
        let mut hits: Vec<(usize, usize)> = Vec::new();
        if let [text] = &self.texts[..] {
            // Nothing is faster for a single one, and the already searched part is shorter than a text.
            let from = old.saturating_sub(text.len() - 1);
            hits.extend(memchr::memmem::find(&searched.end[from..], text).map(|at| (0, from + at + text.len())));
        } else {
            let automaton = match &mut self.automaton {
                Some(known) => known,
                none => {
                    self.streams.iter_mut().for_each(|stream| stream.state = TextAutomaton::START);
                    none.insert(TextAutomaton::new(&self.texts))
                }
            };
            let searched = &mut self.streams[stream as usize];
            if searched.state == TextAutomaton::START {
                let context = &searched.end[old.saturating_sub(limits::RPC_TEXT_BYTES - 1)..old];
                searched.state = context.iter().fold(TextAutomaton::START, |state, &byte| automaton.step(state, byte));
            }
            for (at, &byte) in bytes.iter().enumerate() {
                searched.state = automaton.step(searched.state, byte);
                automaton.take_ends(searched.state, |text| hits.push((text, old + at + 1)));
            }
        }
        let searched = &mut self.streams[stream as usize];
        for (text, until) in hits {
            let text = &self.texts[text];
            self.found.entry(text.clone()).or_insert_with(|| line_at(&searched.end, until - text.len(), until));
        }
        let overlap = searched.end.len().saturating_sub(limits::RPC_TEXT_BYTES - 1);
        let line = memchr::memrchr(b'\n', &searched.end).map_or(0, |at| at + 1);
        let from = line.min(overlap).max(overlap.saturating_sub(limits::PROMPT_BYTES));
        searched.end.drain(..from);
        let found = std::mem::take(&mut self.found);
        if !found.is_empty() {
            self.forget(|text| found.contains_key(text));
        }
        self.found = found;
    }
}

/// The line that contains a text, up to the end of the output.
fn line_at(output: &[u8], from: usize, until: usize) -> String {
    let line = memchr::memrchr(b'\n', &output[..from]).map_or(0, |at| at + 1);
    let end = memchr::memchr(b'\n', &output[until..]).map_or(output.len(), |length| until + length);
    String::from_utf8_lossy(&output[line..end]).chars().take(limits::PROMPT_BYTES).collect()
}

/// A trie of texts with a link from each node to its longest suffix that is a node, too.
#[derive(Debug)]
struct TextAutomaton {
    nodes: Vec<TextNode>,
    /// The children of each node, in order.
    children: Vec<(u8, u16)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct TextNode {
    /// The place of its first child, and the number of them.
    first: u16,
    count: u16,
    /// The node for the search if no child fits.
    fallback: u16,
    /// The text that ends here.
    text: Option<u8>,
    /// The next node on the way of fallbacks at which a text ends.
    next_end: u16,
}

impl TextAutomaton {
    const START: u16 = 0;

    /// The automaton for texts in order, at most [`limits::RPC_TEXT_WAITS_MAX`].
    fn new(texts: &[Box<[u8]>]) -> Self {
        let mut made = Self { nodes: vec![TextNode::default()], children: Vec::new() };
        // Nodes level by level, each with its depth and the texts that begin with it.
        let mut open = VecDeque::from([(Self::START, 0, 0..texts.len())]);
        while let Some((node, depth, mut range)) = open.pop_front() {
            if made.nodes[usize::from(node)].text.is_some() {
                range.start += 1;
            }
            made.nodes[usize::from(node)].first = index(made.children.len());
            while let Some(&byte) = texts[range.clone()].first().and_then(|text| text.get(depth)) {
                let same = texts[range.clone()].partition_point(|text| text[depth] == byte);
                let child = index(made.nodes.len());
                let fallback =
                    if depth == 0 { Self::START } else { made.step(made.nodes[usize::from(node)].fallback, byte) };
                let behind = made.nodes[usize::from(fallback)];
                let next_end = if behind.text.is_some() { fallback } else { behind.next_end };
                // Known now, because another node of this level may fall back to the child before its own turn.
                let text = u8::try_from(range.start).ok().filter(|_| texts[range.start].len() == depth + 1);
                made.nodes.push(TextNode { fallback, next_end, text, ..TextNode::default() });
                made.children.push((byte, child));
                made.nodes[usize::from(node)].count += 1;
                open.push_back((child, depth + 1, range.start..range.start + same));
                range.start += same;
            }
        }
        made
    }

    fn child(&self, node: u16, byte: u8) -> Option<u16> {
        let node = self.nodes[usize::from(node)];
        let children = &self.children[usize::from(node.first)..][..usize::from(node.count)];
        children.binary_search_by_key(&byte, |&(key, _)| key).ok().map(|at| children[at].1)
    }

    /// The node after one more byte.
    fn step(&self, mut node: u16, byte: u8) -> u16 {
        loop {
            match self.child(node, byte) {
                Some(child) => return child,
                None if node == Self::START => return node,
                None => node = self.nodes[usize::from(node)].fallback,
            }
        }
    }

    /// Reports the texts that end at a node, once: nobody waits for the second occurrence.
    fn take_ends(&mut self, mut node: u16, mut tell: impl FnMut(usize)) {
        while node != Self::START {
            let at = &mut self.nodes[usize::from(node)];
            at.text.take().into_iter().for_each(|text| tell(usize::from(text)));
            node = std::mem::take(&mut at.next_end);
        }
    }
}

/// The number of a node or a child: texts have 64 × 256 bytes at most.
fn index(number: usize) -> u16 {
    u16::try_from(number).expect("texts and their lengths are bounded")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines in which texts are found when the output comes in pieces of this size.
    fn found(texts: &[&str], output: &[u8], size: usize) -> BTreeMap<Box<[u8]>, String> {
        let (mut search, mut ring) = (TextSearch::default(), OutputRing::default());
        texts.iter().for_each(|text| assert_eq!(search.add(text.as_bytes(), &ring), None));
        for piece in output.chunks(size) {
            ring.push(Stream::Out, piece.into(), 0);
            search.follow(&ring);
        }
        search.take_found()
    }

    #[test]
    fn texts_are_found_across_pieces_and_their_lines_are_told() {
        let output = b"starting\nlistening on 3000 now\nmore ushers\n";
        let texts = ["on 3000", "usher", "he", "hers", "she", "g\nlis", "never", "nowhere", "o", "more u", "ore"];
        for size in 1..=output.len() {
            let one = found(&texts[..1], output, size);
            assert!(one[&b"on 3000"[..]].starts_with("listening on 3000"), "{size}: {one:?}");
            let all = found(&texts, output, size);
            for text in texts {
                let is_there = memchr::memmem::find(output, text.as_bytes()).is_some();
                assert_eq!(all.contains_key(text.as_bytes()), is_there, "{text:?} in pieces of {size}");
            }
            assert!(all[&b"hers"[..]].starts_with("more ushers"), "{size}: {all:?}");
            assert!(all[&b"g\nlis"[..]].starts_with("starting\nlis"), "{size}: {all:?}");
        }
    }

    #[test]
    fn texts_come_and_go_while_the_output_goes_on() {
        let (mut search, mut ring) = (TextSearch::default(), OutputRing::default());
        ring.push(Stream::Out, b"one\ntw".as_slice().into(), 0);
        assert_eq!(search.add(b"one", &ring).as_deref(), Some("one"));
        assert_eq!([search.add(b"two", &ring), search.add(b"wo!", &ring), search.add(b"x", &ring)], [None, None, None]);
        ring.push(Stream::Err, b"o!".as_slice().into(), 0);
        search.follow(&ring);
        assert_eq!(search.take_found().len(), 0, "another stream");
        ring.push(Stream::Out, b"o".as_slice().into(), 0);
        assert_eq!(search.add(b"w", &ring).as_deref(), Some("tw"), "as far as that chunk went");
        search.follow(&ring);
        assert_eq!(search.take_found().into_values().collect::<Vec<_>>(), ["two"]);
        search.keep(&BTreeSet::from([&b"wo!"[..]]));
        ring.push(Stream::Out, b"!x".as_slice().into(), 0);
        search.follow(&ring);
        assert_eq!(search.take_found().into_iter().collect::<Vec<_>>(), [(b"wo!"[..].into(), "two!x".to_owned())]);
        assert!(search.texts.is_empty());
    }

    #[test]
    fn the_memory_is_bounded_however_long_a_line_becomes() {
        let (mut search, mut ring) = (TextSearch::default(), OutputRing::default());
        let near: Vec<String> = (0..64).map(|n| format!("{}{}", "x".repeat(255), char::from(b'!' + n))).collect();
        near.iter().for_each(|text| assert_eq!(search.add(text.as_bytes(), &ring), None));
        for _ in 0..1_000 {
            ring.push(Stream::Tty, [b'x'; 100].into(), 0);
            search.follow(&ring);
            ring.shed(0);
        }
        assert!(search.streams[Stream::Tty as usize].end.len() <= limits::PROMPT_BYTES + limits::RPC_TEXT_BYTES);
        assert_eq!(search.automaton.as_ref().map(|made| made.nodes.len()), Some(1 + 255 + 64));
        ring.push(Stream::Tty, b"B".as_slice().into(), 0);
        search.follow(&ring);
        let found = search.take_found();
        assert_eq!(found.len(), 1);
        assert_eq!(found.values().next().map(String::len), Some(limits::PROMPT_BYTES));
    }
}
