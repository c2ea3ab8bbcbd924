//! Callers whose terminal is not on all three descriptors: a command that asks it for keys gets them, as with the real
//! shell, and no other reader of the same terminal loses any.

use std::path::Path;

use serde_json::json;

use super::interaction::Step::{Listens, Sees, Shows, Types};
use super::interaction::{self, Interaction, PLAIN, Same, TERMINAL};
use crate::support::crowd;
use crate::support::host::{Host, MIRROR};
use crate::support::temp::TempDir;
use crate::support::typist::Typist;
use crate::support::warden::Ended;

/// A script of the real shell, which runs `$SH`: the real shell again, or the shim.
pub(crate) fn started(script: &str, shell: &Path, env: &[String], home: &Path) -> Typist {
    let env: Vec<String> = env.iter().cloned().chain([format!("SH={}", shell.display())]).collect();
    Typist::start(Path::new("/bin/bash"), &["bash", "-c", script], &env, home, TERMINAL)
}

fn compare(table: &'static [Interaction]) {
    let host = Host::with(MIRROR);
    for case in interaction::possible(table) {
        let [theirs, ours] = interaction::shells(&host).map(|(shell, env)| {
            let home = TempDir::new(None);
            let mut typist = started(case.script, &shell, &env, home.path());
            interaction::perform(&mut typist, case.steps);
            let ended = typist.ends();
            assert_eq!(ended, case.ends, "{} by {}: {}", case.name, shell.display(), typist.screen());
            let modes = typist.terminal.modes();
            assert!(typist.has_its_modes(true), "{} by {}: {modes:?}", case.name, shell.display());
            match case.same {
                Same::Bytes => typist.screen(),
                Same::Screen => typist.drawn().state(),
                Same::Nothing => String::new(),
            }
        });
        assert!(theirs == ours, "{}\n{theirs}\n-- and by the shim --\n{ours}", case.name);
    }
}

const LESS: Interaction = Interaction { needs: &["less"], same: Same::Screen, ..PLAIN };

