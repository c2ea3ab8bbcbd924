//! The sessions of each agent, numbered in the order in which the host first sees them.
//!
//! Invariants: a session keeps its number; the memory is bounded: it forgets the numbers of the oldest sessions, and
//! never reuses them.

use std::collections::{BTreeMap, VecDeque};

/// The most remembered sessions. A forgotten one gets a new number.
const SESSIONS_MAX: usize = 1_024;
/// The examined beginning of a session's identifier, bytes.
const ID_BYTES_MAX: usize = 128;

/// The numbers of the known sessions.
#[derive(Debug, Default)]
pub struct Sessions {
    known: VecDeque<(String, Vec<u8>, u32)>,
    counts: BTreeMap<String, u32>,
}

impl Sessions {
    /// The number of an agent's session, from 1. A caller without an identifier is in the agent's first session.
    pub fn number(&mut self, agent: &str, id: &[u8]) -> u32 {
        let id = &id[..id.len().min(ID_BYTES_MAX)];
        if id.is_empty() {
            return 1;
        }
        if let Some((.., number)) = self.known.iter().find(|(known, other, _)| known == agent && other == id) {
            return *number;
        }
        if self.known.len() >= SESSIONS_MAX {
            self.known.pop_front();
        }
        if self.counts.len() >= SESSIONS_MAX && !self.counts.contains_key(agent) {
            return 1;
        }
        let count = self.counts.entry(agent.to_owned()).or_default();
        *count = count.saturating_add(1);
        self.known.push_back((agent.to_owned(), id.to_vec(), *count));
        *count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_keeps_its_number() {
        let mut sessions = Sessions::default();
        let numbers: Vec<u32> =
            [("claude", "a"), ("claude", "b"), ("codex", "b"), ("claude", "a"), ("claude", ""), ("claude", "c")]
                .map(|(agent, id)| sessions.number(agent, id.as_bytes()))
                .to_vec();
        assert_eq!(numbers, [1, 2, 1, 1, 1, 3]);
        for session in 0..2 * SESSIONS_MAX {
            sessions.number("claude", format!("{session}").as_bytes());
        }
        assert_eq!(sessions.known.len(), SESSIONS_MAX);
        assert_eq!(sessions.number("claude", b"new"), u32::try_from(2 * SESSIONS_MAX + 4).unwrap());
    }
}
