//! A person types while prompts end, begin and are doubled: no key acts on the console, reaches another command, the
//! journal, or the shell behind `rexec attach`.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{CONSOLE, begins_to_answer, ends, last_row_says, list, screen, start, types, waits};
use crate::support::call::{Calling, Target};
use crate::support::crowd::{answer, ask_in_json};
use crate::support::dice::Dice;
use crate::support::host::Host;
use crate::support::programs;
use crate::support::typist::{At, Typist};
use crate::support::waiting::{self, wait_until};

/// Passwords of keys that do something on the console.
const PASSWORDS: &[&[u8]] = &[b"aqyk1qy", b"k1xkiqy1fpq", b"pipq1yq?y", b"zk1k2k3qyY"];
/// Ends by itself, at a moment that the test chooses.
const ASKS: &str = "read -rsp 'Password: ' x </dev/tty; echo $? >>answers";

/// Types one key after the other.
fn types_slowly(host: &Host, keys: &[u8], dice: &mut Dice) {
    for key in keys {
        types(host, &[*key]);
        waiting::until_true(Duration::from_millis(20 + dice.roll() % 60), || false);
    }
}

/// Has the command end as its agent's time limit would.
fn is_killed(calling: &mut Calling) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(calling.pid()), nix::sys::signal::Signal::SIGKILL)
        .expect("it lives");
}

#[test]
fn what_is_typed_behind_the_end_of_a_prompt_does_nothing() {
    let host = Host::with(CONSOLE);
    let _victim = start(&host, "sleep 1000");
    wait_until("it is the first one", || list(&host).iter().any(|run| run["state"] == "running"));
    let mut dice = Dice::new(7);
    let mut seq = 1;
    for round in 0..waiting::size(2, 8) {
        let password = PASSWORDS[round % PASSWORDS.len()];
        let mut asker = start(&host, ASKS);
        seq += 1;
        waits(&host, seq);
        begins_to_answer(&host, seq);
        let (before, behind) = password.split_at(dice.below(password.len()));
        types_slowly(&host, before, &mut dice);
        // In every other round, another command asks meanwhile with the same words.
        let other = (round % 2 == 1).then(|| start(&host, ASKS));
        is_killed(&mut asker);
        types_slowly(&host, behind, &mut dice);
        last_row_says(&host, &format!("#{seq} has ended: no key acts until return and 1 s of silence"));
        // The rest of the keys comes while that is there. A return alone does not give the keys back.
        types_slowly(&host, b"\rqyk1qy", &mut dice);
        last_row_says(&host, "no key acts");
        types(&host, b"\r");
        last_row_says(&host, "your keys are the console's again");
        if let Some(mut other) = other {
            seq += 1;
            waits(&host, seq);
            is_killed(&mut other);
        }
        wait_until("only the first one runs", || list(&host).iter().all(|run| run["seq"] == 1));
    }
    let runs = list(&host);
    assert_eq!((runs[0]["seq"].as_u64(), runs[0]["state"].as_str()), (Some(1), Some("running")), "{runs:?}");
    assert!(!host.home.join("answers").exists(), "no answer was complete");
    let journal = host.journal();
    let typed: Vec<_> = journal.of_type("input").map(|input| input["hidden"].as_bool()).collect();
    assert!(typed.iter().all(|hidden| *hidden == Some(true)), "{typed:?}");
    for password in PASSWORDS {
        let password = String::from_utf8_lossy(password).into_owned();
        assert!(!format!("{journal:?}").contains(&password[2..]), "{password}");
        assert!(!host.console_text().contains(&password[2..]), "{password}");
    }
    // The keyboard is the console's, and was not deaf.
    types(&host, b"p");
    last_row_says(&host, "SCREEN STANDS STILL");
}

#[test]
fn an_escape_gives_the_keys_back_at_once() {
    let host = Host::with(CONSOLE);
    for (seq, out) in (1..).zip([b"\x1b".as_slice(), b"\x03", b"\x1d"]) {
        let mut asker = start(&host, ASKS);
        waits(&host, seq);
        begins_to_answer(&host, seq);
        is_killed(&mut asker);
        last_row_says(&host, "no key acts");
        types(&host, b"q");
        types(&host, b"\x1b[A");
        last_row_says(&host, "no key acts");
        types(&host, out);
        wait_until("the keys are back", || !screen(&host).contains("no key acts"));
    }
    assert_eq!(host.run("echo on").out(), "on\n", "neither q nor ^C has ended the host");
}

#[test]
fn the_key_that_answers_asks_for_a_number_while_several_wait() {
    let host = Host::with(CONSOLE);
    let mut first = start(&host, "read -rp 'Password: ' x </dev/tty; echo \"<$x>\"");
    waits(&host, 1);
    last_row_says(&host, "i answer #1 shell");
    let mut second = start(&host, "read -rp 'Password: ' x </dev/tty; echo \"<$x>\"");
    waits(&host, 2);
    types(&host, b"i");
    last_row_says(&host, "answer which run? #_");
    // Who has not looked types the password, which is no number.
    types(&host, b"w");
    last_row_says(&host, "no answer has begun: no key acts until return and 1 s of silence");
    types(&host, b"\x1b");
    last_row_says(&host, "i answer one");
    types(&host, b"i");
    last_row_says(&host, "answer which run? #_");
    types(&host, b"2");
    last_row_says(&host, "answer which run? #2_");
    types(&host, b"\r");
    last_row_says(&host, "your keys go to #2 shell");
    types(&host, b"two\r");
    assert_eq!(ends(&mut second).out(), "<two>\n");
    let told = answer(ask_in_json(&host, &json!({"action": "send", "seq": 1, "text": "one\n"})));
    assert_eq!(told["bytes"], 4, "{told}");
    assert_eq!(ends(&mut first).out(), "<one>\n");
}

/// The shell of the person who is attached must not get the rest of a password: it would be run, and kept.
#[test]
fn what_is_typed_behind_the_end_of_an_attached_command_never_reaches_the_shell() {
    let host = Host::with(CONSOLE);
    let env = [format!("REXEC_SOCKET={}", host.socket().display()), "TERM=xterm".to_owned(), "PS1=ready> ".to_owned()];
    let argv = ["bash", "--norc", "--noprofile", "-i"];
    let mut person = Typist::start(Path::new("/bin/bash"), &argv, &env, host.home.path(), [At::Terminal; 3]);
    person.sees("ready> ");
    let mut dice = Dice::new(3);
    for seq in 1..=waiting::size(2, 6) as u64 {
        let mut asker: Calling = host.call(ASKS).start(Target::Shim(&host.socket())).expect("the shim starts");
        waits(&host, seq);
        person.types(format!("'{}' attach {seq}\r", programs::rexec().display()).as_bytes());
        person.sees("Password: ");
        let rest = b"pa; touch leaked; echo lea\"\"ked";
        let (before, behind) = rest.split_at(dice.below(8));
        before.iter().for_each(|key| person.types(&[*key]));
        is_killed(&mut asker);
        for key in behind {
            person.types(&[*key]);
            waiting::until_true(Duration::from_millis(dice.roll() % 30), || false);
        }
        person.sees("press return, then no key for 1 s (Esc: at once)");
        person.types(b"\rtouch leaked\r");
        let seen = person.sees("ready> ");
        assert!(!seen.contains("lea"), "{seen}");
    }
    person.types(b"echo here $((6*7)); history | grep -c lea\"\"ked\r");
    person.sees("here 42\r\n0\r\n");
    assert!(!host.home.join("leaked").exists());
    person.types(b"exit\r");
    person.ends();
}
