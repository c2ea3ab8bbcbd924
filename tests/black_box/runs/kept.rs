//! What a host keeps before a command destroys it, and what it says of that.

mod product;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::held::answer;
use super::rules::{end, host};
use crate::history::reading::said;
use crate::rpc::client::Client;
use crate::support::call::Target;
use crate::support::clock;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::procs;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

const OFF: Setup = Setup { flags: &["--undo", "off"], ..PLAIN };

fn store(host: &Host) -> PathBuf {
    host.journal_home().join("kept")
}

/// The lines of the only manifest.
fn manifest(host: &Host) -> Vec<Value> {
    let names = fs::read_dir(store(host)).expect("a store").map(|entry| entry.expect("an entry").path());
    let mut files = names.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let text = fs::read_to_string(files.next().expect("a manifest")).expect("text");
    assert_eq!(files.next(), None);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The paths in the only manifest that have an object, below the host's directory.
fn kept(host: &Host) -> Vec<String> {
    let lines = manifest(host);
    let with_object = lines.iter().filter(|line| line["object"].is_object());
    let paths = with_object.map(|line| PathBuf::from(line["path"].as_str().expect("a path")));
    paths.map(|path| path.strip_prefix(host.home.path()).expect("below it").display().to_string()).collect()
}

fn is_empty(store: &Path) -> bool {
    fs::read_dir(store).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn a_tree_that_is_removed_stays_in_the_store() {
    let host = Host::with(PLAIN);
    let tree = host.home.join("tree");
    fs::create_dir_all(tree.join("sub/empty")).expect("directories");
    fs::write(tree.join("a"), "one").expect("a file");
    fs::write(tree.join("sub/b"), "two").expect("a file");
    symlink("a", tree.join("link")).expect("a link");
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(path).expect("a file"));
    let before = inode(&tree.join("a"));

    assert_eq!(host.run("rm -r tree; echo $?").out(), "0\n");
    host.console_says("… #1: 3 files and 3 directories (7 bytes) gone or changed: rexec undo 1\n");
    let mut paths = kept(&host);
    paths.sort();
    assert_eq!(paths, ["tree/a", "tree/link", "tree/sub/b"]);
    let a = manifest(&host).into_iter().find(|line| line["path"] == json!(tree.join("a"))).expect("a line");
    let head = &manifest(&host)[0];
    let session = head["session"].as_str().expect("a session");
    let number = a["object"]["number"].as_u64().expect("a number");
    let object = store(&host).join(format!("{session}-1/0/{number}"));
    assert_eq!((fs::read_to_string(&object).expect("the object"), inode(&object)), ("one".to_owned(), before));
    assert_eq!(end(&host, 1)["kept"], json!({"files": 3}));
    let shown = said(&host.journal_home(), &["show", "1"]).0;
    assert!(shown.contains("3 files (7 bytes) are kept: rexec undo "), "{shown}");
    let destroyed = host.wait_for("what is destroyed", |journal| journal.of_type("destroyed").next().cloned());
    let facts = ["seq", "files", "bytes", "directories", "not_kept"].map(|field| destroyed[field].as_u64());
    assert_eq!(facts, [Some(1), Some(3), Some(7), Some(3), None]);
    let listed = said(&host.journal_home(), &["--print", session]).0;
    assert!(listed.contains("… #1: 3 files and 3 directories (7 bytes) gone or changed: rexec undo 1\n"), "{listed}");
    host.finish();
}

#[test]
fn files_that_change_in_place_are_copied_and_what_stays_leaves_the_store() {
    let host = Host::with(PLAIN);
    for name in ["one", "two", "three"] {
        fs::write(host.home.join(name), name).expect("a file");
    }
    assert_eq!(host.run("echo new >one; rm -f two.* missing; [ -e two ] || rm three; cat one").out(), "new\n");
    host.console_says("… #1: 1 file (3 bytes) gone or changed: rexec undo 1\n");
    assert_eq!(kept(&host), ["one"]);
    host.run("rexec_no_such_program >two || rm -f nothing");
    host.console_says("… #2: 1 file (3 bytes) gone or changed: rexec undo 2\n");
    host.finish();
}

#[test]
fn a_command_that_shows_link_counts_sees_no_other() {
    let host = Host::with(PLAIN);
    fs::create_dir(host.home.join("d")).expect("a directory");
    fs::write(host.home.join("d/one"), "text").expect("a file");
    fs::write(host.home.join("two"), "text").expect("a file");
    assert_eq!(host.run("stat -c %h two d/one; find d -type f -links 1 -delete; rm two; ls d").out(), "1\n1\n");
    host.console_says("… #1: 2 files (8 bytes) gone or changed: rexec undo 1\n");
    fs::write(host.home.join("d/three"), "text").expect("a file");
    assert_eq!(host.run("find d -name no -delete; gzip d/three 2>&1 && ls d").out(), "three.gz\n");
    host.finish();
}

#[test]
fn what_is_written_before_it_is_removed_comes_back_as_it_was_then() {
    let host = Host::with(PLAIN);
    for name in ["log", "big"] {
        fs::write(host.home.join(name), vec![b'x'; 2 << 20]).expect("a file");
    }
    host.run("echo more >>log; rm log");
    host.console_says("… #1: 1 file (");
    assert_eq!(said(&host.journal_home(), &["undo", "1", "--yes"]).1, 0);
    let end = fs::read(host.home.join("log")).expect("it is back").split_off(2 << 20);
    assert_eq!(end, b"more\n");
    // One that is too large to be copied is named before and afterwards, as long as it is another.
    host.run("echo >big");
    host.console_says("… #2: 1 path gone, which could not be kept\n");
    let (out, code) = said(&host.journal_home(), &["undo", "2", "--yes"]);
    assert!(code == 1 && out.contains("not kept: 1\n") && out.contains("too large to be copied"), "{out}");
    host.finish();
}

#[test]
fn other_names_of_a_file_get_their_bytes_back_and_directories_their_times() {
    let host = Host::with(PLAIN);
    let (directory, one, two) = (host.home.join("d"), host.home.join("d/one"), host.home.join("two"));
    fs::create_dir(&directory).expect("a directory");
    fs::write(&one, "before").expect("a file");
    fs::hard_link(&one, &two).expect("a link");
    let time = |path: &Path| fs::metadata(path).expect("it is there").modified().expect("a time");
    let old = time(&one) - std::time::Duration::from_secs(1_000);
    fs::File::open(&directory).and_then(|open| open.set_modified(old)).expect("it is ours");
    let undo = |run: &str| said(&host.journal_home(), &["undo", run, "--yes"]);
    host.run("echo after >two");
    host.console_says("… #1: ");
    assert_eq!(undo("1").1, 0);
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).expect("it is there"));
    assert_eq!((fs::read(&one).expect("one"), inode(&one)), (b"before".to_vec(), inode(&two)));
    // What stood there is kept, and comes back to both names, too.
    assert_eq!(undo("1.1").1, 0);
    assert_eq!((fs::read(&one).expect("one"), inode(&one)), (b"after\n".to_vec(), inode(&two)));
    host.run("rm d/one");
    host.console_says("… #2: ");
    assert!(time(&directory) > old && undo("2").1 == 0 && time(&directory) == old);
    host.run("rm d/one");
    host.console_says("… #3: ");
    fs::write(directory.join("other"), "").expect("a file");
    assert!(undo("3").1 == 0 && time(&directory) > old, "something else has changed there");
    host.finish();
}

