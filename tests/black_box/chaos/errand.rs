//! What the callers send: commands whose outcome is known because the real shell produced it, and commands that run
//! until they are killed.

use std::fs;
use std::time::Duration;

use crate::support::call::{Call, Input, Outcome, Output, Target};
use crate::support::dice::Dice;
use crate::support::strip::strip;
use crate::support::temp::{Files, TempDir};
use crate::support::waiting::{self, PATIENCE};

/// How output is treated, and by which oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Byte for byte as the shell on pipes.
    Pipe,
    /// Byte for byte as the shell on a terminal.
    Raw,
    /// As the stripped output of the shell on a terminal.
    Strip,
}

impl Mode {
    fn entries(self) -> [&'static str; 2] {
        match self {
            Self::Pipe => ["REXEC_TTY=never", "REXEC_SANITIZE=raw"],
            Self::Raw => ["REXEC_TTY=always", "REXEC_SANITIZE=raw"],
            Self::Strip => ["REXEC_TTY=always", "REXEC_SANITIZE=strip"],
        }
    }
}

/// Where the right outcome is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The real shell is asked.
    Real,
    /// Code and standard output; there the real shell would wait for ever, or write for ever.
    Known(i32, &'static [u8]),
    /// Nothing: it does not end.
    Endless,
}

#[derive(Debug)]
pub(crate) struct Errand {
    script: String,
    mode: Mode,
    input: Input,
    output: Output,
    expected: Expected,
    /// A file that something left in the background writes after the shell's exit.
    later: bool,
}

/// What came of an errand: the outcome, and the files it left.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) outcome: Outcome,
    files: Files,
}

const LATER: &str = "later";
/// The most that a reader takes of a command that writes for ever.
const HEAD: [[u8; 2]; 50] = [*b"y\n"; 50];

/// Commands that leave something in the background, which writes the file `later`.
const LEAVERS: &[&str] = &[
    "(sleep 0.2; echo late > later) >/dev/null 2>&1 & echo left; exit 4",
    "nohup sh -c 'sleep 0.2; echo late > later' >/dev/null 2>&1 & echo left",
    "setsid sh -c 'sleep 0.2; echo daemon > later' </dev/null >/dev/null 2>&1 & echo left",
    "(setsid sh -c 'sleep 0.3; echo daemon > later' >/dev/null 2>&1 &); echo left; exit 9",
    "{ sleep 0.1; echo late > later; } >/dev/null 2>&1 & disown; echo left",
];

/// A command that closes its caller's pipes long before it ends.
const LETTING_GO: &str = "exec >log 2>&1; echo start; sleep 0.05; echo done; exit 6";

/// Commands that always do the same.
const STEADY: &[&str] = &[
    "true",
    "echo out; echo err >&2; exit 3",
    "for i in 1 2 3 4 5 6; do echo o$i; echo e$i >&2; done",
    "for i in 1 2 3 4; do echo $i; sleep 0.03; done",
    "for i in 1 2 3; do printf %s $i; sleep 0.02; done; exit 1",
    "mkdir -p a/b; cd a/b; pwd; echo deep > file; cd ..; cat b/file; cd /; pwd",
    "for i in 1 2 3; do echo $i > f$i; done; chmod 600 f1; ln f1 f4; rm f2; ls f1 f3 f4 | cat",
    "umask 027; echo x > made; mkdir -m 700 dir; echo y > dir/made; umask",
    LETTING_GO,
    "printf '\\377\\376\\200abc\\n\\303\\251\\n'; printf '\\377\\n' >&2",
    "printf '\\033[31mred\\033[0m\\n10%%\\r20%%\\r\\n\\033]0;title\\007end\\n'",
    "yes | head -n 2000 | sort -u; echo ${PIPESTATUS[*]}",
    "cat <<'END'\none\ntwo\nEND\ncat <<<three",
    "diff <(seq 1 20) <(seq 1 21); echo $?",
    "trap 'echo bye' EXIT; exit 7",
    "trap 'echo got; exit 8' USR1; kill -USR1 $$; echo missed",
    "kill -TERM $$; sleep 1",
    "kill -KILL $$; sleep 1",
    "{ sh -c 'kill -SEGV $$'; } 2>/dev/null; echo $?",
    "for i in 1 2 3 4 5 6 7 8; do /bin/true; done; /bin/echo through",
    "no-such-command-anywhere; echo $?",
    "cd /no/such/place",
    "set -e; false; echo unreachable",
    "wait & wait; sleep 0.02 & wait $!; echo $?",
    "echo \"$0|$#|$CHAOS|${#PATH}\"; ulimit -n; umask",
];

