//! Clocks that jump: the wall clock is set while a host runs, or is wrong when it starts. Durations, the order of
//! records and the age of kept files never depend on it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use crate::support::call::Target;
use crate::support::clock::{self, Offset};
use crate::support::host::Host;
use crate::support::journal::Journal;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Seconds.
const DAY: i64 = 24 * 60 * 60;
/// More than a record holds, so that a file of its own has all of it.
const LONG_OUTPUT: &str = "seq 30000";

fn set_wall(home: &TempDir, wall: i64) {
    clock::set(home, Offset { wall, ..Offset::default() });
}

/// What the supervisor's command says of the journals.
fn rexec(home: &TempDir, args: &[&str]) -> String {
    let output = programs::command(programs::rexec()).args(args).env("REXEC_HOME", home.join("journal")).output();
    let output = output.expect("rexec runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The times between which something happened, by a clock that nobody sets.
struct Span(Instant, SystemTime);

impl Span {
    fn begin() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    /// Checks that what happened in it was stamped by a clock that was so far off.
    fn assert_stamp(&self, record: &Value, offset: i64) {
        let text = record["time"].as_str().expect("a time");
        let stamp = OffsetDateTime::parse(text, &Rfc3339).unwrap_or_else(|error| panic!("{text}: {error}"));
        let stamp = stamp - time::Duration::seconds(offset);
        // Stamps are cut to milliseconds.
        let from = OffsetDateTime::from(self.1) - Duration::from_millis(1);
        assert!(from <= stamp && stamp <= OffsetDateTime::now_utc(), "{text} is not {offset} s off");
    }
}

/// A command that begins before the clock is set and ends after it, with another one between; gives both records.
fn run_through_jump(host: &Host, round: usize, wall: i64) -> [Value; 2] {
    let go = host.home.join("go");
    let long = format!("echo ready {round}; until test -e go; do sleep 0.02; done; {LONG_OUTPUT}; exit 3");
    let around = Span::begin();
    let mut calling = host.call(&long).start(Target::Shim(&host.socket())).expect("a shim");
    assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready", PATIENCE), "it never started");
    let inside = Instant::now();
    set_wall(&host.home, wall);
    let short = format!("echo between {round}");
    assert_eq!(host.run(&short).out(), format!("between {round}\n"));
    let least = inside.elapsed();
    fs::write(&go, "").expect("a file");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 3);
    let most = around.0.elapsed();
    fs::remove_file(go).expect("it was there");
    let ends = |journal: &Journal| Some([journal.end_of(&long)?.clone(), journal.end_of(&short)?.clone()]);
    let [end, between] = host.wait_for("both ends", ends);
    let took = Duration::from_millis(end["duration_ms"].as_u64().expect("a duration"));
    assert!(least < took + Duration::from_millis(1) && took <= most, "{took:?} is not within {least:?} and {most:?}");
    [end, between]
}

/// The starts and ends of a journal, in the order in which they stand there.
fn order(journal: &Journal) -> Vec<String> {
    let runs = journal.records.iter().map(|(_, record)| record).filter(|record| record["seq"].is_u64());
    runs.map(|record| format!("{} {}", record["type"].as_str().expect("a type"), record["seq"])).collect()
}

/// The names of the files in a directory.
fn names(dir: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory").flatten();
    entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect()
}

/// The names of the whole outputs that a host keeps. Its recordings lie beside them.
fn whole_outputs(host: &Host) -> Vec<String> {
    names(host.journal_home().join("raw")).into_iter().filter(|name| name.ends_with(".out")).collect()
}

#[test]
fn a_clock_that_is_set_while_commands_run_changes_nothing_but_the_stamps() {
    let Some(setup) = clock::setup() else { return };
    let host = Host::with(setup);
    let mut offset = 0;
    // Raw files of a month ago are removed, those of a clock that was set by more than that are not.
    for (round, wall) in [40 * DAY, DAY, -DAY].into_iter().enumerate() {
        let span = Span::begin();
        let [long, between] = run_through_jump(&host, round, wall);
        span.assert_stamp(&long, offset);
        span.assert_stamp(&between, wall);
        offset = wall;
    }
    let expected = [[1, 2], [3, 4], [5, 6]]
        .map(|[long, short]| [("start", long), ("start", short), ("end", short), ("end", long)])
        .concat();
    let expected: Vec<String> = expected.iter().map(|(kind, seq)| format!("{kind} {seq}")).collect();
    assert_eq!(order(&host.journal()), expected);
    assert_eq!(whole_outputs(&host).len(), 3, "whole outputs are kept");
    let list = rexec(&host.home, &["--list"]);
    let (name, rest) = list.split_once(' ').expect("a name");
    assert_eq!(rest, "commands=6\n");
    let print = rexec(&host.home, &["--print", name]);
    let at = |text: &str| print.find(text).unwrap_or_else(|| panic!("no {text:?} in {print}"));
    assert!((0..3).all(|n| at(&format!("between {n}\n")) < at(&format!("ready {n}\n"))), "{print}");
    assert!(at("ready 0\n") < at("ready 1\n") && at("ready 1\n") < at("ready 2\n"), "{print}");
    host.finish();
}

/// A month that has passed is one, whatever the wall's clock says.
#[test]
fn a_whole_output_is_removed_when_it_is_old_by_the_time_that_has_passed() {
    let Some(setup) = clock::setup() else { return };
    let host = Host::with(setup);
    let run = |script: &str| {
        assert_eq!(host.run(script).code(), 0);
        host.wait_for("its end", |journal| journal.end_of(script).map(|end| end["raw"].clone()))
    };
    run(LONG_OUTPUT);
    clock::pass(&host, Duration::from_secs(31 * 24 * 60 * 60));
    let second = run(&format!("{LONG_OUTPUT}; true"));
    let left = whole_outputs(&host);
    assert_eq!(left.iter().map(|name| format!("raw/{name}")).collect::<Vec<_>>(), [second.as_str().expect("a name")]);
    host.finish();
}

#[test]
fn a_clock_that_is_set_while_nothing_runs_is_asked_again() {
    let Some(setup) = clock::setup() else { return };
    let host = Host::with(setup);
    for wall in [DAY, -DAY] {
        set_wall(&host.home, wall);
        let (span, script) = (Span::begin(), format!("echo {wall}"));
        assert_eq!(host.run(&script).out(), format!("{wall}\n"));
        let end = host.wait_for("its end", |journal| journal.end_of(&script).cloned());
        span.assert_stamp(&end, wall);
        host.wait_idle();
    }
    host.finish();
}

/// The clock was set back between two hosts: the newer journal has the older name.
#[test]
fn a_journal_of_tomorrow_is_listed_printed_and_repaired() {
    let Some(setup) = clock::setup() else { return };
    let home = TempDir::new(None);
    set_wall(&home, DAY);
    let host = Host::in_dir(home, setup);
    let mut lost = host.call("echo tomorrow; sleep 1000").start(Target::Shim(&host.socket())).expect("a shim");
    assert!(lost.stdout.as_ref().expect("a pipe").wait_for(b"tomorrow\n", PATIENCE));
    host.wait_for("its start", |journal| journal.of_type("start").next().map(|_| ()));
    let (home, mut warden) = host.kill();
    assert!(warden.is_empty_within(PATIENCE) && lost.finish(PATIENCE).is_some());
    set_wall(&home, 0);
    let host = Host::in_dir(home, setup);
    // Commands do not wait for a repair.
    let is_repaired = || host.console_text().contains("1 command of an earlier host has no end");
    assert!(waiting::until_true(PATIENCE, is_repaired), "{}", host.console_text());
    assert_eq!(host.run("echo today").out(), "today\n");
    host.wait_for("its end", |journal| journal.end_of("echo today").map(|_| ()));
    let list = rexec(&host.home, &["--list"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.strip_suffix(" commands=1")).collect();
    let [today, tomorrow] = names[..] else { panic!("{list}") };
    assert!(today < tomorrow, "a journal that is named after a time to come is not the newest: {list}");
    assert!(rexec(&host.home, &["--print", tomorrow]).contains("echo tomorrow; sleep 1000\n… lost: "));
    assert!(rexec(&host.home, &["--print", today]).contains("$ echo today\ntoday\n"));
    host.finish();
}

/// As on a machine without a battery, until somebody tells it the time.
#[test]
fn a_host_that_starts_in_another_century_is_set_right() {
    let Some(setup) = clock::setup() else { return };
    for (year, seconds) in [("1970", 10 * DAY), ("2100", 47_492 * DAY)] {
        let home = TempDir::new(None);
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let wall = seconds - now;
        set_wall(&home, wall);
        let host = Host::in_dir(home, setup);
        let span = Span::begin();
        let [then, since] = run_through_jump(&host, 0, 0);
        span.assert_stamp(&then, wall);
        span.assert_stamp(&since, 0);
        assert_eq!(order(&host.journal()), ["start 1", "start 2", "end 2", "end 1"]);
        let list = rexec(&host.home, &["--list"]);
        let (name, rest) = list.split_once(' ').expect("a name");
        assert!(name.starts_with(year) && rest == "commands=2\n", "{list}");
        assert!(rexec(&host.home, &["--print", name]).contains(&format!("[{year}-")), "{year}");
        assert_eq!(whole_outputs(&host).len(), 1, "{year}: the whole output is kept");
        host.finish();
    }
}
