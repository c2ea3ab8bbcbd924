//! Programs that ask the terminal when nobody is there to answer: all of them end, and who does not ask runs on.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::case::{Bench, users};
use crate::support::call::{Call, Outcome, Output, Target};
use crate::support::host::Host;
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// Far above what the host takes to end any of them, so that it is a guard against hanging only.
pub(super) const HANG: Duration = Duration::from_secs(30);

pub(super) struct Prompt {
    pub(super) name: &'static str,
    pub(super) script: &'static str,
    pub(super) needs: &'static [&'static str],
    /// What the output contains.
    pub(super) out: &'static str,
    pub(super) note: Note,
    /// Whether the program may be one that takes no end of file and is hung up, and its shell with it.
    pub(super) hangs_up: bool,
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

use Note::{May, Names, Never};

/// How an agent calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A pipe for each stream, the first of which becomes the terminal.
    Terminal,
    /// One for both, so that both become the terminal.
    OneTerminal,
    /// `REXEC_TTY=never`.
    Pipes,
}

/// How many run at once: nearly all of them wait rather than work.
const AT_ONCE: usize = 8;
const WAYS: [Way; 3] = [Way::Terminal, Way::OneTerminal, Way::Pipes];

/// Runs on as if nobody watched.
pub(super) const QUIET: Prompt = Prompt { name: "", script: "", needs: &[], out: "end", note: Never, hangs_up: false };
/// Takes the end of file.
const ASKS: Prompt = Prompt { note: May, ..QUIET };
/// Wants keys.
const PAGES: Prompt = Prompt { hangs_up: true, ..ASKS };

