//! The store: `kept/` in the journal's directory, with manifests and directories of objects, see [`manifest`](super::manifest).
//!
//! Invariants: the store belongs to this user and is no link; its names are made here, and those that come from elsewhere are
//! checked. While a command removes a tree that the store lies in, its names are hidden, so that it stays.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::manifest::{Kind, Object};
use crate::sys::folder::{Facts, Folder, Sort};

/// The mode of a store whose names are hidden.
const HIDDEN: u32 = 0o300;

/// The store, open.
#[derive(Debug)]
pub struct Store {
    pub folder: Folder,
    /// Its path without links.
    pub path: Vec<u8>,
}

/// The name of a record: `SESSION-RUN`.
///
/// # Errors
/// The session is no name.
pub fn record_name(session: &str, run: u64) -> io::Result<String> {
    let is_name = !session.is_empty() && !session.starts_with('.') && !session.contains(['/', '\0']);
    if is_name { Ok(format!("{session}-{run}")) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The name of a record's manifest.
#[must_use]
pub fn manifest_name(record: &str) -> Vec<u8> {
    format!("{record}.jsonl").into_bytes()
}

impl From<Sort> for Kind {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Directory => Self::Directory,
            Sort::File => Self::File,
            Sort::Symlink => Self::Symlink,
            Sort::Fifo => Self::Fifo,
            Sort::Socket => Self::Socket,
            Sort::Device => Self::Device,
        }
    }
}

impl Store {
    /// Opens the store, and makes it if there is none.
    ///
    /// # Errors
    /// It cannot be made, is a link, or belongs to another user.
    pub fn prepare(path: &Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let (above, name) = parts(path)?;
        match above.make(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Self::open(path),
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// There is none, it is a link, or it belongs to another user.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (above, name) = parts(path)?;
        let folder = above.inner(name)?;
        let facts = folder.facts()?;
        if facts.uid != crate::sys::folder::own_user() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if facts.mode != HIDDEN {
            folder.make_private()?;
        }
        let path = folder.path().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { folder, path })
    }

    /// Lets its names be listed again.
    ///
    /// # Errors
    /// As fchmod(2).
    pub fn release(&self) -> io::Result<()> {
        self.folder.make_private()
    }

    /// True if the path is the store or lies in it.
    #[must_use]
    pub fn holds(&self, path: &[u8]) -> bool {
        is_below(path, &self.path)
    }

    /// True if the store lies below this path.
    #[must_use]
    pub fn is_below(&self, path: &[u8]) -> bool {
        is_below(&self.path, path)
    }
}

/// True if `path` is `top` or lies below it. Both are absolute.
#[must_use]
pub fn is_below(path: &[u8], top: &[u8]) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || top == b"/")
}

/// The path of a name in a directory.
#[must_use]
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let separator: &[u8] = if directory == b"/" { b"" } else { b"/" };
    [directory, separator, name].concat()
}

/// The directory of a path, which is absolute, and the name in it. The root's own name is `.`.
#[must_use]
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'/', path) {
        _ if path == b"/" => (path, b"."),
        Some(0) => (b"/", &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"/", path),
    }
}

fn parts(path: &Path) -> io::Result<(Folder, &[u8])> {
    let above = path.parent().ok_or(io::ErrorKind::InvalidInput)?.canonicalize()?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.as_bytes();
    Ok((Folder::enter(above.as_os_str().as_bytes())?, name))
}

/// The directory of a record's objects, open for more.
#[derive(Debug)]
pub struct Objects {
    record: Folder,
    group: Option<(u64, Folder)>,
    /// The number of the next object.
    pub next: u64,
}

impl Objects {
    /// # Errors
    /// As mkdir(2).
    pub fn make(store: &Store, record: &str) -> io::Result<Self> {
        Ok(Self { record: store.folder.make(record.as_bytes())?, group: None, next: 0 })
    }

