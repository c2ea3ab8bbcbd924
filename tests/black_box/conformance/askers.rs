//! Programs that take an answer from standard input where there is no terminal, and would ask at one: with an answer piped
//! or redirected into them, or behind their caller's own input, all is as with the real shell. Where nothing is fed, they
//! find a terminal, and a person's answer.
//!
//! The real shell has no controlling terminal here, as below an agent.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::json;

use super::prompts::{HANG, describe};
use crate::prompts::waits;
use crate::support::call::{Call, Calling, Input, Outcome, Target};
use crate::support::crowd::{answer, ask_in_json};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::waiting::wait_until;

/// A host where somebody answers, if anything asks. The wait is longer than any test's patience.
const ATTENDED: Setup = Setup { flags: &["--prompts", "ask", "--prompt-wait", "300"], ..MIRROR };

/// A program that asks.
struct Asker {
    name: &'static str,
    needs: &'static [&'static str],
    /// What is there before it.
    before: &'static str,
    /// The program itself. It is what is fed.
    asks: &'static str,
    /// Shows what it has made of the answer. Never part of what is fed.
    shows: &'static str,
}

const ASKERS: &[Asker] = &[
    Asker {
        name: "a new key",
        needs: &["ssh-keygen"],
        before: "",
        asks: "ssh-keygen -q -t ed25519 -f k >/dev/null",
        shows: "ssh-keygen -y -P '' -f k >/dev/null 2>&1 && echo unencrypted; ssh-keygen -y -P 'long pass' -f k >/dev/null 2>&1 && echo encrypted",
    },
    Asker {
        name: "a key's passphrase",
        needs: &["ssh-keygen"],
        before: "ssh-keygen -q -t ed25519 -N 'long pass' -C c -f k",
        asks: "ssh-keygen -y -f k | wc -c",
        shows: "",
    },
    Asker {
        name: "openssl enc",
        needs: &["openssl"],
        before: "echo text >plain",
        asks: "openssl enc -aes-128-cbc -pbkdf2 -in plain -out hidden",
        shows: "openssl enc -d -aes-128-cbc -pbkdf2 -pass 'pass:long pass' -in hidden 2>/dev/null",
    },
    Asker { name: "openssl passwd", needs: &["openssl"], before: "", asks: "openssl passwd -1 -salt salt", shows: "" },
    Asker {
        name: "getpass",
        needs: &["python3"],
        before: "",
        asks: "python3 -c 'import getpass; print(repr(getpass.getpass()))' 2>/dev/null",
        shows: "",
    },
    Asker {
        name: "an installer",
        needs: &[],
        before: "echo 'if (: </dev/tty) 2>/dev/null; then echo interactive; else read a; echo \"batch $a\"; fi' >setup",
        asks: "sh setup",
        shows: "",
    },
    Asker {
        name: "a script with a key in it",
        needs: &["ssh-keygen"],
        before: "echo 'ssh-keygen -q -t ed25519 -f k >/dev/null' >mk",
        asks: "sh ./mk",
        shows: "ssh-keygen -y -P 'long pass' -f k >/dev/null 2>&1 && echo encrypted",
    },
    Asker { name: "zip", needs: &["zip"], before: "echo text >plain", asks: "zip -qe o.zip plain", shows: "ls" },
    Asker {
        name: "unzip",
        needs: &["zip", "unzip"],
        before: "echo text >plain; zip -qP 'long pass' o.zip plain; rm plain",
        asks: "unzip -o o.zip",
        shows: "ls",
    },
    Asker { name: "psql", needs: &["psql"], before: "", asks: "psql -W -h 127.0.0.1 -p 1", shows: "" },
    Asker {
        name: "gpg",
        needs: &["gpg"],
        before: "mkdir -m 700 g; export GNUPGHOME=$PWD/g; echo text >plain",
        asks: "sh -c 'gpg -q --pinentry-mode loopback --batch --passphrase-fd 0 -o o -c plain'",
        shows: "gpg -q --batch --pinentry-mode loopback --passphrase 'long pass' -d o; gpgconf --kill all",
    },
    Asker { name: "rm -i", needs: &[], before: "touch f", asks: "rm -i f", shows: "ls" },
    Asker { name: "read", needs: &[], before: "", asks: "sh -c 'read x; echo $x'", shows: "" },
];

/// How an answer gets to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    Pipe,
    HereString,
    /// A here-document that a pipe has no room for.
    LongDocument,
    Null,
    Yes,
    /// A writer that begins only after a while.
    LateWriter,
    /// A last line without its end.
    Unended,
    /// The caller's own input, a pipe.
    Callers,
    /// The caller's own input, a file.
    CallersFile,
    /// Around a group.
    Group,
}

