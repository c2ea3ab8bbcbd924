//! Answers by `send`: to programs that read lines, that switch echo off, and that ask several times.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{ATTENDED, ends, send, start, waits};
use crate::export::rexec;
use crate::support::call::Target;
use crate::support::crowd::{answer, ask_in_json};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::waiting::PATIENCE;

/// A script, the answers to its prompts with the words of each, and what it prints then.
type Dialogue = (&'static str, &'static [(&'static str, &'static str)], &'static str, Option<&'static str>);

const DIALOGUES: &[Dialogue] = &[
    ("read -p 'name? ' x </dev/tty; echo \"<$x>\"", &[("name?", "ann\n")], "<ann>", None),
    ("read -sp 'pass? ' x </dev/tty; echo \"<$x>\"", &[("pass?", "ann\n")], "<ann>", None),
    (
        "read -p 'a? ' x </dev/tty; read -p 'b? ' y </dev/tty; echo \"<$x$y>\"",
        &[("a?", "1\n"), ("b?", "2\n")],
        "<12>",
        None,
    ),
    ("timeout 100 sh -c 'printf who >/dev/tty; read x </dev/tty; echo \"<$x>\"'", &[("who", "me\n")], "<me>", None),
    (
        "stty -echo </dev/tty; printf 'hid ' >/dev/tty; read x </dev/tty; stty echo </dev/tty; echo \"<$x>\"",
        &[("hid", "ann\n")],
        "<ann>",
        None,
    ),
    ("python3 -c 'print(\"<\" + input(\"n? \") + \">\")' </dev/tty", &[("n?", "ann\n")], "<ann>", Some("python3")),
    (
        "python3 -c 'import getpass; print(\"<\" + getpass.getpass() + \">\")'",
        &[("Password:", "ann\n")],
        "<ann>",
        Some("python3"),
    ),
    (
        "ssh-keygen -q -t ed25519 -N old -f k; ssh-keygen -q -p -f k; ssh-keygen -y -P newnew -f k >f; echo \"<$?>\"",
        &[
            ("Enter old passphrase:", "old\n"),
            ("Enter new passphrase (empty for no passphrase):", "newnew\n"),
            ("Enter same passphrase again:", "newnew\n"),
        ],
        "<0>",
        Some("ssh-keygen"),
    ),
];

#[test]
fn what_asks_waits_and_gets_the_answer() {
    let host = Host::with(ATTENDED);
    let mut seq = 0;
    for (script, answers, printed, needs) in DIALOGUES {
        if needs.is_some_and(|needs| !programs::has(needs)) {
            continue;
        }
        seq += 1;
        let mut call = start(&host, script);
        for (words, text) in *answers {
            let run = waits(&host, seq);
            assert_eq!(run["prompt"], *words, "{script}: {run}");
            assert_eq!(send(&host, seq, text), json!({"result": "send", "seq": seq, "bytes": text.len()}), "{script}");
        }
        let outcome = ends(&mut call);
        assert!(outcome.out().contains(printed), "{script}: {outcome:?}");
        assert_eq!(
            outcome.err().matches("rexec: waits for input at the console (").count(),
            1,
            "{script}: {outcome:?}"
        );
        assert!(!outcome.err().contains("end of file"), "{script}: {outcome:?}");
    }
}

#[test]
fn the_journal_has_how_much_was_typed_and_never_what() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read -p 'a? ' x </dev/tty; read -sp 'b? ' y </dev/tty; echo ${#x} ${#y}");
    waits(&host, 1);
    send(&host, 1, "visible-answer\n");
    waits(&host, 1);
    send(&host, 1, "hidden-answer\n");
    assert_eq!(ends(&mut call).out(), "14 13\n");
    host.wait_for("the end", |journal| journal.of_type("end").next().cloned());
    let journal = host.journal();
    let typed: Vec<_> =
        journal.of_type("input").map(|input| (&input["seq"], &input["bytes"], &input["hidden"])).collect();
    let (absent, yes) = (json!(null), json!(true));
    assert_eq!(typed, [(&json!(1), &json!(15), &absent), (&json!(1), &json!(14), &yes)]);
    assert!(!format!("{journal:?}").contains("hidden-answer"), "{journal:?}");
}

