//! Takes out of the store what a command has left alone, once it has ended.
//!
//! Invariants: the new manifest takes the old one's place as a whole, before an object goes, and goes itself after the objects. A line that cannot be read ends the
//! reading. Nothing outside of the store is changed, whatever a manifest says.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::manifest::{Around, Head, Item, Kind, Line, Lines, Missed, VERSION, Way, Why};
use super::present::Present;
use super::store::{self, Store, manifest_name, record_name};
use crate::sys::folder::{Folder, Sort};

/// What is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Destroyed {
    pub files: u64,
    pub bytes: u64,
    pub directories: u64,
    /// Those that are gone and were not kept.
    pub missed: u64,
}

/// Leaves in a record what was destroyed. A record of a command that has destroyed nothing goes as a whole.
///
/// # Errors
/// There is no such record, its first line is no head of it, or the new manifest cannot be written.
pub fn settle(store: &Path, session: &str, run: u64) -> io::Result<Destroyed> {
    let record = record_name(session, run)?;
    let store = Store::open(store)?;
    let name = manifest_name(&record);
    let (manifest, facts) = store.folder.read(&name)?;
    if facts.size == 0 {
        // What kept it was ended before it had kept anything.
        return store::discard(&store, &record).map(|_| Destroyed::default());
    }
    let mut lines = Lines::of(manifest);
    let head = match lines.next() {
        Some(Line::Head(head)) if is_of(&head, session, run) => head,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let new = [&name[..], b".new"].concat();
    let _ = store.folder.remove(&new);
    let objects = store.folder.inner(record.as_bytes());
    let mut settler = Settler {
        manifest: BufWriter::with_capacity(256 << 10, store.folder.create(&new)?),
        objects: objects.ok(),
        present: Present::default(),
        above: Vec::new(),
        around: Vec::new(),
        numbers: HashSet::new(),
        destroyed: Destroyed::default(),
        is_store_hidden: false,
        has_unknown: false,
    };
    let written = settler.write(head, lines);
    if let Err(error) = written {
        let _ = store.folder.remove(&new);
        return Err(error);
    }
    if settler.has_nothing() {
        settler.numbers.clear();
    }
    store.folder.rename(&new, &name)?;
    if settler.is_store_hidden {
        store.release()?;
    }
    store::clear(&store, &record, &settler.numbers)?;
    if settler.has_nothing() {
        store.folder.remove(&name)?;
    }
    Ok(settler.destroyed)
}

fn is_of(head: &Head, session: &str, run: u64) -> bool {
    head.v == VERSION && head.session == session && head.run == run && head.restore.is_none()
}

struct Settler {
    manifest: BufWriter<std::fs::File>,
    /// The record's directory. `None` if it is gone.
    objects: Option<Folder>,
    present: Present,
    /// Directories that are still there, and stay in the manifest if something below them is gone.
    above: Vec<Item>,
    /// Directories around what is kept, most of which are still there.
    around: Vec<Around>,
    /// The objects of what is gone.
    numbers: HashSet<u64>,
    destroyed: Destroyed,
    /// True if the store lay in what the command would remove.
    is_store_hidden: bool,
    /// True if a path was named to a person before the command ran, and nobody knows what became of what is there.
    has_unknown: bool,
}

/// What became of a path.
enum Fate {
    There,
    Gone,
    /// It is gone, and so is what kept it.
    Lost,
}

impl Settler {
    fn write(&mut self, head: Head, lines: impl Iterator<Item = Line>) -> io::Result<()> {
        self.put(&Line::Head(head))?;
        let mut is_cut = true;
        for line in lines {
            match line {
                Line::Head(_) => break,
                Line::Done { is_cut: was_cut, .. } => {
                    is_cut = was_cut;
                    break;
                }
                Line::Item(item) => self.item(item)?,
                Line::Missed(missed) => self.missed(missed)?,
                Line::Around(around) => self.around.push(around),
            }
        }
        for around in std::mem::take(&mut self.around) {
            self.around(around)?;
        }
        self.put(&Line::Done { settled: true, bytes: self.destroyed.bytes, is_cut })?;
        self.manifest.flush()
    }

    fn has_nothing(&self) -> bool {
        let Destroyed { files, directories, missed, .. } = self.destroyed;
        files == 0 && directories == 0 && missed == 0 && !self.has_unknown
    }

    fn put(&mut self, line: &Line) -> io::Result<()> {
        self.manifest.write_all(&line.encode())
    }

    fn item(&mut self, mut item: Item) -> io::Result<()> {
        while self.above.last().is_some_and(|above| !store::is_below(&item.path.0, &above.path.0)) {
            self.above.pop();
        }
        match self.fate(&mut item) {
            Fate::There if item.kind == Kind::Directory => self.above.push(item),
            Fate::There => {}
            Fate::Lost => {
                self.destroyed.missed += 1;
                self.put(&Line::Missed(Missed { path: item.path, why: Why::Failed, was: None }))?;
            }
            Fate::Gone => {
                for above in std::mem::take(&mut self.above) {
                    self.around.push(Around { path: above.path.clone(), mtime: above.mtime, left: None });
                    self.put(&Line::Item(above))?;
                }
                match item.object {
                    Some(object) => {
                        self.numbers.insert(object.number);
                        if !item.is_aside {
                            self.destroyed.files += 1;
                            self.destroyed.bytes += item.size;
                        }
                    }
                    None => self.destroyed.directories += 1,
                }
                self.put(&Line::Item(item))?;
            }
        }
        Ok(())
    }

    fn around(&mut self, around: Around) -> io::Result<()> {
        match self.present.look(&around.path.0) {
            Ok(Some(there)) if there.sort == Sort::Directory => {
                self.put(&Line::Around(Around { left: Some(there.mtime), ..around }))
            }
            _ => Ok(()),
        }
    }

    fn missed(&mut self, missed: Missed) -> io::Result<()> {
        self.is_store_hidden |= missed.why == Why::InStore;
        let is_text = matches!(missed.why, Why::Unknown | Why::Wiped);
        let is_gone = !is_text
            && missed.path.0.starts_with(b"/")
            && match self.present.look(&missed.path.0) {
                Ok(there) => !there.is_some_and(|there| missed.is_as_before(&there)),
                Err(_) => false,
            };
        if is_gone && missed.why != Why::Excepted {
            self.destroyed.missed += 1;
        }
        self.has_unknown |= is_text && missed.path.0.starts_with(b"/");
        if is_gone || is_text { self.put(&Line::Missed(missed)) } else { Ok(()) }
    }

    fn fate(&mut self, item: &mut Item) -> Fate {
        if !item.path.0.starts_with(b"/") {
            return Fate::There;
        }
        let there = self.present.look(&item.path.0);
        let Some(object) = item.object else {
            let is_there = matches!(there, Ok(Some(facts)) if facts.sort == Sort::Directory);
            return if is_there || item.kind != Kind::Directory { Fate::There } else { Fate::Gone };
        };
        let is_same = matches!(there, Ok(Some(facts)) if facts.identity() == (item.dev, item.ino)
            && (object.way == Way::Link || (facts.size, facts.mtime) == (item.size, item.mtime)));
        let kept = self.objects.as_ref().and_then(|objects| store::look(objects, object).ok());
        match kept {
            _ if is_same => Fate::There,
            None => Fate::Lost,
            Some(kept) if object.way == Way::Link => match kept {
                kept if kept.identity() != (item.dev, item.ino) => Fate::Lost,
                // It has another name now.
                kept if kept.links > item.links => Fate::There,
                // Before its name went away, it may have been written.
                kept => {
                    (item.size, item.mtime) = (kept.size, kept.mtime);
                    Fate::Gone
                }
            },
            Some(kept) if kept.size == item.size => Fate::Gone,
            Some(_) => Fate::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo::exceptions::Exceptions;
    use crate::undo::keeping::{Keeping, Kept, keep};
    use crate::undo::{Extent, Loss, Losses, Operand, PathPattern, Step};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let top = std::env::temp_dir().join(format!("rexec-undo-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&top);
            fs::create_dir_all(top.join("home")).unwrap();
            Self(top.canonicalize().unwrap())
        }

        fn store(&self) -> PathBuf {
            self.0.join("home/kept")
        }

        fn operand(&self, below: &str, loss: Loss, extent: Extent) -> Operand {
            let path = self.0.join(below);
            let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
            let step = |name: &[u8]| match name {
                name if name.contains(&b'*') => Step::Matching(name.to_vec()),
                name => Step::Name(name.to_vec()),
            };
            Operand { path: PathPattern { is_absolute: true, steps: names.map(step).collect() }, loss, extent }
        }

        fn keep(&self, run: u64, operands: &[Operand]) -> Kept {
            let until = Instant::now() + Duration::from_secs(600);
            let store = self.store();
            let (copy_max, environment, except) = (1 << 20, &[][..], &Exceptions::default());
            let keeping =
                Keeping { store: &store, session: "s", run, agent: "a", copy_max, except, environment, until };
            keep(&keeping, &Losses { operands: operands.to_vec(), ..Losses::default() }).unwrap()
        }

        fn lines(&self, run: u64) -> Vec<Line> {
            let text = fs::read(self.store().join(format!("s-{run}.jsonl"))).unwrap_or_default();
            text.split(|byte| *byte == b'\n').filter_map(Line::decode).collect()
        }

        fn items(&self, run: u64) -> Vec<Item> {
            let lines = self.lines(run).into_iter();
            lines.filter_map(|line| if let Line::Item(item) = line { Some(item) } else { None }).collect()
        }

        fn object(&self, run: u64, item: &Item) -> PathBuf {
            self.store().join(format!("s-{run}")).join(item.object.unwrap().path())
        }

        fn is_empty(&self) -> bool {
            fs::read_dir(self.store()).unwrap().count() == 0
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_removed_stays_in_the_store_and_all_else_leaves_it() {
        let place = Place::new("names");
        let tree = place.0.join("tree");
        fs::create_dir_all(tree.join("empty")).unwrap();
        let names: [&[u8]; 4] = [b"a\nb", b"\xff\xfe", &[b'x'; 255], b"plain"];
        for name in names {
            fs::write(tree.join(OsStr::from_bytes(name)), name).unwrap();
        }
        fs::set_permissions(tree.join("plain"), fs::Permissions::from_mode(0o4755)).unwrap();
        symlink("nowhere", tree.join("link")).unwrap();
        fs::hard_link(tree.join("plain"), place.0.join("outside")).unwrap();
        fs::hard_link(tree.join("plain"), tree.join("plain2")).unwrap();
        let all =
            [place.operand("tree", Loss::Name, Extent::Tree), place.operand("tree/p*", Loss::Name, Extent::Itself)];
        let kept = place.keep(1, &all);
        assert_eq!((kept.files, kept.missed), (6, 0));
        assert_eq!(place.items(1).len(), 8);
        assert_eq!(fs::metadata(place.store().join("s-1.jsonl")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(settle(&place.store(), "s", 1).unwrap(), Destroyed::default());
        assert!(place.is_empty(), "nothing was destroyed");

        place.keep(2, &all);
        fs::rename(tree.join(OsStr::from_bytes(b"\xff\xfe")), place.0.join("moved")).unwrap();
        fs::remove_file(tree.join("plain")).unwrap();
        fs::remove_file(tree.join(OsStr::from_bytes(b"a\nb"))).unwrap();
        let destroyed = settle(&place.store(), "s", 2).unwrap();
        assert_eq!((destroyed.files, destroyed.missed), (2, 0));
        let items = place.items(2);
        let paths = items.iter().map(|item| item.path.0.strip_prefix(place.0.as_os_str().as_bytes()).unwrap());
        let paths = paths.collect::<std::collections::BTreeSet<_>>();
        assert_eq!(paths, [&b"/tree"[..], b"/tree/a\nb", b"/tree/plain"].into());
        for item in items.iter().filter(|item| item.object.is_some()) {
            let there = fs::symlink_metadata(place.object(2, item)).unwrap();
            assert_eq!((there.dev(), there.ino(), there.size()), (item.dev, item.ino, item.size));
        }
        assert_eq!(settle(&place.store(), "s", 2).unwrap(), destroyed, "again");
    }

    #[test]
    fn a_file_that_is_written_in_place_is_copied() {
        let place = Place::new("bytes");
        fs::write(place.0.join("one"), "before").unwrap();
        fs::write(place.0.join("two"), "before").unwrap();
        let operand = |name| place.operand(name, Loss::Bytes, Extent::Itself);
        place.keep(1, &[operand("one"), operand("two"), place.operand("one", Loss::Name, Extent::Itself)]);
        fs::write(place.0.join("one"), "afterwards").unwrap();
        assert_eq!(settle(&place.store(), "s", 1).unwrap().files, 1);
        let items = place.items(1);
        assert_eq!(items.len(), 1);
        assert_eq!(fs::read(place.object(1, &items[0])).unwrap(), b"before");
    }

    #[test]
    fn caches_and_what_holds_the_store_are_named_and_not_kept() {
        let place = Place::new("missed");
        fs::create_dir_all(place.0.join("p/node_modules/.bin")).unwrap();
        let kept = place
            .keep(1, &[place.operand("p", Loss::Name, Extent::Tree), place.operand("home", Loss::Name, Extent::Tree)]);
        assert_eq!(kept.missed, 1, "caches are not to be kept");
        fs::remove_dir_all(place.0.join("p")).unwrap();
        assert_eq!(settle(&place.store(), "s", 1).unwrap(), Destroyed { directories: 1, ..Destroyed::default() });

        let made = ["target/a.c", "__pycache__/a.pyc", "__pycache__/notes", ".venv/a", "node_modules/a"];
        let proofs = ["Cargo.toml", ".venv/pyvenv.cfg", "package.json"];
        for name in made {
            fs::create_dir_all(place.0.join("q").join(name).parent().unwrap()).unwrap();
            fs::write(place.0.join("q").join(name), "x").unwrap();
        }
        let files = |run| place.keep(run, &[place.operand("q", Loss::Name, Extent::Tree)]).files;
        assert_eq!(files(2), 5, "a name alone tells nothing");
        fs::remove_file(place.0.join("q/__pycache__/notes")).unwrap();
        proofs.iter().for_each(|name| fs::write(place.0.join("q").join(name), "x").unwrap());
        assert_eq!(files(3), 2, "the two that are beside them");
    }

    #[test]
    fn a_record_that_was_only_begun_goes() {
        let place = Place::new("begun");
        fs::create_dir_all(place.store().join("s-1/0")).unwrap();
        fs::write(place.store().join("s-1/0/0"), "x").unwrap();
        fs::write(place.store().join("s-1.jsonl"), "").unwrap();
        assert_eq!(settle(&place.store(), "s", 1).unwrap(), Destroyed::default());
        assert!(place.is_empty());
    }

    #[test]
    fn what_the_text_does_not_name_is_kept_where_it_is_little() {
        let place = Place::new("below");
        fs::create_dir_all(place.0.join("few/d")).unwrap();
        fs::write(place.0.join("few/d/f"), "x").unwrap();
        fs::write(place.0.join("few/archive"), "x").unwrap();
        fs::create_dir(place.0.join("many")).unwrap();
        for number in 0..=crate::limits::KEPT_BELOW_MAX {
            symlink("x", place.0.join(format!("many/{number}"))).unwrap();
        }
        let below = |name| {
            let Operand { path, .. } = place.operand("few/archive", Loss::Name, Extent::Itself);
            place.operand(name, Loss::Name, Extent::Below { archive: Some(path), strip: None })
        };
        let many = place.operand("many/7", Loss::Name, Extent::Itself);
        let kept = place.keep(1, &[below("many"), below("few"), below("home"), many]);
        assert_eq!((kept.files, kept.missed), (2, 1), "and the store is not kept in itself");
        assert_eq!(fs::metadata(place.0.join("few/d/f")).unwrap().nlink(), 1, "no link is seen");
        fs::remove_file(place.0.join("many/7")).unwrap();
        assert_eq!(settle(&place.store(), "s", 1).unwrap().files, 1);
    }

    #[test]
    fn of_what_find_looks_through_only_what_it_finds_is_kept() {
        let place = Place::new("found");
        fs::create_dir_all(place.0.join("t/d/deep.tmp")).unwrap();
        for name in ["a.tmp", "b", "d/c.tmp", "d/e", "d/deep.tmp/f", "d/empty"] {
            fs::write(place.0.join("t").join(name), name.repeat(usize::from(name != "d/empty"))).unwrap();
        }
        let found = |text: &str| {
            let leaves = crate::gate::Gate::default().leaves(text.as_bytes(), &|_| None);
            let losses = crate::undo::losses(&leaves);
            let [operand] = &losses.operands[..] else { panic!("{text}: {losses:?}") };
            let extent = operand.extent.clone();
            place.operand("t", operand.loss, extent)
        };
        let below = |run| {
            let paths = place.items(run).into_iter().filter(|item| item.object.is_some()).map(|item| item.path.0);
            let top = place.0.join("t/");
            let names = paths.map(|path| path.strip_prefix(top.as_os_str().as_bytes()).unwrap().to_vec());
            let mut names = names.map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>();
            names.sort();
            names.join(" ")
        };
        for (run, text, expected) in [
            (1, "find t -name '*.tmp' -delete", "a.tmp d/c.tmp"),
            (2, "find t -name '*.tmp' -exec rm -r {} +", "a.tmp d/c.tmp d/deep.tmp/f"),
            (3, "find t -maxdepth 1 -type f -delete", "a.tmp b"),
            (4, "find t -empty -delete", "d/empty"),
            (5, "find t -iname '?.TMP' -exec truncate -s0 {} +", "a.tmp d/c.tmp"),
            (6, "find t -maxdepth 2 -name 'deep*' -exec rm -rf {} +", "d/deep.tmp/f"),
        ] {
            let kept = place.keep(run, &[found(text)]);
            assert_eq!((below(run).as_str(), kept.missed), (expected, 0), "{text}");
            assert_eq!(settle(&place.store(), "s", run).unwrap(), Destroyed::default());
        }
        place.keep(7, &[found("find t -name '*.tmp' -delete")]);
        assert_eq!(fs::metadata(place.0.join("t/d/e")).unwrap().nlink(), 1);
        fs::remove_file(place.0.join("t/d/c.tmp")).unwrap();
        assert_eq!(settle(&place.store(), "s", 7).unwrap().files, 1);
    }

    #[test]
    fn a_manifest_that_is_cut_off_counts_up_to_there() {
        let place = Place::new("cut");
        let tree = place.0.join("tree");
        fs::create_dir(&tree).unwrap();
        for number in 0..9 {
            fs::write(tree.join(number.to_string()), "x").unwrap();
        }
        place.keep(1, &[place.operand("tree", Loss::Name, Extent::Tree)]);
        fs::remove_dir_all(&tree).unwrap();
        let manifest = place.store().join("s-1.jsonl");
        let whole = fs::read(&manifest).unwrap();
        fs::write(&manifest, &whole[..whole.len() / 2]).unwrap();
        let files = settle(&place.store(), "s", 1).unwrap().files;
        assert!((2..8).contains(&files), "{files}");
        assert!(matches!(place.lines(1).last(), Some(Line::Done { settled: true, is_cut: true, .. })));
        assert_eq!(fs::read_dir(place.store().join("s-1/0")).unwrap().count() as u64, files);
    }

    #[test]
    fn depth_has_no_bound_and_a_damaged_head_is_refused() {
        let place = Place::new("deep");
        let mut at = Folder::enter(place.0.as_os_str().as_bytes()).unwrap();
        for _ in 0..5_000 {
            at = at.make(b"d").unwrap();
        }
        at.create(b"file").unwrap();
        let kept = place.keep(1, &[place.operand("d", Loss::Name, Extent::Tree)]);
        assert_eq!((kept.files, kept.missed, place.items(1).len()), (1, 0, 5_001));
        at.remove(b"file").unwrap();
        assert_eq!(settle(&place.store(), "s", 1).unwrap().files, 1);
        fs::write(place.store().join("s-1.jsonl"), "x\n").unwrap();
        assert!(settle(&place.store(), "s", 1).is_err());
        assert!(settle(&place.store(), "../s", 1).is_err());
    }
}