#[test]
fn what_archives_and_differences_replace_comes_back_and_gzip_sees_no_link() {
    let host = Host::with(PLAIN);
    fs::create_dir_all(host.home.join("d/e")).expect("directories");
    fs::write(host.home.join("d/e/f"), "old\n").expect("a file");
    fs::write(host.home.join("diff"), "--- a/e/f\n+++ b/e/f\n@@ -1 +1 @@\n-old\n+new\n").expect("a file");
    host.run("mkdir n; cp -r d/. n; echo other >n/e/f; tar -cf a.tar -C n . && tar -xf a.tar -C d");
    host.console_says("… #1: 1 file (4 bytes) gone or changed: rexec undo 1\n");
    let comes_back = |run: &str| {
        assert_eq!(said(&host.journal_home(), &["undo", run, "--yes"]).1, 0);
        assert_eq!(fs::read(host.home.join("d/e/f")).expect("it is back"), b"old\n");
    };
    comes_back("1");
    assert_eq!(host.run("cd d; git apply ../diff; cat e/f").out(), "new\n");
    host.console_says("… #2: 1 file (4 bytes) gone or changed: rexec undo 2\n");
    comes_back("2");
    let script = "tar -xf a.tar; chmod 700 .; gzip diff && echo *.gz";
    assert_eq!(host.run(script).out(), "diff.gz\n", "and none of what is unpacked");
    host.run("seq -f d/e/g%g 600 | xargs touch; gzip <a.tar >a.tgz");
    host.run("cd d && tar -xzf ../a.tgz");
    host.console_says("… #5: 1 file (4 bytes) gone or changed: rexec undo 5\n");
    comes_back("5");
    host.finish();
}

