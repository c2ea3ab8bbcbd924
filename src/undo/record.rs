//! The records of the store: which there are, what each one says, and how the present compares with it.
//!
//! Invariants: a manifest and its objects may have been replaced by anybody who can write there, so names are checked, objects are
//! compared with what the manifest says of them, and sizes are bounded. Nothing is changed here.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io::{self, Read};

use super::manifest::{Around, Head, Item, Kind, Line, Lines, Missed, Object, VERSION, Way, Why};
use super::present::Present;
use super::store::{self, Store, is_below, manifest_name, record_name, split};
use crate::limits;
use crate::sys::folder::{self, Facts, Folder, Sort};
use crate::text::reason::reason;

/// Whose record it is. `restore` is the number of the restore before which it was kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordName {
    pub session: String,
    pub run: u64,
    pub restore: Option<u32>,
}

impl RecordName {
    /// Reads the name of a record's directory or manifest.
    fn of_file(name: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(name).ok()?;
        let text = text.strip_suffix(".jsonl").unwrap_or(text);
        let (session, number) = text.rsplit_once('-')?;
        let (run, restore) = match number.split_once('.') {
            Some((run, restore)) => (run, Some(restore.parse().ok()?)),
            None => (number, None),
        };
        let name = Self { session: session.to_owned(), run: run.parse().ok()?, restore };
        (name.directory().ok()? == text).then_some(name)
    }

    /// The name of its directory of objects.
    ///
    /// # Errors
    /// The session is no name.
    pub fn directory(&self) -> io::Result<String> {
        let run = record_name(&self.session, self.run)?;
        Ok(self.restore.map_or(run.clone(), |restore| format!("{run}.{restore}")))
    }

    /// The number of the record in its session: `45`, or `45.1`.
    #[must_use]
    pub fn number(&self) -> String {
        self.restore.map_or(self.run.to_string(), |restore| format!("{}.{restore}", self.run))
    }
}

/// The names of all records, also of those that cannot be read.
///
/// # Errors
/// The store cannot be read.
pub fn names(store: &Store) -> io::Result<BTreeSet<RecordName>> {
    let entries = match store.folder.list() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            store.release()?;
            store.folder.list()?
        }
        entries => entries?,
    };
    Ok(entries.iter().filter_map(|entry| RecordName::of_file(&entry.name)).collect())
}

/// The first line of a record. `None` if it cannot be read, or says that it is another's.
#[must_use]
pub fn head(store: &Store, name: &RecordName) -> Option<Head> {
    open(store, name).ok().map(|(head, _)| head)
}

