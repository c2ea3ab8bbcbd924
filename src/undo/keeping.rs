//! Keeps what a command may destroy, before it runs: in a process of its own, which may be killed at any time.
//!
//! Invariants: an object is there before its line is written. What is not kept has a line of its own. Descriptors, copied bytes,
//! the manifest and the time are bounded; the depth of trees is not.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::archive::Reading;
use super::exceptions::Exceptions;
use super::expansion::{self, Cut};
use super::finding::Finding;
use super::git::{Git, Places};
use super::manifest::{Around, Bytes, Head, Item, Line, Missed, Object, VERSION, Way, Why};
use super::patches;
use super::present::is_missing;
use super::repository::{OwnFiles, RepositoryLoss};
use super::store::{Objects, Store, join, manifest_name, record_name, split};
use super::{Extent, Loss, Losses, Operand, PathPattern, Step};
use crate::limits;
use crate::sys::folder::{self, Entry, Facts, Folder, Sort};

/// A directory that a program makes again.
struct MadeAgain {
    name: &'static [u8],
    /// What the program leaves in it.
    inside: &'static [&'static [u8]],
    /// What the program reads beside it.
    beside: &'static [&'static [u8]],
}

const MADE_AGAIN: [MadeAgain; 3] = [
    MadeAgain {
        name: b"node_modules",
        inside: &[b".package-lock.json", b".yarn-integrity", b".modules.yaml", b".bin"],
        beside: &[b"package.json"],
    },
    MadeAgain { name: b"target", inside: &[], beside: &[b"Cargo.toml", b"pom.xml", b"build.sbt"] },
    MadeAgain { name: b".venv", inside: &[b"pyvenv.cfg"], beside: &[] },
];
/// One in which there is nothing but what ends so.
const COMPILED: (&[u8], &[u8]) = (b"__pycache__", b".pyc");
/// What makes a directory a cache, at the beginning of a file of this name.
const CACHE_TAG: &[u8] = b"CACHEDIR.TAG";
const CACHE_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
/// Of git's own files: what its commands leave alone.
const LEFT_OF_GIT: [&[u8]; 2] = [b"hooks", b"lfs"];
/// Directories of one path that are open at once.
const OPEN_MAX: usize = 64;

/// What is kept for whom, and within which bounds.
#[derive(Debug)]
pub struct Keeping<'a> {
    /// `$REXEC_HOME/kept`.
    pub store: &'a Path,
    pub session: &'a str,
    pub run: u64,
    pub agent: &'a str,
    /// The most bytes of a file that is copied.
    pub copy_max: u64,
    /// The command's, for programs that are asked what it would destroy.
    pub environment: &'a [(OsString, OsString)],
    /// What the person does not want kept.
    pub except: &'a Exceptions,
    pub until: Instant,
}

/// What was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    pub files: u64,
    pub bytes: u64,
    pub missed: u64,
}

/// Keeps what a command would destroy that begins in the current directory, and writes the manifest.
///
/// # Errors
/// The store cannot be used, its disk is almost full, or the manifest cannot be written. Then nothing is kept.
pub fn keep(keeping: &Keeping, losses: &Losses) -> io::Result<Kept> {
    let record = record_name(keeping.session, keeping.run)?;
    let from = std::env::current_dir()?.into_os_string().into_vec();
    let store = Store::prepare(keeping.store)?;
    if super::tidying::is_short_of_room(&store.folder, 0) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let name = manifest_name(&record);
    let file = match store.folder.create(&name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // The guard that had the command first died before that began, so nothing was destroyed.
            super::store::discard(&store, &record)?;
            store.folder.create(&name)?
        }
        made => made?,
    };
    let time = u64::try_from(file.metadata()?.mtime()).unwrap_or_default();
    let mut collector = Collector {
        keeping,
        manifest: BufWriter::with_capacity(256 << 10, file),
        written: 0,
        objects: Objects::make(&store, &record)?,
        store,
        inodes: HashMap::new(),
        names: HashSet::new(),
        trees: HashSet::new(),
        around: HashSet::new(),
        overlays: HashMap::new(),
        copied: 0,
        copies: 0,
        part: Part::Named,
        few: None,
        finding: None,
        shows_links: losses.shows_links,
        kept: Kept::default(),
    };
    let head = Head {
        v: VERSION,
        session: keeping.session.to_owned(),
        run: keeping.run,
        time,
        agent: keeping.agent.to_owned(),
        dir: Bytes(from.clone()),
        restore: None,
        places: vec![Bytes(collector.store.path.clone())],
    };
    let written = collector.all(head, losses, &from);
    let Collector { store, kept, manifest, .. } = collector;
    if written.is_err() {
        // What is left in the buffer has no place, either.
        let _ = manifest.into_parts();
        let _ = super::store::discard(&store, &record);
    }
    written.map(|()| kept)
}