#[test]
fn what_two_commands_destroy_at_once_is_kept_by_one_of_them() {
    let host = Host::with(PLAIN);
    let tree = host.home.join("t");
    fs::create_dir(&tree).expect("a directory");
    for number in 0..500 {
        fs::write(tree.join(number.to_string()), number.to_string()).expect("a file");
    }
    let start = || host.call("rm -rf t").start(Target::Shim(&host.socket())).expect("the shim starts");
    for mut calling in [start(), start()] {
        calling.finish(PATIENCE).expect("it ends");
    }
    for run in [1, 2] {
        waiting::wait_until("it is settled", || {
            let names = fs::read_dir(store(&host)).into_iter().flatten().map(|entry| entry.expect("an entry").path());
            let mut own = names.filter(|path| path.to_string_lossy().ends_with(&format!("-{run}.jsonl")));
            own.all(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("\"settled\":true")))
        });
        said(&host.journal_home(), &["undo", &run.to_string(), "--yes"]);
    }
    let is_back = |number: i32| {
        let text = fs::read(tree.join(number.to_string()));
        text.is_ok_and(|text| text == number.to_string().as_bytes())
    };
    assert!((0..500).all(is_back), "each file is in one of the records");
    host.finish();
}

#[test]
fn what_cannot_be_known_is_named_before_and_afterwards() {
    let host = Host::with(PLAIN);
    for name in ["t/made", "s"] {
        fs::create_dir_all(host.home.join(name)).expect("a directory");
        fs::write(host.home.join(name).join("x"), "x").expect("a file");
    }
    host.run("mkdir made; echo new >made/x; cp -r made t");
    host.console_says("… not kept for undo: 1 path; rexec kept 1 names them\n");
    let (out, _) = said(&host.journal_home(), &["kept", "1"]);
    assert!(out.contains("/t: ") || out.contains("/t"), "{out}");
    host.run("shred -u s/x");
    host.console_says("… not kept for undo: what shred destroys, as it is meant to leave nothing\n");
    host.finish();
}

#[test]
fn a_command_that_destroys_nothing_keeps_nothing() {
    let host = Host::with(PLAIN);
    fs::write(host.home.join("old"), "old").expect("a file");
    for script in
        ["echo x >new; mkdir d; cat old >/dev/null; : >>old", "rm -f nothing", "[ -e old ] || rm old", "mv old d"]
    {
        host.run(script);
    }
    // Its guard ends when it has settled what it kept.
    host.run("sleep 0");
    waiting::wait_until("the store is empty", || !store(&host).exists() || is_empty(&store(&host)));
    assert_eq!(end(&host, 1)["kept"], Value::Null);
    assert_eq!(end(&host, 2)["kept"], Value::Null);
    assert_eq!(end(&host, 3)["kept"], json!({"files": 1}));
    fs::write(host.home.join("file"), "").expect("a file");
    host.run("rm file; ls *.none | xargs rm -f");
    end(&host, 6);
    let listed = said(&host.journal_home(), &["log", "--destroyed", "--json"]).0;
    let runs = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let runs: Vec<_> = runs.map(|run| (run["seq"].clone(), run["kept"].clone())).collect();
    let last = json!({"files": 1, "missed": 1, "unknown": "xargs rm"});
    assert_eq!(runs, [(json!(3), json!({"files": 1})), (json!(6), last)]);
    host.finish();
}

