//! A program of another session asks at the command's terminal, as gpg's pinentry does.

use serde_json::json;

use super::{ATTENDED, ends, send, start, waits};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;

/// Opens the terminal by its name from a session of its own, and asks twice for a word that it does not show. What was typed
/// before is dropped first, as getpass(3) does.
const ASKS: &str = r#"cat >ask.py <<'end'
import os, sys, termios
tty = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
modes = termios.tcgetattr(tty)
modes[3] &= ~termios.ECHO
termios.tcsetattr(tty, termios.TCSAFLUSH, modes)
words = []
for question in "Passphrase: ", "Repeat: ":
    os.write(tty, question.encode())
    words.append(os.read(tty, 100).decode().strip() or "nothing")
    os.write(tty, b"\n")
modes[3] |= termios.ECHO
termios.tcsetattr(tty, termios.TCSANOW, modes)
print(*words)
end
number=$(cut -d ' ' -f 7 /proc/self/stat)
setsid -w python3 ask.py /dev/pts/$((number & 255 | number >> 12 & 1048320)); echo end"#;

fn can_ask() -> bool {
    programs::has("python3") && programs::has("setsid")
}

#[test]
fn a_person_answers_a_program_of_another_session() {
    if !can_ask() {
        return;
    }
    let host = Host::with(ATTENDED);
    let mut call = start(&host, ASKS);
    for (question, word) in [("Passphrase:", "one"), ("Repeat:", "two")] {
        let asked = || waits(&host, 1)["prompt"] == question;
        crate::support::waiting::wait_until(question, asked);
        assert_eq!(send(&host, 1, &format!("{word}\n")), json!({"result": "send", "seq": 1, "bytes": 4}));
    }
    let ended = ends(&mut call);
    assert_eq!(ended.out(), "one two\nend\n");
    assert_eq!(ended.err(), "rexec: waits for input at the console (python3)\n");
}

/// What the caller is told when a program asks.
const WAITS: &str = "rexec: waits for input at the console (python3)\n";

/// A host where nobody answers.
const UNANSWERED: Setup = Setup { flags: &["--prompts", "ask", "--prompt-wait", "0"], ..MIRROR };

/// It is given end of file once for each time that it asks, and no signal.
#[test]
fn a_program_of_another_session_gets_end_of_file_when_nobody_answers() {
    if !can_ask() {
        return;
    }
    let host = Host::with(UNANSWERED);
    let mut call = start(&host, &ASKS.replace("\"Repeat: \"", ""));
    let ended = ends(&mut call);
    assert_eq!(ended.out(), "nothing\nend\n");
    let told = "rexec: command asked for terminal input (python3); got end of file\n";
    assert_eq!(ended.err(), format!("{WAITS}{told}"));
}

/// A pinentry in curses reads key by key, so that ^D would be a key to it. Its terminal hangs up.
#[test]
fn what_reads_keys_in_another_session_ends_with_its_terminal_when_nobody_answers() {
    if !can_ask() {
        return;
    }
    let host = Host::with(UNANSWERED);
    let mut call = start(&host, &ASKS.replace("~termios.ECHO", "~(termios.ECHO | termios.ICANON)"));
    let ended = ends(&mut call);
    let told = "rexec: command asked for terminal input (python3); got end of file\n";
    assert_eq!(ended.out(), "end\n");
    assert!(
        ended.err().starts_with(&format!("{WAITS}{told}")) && ended.err().contains("Input/output error"),
        "{ended:?}"
    );
}