    /// The directory and the name of the next object.
    ///
    /// # Errors
    /// As mkdir(2).
    pub fn place(&mut self) -> io::Result<(&Folder, Vec<u8>)> {
        let number = self.next / Object::GROUP;
        if self.group.as_ref().is_none_or(|(open, _)| *open != number) {
            let made = match self.record.make(number.to_string().as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.record.inner(number.to_string().as_bytes())
                }
                made => made,
            };
            self.group = Some((number, made?));
        }
        let (_, folder) = self.group.as_ref().expect("just set");
        Ok((folder, (self.next % Object::GROUP).to_string().into_bytes()))
    }
}

/// The facts of an object of this record.
///
/// # Errors
/// As fstatat(2).
pub fn look(record: &Folder, object: Object) -> io::Result<Facts> {
    let path = object.path();
    let (group, name) = path.split_once('/').expect("N/M");
    record.inner(group.as_bytes())?.look(name.as_bytes())
}

/// Removes a record's objects, but for those with these numbers; the directories, too, if nothing is left in them. Returns how
/// many bytes that frees.
///
/// # Errors
/// As openat2(2) and getdents64(2). What cannot be removed stays.
pub fn clear(store: &Store, record: &str, except: &std::collections::HashSet<u64>) -> io::Result<u64> {
    let folder = match store.folder.inner(record.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        folder => folder?,
    };
    let mut freed = 0;
    folder.make_private()?;
    let number = |name: &[u8]| std::str::from_utf8(name).ok().and_then(|name| name.parse::<u64>().ok());
    for entry in folder.list()? {
        let Ok(group) = folder.inner(&entry.name) else { continue };
        let _ = group.make_private();
        let first = number(&entry.name).and_then(|number| number.checked_mul(Object::GROUP));
        for object in group.list()? {
            let number = first.zip(number(&object.name)).and_then(|(first, below)| first.checked_add(below));
            if number.is_none_or(|number| !except.contains(&number)) {
                freed += remove(&group, &object.name).unwrap_or(0);
            }
        }
        let _ = folder.remove_directory(&entry.name);
    }
    let _ = store.folder.remove_directory(record.as_bytes());
    Ok(freed)
}

/// Removes a record: first its objects, then its manifest, so that nothing is left which no manifest names. Returns how many
/// bytes that frees.
///
/// # Errors
/// As unlinkat(2).
pub fn discard(store: &Store, record: &str) -> io::Result<u64> {
    let freed = clear(store, record, &std::collections::HashSet::new())?;
    let manifest = manifest_name(record);
    for name in [[&manifest[..], b".new"].concat(), manifest] {
        match store.folder.remove(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(freed)
}

/// Removes an object, also a tree, whose directories come up one by one: so their depth does not matter. Returns how many bytes
/// that frees.
fn remove(group: &Folder, name: &[u8]) -> io::Result<u64> {
    let (mut ahead, mut freed, mut count) = (vec![name.to_vec()], 0, 0_u64);
    while let Some(name) = ahead.pop() {
        let facts = group.look(&name)?;
        if facts.sort != Sort::Directory {
            group.remove(&name)?;
            freed += if facts.links == 1 { facts.size } else { 0 };
            continue;
        }
        let folder = group.inner(&name)?;
        folder.make_private()?;
        for entry in folder.list()? {
            // Names that are left of one that was cut off are in the way.
            let up = loop {
                count += 1;
                let up = format!("up{count}").into_bytes();
                match folder.move_to(&entry.name, group, &up) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    moved => break moved.map(|()| up)?,
                }
            };
            ahead.push(up);
        }
        group.remove_directory(&name)?;
    }
    Ok(freed)
}

/// Lets the names of a store be listed again, if that may be open.
pub fn release(path: &Path) {
    if let Ok(store) = Store::open(path) {
        let _ = store.release();
    }
}

/// Returns true if there is a record of this run.
#[must_use]
pub fn has_record(store: &Path, session: &str, run: u64) -> bool {
    let record = record_name(session, run);
    record.is_ok_and(|record| Store::open(store).is_ok_and(|store| store.folder.look(&manifest_name(&record)).is_ok()))
}
