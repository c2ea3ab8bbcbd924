//! Reads a journal, line by line: a torn line, garbage or a record of a later version costs that line and no more.
//!
//! Invariants: at most one line is in memory, and of a line longer than [`LINE_BYTES_MAX`] nothing; a last line without
//! its newline is read like any other, because a crash may have taken the newline only; a long argument that stands
//! earlier in the file is put back in its place, and stays cut where that text is missing.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use memchr::memchr;
use serde::Deserialize;

use super::record::{Close, Dropped, LINE_BYTES_MAX, Library, Lost, Open, Run, Start, VERSION};

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Open(Open),
    Start(Box<Start>),
    Run(Box<Run>),
    Lost(Box<Lost>),
    Dropped(Dropped),
    Close(Close),
}

/// What every record opens with, cheap to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Header {
    pub v: u32,
    #[serde(rename = "type")]
    pub kind: String,
    pub seq: u64,
}

/// An iterator over the records of a journal.
#[derive(Debug)]
pub struct Reader<R = BufReader<File>> {
    source: R,
    line: Vec<u8>,
    library: Library,
    unparsable: u64,
    unknown: u64,
}

impl Reader {
    /// Reads this file from wherever it stands.
    #[must_use]
    pub fn new(file: File) -> Reader {
        Reader::over(BufReader::with_capacity(64 << 10, file))
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads any source of lines.
    pub fn over(source: R) -> Reader<R> {
        Reader { source, line: Vec::new(), library: Library::default(), unparsable: 0, unknown: 0 }
    }

    /// Lines that are no record: torn, too long, or not ours.
    #[must_use]
    pub fn unparsable(&self) -> u64 {
        self.unparsable
    }

    /// Records of a type or a version this build does not know.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// The next record's header only, for those who count and do not look.
    pub fn next_header(&mut self) -> Option<io::Result<Header>> {
        loop {
            match self.read_line() {
                Ok(Line::End) => return None,
                Ok(Line::TooLong) => self.unparsable += 1,
                Ok(Line::Whole) if self.line.is_empty() => {}
                Ok(Line::Whole) => match serde_json::from_slice::<Header>(&self.line) {
                    Ok(header) if header.v == 0 || header.kind.is_empty() => self.unparsable += 1,
                    Ok(header) if header.v > VERSION => self.unknown += 1,
                    Ok(header) => return Some(Ok(header)),
                    Err(_) => self.unparsable += 1,
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn read_line(&mut self) -> io::Result<Line> {
        self.line.clear();
        let mut read = 0;
        loop {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr(b'\n', chunk);
            let text = &chunk[..end.unwrap_or(chunk.len())];
            read += text.len();
            if read < LINE_BYTES_MAX {
                self.line.extend_from_slice(text);
            }
            let (taken, is_last) = (text.len() + usize::from(end.is_some()), chunk.is_empty());
            self.source.consume(taken);
            if end.is_some() || is_last {
                return Ok(match read {
                    LINE_BYTES_MAX.. => Line::TooLong,
                    0 if is_last => Line::End,
                    _ => Line::Whole,
                });
            }
        }
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<io::Result<Entry>> {
        loop {
            let header = match self.next_header()? {
                Ok(header) => header,
                Err(error) => return Some(Err(error)),
            };
            match self.parse(&header.kind) {
                Ok(Parsed::Entry(entry)) => return Some(Ok(entry)),
                Ok(Parsed::Aside) => {}
                Ok(Parsed::Unknown) => self.unknown += 1,
                Err(_) => self.unparsable += 1,
            }
        }
    }
}

/// What a line is.
enum Parsed {
    Entry(Entry),
    /// For the reader itself.
    Aside,
    Unknown,
}

impl<R> Reader<R> {
    fn parse(&mut self, kind: &str) -> serde_json::Result<Parsed> {
        let line = self.line.as_slice();
        Ok(Parsed::Entry(match kind {
            "open" => Entry::Open(serde_json::from_slice(line)?),
            "start" => {
                let mut start: Box<Start> = serde_json::from_slice(line)?;
                self.library.complete_start(&mut start);
                Entry::Start(start)
            }
            "end" => {
                let mut run: Box<Run> = serde_json::from_slice(line)?;
                self.library.complete_run(&mut run);
                Entry::Run(run)
            }
            "lost" => Entry::Lost(serde_json::from_slice(line)?),
            "dropped" => Entry::Dropped(serde_json::from_slice(line)?),
            "close" => Entry::Close(serde_json::from_slice(line)?),
            "text" => {
                self.library.add(serde_json::from_slice(line)?);
                return Ok(Parsed::Aside);
            }
            "mark" => return Ok(Parsed::Aside),
            _ => return Ok(Parsed::Unknown),
        }))
    }
}

/// The `close` record that a file ends with, if it does.
///
/// # Errors
/// As read(2).
pub fn closing(file: &File) -> io::Result<Option<Close>> {
    use std::os::unix::fs::FileExt;
    const TAIL_BYTES: u64 = 512;
    let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    let mut tail = vec![0; usize::try_from(TAIL_BYTES).expect("it is small")];
    let read = file.read_at(&mut tail, from)?;
    let Some((b'\n', text)) = tail[..read].split_last() else { return Ok(None) };
    let last = text.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let is_close = serde_json::from_slice::<Header>(last).is_ok_and(|header| header.kind == "close");
    Ok(serde_json::from_slice(last).ok().filter(|_| is_close))
}

#[cfg(test)]
mod tests {
    use super::super::record::line;
    use super::*;

    #[test]
    fn what_is_not_understood_costs_its_line_only() {
        let mut text = line("open", &Open { pid: 3, ..Open::default() });
        text.extend_from_slice(b"{\"v\":1,\"type\":\"end\",\"seq\":\n\n[1]\n\xff\xfe\nnull\n{\"v\":1}\n");
        text.extend_from_slice(b"{\"v\":1,\"type\":\"later\",\"seq\":1}\n{\"v\":2,\"type\":\"end\",\"seq\":1}\n");
        text.extend_from_slice(b"{\"v\":1,\"type\":\"start\",\"seq\":\"one\"}\n");
        text.extend_from_slice(b"{\"type\":\"start\",\"v\":1,\"seq\":5,\"new_field\":{\"a\":[1,2]}}\n");
        text.extend_from_slice(b"{\"v\":1,\"type\":\"dropped\",\"count\":\"");
        text.resize(text.len() + 3 * LINE_BYTES_MAX, b'x');
        text.extend_from_slice(b"\"}\n{\"v\":1,\"type\":\"close\",\"time\":\"t\"}");
        for capacity in [1, 7, 64 << 10] {
            let mut reader = Reader::over(BufReader::with_capacity(capacity, text.as_slice()));
            let entries: Vec<Entry> = reader.by_ref().map(Result::unwrap).collect();
            assert_eq!(
                entries,
                [
                    Entry::Open(Open { pid: 3, ..Open::default() }),
                    Entry::Start(Box::new(Start { seq: 5, ..Start::default() })),
                    Entry::Close(Close { time: "t".into(), ..Close::default() }),
                ]
            );
            assert_eq!((reader.unparsable(), reader.unknown()), (7, 2));
            assert!(reader.line.capacity() <= 2 * LINE_BYTES_MAX);
        }
    }

    #[test]
    fn the_longest_line_is_read() {
        let mut text = line("close", &Close::default());
        let room = LINE_BYTES_MAX - text.len();
        let at = text.len() - 3;
        text.splice(at..at, vec![b'x'; room]);
        assert_eq!(text.len(), LINE_BYTES_MAX);
        assert_eq!(Reader::over(text.as_slice()).count(), 1);
        text.insert(at, b'x');
        let mut reader = Reader::over(text.as_slice());
        assert_eq!((reader.by_ref().count(), reader.unparsable()), (0, 1));
    }
}
