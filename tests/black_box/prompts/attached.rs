//! `rexec attach` and `rexec send`, as a person uses them.

use nix::sys::signal::Signal;
use nix::sys::termios::LocalFlags;

use super::{ATTENDED, ends, start, waits};
use crate::support::host::Host;
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::terminal::Terminal;
use crate::support::typist::{At, Typist};
use crate::support::waiting::wait_until;

/// Starts `rexec` at a terminal.
fn at_terminal(host: &Host, args: &[&str]) -> Typist {
    let argv: Vec<&str> = ["rexec"].iter().chain(args).copied().collect();
    let env = [format!("REXEC_SOCKET={}", host.socket().display()), "TERM=xterm".to_owned()];
    Typist::start(programs::rexec(), &argv, &env, host.home.path(), [At::Terminal; 3])
}

/// Runs `rexec` without a terminal; returns what it says and its code.
fn rexec(host: &Host, args: &[&str]) -> (String, i32) {
    let output =
        programs::command(programs::rexec()).args(args).env("REXEC_SOCKET", host.socket()).output().expect("rexec");
    (String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(), output.status.code().unwrap_or(-1))
}

#[test]
fn a_person_answers_at_the_commands_own_terminal() {
    let host = Host::with(ATTENDED);
    let mut call = start(
        &host,
        "read -p 'name? ' x </dev/tty; read -sp 'pass? ' y </dev/tty; echo \"<$x|$y>\"; stty size </dev/tty",
    );
    waits(&host, 1);
    let mut person = at_terminal(&host, &["attach", "1"]);
    person.sees("name? ");
    person.types(b"ann\r");
    person.sees("ann\r\n");
    person.sees("pass? ");
    person.types(b"secret\r");
    let shown = person.sees("<ann|secret>");
    assert_eq!(shown.matches("secret").count(), 1, "the terminal shows no password: {shown}");
    person.sees("24 80");
    person.sees("#1 ended with 0; press return");
    person.types(b"\r");
    assert_eq!(person.ends().code(), 0);
    assert!(person.has_its_modes(true));
    assert_eq!(ends(&mut call).out(), "<ann|secret>\n24 80\n");
}

/// The next question waits a moment for what the terminal shows of the answer, and not for ever.
#[test]
fn a_terminal_that_shows_nothing_at_the_moment_keeps_no_question_back() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read -p 'name? ' x </dev/tty; read -p 'town? ' y </dev/tty; echo \"<$x|$y>\"");
    waits(&host, 1);
    let mut person = at_terminal(&host, &["attach", "1"]);
    person.sees("name? ");
    person.types(b"\x13ann\r");
    person.sees("town? ");
    person.types(b"\x11");
    person.sees("ann\r\n");
    person.types(b"Bern\r");
    assert_eq!(ends(&mut call).out(), "<ann|Bern>\n");
}

#[test]
fn who_leaves_lets_the_command_go_on() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read x </dev/tty; echo \"<$x>\"");
    waits(&host, 1);
    let mut person = at_terminal(&host, &["attach", "1"]);
    assert!(person.is_raw());
    person.types(b"half \x1d and this goes nowhere\r");
    person.sees("#1 goes on");
    person.ends();
    assert!(person.has_its_modes(true));
    waits(&host, 1);
    assert_eq!(rexec(&host, &["send", "1", "done"]), (String::new(), 0));
    assert_eq!(ends(&mut call).out(), "<half done>\n");
}

#[test]
fn a_terminal_gets_its_modes_back_however_rexec_attach_ends() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read x </dev/tty; echo \"<$x>\"");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        waits(&host, 1);
        let mut person = at_terminal(&host, &["attach", "1"]);
        assert!(person.is_raw());
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(person.warden.pid()), signal).expect("it lives");
        person.ends();
        assert!(person.has_its_modes(true), "{signal}");
    }
    waits(&host, 1);
    let mut person = at_terminal(&host, &["attach", "1"]);
    assert!(person.is_raw());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(person.warden.pid()), Signal::SIGKILL).expect("it lives");
    person.ends();
    let reads_lines = || person.terminal.modes().local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO);
    wait_until("a helper has put the terminal back", reads_lines);
    waits(&host, 1);
    rexec(&host, &["send", "1", "x"]);
    assert_eq!(ends(&mut call).out(), "<x>\n");
}

#[test]
fn rexec_attach_takes_its_terminal_over_again_after_a_stop() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read x </dev/tty; echo \"<$x>\"");
    waits(&host, 1);
    let mut person = at_terminal(&host, &["attach", "1"]);
    assert!(person.is_raw());
    let raw = person.terminal.modes();
    let shells = Terminal::new(80, 24).modes();
    let attach = Process::of(person.warden.pid()).expect("it lives");
    attach.signal(Signal::SIGSTOP);
    wait_until("it is stopped", || Process::of(attach.pid).is_some_and(|now| now.state == 'T'));
    person.terminal.set_modes(&shells);
    attach.signal(Signal::SIGCONT);
    wait_until("the terminal is raw again", || person.terminal.modes() == raw);
    person.types(b"on\r");
    person.sees("#1 ended with 0; press return");
    person.types(b"\x03");
    person.ends();
    assert!(person.has_its_modes(true));
    assert_eq!(ends(&mut call).out(), "<on>\n");
}

