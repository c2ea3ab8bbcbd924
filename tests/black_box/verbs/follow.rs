//! Verbs that follow what goes on: `rexec --print -f`, `rexec tail -f N`, and `rexec out N` of a command that runs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::live::{rexec, start};
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::reader::Reader;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

/// `rexec` that goes on.
fn following(args: &[&str], socket: &Path, home: &Path) -> Command {
    let mut command = programs::command(programs::rexec());
    command.args(args).env_clear().env("PATH", programs::PATH).stdin(Stdio::null()).stdout(Stdio::piped());
    command.env("REXEC_SOCKET", socket).env("REXEC_HOME", home);
    command
}

fn reader(pipe: impl Into<OwnedFd>) -> Reader {
    Reader::new(pipe.into(), usize::MAX)
}

/// Starts it; what it has printed so far.
fn follow(args: &[&str], socket: &Path, home: &Path) -> (Child, Reader) {
    let mut child = following(args, socket, home).spawn().expect("the program starts");
    let out = child.stdout.take().expect("a pipe");
    (child, reader(out))
}

/// The same, and what it says beside that.
fn follow_all(args: &[&str], host: &Host) -> (Child, Reader, Reader) {
    let mut command = following(args, &host.socket(), &host.journal_home());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
    let (out, err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    (child, reader(out), reader(err))
}

fn wait_for(reader: &Reader, text: &str) {
    let has_it = || String::from_utf8_lossy(&reader.so_far()).contains(text);
    assert!(waiting::until_true(PATIENCE, has_it), "{text}: {}", String::from_utf8_lossy(&reader.so_far()));
}

fn append(path: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a journal");
    file.write_all(line.as_bytes()).expect("a line");
}

/// The journal of a host that lives as long as this test.
#[test]
fn a_journal_is_followed_into_its_next_file() {
    let home = TempDir::new(None);
    let stat = fs::read_to_string("/proc/self/stat").expect("a process");
    let started = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19)).expect("a start time").to_owned();
    let pid = std::process::id();
    let open = |more: &str| {
        format!("{{\"v\":1,\"type\":\"open\",\"time\":\"t\",\"pid\":{pid},\"started\":{started}{more}}}\n")
    };
    let end = |seq: u32| {
        format!(
            "{{\"v\":1,\"type\":\"end\",\"seq\":{seq},\"whoami\":\"a\",\"dir\":\"/\",\"command\":\"c{seq}\",\"output\":\"out{seq}\\n\"}}\n"
        )
    };
    let (first, second) =
        (home.path().join("2026-05-21-09:42:18.jsonl"), home.path().join("2026-05-21-09:42:18-2.jsonl"));
    append(&first, &(open("") + &end(1)));
    let (mut child, reader) = follow(&["-p", "-f", "2026-05-21-09:42:18"], &home.path().join("none"), home.path());
    wait_for(&reader, "out1\n");
    // A line is printed when it is whole.
    let line = end(2);
    append(&first, &line[..20]);
    append(&first, &line[20..]);
    wait_for(&reader, "out2\n");
    append(&second, &open(",\"continues\":\"2026-05-21-09:42:18\""));
    append(&first, "{\"v\":1,\"type\":\"close\",\"time\":\"t\",\"next\":\"2026-05-21-09:42:18-2\"}\n");
    append(&second, &end(3));
    wait_for(&reader, "out3\n");
    append(&second, "{\"v\":1,\"type\":\"close\",\"time\":\"t\"}\n");
    assert!(waiting::until_true(PATIENCE, || child.try_wait().expect("a child").is_some() && reader.has_ended()));
    let text = String::from_utf8_lossy(&reader.so_far()).into_owned();
    assert!(
        !text.contains("goes on") && ["out1", "out2", "out3"].iter().all(|out| text.matches(out).count() == 1),
        "{text}"
    );
}

