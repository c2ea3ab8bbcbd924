//! Each key at a real host.

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{TERMINAL, code, is_heard, sees, sees_times, shown, start, types};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::waiting::{self, PATIENCE};

/// Runs until it is stopped; an interrupt ends it with 3.
const INTERRUPTIBLE: &str = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done";
/// The same, but an interrupt only makes it say so.
const STUBBORN: &str = "trap 'echo caught' INT; trap '' TERM; echo ready; while :; do sleep 0.05; done";

#[test]
fn an_interrupt_stops_the_command_that_is_shown_and_the_host_goes_on() {
    let host = Host::with(TERMINAL);
    let mut other = start(&host, INTERRUPTIBLE);
    let mut shown_one = start(&host, INTERRUPTIBLE);
    types(&host, b"\x03");
    assert_eq!(code(&mut shown_one), 3, "it was interrupted, not killed");
    sees(&host, "caught");
    let end = host.wait_for("the end", |journal| journal.of_type("end").next().cloned());
    assert_eq!((&end["seq"], &end["error"]), (&2.into(), &"aborted".into()), "a person stopped it");
    assert_eq!((&end["exit"], &end["by"]), (&3.into(), &"console".into()));
    sees(&host, "■ stopped by you");
    assert_eq!(host.run("echo here").out(), "here\n");
    types(&host, b"k1\r");
    assert_eq!(code(&mut other), 143, "k ends any command as rexec kill does");
    let is_first = |end: &&Value| end["seq"] == 1;
    let end = host.wait_for("the end", |journal| journal.of_type("end").find(is_first).cloned());
    assert_eq!((&end["exit"], &end["by"]), (&143.into(), &"console".into()));
    sees_times(&host, "■ stopped by you", 2);
}

#[test]
fn a_second_interrupt_kills() {
    let host = Host::with(TERMINAL);
    let mut stubborn = start(&host, STUBBORN);
    types(&host, b"\x03");
    sees(&host, "\ncaught");
    types(&host, b"\x03\x03");
    assert_eq!(code(&mut stubborn), 137);
}

#[test]
fn an_interrupt_reaches_a_command_that_waits_at_the_terminal() {
    let host = Host::with(TERMINAL);
    let mut stopped = start(&host, "trap 'exit 5' INT; echo ready; kill -STOP $$; sleep 1000");
    types(&host, b"\x03");
    assert_eq!(code(&mut stopped), 5);
}

#[test]
fn with_nothing_running_two_interrupts_end_the_host() {
    let mut host = Host::with(TERMINAL);
    types(&host, b"\x03");
    sees(&host, "nothing runs; ^C again, or q, ends the host");
    assert_eq!(host.run("echo here").out(), "here\n", "one is not enough");
    // Together, because the second one counts for two seconds only.
    types(&host, b"\x03\x03");
    assert_eq!(host.check_end().code(), 0);
}

#[test]
fn q_asks_while_something_runs() {
    let mut host = Host::with(TERMINAL);
    let mut one = start(&host, "echo ready; exec sleep 1000");
    types(&host, b"q");
    sees(&host, "1 command runs: end it and the host? y/n");
    types(&host, b"n");
    let mut two = start(&host, "echo ready; exec sleep 1000");
    types(&host, b"q");
    sees(&host, "2 commands run: end them and the host? y/n");
    types(&host, b"y");
    assert_eq!([code(&mut one), code(&mut two)], [143, 143]);
    assert_eq!(host.check_end().code(), 0);

    let mut idle = Host::with(TERMINAL);
    types(&idle, b"q");
    assert_eq!(idle.check_end().code(), 0);
}

#[test]
fn help_refusals_and_blank_rows_are_rows_of_the_host() {
    let host = Host::with(TERMINAL);
    types(&host, b"?");
    sees(&host, "▌k N    stop command N");
    types(&host, b"\x1a");
    sees(&host, "the host does not stop, because agents use it; p freezes the screen");
    types(&host, b"i");
    sees(&host, "no run waits for input");
    types(&host, b"k");
    sees(&host, "nothing runs");
    let blanks = shown(&host).matches("▌\n").count();
    types(&host, b" ");
    sees_times(&host, "▌\n", blanks + 1);
    let mut one = start(&host, "echo ready; while [ ! -e end ]; do sleep 0.01; done");
    types(&host, b"k77\r");
    sees(&host, "no command #77 runs");
    types(&host, b"f77\r");
    sees_times(&host, "no command #77 runs", 2);
    std::fs::write(host.home.join("end"), "").expect("a file");
    assert_eq!(code(&mut one), 0);
}

