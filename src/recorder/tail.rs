//! The facts that the end of a journal gives about the whole file.
//!
//! Every MiB a journal has a mark: how many runs there were so far, and which of them have not ended. So its last few
//! MiB are enough. In a file without marks more is read, up to a bound.
//!
//! Invariants: the amount that is read is bounded, whatever the file's length; a line that is not a record changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use memchr::{memchr, memmem};

use crate::journal::reader::Header;
use crate::journal::record::{LINE_BYTES_MAX, LostRecord, MarkRecord, PublishedCard, StartRecord, VERSION};
use crate::limits;

/// The beginning of every mark, with the newline before it.
const MARK: &[u8] = b"\n{\"v\":1,\"type\":\"mark\",";

/// The facts that a journal's end gives about the file.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// The file's length, bytes.
    pub(super) length: u64,
    /// The last line is a `close`.
    pub(super) is_closed: bool,
    /// The last line lacks its newline.
    pub(super) is_torn: bool,
    /// How many runs have a record in the file.
    pub(super) commands: u64,
    /// The runs that began and have not ended, each with the offset of its start.
    pub(super) open: BTreeMap<u64, u64>,
    /// The runs that ended in the part that was read.
    pub(super) ended: BTreeSet<u64>,
    /// How many records behind the offset `since` belong to no start and no end.
    pub(super) asides: usize,
}

impl Tail {
    /// Reads as much of a file's end as is needed, and at least everything behind the offset `since`.
    pub(super) fn read(file: &File, since: u64) -> io::Result<Tail> {
        let length = file.metadata()?.len();
        let from = match last_mark(file, length)? {
            Some(mark) => mark,
            None if length <= limits::JOURNAL_UNMARKED_BYTES => 0,
            None => line_after(file, length - limits::JOURNAL_UNMARKED_BYTES)?,
        };
        let from = from.min(if since < length { since } else { from });
        let mut tail = Tail { length, is_torn: ends_torn(file, length)?, ..Tail::default() };
        let mut reader = file;
        reader.seek(SeekFrom::Start(from))?;
        tail.take(BufReader::with_capacity(256 << 10, reader), from, since)?;
        Ok(tail)
    }

    fn take(&mut self, mut lines: impl BufRead, mut at: u64, since: u64) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if let Some((kind, seq)) = kind_and_seq(&line) {
                self.asides += usize::from(at >= since && ["input", "unseen", "destroyed"].contains(&kind.as_str()));
                self.on_record(&kind, seq, at, &line);
            }
            at += line.len() as u64;
        }
    }

    fn on_record(&mut self, kind: &str, seq: u64, at: u64, line: &[u8]) {
        self.is_closed = kind == "close" && line.ends_with(b"\n");
        match kind {
            "start" => {
                self.commands += u64::from(self.open.insert(seq, at).is_none());
            }
            "end" | "lost" => {
                self.commands += u64::from(self.open.remove(&seq).is_none());
                self.ended.insert(seq);
            }
            "mark" => {
                if let Ok(mark) = serde_json::from_slice::<MarkRecord>(line) {
                    self.commands = mark.commands;
                    self.open = mark.open.into_iter().collect();
                }
            }
            _ => {}
        }
    }

    /// Returns true if the part that was read has a record of the run.
    pub(super) fn has(&self, seq: u64) -> bool {
        self.open.contains_key(&seq) || self.ended.contains(&seq)
    }

    /// The records for the runs that have no end, from their starts.
    pub(super) fn unfinished(&self, file: &File) -> Vec<LostRecord> {
        let read = |(&seq, &at): (&u64, &u64)| {
            let line = read_line(file, at).unwrap_or_default();
            let start = serde_json::from_slice::<StartRecord>(&line).ok().filter(|start| start.card.seq == seq);
            LostRecord {
                start: start.unwrap_or_else(|| StartRecord {
                    card: PublishedCard { seq, ..PublishedCard::default() },
                    ..StartRecord::default()
                }),
            }
        };
        self.open.iter().map(read).collect()
    }
}

/// How many runs have a record in a journal. For a long file without marks this is an estimate from the numbers of its
/// first and its last run.
///
/// # Errors
/// Those of read(2) and pread(2).
pub fn count_runs(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if length <= limits::JOURNAL_TAIL_BYTES || last_mark(file, length)?.is_some() {
        return Tail::read(file, u64::MAX).map(|tail| tail.commands);
    }
    let seqs = |bytes: &[u8]| {
        let starts = bytes.split(|&byte| byte == b'\n').filter_map(kind_and_seq);
        starts.filter(|(kind, _)| kind == "start").map(|(_, seq)| seq).collect::<Vec<_>>()
    };
    let some = usize::try_from(limits::JOURNAL_TAIL_BYTES / 2).expect("it is small");
    let (mut first, mut last) = (vec![0; some], vec![0; some]);
    file.read_exact_at(&mut first, 0)?;
    file.read_exact_at(&mut last, length - some as u64)?;
    let first = seqs(&first).into_iter().min();
    let last = seqs(&last).into_iter().max();
    Ok(first.zip(last).map_or(0, |(first, last)| last.saturating_sub(first) + 1))
}

/// The offset of the last mark.
fn last_mark(file: &File, length: u64) -> io::Result<Option<u64>> {
    let from = length.saturating_sub(limits::JOURNAL_TAIL_BYTES);
    let mut bytes = vec![0; usize::try_from(length - from).expect("it is bounded")];
    file.read_exact_at(&mut bytes, from)?;
    // A torn mark does not count.
    let whole = memchr::memrchr(b'\n', &bytes).unwrap_or(0);
    Ok(memmem::rfind(&bytes[..whole], MARK).map(|at| from + at as u64 + 1))
}

/// The offset of the first line that begins after `at`.
fn line_after(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = vec![0; LINE_BYTES_MAX];
    let read = file.read_at(&mut bytes, at)?;
    Ok(at + memchr(b'\n', &bytes[..read]).map_or(0, |end| end as u64 + 1))
}

fn read_line(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; LINE_BYTES_MAX];
    let read = file.read_at(&mut bytes, at)?;
    bytes.truncate(memchr(b'\n', &bytes[..read]).unwrap_or(read));
    Ok(bytes)
}

fn ends_torn(file: &File, length: u64) -> io::Result<bool> {
    let mut last = [b'\n'];
    if let Some(at) = length.checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    Ok(last != *b"\n")
}

/// The type and the run's number of a record. `None` for a torn line, which is not whole JSON.
fn kind_and_seq(line: &[u8]) -> Option<(String, u64)> {
    let header: Header = serde_json::from_slice(line).ok()?;
    (1..=VERSION).contains(&header.v).then_some((header.kind, header.seq))
}