#[test]
fn what_is_not_kept_is_said_before_the_command_runs() {
    let host = Host::with(PLAIN);
    fs::write(host.home.join("large"), vec![b'x'; (1 << 20) + 1]).expect("a file");
    fs::create_dir_all(host.home.join("node_modules/.bin")).expect("a directory");
    let waits = "until [ -e go ]; do sleep 0.02; done";
    let script = format!("{waits}; ls *.none 2>&1 | xargs rm -f");
    let mut calling = host.call(&script).start(Target::Shim(&host.socket())).expect("the shim starts");
    host.console_says("… not kept for undo: what xargs rm destroys, which the text does not tell\n");
    fs::write(host.home.join("go"), "").expect("a file");
    calling.finish(PATIENCE).expect("it ends");
    fs::remove_file(host.home.join("go")).expect("it is there");
    let script = format!("{waits}; rm -r node_modules; echo >large");
    let mut calling = host.call(&script).start(Target::Shim(&host.socket())).expect("the shim starts");
    host.console_says("… not kept for undo: 1 path; rexec kept 2 names them\n");
    fs::write(host.home.join("go"), "").expect("a file");
    calling.finish(PATIENCE).expect("it ends");
    assert_eq!(end(&host, 2)["kept"], json!({"files": 0, "missed": 1}), "a cache is not to be kept");
    host.finish();
}

#[test]
fn a_command_whose_process_lives_on_is_settled_when_that_has_ended() {
    let host = Host::with(PLAIN);
    fs::write(host.home.join("late"), "late").expect("a file");
    host.run("{ until [ -e go ]; do sleep 0.02; done; rm late; } >/dev/null 2>&1 &");
    assert_eq!(manifest(&host).len(), 4, "head, the directory around, item and end");
    fs::write(host.home.join("go"), "").expect("a file");
    host.console_says("… #1: 1 file (4 bytes) gone or changed: rexec undo 1\n");
    assert_eq!(kept(&host), ["late"]);
    host.finish();
}

#[test]
fn a_store_that_cannot_be_used_stops_no_command() {
    let host = Host::with(PLAIN);
    let elsewhere = host.home.join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    symlink(&elsewhere, store(&host)).expect("a link");
    fs::write(host.home.join("file"), "").expect("a file");
    assert_eq!(host.run("rm file; echo done").out(), "done\n");
    host.console_says("… undo: nothing is kept: ");
    assert!(is_empty(&elsewhere), "nothing is written behind a link");
    assert!(end(&host, 1)["kept"]["failure"].is_string());
    host.finish();
}

#[test]
fn a_caller_may_want_nothing_kept_and_the_person_reads_that() {
    let host = Host::with(PLAIN);
    fs::write(host.home.join("file"), "").expect("a file");
    let off = |script: &str| host.call(script).env("REXEC_UNDO=off").run(Target::Shim(&host.socket()));
    assert_eq!(off("rm -f missing; true").code(), 0);
    assert_eq!(off("rm file; echo $REXEC_UNDO").out(), "\n");
    host.console_says("… undo: nothing is kept: REXEC_UNDO=off\n");
    assert_eq!(end(&host, 1)["kept"], Value::Null, "it destroys nothing");
    assert_eq!(end(&host, 2)["kept"], json!({"files": 0, "failure": "nothing is kept: REXEC_UNDO=off"}));
    let wrong = host.call("rm file").env("REXEC_UNDO=no").run(Target::Shim(&host.socket()));
    assert!(wrong.code() == 125 && wrong.err().contains("REXEC_UNDO: `no` is not a valid value (on, off)"));
    fs::write(host.home.join("file"), "").expect("a file");
    let mut client = Client::new(&host);
    let dir = host.home.path().display().to_string();
    client.call("exec.run", &json!({"command": "rm file", "dir": dir, "env": {"REXEC_UNDO": "off"}}));
    assert_eq!(end(&host, 3)["kept"], json!({"files": 0, "failure": "nothing is kept: REXEC_UNDO=off"}));
    assert!(!store(&host).exists());
    drop(client);
    fs::write(host.home.join("secret"), "").expect("a file");
    host.run("shred -u secret");
    host.console_says("… not kept for undo: what shred destroys, as it is meant to leave nothing\n");
    host.finish();
}

