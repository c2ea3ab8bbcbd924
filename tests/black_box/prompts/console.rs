//! Answers on the console: `i` gives the keys to the command that waits.

use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, OutputFlags, Termios};

use super::{CONSOLE, begins_to_answer, ends, last_row_says, presses_answer, start, types, waits};
use crate::support::host::Host;
use crate::support::programs;
use crate::support::screen::Screen;
use crate::support::waiting::wait_until;

fn modes(host: &Host) -> Termios {
    host.terminal.as_ref().expect("it has one").modes()
}

fn shows(host: &Host, text: &str) {
    wait_until(&format!("the console says {text:?}"), || host.console_text().contains(text));
}

#[test]
fn keys_answer_after_i_and_not_before() {
    let host = Host::with(CONSOLE);
    types(&host, b"xyz");
    let mut call =
        start(&host, "w=wo; read -p 'name? ' a </dev/tty; read -sp \"pass${w}rd? \" b </dev/tty; echo \"<$a|$b>\"");
    waits(&host, 1);
    shows(&host, "⏎ #1 waits: \"name?\"   i answer · ^C stop it · end of file in ");
    types(&host, b"xyz");
    begins_to_answer(&host, 1);
    types(&host, b"ann\n");
    shows(&host, "password? ");
    types(&host, b"secret\n");
    assert_eq!(ends(&mut call).out(), "<ann|secret>\n");
    last_row_says(&host, "#1 has ended: no key acts until return and 1 s of silence");
    types(&host, b"\x1b");
    last_row_says(&host, "your keys are the console's again");
    let shown = host.console_text();
    assert_eq!(shown.matches("secret").count(), 1, "only the command itself shows it: {shown}");
}

#[test]
fn the_way_back_leaves_the_prompt_for_the_next_answer() {
    let host = Host::with(CONSOLE);
    let mut call = start(&host, "read -p 'name? ' a </dev/tty; echo \"<$a>\"");
    waits(&host, 1);
    begins_to_answer(&host, 1);
    types(&host, b"an\x1d");
    shows(&host, "#1 goes on; your keys are the console's again");
    waits(&host, 1);
    super::send(&host, 1, "n\n");
    assert_eq!(ends(&mut call).out(), "<ann>\n");
}

#[test]
fn a_host_that_is_killed_leaves_no_full_screen_behind() {
    if !programs::has("vi") {
        return;
    }
    let mut host = Host::with(CONSOLE);
    let _call = start(&host, "TERM=xterm vi -u NONE f </dev/tty >/dev/tty");
    waits(&host, 1);
    presses_answer(&host, 1);
    let screen = |text: &str| Screen::of(text.as_bytes(), (120, 40)).text();
    wait_until("vi has the screen", || screen(&host.console_text()).starts_with("\n~"));
    wait_until("keys pass as they are", || !modes(&host).output_flags.contains(OutputFlags::OPOST));
    host.end_unchecked(Signal::SIGKILL);
    wait_until("the screen is the human's", || screen(&host.console_text()).contains("rexec journal: "));
    wait_until("keys are lines", || modes(&host).local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO));
    wait_until("the keyboard's modes are reset", || {
        let text = host.console_text();
        text.ends_with("\x1b[J") || text.ends_with("\x1b[23;2t")
    });
    assert!(modes(&host).output_flags.contains(OutputFlags::OPOST));
}

#[test]
fn a_full_screen_program_has_the_whole_screen_while_it_is_answered() {
    if !programs::has("vi") {
        return;
    }
    let host = Host::with(CONSOLE);
    let mut call = start(
        &host,
        "echo first >f; TERM=xterm vi -u NONE f </dev/tty >/dev/tty; cat f; \
         until test \"$(stty size </dev/tty)\" = '24 80'; do sleep 0.05; done; echo back",
    );
    waits(&host, 1);
    let mut other = start(&host, "sleep 0.5; echo beside");
    presses_answer(&host, 1);
    let screen = || Screen::of(host.console_text().as_bytes(), (120, 40)).text();
    wait_until("vi has the screen", || screen().starts_with("first\n~"));
    assert_eq!(ends(&mut other).out(), "beside\n");
    types(&host, b"osecond\x1b");
    wait_until("it is used", || screen().starts_with("first\nsecond\n~"));
    assert!(!screen().contains("beside"), "{}", screen());
    types(&host, b":wq\r");
    assert_eq!(ends(&mut call).out(), "first\nsecond\nback\n", "the terminal has its size back");
    shows(&host, "#1 had the whole screen for ");
    wait_until("the other's block comes", || screen().contains("beside"));
    assert!(screen().contains("sleep 0.5; echo beside") && !screen().contains("\n~"), "{}", screen());
}

/// An editor takes ^L for text while somebody types.
#[test]
fn a_terminal_that_is_resized_types_nothing_into_an_editor() {
    if !programs::has("vi") {
        return;
    }
    let host = Host::with(CONSOLE);
    let mut call = start(&host, "TERM=xterm vi -u NONE f </dev/tty >/dev/tty; cat f");
    waits(&host, 1);
    presses_answer(&host, 1);
    let screen = || Screen::of(host.console_text().as_bytes(), (120, 40)).text();
    wait_until("vi has the screen", || screen().starts_with("\n~"));
    types(&host, b"ibegun");
    wait_until("it is used", || screen().starts_with("begun\n~"));
    for rows in [30, 25, 35, 40] {
        let drawn = || host.console_text().matches("begun").count();
        let before = drawn();
        host.terminal.as_ref().expect("it has one").resize(120, rows);
        wait_until("vi draws its text again", || drawn() > before);
    }
    types(&host, b" and done\x1b:wq\r");
    assert_eq!(ends(&mut call).out(), "begun and done\n");
}
