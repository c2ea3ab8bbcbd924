//! A file that grows, line by line.

use std::fs::File;
use std::io::{self, BufRead, Read};

use crate::journal::record::LINE_BYTES_MAX;

/// The bytes per read.
const PIECE_BYTES: usize = 64 << 10;

/// Reads a file that another process appends to. It ends where no whole line is left, and continues when there is one.
#[derive(Debug)]
pub(super) struct WholeLines {
    file: File,
    buffer: Vec<u8>,
    /// The returned part of the buffer.
    taken: usize,
    /// The end of the last whole line in the buffer.
    whole: usize,
    /// The file is complete, so the rest counts as a line.
    is_final: bool,
}

impl WholeLines {
    pub(super) fn new(file: File) -> Self {
        Self { file, buffer: Vec::new(), taken: 0, whole: 0, is_final: false }
    }

    /// Marks the file as complete.
    pub(super) fn end(&mut self) {
        self.is_final = true;
    }
}

impl Read for WholeLines {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(bytes)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for WholeLines {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.taken == self.whole {
            self.buffer.drain(..self.taken);
            (self.taken, self.whole) = (0, 0);
            let before = self.buffer.len();
            let read = (&mut self.file).take(PIECE_BYTES as u64).read_to_end(&mut self.buffer)?;
            let newline = memchr::memrchr(b'\n', &self.buffer[before..]);
            self.whole = newline.map_or(0, |at| before + at + 1);
            // A line longer than any record is passed on in pieces.
            if self.whole == 0 && (self.is_final || self.buffer.len() > LINE_BYTES_MAX) {
                self.whole = self.buffer.len();
            }
            if read == 0 {
                break;
            }
        }
        Ok(&self.buffer[self.taken..self.whole])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.whole);
    }
}
