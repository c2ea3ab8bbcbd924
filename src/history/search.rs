//! The newest runs of a session that meet a query, by their numbers.
//!
//! A session's files are read from the end. A run's start stands before its end, and starts stand in the order of their
//! numbers, but for those that a file repeats at its beginning. So once a start is read, every run with a higher number
//! is known, and the reading can stop as soon as enough of them are.
//!
//! With a text, a line without it is not parsed. The start and the end of a run have the same command, so that of two
//! records that have the text the end is always seen first.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use memchr::memmem::Finder;
use memchr::memrchr;

use super::chunks::{Chunks, LineChunk, read_up_to};
use super::facts::{Facts, head};
use super::query::{Query, output_of};
use super::session::{JournalFile, SessionHistory};
use crate::journal::reader::JournalReader;
use crate::journal::record::LINE_BYTES_MAX;

/// The part of a start's line after its version. Within a JSON string every quote has a backslash.
const START: &[u8] = b"\"type\":\"start\",\"seq\":";
/// The part of a record that names a raw file.
const RAW: &[u8] = b",\"raw\":\"";
/// How much of a file's beginning is read at once, bytes: more than the longest line.
const LOOK_BYTES: usize = LINE_BYTES_MAX + 1;

/// The result of a search in one session.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The runs, newest first.
    pub runs: Vec<Facts>,
    /// Lines that were read and are not records.
    pub unreadable: u64,
}

/// Searches a session until the `count` newest runs that the query wants are known, or all of them.
///
/// # Errors
/// A file cannot be read. One that is gone is left out.
pub fn search(session: &SessionHistory, query: &Query, count: usize) -> io::Result<SearchResult> {
    let mut search = Search::new(session, query);
    // A run that has not ended has its start in the newest file.
    let files = match (query.is_running, session.is_alive()) {
        (true, true) => 1,
        (true, false) => 0,
        (false, _) => session.files.len(),
    };
    for part in &session.files[..files] {
        let file = match File::open(&part.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if session.open.is_none() {
            search.read_all(file)?;
        } else if query.may_be_in(part, &file)? && search.read(part, &file, count)? {
            return Ok(search.finish(count));
        }
    }
    search.settled = None;
    Ok(search.finish(count))
}

struct Search<'q> {
    session: &'q SessionHistory,
    query: &'q Query,
    is_alive: bool,
    /// The text as lines have it, if only lines with it matter.
    needle: Option<Finder<'static>>,
    raw: Option<Finder<'static>>,
    start: Finder<'static>,
    /// The runs that are wanted, and `None` for those that are known and not wanted.
    runs: BTreeMap<u64, Option<Box<Facts>>>,
    /// Runs with a higher number are all known.
    settled: Option<u64>,
    unreadable: u64,
}

impl<'q> Search<'q> {
    fn new(session: &'q SessionHistory, query: &'q Query) -> Self {
        let needle = query.needle().map(|needle| Finder::new(&needle).into_owned());
        let raw = (needle.is_some() && query.is_any_output).then(|| Finder::new(RAW));
        let (is_alive, start) = (session.is_alive(), Finder::new(START));
        Self { session, query, is_alive, needle, raw, start, runs: BTreeMap::new(), settled: None, unreadable: 0 }
    }

    /// Reads a file from its end. Returns true if enough runs are known.
    fn read(&mut self, part: &JournalFile, file: &File, count: usize) -> io::Result<bool> {
        let own = if part.continues { repeated(file)? } else { 1 };
        let mut chunks = Chunks::of(file)?;
        let mut is_last = true;
        while let Some(mut chunk) = chunks.next()? {
            // A host that runs may be writing the last line.
            if std::mem::take(&mut is_last) && self.is_alive {
                chunk = chunk.whole_lines();
            }
            self.take_chunk(chunk);
            if chunk.at >= own {
                self.settle(chunk);
            }
            if self.is_enough(count) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take_chunk(&mut self, chunk: LineChunk<'_>) {
        let lines: Vec<&[u8]> = match &self.needle {
            None => chunk.lines().map(|(_, line)| line).collect(),
            Some(needle) => chunk.lines_with(needle).map(|(_, line)| line).collect(),
        };
        let raw: Vec<&[u8]> = self.raw.iter().flat_map(|raw| chunk.lines_with(raw).map(|(_, line)| line)).collect();
        // The end of a run before its start: the last record says most.
        lines.into_iter().rev().chain(raw).for_each(|line| self.take(line));
    }

    fn take(&mut self, line: &[u8]) {
        let Some((kind, seq)) = head(line) else {
            self.unreadable += u64::from(!line.is_empty());
            return;
        };
        if !["start", "end", "lost"].contains(&&*kind) || self.runs.contains_key(&seq) {
            return;
        }
        if self.query.excludes(line) {
            self.runs.insert(seq, None);
            return;
        }
        match Facts::parse(line) {
            Some(run) => self.note(run, || output_of(line)),
            None => self.unreadable += 1,
        }
    }

    fn note(&mut self, run: Facts, output: impl FnOnce() -> Option<String>) {
        let is_wanted = self.query.wants(&run, self.is_alive) && self.query.has_text(&run, output, self.session.home());
        self.runs.insert(run.card.seq, is_wanted.then(|| Box::new(run)));
    }

    /// Reads a file from its beginning, because its runs may have no numbers.
    fn read_all(&mut self, file: File) -> io::Result<()> {
        let mut reader = JournalReader::new(file);
        for record in reader.by_ref() {
            if let Some((run, output)) = Facts::of(record?) {
                self.note(run, || output);
            }
        }
        self.unreadable += reader.unparsable();
        Ok(())
    }

    /// Notes which runs are all known after this chunk.
    fn settle(&mut self, chunk: LineChunk<'_>) {
        let first = chunk.lines_with(&self.start).next();
        if let Some((_, seq)) = first.and_then(|(_, line)| head(line)) {
            self.settled = Some(seq.saturating_sub(1));
            let mut known = self.runs.split_off(&seq);
            known.retain(|_, run| run.is_some());
            self.runs.append(&mut known);
        }
    }

    fn is_enough(&self, count: usize) -> bool {
        let is_enough = |settled| self.runs.range(settled + 1..).flat_map(|(_, run)| run).take(count).count() >= count;
        self.settled.is_some_and(is_enough)
    }

    fn finish(self, count: usize) -> SearchResult {
        let runs = self.runs.into_values().rev().flatten().take(count).map(|run| *run).collect();
        SearchResult { runs, unreadable: self.unreadable }
    }
}

/// In a file that continues another one, the offset after which no start is a repeated one.
fn repeated(file: &File) -> io::Result<u64> {
    let mut bytes = vec![0; LOOK_BYTES];
    let mut at = 0;
    loop {
        let read = read_up_to(file, &mut bytes, at)?;
        let Some(whole) = memrchr(b'\n', &bytes[..read]) else { return Ok(at + read as u64) };
        let chunk = LineChunk { at, bytes: &bytes[..=whole] };
        let kinds = ["open", "environment", "text", "start", "mark"];
        let is_repeated = |line| head(line).is_none_or(|(kind, _)| kinds.contains(&&*kind));
        if let Some((end, _)) = chunk.lines().find(|(_, line)| !is_repeated(line)) {
            return Ok(end);
        }
        at += whole as u64 + 1;
    }
}
