//! Looks for a text in output that comes in pieces, and returns the line that has it.
//!
//! Invariant: the memory is bounded, however long a line becomes.

use crate::core::entry::Stream;
use crate::limits;

/// A text that somebody waits for.
#[derive(Debug)]
pub struct TextSearch {
    text: Vec<u8>,
    /// The end of what each stream has written, from the beginning of its last line.
    ends: [Vec<u8>; Stream::ALL.len()],
    /// The chunk that was looked at last.
    pub seen: u64,
}

impl TextSearch {
    /// A search for a text that is not empty.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.as_bytes().to_vec(), ends: Default::default(), seen: 0 }
    }

    /// Looks at the next output. Returns the line in which the text was found, up to where it was written.
    pub fn look(&mut self, stream: Stream, bytes: &[u8]) -> Option<String> {
        let end = &mut self.ends[stream as usize];
        end.extend_from_slice(bytes);
        if let Some(at) = memchr::memmem::find(end, &self.text) {
            let line = memchr::memrchr(b'\n', &end[..at]).map_or(0, |at| at + 1);
            let until = memchr::memchr(b'\n', &end[at + self.text.len()..]);
            let until = until.map_or(end.len(), |length| at + self.text.len() + length);
            let found = String::from_utf8_lossy(&end[line..until]);
            return Some(found.chars().take(limits::PROMPT_BYTES).collect());
        }
        let overlap = end.len().saturating_sub(self.text.len() - 1);
        let line = memchr::memrchr(b'\n', end).map_or(0, |at| at + 1);
        let from = line.min(overlap).max(overlap.saturating_sub(limits::PROMPT_BYTES));
        end.drain(..from);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_pieces_and_its_line_is_told() {
        let output = b"starting\nlistening on 3000 now\nmore\n";
        for size in 1..output.len() {
            let mut search = TextSearch::new("on 3000");
            let found = output.chunks(size).find_map(|piece| search.look(Stream::Out, piece));
            assert!(found.as_deref().is_some_and(|line| line.starts_with("listening on 3000")), "{size}: {found:?}");
        }
        let mut search = TextSearch::new("one\ntwo");
        assert_eq!(search.look(Stream::Out, b"one\n"), None);
        assert_eq!(search.look(Stream::Err, b"two"), None, "another stream");
        assert_eq!(search.look(Stream::Out, b"two!"), Some("one\ntwo!".to_owned()));
        let mut search = TextSearch::new("end");
        (0..10_000).for_each(|_| assert_eq!(search.look(Stream::Tty, &[b'x'; 100]), None));
        assert!(search.ends[0].len() <= limits::PROMPT_BYTES + 3);
        assert_eq!(search.look(Stream::Tty, b"end").map(|line| line.len()), Some(limits::PROMPT_BYTES));
    }
}