#[test]
fn show_and_casts_say_how_much_was_typed_where_and_when() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "read -p 'a? ' x </dev/tty; read -sp 'b? ' y </dev/tty; echo $x ${#y}");
    waits(&host, 1);
    send(&host, 1, "ann\n");
    waits(&host, 1);
    host.wait_for("the answer", |journal| journal.of_type("input").next().cloned());
    let running = rexec(&host, &["show", "1"]).out();
    assert_eq!(running.matches("\nanswer     ").count(), 1, "{running}");
    send(&host, 1, "top-secret\n");
    assert_eq!(ends(&mut call).out(), "ann 10\n");
    host.wait_for("the end", |journal| journal.of_type("end").next().cloned());
    let shown = rexec(&host, &["show", "1"]).out();
    let answers: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("answer     ")).collect();
    assert!(answers.len() == 2 && answers[0].ends_with(" 4 bytes by rexec send"), "{shown}");
    assert!(answers[1].ends_with(" 11 bytes by rexec send, not shown"), "{shown}");
    let json: Value = serde_json::from_str(&rexec(&host, &["show", "--json", "1"]).out()).expect("an object");
    let typed = |at: usize| (json["answers"][at]["bytes"].as_u64(), json["answers"][at]["from"].as_str());
    assert_eq!((typed(0), typed(1)), ((Some(4), Some("send")), (Some(11), Some("send"))), "{json}");
    let cast = rexec(&host, &["export", "1", "--cast"]).out();
    let events: Vec<Value> = cast.lines().skip(1).map(|line| serde_json::from_str(line).expect("an event")).collect();
    let marks: Vec<&str> =
        events.iter().filter(|event| event[1] == "m").filter_map(|event| event[2].as_str()).collect();
    assert_eq!(marks, ["4 bytes typed", "11 bytes typed, not shown"]);
    assert!(events.iter().all(|event| event[1] != "i") && !cast.contains("top-secret"), "{cast}");
    assert_eq!(rexec(&host, &["replay", "1"]).code(), 0);
}

#[test]
fn a_prompt_that_nobody_answers_gets_end_of_file_when_its_time_is_over() {
    let host = Host::with(Setup { flags: &["--prompts", "ask", "--prompt-wait", "0.3"], ..MIRROR });
    let outcome = host.run("read x </dev/tty; echo $?");
    assert_eq!(outcome.out(), "1\n");
    let told = ["waits for input at the console (bash)", "command asked for terminal input (bash); got end of file"];
    assert_eq!(outcome.err(), told.map(|line| format!("rexec: {line}\n")).concat());
}

#[test]
fn nobody_is_at_a_console_without_keys() {
    let host = Host::with(Setup { terminal: true, ..MIRROR });
    assert_eq!(host.run("read x </dev/tty; echo $?").err().lines().count(), 1, "it does not wait");
    use std::io::Write;
    let terminal = host.terminal.as_ref().expect("it has one");
    terminal.master_file().write_all(b" ").expect("a key");
    terminal.settle();
    let mut call = start(&host, "read x </dev/tty; echo \"<$x>\"");
    waits(&host, 2);
    send(&host, 2, "now\n");
    assert_eq!(ends(&mut call).out(), "<now>\n");
}

#[test]
fn two_commands_that_ask_at_once_get_their_own_answers() {
    let host = Host::with(ATTENDED);
    let mut calls = [1, 2].map(|_| start(&host, "read -p 'n? ' x </dev/tty; echo \"<$x>\""));
    [1, 2].iter().for_each(|&seq| _ = waits(&host, seq));
    [2, 1].iter().for_each(|&seq| _ = send(&host, seq, &format!("for {seq}\n")));
    let mut seen = calls.each_mut().map(|call| ends(call).out());
    seen.sort();
    assert_eq!(seen, ["<for 1>\n", "<for 2>\n"]);
}

#[test]
fn what_does_not_ask_gets_nothing_and_what_ends_frees_the_person() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "echo up; sleep 100");
    crate::support::waiting::wait_until("it runs", || host.console_text().contains("\nup"));
    let refused = send(&host, 1, "x\n");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("#1 does not wait")), "{refused}");
    let forced = answer(ask_in_json(&host, &json!({"action": "send", "seq": 1, "text": "\u{3}", "force": true})));
    assert_eq!(forced["bytes"], 1, "{forced}");
    assert_eq!(ends(&mut call).code(), 130, "^C at its terminal");
    let none = send(&host, 1, "x\n");
    assert!(none["message"].as_str().is_some_and(|text| text.contains("no command #1 runs")), "{none}");
}

/// What was typed while a program asked, or the end of file that a new terminal holds, is not the answer.
#[test]
fn only_what_is_typed_for_a_prompt_answers_it() {
    let host = Host::with(ATTENDED);
    // The modes change, so that the read finds the program in the foreground.
    let mut call = start(&host, "stty -echo </dev/tty; read x </dev/tty; read y </dev/tty; echo \"<$x|$y>\"");
    waits(&host, 1);
    send(&host, 1, "one\n");
    waits(&host, 1);
    send(&host, 1, "two\n");
    assert_eq!(ends(&mut call).out(), "<one|two>\n");
}

#[test]
fn a_command_whose_caller_dies_waits_no_longer() {
    let host = Host::with(ATTENDED);
    let call = host.call("read x </dev/tty").start(Target::Shim(&host.socket())).expect("the shim starts");
    waits(&host, 1);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(call.pid()), nix::sys::signal::Signal::SIGKILL)
        .expect("it lives");
    let end = host.wait_for("the end", |journal| journal.of_type("end").next().cloned());
    assert_eq!(end["error"], "aborted");
    crate::support::waiting::wait_until("nothing is listed", || super::list(&host).is_empty());
}

/// Reads in the foreground that it got to change the modes. At SIGUSR1 it stops its group, as a program does that
/// restores the modes, and ends without being stopped itself.
const LEAVES_A_STOPPED_GROUP: &str = "echo 'import os, signal, termios
def leave(*_):
    os.killpg(0, signal.SIGTTOU)
    os._exit(0)
