//! Listing and printing journals.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;

use rexec_host::cli::{list, print};
use rexec_sh::protocol::notice::Notice;

use super::recording::*;

const SAMPLE: &str = r#"{"v":1,"type":"open","time":"t","pid":1,"version":"0"}
{"v":1,"type":"start","seq":1,"time":"2026-05-21T09:42:18.123Z","whoami":"Claude Code","dir":"/p","command":"ls"}
{"v":1,"type":"start","seq":2,"time":"2026-05-21T09:42:19Z","whoami":"Codex","dir":"/p","command":"cat\n\u001b[2J"}
{"v":1,"type":"end","seq":1,"time":"2026-05-21T09:42:18.123Z","whoami":"Claude Code","dir":"/p","command":"ls","exit":0,"output":"a\tb\n\u001b]0;x\u0007","duration_ms":3}
{"v":1,"type":"start","seq":3,"command":"x"}
{"v":1,"type":"end","seq":3,"time":"2026-05-21T09:42:20Z","whoami":"C","dir":"/p","command":"make","exit":101,"output":"headtail","duration_ms":14200,"output_omitted":7,"output_cut":4,"raw":"raw/x-3.out"}
{"v":1,"type":"start","seq":4,"time":"2026-05-21T09:42:21Z","whoami":"C","dir":"/p","command":"a\nb"}
{"v":1,"type":"lost","seq":2,"time":"2026-05-21T09:42:19Z","whoami":"Codex","dir":"/p","command":"cat"}
{"v":1,"type":"dropped","count":3}
{"v":1,"type":"end",
{"v":1,"type":"news"}
"#;

const PRINTED: &str = r"[2026-05-21T09:42:18Z] #1 Claude Code:/p $ ls
a	b
\x1b]0;x\x07

[2026-05-21T09:42:20Z] #3 C:/p $ make
head
… 7 bytes omitted, see raw/x-3.out
tail
exit 101 · 14.2 s

[2026-05-21T09:42:19Z] #2 Codex:/p $ cat
… lost: the host died before this ended, its output and exit are not known

… 3 records were dropped while the journal could not be written

[2026-05-21T09:42:21Z] #4 C:/p $ a\nb
… no end is recorded

… lines of the journal that could not be read: 1
… lines of the journal that need a newer version of rexec: 1
";

fn printed(home: &Home, name: &str) -> String {
    let mut out = Vec::new();
    print::print(&home.0, name, false, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn journals_are_listed_and_printed() {
    let home = Home::new();
    let path = home.0.join("2026-05-21-09:42:18.jsonl");
    fs::write(&path, SAMPLE).unwrap();
    fs::write(home.0.join("2026-05-20-17:03:55.jsonl"), "").unwrap();
    fs::create_dir(home.0.join("raw")).unwrap();
    fs::write(home.0.join("raw/x-3.out"), "").unwrap();
    for name in ["2026-05-21-09:42:18", "2026-05-21-09:42:18.jsonl", path.to_str().unwrap()] {
        assert_eq!(printed(&home, name), PRINTED);
    }
    fs::remove_file(home.0.join("raw/x-3.out")).unwrap();
    assert_eq!(printed(&home, "2026-05-21-09:42:18"), PRINTED.replace(", see raw/x-3.out", "; raw/x-3.out is gone"));
    let mut out = Vec::new();
    list::list(&home.0, list::DEFAULT, &mut out).unwrap();
    assert_eq!(out, b"2026-05-21-09:42:18 commands=4\n2026-05-20-17:03:55 commands=0\n");
    let mut out = Vec::new();
    list::list(&home.0, 1, &mut out).unwrap();
    list::list(&home.0.join("none"), 1, &mut out).unwrap();
    assert_eq!(out, b"2026-05-21-09:42:18 commands=4\n");
}

#[test]
fn listing_and_printing_say_why_they_fail() {
    let home = Home::new();
    let fails = |name: &str| print::print(&home.0, name, false, &mut Vec::new()).unwrap_err();
    assert!(matches!((fails(""), Notice::from(fails("")).code), (print::PrintError::Usage { .. }, 2)));
    assert!(matches!((fails("none"), Notice::from(fails("none")).code), (print::PrintError::NotFound { .. }, 1)));
    assert!(!Notice::from(fails("none")).hint.is_empty());
    assert!(matches!(fails("/"), print::PrintError::NotAJournal { .. }));
    fs::write(home.0.join("2026-05-21-09:42:18.jsonl"), SAMPLE).unwrap();
    // It is not a failure if the reader has left. A full disk is one.
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    list::list(&home.0, 10, &mut ours).unwrap();
    print::print(&home.0, "2026-05-21-09:42:18", false, &mut ours).unwrap();
    let mut full = File::options().write(true).open("/dev/full").unwrap();
    assert!(matches!(list::list(&home.0, 10, &mut full), Err(notice) if notice.problem.starts_with("cannot write")));
    assert!(matches!(print::print(&home.0, "2026-05-21-09:42:18", false, &mut full), Err(print::PrintError::Write(_))));
}
