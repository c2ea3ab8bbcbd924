//! Answers on the console: `i` gives the keys to the command that waits.

use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, OutputFlags, Termios};

use super::{CONSOLE, begins_to_answer, ends, last_row_says, start, types, waits};
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
    let mut call = start(
        &host,
        "w=wo; read -p 'a \"name\"? ' a </dev/tty; read -sp \"pass${w}rd? \" b </dev/tty; echo \"<$a|$b>\"",
    );
    waits(&host, 1);
    shows(&host, r#"⏎ #1 waits: "a \"name\"?"   i answer · ^C stop it · end of file in "#);
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
    begins_to_answer(&host, 1);
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
fn a_full_screen_program_has_the_screen_while_it_is_answered() {
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
    begins_to_answer(&host, 1);
    let screen = || Screen::of(host.console_text().as_bytes(), (120, 40)).text();
    wait_until("vi has the screen", || screen().starts_with("first\n~"));
    assert_eq!(ends(&mut other).out(), "beside\n");
    types(&host, b"osecond\x1b");
    wait_until("it is used", || screen().starts_with("first\nsecond\n~"));
    assert!(!screen().contains("beside"), "{}", screen());
    types(&host, b":wq\r");
    assert_eq!(ends(&mut call).out(), "first\nsecond\nback\n", "the terminal has its size back");
    shows(&host, "#1 had the screen for ");
    wait_until("the other's block comes", || screen().contains("beside"));
    assert!(screen().contains("sleep 0.5; echo beside") && !screen().contains("\n~"), "{}", screen());
}

/// What a program tries in order to draw where the host says whose keys these are.
const ATTACKS: &[&str] = &[
    // By its place, by a way down, by line feeds and wrapping.
    r"\033[40;1HFORGED\033[99;1HFORGED\033[99dFORGED\033[99e\rFORGED",
    r"\033[39;1H\033[99B\rFORGED\033[99E\rFORGED\n\rFORGED\033DFORGED\033EFORGED\033[39;110HFORGEDFORGED",
    // By what scrolls.
    r"\033[1;40r\033[39H\nFORGED\033[r\033[39H\nFORGED\033[5S\033[99T\033[39HFORGED\033[L\033[M\033M\n\n",
    r"\033[3;9r\033[39HFORGED\n\rFORGED\n\rFORGED\0337\033[sabove\033[r\0338FORGED\033[u\rFORGED",
    r"\033[?6h\033[5;40r\033[40HFORGED\033[?6l\033[?69h\033[1;9s\033[?69l\033[r",
    // By erasing it, by a reset, by another screen, backwards.
    r"\033[2J\033[J\033[?2J\033#8\033c\033[!p\033[?1047hFORGED\033[?45h\033[H\b\bFORGED",
    // By looking like it, and beyond the screen.
    r"\033[38;1H▌ your keys go to nobody\033]0;FORGED\a\033]52;c;Rk9SR0VE\a\033]777;notify;FORGED;x\033\\\\",
    r"\033)0\016\033[4h\033[?5h\033[7;31m\033[2JFORGED",
];

/// A full-screen program that draws what is typed.
const DRAWER: &str = r#"exec </dev/tty >/dev/tty; stty -echo; printf '\033[?1049h'; read -r; while read -r line; do
    case $line in end) break;; size) stty size;; *) printf "$line";; esac; done; printf '\033[?1049l'"#;

/// The host draws its row in between, for which it would keep the cursor where the program has kept its own.
#[test]
fn a_program_gets_the_cursor_back_that_it_has_kept() {
    let host = Host::with(CONSOLE);
    let mut call = start(&host, DRAWER);
    waits(&host, 1);
    begins_to_answer(&host, 1);
    types(&host, b"\n");
    let row = |at: usize| {
        let shown = Screen::of(host.console_text().as_bytes(), (120, 40)).text();
        shown.lines().nth(at).unwrap_or_default().to_owned()
    };
    for (number, (save, restore)) in [("7", "8"), ("[s", "[u"), ("[?1048h", "[?1048l")].into_iter().enumerate() {
        types(&host, format!("\\033[7;9H\\033{save}\\033[3;3Habc\\033[2Jdef{number}\n").as_bytes());
        wait_until("the program has erased the screen", || row(2) == format!("     def{number}"));
        wait_until("the host's row is there", || row(39).starts_with("▌ your keys go to #1 "));
        types(&host, format!("\\033{restore}back{number}\n").as_bytes());
        let is_back = || host.console_text().contains(&format!("back{number}"));
        wait_until("the program goes on", is_back);
        assert_eq!(row(6), format!("        back{number}"), "{save}");
    }
    types(&host, b"end\n");
    ends(&mut call);
}

/// What a program draws, wherever it wants it, is above the row that says where the keys go.
#[test]
fn the_last_row_stays_the_hosts_behind_a_full_screen_program() {
    let host = Host::with(CONSOLE);
    let mut call = start(&host, DRAWER);
    waits(&host, 1);
    begins_to_answer(&host, 1);
    let row = |text: &str, size: (u16, u16), at: u16| {
        let shown = Screen::of(text.as_bytes(), size).text();
        shown.lines().nth(usize::from(at)).unwrap_or_default().to_owned()
    };
    let is_hosts = |row: &str| row.starts_with("▌ your keys go to #1 ") && row.ends_with(" · ^] takes them back");
    types(&host, b"\n");
    for (number, attack) in ATTACKS.iter().enumerate() {
        types(&host, format!("{attack}\\033[m\\033[5;1H\\033[4lmark {number}.\n").as_bytes());
        let draws = || row(&host.console_text(), (120, 40), 4).starts_with(&format!("mark {number}."));
        wait_until(&format!("the program draws {attack}"), draws);
        let stays = || is_hosts(&row(&host.console_text(), (120, 40), 39));
        wait_until(&format!("the last row stays the host's behind {attack}"), stays);
    }
    let shown = host.console_text();
    for unwanted in ["▌ your keys go to nobody", "\x1b]52;", "\x1b]777;", "\x1b]0;FORGED", "\x1bc"] {
        assert!(!shown.contains(unwanted), "{unwanted:?}");
    }
    // A terminal with too few rows gets the console back, and a larger one the program.
    for (rows, is_taken) in [(30, true), (2, false), (3, true), (1, false), (40, true)] {
        let before = host.console_text().len();
        host.terminal.as_ref().expect("it has one").resize(120, rows);
        let since = || host.console_text().split_off(before);
        if is_taken {
            wait_until(&format!("the host has the last of {rows} rows"), || {
                is_hosts(&row(&since(), (120, rows), rows - 1))
            });
            types(&host, b"size\n");
            wait_until("the program has the others", || since().contains(&format!("{} 120\n", rows - 1)));
        } else {
            wait_until(&format!("the console has {rows} rows"), || since().contains("#1 had the screen for "));
        }
    }
    types(&host, b"end\n");
    ends(&mut call);
    last_row_says(&host, "#1 has ended");
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
    begins_to_answer(&host, 1);
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
