//! What reads a shell's output behind it, and writes a moment after the shell's end: process substitutions and other
//! readers in the background.

use crate::support::call::{Input, Outcome, Target};
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::programs;
use crate::support::waiting::PATIENCE;

/// A busy machine may take the time that a command is given away from it.
const TRIES: usize = 4;

/// A shell's output and what it needs.
type Member = (&'static str, &'static str);

const QUICK: [Member; 2] = [
    ("", "exec > >(sleep .35; cat); echo one; exit 3"),
    ("", "exec 2> >(while read line; do sleep .35; echo \"[$line]\" >&2; done); echo one >&2; kill $$"),
];

const MEMBERS: [Member; 13] = [
    ("", "exec > >(sleep .35; cat); seq 1 5000; exec sh -c 'echo last; exit 4'"),
    ("", "rm -f p; mkfifo p; { while read line; do sleep .35; echo \"[$line]\"; done; } <p & exec >p; echo one"),
    ("", "{ echo one; } | { sleep .35; cat; } & exit 5"),
    ("", "tee >(sleep .35; sort -r) >/dev/null < <(seq 1 9)"),
    ("", "exec > >( (sleep .35; cat) | sed s/o/0/ ); echo one"),
    ("", "exec > >(x=$(cat); sleep .35; echo \"$x\"); echo one"),
    ("", "bash -c 'exec > >(sleep .35; cat); echo inner; exit 2'; echo outer $?"),
    ("", "set -m; exec > >(sleep .35; cat); echo one"),
    ("", "exec > >(trap '' PIPE TERM; setsid sh -c 'sleep .35; cat'); echo one; kill -KILL $$"),
    ("", "exec > >(sleep .35; cat) 2>&1; echo one; echo two >&2; false"),
    ("zsh", "zsh -fc 'exec > >(sleep .35; cat); echo one; exit 3'"),
    (
        "python3",
        "python3 -c 'import os, subprocess
filter = subprocess.Popen(\"sleep .35; cat\", shell=True, stdin=subprocess.PIPE)
os.write(filter.stdin.fileno(), b\"one\\n\")
os._exit(3)'",
    ),
    (
        "node",
        "node -e 'const out = { stdio: [\"pipe\", \"inherit\", \"inherit\"] };
const filter = require(\"child_process\").spawn(\"sh\", [\"-c\", \"sleep .35; cat\"], out);
filter.stdin.write(\"one\\n\", () => process.exit(3));'",
    ),
];

fn as_the_real_shell(setup: Setup, members: &[Member]) {
    let host = Host::with(setup);
    for (_, script) in members.iter().filter(|(needs, _)| needs.is_empty() || programs::has(needs)) {
        let run =
            |target| told(&host.call(script).start(target).expect("it starts").finish(PATIENCE).expect("it ends"));
        let shim = host.socket();
        let theirs = run(if setup.tty == "always" { Target::RealOnTerminal } else { Target::Real });
        let is_same = (0..TRIES).any(|_| run(Target::Shim(&shim)) == theirs);
        assert!(is_same, "{script}: {theirs:?}, and with rexec {:?}", run(Target::Shim(&shim)));
    }
    host.finish();
}

fn told(seen: &Outcome) -> (i32, String, String) {
    (seen.code(), seen.out(), seen.err())
}

#[test]
fn a_filter_behind_the_shell_that_is_slow_loses_nothing() {
    as_the_real_shell(MIRROR, &QUICK);
}

#[test]
#[ignore = "long: each of the filters is slow, and on a terminal once more"]
fn filters_of_every_kind_lose_nothing() {
    as_the_real_shell(MIRROR, &MEMBERS);
    as_the_real_shell(PLAIN, &QUICK[..1]);
}

/// They write too late to be waited for, and hold the command no longer than their silence.
const SERVERS: [(Input, &str); 6] = [
    (Input::Null, "(sleep .7; echo late) & echo now"),
    (Input::Null, "sleep .7 | { cat; echo late; } & echo now"),
    (Input::Null, "exec > >(cat); (sleep .7; echo late) & echo now"),
    (Input::Null, "(while :; do :; done) >/dev/null & (sleep .7; echo late; kill $!) & echo now"),
    (Input::Data(b"unread"), "(sleep .7; echo late) <&0 & echo now"),
    (Input::Data(b""), "(sleep .7; echo late) <&0 & echo now"),
];

#[test]
#[ignore = "long: each of the servers is slow"]
fn what_the_shell_does_not_feed_holds_no_command() {
    let host = Host::with(MIRROR);
    for (input, script) in SERVERS {
        let is_let_go = (0..TRIES).any(|_| {
            let mut call = host.call(script);
            call.input = input;
            let seen = call.run(Target::Shim(&host.socket()));
            (seen.out().as_str(), seen.err().as_str()) == ("now\n", "")
        });
        assert!(is_let_go, "{script}");
    }
    host.finish();
}

/// Nobody can hold a command for long, and who loses output learns of it.
#[test]
fn a_filter_that_takes_long_is_not_waited_for() {
    let host = Host::with(MIRROR);
    let seen = host.call("exec > >(sleep 2; cat); echo one; exit 3").run(Target::Shim(&host.socket()));
    let said = "rexec: a filter behind the ended shell is still at work; what it writes from now on is lost\n";
    assert_eq!((seen.code(), seen.out().as_str(), seen.err().as_str()), (3, "", said), "{seen:?}");
}
