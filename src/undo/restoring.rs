//! Brings back what a record has.
//!
//! Invariants: nothing is overwritten or removed; what stands in the way is moved into a record of its own first, whose line is
//! written before. No symbolic link is followed. Whatever ends this in between, the same restore brings the rest.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::keeping::item;
use super::manifest::{Bytes, Head, Item, Kind, Line, Object, VERSION, Way};
use super::record::{self, Comparison, Obstacle, Record, RecordName, Source, Standing, UNFINISHED};
use super::store::{Objects, Store, manifest_name, split};
use crate::sys::folder::{self, Facts, Folder, Sort};

/// The agent of the records that restores make.
pub const RESTORER: &str = "rexec undo";
/// How many numbers of records are tried, where others make some, too.
const TRIES: u32 = 64;

/// What was brought back.
#[derive(Debug, Default)]
pub struct Restored {
    pub files: u64,
    pub bytes: u64,
    pub directories: u64,
    /// Files that a process has written to after they were destroyed.
    pub written: u64,
    /// How many things stood in the way, and are kept.
    pub kept: u64,
    /// The record that has them.
    pub kept_as: Option<RecordName>,
    pub failed: Vec<(Vec<u8>, Obstacle)>,
}

/// The number of the next restore of a record's run.
///
/// # Errors
/// The store cannot be read.
pub fn next_restore(store: &Store, name: &RecordName) -> io::Result<u32> {
    let names = record::names(store)?;
    let of_run = names.iter().filter(|other| (&other.session, other.run) == (&name.session, name.run));
    Ok(of_run.filter_map(|other| other.restore).max().unwrap_or(0).saturating_add(1))
}

/// Brings these items back to where they were.
#[must_use]
pub fn restore(store: &Store, record: &Record, todo: &[usize]) -> Restored {
    Restorer::new(store, record, None).all(todo)
}

/// Makes copies of these items below a directory, which is made if it is not there. The record stays as it is.
///
/// # Errors
/// The directory can neither be entered nor made.
pub fn restore_to(store: &Store, record: &Record, todo: &[usize], directory: &Path) -> io::Result<Restored> {
    std::fs::create_dir_all(directory)?;
    let to = directory.canonicalize()?.into_os_string().into_vec();
    // Paths that are put behind it begin with a slash.
    let to = if to == b"/" { Vec::new() } else { to };
    Ok(Restorer::new(store, record, Some(to)).all(todo))
}

struct Restorer<'r> {
    store: &'r Store,
    record: &'r Record,
    comparison: Comparison<'r>,
    /// What stands before each path.
    to: Option<Vec<u8>>,
    /// Directories that were made, and get their modes at the end.
    made: Vec<(usize, (u64, u64))>,
    /// With `to`: the first copy of each object that has several names.
    copies: HashMap<u64, Vec<u8>>,
    saved: Option<Saved>,
    restored: Restored,
}

impl<'r> Restorer<'r> {
    fn new(store: &'r Store, record: &'r Record, to: Option<Vec<u8>>) -> Self {
        Self {
            store,
            record,
            comparison: Comparison::of(store, record),
            to,
            made: Vec::new(),
            copies: HashMap::new(),
            saved: None,
            restored: Restored::default(),
        }
    }

    fn all(mut self, todo: &[usize]) -> Restored {
        let around = self.unchanged_around();
        for &index in todo {
            let done = self.item(index);
            self.note(index, done);
        }
        // The deepest were made last: whoever makes something in a directory changes its time.
        for (index, identity) in std::mem::take(&mut self.made).into_iter().rev() {
            let done = self.finish(index, identity);
            self.note(index, done);
        }
        for (path, before, now) in around {
            self.give_time(path, before, &now);
        }
        if let Some(saved) = self.saved {
            self.restored.kept_as = Some(saved.finish());
        }
        self.restored
    }

    /// The directories around what comes back in which nothing has changed since the command: the path, the time that each
    /// had before, and what it is now.
    fn unchanged_around(&mut self) -> Vec<(&'r [u8], (i64, u32), Facts)> {
        let record = self.record;
        let around = if self.to.is_none() { &record.around[..] } else { &[] };
        let unchanged = around.iter().filter_map(|around| {
            let there = self.comparison.present.look(&around.path.0).ok()??;
            let is_it = there.sort == Sort::Directory && around.left == Some(there.mtime);
            is_it.then_some((&around.path.0[..], around.mtime, there))
        });
        unchanged.collect()
    }