/// Returns true if something of it may exist that is named from this directory on: also if a name is a pattern, there are many, or
/// git has to be asked.
#[must_use]
pub fn may_exist(losses: &Losses, directory: &Path) -> bool {
    let operands = &losses.operands;
    operands.len() > limits::OPERANDS_LOOKED_AT
        || operands.iter().any(|operand| may_stand_there(operand, directory))
        || losses.repositories.iter().any(|loss| may_have_files(loss, directory))
}

fn may_have_files(loss: &RepositoryLoss, directory: &Path) -> bool {
    let plain: Option<Vec<_>> = loss.listings.iter().map(super::Listing::plain_paths).collect();
    let Some(plain) = plain.filter(|_| loss.own == OwnFiles::Kept && loss.globals.is_empty()) else { return true };
    loss.directory != super::PathPattern::default()
        || plain.into_iter().flatten().any(|path| directory.join(OsStr::from_bytes(path)).symlink_metadata().is_ok())
}

fn may_stand_there(Operand { path, loss, extent }: &Operand, directory: &Path) -> bool {
    let is_directory = |path: &Path| path.metadata().is_ok_and(|there| there.is_dir());
    let is_elsewhere = path.steps.iter().any(|step| match step {
        Step::Unless(other) => literal(other, directory).is_some_and(|other| is_directory(&other)),
        _ => false,
    });
    let Some(place) = literal(path, directory).filter(|_| !is_elsewhere) else { return !is_elsewhere };
    match (loss, extent) {
        (_, Extent::Below { .. }) if is_directory(&place) => {
            place.read_dir().is_ok_and(|mut entries| entries.next().is_some())
        }
        (_, Extent::Overlay { .. }) | (Loss::Name, _) => place.symlink_metadata().is_ok(),
        // What is written to a device or a FIFO replaces nothing.
        (Loss::Bytes, _) => place.metadata().is_ok_and(|there| there.is_file()),
    }
}

/// The path of a pattern that matches only one.
fn literal(pattern: &PathPattern, directory: &Path) -> Option<PathBuf> {
    let mut place = if pattern.is_absolute { PathBuf::from("/") } else { directory.to_owned() };
    for step in &pattern.steps {
        match step {
            // The dot counts where it follows a link, and only a written one does that.
            Step::Name(name) if name == b"." => place.as_mut_os_string().push("/."),
            Step::Name(name) => place.push(OsStr::from_bytes(name)),
            Step::Unless(_) => {}
            Step::Matching(_) | Step::Any => return None,
        }
    }
    Some(place)
}

struct Collector<'a> {
    keeping: &'a Keeping<'a>,
    manifest: BufWriter<File>,
    /// Bytes.
    written: u64,
    store: Store,
    objects: Objects,
    /// What keeps the inodes that may have other names, and their links before.
    inodes: HashMap<(u64, u64), (Object, Facts)>,
    /// Names in directories that are kept already.
    names: HashSet<((u64, u64), Vec<u8>)>,
    /// Directories that are kept with all that is below.
    trees: HashSet<(u64, u64)>,
    /// Directories whose times are in the manifest.
    around: HashSet<(u64, u64)>,
    /// The numbers of file systems, each with true if it is an overlay of others.
    overlays: HashMap<u64, bool>,
    /// Bytes.
    copied: u64,
    /// How many files were copied.
    copies: usize,
    part: Part,
    /// While some of what is below a directory is kept, if it is little.
    few: Option<Few>,
    /// While what find finds is kept: that, and what gets lost of it.
    finding: Option<(Finding, Loss)>,
    /// True if one more link to a file would be seen in the command's output.
    shows_links: bool,
    kept: Kept,
}

/// What is being kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What the command names, in which caches are excepted.
    Named,
    /// Git's own files.
    Git,
    /// Those of them that change with each command: see [`Item::is_aside`].
    GitAside,
}

/// What is copied because some of it may be replaced.
struct Few {
    /// The names that it may still have. 0 if it is not little.
    left: usize,
    /// The paths of what stays.
    archive: BTreeSet<Vec<u8>>,
}

/// What stood at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stood {
    Something,
    Nothing,
    /// A file is on the way to it, where a directory would be.
    BelowFile,
    BelowLink,
}

/// A directory on the way down. Its path is the collector's, up to `length`.
struct Level {
    /// `None` if too many are open. It is entered again from the one below.
    folder: Option<Folder>,
    identity: (u64, u64),
    length: usize,
    /// The directories in it that are to come.
    below: Vec<Vec<u8>>,
    /// Only what find finds in it is kept.
    is_searched: bool,
}