const FEEDS: [Feed; 10] = [
    Feed::Pipe,
    Feed::HereString,
    Feed::LongDocument,
    Feed::Null,
    Feed::Yes,
    Feed::LateWriter,
    Feed::Unended,
    Feed::Callers,
    Feed::CallersFile,
    Feed::Group,
];

const ANSWERS: &[u8] = b"long pass\nlong pass\n";

impl Asker {
    fn script(&self, feed: Feed) -> String {
        let asks = self.asks;
        let fed = match feed {
            Feed::Pipe => format!("printf 'long pass\\nlong pass\\n' | {asks}"),
            Feed::HereString => format!("{asks} <<< $'long pass\\nlong pass'"),
            Feed::LongDocument => {
                format!("{asks} <<EOF\nlong pass\nlong pass\n{}\nEOF", "a line that nobody reads\n".repeat(3_000))
            }
            Feed::Null => format!("{asks} </dev/null"),
            Feed::Yes => format!("yes 'long pass' | {asks}"),
            Feed::LateWriter => format!("(sleep 0.3; printf 'long pass\\nlong pass\\n') | {asks}"),
            Feed::Unended => format!("printf 'long pass\\nlong pass' | {asks}"),
            Feed::Callers | Feed::CallersFile => asks.to_owned(),
            Feed::Group => format!("{{ {asks}\n}} < <(printf 'long pass\\nlong pass\\n')"),
        };
        // Here-strings redirect the program that stands last, where there are two.
        format!("{}\n{fed}\necho \"code $?\"\n{}", self.before, self.shows)
    }

    fn fits(&self, feed: Feed) -> bool {
        let ends_in_filter = self.asks.contains('|');
        !(ends_in_filter && matches!(feed, Feed::HereString | Feed::LongDocument | Feed::Null))
            && self.needs.iter().all(|program| programs::has(program))
    }

    fn call(&self, host: &Host, feed: Feed) -> Call {
        let input = match feed {
            Feed::Callers => Input::Data(ANSWERS),
            Feed::CallersFile => Input::File(ANSWERS),
            _ => Input::Null,
        };
        let script = format!("cd $(mktemp -d -p $HOME) || exit\n{}", self.script(feed));
        Call { input, ..host.call(&script) }
    }

    fn fault(&self, host: &Host, feed: Feed) -> Option<String> {
        let finish = |target| {
            let mut calling = self.call(host, feed).start(target).expect("the shell starts");
            calling.finish(HANG).ok_or_else(|| format!("hangs with {target:?}: {:#?}", calling.warden.tree()))
        };
        let (theirs, ours) = match (finish(Target::Real), finish(Target::Shim(&host.socket()))) {
            (Ok(theirs), Ok(ours)) => (theirs, ours),
            (Err(fault), _) | (_, Err(fault)) => return Some(fault),
        };
        (comparable(&theirs) != comparable(&ours))
            .then(|| format!("real: {}\nshim: {}", describe(&theirs), describe(&ours)))
    }
}

/// What must be the same: not the names of temporary directories, nor the numbers of processes.
fn comparable(seen: &Outcome) -> (i32, String, String) {
    let without_digits = |text: String| text.lines().map(without_names).collect::<Vec<_>>().join("\n");
    (seen.code(), without_digits(seen.out()), without_digits(seen.err()))
}