#[test]
fn the_file_says_what_is_not_kept_and_how_much_is_copied() {
    let host = host("[undo]\ncopy = 3\nexcept = ['*.iso', 'build/', '~/VMs']\n", PLAIN);
    host.console_says("config.toml: copy = 3, except = [\"*.iso\", \"build/\", \"~/VMs\"]\n");
    for directory in ["tree/build", "tree/src", "VMs"] {
        fs::create_dir_all(host.home.join(directory)).expect("a directory");
    }
    for name in ["tree/a.iso", "tree/src/b", "tree/build/c", "VMs/d", "three", "four"] {
        fs::write(host.home.join(name), name).expect("a file");
    }
    fs::write(host.home.join("three"), "abc").expect("a file");
    host.run("rm -r tree VMs/d; echo >three; echo >four");
    host.console_says("… not kept for undo: 1 path; rexec kept 1 names them\n");
    let (mut names, lines) = (kept(&host), manifest(&host));
    names.sort();
    let missed = |why: &str| lines.iter().filter(|line| line["why"] == why).count();
    assert_eq!(names, ["three", "tree/src/b"]);
    assert_eq!(missed("excepted"), 3, "{lines:?}");
    assert_eq!(end(&host, 1)["kept"], json!({"files": 2, "missed": 1}));
    host.finish();
}

/// Nobody is at the console of a test: with `wait`, a question waits all the same.
const WAITS: &str = "[gate]\naway = 'wait'\nask_wait = '10m'\n";

#[test]
fn files_come_back_for_a_program_after_the_persons_yes_and_no_other_way() {
    let host = host(WAITS, PLAIN);
    let (tree, dir) = (host.home.join("tree"), host.home.path().display().to_string());
    fs::create_dir(&tree).expect("a directory");
    ["a", "b"].iter().for_each(|name| fs::write(tree.join(name), name).expect("a file"));
    host.run("rm -r tree");
    host.console_says("gone or changed: rexec undo 1\n");
    let mut client = Client::new(&host);
    assert_eq!(client.error("exec.undo", &json!({"run": 7})).0, -32001);
    let undo = |client: &mut Client, paths: &[&str]| {
        client.call("exec.undo", &json!({"run": 1, "dir": dir, "paths": paths, "whoami": "my agent"}))["run"].take()
    };
    let exit = |client: &mut Client, run: &Value| {
        client.call("exec.wait", &json!({"run": run, "for": "exit"}))["exit"].clone()
    };
    // An agent's own command does not bring them back, also while another one may.
    let run = undo(&mut client, &["tree/a"]);
    assert_eq!(client.call("exec.status", &json!({"run": run}))["held"], "rexec undo 1 tree/a");
    host.console_says(
        "#2 asks whether it may run: `rexec undo 1 tree/a` brings back what #1 has destroyed; rexec kept 1",
    );
    let own = host.run(&format!("{} undo 1 --yes", programs::rexec().display()));
    assert!(own.code() == 1 && own.err().contains("belongs to a command of a host"), "{}", own.err());
    assert!(answer(&host, "2 always").2.contains("you are asked about that whatever the rules say"));
    assert_eq!(answer(&host, "2 no").0, 0);
    assert_eq!(exit(&mut client, &run), 126);
    assert!(!tree.exists());

    let run = undo(&mut client, &["tree/a"]);
    assert_eq!(answer(&host, &format!("{run} yes")).0, 0);
    assert_eq!(exit(&mut client, &run), 0);
    let chunks = client.call("exec.output", &json!({"run": run}))["chunks"].take();
    let said: String = chunks.as_array().expect("chunks").iter().filter_map(|chunk| chunk["text"].as_str()).collect();
    assert!(said.contains("restored 1 file"), "{said}");
    assert_eq!((fs::read_to_string(tree.join("a")).expect("it is back"), tree.join("b").exists()), ("a".into(), false));
    let ended = end(&host, run.as_u64().expect("a number"));
    assert_eq!((&ended["whoami"], &ended["gate"]["by"]), (&json!("my agent"), &json!("client")), "{ended}");
    drop(client);
    host.finish();
}

