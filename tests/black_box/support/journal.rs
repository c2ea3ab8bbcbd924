//! The content of a journal: every record of every file in the host's directory, and whether the records fit together.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::waiting;

/// What was read from all files of a directory.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// The records that could be parsed, file by file (by name), in order.
    pub(crate) records: Vec<(PathBuf, Value)>,
    /// Lines that could not be parsed.
    pub(crate) bad: Vec<(PathBuf, String)>,
}

impl Journal {
    /// Reads the files of a journal's directory. A last line without its newline counts as bad.
    pub(crate) fn read(home: &Path) -> Self {
        let mut journal = Self::default();
        let entries = fs::read_dir(home).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
        let mut paths: Vec<PathBuf> = entries.unwrap_or_default();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        paths.sort();
        for path in paths {
            let bytes = fs::read(&path).unwrap_or_default();
            for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                match serde_json::from_slice(line) {
                    Ok(value) if line.ends_with(b"\n") => journal.records.push((path.clone(), value)),
                    _ => journal.bad.push((path.clone(), line.escape_ascii().to_string())),
                }
            }
        }
        journal
    }

    /// The records of one type.
    pub(crate) fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.records.iter().map(|(_, record)| record).filter(move |record| record["type"] == kind)
    }

    /// The record of the end of the run whose command is this.
    pub(crate) fn end_of(&self, command: &str) -> Option<&Value> {
        self.of_type("end").find(|record| record["command"].as_str() == Some(command))
    }

    /// Says what is wrong with it: bad lines, and records that do not fit. A recorder that is killed within write(2) leaves
    /// the beginning of a line, and its successor ends that line before it writes the record again. That may be so
    /// `torn_max` times.
    pub(crate) fn faults(&self, torn_max: usize) -> Vec<String> {
        let begins = b"{\"v\":1,\"type\":".escape_ascii().to_string();
        let (torn, others): (Vec<_>, Vec<_>) = self.bad.iter().partition(|(_, line)| line.starts_with(&begins));
        let bad = torn.into_iter().skip(torn_max).chain(others);
        bad.map(|(path, line)| format!("bad line in {}: {line}", path.display())).chain(self.misfits()).collect()
    }

    /// Says what does not fit: runs without an end, with two, or with an end and no start. A run that began in a file may
    /// end in the one that continues it.
    pub(crate) fn misfits(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut runs: BTreeMap<(PathBuf, u64), [u32; 2]> = BTreeMap::new();
        for (path, record) in &self.records {
            let Some(kind) = record["type"].as_str() else {
                faults.push(format!("a record without a type: {record}"));
                continue;
            };
            if record["v"].as_u64().is_none() {
                faults.push(format!("a record without a version: {record}"));
            }
            let place = match kind {
                "start" => 0,
                "end" | "lost" => 1,
                _ => continue,
            };
            match record["seq"].as_u64() {
                Some(seq) => runs.entry((path.clone(), seq)).or_default()[place] += 1,
                None => faults.push(format!("a record without a number: {record}")),
            }
        }
        let mut continued = BTreeMap::new();
        for (path, open) in self.records.iter().filter(|(_, record)| record["type"] == "open") {
            if let Some(name) = open["continues"].as_str() {
                continued.insert(path.with_file_name(format!("{name}.jsonl")), path.clone());
            }
        }
        let goes_on =
            |path: &PathBuf, seq| continued.get(path).is_some_and(|next| runs.contains_key(&(next.clone(), seq)));
        for ((path, seq), counts) in runs.iter().filter(|(_, counts)| **counts != [1, 1]) {
            if *counts == [1, 0] && goes_on(path, *seq) {
                continue;
            }
            faults.push(format!("run {seq} of {} has {} starts and {} ends", path.display(), counts[0], counts[1]));
        }
        faults
    }
}

/// Waits until the journal of a host answers a question.
pub(crate) fn wait_for<T>(home: &Path, within: Duration, mut ask: impl FnMut(&Journal) -> Option<T>) -> Option<T> {
    waiting::until(within, || ask(&Journal::read(home)))
}
