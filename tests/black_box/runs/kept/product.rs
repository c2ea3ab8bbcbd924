//! Everything that destroys files, on every sort of tree: `rexec undo` brings all of it back as it was.
//!
//! The oracle is the tree: names, sorts, modes, owners, links, times, contents, and users' attributes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::history::reading::said;
use crate::support::call::{Call, Target};
use crate::support::host::{Host, PLAIN};
use crate::support::programs;
use crate::support::waiting;
use crate::undo::{all, make};

/// Texts in which `@` is the tree's path `t/…`. `s` is a new file, and `n` a tree with the names of `t`, in other files.
const DESTROYERS: [&str; 50] = [
    "rm -rf t",
    "rm -f -- @",
    "sed -i s/x/X/ @",
    "echo new >@",
    "mv s @",
    "cp -r n/. t/",
    "find t -delete",
    "cd t && rm -rf -- * .[!.]*",
    "cp s @",
    "ln -sf s @",
    // Long from here on.
    "rm -rf t/",
    "rm -rf \"$PWD/t\"",
    "\\rm -rf ./t//; /bin/rm -rf t",
    "env A=b command rm -rf t",
    "bash -c 'rm -rf \"$1\"' _ t",
    "for f in t/* t/.[!.]*; do rm -rf \"$f\"; done",
    "mv t u && rm -rf u",
    "mv @ u; rm -rf u",
    "unlink @",
    "rm -f t/d/*; rmdir -p t/d",
    "find t -mindepth 1 -delete",
    "find t -not -type d -exec rm -f {} +",
    "find t -type f -execdir rm -f {} ';'",
    "find t -type f -exec sh -c 'rm -f \"$1\"' _ {} ';'",
    "mkdir e; rsync -a --delete e/ t/",
    "rsync -r n/ t",
    "rsync -r --inplace n/ t/",
    "cp -rT n t",
    "cp -r n/* t",
    "cp -r --remove-destination n/. t",
    "cp -tt n/f",
    "cp --target-directory=t n/f",
    "mv --target=t n/f",
    "mv -T s @",
    "ln -f s @",
    "ln -s t l; rm -rf l/",
    "install -m 755 s @",
    "install -D -t t n/f",
    "cp -f --remove-destination s @",
    "tee @ <s >/dev/null",
    "truncate -s 1 @",
    "dd if=s of=@ conv=notrunc 2>/dev/null",
    "perl -i -pe 's/x/X/' @",
    ": >|@",
    "sort -o @ s",
    "[ -L @ ] || { gzip -f -- @ && rm -f -- @.gz; }",
    "tar -cf a.tar -C n . && tar -xf a.tar --no-overwrite-dir -C t",
    "cp -r n m; tar --remove-files -cf a.tar t",
    "cd nowhere; rm -rf t",
    "rm -rf t; mkdir t; echo new >t/f",
];

type Plant = fn(&Path);

/// What it is, the last name of `@`, and what makes it beside `f` and `d/g`: [`plain`] gets the path of `@`, others that of `t`.
struct Tree(&'static str, &'static [u8], Plant);

const TREES: [Tree; 20] = [
    Tree("name: plain", b"x", plain),
    Tree("name: names", b"a\n'\xff$(x)", plain),
    Tree("hard links", b"x", |t| {
        plain(&t.join("x"));
        fs::hard_link(t.join("x"), t.join("d/twin")).expect("a link");
        fs::hard_link(t.join("x"), t.with_file_name("o").join("across")).expect("a link");
    }),
    Tree("modes", b"x", |t| {
        make(&t.join("x"), b"x", 0o4755, 5);
        make(&t.join("read-only"), b"x", 0o444, 6);
        mode(&t.join("d"), 0o3775);
    }),
    Tree("specials", b"x", |t| {
        plain(&t.join("x"));
        assert!(programs::command("mkfifo").arg(t.join("pipe")).status().expect("mkfifo").success());
        symlink("nowhere", t.join("dangling")).expect("a link");
        fs::create_dir_all(t.join("empty/e")).expect("directories");
    }),
    // Long from here on.
    Tree("name: long name", &[b'y'; 255], plain),
    Tree("name: dash", b"-rf", plain),
    Tree("name: blanks", b" a  b ", plain),
    Tree("name: patterns", b"*?[a]{b,c}\\", plain),
    Tree("name: tilde", b"~", plain),
    Tree("name: hidden", b".x", plain),
    Tree("name: escape", b"\x1b[2J", plain),
    Tree("empty file", b"x", |t| make(&t.join("x"), b"", 0o600, 5)),
    Tree("dangling link", b"x", |t| symlink("nowhere/n", t.join("x")).expect("a link")),
    Tree("link to a file", b"x", |t| symlink("../o/out", t.join("x")).expect("a link")),
    Tree("chain of links", b"x", |t| {
        symlink("y", t.join("x")).expect("a link");
        symlink("d/../f", t.join("y")).expect("a link");
    }),
    Tree("hard links to a link", b"x", |t| {
        symlink("f", t.join("x")).expect("a link");
        fs::hard_link(t.join("x"), t.join("y")).expect("a link");
    }),
    Tree("holes", b"x", |t| {
        make(&t.join("x"), b"x", 0o600, 5);
        fs::File::options().write(true).open(t.join("x")).expect("it opens").set_len(900_000).expect("a hole");
    }),
    Tree("deep", b"x", |t| {
        plain(&t.join("x"));
        let deep = t.join("d/".repeat(300));
        fs::create_dir_all(&deep).expect("directories");
        make(&deep.join("f"), b"deep", 0o600, 5);
    }),
    Tree("attributes", b"x", |t| {
        make(&t.join("x"), b"x", 0o640, 5);
        for path in ["x", "d"] {
            let set = programs::command("setfattr").args(["-n", "user.a", "-v", "b"]).arg(t.join(path)).status();
            if set.is_ok() {
                let set = programs::command("setfacl").args(["-m", "u:1234:r"]).arg(t.join(path)).status();
                assert!(set.is_ok_and(|set| set.success()), "one package has both");
            }
        }
    }),
];