fn open(store: &Store, name: &RecordName) -> io::Result<(Head, Lines<impl Read + use<>>)> {
    let file = store.folder.read(&manifest_name(&name.directory()?))?.0;
    let mut lines = Lines::of(file.take(limits::MANIFEST_BYTES_MAX + limits::MANIFEST_LINE_BYTES_MAX));
    match lines.next() {
        Some(Line::Head(head)) if is_of(&head, name) => Ok((head, lines)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn has_object(store: &Store, name: &RecordName, object: Object) -> bool {
    let record = name.directory().and_then(|directory| store.folder.inner(directory.as_bytes()));
    record.is_ok_and(|record| store::look(&record, object).is_ok())
}

fn is_of(head: &Head, name: &RecordName) -> bool {
    head.v == VERSION && head.session == name.session && head.run == name.run && head.restore == name.restore
}

/// The mode of directories that a restore has made, until all is in them: nobody else makes them so.
pub(super) const UNFINISHED: u32 = 0o1700;

/// What a record says.
#[derive(Debug)]
pub struct Record {
    pub name: RecordName,
    pub head: Head,
    pub items: Vec<Item>,
    pub missed: Vec<Missed>,
    /// Directories whose times have changed.
    pub(super) around: Vec<Around>,
    /// Lines that say what no keeper writes.
    pub refused: u64,
    /// False if what kept it was ended before it had kept all.
    pub is_whole: bool,
    /// Where each directory stands among the items.
    pub(super) directories: HashMap<Vec<u8>, usize>,
    /// The items of objects that have several names.
    shared: HashMap<u64, Vec<usize>>,
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// There is no such record, or its first line is not its head.
    pub fn read(store: &Store, name: &RecordName) -> io::Result<Self> {
        let (head, lines) = open(store, name)?;
        let mut last = None;
        let (mut items, mut missed, mut refused, mut is_whole) = (Vec::<Item>::new(), Vec::new(), 0, false);
        let mut around = Vec::new();
        // Before something is moved, a restore says what stands there; if it was another file then, it says it once more.
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        for line in lines {
            match line {
                Line::Head(_) => break,
                Line::Done { is_cut, .. } => {
                    is_whole = !is_cut;
                    break;
                }
                Line::Missed(line) => missed.push(line),
                Line::Around(line) if is_plain(&line.path.0) => around.push(line),
                Line::Around(_) => refused += 1,
                Line::Item(item) if !is_sound(&item, head.places.len()) => refused += 1,
                Line::Item(item) if name.restore.is_some() => {
                    let place = *places.entry(item.path.0.clone()).or_insert(items.len());
                    if place < items.len() {
                        items[place] = item
                    } else {
                        items.push(item)
                    }
                    last = Some(place);
                }
                Line::Item(item) => items.push(item),
            }
        }
        // The last line of a restore that was cut off may be of a move that never came.
        let is_moved = |item: &Item| item.object.is_some_and(|object| has_object(store, name, object));
        if let Some(place) = last.filter(|place| !is_whole && !is_moved(&items[*place])) {
            items.remove(place);
        }
        let is_directory = |item: &Item| item.kind == Kind::Directory && item.object.is_none();
        let directories = items.iter().enumerate().filter(|(_, item)| is_directory(item));
        let directories = directories.map(|(index, item)| (item.path.0.clone(), index)).collect();
        let mut shared: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, item) in items.iter().enumerate().filter(|(_, item)| item.links > 1) {
            if let Some(object) = item.object {
                shared.entry(object.number).or_default().push(index);
            }
        }
        Ok(Self { name: name.clone(), head, items, missed, around, refused, is_whole, directories, shared })
    }

    /// The items that are one of these paths, or below; without paths, all.
    #[must_use]
    pub fn chosen(&self, paths: &[Vec<u8>]) -> Vec<usize> {
        (0..self.items.len()).filter(|&index| is_chosen(&self.items[index].path.0, paths)).collect()
    }
}

fn is_chosen(path: &[u8], paths: &[Vec<u8>]) -> bool {
    paths.is_empty() || paths.iter().any(|top| is_below(path, top))
}

impl Missed {
    /// True if what stands at the path may be what stood there.
    pub(super) fn is_as_before(&self, there: &Facts) -> bool {
        self.was.is_none_or(|was| was == (there.size, there.mtime))
    }
}

/// True if the path is absolute and has no step that leads elsewhere.
fn is_plain(path: &[u8]) -> bool {
    let is_name = |step: &[u8]| !step.is_empty() && step != b"." && step != b"..";
    path.len() <= limits::KEPT_PATH_BYTES_MAX
        && !path.contains(&0)
        && path.strip_prefix(b"/").is_some_and(|steps| steps.split(|byte| *byte == b'/').all(is_name))
}

fn is_sound(item: &Item, places: usize) -> bool {
    is_plain(&item.path.0)
        && match item.object {
            // Restores may keep a directory as a whole.
            Some(object) => object.place < places && (item.kind != Kind::Directory || object.way == Way::Link),
            None => item.kind == Kind::Directory,
        }
}

/// How what a record has stands to what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Present,
    /// Nothing is there, and it can come back.
    Lost,
    /// Something else is there, which is kept before it comes back.
    Changed,
    /// A directory that a restore has made and left without its mode.
    Unfinished,
    Stuck(Obstacle),
}

/// Why something cannot come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// What kept it is gone, or is not what the manifest says.
    ObjectGone,
    /// A symbolic link stands in the place of a directory on the way.
    Link,
    /// Something else does.
    NoDirectory,
    /// Something else has its name.
    InTheWay,
    /// Only the file itself can come back, to its own place.
    NoCopy,
    Failed(String),
}

impl Obstacle {
    /// The word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::ObjectGone => "object_gone",
            Self::Link => "link",
            Self::NoDirectory => "no_directory",
            Self::InTheWay => "in_the_way",
            Self::NoCopy => "no_copy",
            Self::Failed(_) => "failed",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ObjectGone => "it came back before, or what kept it is gone or was changed",
            Self::Link => "a directory of its path is a symbolic link now",
            Self::NoDirectory => "a directory of its path is something else now",
            Self::InTheWay => "something else has this name",
            Self::NoCopy => "it cannot be copied",
            Self::Failed(why) => why,
        })
    }
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            _ if folder::is_link(&error) => Self::Link,
            io::ErrorKind::AlreadyExists => Self::InTheWay,
            io::ErrorKind::Unsupported => Self::NoCopy,
            _ => Self::Failed(reason(&error)),
        }
    }
}

