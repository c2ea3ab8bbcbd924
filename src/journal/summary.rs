//! The summary of a file, with which a reader can skip the file or begin in its middle.
//!
//! The recorder keeps it beside the journal's file. A reader that finds none, or one that does not fit the file, reads the
//! file instead.
//!
//! Invariants: the summary is of the file's first `length` bytes, which end with a line; it names every run that has a
//! record there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::reader::Header;
use super::record::{OpenRecord, VERSION};

/// The distance of the places in a file that its summary has, bytes.
pub const PLACE_BYTES: u64 = 1 << 20;
/// The most names of callers, and the most runs of earlier files, that a summary has. A file with more has none.
const NAMES_MAX: usize = 4_096;

/// A time as records have it.
const TIME: &str = "2026-05-21T09:42:18Z";

/// The summary of a file's beginning, or of all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// How much of the file it covers, bytes.
    pub length: u64,
    /// The lowest and the highest number of a run that began in the file.
    pub begun: Option<(u64, u64)>,
    /// The runs with a record here that began in an earlier file, each with the offset of its last record.
    pub carried: BTreeMap<u64, u64>,
    /// Every [`PLACE_BYTES`] the offset of a start, and the run's number.
    pub places: Vec<(u64, u64)>,
    /// How many runs have a record here, by the callers' names.
    pub agents: BTreeMap<String, u64>,
    /// How many runs began here.
    pub runs: u64,
    /// How many runs failed: they did not end with code 0, or were lost.
    pub failed: u64,
    /// When the first and the last of the runs began, as records have it.
    pub from: String,
    /// See `from`.
    pub to: String,
    /// The longest duration of a run, milliseconds.
    pub longest_ms: u64,
    /// It is of no use, because the file has too many names or its numbers go down.
    pub is_void: bool,
    /// The file begins with starts that are repeated from the file before it.
    continues: bool,
    /// The repeated starts are over.
    is_past_beginning: bool,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Counted {
    whoami: String,
    time: String,
    exit: u8,
    error: Option<String>,
    duration_ms: u64,
}

impl Summary {
    /// Takes the next line of the file, with its newline.
    pub fn take(&mut self, line: &[u8]) {
        let at = self.length;
        self.length += line.len() as u64;
        let Ok(header) = serde_json::from_slice::<Header>(line) else { return };
        if !(1..=VERSION).contains(&header.v) {
            return;
        }
        let Header { kind, seq, .. } = header;
        match kind.as_str() {
            "open" => {
                self.continues = serde_json::from_slice::<OpenRecord>(line).is_ok_and(|open| open.continues.is_some());
                return;
            }
            "start" if self.continues && !self.is_past_beginning => self.carried.insert(seq, at).map_or((), drop),
            "start" => self.begin(seq, at),
            "end" | "lost" => {
                self.is_past_beginning = true;
                if !self.has_begun(seq) {
                    self.carried.insert(seq, at);
                }
            }
            _ => return,
        }
        let Ok(counted) = serde_json::from_slice::<Counted>(line) else { return };
        if kind == "start" {
            *self.agents.entry(counted.whoami.clone()).or_default() += 1;
        } else {
            // A start that is missing must not hide its end.
            self.agents.entry(counted.whoami.clone()).or_default();
            self.failed += u64::from(kind == "lost" || counted.exit != 0 || counted.error.is_some());
        }
        self.longest_ms = self.longest_ms.max(counted.duration_ms);
        // A record without a time is in no span.
        if counted.time.len() >= TIME.len() && counted.time.is_ascii() {
            if self.from.is_empty() || counted.time < self.from {
                self.from.clone_from(&counted.time);
            }
            self.to = std::mem::take(&mut self.to).max(counted.time);
        }
        self.is_void |= self.agents.len() > NAMES_MAX || self.carried.len() > NAMES_MAX;
    }

    fn begin(&mut self, seq: u64, at: u64) {
        let (first, last) = self.begun.unwrap_or((seq, seq));
        // Numbers that go down would make the places useless.
        self.is_void |= seq < last;
        self.begun = Some((first.min(seq), last.max(seq)));
        self.runs += 1;
        if self.places.last().is_none_or(|(before, _)| at >= before + PLACE_BYTES) {
            self.places.push((at, seq));
        }
    }

    /// Returns true if the number lies between those of the runs that began in the part that this covers.
    #[must_use]
    pub fn has_begun(&self, seq: u64) -> bool {
        self.begun.is_some_and(|(first, last)| (first..=last).contains(&seq))
    }

    /// Returns true if the part that this covers may have a record of the run.
    #[must_use]
    pub fn may_have(&self, seq: u64) -> bool {
        self.has_begun(seq) || self.carried.contains_key(&seq)
    }

    /// An offset before which there is no record of the run.
    #[must_use]
    pub fn place(&self, seq: u64) -> u64 {
        if let Some(&at) = self.carried.get(&seq) {
            return at;
        }
        let after = self.places.partition_point(|(_, first)| *first <= seq);
        after.checked_sub(1).map_or(0, |before| self.places[before].0)
    }

    /// The first place behind this offset, or the end of the part that this covers.
    #[must_use]
    pub fn place_after(&self, offset: u64) -> u64 {
        let after = self.places.partition_point(|(at, _)| *at <= offset);
        self.places.get(after).map_or(self.length, |(at, _)| *at)
    }
}

/// FNV-1a of 64 bits, to find out whether bytes have changed.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(lines: &[&str]) -> Summary {
        let mut summary = Summary::default();
        lines.iter().for_each(|line| summary.take(format!("{line}\n").as_bytes()));
        summary
    }

    #[test]
    fn it_names_every_run_of_the_file() {
        let mut lines = [
            r#"{"v":1,"type":"open","time":"t"}"#,
            r#"{"v":1,"type":"start","seq":2,"time":"2026-05-21T09:00:00.000Z","whoami":"B"}"#,
            r#"{"v":1,"type":"start","seq":7,"time":"2026-05-21T10:00:00.000Z","whoami":"A"}"#,
            r#"{"v":1,"type":"end","seq":7,"time":"2026-05-21T10:00:00.000Z","whoami":"A","exit":1,"duration_ms":9}"#,
            "torn",
            r#"{"v":1,"type":"start","seq":8,"time":"2026-05-21T10:00:01.000Z","whoami":"A"}"#,
            r#"{"v":1,"type":"end","seq":2,"time":"2026-05-21T09:00:00.000Z","whoami":"B","exit":0}"#,
            r#"{"v":1,"type":"end","seq":6,"time":"2026-05-21T09:30:00.000Z","whoami":"C","exit":0}"#,
        ];
        let first = summary(&lines);
        assert_eq!((first.begun, first.failed, first.longest_ms), (Some((2, 8)), 1, 9));
        assert_eq!(first.length, lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>());
        assert_eq!((first.from.as_str(), first.to.as_str()), ("2026-05-21T09:00:00.000Z", "2026-05-21T10:00:01.000Z"));
        assert_eq!(first.agents.keys().collect::<Vec<_>>(), ["A", "B", "C"]);
        lines[0] = r#"{"v":1,"type":"open","time":"t","continues":"x"}"#;
        let second = summary(&lines);
        assert_eq!(second.begun, Some((8, 8)), "starts at its beginning may be repeated ones");
        assert!([2, 6, 7, 8].iter().all(|seq| second.may_have(*seq)) && !second.may_have(3));
        assert!(second.place(7) > 0 && second.place(8) > second.place(7));
    }
}
