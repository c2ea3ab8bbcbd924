//! Reads a journal line by line. A torn line, garbage or a record of a later version costs that line and nothing else.
//!
//! Invariants: the reader holds one line in memory, and nothing of a record longer than [`LINE_BYTES_MAX`]; it reads a
//! last line without a newline like any other, because a crash may have taken only the newline; it puts long
//! arguments together again and leaves one cut whose text is missing. Runs that the tool before this one wrote have no
//! number and get that of their line among those.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use memchr::memchr;
use serde::Deserialize;

use super::prior;
use super::record::{
    CloseRecord, DestroyedRecord, DroppedRecord, EndRecord, EnvironmentRecord, InputRecord, LINE_BYTES_MAX, Library,
    LostRecord, OpenRecord, StartRecord, UnseenRecord, VERSION,
};

/// A record of any type that is of use outside this reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Open(OpenRecord),
    Start(Box<StartRecord>),
    End(Box<EndRecord>),
    Lost(Box<LostRecord>),
    Dropped(DroppedRecord),
    Input(InputRecord),
    Unseen(UnseenRecord),
    Destroyed(DestroyedRecord),
    Environment(EnvironmentRecord),
    Close(CloseRecord),
}

/// The fields that every record begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Header {
    pub v: u32,
    #[serde(rename = "type")]
    pub kind: String,
    pub seq: u64,
}

#[derive(Debug)]
pub struct JournalReader<R = BufReader<File>> {
    source: R,
    line: Vec<u8>,
    library: Library,
    unparsable: u64,
    unknown: u64,
    /// How many lines so far the tool before this one wrote.
    prior: u64,
    passes_ends_over: bool,
}

impl JournalReader {
    /// Reads a file from its current offset.
    #[must_use]
    pub fn new(file: File) -> JournalReader {
        JournalReader::over(BufReader::with_capacity(64 << 10, file))
    }
}

impl<R: BufRead> JournalReader<R> {
    #[must_use]
    pub fn over(source: R) -> JournalReader<R> {
        let (line, library) = (Vec::new(), Library::default());
        JournalReader { source, line, library, unparsable: 0, unknown: 0, prior: 0, passes_ends_over: false }
    }

    /// The same without the records of ends, which hold the output and take the most time.
    #[must_use]
    pub fn without_ends(self) -> Self {
        Self { passes_ends_over: true, ..self }
    }

    pub fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// How many lines so far are not records: torn, too long, or written by another program.
    #[must_use]
    pub fn unparsable(&self) -> u64 {
        self.unparsable
    }

