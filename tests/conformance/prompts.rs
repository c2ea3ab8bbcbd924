//! Programs that ask the terminal when nobody is there to answer: all of them end.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::case::{Bench, users};
use crate::support::call::{Call, Output, Target};
use crate::support::host::Host;
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// Far above what the host takes to end any of them, far below what a person would bear.
const HANG: Duration = Duration::from_secs(20);

struct Prompt {
    name: &'static str,
    script: &'static str,
    needs: &'static [&'static str],
    /// What the output contains.
    out: &'static str,
    /// Whether the caller is told that the terminal was asked.
    note: bool,
    /// Whether the program may be one that ignores the end of its input and is hung up, and its shell with it.
    hangs_up: bool,
    modes: &'static [&'static str],
}

const STRIP: &str = "REXEC_SANITIZE=strip";
const PIPES: &str = "REXEC_TTY=never";

const QUIET: Prompt =
    Prompt { name: "", script: "", needs: &[], out: "end", note: false, hangs_up: false, modes: &[STRIP, PIPES] };
const ASKS: Prompt = Prompt { note: true, ..QUIET };
const PAGES: Prompt = Prompt { hangs_up: true, ..QUIET };

const TABLE: &[Prompt] = &[
    Prompt { name: "read from the terminal", script: "read x </dev/tty; echo $? end", out: "1 end", ..ASKS },
    Prompt { name: "read with a prompt", script: "read -p 'name? ' x </dev/tty; echo end", ..ASKS },
    Prompt { name: "a silent read", script: "read -s x </dev/tty; echo end", ..QUIET },
    Prompt { name: "cat of the terminal", script: "cat /dev/tty; echo end", ..ASKS },
    Prompt { name: "two reads", script: "read x </dev/tty; read y </dev/tty; echo end", ..ASKS },
    Prompt {
        name: "a read below timeout",
        script: "timeout 60 sh -c 'read x </dev/tty'; echo $? end",
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "a read in a group of its own",
        script: "python3 -c 'import subprocess; subprocess.run([\"sh\", \"-c\", \"read x </dev/tty\"], process_group=0)'; echo end",
        needs: &["python3"],
        ..ASKS
    },
    Prompt {
        name: "a password",
        script: "python3 -c 'import getpass; getpass.getpass()'; echo end",
        needs: &["python3"],
        ..QUIET
    },
    Prompt { name: "less", script: "less /etc/services /etc/passwd; echo end", needs: &["less"], ..PAGES },
    Prompt { name: "less in a pipe", script: "seq 1 1000 | less; echo end", needs: &["less"], ..PAGES },
    Prompt { name: "less below timeout", script: "timeout 60 less /etc/passwd; echo end", needs: &["less"], ..PAGES },
    Prompt { name: "vi", script: "vim -u NONE file </dev/tty; echo end", needs: &["vim"], ..PAGES },
    Prompt { name: "python", script: "python3 -i </dev/tty; echo end", needs: &["python3"], ..QUIET },
    Prompt { name: "node", script: "node -i </dev/tty; echo end", needs: &["node"], ..QUIET },
    Prompt { name: "stty sane", script: "stty sane </dev/tty; sleep 1; echo end", ..QUIET },
    Prompt { name: "stty tostop", script: "stty tostop </dev/tty; echo end; echo again", out: "end\nagain", ..QUIET },
    Prompt {
        name: "a read without echo",
        script: "stty -echo </dev/tty; read x </dev/tty; stty echo </dev/tty; echo end",
        ..QUIET
    },
    Prompt {
        name: "an interactive shell",
        script: "bash --norc -ic 'echo in; sleep 1; echo end'",
        out: "in\nend",
        ..QUIET
    },
    Prompt { name: "a shell at the terminal", script: "bash --norc -i </dev/tty; echo end", ..PAGES },
    Prompt { name: "tput", script: "tput cols; echo end", needs: &["tput"], out: "160", modes: &[STRIP], ..QUIET },
    Prompt { name: "a read with a time", script: "read -t 1 x </dev/tty; echo end", ..QUIET },
    Prompt { name: "nobody reads for long", script: "read x </dev/tty; sleep 2; echo end", ..ASKS },
];

#[test]
fn prompts_end() {
    let mut wrong = Vec::new();
    for user in users() {
        let bench = Bench::new(user);
        let Some(host) = &bench.host else { return };
        for prompt in TABLE.iter().filter(|prompt| prompt.needs.iter().all(|program| programs::has(program))) {
            for mode in prompt.modes {
                wrong.extend(
                    prompt.fault(host, mode).map(|text| format!("{} ({mode}, user {user:?}) {text}", prompt.name)),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} prompts do not end as they should:\n{}", wrong.len(), wrong.join("\n"));
}

impl Prompt {
    fn fault(&self, host: &Host, mode: &str) -> Option<String> {
        let call = host.call(self.script).env(mode);
        let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
        let Some(seen) = calling.finish(HANG) else { return Some(format!("hangs: {:#?}", host.tree())) };
        let is_told = seen.err().contains("rexec: command asked for terminal input");
        let is_hung_up = self.hangs_up && seen.code() == 129;
        let is_right = is_hung_up || (seen.code() == 0 && seen.out().contains(self.out) && (is_told || !self.note));
        let tell =
            |text: String| text.chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect::<String>();
        (!is_right)
            .then(|| format!("ends with {}\n  out: {}\n  err: {}", seen.code(), tell(seen.out()), tell(seen.err())))
    }
}

/// The host learns of both in one turn of its loop, from two descriptors.
#[test]
fn the_question_comes_before_the_word_that_it_was_asked() {
    let host = Host::start();
    let script = "echo $$ > pid; until test -e go; do sleep 0.01; done; echo 'name?'; read x </dev/tty";
    let call = Call { output: Output::OneFile, ..host.call(script) };
    let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
    let shell = || Process::of(fs::read_to_string(host.home.join("pid")).ok()?.trim().parse().ok()?);
    assert!(waiting::until(PATIENCE, shell).is_some(), "it never started");
    host.signal(Signal::SIGSTOP);
    fs::write(host.home.join("go"), "").expect("a file");
    assert!(waiting::until_true(PATIENCE, || shell().is_some_and(|shell| shell.state == 'T')), "it never asked");
    // Its guard has told the host by now, which it does when it is woken by the stop.
    let guard = shell().expect("it is stopped").parent;
    assert!(waiting::until_true(PATIENCE, || Process::of(guard).is_some_and(|guard| guard.state == 'S')));
    host.signal(Signal::SIGCONT);
    let seen = calling.finish(PATIENCE).expect("it ends");
    let (question, word) = (seen.out().find("name?"), seen.out().find("asked for terminal input"));
    assert!(question.is_some() && question < word, "{seen:?}");
}
