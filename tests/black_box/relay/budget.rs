//! The output budget: a caller's copy of long output is its beginning and its end, and a line that is a command.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::call::{Call, Outcome, Output, Target};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::waiting::{self, PATIENCE};

const MANY: &str = "seq 1 100000; exit 7";

fn run(host: &Host, call: Call) -> Outcome {
    call.run(Target::Shim(&host.socket()))
}

/// The lines of the beginning, the line about what is left out, and the lines of the end.
fn parts(copy: &str) -> (Vec<u64>, String, Vec<u64>) {
    let (head, rest) = copy.split_once("… rexec: ").unwrap_or_else(|| panic!("nothing is left out: {copy}"));
    let (words, tail) = rest.split_once('\n').unwrap();
    let numbers = |text: &str| text.lines().map(|line| line.parse().unwrap()).collect();
    (numbers(head), words.to_owned(), numbers(tail))
}

#[test]
fn a_copy_beyond_the_budget_has_both_ends_and_a_command_for_the_rest() {
    let host = Host::with(MIRROR);
    let seen = run(&host, host.call(MANY).env("REXEC_BUDGET=8K").env("REXEC_TTY=auto"));
    assert_eq!(seen.code(), 7);
    let copy = seen.out();
    let (head, words, tail) = parts(&copy);
    assert_eq!(head, (1..=head.len() as u64).collect::<Vec<_>>());
    assert_eq!(tail, (100_001 - tail.len() as u64..=100_000).collect::<Vec<_>>());
    assert!(copy.len() <= (8 << 10) + words.len() + 16, "{}", copy.len());
    assert!(head.len() > 900 && tail.len() > 450, "{} and {}", head.len(), tail.len());
    let (count, command) = words.split_once(" left out; ").unwrap();
    let lines: String = count.split(" lines (").next().unwrap().replace(' ', "");
    assert_eq!(lines.parse::<usize>().unwrap(), 100_000 - head.len() - tail.len(), "{words}");
    // The same agent asks for the rest in its own shell.
    host.wait_for("an end", |journal| journal.end_of(MANY).cloned());
    let command = command.split(" | ").next().unwrap();
    let rest = run(&host, host.call(command));
    let from = head.len() as u64 + 1;
    let expected: String = (from..from + 400).map(|n| format!("{n}\n")).collect();
    assert_eq!((rest.out(), rest.err(), rest.code()), (expected, String::new(), 0), "{command}");
    let errors = run(&host, host.call("seq 1 9000 >&2; echo out").env("REXEC_BUDGET=2k"));
    assert_eq!(errors.out(), "out\n");
    assert_eq!(parts(&errors.err()).2.last(), Some(&9000));
    host.finish();
}

#[test]
fn output_that_a_program_reads_is_never_cut() {
    let host = Host::with(MIRROR);
    let whole: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let budget = || host.call(MANY).env("REXEC_BUDGET=8K");
    for (what, call) in [
        ("no budget", host.call(MANY)),
        ("off", host.call(MANY).env("REXEC_BUDGET=off")),
        ("raw", budget().env("REXEC_SANITIZE=raw")),
        ("a file", Call { output: Output::OneFile, ..budget() }),
        ("within", host.call(MANY).env("REXEC_BUDGET=1M")),
    ] {
        assert!(run(&host, call).out() == whole, "{what}");
    }
    let agents = Call { output: Output::OneFile, ..budget().env("CLAUDECODE=1") };
    assert!(run(&host, agents).out().contains(" left out; "), "an agent reads its own file");
    let within = "seq 1 100000 >file; seq 1 100000 | tail -1; wc -c <file";
    assert_eq!(run(&host, host.call(within).env("REXEC_BUDGET=1K")).out(), "100000\n588895\n");
    let _ = fs::remove_file(host.home.join("file"));
    host.finish();
}

#[test]
fn the_hosts_budget_is_for_agents_that_it_knows() {
    let host = Host::with(Setup { flags: &["--budget", "4K"], ..MIRROR });
    assert!(!run(&host, host.call(MANY)).out().contains("left out"));
    let copy = run(&host, host.call(MANY).env("CODEX_CI=1")).out();
    assert!(copy.contains(" left out; ") && copy.len() < 5 << 10, "{} bytes", copy.len());
    assert!(!run(&host, host.call(MANY).env("CODEX_CI=1").env("REXEC_BUDGET=off")).out().contains("left out"));
    host.finish();
}

#[test]
fn a_journal_without_long_output_is_not_named() {
    let host = Host::with(Setup { flags: &["--raw-cap", "0"], ..MIRROR });
    let (_, words, _) = parts(&run(&host, host.call(MANY).env("REXEC_BUDGET=4K")).out());
    assert!(words.ends_with(") left out …"), "{words}");
    host.finish();
}

/// What was written so far comes with the end.
#[test]
fn a_command_that_is_interrupted_leaves_what_is_known() {
    let host = Host::with(MIRROR);
    let call = host.call("seq 1 50000; sleep 300").env("REXEC_BUDGET=4K");
    let mut calling = call.start(Target::Shim(&host.socket())).unwrap();
    let has_begun =
        || calling.stdout.as_ref().is_some_and(|out| out.so_far().ends_with(b"\n") && out.so_far().len() > 2000);
    assert!(waiting::until_true(PATIENCE, has_begun), "the beginning comes at once");
    assert!(waiting::until_true(PATIENCE, || host.tree().iter().any(|process| process.comm == "sleep")));
    calling.warden.signal(Signal::SIGINT);
    let seen = calling.finish(PATIENCE.max(Duration::from_secs(10))).expect("it ends");
    let (head, _, tail) = parts(&seen.out());
    assert_eq!((head[0], tail.last()), (1, Some(&50_000)));
    host.finish();
}
