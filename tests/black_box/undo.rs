//! `rexec undo` and `rexec kept`, with records as a keeper makes them, and with records that somebody else has edited.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rexec_host::undo::exceptions::Exceptions;
use rexec_host::undo::keeping::{Keeping, keep};
use rexec_host::undo::manifest::{Bytes, Item, Line};
use rexec_host::undo::settling::settle;
use rexec_host::undo::{Extent, Loss, Losses, Operand, PathPattern, Step};
use serde_json::Value;

use crate::support::own_process::alone;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::typist::{At, Typist};

/// A directory with a store, and with `work`, in which commands destroy something.
pub(crate) struct Place {
    home: TempDir,
}

/// What a verb has said: its exit code, its output, its errors.
type Said = (i32, String, String);

impl Place {
    fn new() -> Self {
        let place = Self { home: TempDir::new(None) };
        fs::create_dir_all(place.work("")).unwrap();
        place
    }

    fn work(&self, below: &str) -> PathBuf {
        self.home.join("work").join(below)
    }

    /// Keeps what a command would destroy there.
    fn keep(&self, run: u64, paths: &[(&str, Loss, Extent)]) {
        let operands = paths.iter().map(|(path, loss, extent)| operand(&self.work(path), *loss, extent.clone()));
        keep_in(self.home.path(), run, &operands.collect::<Vec<_>>());
    }

    fn settle(&self, run: u64) {
        settle(&self.home.join("kept"), "s", run).unwrap();
    }

    fn manifest(&self, run: u64) -> PathBuf {
        self.home.join(&format!("kept/s-{run}.jsonl"))
    }

    fn rexec(&self, args: &[&str]) -> Said {
        self.rexec_with(args, &[])
    }