const ASKERS: &[Interaction] = &[
    Interaction {
        name: "a pager behind a pipe",
        script: "seq 1 1000 | LESS= $SH -c less; echo code $?",
        steps: &[Shows("23"), Types(b"/500\r"), Shows("500\n501"), Types(b"q"), Shows("code 0")],
        ..LESS
    },
    Interaction {
        name: "a pager behind a pipe that is stopped and continued",
        script: "set -m; seq 1 1000 | LESS= $SH -c less; echo stopped; sleep 0.3; fg; echo code $?",
        steps: &[
            Shows("23"),
            Listens("less"),
            Types(b"\x1a"),
            Sees("stopped\r\n"),
            Sees("1000 |"),
            Shows("23\n:"),
            Types(b"G"),
            Shows("(END)"),
            Types(b"q"),
            Shows("code 0"),
        ],
        same: Same::Nothing,
        ..LESS
    },
    Interaction {
        name: "a pager of a file, with nothing on standard input",
        script: "seq 1 1000 >f; LESS= $SH -c 'less f; echo code $?' </dev/null",
        steps: &[Shows("23"), Types(b"G"), Shows("(END)"), Types(b"q"), Shows("code 0")],
        ..LESS
    },
    Interaction {
        name: "an editor behind a pipe",
        script: "echo data | $SH -c 'vim -u NONE -N -n -; echo code $?'",
        steps: &[Shows("data"), Types(b"onew\x1b:w f\r:q\r"), Shows("code 0")],
        needs: &["vim"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        // An editor restores the modes before it ends, and sets its own ones whenever it is continued.
        name: "a program that restores the modes and sets its own when it is continued",
        script: "cat >keys <<'END'\n\
                 exec </dev/tty; old=$(stty -g); stty -icanon -echo; echo ready; read -r k; trap 'stty raw' CONT\n\
                 stty \"$old\"; for n in {1..3000}; do :; done; stty \"$old\"; echo got $k\nEND\n\
                 echo x | $SH -c 'bash keys; echo code $?'",
        steps: &[Sees("ready\r\n"), Types(b"k\r"), Sees("got k\r\n"), Sees("code 0\r\n")],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a question to the terminal",
        script: "echo x | $SH -c 'read -p \"well? \" v </dev/tty; read w; echo got $v and $w'",
        steps: &[Sees("well? "), Types(b"typed\r"), Sees("got typed and x\r\n")],
        // What is typed before the command asks for it is shown twice.
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "three questions, of which one is a password",
        script: "echo x | $SH -c 'exec 3</dev/tty; read -p \"a \" a <&3; read -sp \"b \" b <&3; echo; read -p \"c \" c <&3; echo $a$b$c'",
        steps: &[Sees("a "), Types(b"1\r"), Sees("b "), Types(b"2\r"), Sees("c "), Types(b"3\r"), Sees("123\r\n")],
        // What is typed before the command asks for it is shown twice.
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "output only",
        script: "seq 1 300 | $SH -c 'cat; echo end >&2'",
        steps: &[Sees("end\r\n")],
        ..PLAIN
    },
    Interaction {
        name: "^C while nothing is asked",
        script: "echo x | $SH -c 'echo begun; while :; do :; done'",
        steps: &[Sees("begun\r\n"), Types(b"\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "^C to a question",
        script: "echo x | $SH -c 'read -p \"well? \" v </dev/tty; echo never'",
        steps: &[Sees("well? "), Types(b"ab\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "two commands of one pipeline, of which the second is a pager",
        script: "$SH -c 'seq 1 1000' | LESS= $SH -c less; echo code $?",
        steps: &[Shows("23"), Types(b"G"), Shows("1000"), Types(b"q"), Shows("code 0")],
        ..LESS
    },
    Interaction {
        name: "two commands of one pipeline that ask one after the other",
        script: "$SH -c 'read -p \"one \" a; echo $a' | $SH -c 'read b; read -p \"two \" c </dev/tty; echo $b$c'",
        steps: &[Sees("one "), Types(b"1\r"), Sees("two "), Types(b"2\r"), Sees("12\r\n")],
        // What is typed before the command asks for it is shown twice.
        same: Same::Nothing,
        ..PLAIN
    },
];

/// Other readers of the same terminal, such as an agent's own interface.
const SHARED: &[Interaction] = &[
    Interaction {
        name: "a command that never asks takes no key",
        // What is typed while no read has switched the echo off would be shown.
        script: "modes=$(stty -g); stty -echo; \
                 $SH -c 'echo begun >&2; until [ -e go ]; do sleep 0.02; done; echo end >&2' </dev/null >f & \
                 for n in 1 2 3; do read -rsn1 k; echo got $k; done; touch go; wait; stty $modes",
        steps: &[
            Sees("begun\r\n"),
            Types(b"a"),
            Sees("got a"),
            Types(b"b"),
            Sees("got b"),
            Types(b"c"),
            Sees("got c"),
            Sees("end\r\n"),
        ],
        ..PLAIN
    },
    Interaction {
        name: "a command that has asked takes no key afterwards",
        script: "$SH -c 'read -p \"well? \" v </dev/tty; echo $v; touch asked; until [ -e go ]; do sleep 0.02; done' </dev/null & \
                 until [ -e asked ]; do sleep 0.1; done; \
                 for n in 1 2 3; do read -p 'mine? ' k; echo got $k; done; touch go; wait",
        steps: &[
            Sees("well? "),
            Types(b"x\r"),
            Sees("mine? "),
            Types(b"a\r"),
            Sees("got a"),
            Sees("mine? "),
            Types(b"b\r"),
            Sees("got b"),
            Sees("mine? "),
            Types(b"c\r"),
            Sees("got c"),
        ],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a command whose pager has ended takes no key afterwards",
        script: "seq 1 1000 >f; $SH -c 'LESS= less f; touch asked; until [ -e go ]; do sleep 0.02; done' </dev/null & \
                 until [ -e asked ]; do sleep 0.1; done; read -p 'mine? ' k; echo got $k; touch go; wait",
        steps: &[Shows("23"), Types(b"q"), Sees("mine? "), Types(b"a\r"), Sees("got a")],
        needs: &["less"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "two commands that ask at once get one line each, and the modes are left as they were",
        script: "for n in 1 2; do $SH -c 'read -p \"well? \" v </dev/tty; echo got $v' </dev/null & done; wait",
        steps: &[Sees("well? "), Sees("well? "), Types(b"x\r"), Sees("got x\r\n"), Types(b"y\r"), Sees("got y\r\n")],
        same: Same::Nothing,
        ..PLAIN
    },
];

#[test]
fn others_at_the_same_terminal_lose_no_key() {
    compare(SHARED);
}

#[test]
fn a_command_behind_a_pipe_asks_the_terminal_as_with_the_real_shell() {
    compare(ASKERS);
}

/// The caller counts the keys that its command has read. A key from elsewhere would upset that.
#[test]
fn a_command_at_its_callers_terminal_takes_keys_from_there_only() {
    let host = Host::with(MIRROR);
    let [_, (shim, env)] = interaction::shells(&host);
    let home = TempDir::new(None);
    let mut typist = started("$SH -c 'echo ready; read x; echo got $x'", &shim, &env, home.path());
    typist.sees("ready");
    let run = host.wait_for("its start", |journal| journal.of_type("start").next()?["seq"].as_u64());
    let request = json!({"id": 1, "method": "exec.write", "params": {"run": run, "text": "from elsewhere\n"}});
    let answer = crowd::answer(crowd::ask_in_json(&host, &request));
    assert!(
        answer["error"]["message"].as_str().is_some_and(|text| text.contains("on its caller's terminal")),
        "{answer}"
    );
    typist.types(b"mine\r");
    typist.sees("got mine");
    typist.ends();
}
