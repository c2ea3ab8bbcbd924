//! A text that was taken out of another one, with the place of each of its bytes there.

use std::ops::Range;

/// A text with the place of each of its bytes in the whole.
#[derive(Debug, Default)]
pub(super) struct Letters {
    pub(super) bytes: Vec<u8>,
    pub(super) places: Vec<usize>,
}

impl Letters {
    pub(super) fn of(text: &[u8], start: usize) -> Self {
        Self { bytes: text.to_vec(), places: (start..start + text.len()).collect() }
    }

    pub(super) fn get(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    pub(super) fn push(&mut self, from: &Self, range: Range<usize>) {
        let range = range.start.min(from.bytes.len())..range.end.min(from.bytes.len());
        self.bytes.extend_from_slice(&from.bytes[range.clone()]);
        self.places.extend_from_slice(&from.places[range]);
    }

    /// From the first of these bytes to the last, in the whole.
    pub(super) fn span(&self, range: Range<usize>) -> Range<usize> {
        match self.places.get(range).unwrap_or_default() {
            [first, .., last] => *first..last + 1,
            [only] => *only..only + 1,
            [] => 0..0,
        }
    }

    pub(super) fn part(&self, range: Range<usize>) -> Self {
        let mut part = Self::default();
        part.push(self, range);
        part
    }
}
