//! The status line on a real terminal's rows: what stands there, and that it goes with the host however that ends.

use std::io::Write;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{code, types};
use crate::support::call::{Calling, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::screen::Screen;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

const STATUS: Setup = Setup { terminal: true, wrapper: &["env", "TERM=xterm"], ..PLAIN };
/// The size of a test's console.
const SIZE: (u16, u16) = (120, 40);

fn rows(host: &Host) -> Vec<String> {
    let screen = Screen::of(host.console_text().as_bytes(), SIZE);
    let mut rows: Vec<String> = screen.text().lines().map(str::to_owned).collect();
    rows.resize(SIZE.1.into(), String::new());
    rows
}

/// Waits until the last row says this; returns it.
fn says(host: &Host, text: &str) -> String {
    let last = || rows(host).pop().filter(|row| row.contains(text));
    waiting::until(PATIENCE, last).unwrap_or_else(|| panic!("it never says {text:?}: {:#?}", rows(host)))
}

/// Checks that the line stands in one row. It may just be drawn again.
fn has_one_line(host: &Host) {
    let is_one = || rows(host).iter().filter(|row| row.contains("? keys")).count() == 1;
    assert!(waiting::until_true(PATIENCE, is_one), "{:#?}", rows(host));
}

fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

#[test]
fn the_last_row_says_what_runs_and_output_never_reaches_it() {
    let host = Host::with(STATUS);
    let idle = says(&host, "no agent yet");
    assert!(idle.contains("rexec run -- claude") && idle.ends_with("q quit · ? keys"), "{idle}");
    let mut busy = start(&host, "while [ ! -e end ]; do echo 'a line of output'; sleep 0.01; done");
    says(&host, "1 run: #1 while [");
    says(&host, "^C stop #1 · ? keys");
    host.run("for n in $(seq 100); do printf 'row %s\\n\\033[J\\033[2Kx' $n; done; printf 'half a line'");
    host.call("exit 3").env("CLAUDECODE=1").run(Target::Shim(&host.socket()));
    let line = says(&host, "1 failed today");
    assert!(line.contains("1 agent ·"), "{line}");
    has_one_line(&host);
    std::fs::write(host.home.join("end"), "").expect("a file");
    assert_eq!(code(&mut busy), 0);
    says(&host, "nothing runs");
}

#[test]
fn it_names_a_command_that_runs_in_its_callers_sandbox_and_that_ends_by_its_key() {
    if !crate::sandbox::can_run() {
        return;
    }
    let host = Host::with(STATUS);
    let script = "echo here; exec sleep 1000";
    let mut caged = crate::sandbox::caged(&host, script).start(Target::Real).expect("the shim starts");
    says(&host, "1 run: #1 echo here");
    says(&host, "^C stop #1 · ? keys");
    types(&host, b"\x03");
    assert_ne!(code(&mut caged), 0);
    says(&host, "nothing runs");
}

#[test]
fn numbers_are_typed_on_it_and_escape_leaves() {
    let host = Host::with(STATUS);
    let mut one = start(&host, "exec sleep 1000");
    says(&host, "1 run: #1 exec sleep 1000");
    types(&host, b"k42");
    let asked = says(&host, "stop which run? #42_");
    assert!(asked.ends_with("return does it · Esc leaves"), "{asked}");
    types(&host, b"\x1b");
    says(&host, "1 run: #1");
    // Right behind Esc, the key is Alt-q.
    let asks = || rows(&host).pop().is_some_and(|row| row.contains("1 command runs: end it and the host? y/n"));
    let is_asked = || {
        types(&host, b"q");
        waiting::until_true(Duration::from_secs(2), asks)
    };
    assert!(waiting::until_true(PATIENCE, is_asked), "{:#?}", rows(&host));
    types(&host, b"n");
    says(&host, "1 run: #1");
    types(&host, b"\x1a");
    says(&host, "the host does not stop, because agents use it");
    types(&host, b"p");
    says(&host, "SCREEN STANDS STILL");
    types(&host, b"p");
    types(&host, b"\x03");
    says(&host, "#1 is interrupted; ^C again kills it");
    assert_eq!(code(&mut one), 130);
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Quit,
    Interrupts,
    Signal(Signal),
}

/// Whatever was on, is off at the end of these bytes.
fn assert_given_back(host: &Host, way: Way) {
    let switches =
        [("\x1b[1;39r", "\x1b7\x1b[r\x1b8\x1b[J"), ("\x1b[?2004h", "\x1b[?2004l"), ("\x1b[22;2t", "\x1b[23;2t")];
    for (on, off) in switches {
        let is_off = || host.console_text().rfind(off) > host.console_text().rfind(on);
        assert!(waiting::until_true(PATIENCE, is_off), "{way:?}: {on:?} stays: {:?}", host.console_text());
    }
    assert!(!rows(host).iter().any(|row| row.contains("? keys")), "{way:?}: {:#?}", rows(host));
    let modes = host.terminal.as_ref().expect("a terminal").modes().local_flags;
    assert_eq!(modes.bits() & COOKED, COOKED, "{way:?}");
}

/// ISIG, ICANON and ECHO.
const COOKED: u32 = 0o13;

#[test]
fn region_modes_and_title_go_with_the_host() {
    use Signal::{SIGHUP, SIGINT, SIGTERM};
    for way in [Way::Quit, Way::Interrupts, Way::Signal(SIGTERM), Way::Signal(SIGHUP), Way::Signal(SIGINT)] {
        let mut host = Host::with(STATUS);
        says(&host, "no agent yet");
        match way {
            Way::Quit => types(&host, b"q"),
            Way::Interrupts => types(&host, b"\x03\x03"),
            Way::Signal(signal) => host.signal(signal),
        }
        host.check_end();
        assert_given_back(&host, way);
    }
}

/// The next host on the same terminal finds a region, marked pastes, a title and a terminal that reads keys.
#[test]
fn a_host_removes_what_a_killed_one_has_left() {
    let home = TempDir::new(None);
    // Nobody reads the first one's output, so all of it is read with the second one's.
    let mut first = Host::in_dir(home, Setup { is_stuck: true, ..STATUS });
    let terminal = first.terminal.take().expect("a terminal");
    let (home, _warden) = first.kill();
    assert_eq!(terminal.modes().local_flags.bits() & COOKED, 0, "it had no time for that");
    let mut second = Host::at(home, Setup { flags: &["--no-status"], ..STATUS }, Some(terminal));
    let has_cleaned = || {
        let text = second.console_text();
        let is_ready = text.matches("rexec journal: ").count() == 2;
        is_ready && text.rfind("\x1b7\x1b[r\x1b8\x1b[J\x1b[23;2t") > text.rfind("\x1b[1;39r")
    };
    assert!(waiting::until_true(PATIENCE, has_cleaned), "{:?}", second.console_text());
    types(&second, b"q");
    second.check_end();
    let modes = second.terminal.as_ref().expect("a terminal").modes().local_flags;
    assert_eq!(modes.bits() & COOKED, COOKED, "what it found was not what a person wants");
}

#[test]
fn a_key_sets_the_screen_up_again_after_another_program_wrote_to_it() {
    let host = Host::with(STATUS);
    says(&host, "no agent yet");
    let terminal = host.terminal.as_ref().expect("a terminal");
    let mut other = std::fs::File::from(terminal.slave());
    other.write_all(b"\x1b[r\x1b[40;1H\x1b[2Kin the way\x1b[?25l\x1b[31m").expect("it takes it");
    says(&host, "in the way");
    types(&host, b"\x0c");
    let row = says(&host, "no agent yet");
    assert!(row.ends_with("q quit · ? keys"), "{row}");
    let text = host.console_text();
    for back in ["\x1b[0m", "\x1b[?25h", "\x1b[1;39r"] {
        assert!(text.rfind(back) > text.rfind("in the way"), "{back:?}: {text:?}");
    }
    assert_eq!(host.run("seq 1 60").code(), 0);
    says(&host, "nothing runs");
    has_one_line(&host);
}

#[test]
fn a_storm_of_sizes_ends_with_one_line_in_the_last_row() {
    let host = Host::with(STATUS);
    let mut busy = start(&host, "while [ ! -e end ]; do printf 'some words and a number: %s\\n' $RANDOM; done");
    says(&host, "1 run: #1");
    let terminal = host.terminal.as_ref().expect("a terminal");
    for n in 0..300 {
        terminal.resize(20 + n * 7 % 180, 2 + n * 5 % 60);
    }
    terminal.resize(80, 5);
    terminal.resize(100, 30);
    let has_line = || {
        let text = host.console_text();
        text.rfind("\x1b7\x1b[30;1H") > text.rfind("\x1b[1;29r") && text.contains("\x1b[1;29r")
    };
    assert!(waiting::until_true(PATIENCE, has_line), "no line for the last size");
    std::fs::write(host.home.join("end"), "").expect("a file");
    assert_eq!(code(&mut busy), 0);
}