    /// Gives a directory its time, if it is the same and something has come back into it.
    fn give_time(&mut self, path: &[u8], mtime: (i64, u32), before: &Facts) {
        let (above, name) = split(path);
        let Ok(folder) = self.comparison.present.enter(above) else { return };
        if let Ok(now) = folder.look(name)
            && now.identity() == before.identity()
            && now.mtime != before.mtime
        {
            // Other users' directories keep their times.
            let _ = folder.give(name, &Facts { mtime, ..now });
        }
    }

    fn note(&mut self, index: usize, done: Result<(), Obstacle>) {
        if let Err(obstacle) = done {
            self.restored.failed.push((self.record.items[index].path.0.clone(), obstacle));
        }
    }

    fn target(&self, item: &Item) -> Vec<u8> {
        [self.to.as_deref().unwrap_or_default(), &item.path.0].concat()
    }

    fn item(&mut self, index: usize) -> Result<(), Obstacle> {
        let item = &self.record.items[index];
        let path = self.target(item);
        match self.comparison.standing(index) {
            Standing::Present => return Ok(()),
            Standing::Stuck(obstacle) if self.to.is_none() || obstacle == Obstacle::ObjectGone => return Err(obstacle),
            Standing::Unfinished if self.to.is_none() => {
                if let Some(facts) = self.comparison.present.look(&path)? {
                    self.made.push((index, facts.identity()));
                    self.restored.directories += 1;
                }
                return Ok(());
            }
            _ => {}
        }
        if item.object.is_none() {
            return self.directory(&path);
        }
        self.directory(split(&path).0)?;
        match self.comparison.present.look(&path)? {
            Some(there) if self.to.is_some() => {
                let is_copied =
                    Kind::from(there.sort) == item.kind && (there.size, there.mtime) == (item.size, item.mtime);
                return if is_copied { Ok(()) } else { Err(Obstacle::InTheWay) };
            }
            Some(there) if self.is_to_be_rewritten(item, &there) => return self.rewrite(index, &path, &there),
            Some(there) => self.keep_first(&path, &there)?,
            None => {}
        }
        self.bring(index, &path)
    }

    /// True for a file that changed in place and has other names, which have its bytes, too, or whose directory may not be
    /// written. Others come back under their names alone.
    fn is_to_be_rewritten(&mut self, item: &Item, there: &Facts) -> bool {
        there.identity() == (item.dev, item.ino)
            && item.object.is_some_and(|object| object.way != Way::Link)
            && (there.links > 1
                || self.comparison.present.enter(split(&item.path.0).0).is_ok_and(|folder| !folder.is_writable()))
    }

    /// Gives a file that changed in place its bytes back in place. The object goes last, so that this can be done again.
    fn rewrite(&mut self, index: usize, path: &[u8], there: &Facts) -> Result<(), Obstacle> {
        let item = &self.record.items[index];
        let object = item.object.ok_or(Obstacle::ObjectGone)?;
        let (directory, name) = split(path);
        let saved = Saved::of(&mut self.saved, self.store, &self.record.name)?;
        let Comparison { present, kept, .. } = &mut self.comparison;
        let folder = present.enter(directory)?;
        saved.keep_copy(folder, name, path)?;
        self.restored.kept += 1;
        let (group, own) = kept.place(object)?;
        folder::overwrite(group, own.as_bytes(), folder, name, there)?;
        group.remove(own.as_bytes())?;
        self.restored.files += 1;
        self.restored.bytes = self.restored.bytes.saturating_add(item.size);
        Ok(())
    }

