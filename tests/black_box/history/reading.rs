//! `rexec log`, `show` and `out` on journals made by hand, without a host.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::samples::Sample;
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::verbs::live;

/// Runs rexec with the journals of this directory, and without a host.
pub(crate) fn rexec(home: &Path, args: &[&str]) -> Output {
    let mut rexec = programs::command(programs::rexec());
    rexec.args(args).env("REXEC_HOME", home).env("REXEC_SOCKET", home.join("no.sock")).env("TZ", "UTC");
    rexec.output().expect("rexec starts")
}

/// Its output, and how it exited.
pub(crate) fn said(home: &Path, args: &[&str]) -> (String, i32) {
    let output = rexec(home, args);
    (String::from_utf8(output.stdout).expect("text"), output.status.code().expect("a code"))
}

fn errors(home: &Path, args: &[&str]) -> String {
    String::from_utf8(rexec(home, args).stderr).expect("text")
}

/// The numbers that `rexec log` lists.
fn numbers(home: &Path, args: &[&str]) -> Vec<u64> {
    let (text, _) = said(home, &[&["log", "--json"], args].concat());
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.map(|line| line["seq"].as_u64().expect("a number")).collect()
}

fn sample(home: &Path) {
    let first = Sample::new("2026-05-21-09:42:18")
        .run(1, "cargo test", "\"exit\":0,\"output\":\"ok\\n\",\"duration_ms\":45000")
        .start(2, "npm run dev")
        .run(3, "say \"a\\b\"\né", "\"exit\":1,\"output\":\"no \\\"such\\\" file: ä\\n\",\"duration_ms\":10")
        .run(4, "kill", "\"exit\":137,\"signal\":9,\"output\":\"\"");
    let second =
        first.continues("2026-05-21-09:42:18-2").start(2, "npm run dev").run(5, "ls", "\"exit\":0,\"output\":\"x\"");
    first.write(home);
    second
        .line("{\"v\":1,\"type\":\"end\",\"seq\":9,")
        .line("garbage")
        .end(2, "npm run dev", "\"exit\":130")
        .write(home);
}

#[test]
fn log_lists_what_the_options_ask_for() {
    let home = TempDir::new(None);
    let home = home.path();
    sample(home);
    for (args, expected) in [
        (&[][..], &[1, 2, 3, 4, 5][..]),
        (&["-n", "2"], &[4, 5]),
        (&["-n", "4"], &[2, 3, 4, 5]),
        (&["-n", "all"], &[1, 2, 3, 4, 5]),
        (&["--failed"], &[2, 3, 4]),
        (&["--failed", "-n", "1"], &[4]),
        (&["--exit", "137"], &[4]),
        (&["--slow", "30s"], &[1]),
        (&["--agent", "codex"], &[1, 2, 3, 4, 5]),
        (&["--agent", "claude"], &[]),
        (&["--running"], &[]),
        (&["--cwd", "/srv"], &[1, 2, 3, 4, 5]),
        (&["--cwd", "api"], &[1, 2, 3, 4, 5]),
        (&["--cwd", "/srv/ap"], &[]),
        (&["--since", "2026-05-21T10:00:03Z"], &[3, 4, 5]),
        (&["--since", "2026-05-21T10:00:03Z", "--until", "2026-05-21T10:00:05Z"], &[3, 4]),
        (&["-g", "npm"], &[2]),
        (&["-g", "\"a\\b\"\né"], &[3]),
        (&["-g", "e"], &[1, 2]),
        (&["-g", "such"], &[]),
        (&["-g", "\"such\" file: ä", "--any-output"], &[3]),
        (&["-g", "n", "--failed"], &[2]),
    ] {
        assert_eq!(numbers(home, args), expected, "{args:?}");
    }
    assert_eq!(said(home, &["log", "--exit", "9"]).1, 1);
    assert!(errors(home, &["log"]).contains("2 lines are not records: they are left out"));
    assert!(errors(home, &["log", "-n", "2"]).contains("the newest 2 are shown"));
    for (args, problem) in [
        (["--since", "soon"], "log --since: `soon` is not valid\nhint: 1h, 2d"),
        (["--slow", "fast"], "log --slow: `fast` is not valid\nhint: 500ms"),
        (["--exit", "256"], "log --exit: `256` is not valid\nhint: a code"),
        (["-n", "-1"], "log -n: `-1` is not valid\nhint: a number"),
    ] {
        assert!(
            errors(home, &["log", args[0], args[1]]).contains(problem),
            "{args:?}: {}",
            errors(home, &["log", args[0], args[1]])
        );
    }
}

