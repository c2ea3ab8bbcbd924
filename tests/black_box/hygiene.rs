//! The human's terminal after hostile commands: it is as before, in a real emulator and to the last byte.

mod forgery;
mod hostile;
mod pane;

use std::fs;

use crate::support::call::{Call, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};
use hostile::COMMANDS;
use pane::{OWN_TITLE, PERMISSIVE, Pane};

/// After each hostile command the pane is as before it, and the next line is visible.
fn assert_untouched(pane: &Pane) {
    assert!(COMMANDS.len() >= 60);
    let baseline = pane.flags_at_the_next(0).expect("a harmless command is seen");
    let mut wrong = Vec::new();
    for (command, number) in COMMANDS.iter().zip(1..) {
        let seen = pane.run(command.script);
        if seen.code() != command.code {
            wrong.push(format!("{}: it ends with {}: {seen:?}", command.name, seen.code()));
        }
        match pane.flags_at_the_next(number) {
            Ok(flags) => {
                let changed = baseline.lines().zip(flags.lines()).filter(|(before, after)| before != after);
                wrong.extend(changed.map(|(before, after)| format!("{}: {before:?} became {after:?}", command.name)));
            }
            Err(screen) => {
                wrong.push(format!("{}: the next block is not to be seen:\n{screen}", command.name));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[ignore = "long: 83 hostile commands in a tmux pane"]
fn a_safe_console_is_never_touched_and_never_answers() {
    if !programs::has("tmux") || !programs::has("script") {
        return;
    }
    // Between pane and host, script(1) writes down what is typed.
    let pane = Pane::start(Some("script -qfe --log-in keys -c '@'"), &[]);
    PERMISSIVE.iter().for_each(|option| _ = pane.tmux(option));
    assert_untouched(&pane);
    assert_eq!(pane.tmux(&["list-buffers"]), "", "nothing was copied");
    assert_eq!(pane.end(), "", "nothing is left for the parent shell");
    let keys = fs::read_to_string(pane.home.join("keys")).expect("the log of the keys");
    let typed: Vec<&str> = keys.lines().filter(|line| !line.starts_with("Script ")).collect();
    assert_eq!(typed, ["q"], "the host was sent the key that ended it and nothing else");
    assert_eq!(pane.strange_files(), ["keys"]);
}

#[test]
#[ignore = "long: 83 hostile commands in a tmux pane"]
fn a_raw_console_is_repaired_after_each_command() {
    if !programs::has("tmux") {
        return;
    }
    let pane = Pane::start(None, &["--console", "raw"]);
    assert_untouched(&pane);
    assert_eq!(pane.end(), "", "nothing is left for the parent shell");
    assert_eq!(pane.strange_files(), [""; 0]);
}

/// Commands that are still writing when the host is told to leave.
const TO_THE_END: &[&str] = &[
    r"echo on; printf '\033[?25l\033[?1049h\033[?1003h'; while :; do printf '\033[c\033[6n\033]10;?\007'; done",
    r"trap 'printf \033[c\033[5n\033[18t' TERM; echo on; sleep 1000 & wait; exit",
    r"echo on; printf '\033[?25l\033[4h'; exec yes $'\033[5n\033[31mred\033[c'",
    r"echo on; printf '\033[?25l\033[?1049h\033]0;half'; exec sleep 1000",
];

#[test]
#[ignore = "long: 8 hosts that end in tmux panes"]
fn the_parent_shell_gets_its_terminal_back_from_the_midst_of_it() {
    if !programs::has("tmux") {
        return;
    }
    for flags in [&[][..], &["--console=raw"]] {
        let is_safe = flags.is_empty();
        // A busy machine may take longer for the last words, which give the terminal back, than the host waits for its
        // console, and longer for the replies to a raw console's queries than the host waits for those.
        let is_whole = |script: &&str| {
            let pane = Pane::start(None, flags);
            let before = pane.flags();
            let call = Call::bash(script, pane.home.path());
            let mut calling = call.start(Target::Shim(&pane.socket())).expect("the shim starts");
            assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"on\n", PATIENCE), "{script}");
            // Keys that were typed into a console are not meant for the shell that comes after it.
            pane.tmux(&["send-keys", "touch 84", "Enter", "echo typed"]);
            let left = pane.end();
            let has_read = !left.is_empty();
            assert!(!has_read || !is_safe, "{flags:?}, {script}: the parent shell reads {left}");
            // While the host runs, the status line takes a row from the region.
            let region = |lower: u32| format!("scroll_region_lower {lower}");
            // On a raw console the terminal's answer to a query may come when its echo is on again.
            let stands = |flags: String| -> String {
                let is_kept = |line: &&str| is_safe || !line.starts_with("cursor_x ");
                flags.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
            };
            let before = stands(before.replace(&region(28), &region(29)));
            let (own, left) = (before.split_once('\n'), stands(pane.flags()));
            let left = left.split_once('\n').map(|(title, rest)| (title != OWN_TITLE, rest));
            let wanted = own.map(|(_, rest)| (true, rest));
            let has_end = pane.screen().contains("■ stopped as the host ended");
            assert!(!has_end || left == wanted, "{flags:?}, {script}: {left:?} and not {wanted:?}");
            assert_eq!(pane.strange_files(), [""; 0]);
            assert!(calling.finish(PATIENCE).is_some_and(|seen| seen.code() != 0));
            has_end && !has_read
        };
        for script in TO_THE_END {
            assert!((0..5).any(|_| is_whole(script)), "{script}: the last block has no end, or the shell read replies");
        }
    }
}

/// The first thing in the console's bytes that could do more than show text within the lines of a block.
fn forbidden(bytes: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(error.to_string()),
    };
    // The end of each block is allowed to undo what was allowed before it.
    let text = text.replace("\x18\x1b\\", "");
    // The host's own modes, at its start.
    let text = text.replacen("\x1b7\x1b[r\x1b8\x1b[J\x1b[?2004h", "", 1);
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\x08')) {
        rest = &rest[at..];
        let excerpt = || rest.chars().take(40).collect::<String>();
        let Some(sequence) = rest.strip_prefix("\x1b[") else { return Some(excerpt()) };
        let length = sequence.find(|c| !matches!(c, '0'..='9' | ';' | ':' | '?')).unwrap_or(sequence.len());
        let last = sequence[length..].chars().next().unwrap_or_default();
        let is_allowed = match &sequence[..length] {
            "?25" | "?7" => matches!(last, 'h' | 'l'),
            params => !params.contains('?') && matches!(last, 'm' | 'K' | 'G' | 'C' | 'D' | 'A' | 'B' | 'J'),
        };
        if !is_allowed {
            return Some(excerpt());
        }
        rest = &sequence[length + 1..];
    }
    None
}

