//! `N`, `SESSION:N` and `-1`.

use std::io::Read;
use std::path::Path;

use rexec_host::cli::run_reference::RunReference;
use rexec_host::history::{FoundRun, Omission, OutputSource, RunOutcome};
use rexec_sh::protocol::notice::Notice;

use super::samples::Sample;
use crate::support::temp::TempDir;

fn find(home: &Path, word: &str) -> Result<FoundRun, Notice> {
    RunReference::of(word.as_ref())?.find(home, Path::new("/nowhere"))
}

fn command(home: &Path, word: &str) -> String {
    find(home, word).map_or_else(|notice| format!("{} ({})", notice.problem, notice.code), |run| run.start.card.command)
}

#[test]
fn a_number_is_of_the_newest_session_unless_another_is_named() {
    let home = TempDir::new(None);
    let home = home.path();
    assert_eq!(command(home, "1"), format!("there is no journal in {} (3)", home.display()));
    Sample::new("2026-05-20-17:03:55").run(1, "old 1", "\"exit\":0").run(2, "old 2", "\"exit\":0").write(home);
    let first = Sample::new("2026-05-21-09:42:18").run(1, "new 1", "\"exit\":0").start(2, "long");
    let second = first.continues("2026-05-21-09:42:18-2").start(2, "long").run(3, "new 3", "\"exit\":1");
    first.write(home);
    second.line("garbage {\"type\":\"end\",\"seq\":9,").start(4, "runs").write(home);
    for (word, expected) in [
        ("1", "new 1"),
        ("#3", "new 3"),
        ("4", "runs"),
        ("-1", "runs"),
        ("-2", "new 3"),
        ("-3", "long"),
        ("-4", "new 1"),
        ("-5", "there is no run -5 in this session (3)"),
        ("9", "there is no run 9 in this session (3)"),
        ("2026-05-20-17:03:55:1", "old 1"),
        ("2026-05-20:-1", "old 2"),
        ("2026-05-20:-2", "old 1"),
        ("2026-05-21-09:42:18-2:1", "new 1"),
        ("2026-05-20:3", "there is no run 3 in session 2026-05-20-17:03:55 (3)"),
        ("2026:1", "the names of several sessions begin with 2026 (3)"),
        ("2027:1", "there is no session 2027 (3)"),
        ("last", "`last` does not name a run (2)"),
    ] {
        assert_eq!(command(home, word), expected, "{word}");
    }
    assert!(!find(home, "9").unwrap_err().hint.is_empty());
    let (run, open) = (find(home, "3").unwrap(), find(home, "4").unwrap());
    assert_eq!(
        (run.outcome, run.end.unwrap().exit, run.session.as_str()),
        (RunOutcome::Ended, 1, "2026-05-21-09:42:18")
    );
    assert!(open.outcome == RunOutcome::Open && !open.is_running(), "its host does not run");
}

#[test]
fn the_whole_output_is_in_the_record_or_in_its_raw_file() {
    let home = TempDir::new(None);
    let home = home.path();
    let cut = "\"output\":\"headtail\",\"output_omitted\":7,\"output_cut\":4";
    Sample::new("2026-05-21-09:42:18")
        .run(1, "short", "\"output\":\"all of it\\n\"")
        .run(2, "long", &format!("{cut},\"raw\":\"raw/x-2.out\",\"raw_omitted\":3,\"raw_cut\":2"))
        .run(3, "gone", &format!("{cut},\"raw\":\"raw/x-3.out\""))
        .run(4, "outside", &format!("{cut},\"raw\":\"../secret\""))
        .start(5, "runs")
        .write(home);
    std::fs::create_dir(home.join("raw")).unwrap();
    std::fs::write(home.join("raw/x-2.out"), "\x1b[1mraw").unwrap();
    std::fs::write(home.join("raw/2026-05-21-09:42:18-5.out"), "so far").unwrap();
    let omitted = Some(Omission { at: 4, bytes: 7 });
    for (word, source, text, omitted, flaw) in [
        ("1", OutputSource::Record, "all of it\n", None, None),
        ("2", OutputSource::Raw, "\x1b[1mraw", Some(Omission { at: 2, bytes: 3 }), None),
        ("3", OutputSource::Record, "headtail", omitted, Some("raw/x-3.out is gone")),
        ("4", OutputSource::Record, "headtail", omitted, Some("../secret is gone")),
        ("5", OutputSource::Raw, "so far", None, None),
    ] {
        let mut output = find(home, word).unwrap().open_output().unwrap();
        let mut read = String::new();
        output.read_to_string(&mut read).unwrap();
        assert_eq!((output.source, read.as_str(), output.omitted), (source, text, omitted), "{word}");
        assert_eq!(output.flaw.as_deref(), flaw, "{word}");
    }
}