#[test]
fn log_is_a_table() {
    let home = TempDir::new(None);
    sample(home.path());
    let (text, code) = said(home.path(), &["log", "-n", "3"]);
    let expected = "\
2026-05-21  session 2026-05-21-09:42:18
     3  10:00:03  codex  api  exit 1   0.0 s  say \"a\\b\"⏎é
     4  10:00:04  codex  api  SIGKILL  0.0 s  kill
     5  10:00:05  codex  api  ok       0.0 s  ls
";
    assert_eq!((text.as_str(), code), (expected, 0));
}

#[test]
fn sessions_with_equal_numbers_are_kept_apart() {
    let home = TempDir::new(None);
    let home = home.path();
    Sample::new("2026-05-20-17:03:55").run(1, "old", "\"exit\":0").run(2, "old too", "\"exit\":1").write(home);
    sample(home);
    assert_eq!(numbers(home, &["-n", "6"]), [2, 1, 2, 3, 4, 5]);
    assert_eq!(numbers(home, &["--failed"]), [2, 2, 3, 4]);
    let (text, _) = said(home, &["show", "2026-05-20-17:03:55:2"]);
    assert!(text.contains("old too") && text.contains("#2 of session 2026-05-20-17:03:55"), "{text}");
}

#[test]
fn out_prints_lines_of_the_record_and_of_the_raw_file() {
    let home = TempDir::new(None);
    let home = home.path();
    let raw: String = (1..=500).map(|line| format!("\x1b[3{}mline {line}\x1b[0m\r\n", line % 8)).collect();
    Sample::new("2026-05-21-09:42:18")
        .run(1, "short", "\"output\":\"a\\nb\\u001b]0;x\\nc\",\"exit\":0")
        .run(2, "long", "\"output\":\"\",\"output_omitted\":9,\"raw\":\"raw/x-2.out\",\"exit\":0")
        .run(3, "cut", "\"output\":\"headtail\\n\",\"output_omitted\":7,\"output_cut\":4,\"exit\":0")
        .write(home);
    fs::create_dir(home.join("raw")).unwrap();
    fs::write(home.join("raw/x-2.out"), &raw).unwrap();
    for (args, expected, code) in [
        (&["1"][..], "a\nb\x1b]0;x\nc\n", 0),
        (&["1", "--lines", "1:1"], "a\n", 0),
        (&["2", "--lines", "99:101"], "line 99\nline 100\nline 101\n", 0),
        (&["2", "--head", "1"], "line 1\n", 0),
        (&["2", "--tail", "2"], "line 499\nline 500\n", 0),
        (&["2", "--grep", "ne 50"], "50:line 50\n500:line 500\n", 0),
        (&["2", "--grep", "ne 50", "--lines", "51:"], "500:line 500\n", 0),
        (&["2", "--grep", "line 6", "--head", "2"], "6:line 6\n60:line 60\n", 0),
        (&["2", "--grep", "nothing"], "", 1),
        (&["2", "--raw"], &raw, 0),
        (&["3"], "head\n… 7 bytes omitted\ntail\n", 0),
        (&["-1", "--lines", "2"], "tail\n", 0),
        (&["9"], "", 3),
    ] {
        assert_eq!(said(home, &[&["out"], args].concat()), (expected.to_owned(), code), "{args:?}");
    }
    let (json, _) = said(home, &["out", "3", "--json"]);
    assert_eq!(
        json,
        "{\"v\":1,\"line\":1,\"text\":\"head\"}\n{\"v\":1,\"gap\":7}\n{\"v\":1,\"line\":2,\"text\":\"tail\"}\n"
    );
}