const READERS: &[Prompt] = &[
    Prompt { name: "read", script: "read x </dev/tty; echo $? end", out: "1 end", note: Names("bash"), ..ASKS },
    Prompt { name: "read -p", script: "read -p 'name? ' x </dev/tty; echo end", note: Names("bash"), ..ASKS },
    Prompt { name: "read -s", script: "read -s x </dev/tty; echo $? end", out: "1 end", ..ASKS },
    Prompt { name: "read -t", script: "read -t 1 x </dev/tty; echo end", ..ASKS },
    Prompt {
        name: "read without echo",
        script: "stty -echo </dev/tty; read x </dev/tty; stty echo </dev/tty; echo $? end",
        out: "0 end",
        ..ASKS
    },
    Prompt { name: "select", script: "select x in a b; do :; done </dev/tty; echo end", note: Names("bash"), ..ASKS },
    Prompt { name: "cat", script: "cat /dev/tty; echo $? end", out: "0 end", note: Names("cat"), ..ASKS },
    Prompt {
        name: "rm -i",
        script: "touch f; rm -i f </dev/tty; ls f; echo end",
        out: "f\nend",
        note: Names("rm"),
        ..ASKS
    },
    Prompt { name: "bc", script: "bc -q </dev/tty; echo $? end", needs: &["bc"], out: "0 end", ..ASKS },
    Prompt { name: "ed", script: "ed </dev/tty; echo $? end", needs: &["ed"], out: "0 end", note: Names("ed"), ..ASKS },
    Prompt {
        name: "python input",
        script: "python3 -c 'input(\"name? \")' </dev/tty; echo $? end",
        needs: &["python3"],
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "python getpass",
        script: "python3 -c 'import getpass; getpass.getpass()'; echo $? end",
        needs: &["python3"],
        out: "1 end",
        ..ASKS
    },
    Prompt { name: "python", script: "python3 -i </dev/tty; echo $? end", needs: &["python3"], out: "0 end", ..ASKS },
    Prompt { name: "node", script: "node -i </dev/tty; echo $? end", needs: &["node"], out: "0 end", ..ASKS },
    Prompt {
        name: "node readline",
        script: "node -e 'require(\"readline\").createInterface({ input: require(\"fs\").createReadStream(\"/dev/tty\"), \
                 output: process.stdout }).question(\"name? \", () => {})'; echo end",
        needs: &["node"],
        note: Names("node"),
        ..ASKS
    },
    Prompt { name: "npm init", script: "npm init </dev/tty; echo end", needs: &["npm"], ..ASKS },
    Prompt { name: "sqlite3", script: "sqlite3 </dev/tty; echo $? end", needs: &["sqlite3"], ..ASKS },
    Prompt { name: "gdb", script: "gdb -q </dev/tty; echo $? end", needs: &["gdb"], ..ASKS },
    Prompt {
        name: "perl",
        script: "perl -e 'open F, \"</dev/tty\"; <F>'; echo end",
        needs: &["perl"],
        note: Names("perl"),
        ..ASKS
    },
    Prompt {
        name: "zsh read",
        script: "zsh -fc 'read x </dev/tty; echo $? end'",
        needs: &["zsh"],
        out: "1 end",
        note: Names("zsh"),
        ..ASKS
    },
    Prompt { name: "an interactive zsh", script: "zsh -fi </dev/tty; echo end", needs: &["zsh"], ..PAGES },
    Prompt { name: "an interactive bash", script: "bash --norc -i </dev/tty; echo end", ..PAGES },
    Prompt { name: "bash -ic read", script: "bash --norc -ic 'read x; echo $? end' </dev/tty", out: "1 end", ..ASKS },
    Prompt { name: "jobs that read", script: "set -m; cat </dev/tty; (read x </dev/tty) & wait; echo end", ..ASKS },
    // Passwords.
    Prompt { name: "sudo", script: "sudo -k true; echo end", needs: &["sudo"], ..ASKS },
    Prompt { name: "su", script: "su -c true; echo end", needs: &["su"], ..ASKS },
    Prompt { name: "passwd", script: "passwd </dev/tty; echo end", needs: &["passwd"], ..ASKS },
    Prompt {
        name: "ssh-keygen",
        script: "ssh-keygen -q -t ed25519 -N secret -f k; ssh-keygen -y -f k; echo $? end",
        needs: &["ssh-keygen"],
        out: "255 end",
        ..ASKS
    },
    Prompt {
        name: "ssh-add",
        script: "ssh-keygen -q -t ed25519 -N secret -f k; ssh-agent ssh-add k; echo end",
        needs: &["ssh-add", "ssh-agent"],
        ..ASKS
    },
    Prompt {
        name: "openssl enc",
        script: "openssl enc -aes-128-cbc -pbkdf2 -in /etc/passwd -out f; echo $? end",
        needs: &["openssl"],
        out: "1 end",
        ..ASKS
    },
    Prompt { name: "openssl passwd", script: "openssl passwd; echo $? end", needs: &["openssl"], out: "1 end", ..ASKS },
    Prompt {
        name: "gpg",
        script: "mkdir -m 700 g; export GNUPGHOME=$PWD/g; gpg -q --pinentry-mode loopback -c /etc/passwd; echo $? end; gpgconf --kill all",
        needs: &["gpg"],
        out: "2 end",
        ..ASKS
    },
    Prompt { name: "psql", script: "psql -W -h 127.0.0.1 -p 1; echo $? end", needs: &["psql"], out: "2 end", ..ASKS },
    Prompt {
        name: "mysql",
        script: "mysql -p -h 127.0.0.1 -P 1; echo $? end",
        needs: &["mysql"],
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "git of a server that wants a password",
        script: "git clone http://127.0.0.1:$LOCKED_PORT/x; echo $? end",
        needs: &["git"],
        out: "128 end",
        ..ASKS
    },
    Prompt {
        name: "git add -p",
        script: "git init -q; echo >f; git add f; echo x >>f; git add -p </dev/tty; git diff --cached --stat; echo end",
        needs: &["git", "perl"],
        ..ASKS
    },
    // Pagers, editors and others that fill the screen.
    Prompt { name: "less", script: "less /etc/services /etc/passwd; echo end", needs: &["less"], ..PAGES },
    Prompt { name: "less in a pipe", script: "seq 1 1000 | less; echo end", needs: &["less"], ..PAGES },
    Prompt { name: "more", script: "more /etc/services 2<>/dev/tty; echo end", needs: &["more"], ..PAGES },
    Prompt { name: "man", script: "MANPAGER=less man less; echo end", needs: &["man", "less"], ..PAGES },
    Prompt {
        name: "git log",
        script: "git init -q; git -c user.name=a -c user.email=a commit -q --allow-empty -m m; GIT_PAGER='less -+F' git log; echo end",
        needs: &["git", "less"],
        ..PAGES
    },
    Prompt {
        name: "git commit",
        script: "git init -q; GIT_EDITOR='vim -u NONE' git -c user.name=a -c user.email=a commit --allow-empty </dev/tty; echo end",
        needs: &["git", "vim"],
        ..PAGES
    },
    Prompt {
        name: "git rebase -i",
        script: "git init -q; git config user.name a; git config user.email a; git commit -q --allow-empty -m m; \
                 git commit -q --allow-empty -m n; GIT_EDITOR='vim -u NONE' git rebase -i HEAD~1 </dev/tty; echo end",
        needs: &["git", "vim"],
        ..PAGES
    },
    Prompt { name: "vi", script: "vi -u NONE f </dev/tty; echo end", needs: &["vi"], ..PAGES },
    Prompt { name: "nano", script: "nano f </dev/tty >/dev/tty; echo end", needs: &["nano"], ..PAGES },
    Prompt { name: "top", script: "top </dev/tty; echo end", needs: &["top"], ..PAGES },
    Prompt { name: "dialog", script: "dialog --inputbox hi 10 40; echo end", needs: &["dialog"], ..PAGES },
    Prompt { name: "whiptail", script: "whiptail --yesno hi 10 40; echo end", needs: &["whiptail"], ..PAGES },
    Prompt { name: "fzf", script: "seq 1 9 | fzf; echo end", needs: &["fzf"], ..PAGES },
    // Below others, where a guard has to look for them.
    Prompt {
        name: "read below timeout",
        script: "timeout 60 sh -c 'read x </dev/tty'; echo $? end",
        out: "1 end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "read below two timeouts",
        script: "timeout 60 timeout 50 sh -c 'read x </dev/tty; read x </dev/tty'; echo $? end",
        out: "1 end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "less below timeout",
        script: "timeout 60 less /etc/services </dev/tty 2>/dev/tty >/dev/tty; echo $? end",
        needs: &["less"],
        out: "129 end",
        note: Names("less"),
        ..ASKS
    },
    Prompt { name: "vi below timeout", script: "timeout 60 vi -u NONE f </dev/tty; echo end", needs: &["vi"], ..ASKS },
    Prompt {
        name: "read in a group of its own",
        script: "python3 -c 'import subprocess; print(subprocess.run([\"sh\", \"-c\", \"read x </dev/tty\"], process_group=0).returncode, \"end\")'",
        needs: &["python3"],
        out: "1 end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "read in a group whose leader is gone",
        script: "set -m; sh -c '(sleep 0.2; read x </dev/tty; echo $? end >f) & exit'; until test -s f; do sleep 0.1; done; cat f",
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "read in a group whose leader is a zombie",
        script: "python3 -c 'import os, subprocess, time
subprocess.Popen([\"sh\", \"-c\", \"(sleep 0.2; read x </dev/tty; echo $? end >f) & exit\"], process_group=0)
while not os.path.exists(\"f\") or not open(\"f\").read(): time.sleep(0.1)'; cat f",
        needs: &["python3"],
        out: "1 end",
        ..ASKS
    },
    Prompt {
        name: "read beside one that prints",
        script: "(while sleep 0.1; do echo .; done) & timeout 60 sh -c 'read x </dev/tty'; kill $!; echo end",
        note: Names("sh"),
        ..ASKS
    },
    Prompt {
        name: "one that catches the stop and stops itself",
        script: "python3 -c 'import os, signal, termios, time
def stop(*_): time.sleep(0.01); os.kill(os.getpid(), signal.SIGSTOP)
signal.signal(signal.SIGTTOU, stop); f = os.open(\"/dev/tty\", os.O_RDWR)
try: termios.tcsetattr(f, termios.TCSANOW, termios.tcgetattr(f))
except termios.error: pass'; echo end",
        needs: &["python3"],
        note: Never,
        ..ASKS
    },
    // Who takes the foreground reads there, and does not stop.
    Prompt {
        name: "reads of a shell with job control",
        script: "zsh -fic 'cat </dev/tty; cat </dev/tty'; echo end",
        needs: &["zsh"],
        ..ASKS
    },
    Prompt {
        name: "reads in a foreground that was taken",
        script: "python3 -c 'import os, signal; signal.signal(signal.SIGTTOU, signal.SIG_IGN)
f = os.open(\"/dev/tty\", os.O_RDWR); os.tcsetpgrp(f, os.getpgrp()); print(os.read(f, 9), os.read(f, 9), \"end\")'",
        needs: &["python3"],
        out: "b'' b'' end",
        ..ASKS
    },
];

/// None of these asks for anything, though they touch the terminal.
const OTHERS: &[Prompt] = &[
    Prompt { name: "stty sane", script: "stty sane </dev/tty; sleep 3; echo $? end", out: "0 end", ..QUIET },
    Prompt { name: "stty tostop", script: "stty tostop </dev/tty; echo end; echo again", out: "end\nagain", ..QUIET },
    Prompt {
        name: "stty below timeout",
        script: "timeout 60 stty -echo </dev/tty; echo $? end",
        out: "0 end",
        ..QUIET
    },
    Prompt { name: "tput", script: "tput cols >f; tput clear; echo end", needs: &["tput"], ..QUIET },
    Prompt { name: "reset", script: "reset </dev/tty >f 2>&1; echo $? end", needs: &["reset"], out: "0 end", ..QUIET },
    Prompt { name: "a job of bash -ic", script: "bash --norc -ic 'sleep 1; echo end' </dev/tty", note: May, ..QUIET },
    Prompt { name: "a job of zsh -ic", script: "zsh -fic 'sleep 1; echo end'", needs: &["zsh"], ..QUIET },
    Prompt { name: "jobs", script: "set -m; sleep 0.8 & sleep 0.1; wait; echo $? end", out: "0 end", ..QUIET },
    Prompt {
        name: "watch -g",
        script: "watch -g -n 0.2 date >f; echo $? end",
        needs: &["watch"],
        out: "0 end",
        ..QUIET
    },
    Prompt {
        name: "watch below timeout",
        script: "timeout 2 watch -n 0.5 date >f; echo $? end",
        needs: &["watch"],
        out: "124 end",
        ..QUIET
    },
    Prompt { name: "top -b", script: "top -b -n 1 >f; echo $? end", needs: &["top"], out: "0 end", ..QUIET },
    Prompt { name: "tmux attach", script: "tmux -L $$ attach; echo $? end", needs: &["tmux"], out: "1 end", ..QUIET },
    Prompt { name: "screen", script: "screen; echo $? end", needs: &["screen"], out: "1 end", ..QUIET },
    Prompt {
        name: "ssh to nobody",
        script: "ssh -p 1 127.0.0.1 true; echo $? end",
        needs: &["ssh"],
        out: "255 end",
        ..QUIET
    },
    Prompt {
        name: "read in a session without a terminal",
        script: "setsid -w sh -c 'read x </dev/tty'; echo $? end",
        out: "2 end",
        ..QUIET
    },
    Prompt {
        name: "a background job of another terminal",
        script: "script -qc \"bash --norc -ic 'cat & sleep 2; jobs; kill %1'\" /dev/null; echo end",
        needs: &["script"],
        out: "Stopped",
        ..QUIET
    },
    Prompt {
        name: "a job that stopped itself",
        script: "bash -c 'set -m; sh -c \"kill -STOP \\$\\$; echo on\" & sleep 2; jobs; kill -KILL %1'; echo end",
        out: "Stopped",
        ..QUIET
    },
];

/// A server that wants a password of everybody; gives its port.
fn locked_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is to be had");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut request = [0; 4096];
            _ = client.read(&mut request);
            _ = client.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    port
}

#[test]
fn prompts_end_and_others_run_on() {
    let locked = locked_server();
    let (wrong, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    for user in users() {
        let bench = Bench::new(user);
        let Some(host) = &bench.host else { return };
        // What another user changes does not depend on the way.
        let ways = if user.is_none() { &WAYS[..] } else { &WAYS[..1] };
        let table = || READERS.iter().chain(OTHERS).filter(|p| p.needs.iter().all(|program| programs::has(program)));
        let runs: Vec<(&Prompt, Way)> = ways.iter().flat_map(|&way| table().map(move |prompt| (prompt, way))).collect();
        assert!(runs.len() >= 30 * ways.len(), "too few programs are installed");
        next.store(0, Relaxed);
        let work = || {
            while let Some((prompt, way)) = runs.get(next.fetch_add(1, Relaxed)) {
                let fault = prompt.fault(host, *way, locked);
                let tell = |text| format!("{} ({way:?}, user {user:?}) {text}", prompt.name);
                wrong.lock().expect("no run panics").extend(fault.map(tell));
            }
        };
        std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    }
    let wrong = wrong.into_inner().expect("no run panics");
    assert!(wrong.is_empty(), "{} prompts do not end as they should:\n{}", wrong.len(), wrong.join("\n"));
}

impl Prompt {
    /// The call, in a directory of its own.
    fn call(&self, host: &Host, way: Way, locked: u16) -> Call {
        let script = format!("cd $(mktemp -d -p $HOME) || exit; {}", self.script);
        let mode = if way == Way::Pipes { "REXEC_TTY=never" } else { "REXEC_SANITIZE=strip" };
        let output = if way == Way::OneTerminal { Output::OnePipe } else { Output::Apart };
        Call { output, ..host.call(&script).env(mode).env(&format!("LOCKED_PORT={locked}")) }
    }

    fn fault(&self, host: &Host, way: Way, locked: u16) -> Option<String> {
        let call = self.call(host, way, locked);
        let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
        let Some(seen) = calling.finish(HANG) else { return Some(format!("hangs: {:#?}", host.tree())) };
        let notes = notes(&seen);
        let is_told = match self.note {
            Names(program) => notes == [program],
            May => notes.len() <= 1,
            Never => notes.is_empty(),
        };
        let is_hung_up = self.hangs_up && seen.code() == 129;
        let is_right = is_hung_up || (seen.code() == 0 && seen.out().contains(self.out));
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
