//! A host serves what arrives all at once one part at a time, so that nobody waits for all of it.
//!
//! A stopped host finds everything in its first turn when it is continued. The journal shows the order in which it was
//! served.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::call::Target;
use crate::support::crowd::{answer, ask, shim};
use crate::support::host::Host;
use crate::support::journal::Journal;
use crate::support::procs;
use crate::support::reader::Reader;
use crate::support::terminal::Terminal;
use crate::support::waiting::{self, PATIENCE};

/// What the journal says of each command, in order: its record's type and the last of its words.
fn order(journal: &Journal) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let last = |record: &Value| record["exec"].as_array().and_then(|words| words.last().map(text)).unwrap_or_default();
    let runs = journal.records.iter().map(|(_, record)| record).filter(|record| record["seq"].is_u64());
    runs.map(|record| (text(&record["type"]), last(record))).collect()
}

fn answer_all(streams: Vec<UnixStream>) {
    for stream in streams {
        let told = answer(stream);
        assert_eq!(told["exit"], 127, "{told}");
    }
}

/// Sixty-four are let in in one turn, and the others all the same in the next ones.
#[test]
fn callers_that_come_at_once_keep_no_command_from_its_end() {
    const CALLERS: usize = 300;
    let host = Host::start();
    let script = "echo $PPID > pid.new; mv pid.new pid; until test -e go; do sleep 0.01; done; exit 7";
    let mut calling = host.call(script).start(Target::Shim(&host.socket())).expect("a shim");
    let guard = || fs::read_to_string(host.home.join("pid")).ok()?.trim().parse().ok();
    let guard = waiting::until(PATIENCE, guard).expect("it never started");
    host.stop();
    fs::write(host.home.join("go"), "").expect("a file");
    let is_over = || procs::children(guard).is_empty() && procs::Process::of(guard).is_none_or(|it| it.state == 'S');
    assert!(waiting::until_true(PATIENCE, is_over), "{:#?}", host.tree());
    let streams = (0..CALLERS).map(|_| ask(&host, &["no-such-program"])).collect();
    host.signal(Signal::SIGCONT);
    answer_all(streams);
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 7);
    let every_end = |journal: &Journal| (journal.of_type("end").count() == CALLERS + 1).then(|| order(journal));
    let order = host.wait_for("every end", every_end);
    let before = order.iter().take_while(|(kind, last)| kind != "end" || last != script);
    let begun = before.filter(|(kind, _)| kind == "start").count() - 1;
    // None, if the host hears of the end first.
    assert!(begun < CALLERS, "{begun} commands began before the end of one that was over");
}

/// Of a long request 128 KiB are read in one turn.
#[test]
fn a_long_request_keeps_no_short_one_from_its_turn() {
    let host = Host::start();
    host.stop();
    let long = "x".repeat(170_000);
    let streams = vec![ask(&host, &["no-such-program", &long]), ask(&host, &["no-such-program", "short"])];
    host.signal(Signal::SIGCONT);
    answer_all(streams);
    let both = |journal: &Journal| (journal.of_type("start").count() == 2).then(|| order(journal));
    let order = host.wait_for("both starts", both);
    assert_eq!(order[0], ("start".to_owned(), "short".to_owned()), "the long one came first");
}

/// Eight bytes that repeat a character become a line of it at most, and a reader's turn ends when it has much to take.
#[test]
#[ignore = "long: 3 floods of 160,000 repeat sequences"]
fn output_that_multiplies_is_bounded_and_lets_others_through() {
    const SCRIPT: &str = "printf x; for n in {1..4}; do printf '\\033[9999b%.0s' {1..40000}; done";
    let host = Host::start();
    let before = procs::data(host.pid());
    let flood = || shim(&host, SCRIPT).env("REXEC_SANITIZE", "collapse").stdout(Stdio::null()).spawn();
    let mut floods: Vec<_> = (0..3).map(|_| flood().expect("a shim")).collect();
    for n in 0..20 {
        let seen = host.run(&format!("echo {n}; exit {n}"));
        assert_eq!((seen.out(), seen.code()), (format!("{n}\n"), n));
    }
    assert!(floods.iter_mut().all(|flood| flood.wait().is_ok_and(|status| status.success())));
    let peak = procs::most_data(host.pid());
    assert!(peak <= before + (16 << 20), "{before} bytes before, at most {peak}");
}

/// However large a caller says its window is.
#[test]
fn a_window_of_five_thousand_rows_and_columns_costs_little() {
    const SCRIPT: &str = "printf '\\033[H'; for n in {1..400}; do printf '%05000d\\n' $n; done; stty -F /dev/tty size";
    let host = Host::start();
    let before = procs::data(host.pid());
    let terminal = Terminal::new(5000, 5000);
    let reader = Reader::new(terminal.master_file().into(), usize::MAX);
    let mut shim = shim(&host, SCRIPT);
    shim.env("REXEC_SANITIZE", "collapse").stdout(terminal.slave()).stderr(terminal.slave());
    assert!(shim.status().expect("a shim").success());
    assert!(reader.wait_for(b"5000 5000", PATIENCE), "the size that the command sees");
    let peak = procs::most_data(host.pid());
    assert!(peak <= before + (16 << 20), "{before} bytes before, at most {peak}");
}
