//! Removes records that are old, and the oldest ones while the store has too much in it or the disk too little room.
//!
//! Invariants: the age of a record is that of its manifest, whatever that says; while its host is too young for that, it is not old. A record goes as a whole, its manifest last, so
//! that one whose removal was cut off is removed later.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::manifest::Line;
use super::store::{self, Store};
use crate::limits;
use crate::sys::folder::{Folder, Space};

/// The end of a manifest that has its last line, bytes.
const LAST_LINE_BYTES: u64 = 256;
const MANIFEST_SUFFIX: &[u8] = b".jsonl";

/// What a store may have.
#[derive(Debug, Clone, Copy)]
struct Bounds<'a> {
    /// The oldest time of a record, seconds since 1970.
    since: i64,
    /// The session whose records are not too old, whatever the clock was set to.
    young: Option<&'a str>,
    /// Bytes of all records together.
    most: u64,
    /// Bytes of the disk that stay free.
    reserve: u64,
}

/// A record, as far as its place in the order matters.
struct Aged {
    /// When its manifest was written, seconds and nanoseconds since 1970.
    time: (i64, u32),
    name: String,
    /// What its last line says, bytes; 0 as long as it is not settled.
    bytes: u64,
}

/// Removes what is too old or too much, but of the session that is `young` only what is too much.
///
/// # Errors
/// There is no store, or it cannot be read.
pub fn tidy(store: &Path, young: Option<&str>) -> io::Result<()> {
    let store = Store::open(store)?;
    let records = records(&store)?;
    let kept = records.iter().map(|record| record.bytes).fold(0, u64::saturating_add);
    let Space { size, free } = store.folder.space()?;
    let oldest = SystemTime::now().checked_sub(limits::KEPT_AGE);
    let oldest = oldest.and_then(|oldest| oldest.duration_since(SystemTime::UNIX_EPOCH).ok());
    let bounds = Bounds {
        since: oldest.map_or(0, |oldest| i64::try_from(oldest.as_secs()).unwrap_or(i64::MAX)),
        young,
        most: (size / 10).min(free.saturating_add(kept) / 4),
        reserve: reserve(size),
    };
    tidy_within(&store, records, bounds)
}

/// Removes the oldest records as long as the disk has too little room. Returns the time after which it may have so again.
///
/// # Errors
/// There is no store, or it cannot be read.
pub fn make_room(store: &Path) -> io::Result<Duration> {
    let store = Store::open(store)?;
    let reserve = |space: Space| reserve(space.size);
    let space = store.folder.space()?;
    if space.free < reserve(space) {
        tidy_within(
            &store,
            records(&store)?,
            Bounds { since: 0, young: None, most: u64::MAX, reserve: reserve(space) },
        )?;
    }
    let spare = store.folder.space()?.free.saturating_sub(reserve(space));
    let soonest = Duration::from_secs(spare / limits::FILLED_BYTES_A_SECOND);
    Ok(soonest.clamp(limits::ROOM_LOOKS_SHORTEST, limits::ROOM_LOOKS_LONGEST))
}

/// Returns true if the disk has so little room that no more should be kept there that takes so many bytes.
pub(super) fn is_short_of_room(folder: &Folder, bytes: u64) -> bool {
    folder.space().is_ok_and(|space| space.free < reserve(space.size).saturating_add(bytes))
}

fn reserve(size: u64) -> u64 {
    (size / 10).min(limits::KEPT_RESERVE_BYTES)
}

fn tidy_within(store: &Store, mut records: Vec<Aged>, bounds: Bounds<'_>) -> io::Result<()> {
    records.sort_by(|one, other| (one.time, &one.name).cmp(&(other.time, &other.name)));
    let mut kept = records.iter().map(|record| record.bytes).fold(0, u64::saturating_add);
    for record in records {
        let is_over = kept > bounds.most || store.folder.space()?.free < bounds.reserve;
        if record.time.0 >= bounds.since && !is_over {
            return Ok(());
        }
        if !is_over && bounds.young.is_some_and(|young| is_of(&record.name, young)) {
            continue;
        }
        store::discard(store, &record.name)?;
        kept = kept.saturating_sub(record.bytes);
    }
    Ok(())
}

