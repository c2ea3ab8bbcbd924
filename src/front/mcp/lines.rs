//! Bytes that arrive, cut into lines of bounded length.

use memchr::memchr;

/// What came before a newline.
#[derive(Debug, PartialEq, Eq)]
pub enum ArrivedLine {
    /// A line, without its newline.
    Whole(Vec<u8>),
    /// A line that is longer than it may be. It was not kept.
    TooLong,
}

/// Lines that arrive in pieces.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// How many of the bytes are known to have no newline.
    searched: usize,
    most: usize,
    /// The rest of a line that is too long comes.
    is_skipping: bool,
}

impl Lines {
    /// Lines of up to `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), searched: 0, most, is_skipping: false }
    }

    /// Bytes have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next line.
    pub fn take(&mut self) -> Option<ArrivedLine> {
        loop {
            let Some(end) = memchr(b'\n', &self.bytes[self.searched..]) else {
                self.searched = self.bytes.len();
                if self.is_skipping || self.bytes.len() > self.most {
                    self.is_skipping = true;
                    (self.bytes, self.searched) = (Vec::new(), 0);
                }
                return None;
            };
            let mut line: Vec<u8> = self.bytes.drain(..=self.searched + end).collect();
            self.searched = 0;
            if self.bytes.is_empty() {
                // A long line's memory is not kept for short ones.
                self.bytes = Vec::new();
            }
            line.pop();
            if std::mem::take(&mut self.is_skipping) || line.len() > self.most {
                return Some(ArrivedLine::TooLong);
            }
            if !line.is_empty() {
                return Some(ArrivedLine::Whole(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_bounded_and_skipped() {
        for piece in [1, 2, 3, 100] {
            let mut lines = Lines::new(4);
            let mut found = Vec::new();
            for piece in b"ab\n\nabcd\nabcde\nabcdefghijkl\nx\ny".chunks(piece) {
                lines.push(piece);
                found.extend(std::iter::from_fn(|| lines.take()));
                assert!(lines.bytes.len() <= 5, "{}", lines.bytes.len());
            }
            let whole = |text: &str| ArrivedLine::Whole(text.into());
            assert_eq!(
                found,
                [whole("ab"), whole("abcd"), ArrivedLine::TooLong, ArrivedLine::TooLong, whole("x")],
                "{piece}"
            );
        }
    }
}
