//! Finds the files of a directory that are journals, and their hosts.
//!
//! Invariant: a file counts as a journal only if its name has the form of one. A recorder writes to a file that it did
//! not make only if the first line is a journal's, too. All other files are left as they are.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::journal::reader::Header;
use crate::journal::record::{OpenRecord, VERSION, timestamp};

/// The longest first line, bytes. A file with a longer one is not a journal.
const FIRST_LINE_BYTES: u64 = 4 << 10;
/// How far the clock of the host that named a journal may be ahead of a reader's.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);
/// The form of a journal's name: `d` stands for a digit.
const TIME: &[u8] = b"dddd-dd-dd-dd:dd:dd";

/// The journals of the directory `home`, newest first: the name without extension, and the path.
///
/// # Errors
/// Those of opendir(3) and readdir(3).
pub fn journals(home: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(home)? {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jsonl");
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let is_ours = is_journal && split(name).is_some();
        if is_ours && fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            found.push((name.to_owned(), path));
        }
    }
    // A host whose clock was wrong may have named its journal after a time that is to come. It is no newer for that.
    let latest = of_stamp(&timestamp(SystemTime::now() + CLOCKS_DIFFER));
    let is_to_come = |name: &str| age_key(name).0 > latest.as_str();
    found.sort_by(|(one, _), (other, _)| (is_to_come(one), age_key(other)).cmp(&(is_to_come(other), age_key(one))));
    Ok(found)
}

/// The name of a journal that begins at the time of this stamp: 2026-05-21T09:42:18.123Z → 2026-05-21-09:42:18.
pub(super) fn of_stamp(stamp: &str) -> String {
    stamp.chars().take(TIME.len()).map(|c| if c == 'T' { '-' } else { c }).collect()
}

/// Splits `2026-05-21-09:42:18-2` into time and number. The first journal of a second has no number in its name, which
/// counts as 1. `None` if the name is not a journal's.
pub(super) fn split(name: &str) -> Option<(&str, u32)> {
    let (time, rest) = name.split_at_checked(TIME.len())?;
    let fits = |(form, byte): (&u8, u8)| if *form == b'd' { byte.is_ascii_digit() } else { *form == byte };
    if !TIME.iter().zip(time.bytes()).all(fits) {
        return None;
    }
    if rest.is_empty() {
        return Some((time, 1));
    }
    let digits = rest.strip_prefix('-')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let number = digits.parse().ok().filter(|&number| is_number && number > 1)?;
    Some((time, number))
}

pub(super) fn path(home: &Path, name: &str) -> PathBuf {
    home.join(format!("{name}.jsonl"))
}

/// The opposite of [`split`].
pub(super) fn join(time: &str, number: u32) -> String {
    if number == 1 { time.to_owned() } else { format!("{time}-{number}") }
}

/// Sorts names by age: `…:18`, `…:18-2`, `…:18-10`.
fn age_key(name: &str) -> (&str, u32) {
    split(name).unwrap_or((name, 1))
}

/// The first line of a journal. `None` if the file is not one.
#[must_use]
pub fn first_line(file: &File) -> Option<OpenRecord> {
    let mut start = vec![0; usize::try_from(FIRST_LINE_BYTES).expect("it is small")];
    let length = file.read_at(&mut start, 0).ok()?;
    let end = memchr::memchr(b'\n', &start[..length])?;
    let header: Header = serde_json::from_slice(&start[..end]).ok()?;
    let is_known = header.kind == "open" && (1..=VERSION).contains(&header.v);
    if is_known { serde_json::from_slice(&start[..end]).ok() } else { None }
}

/// The journal in which the host of `path` went on, with its name: the newest one that says so.
pub(super) fn successor(path: &Path, open: &OpenRecord) -> Option<(String, File)> {
    let name = path.file_stem()?.to_str()?;
    journals(path.parent()?).ok()?.into_iter().find_map(|(next, path)| {
        let file = File::open(path).ok()?;
        let continues = |next: OpenRecord| {
            next.continues.as_deref() == Some(name) && (next.pid, next.started) == (open.pid, open.started)
        };
        first_line(&file).is_some_and(continues).then_some((next, file))
    })
}

/// When a process began, in clock ticks since boot. `None` if it has ended. See proc_pid_stat(5).
pub(super) fn started(pid: u32) -> Option<u64> {
    let mut stat = Vec::new();
    File::open(format!("/proc/{pid}/stat")).ok()?.read_to_end(&mut stat).ok()?;
    // The program's name is the second field, in parentheses, and may contain anything.
    let rest = stat.get(memchr::memrchr(b')', &stat)? + 2..)?;
    let mut fields = rest.split(|&byte| byte == b' ');
    let is_alive = !matches!(fields.next()?, b"Z" | b"X");
    let started = std::str::from_utf8(fields.nth(18)?).ok()?.parse().ok()?;
    is_alive.then_some(started)
}

/// Returns true if the host that wrote this first line still runs. A host that did not write when it began counts as
/// dead; a repair still spares its file while that is locked.
#[must_use]
pub fn is_alive(open: &OpenRecord) -> bool {
    open.started.is_some() && started(open.pid) == open.started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_age() {
        let names = [
            "2026-05-20-17:03:55",
            "2026-05-21-09:42:18",
            "2026-05-21-09:42:18-2",
            "2026-05-21-09:42:18-10",
            "2026-05-21-09:42:19",
        ];
        assert!(names.is_sorted_by_key(|name| age_key(name)));
        for name in names {
            let (time, number) = split(name).unwrap();
            assert_eq!(join(time, number), name);
        }
    }

    #[test]
    fn a_journal_from_a_time_to_come_is_not_the_newest() {
        let home = std::env::temp_dir().join(format!("rexec-names-{}", std::process::id()));
        fs::create_dir(&home).unwrap();
        let now = of_stamp(&timestamp(SystemTime::now()));
        let wanted = [&*format!("{now}-2"), &now, "2026-05-21-09:42:18", "2199-01-02-00:00:00", "2199-01-01-00:00:00"];
        for name in wanted {
            fs::write(path(&home, name), "").unwrap();
        }
        let found: Vec<String> = journals(&home).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, wanted);
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn other_names_are_not_journals() {
        for name in [
            "",
            "notes",
            "2026-05-20",
            "2026-05-20-17:03:5",
            "2026-05-20-17:03:55x",
            "2026-05-20-17:03:55-",
            "2026-05-20-17:03:55-1",
            "2026-05-20-17:03:55-02",
            "2026-05-20-17:03:55-x",
            "2026-05-20T17:03:55",
            "2026-05-20-17:03:55-99999999999",
            "ä026-05-20-17:03:55",
            "x2026-05-20-17:03:55",
        ] {
            assert_eq!(split(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_is_known_by_when_it_began() {
        let (pid, now) = (std::process::id(), started(std::process::id()));
        assert!(now.is_some());
        assert!(is_alive(&OpenRecord { pid, started: now, ..OpenRecord::default() }));
        assert!(!is_alive(&OpenRecord { pid, started: now.map(|at| at + 1), ..OpenRecord::default() }));
        assert!(!is_alive(&OpenRecord { pid, ..OpenRecord::default() }));
        assert!(!is_alive(&OpenRecord { pid: u32::MAX, started: now, ..OpenRecord::default() }));
    }
}
