//! The record of the store that a person means: `45`, `45.1`, `2026-05-21-09:42:18:45`, or `-1`.
//!
//! ```text
//! N           what was kept of the run with this number, of the host that runs; without one, of the newest session
//! N.M         what the restore M of that run has kept
//! SESSION:N   that of a run of another session
//! -1          the newest record, -2 the one before it
//! ```
//!
//! Records outlive journals, so they are found without them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::run_reference::current;
use super::{quoted, run_reference};
use crate::history::{self, FoundRun, SessionHistory};
use crate::journal::record::timestamp;
use crate::text::count::{counted, size};
use crate::text::escape::escape_line;
use crate::text::reason::reason;
use crate::undo::manifest::{Head, Item};
use crate::undo::record::{self, Comparison, Obstacle, Plan, Record, RecordName};
use crate::undo::store::Store;

/// Columns of a session's name that are shown.
const SESSION_COLUMNS: usize = 255;
/// The store, in the journal's directory.
const KEPT: &str = "kept";
/// Records of restores that are looked through for what a restore has moved.
const MOVED_MAX: usize = 16;
/// The last second of the year 9999.
const TIME_MAX: u64 = 253_402_300_799;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordReference {
    session: Option<String>,
    choice: RecordChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordChoice {
    Number(u64, Option<u32>),
    /// 1 is the newest.
    FromNewest(usize),
}

impl RecordReference {
    /// Reads a reference; `None` if the word is not one.
    fn parse(word: &str) -> Option<Self> {
        let (session, number) = match word.rsplit_once(':') {
            Some((session, number)) if !session.is_empty() => (Some(session.to_owned()), number),
            Some(_) => return None,
            None => (None, word),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let choice = match number.strip_prefix('-') {
            Some(back) => RecordChoice::FromNewest(Some(back).filter(|back| digits(back))?.parse().ok()?),
            None => match number.strip_prefix('#').unwrap_or(number).split_once('.') {
                Some((run, restore)) if digits(run) && digits(restore) => {
                    RecordChoice::Number(run.parse().ok()?, Some(restore.parse().ok()?))
                }
                Some(_) => return None,
                None => RecordChoice::Number(
                    Some(number.strip_prefix('#').unwrap_or(number)).filter(|run| digits(run))?.parse().ok()?,
                    None,
                ),
            },
        };
        (choice != RecordChoice::FromNewest(0)).then_some(Self { session, choice })
    }

    /// Reads a reference from a command line.
    ///
    /// # Errors
    /// The word is not a reference.
    pub(super) fn of(word: &OsStr) -> Result<Self, Notice> {
        Self::parse(&word.to_string_lossy()).ok_or_else(|| {
            let hint = "N is a command's number, as in rexec kept 45; SESSION:N one of another session; -1 the newest";
            Notice::usage(format_args!("{} does not name a command", quoted(word)), hint)
        })
    }
}

/// The records of the store, and the journals that may know their commands.
#[derive(Debug)]
pub(super) struct Shelf {
    /// `None` if nothing was ever kept.
    store: Option<Store>,
    /// Newest first.
    pub(super) records: Vec<(RecordName, Head)>,
    journals: Vec<SessionHistory>,
    /// The session whose runs are named by numbers alone.
    current: String,
}

impl Shelf {
    pub(super) fn open() -> Result<Self, Notice> {
        let home = super::home()?;
        let path = home.join(KEPT);
        let unreadable = |error: io::Error| {
            let hint = "it is a directory of yours, and no link; REXEC_HOME names the directory that it is in";
            Notice::failed(format_args!("cannot read {}: {}", path.display(), reason(&error)), hint)
        };
        let store = match Store::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            store => Some(store.map_err(unreadable)?),
        };
        let mut records = Vec::new();
        if let Some(store) = &store {
            for name in record::names(store).map_err(unreadable)? {
                records.extend(record::head(store, &name).map(|head| (name, head)));
            }
        }
        records.sort_by(|(name, head), (other, than)| (than.time, other).cmp(&(head.time, name)));
        let mut journals = history::sessions(&home).map_err(|error| run_reference::unreadable(&home, &error))?;
        let place = if journals.is_empty() { 0 } else { current(&journals, &super::socket_path()?) };
        let of_journal = journals.get_mut(place).map(|session| session.name.clone());
        let newest = || records.first().map(|(name, _)| name.session.clone());
        let current = of_journal.or_else(newest).unwrap_or_default();
        Ok(Self { store, records, journals, current })
    }

    /// The store.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn store(&self) -> Result<&Store, Notice> {
        self.store.as_ref().ok_or_else(|| none("nothing is kept"))
    }

    /// Finds the record that is meant.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(&self, reference: &RecordReference) -> Result<&RecordName, Notice> {
        let session = reference.session.as_deref().map(|given| self.session(given)).transpose()?;
        match reference.choice {
            RecordChoice::Number(run, restore) => {
                let session = session.unwrap_or(&self.current);
                let is_it = |name: &&RecordName| name.session == session && (name.run, name.restore) == (run, restore);
                self.names().find(is_it).ok_or_else(|| {
                    let number = RecordName { session: String::new(), run, restore }.number();
                    none(format!("nothing is kept of {number} in session {}", escape_line(session, SESSION_COLUMNS)))
                })
            }
            RecordChoice::FromNewest(back) => {
                let mut names = self.names().filter(|name| session.is_none_or(|session| name.session == session));
                names.nth(back - 1).ok_or_else(|| none(format!("there are fewer than {back} records")))
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &RecordName> {
        self.records.iter().map(|(name, _)| name)
    }

    /// The session of this name, or the only one whose name begins so.
    fn session(&self, given: &str) -> Result<&str, Notice> {
        let mut alike: Vec<&str> = self.names().map(|name| name.session.as_str()).collect();
        alike.retain(|name| name.starts_with(given));
        alike.sort_unstable();
        alike.dedup();
        let shown = || escape_line(given, SESSION_COLUMNS);
        match (alike.iter().find(|name| **name == given), &alike[..]) {
            (Some(name), _) | (None, [name]) => Ok(name),
            (None, []) => Err(none(format!("nothing is kept of a session {}", shown()))),
            _ => Err(none(format!("the names of several sessions begin with {}", shown()))),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(&self, name: &RecordName) -> Result<Record, Notice> {
        Record::read(self.store()?, name).map_err(|error| {
            let problem = format_args!("cannot read what is kept of {}: {}", self.shown(name), reason(&error));
            Notice::failed(problem, "rexec kept lists the records")
        })
    }

    /// The newest record of a restore of the same run that has what cannot come back from this one, and how much of that.
    /// What a restore has brought back is moved there when the next one brings something else to its place.
    pub(super) fn moved(&self, record: &Record, plan: &Plan) -> Option<(u64, RecordName)> {
        let gone = plan.stuck.iter().filter(|(_, obstacle)| *obstacle == Obstacle::ObjectGone);
        let gone: HashSet<_> = gone.map(|(index, _)| identity(&record.items[*index])).collect();
        let is_near = |name: &&RecordName| {
            name.session == record.name.session && name.run == record.name.run && name.restore > record.name.restore
        };
        if gone.is_empty() {
            return None;
        }
        self.names().filter(is_near).take(MOVED_MAX).find_map(|name| {
            let other = self.read(name).ok()?;
            let standing = Comparison::of(self.store().ok()?, &other).plan(&[], false);
            let items = standing.todo.iter().filter(|index| gone.contains(&identity(&other.items[**index])));
            Some((items.count() as u64, name.clone())).filter(|(count, _)| *count > 0)
        })
    }

    /// A record's name as a person writes it.
    pub(super) fn shown(&self, name: &RecordName) -> String {
        let session = if name.session == self.current { String::new() } else { format!("{}:", name.session) };
        escape_line(&(session + &name.number()), SESSION_COLUMNS)
    }

    /// The command of a record, if the journal has it.
    pub(super) fn command(&self, name: &RecordName) -> Option<String> {
        let session = self.journals.iter().find(|session| session.name == name.session)?;
        let run = history::find(session, name.run).ok().flatten()?;
        Some(run.start.card.command)
    }
}

/// A path and what stood there. What comes back has its size and time; a copy has another inode.
fn identity(item: &Item) -> (&[u8], u64, (i64, u32)) {
    (&item.path.0, item.size, item.mtime)
}

/// What is kept of a run and would come back, in words, and how much is not.
pub(super) fn kept_of(run: &FoundRun) -> Option<String> {
    let seq = run.start.card.seq;
    let store = Store::open(&run.home.join(KEPT)).ok()?;
    let name = RecordName { session: run.session.clone(), run: seq, restore: None };
    let record = Record::read(&store, &name).ok()?;
    let plan = Comparison::of(&store, &record).plan(&[], false);
    let (count, missed) = (plan.files, plan.missed.len() as u64);
    let (files, verb) = (counted(count, "file", "files"), if count == 1 { "is" } else { "are" });
    let not = if missed == 0 { String::new() } else { format!("; not {}", counted(missed, "path", "paths")) };
    let text = format!("{files} ({}) {verb} kept: rexec undo {}:{seq}{not}", size(plan.bytes), run.session);
    (count > 0).then_some(text)
}

/// When a record was begun, as in the journal.
pub(super) fn time(head: &Head) -> String {
    timestamp(UNIX_EPOCH + Duration::from_secs(head.time.min(TIME_MAX)))
}

fn none(problem: impl std::fmt::Display) -> Notice {
    Notice::new(exit_code::NO_SUCH_RUN, problem, "rexec kept lists what is kept, and how it is named")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        let parsed = |word| RecordReference::parse(word).map(|it| (it.session, it.choice));
        let of = |session: &str| Some(session.to_owned());
        assert_eq!(parsed("45"), Some((None, RecordChoice::Number(45, None))));
        assert_eq!(parsed("#45.1"), Some((None, RecordChoice::Number(45, Some(1)))));
        assert_eq!(parsed("-2"), Some((None, RecordChoice::FromNewest(2))));
        let session = "2026-05-21-09:42:18-2";
        assert_eq!(parsed("2026-05-21-09:42:18-2:7.3"), Some((of(session), RecordChoice::Number(7, Some(3)))));
        for word in ["", "-", "-0", "--1", "+1", "1x", ":4", "x:", "45.", ".1", "45.1.2", "45.x", "4 5", "last"] {
            assert_eq!(parsed(word), None, "{word}");
        }
    }
}