fn without_names(line: &str) -> String {
    // openssl(1) names a thread.
    let is_name = |word: &str| word.contains("tmp.") || word.contains(":error:");
    let words = line.split(' ').map(|word| if is_name(word) { "NAME" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn some_that_are_fed_take_their_answers_as_with_the_real_shell() {
    check(ASKERS.iter().filter(|asker| asker.needs.is_empty()));
}

#[test]
#[ignore = "long: every program, fed in ten ways"]
fn what_is_fed_takes_its_answers_as_with_the_real_shell() {
    assert!(check(ASKERS.iter()) >= 50, "too few programs are installed");
}

/// Runs each program as it is fed with both shells; returns how many there were.
fn check(askers: impl Iterator<Item = &'static Asker>) -> usize {
    let host = Host::with(ATTENDED);
    let cases: Vec<_> = askers.flat_map(|asker| FEEDS.map(|feed| (asker, feed))).collect();
    let cases: Vec<_> = cases.into_iter().filter(|(asker, feed)| asker.fits(*feed)).collect();
    let (wrong, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let work = || {
        while let Some((asker, feed)) = cases.get(next.fetch_add(1, Relaxed)) {
            let fault = asker.fault(&host, *feed);
            let told = fault.map(|fault| format!("{} by {feed:?}\n{fault}", asker.name));
            wrong.lock().expect("no case panics").extend(told);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().expect("no case panics");
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    cases.len()
}

fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

fn types(host: &Host, seq: u64, text: &str) {
    waits(host, seq);
    let said = answer(ask_in_json(host, &json!({"action": "send", "seq": seq, "text": text})));
    assert!(said["error"].is_null(), "{said}");
}

#[test]
fn what_is_not_fed_takes_a_persons_answer() {
    if !programs::has("ssh-keygen") {
        return;
    }
    let host = Host::with(ATTENDED);
    let mut call = start(
        &host,
        "ssh-keygen -q -t ed25519 -f k >/dev/null; ssh-keygen -y -P 'typed pass' -f k >/dev/null && echo encrypted",
    );
    types(&host, 1, "typed pass\n");
    wait_until("it asks again", || waits(&host, 1)["prompt"] == "Enter same passphrase again:");
    types(&host, 1, "typed pass\n");
    let seen = call.finish(HANG).expect("it ends");
    assert!(seen.out().contains("encrypted"), "{seen:?}");
}

/// Stand-ins for programs that ask at the terminal alone, and read their standard input as data.
const ASKS_ELSEWHERE: &str = r#"mkdir bin
cat >bin/ssh <<'END'
#!/bin/sh
printf 'password: ' >/dev/tty
read -r word </dev/tty
echo "$word" >asked
shift
exec "$@"
END
sed s/shift/:/ bin/ssh >bin/sudo
chmod +x bin/ssh bin/sudo
PATH=$PWD/bin:$PATH
"#;

#[test]
fn data_passes_whole_through_what_asks_at_the_terminal() {
    for (at, command) in
        ["data | ssh host cat >out", "data | sudo tee out >/dev/null", "data >in; ssh host cat <in >out"]
            .into_iter()
            .enumerate()
    {
        let host = Host::with(ATTENDED);
        let script = format!(
            "{ASKS_ELSEWHERE}data() {{ seq 1 50000; printf 'no end'; }}\n{command}\ndata | cmp - out && cat asked"
        );
        // For root sudo never asks, so that one is looked through.
        if at == 1 && nix::unistd::getuid().is_root() {
            continue;
        }
        let mut call = start(&host, &script);
        types(&host, 1, "typed word\n");
        let seen = call.finish(HANG).expect("it ends");
        assert_eq!((seen.code(), seen.out().as_str()), (0, "typed word\n"), "{command}: {seen:?}");
    }
}

#[test]
fn where_nobody_can_answer_there_is_no_terminal() {
    let script = "(: </dev/tty) 2>&1; ps -o tty= -p $$";
    for (flags, env) in [
        (&[][..], "A=b"),
        (&["--prompts", "fail"][..], "A=b"),
        (&["--prompts", "ask", "--tty", "never"][..], "A=b"),
        (&["--prompts", "ask"][..], "REXEC_TTY=never"),
    ] {
        let host = Host::with(Setup { flags, ..MIRROR });
        let real = host.call(script).env(env).run(Target::Real);
        let ours = host.call(script).env(env).run(Target::Shim(&host.socket()));
        assert_eq!(real.out(), ours.out(), "{flags:?} {env}");
        assert!(ours.out().contains("No such device or address"), "{flags:?} {env}: {ours:?}");
    }
}

/// The terminal is locked as soon as an answer comes, although it was there when the command began.
#[test]
fn an_answer_that_comes_a_moment_later_is_read() {
    let host = Host::with(ATTENDED);
    let asks = "touch began; while (: </dev/tty) 2>/dev/null; do sleep 0.01; done; read x; echo \"got $x\"";
    let shim = Target::Shim(&host.socket()).program("bash");
    let script = format!("{{ until test -e began; do sleep 0.01; done; echo late; }} | {} -c '{asks}'", shim.display());
    let call = host.call(&script).env(&format!("REXEC_SOCKET={}", host.socket().display()));
    let seen = call.start(Target::Real).expect("bash starts").finish(HANG).expect("it finds no terminal any more");
    assert_eq!((seen.code(), seen.out().as_str()), (0, "got late\n"), "{seen:?}");
}

/// Shells that would stop a program that asks, and go on behind it.
const JOB_CONTROLLERS: &[&str] = &[
    "set -m; bash --norc -ic 'echo hi' 2>/dev/null; echo rc=$?",
    "set -m; sh -c 'read x </dev/tty; echo got $x' 2>&1; echo rc=$?",
    "set -o monitor; sh -c '(: </dev/tty) && echo yes' 2>&1; echo rc=$?",
    "set -em; stty -echo </dev/tty 2>/dev/null || echo rc=$?",
    "bash -mc 'sh -c \"read x </dev/tty\" 2>/dev/null; echo rc=$?'; echo end",
    "eval 'set -m'; sh -c 'read x </dev/tty' 2>/dev/null; echo rc=$?",
    "f() { set -m; }; f; sh -c 'read x </dev/tty' 2>/dev/null; echo rc=$?",
    "set -m; sleep 0.1 & wait $!; echo rc=$?",
    "bash --norc -ic 'set -m; (: </dev/tty) 2>/dev/null || echo none; sleep 0.1 & wait; echo waited' 2>/dev/null",
];

#[test]
fn a_shell_that_turns_on_job_control_finds_no_terminal_although_somebody_could_answer() {
    let host = Host::with(ATTENDED);
    let asks = "sh -c 'read x </dev/tty' 2>/dev/null; echo rc=$?";
    let calls = JOB_CONTROLLERS.iter().map(|script| vec!["-c", script]);
    for words in calls.chain([vec!["-mc", asks], vec!["-o", "monitor", "-c", asks]]) {
        let [theirs, ours] = [Target::Real, Target::Shim(&host.socket())].map(|target| {
            let mut call = host.call("");
            call.argv = ["bash"].iter().chain(&words).map(|word| word.as_bytes().to_vec()).collect();
            let mut calling = call.start(target).expect("it starts");
            calling.finish(HANG).unwrap_or_else(|| panic!("{words:?} hangs with {target:?}"))
        });
        assert_eq!((theirs.code(), theirs.out()), (ours.code(), ours.out()), "{words:?}\n{}", describe(&ours));
    }
}

/// As the manual says.
#[test]
fn a_script_that_turns_on_job_control_inside_stops_what_asks() {
    let host = Host::with(ATTENDED);
    let script = "printf 'set -m\nsh -c \"read x </dev/tty\"\necho rc=$?\n' >inside; bash inside 2>/dev/null";
    let seen = start(&host, script).finish(HANG).expect("it ends");
    assert!(seen.out().contains("rc=149\n"), "{seen:?}");
}

/// Somebody who types from another terminal is there, too.
#[test]
fn who_answers_from_elsewhere_can_be_asked() {
    let host = Host::with(Setup { flags: &["--prompts", "auto"], ..MIRROR });
    let can_ask = || host.run("(: </dev/tty) 2>/dev/null && echo yes").out() == "yes\n";
    assert!(!can_ask(), "nobody is there");
    let call = host.call("while test ! -e done; do sleep 0.05; done").env("REXEC_TTY=always");
    let mut call = call.start(Target::Shim(&host.socket())).expect("the shim starts");
    let send = json!({"action": "send", "seq": 2, "text": "word\n", "force": true});
    wait_until("it runs", || answer(ask_in_json(&host, &send))["bytes"] == 5);
    assert!(can_ask(), "somebody is");
    std::fs::write(host.home.join("done"), "").expect("a file");
    call.finish(HANG).expect("it ends");
}

/// Claude Code redirects each command from /dev/null, which is no answer to it.
#[test]
fn what_an_agents_wrapper_redirects_feeds_nothing() {
    for (command, asks) in [("read x </dev/tty; echo \"got $x\"", true), ("echo piped | sh ./asks", false)] {
        let host = Host::with(ATTENDED);
        std::fs::write(host.home.join("asks"), "(: </dev/tty) 2>/dev/null || read x; echo \"got $x\"\n")
            .expect("a file");
        let home = host.home.path().display();
        let text = format!(
            "source {home}/.claude/shell-snapshots/snapshot-bash-17-a1.sh 2>/dev/null || true && eval '{command}' \
             < /dev/null && pwd -P >| {home}/claude-1a2b-cwd"
        );
        let call = host.call(&text).env("CLAUDECODE=1").env("AI_AGENT=claude-code_2-1-329_agent");
        let mut call = call.start(Target::Shim(&host.socket())).expect("the shim starts");
        if asks {
            types(&host, 1, "piped\n");
        }
        let seen = call.finish(HANG).expect("it ends");
        assert_eq!((seen.code(), seen.out().as_str()), (0, "got piped\n"), "{command}: {seen:?}");
    }
}