#[test]
fn journals_of_the_tool_before_are_read() {
    let home = TempDir::new(None);
    let home = home.path();
    let line = |command: &str, exit: u8, output: &str| {
        format!(
            "{{\"whoami\":\"Codex\",\"dir\":\"/srv\",\"envs\":{{}},\"exec\":[\"sh\",\"-c\",\"{command}\"],\"exit\":{exit},\
             \"output\":\"{output}\",\"time\":\"2026-05-20T09:42:24Z\"}}\n"
        )
    };
    let long = "x".repeat(3 << 20);
    let text = [
        line("one", 0, "1"),
        "{\"whoami\":\"torn".to_owned(),
        "\n".to_owned(),
        line("two", 143, &long),
        line("three", 0, "ä"),
    ];
    fs::write(home.join("2026-05-20-17:03:55.jsonl"), text.concat()).unwrap();
    assert_eq!(numbers(home, &[]), [1, 2, 3]);
    assert_eq!(numbers(home, &["-g", "ä", "--any-output"]), [3]);
    assert!(errors(home, &["log"]).contains("1 line is not a record: it is left out"));
    assert_eq!(said(home, &["out", "3"]), ("ä\n".to_owned(), 0));
    assert_eq!(said(home, &["out", "2"]).0.len(), long.len() + 1);
    assert!(said(home, &["show", "-2"]).0.contains("exit 143 · SIGTERM"));
    let (printed, _) = said(home, &["--print", "2026-05-20-17:03:55"]);
    assert!(
        printed.starts_with("[2026-05-20T09:42:24Z] #1 Codex:/srv $ sh -c one\n1\n") && printed.contains("#3 Codex")
    );
}

#[test]
fn what_a_command_wrote_does_not_reach_a_list() {
    let home = TempDir::new(None);
    let home = home.path();
    let nasty = "x\x1b]0;title\x07\u{202e}\u{9b}2J\r▌";
    Sample::new("2026-05-21-09:42:18")
        .run(1, nasty, "\"exit\":0,\"output\":\"\\u001b[2J\",\"error\":\"\\u001b[2J\",\"left_count\":1,\"left\":[{\"pid\":1,\"comm\":\"\\u001b[2J\"}]")
        .line("{\"v\":1,\"type\":\"start\",\"seq\":2,\"time\":\"\\u001b[2J\",\"whoami\":\"\\u001b[2J\",\"dir\":\"/\\u001b[2J\",\"shell\":\"\\u001b[2J\",\"envs\":{\"\\u001b[2J\":\"\\u001b[2J\"},\"exec\":[\"\\u001b[2J\"],\"unwrapped\":true}")
        .write(home);
    for args in [
        &["log"][..],
        &["show", "1"],
        &["show", "2"],
        &["log", "--json"],
        &["show", "1", "--json"],
        &["out", "1", "--json"],
    ] {
        let (text, code) = said(home, args);
        assert_eq!(code, 0, "{args:?}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{args:?}: {text:?}");
        assert!(args.contains(&"--json") || !text.contains('\u{202e}'), "{args:?}: {text:?}");
    }
}

/// A host that runs may be in the middle of its last line.
#[test]
fn half_a_line_at_the_end_is_told_of_hosts_that_are_gone_only() {
    let host = Host::with(MIRROR);
    assert_eq!(host.run("echo whole").code(), 0);
    host.wait_for("the end", |journal| journal.end_of("echo whole").map(drop));
    let read = || live::rexec(&host, &["log"]);
    let mut journals =
        fs::read_dir(host.journal_home()).expect("a directory").map(|entry| entry.expect("a name").path());
    let journal = journals.find(|path| path.extension().is_some_and(|extension| extension == "jsonl")).expect("a file");
    let whole = fs::metadata(&journal).expect("a file").len();
    let mut file = fs::OpenOptions::new().append(true).open(&journal).expect("it is ours");
    file.write_all(b"{\"t").expect("a disk");
    let seen = read();
    file.set_len(whole).expect("a disk");
    assert_eq!((seen.code, seen.out.contains("echo whole"), seen.err.as_str()), (0, true, ""));
    let home = host.leave();
    let place = home.path().join(journal.strip_prefix(home.path()).expect("it is below"));
    fs::OpenOptions::new().append(true).open(&place).and_then(|mut file| file.write_all(b"{\"t")).expect("a disk");
    let errors = errors(place.parent().expect("a directory"), &["log"]);
    assert!(errors.contains("1 line is not a record: it is left out"), "{errors}");
}
