//! Programs that ask the terminal while nobody is there to answer: all of them end, and a program that does not ask
//! runs on.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::case::{Bench, users};
use super::prompters::{OTHERS, READERS};
use crate::support::call::{Call, Outcome, Output, Target};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::reader::read_some;
use crate::support::waiting::{self, PATIENCE};

/// Far above what the host takes to end any of them, so that it is a guard against hanging only.
pub(super) const HANG: Duration = Duration::from_secs(120);

pub(super) struct Prompt {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
    pub(super) needs: &'static [&'static str],
    /// What the output contains.
    pub(super) out: &'static str,
    /// What it contains where the terminal is gone after the first question, if that is something else.
    pub(super) left: &'static str,
    pub(super) note: Note,
}

/// Whether the caller is told that the terminal was asked, and by whom.
#[derive(Debug, Clone, Copy)]
pub(super) enum Note {
    /// It is told: this program reads.
    Names(&'static str),
    /// It may be told: who changes the modes first has the foreground when it reads, and the end of file at hand.
    May,
    /// It is not, because nobody reads.
    Never,
}

/// How an agent calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A pipe for each stream, the first of which becomes the terminal.
    Terminal,
    /// One for both, so that both become the terminal.
    OneTerminal,
    /// Pipes, and a terminal at which nobody answers.
    Pipes,
}

/// A host that gives commands on pipes a terminal, and end of file to what reads it.
pub(super) const UNANSWERED: Setup = Setup { flags: &["--prompts", "ask", "--prompt-wait", "0"], ..MIRROR };

/// How many run at once: nearly all of them wait rather than work.
const AT_ONCE: usize = 8;
const WAYS: [Way; 3] = [Way::Terminal, Way::OneTerminal, Way::Pipes];

/// A server that wants a password of everybody; gives its port.
fn locked_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is available");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut request = [0; 4096];
            _ = read_some(&mut client, &mut request);
            _ = client.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    port
}

/// Runs these programs in each of the ways, as a user.
fn check(user: Option<u32>, ways: &[Way], table: &[&Prompt]) {
    let bench = Bench::new(user);
    let Some(host) = &bench.host else { return };
    let unanswered = Host::with(Setup { user, ..UNANSWERED });
    let (wrong, next, locked) = (Mutex::new(Vec::new()), AtomicUsize::new(0), locked_server());
    let runs: Vec<(&Prompt, Way)> =
        ways.iter().flat_map(|&way| table.iter().map(move |&prompt| (prompt, way))).collect();
    let work = || {
        while let Some((prompt, way)) = runs.get(next.fetch_add(1, Relaxed)) {
            let host = if *way == Way::Pipes { &unanswered } else { host };
            let fault = prompt.fault(host, *way, locked);
            let tell = |text| format!("{} ({way:?}, user {user:?}) {text}", prompt.name);
            wrong.lock().expect("no run panics").extend(fault.map(tell));
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().expect("no run panics");
    assert!(wrong.is_empty(), "{} prompts do not end as they should:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn some_prompts_end_and_others_run_on() {
    let table: Vec<&Prompt> = READERS.iter().take(4).chain(&OTHERS[1..3]).collect();
    assert!(table.iter().all(|prompt| prompt.needs.is_empty()), "they are the shell's own");
    check(None, &WAYS[..1], &table);
}

#[test]
#[ignore = "long: every program, in three ways, as every user"]
fn prompts_end_and_others_run_on() {
    let is_had = |prompt: &&Prompt| prompt.needs.iter().all(|program| programs::has(program));
    let table: Vec<&Prompt> = READERS.iter().chain(OTHERS).filter(is_had).collect();
    assert!(table.len() >= 30, "too few programs are installed");
    for user in users() {
        // What another user changes does not depend on the way.
        check(user, if user.is_none() { &WAYS } else { &WAYS[..1] }, &table);
    }
}

impl Prompt {
    /// The call, in a directory of its own.
    fn call(&self, host: &Host, way: Way, locked: u16) -> Call {
        let script = format!("cd $(mktemp -d -p $HOME) || exit; {}", self.script);
        let output = if way == Way::OneTerminal { Output::OnePipe } else { Output::Apart };
        Call { output, ..host.call(&script).env("REXEC_SANITIZE=strip").env(&format!("LOCKED_PORT={locked}")) }
    }

    fn fault(&self, host: &Host, way: Way, locked: u16) -> Option<String> {
        let call = self.call(host, way, locked);
        let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
        let Some(seen) = calling.finish(HANG) else { return Some(format!("hangs: {:#?}", host.tree())) };
        let notes = notes(&seen);
        let is_told = match self.note {
            Note::Names(program) => notes == [program],
            Note::May => notes.len() <= 1,
            Note::Never => notes.is_empty(),
        };
        let out = if way == Way::Pipes && !self.left.is_empty() { self.left } else { self.out };
        // Also after a program that wants keys and has to be hung up: its shell goes on.
        let is_right = seen.code() == 0 && seen.out().contains(out);
        (!is_told || !is_right).then(|| describe(&seen))
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

/// The programs that the caller is told about.
pub(super) fn notes(seen: &Outcome) -> Vec<String> {
    let texts = [seen.out(), seen.err()];
    let named = |line: &str| {
        let at = line.find("rexec: command asked for terminal input (")?;
        let (program, rest) = line[at..].split_once('(')?.1.split_once(')')?;
        rest.starts_with("; got end of file").then(|| program.to_owned())
    };
    texts.iter().flat_map(|text| text.lines()).filter_map(named).collect()
}

/// How it ended, for a message.
pub(super) fn describe(seen: &Outcome) -> String {
    let tail = |text: String| text.chars().skip(text.chars().count().saturating_sub(300)).collect::<String>();
    format!("ends with {}\n  out: {}\n  err: {}", seen.code(), tail(seen.out()), tail(seen.err()))
}
