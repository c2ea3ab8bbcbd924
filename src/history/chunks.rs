//! A file's lines, chunk by chunk, from its end to its beginning.
//!
//! Invariants: every chunk but the file's first begins behind a newline, and no line is in two chunks, unless it is longer
//! than the longest record; the first chunks are short, because what is looked for is most often near the end.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use serde::de::DeserializeOwned;

use crate::journal::record::LINE_BYTES_MAX;

/// The first chunk, bytes. Each is twice as long as the one behind it …
const FIRST_BYTES: usize = 128 << 10;
/// … up to this, which has room for the longest line.
const CHUNK_BYTES_MAX: usize = 4 * LINE_BYTES_MAX;

/// Reads a part of a file from its end.
#[derive(Debug)]
pub(super) struct Chunks<'f> {
    file: &'f File,
    range: Range<u64>,
    buffer: Vec<u8>,
    length: usize,
}

/// Whole lines that follow each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineChunk<'b> {
    /// The offset of the first line in the file.
    pub(super) at: u64,
    pub(super) bytes: &'b [u8],
}

impl<'f> Chunks<'f> {
    pub(super) fn of(file: &'f File) -> io::Result<Chunks<'f>> {
        Ok(Chunks::within(file, 0..file.metadata()?.len()))
    }

    /// Reads this part of the file, which begins with a line.
    pub(super) fn within(file: &'f File, range: Range<u64>) -> Chunks<'f> {
        Chunks { file, range, buffer: Vec::new(), length: FIRST_BYTES }
    }

    /// The lines before those that were read last. `None` at the beginning.
    pub(super) fn next(&mut self) -> io::Result<Option<LineChunk<'_>>> {
        loop {
            let Range { start, end } = self.range;
            let Ok(rest) = usize::try_from(end.saturating_sub(start)) else {
                return Err(io::ErrorKind::FileTooLarge.into());
            };
            if rest == 0 {
                return Ok(None);
            }
            let wanted = rest.min(self.length);
            let at = end - wanted as u64;
            self.buffer.resize(wanted, 0);
            if read_up_to(self.file, &mut self.buffer, at)? < wanted {
                // Another program has truncated it.
                self.range.end = end.min(self.file.metadata()?.len());
                if self.range.end == end {
                    return Ok(None);
                }
                continue;
            }
            let is_longest = self.length >= CHUNK_BYTES_MAX;
            self.length = (2 * self.length).min(CHUNK_BYTES_MAX);
            if at == start {
                self.range.end = start;
                return Ok(Some(LineChunk { at, bytes: &self.buffer }));
            }
            match memchr(b'\n', &self.buffer) {
                Some(newline) if newline + 1 < wanted => {
                    let skipped = newline + 1;
                    self.range.end = at + skipped as u64;
                    return Ok(Some(LineChunk { at: self.range.end, bytes: &self.buffer[skipped..] }));
                }
                // The end of a line that is longer than any record.
                _ if is_longest => self.range.end = at,
                _ => {}
            }
        }
    }
}

/// The last record of a file whose line has these bytes in it.
pub(super) fn record_with<T: DeserializeOwned>(file: &File, needle: &str) -> io::Result<Option<T>> {
    let finder = Finder::new(needle);
    let mut chunks = Chunks::of(file)?;
    while let Some(chunk) = chunks.next()? {
        let records = chunk.lines_with(&finder).filter_map(|(_, line)| serde_json::from_slice(line).ok());
        if let Some(record) = records.last() {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Fills the buffer from this offset, or up to the file's end. Returns how much it read.
pub(super) fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

impl<'b> LineChunk<'b> {
    /// Cuts off a last line that has no end.
    pub(super) fn whole_lines(self) -> Self {
        Self { bytes: &self.bytes[..memrchr(b'\n', self.bytes).map_or(0, |end| end + 1)], ..self }
    }

    /// Each line with its offset in the file, without its newline.
    pub(super) fn lines(self) -> impl Iterator<Item = (u64, &'b [u8])> {
        let mut rest = 0;
        std::iter::from_fn(move || {
            let from = rest;
            let line = self.bytes.get(from..).filter(|line| !line.is_empty())?;
            let length = memchr(b'\n', line).unwrap_or(line.len());
            rest = from + length + 1;
            Some((self.at + from as u64, &line[..length]))
        })
    }

    /// The lines that have these bytes in them, each with its offset in the file.
    pub(super) fn lines_with<'s>(self, finder: &'s Finder<'_>) -> impl Iterator<Item = (u64, &'b [u8])> + use<'b, 's> {
        let mut rest = 0;
        std::iter::from_fn(move || {
            let hit = rest + finder.find(self.bytes.get(rest..)?)?;
            let from = memrchr(b'\n', &self.bytes[..hit]).map_or(0, |newline| newline + 1);
            let line = &self.bytes[from..];
            let length = memchr(b'\n', &line[hit - from..]).map_or(line.len(), |newline| hit - from + newline);
            rest = from + length + 1;
            Some((self.at + from as u64, &line[..length]))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        // O_TMPFILE needs a directory on a disk that has it; a removed file works everywhere.
        let path = std::env::temp_dir().join(format!("rexec-chunks-{}-{:p}", std::process::id(), bytes));
        let mut file = options.read(true).write(true).create_new(true).mode(0o600).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn every_line_is_in_one_chunk() {
        let mut text = Vec::new();
        for number in 0..40_000 {
            text.extend_from_slice(format!("line {number} {}\n", "x".repeat(number % 90)).as_bytes());
        }
        text.extend_from_slice(&vec![b'y'; 900 << 10]);
        text.extend_from_slice(b"\nlast line without its newline");
        let file = file(&text);
        let mut chunks = Chunks::of(&file).unwrap();
        let mut lines = Vec::new();
        while let Some(chunk) = chunks.next().unwrap() {
            let mut those: Vec<(u64, Vec<u8>)> = chunk.lines().map(|(at, line)| (at, line.to_vec())).collect();
            for (at, line) in &those {
                let at = usize::try_from(*at).unwrap();
                assert_eq!(text[at..at + line.len()], line[..]);
            }
            let finder = Finder::new(b"line 3999");
            assert!(chunk.lines_with(&finder).all(|found| those.contains(&(found.0, found.1.to_vec()))));
            those.append(&mut lines);
            lines = those;
        }
        assert_eq!(lines.len(), 40_002);
        assert!(lines.is_sorted_by_key(|(at, _)| *at));
    }

    #[test]
    fn a_line_longer_than_any_record_costs_itself_only() {
        let mut text = b"first\n".to_vec();
        text.extend_from_slice(&vec![b'z'; 3 * CHUNK_BYTES_MAX]);
        text.extend_from_slice(b"\nlast\n");
        let file = file(&text);
        let mut chunks = Chunks::of(&file).unwrap();
        let mut short = Vec::new();
        while let Some(chunk) = chunks.next().unwrap() {
            short.extend(chunk.lines().map(|(_, line)| line.to_vec()).filter(|line| !line.starts_with(b"z")));
        }
        assert_eq!(short, [b"last".to_vec(), b"first".to_vec()]);
    }
}