    /// Enters a directory, and makes it and those above it where they are missing.
    fn directory(&mut self, directory: &[u8]) -> Result<(), Obstacle> {
        for path in self.comparison.present.approach(directory)? {
            let original = path.strip_prefix(self.to.as_deref().unwrap_or_default());
            let index = original.and_then(|path| self.record.directories.get(path)).copied();
            match self.comparison.present.look(path)? {
                Some(there) if there.sort == Sort::Directory => continue,
                Some(there) if there.sort == Sort::Symlink => return Err(Obstacle::Link),
                Some(_) if self.to.is_some() || index.is_none() => return Err(Obstacle::NoDirectory),
                Some(there) => self.keep_first(path, &there)?,
                None => {}
            }
            let (above, name) = split(path);
            let folder = self.comparison.present.enter(above)?;
            match index {
                Some(index) => {
                    self.made.push((index, folder.make_with(name, UNFINISHED)?.facts()?.identity()));
                    self.restored.directories += 1;
                }
                None => folder.make_common(name)?,
            }
            self.comparison.has_made();
        }
        self.comparison.present.enter(directory)?;
        Ok(())
    }

    /// Moves what stands at a path into a record of its own.
    fn keep_first(&mut self, path: &[u8], there: &Facts) -> Result<(), Obstacle> {
        let saved = Saved::of(&mut self.saved, self.store, &self.record.name)?;
        let (directory, name) = split(path);
        saved.keep(self.comparison.present.enter(directory)?, name, path, there)?;
        self.restored.kept += 1;
        if there.sort == Sort::Directory {
            self.comparison.present.forget();
        }
        Ok(())
    }

    fn bring(&mut self, index: usize, path: &[u8]) -> Result<(), Obstacle> {
        let item = &self.record.items[index];
        let (directory, name) = split(path);
        let source = self.comparison.source(index).ok_or(Obstacle::ObjectGone)?;
        let object = item.object.ok_or(Obstacle::ObjectGone)?;
        let Comparison { present, kept, .. } = &mut self.comparison;
        let folder = present.enter(directory)?;
        if let Some(first) = self.copies.get(&object.number) {
            let (directory, first) = split(first);
            Folder::enter(directory)?.link(first, folder, name)?;
            self.restored.files += 1;
            return Ok(());
        }
        let beside;
        let (from, own) = match source {
            Source::Twin(twin) => {
                let (directory, twin) = split(&self.record.items[twin].path.0);
                beside = Folder::enter(directory)?;
                (&beside, twin.to_vec())
            }
            Source::Object | Source::Nothing => {
                let (group, own) = kept.place(object)?;
                (group, own.into_bytes())
            }
        };
        match source {
            _ if self.to.is_some() => {
                copy(from, &own, folder, name)?;
                if item.links > 1 {
                    self.copies.insert(object.number, path.to_vec());
                }
            }
            Source::Twin(_) => from.link(&own, folder, name)?,
            Source::Object | Source::Nothing => match from.move_to(&own, folder, name) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    copy(from, &own, folder, name)?;
                    from.remove(&own)?;
                }
                moved => moved?,
            },
        }
        if item.kind == Kind::Directory {
            self.restored.directories += 1;
            return Ok(());
        }
        self.restored.files += 1;
        self.restored.bytes = self.restored.bytes.saturating_add(item.size);
        let facts = folder.look(name)?;
        let was_written = (facts.size, facts.mtime) != (item.size, item.mtime);
        if object.way == Way::Link && was_written {
            self.restored.written += 1;
            let item = Item { mtime: facts.mtime, ..item.clone() };
            return if facts.links > 1 { Ok(()) } else { give(folder, name, &item, &facts) };
        }
        // What has other names was theirs meanwhile.
        if facts.links > 1 { Ok(()) } else { give(folder, name, item, &facts) }
    }

    fn finish(&mut self, index: usize, identity: (u64, u64)) -> Result<(), Obstacle> {
        let item = &self.record.items[index];
        let path = self.target(item);
        let (directory, name) = split(&path);
        let folder = self.comparison.present.enter(directory)?;
        let facts = folder.look(name)?;
        if facts.identity() == identity { give(folder, name, item, &facts) } else { Err(Obstacle::NoDirectory) }
    }
}

/// Gives a file the attributes that it had.
fn give(folder: &Folder, name: &[u8], item: &Item, now: &Facts) -> Result<(), Obstacle> {
    let then = Facts { mode: item.mode, uid: item.uid, gid: item.gid, mtime: item.mtime, ..*now };
    if !item.xattrs.is_empty() {
        // Whoever may not write gives none, and a new owner takes some away.
        folder.give(name, &Facts { mode: item.mode | 0o600, ..then })?;
    }
    for (attribute, value) in &item.xattrs {
        folder.give_attribute(name, &attribute.0, &value.0)?;
    }
    if then != *now || !item.xattrs.is_empty() {
        folder.give(name, &then)?;
    }
    Ok(())
}

