//! `rexec replay`: what was on the console, once more.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rexec_host::journal::frame::{Frame, encode_end, encode_output, encode_start};
use rexec_host::journal::record::{PublishedCard, RunEnd, StartRecord};
use rexec_host::recorder::{Bounds, Session, serve};

use crate::export::rexec;
use crate::support::call::Target;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::screen::Screen;
use crate::support::temp::TempDir;
use crate::support::typist::{At, Typist};
use crate::support::waiting::PATIENCE;

const MS: Duration = Duration::from_millis(1);
const TERMINAL: [At; 3] = [At::Terminal; 3];

/// A run: its number, its start as a time of day, its output with times in milliseconds, and its duration.
type Told<'a> = (u64, &'a str, &'a [(u32, &'a str)], u64);

/// Journals of runs that a host could have had.
fn journal(home: &Path, runs: &[Told<'_>]) {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    let session = Session::new(home, std::fs::metadata(home).unwrap().uid(), u32::MAX >> 1);
    let (mut socket, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let recorder = std::thread::spawn(move || serve(session, theirs, Bounds::default()));
    let mut frames = Vec::new();
    for (seq, time, output, took) in runs {
        let start = StartRecord {
            card: PublishedCard {
                seq: *seq,
                time: format!("2026-05-21T{time}Z"),
                whoami: "Codex".into(),
                dir: "/srv/api".into(),
                command: format!("job {seq}"),
                ..PublishedCard::default()
            },
            ..StartRecord::default()
        };
        encode_start(&start, [], &mut frames);
        let mut bytes = 0;
        for (at, text) in *output {
            encode_output(*seq, 0, *at * MS, text.as_bytes(), &mut frames);
            bytes += text.len() as u64;
        }
        encode_end(RunEnd { seq: *seq, bytes, duration_ms: *took, ..RunEnd::default() }, &mut frames);
    }
    Frame::Close.encode(&mut frames);
    socket.write_all(&frames).unwrap();
    drop(socket);
    recorder.join().unwrap();
}

fn environment(home: &Path) -> Vec<String> {
    let home = home.display();
    vec![format!("REXEC_HOME={home}"), format!("REXEC_SOCKET={home}/none"), "LC_ALL=C.UTF-8".into()]
}

/// Replays in a terminal of 80 columns and 24 rows.
fn at_terminal(home: &Path, arguments: &[&str]) -> Typist {
    let arguments: Vec<&str> = ["rexec", "replay"].iter().chain(arguments).copied().collect();
    let user = home.parent().expect("a directory above");
    Typist::start(programs::rexec(), &arguments, &environment(home), user, TERMINAL)
}

/// Replays into a pipe.
fn piped(home: &Path, arguments: &[&str]) -> String {
    let mut command = programs::command(programs::rexec());
    let place = [("REXEC_SOCKET", home.join("none")), ("REXEC_HOME", home.to_owned())];
    command.arg("replay").args(arguments).env_clear().envs(place).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The rows of the first command's block.
fn block(screen: &Screen) -> Vec<String> {
    let text = screen.text();
    let rows = text.lines().skip_while(|row| !row.contains("#1 "));
    let mut rows: Vec<String> = rows.map(str::to_owned).collect();
    rows.truncate(rows.iter().position(|row| row.contains("exit 3")).map_or(rows.len(), |end| end + 1));
    rows
}

#[test]
fn a_replay_ends_on_the_screen_of_the_console() {
    let host = Host::with(Setup { terminal: true, ..PLAIN });
    let script = "printf '\\033[1;32mgreen\\033[m\\n10 %%\\r50 %%\\r\\n\\033[2Aabove'; sleep 0.3; \
                  printf '\\n\\nwarning: x\\n日本 \\033[7minverse\\033[m\\n'; exit 3";
    std::fs::write(host.home.join("job"), script).unwrap();
    assert_eq!(host.run("sh ./job").code(), 3);
    host.wait_for("an end", |journal| journal.end_of("sh ./job").cloned());
    let shown = || Screen::of(host.console_text().as_bytes(), (120, 40));
    let ends = || shown().text().contains("exit 3");
    assert!(crate::support::waiting::until_true(PATIENCE, ends), "{}", shown().text());
    let mut replay = at_terminal(&host.journal_home(), &["1"]);
    assert_eq!(replay.ends().code(), 0);
    let is_same = || block(&replay.drawn()) == block(&shown());
    let is_same = crate::support::waiting::until_true(PATIENCE, is_same);
    assert!(is_same, "{:#?}\nis not\n{:#?}", block(&replay.drawn()), block(&shown()));
    assert!(block(&shown()).len() > 4, "{}", shown().text());
    host.finish();
}

#[test]
fn a_command_whose_host_was_killed_is_replayed_up_to_then() {
    let host = Host::with(PLAIN);
    let mut calling =
        host.call("echo one; sleep 0.1; echo two; sleep 1000").start(Target::Shim(&host.socket())).unwrap();
    let recorded = || {
        let files = std::fs::read_dir(host.journal_home().join("raw")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).any(|text| text.contains("two"))
    };
    assert!(crate::support::waiting::until_true(PATIENCE, recorded));
    let journal = host.journal_home();
    let (_home, mut warden) = host.kill();
    assert!(warden.is_empty_within(PATIENCE), "{:#?}", warden.tree());
    assert_eq!(calling.finish(PATIENCE).map(|seen| seen.code()), Some(125));
    let replayed = piped(&journal, &["1"]);
    assert!(replayed.contains("one\ntwo\n"), "{replayed}");
}

#[test]
fn what_a_full_screen_program_drew_is_for_a_cast_player() {
    let home = TempDir::new(None);
    let output = [
        (0, "before\r\n\x1b[?1049h\x1b[2J\x1b[5;5Hdrawn\x1b[6n\x1b]0;title\x07\x1b[?1000h\x1b[?25l"),
        (600_000, "\x1b[?1049lafter\r\n"),
    ];
    journal(home.path(), &[(1, "10:00:00.000", &output, 600_001)]);
    let mut replay = at_terminal(home.path(), &["-1"]);
    replay.shows("rexec export 1 --cast -o 1.cast && asciinema play 1.cast");
    replay.types(b"\x03");
    assert_eq!(replay.ends().code(), 0);
    let seen = replay.screen();
    for refused in ["drawn", "\x1b[?1049h", "\x1b[6n", "\x1b]0;title", "\x1b[?1000h"] {
        assert!(!seen.contains(refused), "{refused:?} in {seen:?}");
    }
    assert!(replay.has_its_modes(true));

    let session = std::fs::read_dir(home.path())
        .unwrap()
        .flatten()
        .find_map(|file| file.file_name().to_str()?.strip_suffix(".jsonl").map(|session| format!("{session}:1")));
    let session = session.expect("a journal");
    let mut whole = at_terminal(home.path(), &[&session, "--max-idle", "50ms"]);
    assert_eq!(whole.ends().code(), 0);
    let drawn = whole.drawn().text();
    for shown in
        [&format!("rexec export {session} --cast"), "before", "a full-screen program drew 5 bytes", "after", "✓"]
    {
        assert!(drawn.contains(shown), "{shown:?} is not in {drawn}");
    }
    assert!(!piped(home.path(), &["1", "--speed", "1000000"]).contains("export"), "a file has no screen");
}

#[test]
fn pauses_are_kept_unless_they_are_shortened() {
    let home = TempDir::new(None);
    journal(home.path(), &[(1, "10:00:00.000", &[(0, "one\n"), (400, "two\n")], 500)]);
    let took = |arguments: &[&str]| {
        let begun = Instant::now();
        assert!(piped(home.path(), arguments).contains("\none\ntwo\n"));
        begun.elapsed()
    };
    assert!(took(&["1"]) >= 500 * MS);
    assert!(took(&["1", "--speed", "0.5"]) >= 1000 * MS);
    journal(home.path(), &[(1, "10:00:00.000", &[(0, "one\n"), (3_600_000, "two\n")], 7_200_000)]);
    assert!(took(&["1", "--max-idle", "10ms"]) < PATIENCE);
    assert!(took(&["1", "--speed", "1000000"]) < PATIENCE);
}

#[test]
fn an_afternoon_is_played_in_the_order_of_the_console() {
    let home = TempDir::new(None);
    journal(
        home.path(),
        &[
            (1, "10:00:00.000", &[(0, "early one\n"), (9_000, "late one\n")], 10_000),
            (2, "10:00:02.000", &[(100, "two\n")], 200),
            (3, "11:30:00.000", &[], 10),
            (4, "12:00:00.000", &[(5, "four\n")], 10),
        ],
    );
    let all = piped(home.path(), &["--since", "2026-05-01", "--max-idle", "20ms"]);
    let places: Vec<_> = ["early one\n", "two\n", "late one\n", "$ job 3\n", "four\n"]
        .map(|text| all.find(text).unwrap_or_else(|| panic!("no {text:?} in {all}")))
        .into();
    assert!(places.is_sorted(), "{all}");
    assert_eq!(all.matches("#1 Codex").count(), 2, "the first command's block goes on: {all}");
    let later = piped(home.path(), &["--since", "2026-05-21T11:00:00Z", "--max-idle", "20ms"]);
    assert!(!later.contains("early") && later.contains("four"), "{later}");
}

#[test]
fn what_cannot_be_played_is_said() {
    let host = Host::with(Setup { flags: &["--no-record"], ..PLAIN });
    assert_eq!(host.run("echo x").code(), 0);
    host.wait_for("an end", |journal| journal.end_of("echo x").cloned());
    for (arguments, code, words) in [
        (&["replay", "1"][..], 1, "command 1 has no recording"),
        (&["replay", "9"], 3, "there is no run 9"),
        (&["replay"], 2, "replay needs a command number or --since"),
        (&["replay", "1", "--since", "1h"], 2, "either a command number or --since"),
        (&["replay", "1", "--speed", "0"], 2, "--speed: `0` is not valid"),
        (&["replay", "1", "--max-idle", "x"], 2, "--max-idle: `x` is not valid"),
        (&["replay", "--since", "tomorrow"], 2, "--since: `tomorrow` is not valid"),
        (&["replay", "--since", "now"], 1, "no command began since then"),
    ] {
        let seen = rexec(&host, arguments);
        assert_eq!(seen.code(), code, "{arguments:?}: {}", seen.err());
        assert!(seen.err().contains(words) && seen.err().contains("\nhint: "), "{arguments:?}: {}", seen.err());
    }
    host.finish();
}