/// Commands that read their input.
const READERS: &[&str] = &[
    "cat",
    "cksum",
    "read -r a b; echo \"$b $a\"; cat | wc -c",
    "head -c 10; echo; exit 2",
    "true",
    "wc -l; echo end",
];

/// Commands that never end; they say so when they are far enough to be killed.
const ENDLESS: &[&str] = &[
    "sleep 1000 & setsid sleep 1000 & sleep 1000 | sleep 1000 & echo ready; wait",
    "trap '' TERM HUP INT; (trap '' TERM HUP; sleep 1000; :) & echo ready; while :; do sleep 1; done",
    "set -m; sleep 1000 & sleep 1000 & echo ready; wait",
    "(setsid sh -c 'trap \"\" HUP TERM; sleep 1000; :' >/dev/null 2>&1 &); echo ready; exec sleep 1000",
    "echo ready; while :; do echo noise; done",
    "echo ready; while :; do echo noise >&2; sleep 0.01; done",
    "env -i /usr/bin/setsid --fork --wait /bin/sleep 1000 & echo ready; wait",
    "f() { setsid sh -c 'sleep 0.05; :' </dev/null >/dev/null 2>&1; f & }; f & echo ready; sleep 1000",
    "sleep 1000 & kill -STOP $!; echo ready; kill -STOP $$; sleep 1000",
    "echo ready; read x </dev/tty; exec sleep 1000",
];

impl Errand {
    /// A command that ends by itself.
    pub(crate) fn roll(dice: &mut Dice) -> Self {
        let mode = [Mode::Pipe, Mode::Raw, Mode::Strip][dice.below(3)];
        let output = [Output::Apart, Output::Apart, Output::OneFile, Output::OnePipe][dice.below(4)];
        let (input, expected) = (Input::Null, Expected::Real);
        let plain = |script: String| Self { script, mode, input, output, expected, later: false };
        let one_of = |list: &[&str], dice: &mut Dice| plain(list[dice.below(list.len())].to_owned());
        match dice.below(20) {
            0 | 1 => plain(format!("exit {}", dice.below(256))),
            2 => {
                let count = dice.below(400);
                let text = String::from_utf8(dice.bytes(count, b'(', b'~')).expect("printable");
                plain(format!("printf '%s\\n' '{text}'; exit {}", dice.below(256)))
            }
            3 => plain(format!("seq {} {}", dice.below(100), dice.below(12_000))),
            4 => plain(format!("head -c {} /dev/zero | tr '\\0' x; echo end", dice.below(300_000))),
            5 => plain(format!("seq 1 {} >&2; echo out", dice.below(4_000))),
            6 | 7 => {
                let inputs = [
                    Input::Data(b"some words\nand more\n"),
                    Input::File(b"\xff\x00 not text\n and text"),
                    Input::Pattern(100_000),
                    Input::Data(b""),
                    Input::Closed,
                    Input::Silent,
                ];
                match inputs[dice.below(inputs.len())] {
                    // A program that reads these would fail with a message of its own, or wait for ever.
                    input @ (Input::Closed | Input::Silent) => Self { input, ..plain("echo x; exit 4".to_owned()) },
                    input => Self { input, ..one_of(READERS, dice) },
                }
            }
            8 | 9 => Self { later: true, ..one_of(LEAVERS, dice) },
            10 => Self {
                output: Output::Apart,
                expected: Expected::Known(9, b"rc=1\n"),
                ..plain("read x </dev/tty; echo rc=$?; exit 9".to_owned())
            },
            11 => Self {
                output: Output::Head(HEAD.as_flattened().len()),
                expected: Expected::Known(141, HEAD.as_flattened()),
                mode: if mode == Mode::Strip { Mode::Raw } else { mode },
                ..plain("yes".to_owned())
            },
            _ => one_of(STEADY, dice),
        }
    }

