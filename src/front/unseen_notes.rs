//! Summarizes the notes of shims: the callers whose commands ran without a host, their numbers, and the times.

use std::collections::{BTreeMap, VecDeque};

use rexec_sh::protocol::unseen::{UnseenNote, UnseenReason};

use crate::limits;
use crate::text::name::name_of;

/// The most earlier notes that are searched for a shim that executed another one for the same command.
const EARLIER_MAX: usize = 64;
/// The most time between two such shims, milliseconds.
const SAME_COMMAND_MS: u64 = 60_000;
/// The name for callers beyond the first few.
const OTHERS: &str = "other callers";

/// The commands of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenCount {
    pub count: u64,
    /// The start of the first and of the last one, milliseconds since 1970.
    pub since: u64,
    pub until: u64,
}

/// Counts the commands in a file of notes by caller and reason. Lines that are not notes are skipped. `now` is in milliseconds
/// since 1970; a later time counts as this one.
#[must_use]
pub fn count(notes: &[u8], now: u64) -> BTreeMap<(String, UnseenReason), UnseenCount> {
    let mut found: BTreeMap<(String, UnseenReason), UnseenCount> = BTreeMap::new();
    let mut earlier: VecDeque<(i32, u64)> = VecDeque::new();
    for note in notes.split(|&byte| byte == b'\n').filter_map(UnseenNote::read) {
        let at = note.at.min(now);
        let (own, parent) = note.pids;
        let is_part = |&(pid, then): &(i32, u64)| {
            (pid == own || (pid == parent && pid > 1)) && at.abs_diff(then) <= SAME_COMMAND_MS
        };
        let is_same = earlier.iter().any(is_part);
        if earlier.len() >= EARLIER_MAX {
            earlier.pop_front();
        }
        earlier.push_back((own, at));
        if is_same {
            continue;
        }
        let name = if note.name.is_empty() { b"shell" } else { note.name };
        let mut key = (name_of(&String::from_utf8_lossy(name), limits::WHOAMI_COLUMNS), note.reason);
        if found.len() >= limits::UNSEEN_CALLERS_MAX && !found.contains_key(&key) {
            OTHERS.clone_into(&mut key.0);
        }
        let counted = found.entry(key).or_insert(UnseenCount { count: 0, since: at, until: at });
        counted.count += 1;
        (counted.since, counted.until) = (counted.since.min(at), counted.until.max(at));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_by_their_callers() {
        let notes =
            b"1 1000 n 10 1 Codex\n1 3000 n 11 1 Codex\n1 2000 s 12 1 Codex\njunk\n1 5000 n 13 1 \n1 9999 n 14 1 cut";
        let found = count(notes, 9_000);
        let named = |name: &str, reason| found.get(&(name.to_owned(), reason)).copied();
        let codex = UnseenCount { count: 2, since: 1_000, until: 3_000 };
        assert_eq!(named("Codex", UnseenReason::NoHost), Some(codex));
        assert_eq!(named("Codex", UnseenReason::Sandboxed).map(|found| found.count), Some(1));
        assert_eq!(named("shell", UnseenReason::NoHost).map(|found| found.until), Some(5_000));
        assert_eq!(named("cut", UnseenReason::NoHost).map(|found| found.until), Some(9_000), "a clock that went back");
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn a_shim_that_another_one_executed_is_of_the_same_command() {
        let notes = b"1 1 n 10 5 a\n1 2 n 10 5 a\n1 3 n 12 10 a\n1 4 n 13 12 a\n1 5 n 14 5 a\n1 99999 n 10 5 a\n";
        assert_eq!(count(notes, u64::MAX)[&("a".to_owned(), UnseenReason::NoHost)].count, 3);
    }

    #[test]
    fn a_crowd_of_names_is_bounded() {
        let notes: String = (0..500).map(|at| format!("1 {at} n {} 1 name{at}\n", at + 10)).collect();
        let found = count(notes.as_bytes(), u64::MAX);
        assert_eq!(found.len(), limits::UNSEEN_CALLERS_MAX + 1);
        assert_eq!(found.values().map(|found| found.count).sum::<u64>(), 500);
    }
}