/// Why a path was not kept, in words.
#[must_use]
pub fn not_kept(why: Why) -> &'static str {
    match why {
        Why::Unknown => "the command's text does not tell which files these are",
        Why::TooLarge => "it is too large to be copied",
        Why::Forbidden => "it may not be read",
        Why::Excepted => "it is a cache, or excepted",
        Why::TooLate => "keeping took too long",
        Why::NoRoom => "there was no room on the disk",
        Why::Wiped => "it is wiped so that nothing is left of it",
        Why::InStore => "it holds what is kept, or lies in it",
        Why::Failed => "it could not be kept",
    }
}

/// Where something comes back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A directory is made.
    Nothing,
    Object,
    /// Another name of the same file, which is there: that of the item at this index.
    Twin(usize),
}

/// The objects of a record.
#[derive(Debug)]
pub(super) struct Kept {
    /// `None` if there are none.
    record: Option<Folder>,
    group: Option<(u64, Folder)>,
}

impl Kept {
    /// The directory of an object, and its name in it.
    pub(super) fn place(&mut self, object: Object) -> io::Result<(&Folder, String)> {
        let path = object.path();
        let (name, slot) = path.split_once('/').unwrap_or_default();
        let number = object.number / Object::GROUP;
        if self.group.as_ref().is_none_or(|(open, _)| *open != number) {
            let record = self.record.as_ref().ok_or(io::ErrorKind::NotFound)?;
            self.group = Some((number, record.inner(name.as_bytes())?));
        }
        let (_, group) = self.group.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok((group, slot.to_owned()))
    }

    fn look(&mut self, object: Object) -> io::Result<Facts> {
        let (group, name) = self.place(object)?;
        group.look(name.as_bytes())
    }
}

/// A record beside what is there now.
#[derive(Debug)]
pub struct Comparison<'r> {
    record: &'r Record,
    pub(super) present: Present,
    pub(super) kept: Kept,
    /// The last path that is missing and may have others below it, and what prevents that it is made.
    missing: Option<(Vec<u8>, Option<Obstacle>)>,
    /// Of objects that are gone: a name that holds the file.
    twins: HashMap<u64, Option<usize>>,
}

/// What a restore would do.
#[derive(Debug, Default)]
pub struct Plan {
    /// The items that come back.
    pub todo: Vec<usize>,
    pub files: u64,
    pub bytes: u64,
    pub directories: u64,
    /// How many of them stand where something else is.
    pub changed: u64,
    /// What cannot come back.
    pub stuck: Vec<(usize, Obstacle)>,
    /// Where what was not kept stands among what the record missed.
    pub missed: Vec<usize>,
}

impl<'r> Comparison<'r> {
    #[must_use]
    pub fn of(store: &Store, record: &'r Record) -> Self {
        let objects = record.name.directory().and_then(|name| store.folder.inner(name.as_bytes()));
        let kept = Kept { record: objects.ok(), group: None };
        Self { record, present: Present::default(), kept, missing: None, twins: HashMap::new() }
    }

    /// What a restore of these paths would do; without paths, of all. With `is_elsewhere` it makes copies elsewhere.
    pub fn plan(&mut self, paths: &[Vec<u8>], is_elsewhere: bool) -> Plan {
        let mut plan = Plan::default();
        for index in self.record.chosen(paths) {
            let standing = self.standing(index);
            let item = &self.record.items[index];
            match standing {
                Standing::Present => continue,
                Standing::Stuck(obstacle) if !is_elsewhere || obstacle == Obstacle::ObjectGone => {
                    plan.stuck.push((index, obstacle));
                    continue;
                }
                Standing::Changed => plan.changed += u64::from(!is_elsewhere),
                Standing::Lost | Standing::Unfinished | Standing::Stuck(_) => {}
            }
            plan.todo.push(index);
            if item.kind == Kind::Directory {
                plan.directories += 1;
            } else {
                plan.files += 1;
                plan.bytes = plan.bytes.saturating_add(item.size);
            }
        }
        let missed = self.record.missed.iter().enumerate();
        let missed = missed.filter(|(_, missed)| match missed.why {
            Why::Unknown | Why::Wiped => paths.is_empty(),
            _ => is_chosen(&missed.path.0, paths) && !(is_plain(&missed.path.0) && self.is_as_before(missed)),
        });
        plan.missed = missed.map(|(index, _)| index).collect();
        plan
    }

    fn is_as_before(&mut self, missed: &Missed) -> bool {
        matches!(self.present.look(&missed.path.0), Ok(Some(facts)) if missed.is_as_before(&facts))
    }