    /// How many records so far have a type or a version that this build does not know.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Reads up to the next record of a known version, and returns its header. A line of the tool before has none.
    fn next_header(&mut self) -> Option<io::Result<Header>> {
        loop {
            match self.read_line() {
                Ok(LineRead::End) => return None,
                Ok(LineRead::TooLong) => self.unparsable += 1,
                Ok(LineRead::Whole) if self.line.is_empty() => {}
                Ok(LineRead::Whole) => match serde_json::from_slice::<Header>(&self.line) {
                    Ok(header) if header == Header::default() => return Some(Ok(header)),
                    Ok(header) if header.v == 0 || header.kind.is_empty() => self.unparsable += 1,
                    Ok(header) if header.v > VERSION => self.unknown += 1,
                    Ok(header) => return Some(Ok(header)),
                    Err(_) => self.unparsable += 1,
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn read_line(&mut self) -> io::Result<LineRead> {
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
            if read < longest(&self.line, text) {
                self.line.extend_from_slice(text);
            }
            let (taken, is_last) = (text.len() + usize::from(end.is_some()), chunk.is_empty());
            self.source.consume(taken);
            if end.is_some() || is_last {
                return Ok(match read {
                    0 if is_last => LineRead::End,
                    _ if read < longest(&self.line, &[]) => LineRead::Whole,
                    _ => LineRead::TooLong,
                });
            }
        }
    }
}

/// The beginning of every record's line.
const RECORD: &[u8] = b"{\"v\":";

/// The bound on a line, bytes without its newline. `line` was kept of it, and `more` follows that.
fn longest(line: &[u8], more: &[u8]) -> usize {
    let is_record = line.iter().chain(more).zip(RECORD).all(|(byte, of_record)| byte == of_record);
    if is_record { LINE_BYTES_MAX } else { prior::LINE_BYTES_MAX }
}

enum LineRead {
    Whole,
    TooLong,
    End,
}

impl<R: BufRead> Iterator for JournalReader<R> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<io::Result<Record>> {
        loop {
            let header = match self.next_header()? {
                Ok(header) => header,
                Err(error) => return Some(Err(error)),
            };
            if header.v == 0 {
                match prior::parse(&self.line, self.prior + 1) {
                    Some(run) => {
                        self.prior += 1;
                        return Some(Ok(Record::End(Box::new(run))));
                    }
                    None => self.unparsable += 1,
                }
                continue;
            }
            match self.parse(&header.kind) {
                Ok(Parsed::Record(entry)) => return Some(Ok(entry)),
                Ok(Parsed::Aside) => {}
                Ok(Parsed::Unknown) => self.unknown += 1,
                Err(_) => self.unparsable += 1,
            }
        }
    }
}

enum Parsed {
    Record(Record),
    /// A record that only the reader needs.
    Aside,
    Unknown,
}

impl<R> JournalReader<R> {
    fn parse(&mut self, kind: &str) -> serde_json::Result<Parsed> {
        let line = self.line.as_slice();
        Ok(Parsed::Record(match kind {
            "open" => Record::Open(serde_json::from_slice(line)?),
            "start" => {
                let mut start: Box<StartRecord> = serde_json::from_slice(line)?;
                self.library.complete(&mut start);
                Record::Start(start)
            }
            "end" if self.passes_ends_over => return Ok(Parsed::Aside),
            "end" => {
                let mut end = Box::new(EndRecord::parse(line)?);
                self.library.complete(&mut end.start);
                Record::End(end)
            }
            "lost" => Record::Lost(serde_json::from_slice(line)?),
            "input" => Record::Input(serde_json::from_slice(line)?),
            "unseen" => Record::Unseen(serde_json::from_slice(line)?),
            "destroyed" => Record::Destroyed(serde_json::from_slice(line)?),
            "dropped" => Record::Dropped(serde_json::from_slice(line)?),
            "close" => Record::Close(serde_json::from_slice(line)?),
            "text" => {
                self.library.add(serde_json::from_slice(line)?);
                return Ok(Parsed::Aside);
            }
            "environment" => Record::Environment(serde_json::from_slice(line)?),
            "mark" => return Ok(Parsed::Aside),
            _ => return Ok(Parsed::Unknown),
        }))
    }
}

/// The `close` record at the end of a file. `None` if the file ends with something else.
///
/// # Errors
/// Those of pread(2).
pub fn closing(file: &File) -> io::Result<Option<CloseRecord>> {
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
    use crate::journal::record::PublishedCard;

    #[test]
    fn a_line_that_is_not_understood_costs_nothing_else() {
        let mut text = line("open", &OpenRecord { pid: 3, ..OpenRecord::default() });
        text.extend_from_slice(b"{\"v\":1,\"type\":\"end\",\"seq\":\n\n[1]\n\xff\xfe\nnull\n{\"v\":1}\n");
        text.extend_from_slice(b"{\"v\":1,\"type\":\"later\",\"seq\":1}\n{\"v\":2,\"type\":\"end\",\"seq\":1}\n");
        text.extend_from_slice(b"{\"v\":1,\"type\":\"start\",\"seq\":\"one\"}\n");
        text.extend_from_slice(b"{\"type\":\"start\",\"v\":1,\"seq\":5,\"new_field\":{\"a\":[1,2]}}\n");
        text.extend_from_slice(b"{\"v\":1,\"type\":\"dropped\",\"count\":\"");
        text.resize(text.len() + 3 * LINE_BYTES_MAX, b'x');
        text.extend_from_slice(b"\"}\n{\"v\":1,\"type\":\"close\",\"time\":\"t\"}");
        for capacity in [1, 7, 64 << 10] {
            let mut reader = JournalReader::over(BufReader::with_capacity(capacity, text.as_slice()));
            let entries: Vec<Record> = reader.by_ref().map(Result::unwrap).collect();
            assert_eq!(
                entries,
                [
                    Record::Open(OpenRecord { pid: 3, ..OpenRecord::default() }),
                    Record::Start(Box::new(StartRecord {
                        card: PublishedCard { seq: 5, ..PublishedCard::default() },
                        ..StartRecord::default()
                    })),
                    Record::Close(CloseRecord { time: "t".into(), ..CloseRecord::default() }),
                ]
            );
            assert_eq!((reader.unparsable(), reader.unknown()), (7, 2));
            assert!(reader.line.capacity() <= 2 * LINE_BYTES_MAX);
        }
    }

    #[test]
    fn the_longest_line_is_read() {
        let mut text = line("close", &CloseRecord::default());
        let room = LINE_BYTES_MAX - text.len();
        let at = text.len() - 3;
        text.splice(at..at, vec![b'x'; room]);
        assert_eq!(text.len(), LINE_BYTES_MAX);
        assert_eq!(JournalReader::over(text.as_slice()).count(), 1);
        text.insert(at, b'x');
        let mut reader = JournalReader::over(text.as_slice());
        assert_eq!((reader.by_ref().count(), reader.unparsable()), (0, 1));
    }
}