/// What the text tells, what it does not tell, and what the caller does not want kept.
#[test]
fn a_command_whose_losses_cannot_be_kept_asks_if_the_person_wants_that() {
    let host = host(&format!("[undo]\nunkept = 'ask'\n{WAITS}"), PLAIN);
    let file = || fs::write(host.home.join("file"), "").expect("a file");
    file();
    assert_eq!(host.run("rm file; echo gone").out(), "gone\n");
    let sure = |script: &str, seq: u64, why: &str| {
        file();
        let mut calling =
            host.call(script).env("REXEC_UNDO=off").start(Target::Shim(&host.socket())).expect("it starts");
        host.console_says(&format!("#{seq} asks whether it may run: it {why} (unkept = \"ask\")\n"));
        assert!(answer(&host, &format!("{seq} always")).2.contains("you are asked about that whatever the rules say"));
        assert_eq!(answer(&host, &format!("{seq} yes")).0, 0);
        calling.finish(PATIENCE).expect("it ends").out()
    };
    assert_eq!(host.call("echo").env("REXEC_UNDO=off").run(Target::Shim(&host.socket())).out(), "\n");
    assert_eq!(sure("rm file; echo a", 3, "destroys files, of which REXEC_UNDO=off keeps nothing"), "a\n");
    let mut calling = host.call("ls file | xargs rm").start(Target::Shim(&host.socket())).expect("it starts");
    host.console_says("#4 asks whether it may run: it destroys files with xargs rm, and the text does not tell which");
    assert_eq!(answer(&host, "4 no").0, 0);
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 126);
    let long = format!("echo b; true {}", "x".repeat(9_000));
    assert_eq!(sure(&long, 5, "is too long to tell what it destroys"), "b\n");
    host.finish();
}

#[test]
fn files_come_back_for_no_program_where_nobody_is_there_or_nothing_is_kept() {
    let host = host("", PLAIN);
    let mut client = Client::new(&host);
    host.run("true");
    let run = client.call("exec.undo", &json!({"run": 1}))["run"].take();
    let ended = client.call("exec.status", &json!({"run": run}));
    let told = "nobody is there to say whether \"rexec undo 1\" may run";
    assert!(ended["exit"] == 126 && ended["message"].as_str().is_some_and(|text| text.contains(told)), "{ended}");
    drop(client);
    host.finish();

    let host = Host::with(OFF);
    let mut client = Client::new(&host);
    host.run("true");
    let refused = (-32010, "this host keeps nothing for undo".to_owned());
    assert_eq!(client.error("exec.undo", &json!({"run": 1})), refused);
    drop(client);
    host.finish();
}

#[test]
fn what_other_hosts_kept_a_week_ago_goes_and_what_this_one_keeps_stays_whatever_the_clock_says() {
    let Some(setup) = clock::setup() else { return };
    let host = Host::with(setup);
    for number in 1..=2 {
        fs::write(host.home.join("file"), "").expect("a file");
        host.run("rm file");
        host.console_says(&format!("… #{number}: 1 file gone or changed: rexec undo {number}\n"));
    }
    let names = fs::read_dir(store(&host)).expect("a store").map(|entry| entry.expect("an entry").path());
    let mut manifests: Vec<PathBuf> = names.filter(|path| path.extension().is_some()).collect();
    manifests.sort();
    let old = SystemTime::now() - Duration::from_secs(8 * 24 * 3_600);
    for manifest in &manifests {
        fs::File::options().write(true).open(manifest).expect("a file").set_modified(old).expect("its time");
    }
    let others = store(&host).join("2025-01-01-00:00:00-1.jsonl");
    fs::rename(&manifests[0], &others).expect("another host's");
    clock::pass(&host, Duration::from_secs(601));
    host.run("true");
    waiting::wait_until("the other host's is gone", || !others.exists());
    assert!(manifests[1].exists());
    host.finish();
}