impl Collector<'_> {
    fn all(&mut self, head: Head, losses: &Losses, from: &[u8]) -> io::Result<()> {
        self.put(&Line::Head(head))?;
        // Whatever ends this, the record can be settled.
        self.manifest.flush()?;
        for word in &losses.unknown {
            self.miss(word, if word.ends_with(b"shred") { Why::Wiped } else { Why::Unknown })?;
        }
        // Files that change in place come first: a link to one is no copy. What may not be kept as a whole comes last.
        let mut operands: Vec<&Operand> = losses.operands.iter().collect();
        operands.sort_by_key(|operand| match (operand.loss, &operand.extent) {
            (Loss::Bytes, _) => 0,
            (Loss::Name, Extent::Below { .. }) => 2,
            (Loss::Name, _) => 1,
        });
        operands.into_iter().try_for_each(|operand| self.operand(operand, from))?;
        let here = Path::new(OsStr::from_bytes(from));
        for loss in losses.repositories.iter().filter(|loss| may_have_files(loss, here)) {
            self.repository(loss, from)?;
        }
        self.put(&Line::Done { settled: false, bytes: 0, is_cut: false })?;
        self.manifest.flush()
    }

    fn put(&mut self, line: &Line) -> io::Result<()> {
        let bytes = line.encode();
        self.written += bytes.len() as u64;
        self.manifest.write_all(&bytes)
    }

    fn miss(&mut self, path: &[u8], why: Why) -> io::Result<()> {
        self.miss_file(path, why, None)
    }

    /// `before` is what is at the path, if it may stay there and change.
    fn miss_file(&mut self, path: &[u8], why: Why, before: Option<Facts>) -> io::Result<()> {
        // What is excepted is not to be kept.
        self.kept.missed += u64::from(why != Why::Excepted);
        if self.written > limits::MANIFEST_BYTES_MAX {
            return Ok(());
        }
        let was = before.map(|before| (before.size, before.mtime));
        self.put(&Line::Missed(Missed { path: Bytes(path.to_vec()), why, was }))
    }

    /// True if no more can be kept.
    fn is_over(&self) -> bool {
        self.written > limits::MANIFEST_BYTES_MAX
            || self.copies > limits::COPIED_FILES_MAX
            || Instant::now() > self.keeping.until
    }

    fn operand(&mut self, operand: &Operand, from: &[u8]) -> io::Result<()> {
        let paths = self.paths(&operand.path, from)?;
        match &operand.extent {
            Extent::Overlay { sources, is_inside } => {
                let sources = self.paths(sources, from)?;
                return self.overlay(paths, &sources, *is_inside, operand.loss);
            }
            Extent::Found(finding) => {
                return paths.into_iter().try_for_each(|path| self.found(path, finding, operand.loss));
            }
            Extent::Patched { diff } => return self.patched(&operand.path, diff, from),
            Extent::Below { archive, strip } => {
                let archive =
                    archive.as_ref().map(|archive| self.paths(archive, from)).transpose()?.unwrap_or_default();
                if let Some(names) = self.names_in(&archive, *strip) {
                    return self.named(&operand.path, &names, from);
                }
                return paths.into_iter().try_for_each(|path| self.below(behind_links(path), &archive));
            }
            Extent::Itself | Extent::Tree => {}
        }
        // `**` alone reaches as far as a tree.
        let is_tree = operand.extent == Extent::Tree;
        for path in without_what_is_below(paths, is_tree) {
            if self.path(path.clone(), operand.loss, is_tree)? == Stood::BelowLink {
                self.miss(&path, Why::Failed)?;
            }
        }
        Ok(())
    }

    /// Keeps what find finds from a path on.
    fn found(&mut self, path: Vec<u8>, finding: &Finding, loss: Loss) -> io::Result<()> {
        self.finding = Some((finding.clone(), loss));
        let stood = self.path(path, Loss::Name, true);
        self.finding = None;
        stood.map(drop)
    }

    /// Keeps what is below a path, if it is little.
    fn below(&mut self, path: Vec<u8>, archive: &BTreeSet<Vec<u8>>) -> io::Result<()> {
        self.few = Some(Few { left: limits::KEPT_BELOW_MAX, archive: archive.clone() });
        self.path(path.clone(), Loss::Name, true)?;
        if self.few.take().is_some_and(|few| few.left == 0) {
            self.miss(&path, Why::Unknown)?;
        }
        Ok(())
    }

    /// The names in the archive that this is, if they tell what is replaced.
    fn names_in(&self, archive: &BTreeSet<Vec<u8>>, strip: Option<usize>) -> Option<BTreeSet<Vec<u8>>> {
        let [path] = &archive.iter().collect::<Vec<_>>()[..] else { return None };
        let Keeping { environment, until, .. } = *self.keeping;
        Reading { environment, until, strip: strip? }.names(&behind_links((*path).clone())).ok()
    }

    /// Keeps what has these names below a directory, each as it is.
    fn named(&mut self, directory: &PathPattern, names: &BTreeSet<Vec<u8>>, from: &[u8]) -> io::Result<()> {
        let mut last: Option<(&[u8], BTreeSet<Vec<u8>>)> = None;
        for name in names {
            let at = memchr::memrchr(b'/', name);
            let above = at.map_or(&b"."[..], |at| &name[..at]);
            let places = match last.take() {
                Some((before, places)) if before == above => places,
                _ => {
                    let mut above = patches::operand(directory, above).path;
                    // Links are followed up to it, also at the end.
                    above.steps.push(Step::here());
                    self.paths(&above, from)?
                }
            };
            for place in &places {
                self.path(join(place, at.map_or(&name[..], |at| &name[at + 1..])), Loss::Name, false)?;
            }
            last = Some((above, places));
        }
        Ok(())
    }

    /// Keeps what a file of differences names below a directory.
    fn patched(&mut self, directory: &PathPattern, diff: &PathPattern, from: &[u8]) -> io::Result<()> {
        for path in self.paths(diff, from)? {
            let names = read_diff(&behind_links(path)).map(|diff| patches::names(&diff)).unwrap_or_default();
            // The command makes it first, or it is too large.
            if names.is_empty() || names.len() > limits::PATCHED_NAMES_MAX {
                self.paths(directory, from)?.iter().try_for_each(|directory| self.miss(directory, Why::Unknown))?;
            } else {
                names.iter().try_for_each(|name| self.operand(&patches::operand(directory, name), from))?;
            }
        }
        Ok(())
    }

    fn paths(&mut self, pattern: &PathPattern, from: &[u8]) -> io::Result<BTreeSet<Vec<u8>>> {
        let (paths, cut) = expansion::paths(pattern, from, self.keeping.until);
        if let Some(cut) = cut {
            let why = if cut == Cut::Forbidden { Why::Forbidden } else { Why::TooLate };
            self.miss(&pattern.shown(), why)?;
        }
        Ok(paths)
    }

    /// Keeps what stands at a path.
    fn path(&mut self, path: Vec<u8>, loss: Loss, is_tree: bool) -> io::Result<Stood> {
        let path = if loss == Loss::Bytes { behind_links(path) } else { path };
        if self.is_over() {
            return self.miss(&path, Why::TooLate).map(|()| Stood::Something);
        }
        let (directory, name) = split(&path);
        let found = Folder::enter(directory).and_then(|folder| folder.look(name).map(|facts| (folder, facts)));
        let (folder, facts) = match found {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stood::Nothing),
            Err(error) if is_missing(&error) => return Ok(Stood::BelowFile),
            Err(error) if folder::is_link(&error) => return Ok(Stood::BelowLink),
            Err(error) => return self.miss(&path, why(&error)).map(|()| Stood::Something),
        };
        let is_directory = facts.sort == Sort::Directory;
        let holds_store = is_tree && is_directory && !self.passes_store_by() && self.store.is_below(&path);
        // Root removes what is hidden, too.
        if self.store.holds(&path) || holds_store && folder::own_user() == 0 {
            return self.miss(&path, Why::InStore).map(|()| Stood::Something);
        }
        if self.part == Part::Named && self.keeping.except.cover(&path, is_directory) {
            return self.miss(&path, Why::Excepted).map(|()| Stood::Something);
        }
        if holds_store {
            self.store.folder.hide_names()?;
        }
        let home = folder.facts()?;
        if !self.trees.contains(&home.identity()) && self.around.insert(home.identity()) {
            self.put(&Line::Around(Around { path: Bytes(directory.to_vec()), mtime: home.mtime, left: None }))?;
        }
        match facts.sort {
            Sort::Directory if loss == Loss::Bytes => {}
            Sort::Directory if is_tree => self.tree(&folder, &path, name)?,
            Sort::Directory => self.directory(&folder, name, &path, &facts)?,
            _ => self.file(&folder, home.identity(), &path, name, loss, false)?,
        }
        Ok(Stood::Something)
    }

    /// Keeps what has the same names as what is copied over it. Only directories that both have are looked at.
    fn overlay(
        &mut self,
        targets: BTreeSet<Vec<u8>>,
        sources: &BTreeSet<Vec<u8>>,
        is_inside: bool,
        loss: Loss,
    ) -> io::Result<()> {
        let is_there = |path: &[u8]| {
            let (directory, name) = split(path);
            Folder::enter(directory).is_ok_and(|folder| folder.look(name).is_ok())
        };
        let (there, to_come): (Vec<_>, Vec<_>) = sources.iter().partition(|source| is_there(source));
        let mut ahead = Vec::new();
        for target in targets.into_iter().map(behind_links).filter(|target| is_there(target)) {
            if sources.is_empty() || !to_come.is_empty() {
                // The command makes it first.
                self.miss(&target, Why::Unknown)?;
            }
            let is_inside = is_inside && Folder::enter(&target).is_ok();
            let put = |source: &[u8]| if is_inside { join(&target, split(source).1) } else { target.clone() };
            ahead.extend(there.iter().map(|source| (source.to_vec(), put(source))));
        }
        while let Some((source, target)) = ahead.pop() {
            if self.is_over() {
                self.miss(&target, Why::TooLate)?;
                continue;
            }
            let (directory, name) = split(&source);
            let Ok(from) = Folder::enter(directory) else { continue };
            let Ok(facts) = from.look(name) else { continue };
            match (from.inner(name), Folder::enter(&behind_links(target.clone()))) {
                (Ok(from), Ok(to)) if facts.sort == Sort::Directory => {
                    let target = behind_links(target);
                    let entries = from.list().unwrap_or_default();
                    let both = entries.into_iter().filter(|entry| to.look(&entry.name).is_ok());
                    ahead.extend(both.map(|entry| (join(&source, &entry.name), join(&target, &entry.name))));
                }
                // Others than files are not written to: they are put in place of what is there.
                _ => {
                    let loss = if facts.sort == Sort::File { loss } else { Loss::Name };
                    self.path(target, loss, false)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps what git says that a command of git would destroy.
    fn repository(&mut self, loss: &RepositoryLoss, from: &[u8]) -> io::Result<()> {
        let name = [b"git ", &loss.subcommand[..]].concat();
        let (directories, cut) = expansion::paths(&loss.directory, from, self.keeping.until);
        if cut.is_some() {
            self.miss(&name, Why::Unknown)?;
        }
        let is_there = |path: &Vec<u8>| Path::new(OsStr::from_bytes(path)).is_dir();
        let mut directories: Vec<_> = directories.into_iter().filter(is_there).collect();
        if directories.is_empty() {
            // A cd that fails leaves the command where it was.
            directories.push(from.to_vec());
        }
        for directory in directories {
            let (environment, until) = (self.keeping.environment, self.keeping.until);
            let git = Git { loss, directory: &directory, environment, until };
            let places = match git.places() {
                Ok(Some(places)) => places,
                Ok(None) => continue,
                Err(_) => {
                    self.miss(&name, Why::Unknown)?;
                    continue;
                }
            };
            for listing in loss.all_listings() {
                match git.list(listing) {
                    Ok(names) => {
                        let mut names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
                        names.try_for_each(|name| self.listed(&places.top, name))?;
                    }
                    Err(_) => self.miss(&name, Why::Unknown)?,
                }
            }
            self.own_files(&places, loss)?;
        }
        Ok(())
    }

    /// Keeps what stands where git will make a file, or remove one. That may also be a file or a link where git has a directory.
    fn listed(&mut self, top: &[u8], name: &[u8]) -> io::Result<()> {
        let path = join(top, name.strip_suffix(b"/").unwrap_or(name));
        let mut at = &path[..];
        while at.len() > top.len()
            && matches!(self.path(at.to_vec(), Loss::Name, true)?, Stood::BelowFile | Stood::BelowLink)
        {
            at = split(at).0;
        }
        Ok(())
    }

    fn own_files(&mut self, places: &Places, loss: &RepositoryLoss) -> io::Result<()> {
        let own = loss.all_own();
        if own == OwnFiles::Kept {
            return Ok(());
        }
        self.part = Part::GitAside;
        for log in places.logs() {
            self.path(log, Loss::Bytes, false)?;
        }
        self.part = Part::Git;
        if let Some(stashes) = places.stashes() {
            self.path(stashes, Loss::Bytes, false)?;
        }
        for directory in &places.own {
            let entries = match Folder::enter(directory).and_then(|folder| folder.list()) {
                Ok(entries) => entries,
                Err(error) => {
                    self.miss(directory, why(&error))?;
                    continue;
                }
            };
            for entry in entries {
                let is_kept = match &entry.name[..] {
                    b"objects" => own == OwnFiles::All,
                    b"modules" => loss.subcommand == b"submodule",
                    name => !LEFT_OF_GIT.contains(&name),
                };
                if is_kept {
                    self.part = if entry.name == b"index" { Part::GitAside } else { Part::Git };
                    self.path(join(directory, &entry.name), Loss::Name, true)?;
                }
            }
        }
        self.part = Part::Named;
        Ok(())
    }

    /// Keeps a directory itself, which is this name in its parent.
    fn directory(&mut self, parent: &Folder, name: &[u8], path: &[u8], facts: &Facts) -> io::Result<()> {
        let mut item = item(path, facts, None);
        match parent.attributes(name) {
            Ok(attributes) => {
                item.xattrs = attributes.into_iter().map(|(name, value)| (Bytes(name), Bytes(value))).collect();
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => self.miss(path, Why::TooLarge)?,
            // The file system has none.
            Err(_) => {}
        }
        self.put(&Line::Item(item))
    }

    /// Keeps a directory with all that is below it.
    fn tree(&mut self, parent: &Folder, top: &[u8], name: &[u8]) -> io::Result<()> {
        let mut path = top.to_vec();
        let dev = parent.look(name)?.dev;
        let Some(level) = self.level(parent, name, &path, dev, self.finding.as_ref().map(|_| 0))? else {
            return Ok(());
        };
        let mut levels = vec![level];
        while let Some(last) = levels.len().checked_sub(1) {
            let length = levels[last].length;
            path.truncate(length);
            let Some(name) = levels[last].below.pop() else {
                self.leave(&mut levels, &path)?;
                continue;
            };
            path = join(&path, &name);
            if self.few.as_ref().is_some_and(|few| few.left == 0) {
                return Ok(());
            }
            if self.is_over() || path.len() > limits::KEPT_PATH_BYTES_MAX {
                self.miss(&path, if self.is_over() { Why::TooLate } else { Why::TooLarge })?;
                continue;
            }
            let depth = levels[last].is_searched.then_some(levels.len());
            let Some(folder) = levels[last].folder.as_ref() else { continue };
            if let Some(level) = self.level(folder, &name, &path, dev, depth)? {
                levels.push(level);
                if let Some(far) = levels.len().checked_sub(OPEN_MAX) {
                    levels[far].folder = None;
                }
            }
        }
        Ok(())
    }

    /// Goes back to the directory above.
    fn leave(&mut self, levels: &mut Vec<Level>, path: &[u8]) -> io::Result<()> {
        let Some(left) = levels.pop() else { return Ok(()) };
        let Some(above) = levels.last_mut() else { return Ok(()) };
        if above.folder.is_some() {
            return Ok(());
        }
        let identity = above.identity;
        let back = left.folder.and_then(|folder| folder.follow(b"..").ok());
        let back = back.filter(|folder| folder.facts().is_ok_and(|facts| facts.identity() == identity));
        if back.is_none() {
            // It was moved meanwhile.
            for name in std::mem::take(&mut above.below) {
                self.miss(&join(split(path).0, &name), Why::Failed)?;
            }
        }
        above.folder = back;
        Ok(())
    }

    /// Keeps a directory and the files in it. `None` if nothing below it is to be kept. `searched` is the number of steps down to
    /// it, if only what find finds is kept.
    fn level(
        &mut self,
        parent: &Folder,
        name: &[u8],
        path: &[u8],
        dev: u64,
        searched: Option<usize>,
    ) -> io::Result<Option<Level>> {
        let opened = parent.inner(name).and_then(|folder| folder.facts().map(|facts| (folder, facts)));
        let (folder, facts) = match opened {
            Ok(opened) => opened,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return self.miss(path, why(&error)).map(|()| None),
        };
        if self.store.folder.facts().is_ok_and(|store| store.identity() == facts.identity()) {
            if self.passes_store_by() {
                return Ok(None);
            }
            if folder::own_user() == 0 {
                return self.miss(path, Why::InStore).map(|()| None);
            }
            self.store.folder.hide_names()?;
            let line = Missed { path: Bytes(self.store.path.clone()), why: Why::InStore, was: None };
            return self.put(&Line::Missed(line)).map(|()| None);
        }
        // A directory that is empty later is found, too.
        let finding = self.finding.as_ref().zip(searched).map(|((finding, _), depth)| (finding, depth));
        let is_found = finding.is_some_and(|(finding, _)| finding.has(name, || Some((Sort::Directory, true))));
        let is_searched = finding.is_some_and(|(finding, _)| !(is_found && finding.with_below));
        let is_deepest = finding.is_some_and(|(finding, depth)| finding.depth_max.is_some_and(|most| depth >= most));
        let is_known =
            if is_searched { self.trees.contains(&facts.identity()) } else { !self.trees.insert(facts.identity()) };
        if is_known {
            return Ok(None);
        }
        if is_searched && is_deepest {
            return if is_found { self.directory(parent, name, path, &facts).map(|()| None) } else { Ok(None) };
        }
        let entries = match folder.list() {
            Ok(entries) => entries,
            Err(error) => {
                self.directory(parent, name, path, &facts)?;
                return self.miss(path, why(&error)).map(|()| None);
            }
        };
        let is_excepted = self.keeping.except.have(path, true) || is_made_again(parent, name, &entries);
        if self.part == Part::Named && (is_excepted || is_cache(&folder, &entries)) {
            return self.miss_file(path, Why::Excepted, Some(facts)).map(|()| None);
        }
        if let Some(Few { left, .. }) = &mut self.few {
            *left = left.saturating_sub(entries.len());
            if *left == 0 {
                return Ok(None);
            }
        }
        if facts.dev != dev && !self.can_link(&folder, &entries) {
            return self.miss_file(path, Why::Failed, Some(facts)).map(|()| None);
        }
        if !is_searched || is_found {
            self.directory(parent, name, path, &facts)?;
        }
        let mut below = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let is_directory = entry
                .is_directory
                .unwrap_or_else(|| folder.look(&entry.name).is_ok_and(|facts| facts.sort == Sort::Directory));
            if is_directory {
                below.push(entry.name);
            } else if index % 64 == 63 && self.is_over() {
                self.miss(path, Why::TooLate)?;
                break;
            } else {
                let below = join(path, &entry.name);
                if !is_searched {
                    self.file(&folder, facts.identity(), &below, &entry.name, Loss::Name, true)?;
                } else if let Some(loss) = self.loss_of_found(&folder, &entry.name)
                    && !self.keeping.except.have(&below, false)
                {
                    if self.around.insert(facts.identity()) {
                        self.put(&Line::Around(Around { path: Bytes(path.to_vec()), mtime: facts.mtime, left: None }))?;
                    }
                    self.file(&folder, facts.identity(), &below, &entry.name, loss, false)?;
                }
            }
        }
        Ok(Some(Level { is_searched, folder: Some(folder), identity: facts.identity(), length: path.len(), below }))
    }

    /// True if the store may lie in what is being kept, and stays.
    fn passes_store_by(&self) -> bool {
        self.few.is_some() || self.finding.as_ref().is_some_and(|(finding, _)| finding.is_named())
    }

    /// What gets lost of something that is no directory, if find finds it.
    fn loss_of_found(&self, folder: &Folder, name: &[u8]) -> Option<Loss> {
        let (finding, loss) = self.finding.as_ref()?;
        let facts = || folder.look(name).ok().map(|facts| (facts.sort, facts.size == 0));
        finding.has(name, facts).then_some(*loss)
    }

    /// True if a file of another file system can be linked into the store.
    fn can_link(&mut self, folder: &Folder, entries: &[Entry]) -> bool {
        let Some(entry) = entries.iter().find(|entry| entry.is_directory == Some(false)) else { return false };
        let Ok((group, number)) = self.objects.place() else { return false };
        let is_linked = folder.link(&entry.name, group, &number).is_ok();
        if is_linked {
            let _ = group.remove(&number);
        }
        is_linked
    }

    /// Keeps a file. `is_in_tree` is true if its directory is being kept as a whole, where no name comes twice.
    fn file(
        &mut self,
        folder: &Folder,
        home: (u64, u64),
        path: &[u8],
        name: &[u8],
        loss: Loss,
        is_in_tree: bool,
    ) -> io::Result<()> {
        let is_known = self.trees.contains(&home) && !is_in_tree || self.names.contains(&(home, name.to_vec()));
        if is_known {
            return Ok(());
        }
        if self.few.as_ref().is_some_and(|few| few.archive.contains(path)) {
            return Ok(());
        }
        if is_in_tree && self.part == Part::Named && self.keeping.except.have(path, false) {
            return self.miss(path, Why::Excepted);
        }
        let kept = match loss {
            Loss::Name if self.shows_links => match self.copy_lone(folder, name) {
                Err(error) if !is_missing(&error) => self.link(folder, name),
                kept => kept,
            },
            // Most of it stays, and programs may see a link.
            Loss::Name if self.few.is_some() => self.copy_of_any(folder, name),
            // A link would make a copy of it in its place.
            Loss::Name if self.is_on_overlay(folder, home.0) && !folder.is_in_upper_layer(name) => {
                self.copy_of_any(folder, name)
            }
            Loss::Name => self.link(folder, name),
            Loss::Bytes => match self.copy(folder, name) {
                // A device or a FIFO has no bytes to lose.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(()),
                kept => kept,
            },
        };
        match kept {
            Ok((object, facts)) => {
                if !is_in_tree {
                    self.names.insert((home, name.to_vec()));
                }
                self.kept.files += 1;
                self.kept.bytes += facts.size;
                let is_aside = self.part == Part::GitAside;
                self.put(&Line::Item(Item { is_aside, ..item(path, &facts, Some(object)) }))
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => {
                let before = folder.look(name).ok().filter(|_| loss == Loss::Bytes || self.few.is_some());
                self.miss_file(path, why(&error), before)
            }
        }
    }

    /// True if the file system with this number, on which the directory lies, is an overlay of others.
    fn is_on_overlay(&mut self, folder: &Folder, dev: u64) -> bool {
        *self.overlays.entry(dev).or_insert_with(|| folder.is_on_overlay())
    }

    fn link(&mut self, folder: &Folder, name: &[u8]) -> io::Result<(Object, Facts)> {
        let number = self.objects.next;
        let (group, as_name) = self.objects.place()?;
        if let Err(error) = folder.link(name, group, &as_name) {
            // Where no link can be had, a copy may.
            let is_refused = !is_missing(&error) && !crate::sys::is_disk_full(&error);
            return if is_refused { self.copy_of_any(folder, name) } else { Err(error) };
        }
        // The object is looked at, and not the name, which may be another file's by now.
        let mut facts = group.look(&as_name)?;
        if let Some((object, before)) = self.inodes.get(&facts.identity()) {
            group.remove(&as_name)?;
            facts.links = before.links;
            return Ok((*object, facts));
        }
        // Another command may have taken the name away: then it is not counted any more. Where it is still there when that is
        // looked at, it was when the links were counted.
        let has_name = folder.look(name).is_ok_and(|there| there.identity() == facts.identity());
        facts.links = facts.links.saturating_sub(u64::from(has_name));
        let object = Object { place: 0, number, way: Way::Link };
        if facts.links > 1 {
            self.inodes.insert(facts.identity(), (object, facts));
        }
        self.objects.next += 1;
        Ok((object, facts))
    }

    /// Copies a file that has no other name.
    fn copy_lone(&mut self, folder: &Folder, name: &[u8]) -> io::Result<(Object, Facts)> {
        match folder.look(name)? {
            facts if facts.sort == Sort::File && facts.links == 1 => self.copy(folder, name),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn copy_of_any(&mut self, folder: &Folder, name: &[u8]) -> io::Result<(Object, Facts)> {
        let there = folder.look(name)?;
        if matches!(there.sort, Sort::File | Sort::Directory) {
            return self.copy(folder, name);
        }
        if let Some((object, _)) = self.inodes.get(&there.identity()).filter(|(object, _)| object.way != Way::Link) {
            return Ok((*object, there));
        }
        let number = self.objects.next;
        let (group, as_name) = self.objects.place()?;
        let facts = folder.copy_special(name, group, &as_name)?;
        self.objects.next += 1;
        let object = Object { place: 0, number, way: Way::Copy };
        self.inodes.insert(facts.identity(), (object, facts));
        Ok((object, facts))
    }

    fn copy(&mut self, folder: &Folder, name: &[u8]) -> io::Result<(Object, Facts)> {
        let facts = folder.look(name)?;
        if let Some((object, _)) = self.inodes.get(&facts.identity()).filter(|(object, _)| object.way != Way::Link) {
            return Ok((*object, facts));
        }
        let copy_max = self.keeping.copy_max;
        let most = copy_max.min(limits::COPIED_BYTES_MAX.max(copy_max).saturating_sub(self.copied));
        if facts.size <= most && super::tidying::is_short_of_room(&self.store.folder, facts.size) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let number = self.objects.next;
        let (group, as_name) = self.objects.place()?;
        let mut copied = folder::copy(folder, name, group, &as_name, most);
        if copied.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            copied = folder::copy(folder, name, group, &as_name, most);
        }
        let (facts, is_shared) = copied?;
        self.copied += if is_shared { 0 } else { facts.size };
        self.copies += 1;
        self.objects.next += 1;
        let object = Object { place: 0, number, way: if is_shared { Way::Clone } else { Way::Copy } };
        self.inodes.insert(facts.identity(), (object, facts));
        Ok((object, facts))
    }
}

pub(super) fn item(path: &[u8], facts: &Facts, object: Option<Object>) -> Item {
    Item {
        path: Bytes(path.to_vec()),
        kind: facts.sort.into(),
        mode: facts.mode,
        uid: facts.uid,
        gid: facts.gid,
        size: facts.size,
        mtime: facts.mtime,
        dev: facts.dev,
        ino: facts.ino,
        links: facts.links,
        is_aside: false,
        xattrs: Vec::new(),
        object,
    }
}

/// Of paths whose trees are kept, those that lie in another's go: the order of bytes has them behind it.
fn without_what_is_below(paths: BTreeSet<Vec<u8>>, is_tree: bool) -> Vec<Vec<u8>> {
    let mut left: Vec<Vec<u8>> = Vec::new();
    for path in paths {
        if !(is_tree && left.last().is_some_and(|above| super::store::is_below(&path, above))) {
            left.push(path);
        }
    }
    left
}

/// The file that a program opens under this path.
fn behind_links(path: Vec<u8>) -> Vec<u8> {
    let opened = Path::new(OsStr::from_bytes(&path)).canonicalize();
    opened.map_or(path, |opened| opened.into_os_string().into_vec())
}

fn read_diff(path: &[u8]) -> io::Result<Vec<u8>> {
    let (directory, name) = split(path);
    let (file, facts) = Folder::enter(directory)?.read(name)?;
    if facts.size > limits::PATCH_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut diff = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, limits::PATCH_BYTES_MAX), &mut diff)?;
    Ok(diff)
}

fn is_made_again(parent: &Folder, name: &[u8], entries: &[Entry]) -> bool {
    if name == COMPILED.0 {
        return entries.iter().all(|entry| entry.name.ends_with(COMPILED.1));
    }
    let known = MADE_AGAIN.iter().find(|known| known.name == name);
    known.is_some_and(|MadeAgain { inside, beside, .. }| {
        entries.iter().any(|entry| inside.contains(&&entry.name[..]))
            || beside.iter().any(|beside| parent.look(beside).is_ok())
    })
}

fn is_cache(folder: &Folder, entries: &[Entry]) -> bool {
    let mut begins = [0; CACHE_SIGNATURE.len()];
    entries.iter().any(|entry| entry.name == CACHE_TAG)
        && folder.read(CACHE_TAG).is_ok_and(|(mut file, _)| io::Read::read_exact(&mut file, &mut begins).is_ok())
        && begins == CACHE_SIGNATURE
}

fn why(error: &io::Error) -> Why {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Why::Forbidden,
        io::ErrorKind::FileTooLarge => Why::TooLarge,
        _ if crate::sys::is_disk_full(error) => Why::NoRoom,
        _ => Why::Failed,
    }
}