/// Returns true if only the name matters.
fn is_named(tree: &Tree) -> bool {
    tree.0.starts_with("name")
}

fn plain(path: &Path) {
    make(path, b"x of plain\n", 0o644, 5);
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// All below the tree and beside it.
fn digest(dir: &Path, has_attributes: bool) -> Vec<String> {
    let there = ["t", "o"].map(|top| dir.join(top)).into_iter().filter(|top| top.symlink_metadata().is_ok());
    let mut found: Vec<String> = there.flat_map(|top| all(&top)).collect();
    for (tool, arguments) in [("getfattr", ["-R", "-h", "-d"]), ("getfacl", ["-R", "-P", "-n"])] {
        if has_attributes && programs::find(tool).is_some() {
            let told = programs::command(tool).args(arguments).arg("t").current_dir(dir).output().expect("it starts");
            found.push(told.stdout.escape_ascii().to_string());
        }
    }
    found
}

fn quoted(path: &[u8]) -> Vec<u8> {
    let inner = path.iter().flat_map(|byte| if *byte == b'\'' { b"'\\''".to_vec() } else { vec![*byte] });
    [b"'", &inner.collect::<Vec<_>>()[..], b"'"].concat()
}

/// Waits until all links of a run to what is still there are gone: until its end is told, or its record is gone.
fn wait_settled(host: &Host, run: usize) {
    let (number, told) = (format!("-{run}"), format!("… #{run}: "));
    let is_of_run = |name: &OsStr| name.to_str().is_some_and(|name| name.trim_end_matches(".jsonl").ends_with(&number));
    waiting::wait_until("it is settled", || {
        let entries = fs::read_dir(super::store(host)).into_iter().flatten();
        let is_gone = !entries.filter_map(Result::ok).any(|entry| is_of_run(&entry.file_name()));
        is_gone || host.console_text().contains(&told)
    });
}

enum Proof {
    Exact,
    /// The text does nothing to this tree.
    Harmless,
    Wrong(String),
}

/// Plants a tree, destroys it, and undoes that.
fn proved(host: &Host, run: usize, tree: &Tree, destroyer: &str) -> Proof {
    let Tree(title, name, plant) = tree;
    let dir = host.home.join(&format!("w{run}"));
    for below in ["t/d", "o", "n/d"] {
        fs::create_dir_all(dir.join(below)).expect("directories");
    }
    for (path, text) in
        [("t/f", "f"), ("t/d/g", "g"), ("s", "new"), ("n/f", "new f"), ("n/d/g", "new g"), ("o/out", "o")]
    {
        make(&dir.join(path), text.as_bytes(), 0o644, 3);
    }
    let x = dir.join("t").join(OsStr::from_bytes(name));
    plant(&if is_named(tree) { x } else { dir.join("t") });
    for below in ["t/d", "t", "o"] {
        let file = fs::File::open(dir.join(below)).expect("a directory");
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::new(7, 7)).expect("it is ours");
    }
    let look = || digest(&dir, *title == "attributes");
    let before = look();
    let parts: Vec<&[u8]> = destroyer.as_bytes().split(|byte| *byte == b'@').collect();
    let text = parts.join(&quoted(&[b"t/", *name].concat())[..]);
    Call { dir: crate::support::call::dir(&dir), ..host.call(&text) }.run(Target::Shim(&host.socket()));
    wait_settled(host, run);
    if look() == before {
        return Proof::Harmless;
    }
    let (out, code) = said(&host.journal_home(), &["undo", &run.to_string(), "--yes"]);
    let after = look();
    let wrong: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
    let change = after.iter().find(|line| !before.contains(line));
    let is_exact = wrong.is_empty() && code == 0;
    _ = fs::remove_dir_all(&dir);
    if is_exact {
        Proof::Exact
    } else {
        Proof::Wrong(format!("{title}: {destroyer}: {code} {out}{wrong:?} is {change:?}"))
    }
}

fn prove(trees: &[Tree], destroyers: &[&str]) {
    let host = Host::with(PLAIN);
    let (mut runs, mut exact, mut wrong) = (0, 0, Vec::new());
    for tree in trees {
        for destroyer in destroyers {
            let is_there = |tool: &str| !destroyer.contains(tool) || programs::find(tool).is_some();
            // Trees that differ in a name matter to what names it.
            let is_of_interest = tree.0 == "name: plain" || destroyer.contains('@') || !is_named(tree);
            if is_of_interest && is_there("rsync") && is_there("perl") {
                runs += 1;
                match proved(&host, runs, tree, destroyer) {
                    Proof::Exact => exact += 1,
                    Proof::Harmless => {}
                    Proof::Wrong(what) => wrong.push(what),
                }
            }
        }
    }
    host.finish();
    assert!(wrong.is_empty(), "{} of {runs}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(exact > runs * 3 / 4, "{exact} of {runs}");
}

#[test]
fn what_is_destroyed_comes_back() {
    prove(&TREES[..5], &DESTROYERS[..10]);
}

#[test]
#[ignore = "long: 48 destroyers of 20 trees"]
fn whatever_is_destroyed_comes_back() {
    prove(&TREES, &DESTROYERS);
}
