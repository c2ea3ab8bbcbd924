//! The environments of runs, so that a run can be repeated. The commands of an agent have almost the same one, so a file
//! has each environment once, in a record `environment`, and a start says only what differs from that.
//!
//! Invariants: a reference names an environment that stands earlier in the same file; how much of a file environments take
//! is bounded.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::rc::Rc;

use super::environment::{EnvironmentRecord, EnvironmentRef, KeptEnvironment};
use super::{StartRecord, line};
use crate::limits;

/// The environments of a file that is being written.
#[derive(Debug)]
pub struct Environments {
    next_id: u64,
    /// The newest ones.
    known: VecDeque<(u64, Rc<KeptEnvironment>)>,
    /// The length of the records so far, bytes.
    written: usize,
}

impl Environments {
    /// Begins without any. Another recorder has written the file's first `length` bytes; numbers above it are free,
    /// because each record took more than one byte.
    #[must_use]
    pub fn new(length: u64) -> Environments {
        Environments { next_id: length + 1, known: VecDeque::new(), written: 0 }
    }

    /// The start with a reference to its environment. Appends the line that must stand before it, if there is one. A
    /// file with enough environments gets no more of them: then the start has no reference.
    pub fn refer<'a>(&mut self, start: Cow<'a, StartRecord>, lines: &mut Vec<Vec<u8>>) -> Cow<'a, StartRecord> {
        let Some(environment) = start.environment.clone() else { return start };
        let Some(reference) = self.find_or_write(&environment, lines) else { return start };
        let mut start = start.into_owned();
        start.env = Some(reference);
        Cow::Owned(start)
    }

    /// Forgets all environments, because a line was not written.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    fn find_or_write(&mut self, environment: &Rc<KeptEnvironment>, lines: &mut Vec<Vec<u8>>) -> Option<EnvironmentRef> {
        let whole = |id| Some(EnvironmentRef { id, ..EnvironmentRef::default() });
        if let Some((same, _)) = self.known.iter().find(|(_, known)| Rc::ptr_eq(known, environment)) {
            return whole(*same);
        }
        let near =
            self.known.iter().map(|(id, known)| environment.refer(*id, known)).min_by_key(EnvironmentRef::weight);
        let most = limits::JOURNAL_ENVIRONMENT_CHANGES_BYTES.min(environment.weight() / 2);
        if let Some(near) = near.filter(|near| near.weight() <= most) {
            return Some(near);
        }
        let id = self.next_id;
        let line = line("environment", &EnvironmentRecord { id, environment: (**environment).clone() });
        if self.written + line.len() > limits::JOURNAL_ENVIRONMENTS_BYTES {
            return None;
        }
        self.next_id += 1;
        self.written += line.len();
        lines.push(line);
        self.known.push_back((id, Rc::clone(environment)));
        if self.known.len() > limits::JOURNAL_ENVIRONMENTS_KNOWN {
            self.known.pop_front();
        }
        whole(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(set: &[(&str, &str)], left_out: &[&str]) -> Rc<KeptEnvironment> {
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Rc::new(KeptEnvironment { set, left_out: left_out.iter().map(|name| (*name).to_owned()).collect() })
    }

    #[test]
    fn an_environment_is_written_once_and_found_again_for_every_run() {
        let path = "/usr/bin:".repeat(40);
        let base = [("HOME", "/srv/ann"), ("PATH", path.as_str()), ("TOKENS_SEEN", "1")];
        let all = [
            environment(&base, &["GITHUB_TOKEN"]),
            environment(&base, &["GITHUB_TOKEN"]),
            environment(&[("HOME", "/srv/ann"), ("PATH", &path), ("LANG", "C")], &["GITHUB_TOKEN", "TOKENS_SEEN"]),
            environment(&[("HOME", "/root"), ("PATH", &path), ("GITHUB_TOKEN", "")], &[]),
            environment(&[], &[]),
        ];
        let (mut environments, mut records) = (Environments::new(0), Vec::new());
        for wanted in all {
            let start = StartRecord { environment: Some(Rc::clone(&wanted)), ..StartRecord::default() };
            let mut lines = Vec::new();
            let start = environments.refer(Cow::Owned(start), &mut lines).into_owned();
            records.extend(lines.iter().map(|line| serde_json::from_slice::<EnvironmentRecord>(line).unwrap()));
            let written: StartRecord = serde_json::from_slice(&serde_json::to_vec(&start).unwrap()).unwrap();
            let reference = written.env.unwrap();
            let record = records.iter().find(|record| record.id == reference.id).unwrap();
            assert_eq!(reference.applied(&record.environment), *wanted);
        }
        assert_eq!(records.len(), 2, "one for those that are alike, one for the empty one");
    }

    #[test]
    fn a_file_takes_a_bounded_amount_of_environments() {
        let mut environments = Environments::new(0);
        let (mut bytes, mut without) = (0, 0);
        for number in 0..400_u32 {
            let value = format!("{number:x}").repeat(8 << 10);
            let start = StartRecord { environment: Some(environment(&[("A", &value)], &[])), ..StartRecord::default() };
            let mut lines = Vec::new();
            without += u32::from(environments.refer(Cow::Owned(start), &mut lines).env.is_none());
            bytes += lines.iter().map(Vec::len).sum::<usize>();
        }
        assert!(bytes <= limits::JOURNAL_ENVIRONMENTS_BYTES && without > 0, "{bytes} {without}");
    }
}