#[test]
fn a_host_with_undo_off_keeps_nothing() {
    let host = Host::with(OFF);
    fs::write(host.home.join("file"), "").expect("a file");
    host.run("rm file");
    assert_eq!(end(&host, 1)["kept"], Value::Null);
    assert!(!store(&host).exists());
    host.finish();
}

/// A work tree in which git has something to destroy, and a branch that is not merged.
const REPOSITORY: &str = "exec 2>&1; mkdir p; cd p; git init -q -b main .; git config user.name a; git config user.email a@b; \
    mkdir src; for i in 1 2 3 4; do echo $i >src/$i; done; echo '*.log' >.gitignore; git add .; git commit -qm one; \
    git checkout -qb other; echo other >src/1; git commit -qam other; git checkout -q main; echo main >src/2; git commit -qam two; \
    echo stashed >src/1; git stash -q; echo staged >src/3; git add src/3; echo both >>src/3; echo changed >src/4; \
    mkdir -p new/deep; echo u >new/deep/u; echo u >'a b'; echo log >x.log; rm src/2; ln -s nowhere src/2";
/// All that `rexec undo` shall bring back in it.
const STATE: &str = "exec 2>&1; cd p; export GIT_OPTIONAL_LOCKS=0; git status --porcelain=v2 --branch --ignored; git stash list; \
    git reflog --all; git for-each-ref; git ls-files -s; find . -path ./.git -prune -o -type f -exec cksum {} + | sort";

#[test]
fn what_git_destroys_comes_back_with_its_index_and_its_references() {
    for script in [
        "git reset -q --hard other; git clean -qfdx",
        "git checkout -q . && git stash drop -q && git branch -qD other",
        "cd src; git checkout -q 4; git -C .. rm -qf src/3; git restore ../src/2",
        "git checkout -qf other -- && git stash clear",
        "git add -A && git reset -q --hard && git stash -q && git stash drop -q",
        "git checkout -q -f other && git branch -q -D main; git clean -fdq",
    ] {
        let host = Host::with(PLAIN);
        host.call(REPOSITORY).run(Target::Real);
        let state = || host.call(STATE).run(Target::Real).out();
        let before = state();
        assert!(
            before.contains("new/") && before.contains("stash@{0}") && before.contains("refs/heads/other"),
            "{before}"
        );
        host.run(&format!("cd p; {script}"));
        host.console_says(" gone or changed: rexec undo 1\n");
        assert_ne!(state(), before, "{script}");
        let (told, code) = said(&host.journal_home(), &["undo", "-1", "--yes"]);
        assert_eq!((state(), code), (before, 0), "{script}: {told}");
        host.finish();
    }
}

#[test]
fn a_command_of_git_that_destroys_nothing_keeps_nothing() {
    let host = Host::with(PLAIN);
    host.call("git init -q -b main p; cd p; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")
        .run(Target::Real);
    for script in ["git checkout -q main", "git clean -fd", "git reset -q --hard", "cd ..; git reset --hard; true"] {
        host.run(&format!("cd p; {script}"));
    }
    host.run("sleep 0");
    waiting::wait_until("the store is empty", || !store(&host).exists() || is_empty(&store(&host)));
    host.finish();
}

