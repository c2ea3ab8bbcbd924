//! Cuts arriving bytes into lines of bounded length, without copying them.

use memchr::memchr;

/// The bytes before a newline.
#[derive(Debug, PartialEq, Eq)]
pub enum ArrivedLine<'a> {
    /// Without its newline.
    Whole(&'a [u8]),
    /// A line that is too long. It was not kept.
    TooLong,
}

/// The least room for new bytes.
const ROOM_BYTES: usize = 256 << 10;

/// Lines that arrive in pieces.
#[derive(Debug)]
pub struct Lines {
    /// The arrived bytes are between `start` and `end`. The rest is room.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// There is no newline between `start` and this place.
    searched: usize,
    most: usize,
    /// The rest of a line that is too long comes.
    is_skipping: bool,
}

impl Lines {
    /// Lines of up to `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0, searched: 0, most, is_skipping: false }
    }

    /// Room for the next bytes; report their number to [`Lines::arrived`].
    pub fn room(&mut self) -> &mut [u8] {
        let is_large = self.bytes.len() > 4 * ROOM_BYTES && self.end - self.start < ROOM_BYTES;
        if self.start > 0 && (is_large || self.bytes.len() - self.end < ROOM_BYTES) {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.end, self.searched, self.start) = (self.end - self.start, self.searched - self.start, 0);
        }
        if is_large {
            // The memory of a long line is not kept for short ones.
            self.bytes.truncate(self.end + ROOM_BYTES);
            self.bytes.shrink_to_fit();
        } else if self.bytes.is_empty() {
            self.bytes = vec![0; 2 * ROOM_BYTES];
        } else if self.bytes.len() - self.end < ROOM_BYTES {
            self.bytes.resize(self.end + self.end / 4 + ROOM_BYTES, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Marks this many bytes of the room as arrived.
    pub fn arrived(&mut self, length: usize) {
        self.end += length;
    }

    /// Takes the next line. Empty ones are skipped.
    pub fn take(&mut self) -> Option<ArrivedLine<'_>> {
        loop {
            let Some(found) = memchr(b'\n', &self.bytes[self.searched..self.end]) else {
                self.searched = self.end;
                if self.is_skipping || self.end - self.start > self.most {
                    (self.is_skipping, self.start) = (true, self.end);
                }
                return None;
            };
            let (start, end) = (self.start, self.searched + found);
            (self.start, self.searched) = (end + 1, end + 1);
            if std::mem::take(&mut self.is_skipping) || end - start > self.most {
                return Some(ArrivedLine::TooLong);
            }
            if end > start {
                return Some(ArrivedLine::Whole(&self.bytes[start..end]));
            }
        }
    }

    /// Takes this many bytes after a line; `None` until all of them have come.
    pub fn take_bytes(&mut self, length: usize) -> Option<&[u8]> {
        let (start, end) = (self.start, self.start.checked_add(length).filter(|&end| end <= self.end)?);
        (self.start, self.searched) = (end, end);
        Some(&self.bytes[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(lines: &mut Lines, bytes: &[u8]) {
        lines.room()[..bytes.len()].copy_from_slice(bytes);
        lines.arrived(bytes.len());
    }

    #[test]
    fn lines_are_cut_bounded_and_skipped() {
        for piece in [1, 2, 3, 100] {
            let (mut lines, mut found) = (Lines::new(4), Vec::new());
            for piece in b"ab\n\nabcd\nabcde\nabcdefghijkl\nx\ny".chunks(piece) {
                push(&mut lines, piece);
                while let Some(line) = lines.take() {
                    found.push(if let ArrivedLine::Whole(line) = line { line.to_vec() } else { b"TOO LONG".to_vec() });
                }
                assert!(lines.end - lines.start <= 4, "{}", lines.end - lines.start);
            }
            assert_eq!(found, [&b"ab"[..], b"abcd", b"TOO LONG", b"TOO LONG", b"x"], "{piece}");
        }
    }

    #[test]
    fn bytes_behind_a_line_are_taken_whole_whatever_they_are() {
        let mut lines = Lines::new(100);
        for (at, byte) in b"five\n\n\n12\nnext\n".iter().enumerate() {
            push(&mut lines, &[*byte]);
            match at {
                4 => assert_eq!(lines.take(), Some(ArrivedLine::Whole(b"five"))),
                5..=8 => assert_eq!(lines.take_bytes(5), None),
                9 => assert_eq!(lines.take_bytes(5), Some(&b"\n\n12\n"[..])),
                _ => {}
            }
        }
        assert_eq!(lines.take(), Some(ArrivedLine::Whole(b"next")));
        assert_eq!(lines.take(), None);
        assert_eq!(lines.take_bytes(usize::MAX), None);
    }

    #[test]
    fn the_memory_of_a_long_line_goes_and_a_line_that_is_too_long_takes_none() {
        let mut lines = Lines::new(8 << 20);
        let piece = [b'x'; ROOM_BYTES];
        (0..32).for_each(|_| push(&mut lines, &piece));
        push(&mut lines, b"\nshort");
        assert!(matches!(lines.take(), Some(ArrivedLine::Whole(line)) if line.len() == 8 << 20));
        push(&mut lines, b" line\n");
        assert_eq!((lines.bytes.len() < 4 * ROOM_BYTES, lines.take()), (true, Some(ArrivedLine::Whole(b"short line"))));
        for _ in 0..1_000 {
            push(&mut lines, &piece);
            assert_eq!(lines.take(), None);
            assert!(lines.bytes.len() < 16 << 20, "{}", lines.bytes.len());
        }
        push(&mut lines, b"\nnext\n");
        assert_eq!(lines.take(), Some(ArrivedLine::TooLong));
        assert_eq!(lines.take(), Some(ArrivedLine::Whole(b"next")));
    }
}