    /// How an item stands.
    pub fn standing(&mut self, index: usize) -> Standing {
        let item = &self.record.items[index];
        let there = match &self.missing {
            Some((top, _)) if is_below(split(&item.path.0).0, top) => Ok(None),
            _ => self.present.look(&item.path.0),
        };
        let has_object = match item.object {
            Some(object) => self.kept.look(object).is_ok_and(|facts| is_object(item, &facts)),
            None => false,
        };
        match there {
            Ok(Some(facts)) if is_same(item, &facts, has_object) => {
                let is_made = item.object.is_none() && facts.mode == UNFINISHED && item.mode != UNFINISHED;
                if is_made { Standing::Unfinished } else { Standing::Present }
            }
            _ if self.source_beside(index, has_object).is_none() => Standing::Stuck(Obstacle::ObjectGone),
            Err(error) => Standing::Stuck(error.into()),
            Ok(Some(facts)) if item.object.is_none() && facts.sort == Sort::Symlink => Standing::Stuck(Obstacle::Link),
            Ok(Some(_)) => Standing::Changed,
            Ok(None) => self.obstacle(split(&item.path.0).0).map_or(Standing::Lost, Standing::Stuck),
        }
    }

    /// Where an item comes back from. `None` if that is gone.
    pub(super) fn source(&mut self, index: usize) -> Option<Source> {
        let item = &self.record.items[index];
        let has_object = item.object.is_some_and(|object| {
            let kept = self.kept.look(object);
            kept.is_ok_and(|facts| is_object(item, &facts))
        });
        self.source_beside(index, has_object)
    }

    fn source_beside(&mut self, index: usize, has_object: bool) -> Option<Source> {
        let Some(object) = self.record.items[index].object else { return Some(Source::Nothing) };
        if has_object {
            return Some(Source::Object);
        }
        let names = self.record.shared.get(&object.number)?;
        let known = self.twins.get(&object.number).copied();
        let found = match known {
            Some(None) => None,
            Some(Some(twin)) if self.holds(twin) => Some(twin),
            _ => names.iter().copied().find(|&twin| self.holds(twin)),
        };
        self.twins.insert(object.number, found);
        found.filter(|twin| *twin != index).map(Source::Twin)
    }

    /// True if an item whose object is gone is there.
    fn holds(&mut self, index: usize) -> bool {
        let item = &self.record.items[index];
        matches!(self.present.look(&item.path.0), Ok(Some(facts)) if is_same(item, &facts, false))
    }

    /// What prevents that a directory is there or is made.
    fn obstacle(&mut self, directory: &[u8]) -> Option<Obstacle> {
        if let Some((_, obstacle)) = self.missing.as_ref().filter(|(top, _)| is_below(directory, top)) {
            return obstacle.clone();
        }
        let missing = match self.present.approach(directory) {
            Ok(missing) => missing,
            Err(error) => return Some(error.into()),
        };
        let top = *missing.first()?;
        let obstacle = match self.present.look(top) {
            Err(error) => Some(error.into()),
            Ok(Some(facts)) if facts.sort == Sort::Symlink => Some(Obstacle::Link),
            Ok(Some(_)) if !self.record.directories.contains_key(top) => Some(Obstacle::NoDirectory),
            Ok(_) => None,
        };
        self.missing = Some((top.to_vec(), obstacle.clone()));
        obstacle
    }

    /// Forgets what is missing: something was made.
    pub(super) fn has_made(&mut self) {
        self.missing = None;
    }
}

/// True if what stands at an item's path is the item.
fn is_same(item: &Item, there: &Facts, has_object: bool) -> bool {
    let is_file = there.identity() == (item.dev, item.ino);
    // A copy that was restored has an inode of its own, and has left the store.
    let is_restored = !has_object && (there.size, there.mtime) == (item.size, item.mtime);
    Kind::from(there.sort) == item.kind
        && match item.object.map(|object| object.way) {
            None => true,
            Some(Way::Link) => is_file || is_restored,
            Some(Way::Clone | Way::Copy) => {
                is_restored || is_file && (there.size, there.mtime) == (item.size, item.mtime)
            }
        }
}

/// True if an object is what the manifest says.
fn is_object(item: &Item, kept: &Facts) -> bool {
    let is_it = match item.object.map(|object| object.way) {
        // The file itself, also if a process that has it open has written to it since.
        Some(Way::Link) => kept.identity() == (item.dev, item.ino),
        // A copy that has another name would be somebody's file.
        _ => kept.links == 1 && (kept.size, kept.mtime) == (item.size, item.mtime),
    };
    Kind::from(kept.sort) == item.kind && is_it
}