#[test]
fn a_directory_that_holds_the_store_comes_back_but_for_root() {
    let text = |path: &Path| fs::read_to_string(path).ok();
    // Root removes the store as well, so the command is told to be kept by nobody.
    let host = Host::with(PLAIN);
    if nix::unistd::geteuid().is_root() {
        fs::write(host.journal_home().join("file"), "text").expect("a file");
        host.run("rm -rf journal");
        host.console_says("… not kept for undo: 1 path; rexec kept 1 names them\n");
    }
    host.finish();

    let user = programs::another_user();
    if user.is_none() && nix::unistd::geteuid().is_root() {
        return;
    }
    let host = Host::with(Setup { user, ..PLAIN });
    let file = host.journal_home().join("a/b/file");
    let real = |script: &str| host.call(script).run(Target::Real);
    real("umask 077; mkdir -p journal/a/b && echo text >journal/a/b/file");
    let outcome = host.run("rm -rf journal");
    assert_eq!(outcome.code(), 1);
    let said = outcome.err();
    assert!(said.contains("kept': Permission denied") && said.lines().count() == 1, "{said}");
    host.console_says(" gone or changed: rexec undo 1\n");
    assert_eq!(text(&file), None);
    let undo = format!("env -u REXEC_INSIDE REXEC_HOME=$PWD/journal {} undo -1 --yes", programs::rexec().display());
    let outcome = real(&undo);
    assert_eq!((outcome.code(), text(&file)), (0, Some("text\n".to_owned())), "{}{}", outcome.out(), outcome.err());
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(store(&host)).expect("it stays")) & 0o7777, 0o700);
    // Its journal was among what came back, so not all that it wrote meanwhile is there.
    host.leave();
}

#[test]
#[ignore = "long: 60 s behind a shell's end"]
fn what_a_command_has_left_alone_leaves_the_store_also_while_a_process_of_it_lives() {
    let host = Host::with(PLAIN);
    let tree = host.home.join("t");
    fs::create_dir(&tree).expect("a directory");
    fs::write(tree.join("gone"), "gone").expect("a file");
    fs::write(tree.join("stays"), "stays").expect("a file");
    host.run(
        "rm t/gone; [ ! -e never ] || rm t/stays; { echo $PPID >guard; until [ -e end ]; do sleep 0.1; done; } >/dev/null 2>&1 &",
    );
    let guard = || fs::read_to_string(host.home.join("guard")).ok()?.trim().parse().ok();
    let guard = waiting::until(PATIENCE, guard).expect("it goes on");
    let links = || std::os::unix::fs::MetadataExt::nlink(&fs::metadata(tree.join("stays")).expect("a file"));
    assert_eq!(links(), 2, "what it might have destroyed is kept, too");
    assert!(waiting::until_true(3 * PATIENCE, || links() == 1));
    host.console_says("… #1: 1 file (4 bytes) gone or changed: rexec undo 1\n");
    fs::write(host.home.join("end"), "").expect("a file");
    waiting::wait_until("nothing is left of it", || !procs::is_alive(guard));
    assert_eq!(kept(&host), ["t/gone"]);
    assert_eq!(host.console_text().matches("rexec undo 1").count(), 1, "it is said once");
    host.finish();
}

#[test]
fn git_is_asked_without_writing_its_index() {
    let host = Host::with(PLAIN);
    host.call(REPOSITORY).run(Target::Real);
    host.call("cd p; touch -d '2001-01-01' src/1 src/3; chmod 755 src; touch src/1").run(Target::Real);
    let sum = host.call("cksum p/.git/index").run(Target::Real).out();
    assert_eq!(host.run("cksum p/.git/index; cd p; git checkout -q .; git reset -q --hard").out(), sum);
    host.finish();
}

#[test]
fn what_a_process_writes_to_a_removed_file_comes_back_with_it() {
    let host = Host::with(PLAIN);
    let log = host.home.join("log");
    fs::write(&log, "one\n").expect("a file");
    let mut server = fs::File::options().append(true).open(&log).expect("it is there");
    host.run("rm log");
    host.console_says("… #1: 1 file (4 bytes) gone or changed: rexec undo 1\n");
    server.write_all(b"two\n").expect("it takes more");
    let (told, code) = said(&host.journal_home(), &["undo", "1", "--yes"]);
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("restored 1 file (4 bytes), with what was written to 1 file after that"), "{told}");
    assert_eq!(fs::read(&log).expect("it is back"), b"one\ntwo\n");
    host.finish();
}
