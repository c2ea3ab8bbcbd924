//! Jobs: a person's interactive shell stops and continues the shim as it would the real shell.

use std::path::Path;

use super::interaction::Step::{Sees, Types};
use super::interaction::{Interaction, PLAIN, Same, TERMINAL, compare, perform, possible, shells};
use crate::support::host::{Host, MIRROR};
use crate::support::temp::TempDir;
use crate::support::typist::Typist;
use crate::support::warden::Ended;

/// A script that a person types into an interactive shell, where `$SH` is the shell in question.
const JOBS: &[Interaction] = &[
    Interaction {
        name: "stopped by ^Z and continued",
        script: "$SH -c 'echo be\"\"gun; read x; echo got $x'\r",
        steps: &[
            Sees("begun\r\n"),
            Types(b"\x1a"),
            Sees("Stopped"),
            Sees("PS> "),
            Types(b"fg\r"),
            Sees("read x"),
            Types(b"it\r"),
            Sees("got it"),
            Sees("PS> "),
        ],
        ..PLAIN
    },
    Interaction {
        name: "begun in the background, stopped for reading, and brought to the front",
        script: "$SH -c 'read x; echo got $x' &\r",
        steps: &[
            Sees("PS> "),
            Types(b"until [ \"$(jobs -s)\" ]; do sleep 0.05; done; echo stop\"\"ped\r"),
            Sees("stopped"),
            Sees("PS> "),
            Types(b"fg\r"),
            Sees("got $x"),
            Types(b"it\r"),
            Sees("got it"),
            Sees("PS> "),
        ],
        ..PLAIN
    },
    Interaction {
        name: "^C ends a loop around it",
        script: "for n in 1 2 3; do $SH -c 'echo be\"\"gun; sleep 1000'; done\r",
        steps: &[
            Sees("begun\r\n"),
            Types(b"\x03"),
            Sees("PS> "),
            Types(b"echo al\"\"one\r"),
            Sees("alone"),
            Sees("PS> "),
        ],
        ..PLAIN
    },
    Interaction {
        name: "an editor that is left and taken up again",
        script: "$SH -c 'vi -u NONE -n f; echo af\"\"ter'\r",
        steps: &[
            Sees("~"),
            Types(b"ihello\x1b"),
            Sees("hello"),
            Types(b"\x1a"),
            Sees("PS> "),
            Types(b"fg\r"),
            Sees("hello"),
            Types(b":wq\r"),
            Sees("after"),
            Sees("PS> "),
        ],
        needs: &["vi"],
        ..PLAIN
    },
];

#[test]
fn jobs_of_an_interactive_shell_stop_and_go_on_alike() {
    let host = Host::with(MIRROR);
    for case in possible(JOBS) {
        for (shell, mut env) in shells(&host) {
            let home = TempDir::new(None);
            env.retain(|entry| !entry.starts_with("REXEC_INSIDE"));
            env.extend([format!("SH={}", shell.display()), "PS1=PS> ".to_owned(), "HISTFILE=".to_owned()]);
            let argv = ["bash", "--norc", "--noediting", "-i"];
            let mut typist = Typist::start(Path::new("/bin/bash"), &argv, &env, home.path(), TERMINAL);
            typist.sees("PS> ");
            typist.types(case.script.as_bytes());
            perform(&mut typist, case.steps);
            typist.types(b"exit 0\r");
            assert_eq!(typist.ends(), Ended::Code(0), "{} by {}", case.name, shell.display());
            assert!(typist.has_its_modes(true), "{} by {}", case.name, shell.display());
        }
    }
}

/// What a shell does that leads its session. The group of such a shell is orphaned, so no key stops its members.
const LEADERS: &[Interaction] = &[
    Interaction {
        name: "^Z at a program below a shell that catches the signal",
        script: "trap 'echo caught; exit 4' TSTP; bash -c 'echo begun; read x'; echo not reached",
        steps: &[Sees("begun"), Types(b"\x1a"), Sees("^Z"), Types(b"\r"), Sees("caught")],
        ends: Ended::Code(4),
        ..PLAIN
    },
    Interaction {
        name: "^Z at a program that nothing catches",
        script: "bash -c 'echo begun; read x; echo got $x'; echo $?",
        steps: &[Sees("begun"), Types(b"\x1a"), Sees("^Z"), Types(b"it\r"), Sees("got it")],
        ..PLAIN
    },
    Interaction {
        name: "its session, its terminal and its terminal's foreground",
        script: "read -r line </proc/$$/stat; set -- ${line##*) }; echo $(($3 - $$)) $(($4 - $$)) $(($6 - $$));",
        steps: &[Sees("0 0 0\r\n")],
        ..PLAIN
    },
    Interaction {
        name: "stopped, and continued from inside",
        script: "(until grep -q ') T' /proc/$$/stat; do :; done; kill -CONT $$) & kill -STOP $$; echo o\"\"n",
        steps: &[Sees("on")],
        ..PLAIN
    },
    Interaction {
        name: "stopped again at once, and continued again",
        script: "(for n in 1 2 3; do until grep -q ') T' /proc/$$/stat; do :; done; kill -CONT $$; done) & \
                 for n in 1 2 3; do kill -STOP $$; done; echo o\"\"n",
        steps: &[Sees("on")],
        ..PLAIN
    },
    Interaction {
        name: "continued and stopped in one go, and killed",
        script: "(for n in 1 2; do until grep -q ') T' /proc/$$/stat; do :; done; kill -CONT $$; kill -STOP $$; done; \
                 kill -KILL $$) & kill -STOP $$; while :; do :; done",
        ends: Ended::Signal(9),
        ..PLAIN
    },
    Interaction {
        name: "stopped, and killed from inside",
        script: "(until grep -q ') T' /proc/$$/stat; do :; done; kill -KILL $$) & kill -STOP $$",
        ends: Ended::Signal(9),
        ..PLAIN
    },
    Interaction {
        name: "a job of its own that reads in the background, and is ended by the session's end",
        script: "set -m; cat & until grep -q ') T' /proc/$!/stat; do :; done; echo stopped; kill -KILL $$",
        steps: &[Sees("stopped")],
        ends: Ended::Signal(9),
        same: Same::Nothing,
        ..PLAIN
    },
];

#[test]
fn a_shell_that_leads_its_session_does_so_in_a_run() {
    let host = Host::with(MIRROR);
    compare(&host, LEADERS);
    host.finish();
}