#[test]
fn a_running_command_is_shown_from_its_beginning() {
    let host = Host::with(MIRROR);
    let script = "printf 'one\\ntwo\\n'; until test -e go; do sleep 0.05; done; echo three";
    let mut call = start(&host, "Ann", script);
    let has_both = || rexec(&host, &["out", "1"]).out == "one\ntwo\n";
    assert!(waiting::until_true(PATIENCE, has_both), "{:?}", rexec(&host, &["out", "1"]).out);
    let said = rexec(&host, &["out", "1", "--tail", "1"]);
    assert!(said.out == "two\n" && said.err.contains("#1 still runs"), "{} {}", said.out, said.err);
    let said = rexec(&host, &["show", "1"]).out;
    assert!(said.contains("state      runs for 0:0") && said.contains(" · rexec tail -f 1 · rexec kill 1\n"), "{said}");
    assert!(said.ends_with(&format!("$ {script}\none\ntwo\n… it still runs\n\n")), "{said}");
    let said = rexec(&host, &["export", "1", "--text"]);
    assert!(said.out == "one\ntwo\n" && said.err.contains("#1 still runs"), "{} {}", said.out, said.err);
    let said = rexec(&host, &["log", "--running"]).out;
    let since = said.split("  running  ").nth(1).expect("how long");
    assert!(since.starts_with(|c: char| c.is_ascii_digit()), "{said}");
    let (mut all, shown) = follow(&["tail", "-f", "1"], &host.socket(), &host.journal_home());
    let (mut last, cut) = follow(&["tail", "-f", "-n", "1", "1"], &host.socket(), &host.journal_home());
    wait_for(&shown, "one\ntwo\n");
    wait_for(&cut, "two\n");
    fs::write(host.home.join("go"), "").expect("a file");
    call.finish(PATIENCE).expect("it ends");
    for (child, reader) in [(&mut all, &shown), (&mut last, &cut)] {
        let is_over = || child.try_wait().expect("a child").is_some() && reader.has_ended();
        assert!(waiting::until_true(PATIENCE, is_over), "it ends as well");
    }
    let text = |reader: &Reader| String::from_utf8_lossy(&reader.so_far()).into_owned();
    // Between them stands the banner, which has no line of its output.
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| ["one", "two", "three"].contains(line)).map(str::to_owned).collect()
    };
    assert_eq!(lines(&text(&shown)), ["one", "two", "three"], "{}", text(&shown));
    assert_eq!(lines(&text(&cut)), ["two", "three"], "{}", text(&cut));
}

#[test]
fn verbs_that_act_say_in_json_what_they_did() {
    let host = Host::with(MIRROR);
    let mut call = start(&host, "Ann", "echo begun; exec sleep 1000");
    assert!(call.stdout.as_ref().expect("a pipe").wait_for(b"begun\n", PATIENCE), "it begins");
    for (args, result) in [
        (&["pause", "1", "--json"][..], "paused"),
        (&["resume", "--all", "--json"], "resumed"),
        (&["kill", "1", "--signal", "WINCH", "--json"], "signalled"),
        (&["kill", "1", "--json"], "ended"),
    ] {
        let said = rexec(&host, args);
        let line: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{args:?}: {} {}", said.out, said.err));
        assert_eq!((said.code, &line["seq"], &line["result"]), (0, &1.into(), &result.into()), "{args:?}");
    }
    call.finish(PATIENCE).expect("it was ended");
    let said = rexec(&host, &["send", "1", "x", "--json"]);
    assert!(said.code == 3 && said.out.is_empty(), "{}", said.out);
}

/// The numbers of the lines `N e`, in the order in which they stand there. The last one may be cut by the end.
fn numbers(text: &str) -> Vec<u64> {
    text.lines().filter_map(|line| line.strip_suffix(" e")?.parse().ok()).collect()
}

/// Each line is two writes, so that followers begin in the middle of lines, too. Its last letter could begin a token, so the
/// journal holds it back until the next one comes.
#[test]
#[ignore = "long: 50 followers, one after the other"]
fn fifty_who_follow_a_fast_command_from_its_middle_see_each_line_once() {
    let host = Host::with(MIRROR);
    let script = "i=0; until test -e go; do for _ in 1 2 3 4 5 6 7 8 9 10; do i=$((i+1)); printf \"$i e\"; echo; done; sleep 0.005; done";
    let mut call = start(&host, "Ann", script);
    let has_begun = || rexec(&host, &["ps", "--json"]).out.contains("\"running\"");
    assert!(waiting::until_true(PATIENCE, has_begun), "it begins");
    let (mut round, mut late) = (0, 0);
    while round < 50 {
        // Beyond 64 KiB the output is in a file.
        let lines = if round % 2 == 0 { "100000000" } else { "300" };
        let (mut child, reader, said) = follow_all(&["tail", "-f", "-n", lines, "1"], &host);
        let text = || String::from_utf8_lossy(&reader.so_far()).into_owned();
        let is_beyond = || text().split_once(" $ i=0;").is_some_and(|(_, live)| numbers(live).len() > 200);
        assert!(waiting::until_true(PATIENCE, is_beyond), "round {round}: {}", text());
        child.kill().expect("it runs");
        child.wait().expect("a child");
        // Where the recorder was not in time, as on a busy machine, the person is told so.
        if String::from_utf8_lossy(&said.to_silence()).contains("may be missing here, or stand here twice") {
            late += 1;
            assert!(late < 50, "the recorder never answers");
            continue;
        }
        let seen = numbers(&text());
        let first = if round % 2 == 0 { 1 } else { seen[0] };
        let dense: Vec<u64> = (first..).take(seen.len()).collect();
        let wrong = seen.iter().zip(&dense).position(|(is, should)| is != should);
        assert_eq!(wrong.map(|at| &seen[at.saturating_sub(3)..(at + 3).min(seen.len())]), None, "round {round}");
        round += 1;
    }
    fs::write(host.home.join("go"), "").expect("a file");
    call.finish(PATIENCE).expect("it ends");
}