    fn rexec_with(&self, args: &[&str], env: &[(&str, &str)]) -> Said {
        let mut command = programs::command(programs::rexec());
        command.args(args).env_clear().env("PATH", programs::PATH).env("HOME", self.home.path());
        command.env("REXEC_HOME", self.home.path()).env("REXEC_SOCKET", "/nonexistent/host.sock");
        command.envs(env.iter().copied()).current_dir(self.work("")).stdin(Stdio::null());
        let output = command.output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    /// A restore that succeeds.
    fn undo(&self, args: &[&str]) -> String {
        let (code, out, errors) = self.rexec(&[&["undo"], args, &["--yes"]].concat());
        assert_eq!(code, 0, "{out}{errors}");
        out
    }

    fn json(&self, args: &[&str]) -> Vec<Value> {
        let (_, out, errors) = self.rexec(&[args, &["--json"]].concat());
        assert_eq!(errors, "");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn operand(path: &Path, loss: Loss, extent: Extent) -> Operand {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let steps = names.map(|name| Step::Name(name.to_vec())).collect();
    Operand { path: PathPattern { is_absolute: true, steps }, loss, extent }
}

fn keep_in(home: &Path, run: u64, operands: &[Operand]) {
    let (store, until) = (home.join("kept"), Instant::now() + Duration::from_secs(600));
    let (copy_max, environment, except) = (1 << 20, &[][..], &Exceptions::default());
    let keeping = Keeping { store: &store, session: "s", run, agent: "claude", copy_max, except, environment, until };
    keep(&keeping, &Losses { operands: operands.to_vec(), ..Losses::default() }).unwrap();
}

/// A record of a file whose name is this, for the tests of all verbs.
pub(crate) fn hostile_record(home: &Path, name: &str) {
    let path = home.join(name.replace('/', ""));
    fs::write(&path, "x").unwrap();
    keep_in(home, 7, &[operand(&path, Loss::Name, Extent::Itself)]);
    fs::remove_file(&path).unwrap();
}

const NAME: Loss = Loss::Name;
const BYTES: Loss = Loss::Bytes;
const TREE: Extent = Extent::Tree;
const ITSELF: Extent = Extent::Itself;

pub(crate) fn make(path: &Path, text: &[u8], mode: u32, seconds: u64) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let file = fs::File::options().read(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::new(seconds, 123_456_789)).unwrap();
}

/// All below a directory: names, sorts, modes, sizes, times, link counts, contents.
pub(crate) fn all(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![top.to_owned()];
    while let Some(path) = ahead.pop() {
        let facts = fs::symlink_metadata(&path).unwrap();
        let content = match facts.file_type() {
            sort if sort.is_dir() => {
                ahead.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            sort if sort.is_symlink() => fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
            sort if sort.is_fifo() => b"fifo".to_vec(),
            _ => fs::read(&path).unwrap(),
        };
        let (mode, uid, gid, links) = (facts.mode(), facts.uid(), facts.gid(), facts.nlink());
        found.push(format!(
            "{path:?} {mode:o} {uid} {gid} {links} {}.{} {content:?}",
            facts.mtime(),
            facts.mtime_nsec()
        ));
    }
    found.sort();
    found
}

/// A tree with all that is hard to bring back.
fn plant(place: &Place) {
    let tree = place.work("tree");
    fs::create_dir_all(tree.join("sub/empty")).unwrap();
    make(&tree.join("plain"), b"plain", 0o640, 1_000_000_000);
    make(&tree.join("sub/tool"), b"tool", 0o4755, 1_000_000_001);
    make(&tree.join("sub").join(OsStr::from_bytes(b"\xff\xfe")), b"bytes", 0o600, 1);
    make(&tree.join("a\nb"), b"line", 0o644, 2);
    make(&tree.join(OsStr::from_bytes(&[b'x'; 255])), b"", 0o444, 3);
    fs::hard_link(tree.join("plain"), tree.join("sub/twin")).unwrap();
    symlink("../nowhere", tree.join("link")).unwrap();
    let made = programs::command("mkfifo").arg(tree.join("pipe")).status().unwrap();
    assert!(made.success());
    fs::set_permissions(tree.join("sub/empty"), fs::Permissions::from_mode(0o1777)).unwrap();
    for (directory, seconds) in [("sub/empty", 10), ("sub", 11), ("", 12)] {
        let file = fs::File::open(tree.join(directory)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
    fs::set_permissions(tree.join("sub"), fs::Permissions::from_mode(0o550)).unwrap();
}

fn remove(place: &Place) {
    fs::set_permissions(place.work("tree/sub"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::remove_dir_all(place.work("tree")).unwrap();
}

#[test]
fn a_tree_comes_back_exactly() {
    for is_settled in [true, false] {
        let place = Place::new();
        plant(&place);
        let before = all(&place.work("tree"));
        place.keep(1, &[("tree", NAME, TREE)]);
        remove(&place);
        if is_settled {
            place.settle(1);
        }
        let listed = &place.json(&["kept"])[0];
        assert_eq!((&listed["files"], &listed["directories"], &listed["run"]), (&8.into(), &3.into(), &1.into()));
        let (code, out, _) = place.rexec(&["undo", "1", "--dry-run"]);
        assert_eq!(code, 0);
        assert!(out.contains("restore 8 files and 3 directories") && !place.work("tree").exists(), "{out}");
        let out = place.undo(&["1"]);
        assert!(out.contains("restored 8 files and 3 directories"), "{out}");
        assert_eq!(all(&place.work("tree")), before);
        assert!(place.undo(&["-1"]).contains("all that was kept is there"), "once more");
        assert_eq!(all(&place.work("tree")), before);
    }
}

#[test]
fn a_part_comes_back_and_then_the_rest() {
    let place = Place::new();
    plant(&place);
    let before = all(&place.work("tree"));
    place.keep(1, &[("tree", NAME, TREE)]);
    remove(&place);
    assert!(place.undo(&["1", "tree/plain", "./x/../tree/link"]).contains("restored 2 files and 1 directory"));
    assert_eq!(fs::read_dir(place.work("tree")).unwrap().count(), 2);
    let (code, _, errors) = place.rexec(&["undo", "1", "other"]);
    assert!(code == 1 && errors.contains("nothing of 1 is kept there"), "{errors}");
    place.undo(&["1"]);
    // The time of the directory above is that of its last new name.
    let without_top = |all: &[String]| all[1..].to_vec();
    assert_eq!(without_top(&all(&place.work("tree"))), without_top(&before));
}

#[test]
fn what_differs_is_kept_first_and_comes_back() {
    let place = Place::new();
    for name in ["gone", "written", "replaced", "directory", "file"] {
        make(&place.work(name), format!("{name} before").as_bytes(), 0o600, 5);
    }
    let names = ["gone", "replaced", "directory"].map(|name| (name, NAME, ITSELF));
    place.keep(4, &[&names[..], &[("written", BYTES, ITSELF)]].concat());
    fs::write(place.work("written"), "written afterwards").unwrap();
    for name in ["gone", "replaced", "directory"] {
        fs::remove_file(place.work(name)).unwrap();
    }
    fs::write(place.work("replaced"), "replaced afterwards").unwrap();
    fs::create_dir_all(place.work("directory/deep/er")).unwrap();
    fs::write(place.work("directory/deep/er/file"), "below").unwrap();
    let after = all(&place.work(""));
    let out = place.undo(&["4"]);
    assert!(
        out.contains("restore 4 files (") && out.contains("3 exist and differ: they are kept first as 4.1"),
        "{out}"
    );
    assert!(out.contains("3 that stood there are kept: rexec undo 4.1"), "{out}");
    for name in ["gone", "written", "replaced", "directory", "file"] {
        assert_eq!(fs::read(place.work(name)).unwrap(), format!("{name} before").as_bytes());
        assert_eq!(fs::metadata(place.work(name)).unwrap().mtime(), 5);
    }
    let out = place.undo(&["4.1"]);
    assert!(out.contains("kept first as 4.2"), "{out}");
    let without = |lines: &[String]| lines.iter().filter(|line| !line.contains("gone\"")).cloned().collect::<Vec<_>>();
    assert_eq!(without(&all(&place.work("")))[1..], without(&after)[1..], "but for the time of the top");
    assert_eq!(fs::read(place.work("gone")).unwrap(), b"gone before", "nothing is removed");
    let (code, out, _) = place.rexec(&["undo", "4", "--dry-run"]);
    assert!(code == 1 && out.contains("3 of them are in 4.2: rexec undo 4.2\n"), "{out}");
    place.undo(&["4.2"]);
    assert_eq!(fs::read(place.work("directory")).unwrap(), b"directory before");
    // A record of a tree goes as a whole.
    let (code, out, errors) = place.rexec(&["kept", "--drop", "--all", "--yes"]);
    assert!(code == 0 && out.contains("4 records were dropped"), "{out}{errors}");
    assert_eq!(fs::read_dir(place.home.join("kept")).unwrap().count(), 0);
}

#[test]
fn the_newest_records_are_listed_and_offered() {
    let place = Place::new();
    for run in 1..=53 {
        make(&place.work("file"), b"x", 0o600, 5);
        place.keep(run, &[("file", NAME, ITSELF)]);
        fs::remove_file(place.work("file")).unwrap();
    }
    let (code, out, told) = place.rexec(&["kept"]);
    assert_eq!((code, out.lines().count()), (0, 51), "{out}");
    assert!(told.contains("there are 3 more; -n N lists more, -n all lists all"), "{told}");
    assert_eq!(place.rexec(&["kept", "-n", "all"]).1.lines().count(), 54);
    assert_eq!(place.json(&["kept", "-n", "2"]).len(), 2);
    for verb in ["undo", "kept"] {
        let (_, offered, _) = place.rexec(&["complete", "--", verb, ""]);
        assert!(offered.lines().count() == 50 && offered.lines().all(|line| line.ends_with(" claude")), "{offered}");
    }
    assert_eq!(place.rexec(&["kept", "-n", "2", "4"]).0, 2);
}

#[test]
fn no_link_is_followed_and_nothing_outside_is_written() {
    let place = Place::new();
    fs::create_dir_all(place.work("a/b")).unwrap();
    fs::create_dir_all(place.home.join("outside/b")).unwrap();
    fs::write(place.work("a/b/file"), "x").unwrap();
    place.keep(1, &[("a/b/file", NAME, ITSELF)]);
    place.keep(2, &[("a", NAME, TREE)]);
    fs::remove_dir_all(place.work("a")).unwrap();
    symlink(place.home.join("outside"), place.work("a")).unwrap();
    for run in ["1", "2"] {
        let (code, out, _) = place.rexec(&["undo", run, "--yes"]);
        assert_eq!(code, 1);
        assert!(out.contains("a directory of its path is a symbolic link now"), "{out}");
        assert_eq!(fs::read_dir(place.home.join("outside/b")).unwrap().count(), 0);
        assert!(place.work("a").is_symlink());
    }
    fs::remove_file(place.work("a")).unwrap();
    assert!(place.undo(&["2"]).contains("restored 1 file and 2 directories"));
}

/// Writes a record's lines anew.
fn edit(place: &Place, run: u64, change: impl Fn(&mut Item)) {
    let text = fs::read(place.manifest(run)).unwrap();
    let mut edited = Vec::new();
    for mut line in text.split(|byte| *byte == b'\n').filter_map(Line::decode) {
        if let Line::Item(item) = &mut line {
            change(item);
        }
        edited.extend(line.encode());
    }
    fs::write(place.manifest(run), edited).unwrap();
}

#[test]
fn an_edited_manifest_or_object_is_refused() {
    let place = Place::new();
    let outside = place.home.join("outside");
    // Of what a link keeps, the inode tells that it is the file; of a copy, nothing else but these.
    type Edit<'e> = (Loss, &'e dyn Fn(&mut Item));
    let edits: [Edit<'_>; 8] = [
        (NAME, &|item| item.ino += 1),
        (NAME, &|item| item.dev += 1),
        (BYTES, &|item| item.size += 1),
        (BYTES, &|item| item.mtime.1 ^= 1),
        (NAME, &|item| item.object.as_mut().unwrap().place = 1),
        (NAME, &|item| item.object.as_mut().unwrap().number = u64::MAX),
        (NAME, &|item| item.object = None),
        (NAME, &|item| item.path.0.extend(b"/../../../outside")),
    ];
    for (run, (loss, change)) in (1..).zip(edits) {
        fs::write(place.work("file"), "x").unwrap();
        place.keep(run, &[("file", loss, ITSELF)]);
        fs::remove_file(place.work("file")).unwrap();
        edit(&place, run, |item| {
            if !item.path.0.ends_with(b"file") {
                item.path = Bytes(outside.as_os_str().as_bytes().to_vec());
            }
            change(item);
        });
        let (code, out, errors) = place.rexec(&["undo", &run.to_string(), "--yes"]);
        assert_eq!(code, 1, "{run}: {out}{errors}");
        assert!(out.contains("nothing can come back") || out.contains("1 line of the manifest"), "{run}: {out}");
        assert!(!outside.exists() && !place.work("file").exists());
    }
    // A link to somebody's file in the place of a copy.
    fs::write(place.work("file"), "x").unwrap();
    make(&place.work("secret"), b"y", 0o600, 7);
    place.keep(20, &[("file", BYTES, ITSELF)]);
    fs::remove_file(place.work("file")).unwrap();
    let object = place.home.join("kept/s-20/0/0");
    fs::remove_file(&object).unwrap();
    fs::hard_link(place.work("secret"), &object).unwrap();
    edit(&place, 20, |item| (item.size, item.mtime) = (1, (7, 123_456_789)));
    assert_eq!(place.rexec(&["undo", "20", "--yes"]).0, 1);
    assert!(!place.work("file").exists());
    // Heads of others.
    fs::copy(place.manifest(20), place.manifest(21)).unwrap();
    assert_eq!(place.rexec(&["undo", "21", "--yes"]).0, 3);
    // The store as a link.
    fs::rename(place.home.join("kept"), place.home.join("elsewhere")).unwrap();
    symlink("elsewhere", place.home.join("kept")).unwrap();
    let (code, _, errors) = place.rexec(&["undo", "20", "--yes"]);
    assert!(code == 1 && errors.contains("cannot read"), "{errors}");
    assert_eq!(place.rexec(&["kept", "--drop", "--all", "--yes"]).0, 1);
    assert!(place.home.join("elsewhere/s-20.jsonl").exists());
}

/// As if a restore had been killed after each of its steps.
#[test]
fn an_interrupted_restore_goes_on() {
    let before = {
        let place = Place::new();
        plant(&place);
        all(&place.work("tree")).len()
    };
    for files in [0, 1, 3, 6] {
        let place = Place::new();
        plant(&place);
        place.keep(1, &[("tree", NAME, TREE)]);
        remove(&place);
        place.settle(1);
        // Directories without their modes, and the first files.
        fs::create_dir(place.work("tree")).unwrap();
        fs::set_permissions(place.work("tree"), fs::Permissions::from_mode(0o1700)).unwrap();
        let text = fs::read(place.manifest(1)).unwrap();
        let items = text.split(|byte| *byte == b'\n').filter_map(Line::decode).filter_map(|line| match line {
            Line::Item(item) if item.object.is_some() => Some(item),
            _ => None,
        });
        let mut left = files;
        for item in
            items.filter(|item| Path::new(OsStr::from_bytes(&item.path.0)).parent() == Some(&place.work("tree")))
        {
            if left > 0 {
                left -= 1;
                let object = place.home.join("kept/s-1").join(item.object.unwrap().path());
                fs::rename(object, OsStr::from_bytes(&item.path.0)).unwrap();
            }
        }
        place.undo(&["1"]);
        let now = all(&place.work("tree"));
        assert_eq!(now.len(), before, "{files}");
        let facts = fs::metadata(place.work("tree")).unwrap();
        assert_eq!((facts.mode() & 0o1000, facts.mtime()), (0, 12), "{files}");
        let twins = ["tree/plain", "tree/sub/twin"].map(|name| fs::metadata(place.work(name)).unwrap().ino());
        assert_eq!(twins[0], twins[1], "{files}");
    }
    // Killed between the line of what stood there and the restore.
    let place = Place::new();
    fs::write(place.work("file"), "before").unwrap();
    place.keep(1, &[("file", NAME, ITSELF)]);
    fs::remove_file(place.work("file")).unwrap();
    fs::write(place.work("file"), "afterwards").unwrap();
    place.undo(&["1"]);
    fs::remove_file(place.work("file")).unwrap();
    let cut = fs::read(place.home.join("kept/s-1.1.jsonl")).unwrap();
    let done = Line::Done { settled: true, bytes: 0, is_cut: false }.encode();
    fs::write(place.home.join("kept/s-1.1.jsonl"), &cut[..cut.len() - done.len()]).unwrap();
    place.undo(&["1.1"]);
    assert_eq!(fs::read(place.work("file")).unwrap(), b"afterwards");
}

/// The same with a restore that is really killed.
#[test]
fn a_killed_restore_loses_nothing() {
    const FILES: usize = 400;
    for least in [1, 40, 200, 390] {
        let place = Place::new();
        for number in 0..FILES {
            let directory = place.work(&format!("tree/{}", number % 7));
            fs::create_dir_all(&directory).unwrap();
            make(&directory.join(number.to_string()), number.to_string().as_bytes(), 0o640, 1);
        }
        let before = all(&place.work("tree"));
        place.keep(1, &[("tree", NAME, TREE)]);
        fs::remove_dir_all(place.work("tree")).unwrap();
        place.settle(1);
        for number in (0..FILES).step_by(3) {
            let directory = place.work(&format!("tree/{}", number % 7));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(number.to_string()), format!("new {number}")).unwrap();
        }
        let mut command = programs::command(programs::rexec());
        command.args(["undo", "1", "--yes"]).env("HOME", place.home.path()).env("REXEC_HOME", place.home.path());
        command.env("REXEC_SOCKET", "/nonexistent/s").stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let is_old = |number: &usize| {
            let path = place.work(&format!("tree/{}/{number}", number % 7));
            fs::metadata(path).is_ok_and(|facts| facts.mtime() == 1)
        };
        while (0..FILES).filter(is_old).count() < least && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        place.undo(&["1"]);
        let files = |all: Vec<String>| all.into_iter().filter(|line| !line.ends_with("[]")).collect::<Vec<_>>();
        assert_eq!(files(all(&place.work("tree"))), files(before));
        // What was written meanwhile is in the records of the restores.
        let is_there = |restore: &&str| place.home.join(&format!("kept/s-{restore}.jsonl")).exists();
        let restores: Vec<&str> = ["1.1", "1.2"].into_iter().filter(is_there).collect();
        for restore in restores {
            place.undo(&[restore]);
        }
        for number in (0..FILES).step_by(3) {
            let path = place.work(&format!("tree/{}/{number}", number % 7));
            assert_eq!(fs::read(path).unwrap(), format!("new {number}").as_bytes(), "{number}, {least}");
        }
    }
}

#[test]
fn copies_elsewhere_leave_the_record_as_it_is() {
    let place = Place::new();
    plant(&place);
    fs::remove_file(place.work("tree/pipe")).unwrap();
    let before = all(&place.work("tree"));
    place.keep(1, &[("tree", NAME, TREE)]);
    remove(&place);
    let kept = fs::read(place.manifest(1)).unwrap();
    for _ in 0..2 {
        place.undo(&["1", "--to", "copies"]);
    }
    let below = place.work("copies").join(place.work("tree").strip_prefix("/").unwrap());
    let moved = |lines: Vec<String>| lines.into_iter().map(|line| line.split_once("tree").unwrap().1.to_owned());
    let is_of_top = |line: &String| line.starts_with("\" ");
    let copied: Vec<String> = moved(all(&below)).filter(|line| !is_of_top(line)).collect();
    assert_eq!(copied, moved(before.clone()).filter(|line| !is_of_top(line)).collect::<Vec<_>>());
    assert!(!place.work("tree").exists() && fs::read(place.manifest(1)).unwrap() == kept);
    let object = fs::metadata(place.home.join("kept/s-1/0/0")).unwrap();
    assert!(object.nlink() == 1, "the copies have inodes of their own");
    place.undo(&["1"]);
    assert_eq!(all(&place.work("tree")), before);
}

/// Where nothing can be linked or moved, everything is copied, both ways.
#[test]
fn files_of_another_file_system_come_back() {
    let place = Place::new();
    let other = PathBuf::from(format!("/dev/shm/rexec-undo-{}", std::process::id()));
    let dev = |path: &Path| fs::metadata(path).map(|facts| facts.dev()).ok();
    if fs::create_dir(&other).is_err() || dev(&other) == dev(place.home.path()) {
        _ = fs::remove_dir(&other);
        programs::skipped("there is no second file system in /dev/shm");
        return;
    }
    fs::create_dir(other.join("tree")).unwrap();
    make(&other.join("tree/one"), b"one", 0o4711, 5);
    make(&other.join("tree/two"), b"two", 0o600, 6);
    symlink("one", other.join("tree/link")).unwrap();
    assert!(programs::command("mkfifo").arg(other.join("tree/pipe")).status().unwrap().success());
    let before = all(&other.join("tree"));
    keep_in(place.home.path(), 1, &[operand(&other.join("tree"), NAME, TREE)]);
    fs::remove_dir_all(other.join("tree")).unwrap();
    fs::create_dir(other.join("tree")).unwrap();
    make(&other.join("tree/two"), b"another", 0o644, 7);
    let after = all(&other.join("tree/two"));
    let (code, out, errors) = place.rexec(&["undo", "1", "--yes"]);
    let restored = all(&other.join("tree"));
    let undone = place.rexec(&["undo", "1.1", "--yes"]);
    let again = all(&other.join("tree/two"));
    fs::remove_dir_all(&other).unwrap();
    assert!(code == 0 && out.contains("restored 4 files"), "{out}{errors}");
    // The tree itself was made anew meanwhile.
    assert_eq!(restored[1..], before[1..]);
    assert_eq!((undone.0, again), (0, after), "{undone:?}");
}

/// A link to a file of a lower layer would copy it as a whole, in its place.
#[test]
fn files_of_lower_layers_are_copied_as_far_as_they_are_small() {
    let wrapper = ["unshare", "--map-root-user", "--mount"];
    alone("undo::files_of_lower_layers_are_copied_as_far_as_they_are_small", &wrapper, || {
        let (place, layers) = (Place::new(), TempDir::new(None));
        let layer = |name: &str| layers.join(name);
        ["lower/work/t", "upper", "own"].into_iter().for_each(|name| fs::create_dir_all(layer(name)).unwrap());
        make(&layer("lower/work/t/small"), b"small", 0o4751, 5);
        make(&layer("lower/work/t/large"), &[b'x'; (1 << 20) + 1], 0o600, 5);
        let options = [("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "own")];
        let options = options.map(|(option, name)| format!("{option}={}", layer(name).display())).join(",");
        let mut mount = programs::command("mount");
        mount.args(["-t", "overlay", "none", "-o", &(options + ",userxattr")]).arg(place.home.path());
        if !mount.status().unwrap().success() {
            return programs::skipped("no overlay can be mounted here");
        }
        make(&place.work("t/made"), b"made", 0o600, 6);
        place.keep(1, &[("t", NAME, TREE)]);
        assert!(!layer("upper/work/t/large").exists() && !layer("upper/work/t/small").exists());
        fs::remove_dir_all(place.work("t")).unwrap();
        let (code, out, errors) = place.rexec(&["undo", "1", "--yes"]);
        assert!(code == 1 && out.contains("t/large: it is too large to be copied"), "{out}{errors}");
        let back = ["small", "made"].map(|name| fs::read(place.work("t").join(name)).unwrap());
        assert_eq!(back, [b"small".to_vec(), b"made".to_vec()]);
        assert_eq!(fs::metadata(place.work("t/small")).unwrap().mode() & 0o7777, 0o4751);
        programs::command("umount").arg(place.home.path()).status().unwrap();
    });
}

#[test]
fn only_a_person_undoes_and_drops() {
    let place = Place::new();
    fs::write(place.work("file"), "x").unwrap();
    place.keep(1, &[("file", NAME, ITSELF)]);
    fs::remove_file(place.work("file")).unwrap();
    let agent = [("REXEC_INSIDE", "1")];
    for args in [&["undo", "1", "--yes"][..], &["kept", "--drop", "1"], &["kept", "--drop", "--all", "--yes"]] {
        let (code, _, errors) = place.rexec_with(args, &agent);
        assert!(code == 1 && errors.contains("no agent"), "{args:?}: {errors}");
    }
    let (code, out, _) = place.rexec_with(&["undo", "1", "--dry-run"], &agent);
    assert!(code == 0 && out.contains("restore 1 file (1 byte)"), "{out}");
    let (code, _, errors) = place.rexec(&["undo", "1"]);
    assert!(code == 1 && errors.contains("rexec undo 1 --yes"), "{errors}");
    assert!(!place.work("file").exists());
    let env = [format!("REXEC_HOME={}", place.home.path().display()), "REXEC_SOCKET=/nonexistent/s".to_owned()];
    for (answer, is_back) in [("n\n", false), ("y\n", true)] {
        let argv = ["rexec", "undo", "1"];
        let mut typist = Typist::start(programs::rexec(), &argv, &env, &place.work(""), [At::Terminal; 3]);
        typist.sees("restore? [y/N] ");
        typist.types(answer.as_bytes());
        typist.ends();
        assert_eq!(place.work("file").exists(), is_back, "{}", typist.screen());
    }
}

#[test]
fn records_are_listed_shown_and_dropped() {
    let place = Place::new();
    let (code, out, _) = place.rexec(&["kept"]);
    assert!(code == 0 && out == "nothing is kept\n", "{out}");
    fs::create_dir_all(place.work("p/node_modules/.bin")).unwrap();
    for (run, name) in (1..).zip(["one", "two", "p/three"]) {
        fs::write(place.work(name), "12345").unwrap();
        place.keep(run, &[(name, NAME, ITSELF), ("p/node_modules", NAME, TREE)]);
    }
    fs::remove_file(place.work("one")).unwrap();
    fs::remove_dir_all(place.work("p")).unwrap();
    (1..=3).for_each(|run| place.settle(run));
    let (_, out, _) = place.rexec(&["kept"]);
    let rows: Vec<&str> = out.lines().collect();
    assert!(
        rows.len() == 3 && rows[0].contains("FILES") && rows[1].starts_with('3') && rows[2].starts_with('1'),
        "{out}"
    );
    assert!(rows[1].contains("claude") && rows[1].contains("5 bytes"), "{out}");
    let paths = place.json(&["kept", "3"]);
    let states: Vec<&str> = paths.iter().map(|path| path["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["gone", "not kept"], "{paths:?}");
    let undone = &place.json(&["undo", "s:3", "--yes"])[0];
    assert_eq!((&undone["files"], &undone["not_kept"][0]["state"]), (&1.into(), &"not kept".into()), "{undone}");
    let (code, out, _) = place.rexec(&["kept", "--drop", "1"]);
    assert!(code == 0 && out.contains("5 bytes freed"), "{out}");
    assert!(!place.manifest(1).exists() && !place.home.join("kept/s-1").exists());
    assert_eq!(place.rexec(&["kept", "1"]).0, 3);
    for args in [&["undo"][..], &["undo", "x"], &["undo", "1", "--json"], &["kept", "--drop"], &["kept", "--all"]] {
        assert_eq!(place.rexec(args).0, 2, "{args:?}");
    }
}