    /// A command that does not end by itself.
    pub(crate) fn endless(dice: &mut Dice) -> Self {
        let mode = [Mode::Pipe, Mode::Raw, Mode::Strip][dice.below(3)];
        let input = [Input::Null, Input::Silent][dice.below(2)];
        let script = ENDLESS[dice.below(ENDLESS.len())].to_owned();
        Self { script, mode, input, output: Output::Apart, expected: Expected::Endless, later: false }
    }

    /// The least of all commands.
    pub(crate) fn nothing() -> Self {
        let (input, output, expected) = (Input::Null, Output::Apart, Expected::Known(0, b""));
        Self { script: "true".to_owned(), mode: Mode::Strip, input, output, expected, later: false }
    }

    pub(crate) fn script(&self) -> &str {
        &self.script
    }

    /// The call; everything that it starts has the tag in its environment, and the journal knows it by that name.
    pub(crate) fn call(&self, home: &TempDir, tag: &str) -> Call {
        let call = Call { input: self.input, output: self.output, ..Call::bash(&self.script, home.path()) };
        let call = self.mode.entries().into_iter().fold(call, |call, entry| call.env(entry));
        call.env("CHAOS=yes").env(&format!("REXEC_WHOAMI={tag}")).env(&format!("TAG={tag}"))
    }

    /// Whether its caller can be told nothing any more while it still runs.
    pub(crate) fn lets_go(&self) -> bool {
        self.script == LETTING_GO
    }

    /// Waits for what the errand leaves in the background, if it is to come, and takes the files.
    pub(crate) fn seen(&self, outcome: Outcome, home: &TempDir, is_later_due: bool) -> Seen {
        if self.later && is_later_due {
            let path = home.join(LATER);
            waiting::until_true(PATIENCE, || fs::metadata(&path).is_ok_and(|data| data.len() > 0));
        }
        Seen { outcome, files: home.take_files() }
    }

    /// Says what is wrong with an outcome that nobody disturbed, or that was there before anybody did.
    pub(crate) fn fault(&self, ours: &Seen, home: &TempDir, is_later_due: bool) -> Option<String> {
        match self.expected {
            Expected::Real => {
                let target = if self.mode == Mode::Pipe { Target::Real } else { Target::RealOnTerminal };
                let mut calling = self.call(home, "real").start(target).expect("the shell starts");
                let Some(outcome) = calling.finish(PATIENCE) else {
                    return Some(format!("the real shell hangs: {:#?}", calling.warden.tree()));
                };
                let theirs = self.seen(outcome, home, is_later_due);
                self.difference(&theirs, ours, is_later_due)
            }
            Expected::Known(code, stdout) => {
                let (seen, err) = (&ours.outcome, ours.outcome.err());
                let is_right = seen.code() == code && seen.stdout == stdout;
                (!is_right).then(|| format!("code {}, {:?}, {err:?}, not code {code}", seen.code(), seen.out()))
            }
            Expected::Endless => Some(format!("it ended: {:?}", ours.outcome)),
        }
    }

    fn difference(&self, theirs: &Seen, ours: &Seen, is_later_due: bool) -> Option<String> {
        let (a, b) = (&theirs.outcome, &ours.outcome);
        if a.code() != b.code() {
            return Some(format!("code {:?}, not {:?}; {:?}", b.ended, a.ended, b.err()));
        }
        let clean = |bytes: &[u8]| if self.mode == Mode::Strip { strip(bytes) } else { bytes.to_vec() };
        for (what, a, b) in [("stdout", &a.stdout, &b.stdout), ("stderr", &a.stderr, &b.stderr)] {
            let (a, b) = (clean(a), clean(b));
            if a != b {
                let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
                let part = |bytes: &[u8]| bytes[same..bytes.len().min(same + 200)].escape_ascii().to_string();
                let (all, due) = (b.len(), a.len());
                return Some(format!("{what}: {all} bytes, not {due}, from {same}: {}, not {}", part(&b), part(&a)));
            }
        }
        let files = |seen: &Seen| {
            let mut files = seen.files.clone();
            files.retain(|name, _| is_later_due || name != LATER.as_bytes());
            files
        };
        (files(theirs) != files(ours)).then(|| format!("files {:?}, not {:?}", files(ours), files(theirs)))
    }
}

/// Long enough for every leftover of an errand to be over.
pub(crate) const LEFT_OVER: Duration = PATIENCE;