tty = os.open(\"/dev/tty\", os.O_RDWR)
termios.tcsetattr(tty, termios.TCSANOW, termios.tcgetattr(tty))
signal.signal(signal.SIGTTOU, lambda *_: None)
signal.signal(signal.SIGUSR1, leave)
open(\"pid\", \"w\").write(str(os.getpid()))
os.read(tty, 1)' >p.py; python3 p.py; echo end";

/// The guard had reported the reader and took the stop of its shell for the same request, which ended with the reader.
#[test]
fn a_shell_that_was_stopped_as_its_reader_ended_runs_on() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::with(ATTENDED);
    let mut call = start(&host, LEAVES_A_STOPPED_GROUP);
    waits(&host, 1);
    let reader = std::fs::read_to_string(host.home.join("pid")).expect("it reads");
    let reader = nix::unistd::Pid::from_raw(reader.parse().expect("a number"));
    nix::sys::signal::kill(reader, nix::sys::signal::Signal::SIGUSR1).expect("it lives");
    assert_eq!(ends(&mut call).out(), "end\n");
}

/// The guard has stopped such a command, but its caller does not know that.
#[test]
fn a_command_that_waits_dies_of_its_callers_signal() {
    let host = Host::with(ATTENDED);
    let mut seq = 0;
    for script in ["read -p 'name? ' x </dev/tty; exit 3", "python3 -c 'import getpass; getpass.getpass()'; exit 3"] {
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1] {
            seq += 1;
            let mut call = start(&host, script);
            waits(&host, seq);
            call.warden.signal(signal);
            let outcome = ends(&mut call);
            assert_eq!(outcome.code(), 128 + signal as i32, "{script}: {outcome:?}");
        }
    }
}

#[test]
fn a_command_that_waits_and_catches_its_callers_signal_asks_again() {
    let host = Host::with(ATTENDED);
    let mut call = start(&host, "trap 'echo caught' TERM; read -p 'name? ' x </dev/tty; echo \"<$x>\"");
    waits(&host, 1);
    call.warden.signal(Signal::SIGTERM);
    assert!(call.stdout.as_ref().expect("a pipe").wait_for(b"caught\n", PATIENCE));
    waits(&host, 1);
    assert_eq!(send(&host, 1, "ann\n")["bytes"], 4);
    assert!(ends(&mut call).out().ends_with("caught\n<ann>\n"));
}

/// A recorder that is stopped takes nothing in, and one that is killed may have written what it has not acknowledged.
#[test]
fn each_answer_is_in_the_journal_once_although_recorders_die() {
    let host = Host::with(ATTENDED);
    for seq in 1..=4 {
        let mut call = start(&host, "read -p 'word? ' x </dev/tty; echo \"<$x>\"");
        waits(&host, seq);
        let before = host.recorder();
        if seq % 2 == 1 {
            before.signal(Signal::SIGSTOP);
        }
        assert_eq!(send(&host, seq, "word\n"), json!({"result": "send", "seq": seq, "bytes": 5}));
        assert_eq!(ends(&mut call).out(), "<word>\n");
        host.kill_recorder(&before);
        assert!(host.has_replaced(&before), "another recorder goes on");
    }
    let runs = host.wait_for("the last end", |journal| {
        let runs: Vec<u64> = journal.of_type("input").filter_map(|input| input["seq"].as_u64()).collect();
        (journal.of_type("end").count() == 4).then_some(runs)
    });
    assert_eq!(runs, [1, 2, 3, 4]);
}

/// Programs that draw a form read the terminal key by key, and know the return key only.
#[test]
fn the_end_of_a_text_is_the_return_key_where_keys_are_read_one_by_one() {
    let host = Host::with(ATTENDED);
    let read = "dd bs=1 count=2 </dev/tty 2>/dev/null | od -An -c";
    // A text that feeds something and names the terminal itself would have none.
    let script = format!("stty -icanon -icrnl </dev/tty; {read}; stty sane </dev/tty; {read}");
    let mut call = start(&host, &format!("cat >asks <<'end'\n{script}\nend\nsh asks"));
    for seq in [1, 1] {
        waits(&host, seq);
        assert_eq!(send(&host, seq, "y\n")["bytes"], 2);
    }
    let out = ends(&mut call).out();
    assert_eq!(out.split_whitespace().collect::<Vec<_>>(), ["y", "\\r", "y", "\\n"]);
}

/// An interactive shell stops itself until it is in the foreground. That is not a question: it reads nothing.
#[test]
fn a_shell_that_begins_its_job_control_waits_for_no_answer() {
    let host = Host::with(ATTENDED);
    for shell in ["bash --norc -ic", "dash -ic", "zsh -fic", "fish -ic"] {
        let program = shell.split(' ').next().expect("a word");
        if programs::has(program) {
            let mut call = start(&host, &format!("{shell} 'echo end; sh -c \"exit 3\"'; echo $?"));
            let ended = ends(&mut call);
            assert_eq!((ended.out().as_str(), ended.err().as_str()), ("end\n3\n", ""), "{shell}");
        }
    }
}