#[test]
fn one_person_types_and_others_watch() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read -p 'who? ' x </dev/tty; echo \"<$x>\"");
    waits(&host, 1);
    let mut first = at_terminal(&host, &["attach", "1"]);
    first.sees("who? ");
    let (said, code) = rexec(&host, &["send", "1", "other"]);
    assert!(said.contains("#1 is being answered by another rexec (process ") && code == 1, "{said}");
    let mut second = at_terminal(&host, &["attach", "1"]);
    second.sees("rexec attach --watch 1 shows it");
    let mut watcher = at_terminal(&host, &["attach", "--watch", "1"]);
    watcher.sees("who? ");
    watcher.types(b"not me\r");
    first.types(b"me\r");
    watcher.sees("<me>");
    watcher.sees("#1 ended with 0");
    watcher.ends();
    assert!(watcher.has_its_modes(true));
    first.sees("press return");
    first.types(b"\x1b");
    first.ends();
    assert_eq!(ends(&mut call).out(), "<me>\n");
}

#[test]
fn a_full_screen_program_is_drawn_and_used() {
    if !programs::has("vi") {
        return;
    }
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "printf 'first\\n' >f; TERM=xterm vi -u NONE f </dev/tty >/dev/tty; cat f");
    waits(&host, 1);
    let mut person = at_terminal(&host, &["attach", "1"]);
    person.shows("first");
    person.types(b"osecond\x1b");
    person.shows("second");
    person.types(b":wq\r");
    person.sees("#1 ended with 0; press return");
    person.types(b"\x1b");
    assert!(person.drawn().text().contains("#1 ended"), "{}", person.drawn().text());
    person.ends();
    assert_eq!(ends(&mut call).out(), "first\nsecond\n");
}

#[test]
fn one_that_watches_sees_the_screen_as_it_is_drawn() {
    let host = Host::with(ATTENDED);
    let script = "exec >/dev/tty; printf 'before\\n\\033[?1049h\\033[2J\\033[4;7Hdrawn\\033[c'; read -r x </dev/tty";
    let mut call = start(&host, script);
    waits(&host, 1);
    let mut watcher = at_terminal(&host, &["attach", "--watch", "1"]);
    let shown = watcher.sees("drawn");
    assert!(!shown.contains("\x1b[c"), "what asks the terminal has had its answer: {shown:?}");
    assert!(watcher.drawn().text().lines().nth(3).is_some_and(|row| row.trim_end() == "      drawn"));
    rexec(&host, &["send", "1", "go"]);
    watcher.sees("#1 ended with 0");
    watcher.ends();
    assert!(watcher.has_its_modes(true));
    ends(&mut call);
}

/// A dev server takes keys without asking, and a person may want to stop it.
#[test]
fn a_command_that_does_not_ask_can_be_attended_too() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "trap 'echo stopped; exit 7' INT; echo up; while :; do sleep 0.1; done");
    wait_until("it runs", || host.console_text().contains("\nup"));
    let mut person = at_terminal(&host, &["attach", "1"]);
    person.sees("up");
    person.types(b"\x03");
    person.sees("stopped");
    person.sees("#1 ended with 7; press return");
    person.types(b"\x1d");
    person.ends();
    assert_eq!(ends(&mut call).code(), 7);
}

#[test]
fn wrong_calls_are_told() {
    let host = Host::with(ATTENDED);
    for (args, words, code) in [
        (&["attach", "1"][..], "no command #1 runs", 3),
        (&["attach", "--watch", "1"], "no command #1 runs", 3),
        (&["attach"], "attach needs a command number", 2),
        (&["send", "1"], "send needs a text, - for standard input, --key, or --eof", 2),
        (&["send", "1x", "y"], "`1x` is not a command number", 2),
        (&["send", "x", "y"], "there is no service `x`", 3),
        (&["send", "1", "y"], "no command #1 runs", 3),
    ] {
        let (said, found) = rexec(&host, args);
        assert!(said.contains(words) && said.contains("hint: ") && found == code, "{args:?}: {said} {found}");
    }
    let mut call = start(&host, "read -p 'name? ' x </dev/tty; echo \"<$x>\"");
    waits(&host, 1);
    let (said, found) = rexec(&host, &["attach", "1"]);
    assert!(said.contains("attach needs a terminal") && found == 1, "{said} {found}");
    assert_eq!(rexec(&host, &["send", "1", "still mine"]).1, 0, "it waits as before");
    assert_eq!(ends(&mut call).out(), "<still mine>\n");
}
