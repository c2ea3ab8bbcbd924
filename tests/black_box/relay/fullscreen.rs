//! Programs that draw the whole screen: the same interaction with the real shell and with the shim.

use super::interaction::Step::{Resizes, Shows, Types};
use super::interaction::{Interaction, PLAIN, Same, compare};
use crate::support::host::{Host, MIRROR};
use crate::support::warden::Ended;

const VIM: Interaction = Interaction { needs: &["vim"], same: Same::Screen, ..PLAIN };

const EDITORS: &[Interaction] = &[
    Interaction {
        name: "insert, undo, redo, write",
        script: "vim -u NONE -N -n f; cat f",
        steps: &[Shows("~"), Types(b"ione\x1botwo\x1bothree\x1buu\x12:wq\r"), Shows("one\ntwo")],
        ..VIM
    },
    Interaction {
        name: "a change that is thrown away",
        script: "echo kept >f; vim -u NONE -N -n f; cat f",
        steps: &[Shows("kept"), Types(b"dd:q\r"), Shows("E37"), Types(b":q!\r"), Shows("kept")],
        ..VIM
    },
    Interaction {
        name: "visual mode",
        script: "printf 'a b c\\nd e f\\n' >f; vim -u NONE -N -n f; cat f",
        steps: &[Shows("d e f"), Types(b"wviw~jVd:wq\r"), Shows("a B c")],
        ..VIM
    },
    Interaction {
        name: "search and replace",
        script: "seq 1 200 >f; vim -u NONE -N -n f; grep -c . f; grep x f",
        steps: &[Shows("20"), Types(b"/150\r"), Shows("150"), Types(b"ddn:%s/^1\\(5.\\)$/x\\1/\r:wq\r"), Shows("199")],
        ..VIM
    },
    Interaction {
        name: "a command from the editor",
        script: "vim -u NONE -N -n f; echo code $?",
        steps: &[
            Shows("~"),
            Types(b":!echo $((6*7)); read x; echo got $x\r"),
            Shows("42"),
            Types(b"it\r"),
            Shows("got it"),
            Shows("Press ENTER"),
            Types(b"\r"),
            Types(b":cq\r"),
            Shows("code 1"),
        ],
        ..VIM
    },
    Interaction {
        name: "a window that changes below an editor",
        script: "vim -u NONE -N -n --cmd 'au VimResized * call setline(1, &columns)' f; stty size",
        steps: &[Shows("~"), Resizes(100, 30), Shows("100"), Types(b":q!\r"), Shows("30 100")],
        same: Same::Nothing,
        ..VIM
    },
    Interaction {
        name: "an editor without modes",
        script: "nano -I f; cat f",
        steps: &[
            Shows("Exit"),
            Types(b"hello\r"),
            Shows("hello"),
            Types(b"\x18"),
            Shows("Save modified"),
            Types(b"y"),
            Shows("File Name"),
            Types(b"\r"),
            Shows("hello"),
        ],
        needs: &["nano"],
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "a commit's message",
        script: "git init -q && git config user.name a && git config user.email a@b && GIT_EDITOR='vim -u NONE -N -n' git commit --allow-empty; git log --format=%s",
        steps: &[Shows("Please enter"), Types(b"ia message\x1b:wq\r"), Shows("\na message")],
        needs: &["git", "vim"],
        ..GIT
    },
    Interaction {
        name: "a commit that is given up",
        script: "git init -q && git config user.name a && git config user.email a@b && GIT_EDITOR='vim -u NONE -N -n' git commit --allow-empty",
        steps: &[Shows("Please enter"), Types(b":q!\r"), Shows("Aborting")],
        ends: Ended::Code(1),
        needs: &["git", "vim"],
        ..GIT
    },
    Interaction {
        name: "parts of a change",
        script: "git init -q && git config user.name a && git config user.email a@b; seq 1 40 >f; git add f; git commit -qm one; sed -i -e 's/^3$/three/' -e 's/^33$/many/' f; \
                 git add -p; git --no-pager diff --cached --stat; git --no-pager diff | grep ^+many",
        steps: &[
            Shows("(1/2)"),
            Types(b"?\r"),
            Shows("print help"),
            Types(b"y\r"),
            Shows("(2/2)"),
            Types(b"n\r"),
            Shows("+many"),
        ],
        needs: &["git"],
        ..GIT
    },
    Interaction {
        name: "a rebase with an editor",
        script: "git init -q && git config user.name a && git config user.email a@b; for n in one two three; do git commit -q --allow-empty -m $n; done; \
                 GIT_SEQUENCE_EDITOR='vim -u NONE -N -n' git rebase -q -i --root; git --no-pager log --format=%s",
        steps: &[Shows("pick"), Types(b":2s/pick/drop/\r:wq\r"), Shows("three\none")],
        needs: &["git", "vim"],
        ..GIT
    },
];