/// Returns true if a record has this name because of a run of this session.
fn is_of(record: &str, session: &str) -> bool {
    let run = record.strip_prefix(session).and_then(|rest| rest.strip_prefix('-'));
    run.is_some_and(|run| run.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

fn records(store: &Store) -> io::Result<Vec<Aged>> {
    let mut found = Vec::new();
    for entry in store.folder.list()? {
        let name = entry.name.strip_suffix(MANIFEST_SUFFIX).and_then(|name| std::str::from_utf8(name).ok());
        let Some(name) = name else { continue };
        let Ok((mut manifest, facts)) = store.folder.read(&entry.name) else { continue };
        let mut end = Vec::new();
        let last = facts.size.saturating_sub(LAST_LINE_BYTES);
        manifest.seek(SeekFrom::Start(last))?;
        manifest.take(LAST_LINE_BYTES).read_to_end(&mut end)?;
        let line = end.strip_suffix(b"\n").and_then(|end| end.rsplit(|byte| *byte == b'\n').next());
        let bytes = match line.and_then(Line::decode) {
            Some(Line::Done { bytes, .. }) => bytes,
            _ => 0,
        };
        found.push(Aged { time: facts.mtime, name: name.to_owned(), bytes });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::path::PathBuf;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let top = std::env::temp_dir().join(format!("rexec-tidy-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&top);
            fs::create_dir_all(&top).unwrap();
            Self(top.canonicalize().unwrap())
        }

        /// Makes a record with an object, written at this time.
        fn record(&self, name: &str, time: u64, bytes: u64) {
            fs::create_dir_all(self.0.join(name).join("0")).unwrap();
            fs::write(self.0.join(name).join("0/0"), "x").unwrap();
            let manifest = self.0.join(format!("{name}.jsonl"));
            fs::write(&manifest, [&b"{}\n"[..], &Line::Done { settled: true, bytes, is_cut: false }.encode()].concat())
                .unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time);
            File::options().write(true).open(&manifest).unwrap().set_modified(time).unwrap();
        }

        fn left_within(&self, bounds: Bounds<'_>) -> Vec<String> {
            let store = Store::open(&self.0).unwrap();
            tidy_within(&store, records(&store).unwrap(), bounds).unwrap();
            left(&self.0)
        }
    }

    /// The names of the records that are left.
    fn left(store: &Path) -> Vec<String> {
        let names = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names = names.filter(|name| !name.contains('.')).collect::<Vec<_>>();
        names.sort();
        names
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const ALL: Bounds<'_> = Bounds { since: 0, young: None, most: u64::MAX, reserve: 0 };

    #[test]
    fn the_oldest_records_go_first() {
        let place = Place::new("order");
        for (name, time) in [("s-3", 100), ("s-1", 300), ("s-2", 200)] {
            place.record(name, time, 10);
        }
        assert_eq!(place.left_within(ALL), ["s-1", "s-2", "s-3"]);
        assert_eq!(place.left_within(Bounds { since: 301, young: Some("s"), ..ALL }), ["s-1", "s-2", "s-3"]);
        assert_eq!(place.left_within(Bounds { since: 101, young: Some("s-3"), ..ALL }), ["s-1", "s-2"]);
        assert_eq!(place.left_within(Bounds { most: 19, ..ALL }), ["s-1"]);
        assert_eq!(place.left_within(Bounds { reserve: u64::MAX, ..ALL }), Vec::<String>::new());
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0, "with their manifests");
    }

    #[test]
    fn a_disk_with_room_to_spare_is_looked_at_seldom_and_loses_nothing() {
        let place = Place::new("room");
        place.record("s-1", 1, u64::MAX);
        let soonest = make_room(&place.0).unwrap();
        assert!((limits::ROOM_LOOKS_SHORTEST..=limits::ROOM_LOOKS_LONGEST).contains(&soonest), "{soonest:?}");
        if !is_short_of_room(&Store::open(&place.0).unwrap().folder, 0) {
            assert_eq!(left(&place.0), ["s-1"]);
        }
        fs::remove_dir_all(&place.0).unwrap();
        assert!(make_room(&place.0).is_err());
    }

    #[test]
    fn what_is_no_record_stays() {
        let place = Place::new("others");
        place.record("s-1", 1, 0);
        fs::write(place.0.join("notes"), "").unwrap();
        fs::create_dir(place.0.join("x.jsonl")).unwrap();
        assert_eq!(place.left_within(Bounds { since: 100, ..ALL }), ["notes"]);
        assert!(place.0.join("x.jsonl").exists());
        tidy(&place.0, None).unwrap();
    }
}