/// A command, its directory and its caller, all of which have names that a terminal would obey.
fn call_with_hostile_names(host: &Host) {
    const NAME: &str = "\x1b]0;t\x07\x1b[2J\n\u{9b}5n\u{202e}x\r";
    let place = host.home.join(NAME);
    fs::create_dir_all(&place).expect("a directory");
    let mut call = host.call(&format!("echo '{NAME}'; exit 3")).env(&format!("REXEC_WHOAMI={NAME}"));
    call.dir = crate::support::call::dir(&place);
    assert_eq!(call.run(Target::Shim(&host.socket())).code(), 3);
}

fn control_in(text: &str) -> Option<char> {
    text.chars().find(|&c| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}'))
}

#[test]
#[ignore = "long: 83 hostile commands on 2 hosts"]
fn only_allowed_bytes_leave_the_host() {
    let hosts = [Setup { terminal: true, flags: &["--no-status"], ..PLAIN }, PLAIN].map(Host::with);
    for host in &hosts {
        for command in COMMANDS {
            assert_eq!(host.run(command.script).code(), command.code, "{}", command.name);
        }
        call_with_hostile_names(host);
        host.run("echo at last");
        assert!(waiting::until_true(PATIENCE, || host.console_text().contains("\nat last")));
    }
    let [terminal, file] = hosts.each_ref().map(Host::console_text);
    assert_eq!(forbidden(terminal.as_bytes()), None);
    assert_eq!(control_in(&file), None, "{file}");
    assert_printed_journal_is_text(&hosts[1]);
}

fn assert_printed_journal_is_text(host: &Host) {
    let count = COMMANDS.len() + 2;
    host.wait_for("every end", |journal| (journal.of_type("end").count() == count).then_some(()));
    let (path, _) = host.journal().records.first().cloned().expect("a record");
    let name = path.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned();
    for (args, expected) in [(&["--print", &name][..], "exit 3 · "), (&["--list"], &format!("commands={count}"))] {
        let mut rexec = programs::command(programs::rexec());
        let output = rexec.args(args).env("REXEC_HOME", host.journal_home()).output().expect("it starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success() && text.contains(expected), "{args:?}: {text}");
        assert_eq!(control_in(&text), None, "{args:?}: {text}");
    }
}

/// A command's terminal has 160 columns, the pane 100.
#[test]
fn a_progress_bar_wider_than_the_pane_is_one_line() {
    if !programs::has("tmux") {
        return;
    }
    let pane = Pane::start(None, &[]);
    pane.run(r"for n in {10..40}; do printf '\r%0120d' $n; done; printf '\nit is done\n'");
    let screen = || pane.tmux(&["capture-pane", "-p", "-J"]);
    assert!(waiting::until_true(PATIENCE, || screen().contains("\nit is done")), "{}", screen());
    let bars: Vec<String> = screen().lines().filter(|line| line.starts_with("000")).map(str::to_owned).collect();
    assert_eq!(bars, [format!("{:0120}", 40)]);
}
