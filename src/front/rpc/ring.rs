//! The output of one run as numbered chunks, of which the newest are kept.
//!
//! Invariants: numbers begin at 1 and have no gaps; every chunk knows the number of bytes before it, so the dropped
//! output is known to the byte.

use std::collections::VecDeque;

use crate::core::entry::Stream;
use crate::limits;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    pub seq: u64,
    pub stream: Stream,
    pub bytes: Box<[u8]>,
    /// The time since the run's start, milliseconds.
    pub at_ms: u64,
    /// Bytes of the run's output before it.
    pub before: u64,
}

/// The output that a reader missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Gone {
    pub chunks: u64,
    pub bytes: u64,
}

/// The newest chunks of one run.
#[derive(Debug, Default)]
pub struct OutputRing {
    chunks: VecDeque<OutputChunk>,
    /// For the last dropped chunks, the number of bytes before each.
    went: VecDeque<u64>,
    count: u64,
    bytes: u64,
    weight: usize,
}

fn weight(chunk: &OutputChunk) -> usize {
    chunk.bytes.len() + limits::ENTRY_OVERHEAD_BYTES
}

impl OutputRing {
    pub fn push(&mut self, stream: Stream, bytes: Box<[u8]>, at_ms: u64) {
        self.count += 1;
        let chunk = OutputChunk { seq: self.count, stream, bytes, at_ms, before: self.bytes };
        self.bytes += u64::try_from(chunk.bytes.len()).expect("a length fits 64 bits");
        self.weight += weight(&chunk);
        self.chunks.push_back(chunk);
    }

    /// The number of the newest chunk; 0 if there was none.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.count
    }

    /// The bytes of all chunks, kept or gone.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory that the kept chunks take, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// The kept chunks with higher numbers.
    pub fn after(&self, seq: u64) -> impl Iterator<Item = &OutputChunk> {
        let start = self.chunks.partition_point(|chunk| chunk.seq <= seq);
        self.chunks.range(start..)
    }

    /// The bytes before the chunk that follows this number.
    fn bytes_until(&self, seq: u64) -> u64 {
        if let Some(next) = self.after(seq).next().filter(|next| next.seq - seq == 1) {
            return next.before;
        }
        if seq >= self.count {
            return self.bytes;
        }
        // It is gone: `went` ends with the last dropped chunk.
        let first_kept = self.count + 1 - u64::try_from(self.chunks.len()).expect("a length fits 64 bits");
        let back = usize::try_from(first_kept - seq - 1).unwrap_or(usize::MAX);
        self.went.len().checked_sub(back).and_then(|at| self.went.get(at)).copied().unwrap_or(0)
    }

    /// The dropped output after this number; `None` if nothing is dropped. For a number of more than
    /// [`limits::RPC_GONE_KNOWN`] chunks ago, the bytes are those of all dropped chunks.
    #[must_use]
    pub fn gone_after(&self, seq: u64) -> Option<Gone> {
        let first = self.chunks.front().map_or(self.count + 1, |chunk| chunk.seq);
        let chunks = first.saturating_sub(seq.saturating_add(1));
        let until = self.chunks.front().map_or(self.bytes, |chunk| chunk.before);
        (chunks > 0).then(|| Gone { chunks, bytes: until - self.bytes_until(seq).min(until) })
    }

    /// Drops the oldest chunks until the rest weighs `most` bytes or less.
    pub fn shed(&mut self, most: usize) {
        while self.weight > most
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.weight -= weight(&chunk);
            if self.went.len() >= limits::RPC_GONE_KNOWN {
                self.went.pop_front();
            }
            self.went.push_back(chunk.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_known_to_the_byte() {
        let mut ring = OutputRing::default();
        for length in 1..=10_usize {
            ring.push(Stream::Out, vec![b'x'; length].into(), 0);
        }
        assert_eq!(ring.gone_after(0), None);
        let three = 3 * limits::ENTRY_OVERHEAD_BYTES + 8 + 9 + 10;
        ring.shed(three);
        assert_eq!(ring.after(0).map(|chunk| chunk.seq).collect::<Vec<_>>(), [8, 9, 10]);
        for after in 0..=7_u64 {
            let gone = (after < 7).then(|| Gone { chunks: 7 - after, bytes: (after + 1..=7).sum() });
            assert_eq!(ring.gone_after(after), gone, "after {after}");
        }
        assert_eq!((ring.gone_after(9), ring.after(9).count(), ring.bytes(), ring.last_seq()), (None, 1, 55, 10));
        assert_eq!((ring.gone_after(u64::MAX), ring.after(u64::MAX).count()), (None, 0), "beyond the end");
        ring.shed(0);
        assert_eq!((ring.weight(), ring.gone_after(0)), (0, Some(Gone { chunks: 10, bytes: 55 })));
        assert_eq!((ring.gone_after(9), ring.gone_after(10)), (Some(Gone { chunks: 1, bytes: 10 }), None));
        ring.push(Stream::Err, b"new".as_slice().into(), 0);
        assert_eq!(ring.after(0).next().map(|chunk| (chunk.seq, chunk.before)), Some((11, 55)));
    }
}
