//! Programs that a person talks with at a terminal: the same session with the real shell and with the shim.

use super::interaction::Same;
use super::interaction::Step::{Sees, Types};
use super::interaction::{Interaction, PLAIN, compare};
use crate::support::host::{Host, MIRROR};
use crate::support::warden::Ended;

/// An interactive shell below, with line editing.
const SHELLS: &[Interaction] = &[
    Interaction {
        name: "history by arrow and by ^R",
        script: BELOW,
        steps: &[
            Sees("$ "),
            Types(b"echo $((6*7))\r"),
            Sees("42"),
            Sees("$ "),
            Types(b"echo other\r"),
            Sees("\rother"),
            Sees("$ "),
            Types(b"\x1b[A\x1b[A\r"),
            Sees("42"),
            Sees("$ "),
            Types(b"\x12oth"),
            Sees("i-search"),
            Types(b"\r"),
            Sees("\rother"),
            Sees("$ "),
            Types(b"exit 5\r"),
        ],
        ends: Ended::Code(5),
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "a line that is edited, and one that is given up by ^C",
        script: BELOW,
        steps: &[
            Sees("$ "),
            Types(b"world\x01hello, \x05!\x01echo \x1bf\x1bb\x0b\x19\r"),
            Sees("\rhello, world!"),
            Sees("$ "),
            Types(b"echo nev"),
            Sees("nev"),
            Types(b"\x03"),
            Sees("$ "),
            Types(b"\x04"),
        ],
        ends: Ended::Code(130),
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "a name that Tab completes, a text of several lines, and ^L",
        script: BELOW,
        steps: &[
            Sees("$ "),
            Types(b"echo text >a-file-of-its-own\r"),
            Sees("$ "),
            Types(b"cat a-f\t"),
            Sees("of-its-own "),
            Types(b"\r"),
            Sees("\rtext"),
            Sees("$ "),
            Types(b"cat <<E\r"),
            Sees("> "),
            Types(b"body\r"),
            Sees("> "),
            Types(b"E\r"),
            Sees("\rbody"),
            Sees("$ "),
            Types(b"\x0c"),
            Sees("$ "),
            Types(b"exit\r"),
        ],
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "a paste of two lines waits for Enter",
        script: BELOW,
        steps: &[
            Sees("\x1b[?2004h"),
            Types(b"\x1b[200~echo o\"\"ne\recho t\"\"wo\x1b[201~"),
            Sees("wo"),
            Types(b"\r"),
            Sees("\rone"),
            Sees("\ntwo"),
            Sees("$ "),
            Types(b"exit\r"),
        ],
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "jobs of it are stopped, continued, and brought back",
        script: BELOW,
        steps: &[
            Sees("$ "),
            Types(b"echo be\"\"gun; cat\r"),
            Sees("begun"),
            Types(b"one\r"),
            Sees("one\r\none"),
            Types(b"\x1a"),
            Sees("Stopped"),
            Sees("$ "),
            Types(b"bg; until [ \"$(jobs -s)\" ]; do sleep 0.05; done; echo st\"\"ill\r"),
            Sees("still"),
            Sees("$ "),
            Types(b"fg\r"),
            Sees("\rcat"),
            Types(b"two\r"),
            Sees("two\r\ntwo"),
            Types(b"\x03"),
            Sees("$ "),
            Types(b"exit 0\r"),
        ],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "Python asks, fails, is interrupted, remembers and ends",
        script: "PYTHON_HISTORY=/dev/null PYTHON_BASIC_REPL=1 python3 -q",
        steps: &[
            Sees(">>> "),
            Types(b"1/0\r"),
            Sees("ZeroDivisionError"),
            Sees(">>> "),
            // Both at once: the first key would wake it, the ^C drop that key, and Python wait for another one.
            Types(b"half"),
            Sees("half"),
            Types(b"\x03"),
            Sees("KeyboardInterrupt"),
            Sees(">>> "),
            Types(b"input('name? ')\r"),
            Sees("name? "),
            Sees("name? "),
            Types(b"ann\r"),
            Sees("'ann'"),
            Sees(">>> "),
            Types(b"for n in 'ab':\r"),
            Sees("... "),
            Types(b"\tprint(n*3)\r\r"),
            Sees("bbb"),
            Sees(">>> "),
            Types(b"exit(3)\r"),
        ],
        ends: Ended::Code(3),
        needs: &["python3"],
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "a terminal of its own below, by script",
        script: "script -qc 'read -p \"name? \" x; echo \"hi $x\"; stty size' /dev/null",
        steps: &[Sees("name? "), Types(b"ann\r"), Sees("hi ann"), Sees("24 80")],
        needs: &["script"],
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "ssh to nobody",
        script: "ssh -F none -o BatchMode=yes -o ConnectTimeout=5 -p 1 127.0.0.1 true",
        steps: &[Sees("refused")],
        ends: Ended::Code(255),
        needs: &["ssh"],
        ..PLAIN
    },
];

const BELOW: &str = "PS1='$ ' HISTFILE= INPUTRC=/dev/null bash --norc --noprofile -i";

#[test]
fn sessions_below_are_those_of_the_real_shell() {
    compare(&Host::with(MIRROR), SHELLS);
}
