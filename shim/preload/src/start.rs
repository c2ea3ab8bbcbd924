//! What `rexec run` has told this process by its environment, as it was at the start: the program may change its own, and
//! start another one of its own with none.
//!
//! Invariants: it is written once, before the program's `main`, and only read after that.

use std::ffi::CStr;

use rexec_sh::protocol::run_changes::{OWN, RunChanges, SET};

/// The entries that are kept, bytes.
const BYTES_MAX: usize = 24 << 10;
const ENTRIES_MAX: usize = 64;

/// The entries of an environment that are rexec's, and the list of preloads.
#[derive(Debug)]
pub struct Start {
    bytes: [u8; BYTES_MAX],
    ends: [usize; ENTRIES_MAX],
    count: usize,
}

impl Default for Start {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Start {
    /// That of a process that was told nothing.
    pub const EMPTY: Self = Self { bytes: [0; BYTES_MAX], ends: [0; ENTRIES_MAX], count: 0 };

    /// Takes from an environment what belongs here. Returns false if there is not room for all of it.
    pub fn take<'a>(&mut self, environment: impl Iterator<Item = &'a CStr>) -> bool {
        let mut ours = environment.filter(|entry| is_ours(name(entry.to_bytes())));
        ours.all(|entry| self.push(entry.to_bytes_with_nul()))
    }

    fn push(&mut self, entry: &[u8]) -> bool {
        let from = self.used();
        let room = self.bytes.get_mut(from..from + entry.len());
        let (Some(room), Some(end)) = (room, self.ends.get_mut(self.count)) else { return false };
        room.copy_from_slice(entry);
        *end = from + entry.len();
        self.count += 1;
        true
    }

    fn used(&self) -> usize {
        self.count.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// The entries.
    pub fn entries(&self) -> impl Iterator<Item = &CStr> {
        let ends = self.ends.iter().take(self.count);
        let begins = std::iter::once(&0).chain(ends.clone());
        begins.zip(ends).filter_map(|(&from, &end)| CStr::from_bytes_with_nul(self.bytes.get(from..end)?).ok())
    }

    /// The number of [`Self::entries`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The value of an entry; empty if there is none.
    #[must_use]
    pub fn value(&self, wanted: &str) -> &[u8] {
        let value = |entry: &'_ CStr| name(entry.to_bytes()) == wanted.as_bytes();
        let entry = self.entries().find(|entry| value(entry)).map(CStr::to_bytes);
        entry.and_then(|entry| entry.get(wanted.len() + 1..)).unwrap_or_default()
    }

    /// Returns true if this entry was there.
    #[must_use]
    pub fn has(&self, entry: &[u8]) -> bool {
        self.entries().any(|own| own.to_bytes() == entry)
    }

    /// What the user has in the place of an entry that `rexec run` has set: nothing, or an entry. `None` if the entry was
    /// not set by it, or is another one by now.
    #[must_use]
    pub fn undone(&self, entry: &[u8]) -> Option<Option<&CStr>> {
        let name = name(entry);
        let is_set = RunChanges(self.value(SET)).names(name) && self.has(entry);
        let users = |own: &'_ CStr| {
            let value = own.to_bytes().strip_prefix(OWN.as_bytes()).and_then(|own| own.strip_prefix(name));
            value.is_some_and(|value| value.starts_with(b"="))
        };
        let own = || self.entries().find(|own| users(own)).map(CStr::to_bytes_with_nul);
        is_set.then(|| CStr::from_bytes_with_nul(own()?.get(OWN.len()..)?).ok())
    }
}

/// The name of an entry.
#[must_use]
pub fn name(entry: &[u8]) -> &[u8] {
    entry.split(|&byte| byte == b'=').next().unwrap_or(entry)
}

fn is_ours(name: &[u8]) -> bool {
    name.starts_with(b"REXEC_") || name == b"LD_PRELOAD"
}

#[cfg(test)]
mod tests {
    use rexec_sh::protocol::run_changes::PRELOAD_LINKS;

    use super::*;

    #[test]
    fn what_was_told_is_kept_and_undone() {
        let mut start = Start::EMPTY;
        let environment = [
            c"HOME=/root",
            c"LD_PRELOAD=/x/librexec_preload.so:/mine.so",
            c"REXEC_RUN_SET=LD_PRELOAD:REXEC_WHOAMI",
            c"REXEC_OWN_LD_PRELOAD=/mine.so",
            c"REXEC_WHOAMI=kimi",
            c"REXEC_PRELOAD_LINKS=/x",
        ];
        assert!(start.take(environment.into_iter()));
        assert_eq!(start.count(), 5);
        assert_eq!((start.value(PRELOAD_LINKS), start.value("HOME")), (&b"/x"[..], &b""[..]));
        assert_eq!(start.undone(environment[1].to_bytes()), Some(Some(c"LD_PRELOAD=/mine.so")));
        assert_eq!(start.undone(b"LD_PRELOAD=/another.so"), None);
        assert_eq!(start.undone(b"REXEC_WHOAMI=kimi"), Some(None));
        assert_eq!(start.undone(b"REXEC_PRELOAD_LINKS=/x"), None);
        let long = std::ffi::CString::new(format!("REXEC_X={}", "x".repeat(BYTES_MAX))).unwrap();
        assert!(!start.take([long.as_c_str()].into_iter()));
        assert!(!start.take([c"REXEC_Y=1"; ENTRIES_MAX].into_iter()));
    }
}