#[test]
fn a_frozen_screen_delays_no_command_and_shows_what_came_meanwhile() {
    let host = Host::with(TERMINAL);
    types(&host, b"p");
    sees(&host, "p shows what came meanwhile");
    for n in 0..20 {
        assert_eq!(host.run(&format!("echo output {n}")).out(), format!("output {n}\n"));
    }
    let flood = "head -c 4000000 /dev/zero | tr '\\0' 'x'";
    assert_eq!(host.run(flood).out().len(), 4_000_000);
    types(&host, b"?");
    assert_eq!(host.run("echo last").out(), "last\n");
    assert!(!shown(&host).contains("output 0"), "{}", shown(&host));
    types(&host, b"p");
    sees(&host, "\noutput 0");
    sees(&host, "▌k N    stop command N");
    sees(&host, "\nlast");
}

#[test]
fn a_host_with_a_frozen_screen_ends_like_any_other() {
    let mut host = Host::with(TERMINAL);
    types(&host, b"p");
    sees(&host, "p shows what came meanwhile");
    host.run("echo unseen");
    types(&host, b"q");
    assert_eq!(host.check_end().code(), 0);
    assert!(shown(&host).contains("\nunseen"), "{}", shown(&host));
}

#[test]
fn a_followed_command_comes_before_the_others() {
    let host = Host::with(TERMINAL);
    let mut noisy = start(&host, "echo ready; while [ ! -e end ]; do echo noise; sleep 0.01; done");
    types(&host, b"f1\r");
    sees(&host, "following #1");
    host.run("echo other");
    let noise = shown(&host).matches("\nnoise").count();
    sees_times(&host, "\nnoise", noise + 300);
    assert!(!shown(&host).contains("\nother"), "it is not shown while another one is followed");
    types(&host, b"f");
    sees(&host, "#1 is not followed any more");
    sees(&host, "\nother");
    std::fs::write(host.home.join("end"), "").expect("a file");
    assert_eq!(code(&mut noisy), 0);
}

const JUNK: &[&[u8]] = &[
    b"hello",
    b"\x1b[A\x1b[B\x1b[1;5C\x1bOq",
    b"\x1b[<0;10;10M\x1b[<0;10;10m\x1b[M qk",
    b"\x1b[I\x1b[O",
    b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b]10;q\x07\x1b[?6;4;22c\x1b[0n\x1b[12;40R\x1bP>|q\x1b\\",
    b"\x1b[200~q\ry\rk1\rk2\r\x1a\x0c\x1b[201~",
    b"quit now\rqy\rk1\r",
    "qué será ✓".as_bytes(),
    b"\x00\x01\x02\x04\x1c\x7f\xff",
];

#[test]
fn typed_junk_pasted_text_and_reports_do_nothing() {
    let host = Host::with(TERMINAL);
    let mut one = start(&host, "echo ready; read -t 1000 < <(sleep 1000)");
    for junk in JUNK {
        types(&host, junk);
        is_heard(&host);
    }
    assert!(!shown(&host).contains("y/n"), "{}", shown(&host));
    assert_eq!(host.journal().of_type("end").count(), 0);
    types(&host, b"\x03");
    assert_eq!(code(&mut one), 130);
}

/// Without a terminal for the keys, signals mean what they always did.
#[test]
fn without_a_terminal_sigint_ends_the_host() {
    let mut host = Host::with(PLAIN);
    host.signal(Signal::SIGINT);
    assert_eq!(host.check_end().code(), 0);
    let mut host = Host::with(Setup { terminal: true, ..PLAIN });
    host.signal(Signal::SIGINT);
    assert_eq!(host.check_end().code(), 0);
    let is_back = || host.terminal.as_ref().expect("a terminal").modes().local_flags.bits() & 0o12 == 0o12;
    assert!(waiting::until_true(PATIENCE, is_back), "lines are read and shown again");
}
