//! The newest runs of a session, by their numbers.
//!
//! A session's files are read from the end. A run's start stands before its end, and starts stand in the order of their
//! numbers, but for those that a file repeats at its beginning. So once a start is read, every run with a higher number
//! is known, and the reading can stop as soon as enough of them are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use memchr::memmem::Finder;
use memchr::memrchr;

use super::chunks::{Chunks, LineChunk, read_up_to};
use super::facts::{Facts, RunOutcome, head};
use super::session::SessionHistory;
use crate::journal::record::LINE_BYTES_MAX;

/// How a start's line goes on behind its version. Within a JSON string every quote has a backslash.
const START: &[u8] = b"\"type\":\"start\",\"seq\":";

/// How much of a file's beginning is read at once, bytes: more than the longest line.
const LOOK_BYTES: usize = LINE_BYTES_MAX + 1;

/// The newest runs of a session.
#[derive(Debug, Default)]
pub struct Newest {
    /// The runs that are wanted, and `None` for those that are known and not wanted.
    runs: BTreeMap<u64, Option<Facts>>,
    /// Runs with a higher number are all known.
    settled: Option<u64>,
}

impl Newest {
    /// Reads until the `count` newest wanted runs are known, or all of them.
    ///
    /// # Errors
    /// A file cannot be read. One that is gone is left out.
    pub fn read(session: &SessionHistory, count: usize, wanted: impl Fn(&Facts) -> bool) -> io::Result<Vec<Facts>> {
        let mut newest = Newest::default();
        let start = Finder::new(START);
        for part in &session.files {
            let file = match File::open(&part.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let own = if part.continues { repeated(&file)? } else { 1 };
            let mut chunks = Chunks::of(&file)?;
            while let Some(chunk) = chunks.next()? {
                for (_, line) in chunk.lines() {
                    newest.take(line, &wanted);
                }
                if chunk.at >= own {
                    newest.settle(chunk, &start);
                }
                if newest.is_enough(count) {
                    return Ok(newest.finish(count));
                }
            }
        }
        newest.settled = None;
        Ok(newest.finish(count))
    }

    fn take(&mut self, line: &[u8], wanted: impl Fn(&Facts) -> bool) {
        let Some((kind, seq)) = head(line) else { return };
        let is_known = match &*kind {
            "start" => self.runs.contains_key(&seq),
            // In one chunk, an end follows its start.
            "end" | "lost" => self
                .runs
                .get(&seq)
                .is_some_and(|known| known.as_ref().is_none_or(|run| run.outcome != RunOutcome::Open)),
            _ => true,
        };
        if !is_known && let Some(facts) = Facts::parse(line) {
            let facts = Some(facts).filter(&wanted);
            self.runs.insert(seq, facts);
        }
    }

    /// Notes which runs are all known after this chunk.
    fn settle(&mut self, chunk: LineChunk<'_>, start: &Finder<'_>) {
        let first = chunk.lines_with(start).next();
        if let Some((_, seq)) = first.and_then(|(_, line)| head(line)) {
            self.settled = Some(seq.saturating_sub(1));
            let mut known = self.runs.split_off(&seq);
            known.retain(|_, run| run.is_some());
            self.runs.append(&mut known);
        }
    }

    fn is_enough(&self, count: usize) -> bool {
        self.settled
            .is_some_and(|settled| self.runs.range(settled + 1..).flat_map(|(_, run)| run).take(count).count() >= count)
    }

    /// The newest runs, newest first.
    fn finish(self, count: usize) -> Vec<Facts> {
        self.runs.into_values().rev().flatten().take(count).collect()
    }
}

/// The offset in a file that continues another one behind which no start is a repeated one.
fn repeated(file: &File) -> io::Result<u64> {
    let mut bytes = vec![0; LOOK_BYTES];
    let mut at = 0;
    loop {
        let read = read_up_to(file, &mut bytes, at)?;
        let Some(whole) = memrchr(b'\n', &bytes[..read]) else { return Ok(at + read as u64) };
        let chunk = LineChunk { at, bytes: &bytes[..=whole] };
        let is_repeated = |line| head(line).is_none_or(|(kind, _)| ["open", "text", "start", "mark"].contains(&&*kind));
        if let Some((end, _)) = chunk.lines().find(|(_, line)| !is_repeated(line)) {
            return Ok(end);
        }
        at += whole as u64 + 1;
    }
}