/// Copies anything but a directory, with its attributes.
fn copy(from: &Folder, name: &[u8], to: &Folder, as_name: &[u8]) -> io::Result<(Facts, Way)> {
    match from.look(name)?.sort {
        Sort::File => {
            let (facts, is_shared) = folder::copy(from, name, to, as_name, u64::MAX)?;
            Ok((facts, if is_shared { Way::Clone } else { Way::Copy }))
        }
        Sort::Directory => Err(io::ErrorKind::Unsupported.into()),
        _ => Ok((from.copy_special(name, to, as_name)?, Way::Copy)),
    }
}

/// A record of what stood in the way.
struct Saved {
    name: RecordName,
    manifest: File,
    objects: Objects,
    /// What the files have that were moved there.
    bytes: u64,
}

impl Saved {
    /// The record of a restore, which is begun with its first file.
    fn of<'s>(saved: &'s mut Option<Self>, store: &Store, of: &RecordName) -> io::Result<&'s mut Self> {
        match saved {
            Some(saved) => Ok(saved),
            saved => Ok(saved.insert(Self::begin(store, of)?)),
        }
    }

    fn begin(store: &Store, of: &RecordName) -> io::Result<Self> {
        let first = next_restore(store, of)?;
        for number in first..first.saturating_add(TRIES) {
            let name = RecordName { restore: Some(number), ..of.clone() };
            let directory = name.directory()?;
            let objects = match Objects::make(store, &directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                objects => objects?,
            };
            let own = manifest_name(&directory);
            let new = [&own[..], b".new"].concat();
            let mut manifest = store.folder.create(&new)?;
            let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
            let head = Head {
                v: VERSION,
                session: name.session.clone(),
                run: name.run,
                time: u64::try_from(manifest.metadata()?.mtime()).unwrap_or_default(),
                agent: RESTORER.to_owned(),
                dir: Bytes(here.as_os_str().as_bytes().to_vec()),
                restore: Some(number),
                places: vec![Bytes(store.path.clone())],
            };
            manifest.write_all(&Line::Head(head).encode())?;
            // Without its head it would be nobody's.
            store.folder.rename(&new, &own)?;
            return Ok(Self { name, manifest, objects, bytes: 0 });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn keep(&mut self, folder: &Folder, name: &[u8], path: &[u8], there: &Facts) -> Result<(), Obstacle> {
        let mut object = Object { place: 0, number: self.objects.next, way: Way::Link };
        let (group, own) = self.objects.place()?;
        let mut put =
            |facts: &Facts, object| self.manifest.write_all(&Line::Item(item(path, facts, Some(object))).encode());
        put(there, object)?;
        match folder.move_to(name, group, &own) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let (facts, way) = copy(folder, name, group, &own)?;
                object.way = way;
                put(&facts, object)?;
                if folder.look(name)? != facts {
                    return Err(Obstacle::InTheWay);
                }
                folder.remove(name)?;
            }
            moved => {
                moved?;
                let facts = group.look(&own)?;
                if (facts.identity(), facts.size, facts.mtime) != (there.identity(), there.size, there.mtime) {
                    put(&facts, object)?;
                }
            }
        }
        self.objects.next += 1;
        self.bytes += there.size;
        Ok(())
    }

    /// Keeps a file that stays where it is.
    fn keep_copy(&mut self, folder: &Folder, name: &[u8], path: &[u8]) -> Result<(), Obstacle> {
        let number = self.objects.next;
        let (group, own) = self.objects.place()?;
        let (facts, way) = copy(folder, name, group, &own)?;
        let object = Object { place: 0, number, way };
        self.manifest.write_all(&Line::Item(item(path, &facts, Some(object))).encode())?;
        self.objects.next += 1;
        self.bytes += facts.size;
        Ok(())
    }

    fn finish(mut self) -> RecordName {
        // Without its last line the record counts as well.
        let _ = self.manifest.write_all(&Line::Done { settled: true, bytes: self.bytes, is_cut: false }.encode());
        self.name
    }
}