/// A repository of somebody.
const GIT: Interaction = Interaction { same: Same::Nothing, ..PLAIN };

const LESS: Interaction = Interaction { needs: &["less"], same: Same::Screen, ..PLAIN };

const PAGERS: &[Interaction] = &[
    Interaction {
        name: "search, next, end, quit",
        script: "seq 1 1000 >f; LESS= less f; echo code $?",
        steps: &[
            Shows("23"),
            Types(b"/50\r"),
            Shows("50\n51"),
            Types(b"n"),
            Shows("150\n151"),
            Types(b"G"),
            Shows("(END)"),
            Types(b"g"),
            Shows("1\n2\n3"),
            Types(b"q"),
            Shows("code 0"),
        ],
        ..LESS
    },
    Interaction {
        name: "help",
        script: "seq 1 1000 | LESS= less; echo code $?",
        steps: &[Shows("23"), Types(b"h"), Shows("SUMMARY"), Types(b"q"), Shows("23"), Types(b"q"), Shows("code 0")],
        ..LESS
    },
    Interaction {
        name: "what grows is followed until ^C",
        script: "seq 1 100 >f; LESS= less +F f; echo code $?",
        steps: &[Shows("Waiting for data"), Types(b"\x03"), Shows("100\n"), Types(b"q"), Shows("code 0")],
        same: Same::Nothing,
        ..LESS
    },
    Interaction {
        name: "a command from the pager",
        script: "seq 1 1000 >f; LESS= less f; echo code $?",
        steps: &[
            Shows("23"),
            Types(b"!echo $((6*7))\r"),
            Shows("42"),
            Shows("done"),
            Types(b"\r"),
            Shows("23"),
            Types(b"q"),
            Shows("code 0"),
        ],
        ..LESS
    },
    Interaction {
        name: "a log that is longer than the screen",
        script: "git init -q && git config user.name a && git config user.email a@b; for n in 1 2 3 4 5 6 7 8; do git commit -q --allow-empty -m m$n; done; \
                 LESS= GIT_PAGER=less git log; echo code $?",
        steps: &[Shows("m8"), Types(b"G"), Shows("(END)"), Types(b"q"), Shows("code 0")],
        needs: &["git", "less"],
        ..GIT
    },
    Interaction {
        name: "a manual page",
        script: "MANPAGER=less LESS= man less; echo code $?",
        steps: &[Shows("NAME"), Types(b"/SYNOPSIS\r"), Shows("SYNOPSIS"), Types(b"q"), Shows("code 0")],
        needs: &["man", "less"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "processes, once and as they change",
        script: "top -d 1; top -b -n 1 | head -n 1 | cut -c 1-5; echo code $?",
        steps: &[Shows("COMMAND"), Types(b"q"), Shows("top -\ncode 0")],
        needs: &["top"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a command again and again",
        script: "watch -t -n 1 'echo $((6*7)); stty size </dev/tty'; echo code $?",
        steps: &[Shows("42\n24 80"), Types(b"\x03"), Shows("code 0")],
        needs: &["watch"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a box with buttons",
        script: "dialog --yesno 'really?' 7 40; echo code $?",
        steps: &[Shows("really?"), Types(b"\t\r"), Shows("code 1")],
        needs: &["dialog"],
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "a multiplexer",
        script: "TMPDIR=$PWD tmux -S ./s -f /dev/null new 'echo begun; read x; echo got $x >f'; cat f",
        steps: &[Shows("begun"), Types(b"it\r"), Shows("[exited]"), Shows("got it")],
        needs: &["tmux"],
        same: Same::Nothing,
        ..PLAIN
    },
];

#[test]
#[ignore = "long: 11 dialogues in two shells"]
fn editors_are_used_as_with_the_real_shell() {
    compare(&Host::with(MIRROR), EDITORS);
}

#[test]
#[ignore = "long: 10 dialogues in two shells"]
fn pagers_and_their_like_are_used_as_with_the_real_shell() {
    compare(&Host::with(MIRROR), PAGERS);
}
