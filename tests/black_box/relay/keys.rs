//! Keys at a terminal: lines, signals and sizes, in the same interaction with the real shell and with the shim.

use super::interaction::Same;
use super::interaction::Step::{Resizes, Sees, Types};
use super::interaction::{Interaction, PLAIN, compare};
use crate::support::host::{Host, MIRROR};
use crate::support::warden::Ended;

const INTERACTIONS: &[Interaction] = &[
    Interaction {
        name: "all three are the terminal, of its size and modes",
        script: "test -t 0 -a -t 1 -a -t 2 && stty -a; [ -t 9 ] 9</dev/tty && echo ctty",
        steps: &[Sees("24; columns 80"), Sees("ctty")],
        ..PLAIN
    },
    Interaction {
        name: "a question and its answer",
        script: "read -p 'name? ' x; echo \"hi $x\"; exit 3",
        steps: &[Sees("name? "), Types(b"ann\r"), Sees("hi ann")],
        ends: Ended::Code(3),
        ..PLAIN
    },
    Interaction {
        name: "a password is not shown",
        script: "read -s -p 'Password: ' x; echo; echo ${#x}",
        steps: &[Sees("Password: "), Types(b"secret\r"), Sees("6")],
        ..PLAIN
    },
    Interaction {
        name: "line editing and end of file",
        script: "cat; echo end",
        steps: &[Types(b"abX\x7fc\r"), Sees("c\r\nabc\r\n"), Types(b"\x04"), Sees("end")],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "^C ends it",
        script: "echo begun; sleep 1000",
        steps: &[Sees("begun\r\n"), Types(b"\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "^C that is caught",
        script: "trap 'echo caught; exit 4' INT; echo begun; while :; do sleep 0.05; done",
        steps: &[Sees("begun\r\n"), Types(b"\x03"), Sees("caught")],
        ends: Ended::Code(4),
        ..PLAIN
    },
    Interaction {
        name: "^\\ ends it",
        // bash itself ignores it.
        script: "ulimit -c 0; exec yes",
        steps: &[Sees("y\r\n"), Types(b"\x1c")],
        ends: Ended::Signal(3),
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "^C in a flood",
        script: "yes",
        steps: &[Sees("y\r\ny\r\n"), Types(b"\x03")],
        ends: Ended::Signal(2),
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "^Z where nobody could continue it",
        script: "echo begun; read x; echo on $x",
        steps: &[Sees("begun\r\n"), Types(b"\x1a"), Types(b"go\r"), Sees("on go")],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a window that changes",
        script: "trap 'stty size; echo end; exit' WINCH; echo begun; while :; do sleep 0.02; done",
        steps: &[Sees("begun\r\n"), Resizes(111, 33), Sees("33 111\r\n"), Sees("end")],
        ..PLAIN
    },
    Interaction {
        name: "modes of its own",
        script: "s=$(stty -g); stty raw -echo; echo begun; head -c 3 | od -An -tx1; stty $s; echo end",
        steps: &[Sees("begun"), Types(b"\x03\x1a\r"), Sees("03 1a 0d"), Sees("end")],
        ..PLAIN
    },
    Interaction {
        name: "bytes that are not text",
        script: "s=$(stty -g); stty raw -echo; printf 'a\\033[?2004h\\377\\0b\\n'; head -c 4 | od -An -tx1; stty $s",
        steps: &[Sees("b\n"), Types(b"\xff\x00\x1b["), Sees("ff 00 1b 5b")],
        ..PLAIN
    },
    Interaction {
        name: "an interactive shell with a command",
        options: &["--norc", "-i", "-c"],
        script: "echo begun; read x; echo got $x; sh -c 'echo last; exec sleep 1000'",
        steps: &[Sees("begun"), Types(b"a b\r"), Sees("got a b"), Sees("last"), Types(b"\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "a pager",
        script: "seq 1 1000 | LESS= less",
        steps: &[Sees(":"), Types(b"/500\r"), Sees("500"), Types(b"q")],
        needs: &["less"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "an editor",
        script: "vi -u NONE -n f; cat f",
        steps: &[Sees("~"), Types(b"ihello\x1b"), Sees("hello"), Types(b":wq\r"), Sees("hello\r\n")],
        needs: &["vi"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a language's own prompt",
        script: "python3 -q",
        // Between two prompts the terminal is in another mode, in which ^D would be taken for something else.
        steps: &[Sees(">>> "), Types(b"6*7\r"), Sees("42"), Sees(">>> "), Types(b"\x04")],
        needs: &["python3"],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a shell below",
        script: "PS1='$ ' bash --norc",
        steps: &[Sees("$ "), Types(b"echo $((6*7))\r"), Sees("42"), Types(b"exit 5\r")],
        ends: Ended::Code(5),
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction { name: "no output", script: "exit 7", ends: Ended::Code(7), ..PLAIN },
    Interaction { name: "a death by signal", script: "kill -TERM $$", ends: Ended::Signal(15), ..PLAIN },
];

/// The line discipline's editing, and what a shell asks with.
const LINES: &[Interaction] = &[
    Interaction {
        name: "^U takes the line back",
        script: "echo begun; cat",
        steps: &[Sees("begun"), Types(b"wrong\x15right\r"), Sees("right\r\nright\r\n"), Types(b"\x04")],
        ..PLAIN
    },
    Interaction {
        name: "^W takes a word back",
        script: "echo begun; cat",
        steps: &[Sees("begun"), Types(b"one two\x17three\r"), Sees("one three\r\n"), Types(b"\x04")],
        ..PLAIN
    },
    Interaction {
        name: "backspace over a tab, and too often",
        script: "echo begun; cat",
        steps: &[Sees("begun"), Types(b"\x7f\x7fa\tb\x7f\x7fc\r"), Sees("\nac\r\n"), Types(b"\x04")],
        ..PLAIN
    },
    Interaction {
        name: "backspace over a letter of two bytes",
        script: "s=$(stty -g); stty iutf8; echo begun; read x; stty $s; echo got $x",
        steps: &[Sees("begun"), Types("\u{e9}\u{e9}\x7fe\r".as_bytes()), Sees("got \u{e9}e\r\n")],
        ..PLAIN
    },
    Interaction {
        name: "^V and ^R",
        script: "echo begun; cat -v",
        steps: &[Sees("begun"), Types(b"a\x16\x03b\x12c\r"), Sees("\na^Cbc\r\n"), Types(b"\x04")],
        ..PLAIN
    },
    Interaction {
        name: "^D in a line gives it away, and at its start ends the file",
        script: "echo begun; cat; echo end",
        steps: &[Sees("begun"), Types(b"abc\x04"), Sees("abcabc"), Types(b"\x04"), Sees("end")],
        ..PLAIN
    },
    Interaction {
        name: "^D to a question",
        script: "read -p 'name? ' x; echo \"$? [$x]\"",
        steps: &[Sees("name? "), Types(b"\x04"), Sees("1 []")],
        ..PLAIN
    },
    Interaction {
        name: "^D to each program of a sequence",
        script: "echo one; cat; echo two; wc -c; echo three; python3 -c 'import sys; print(repr(sys.stdin.read()))'",
        steps: &[
            Sees("one"),
            Types(b"\x04"),
            Sees("two"),
            Types(b"ab\r\x04"),
            Sees("three"),
            Types(b"x\x04\x04"),
            Sees("'x'"),
        ],
        needs: &["python3"],
        ..PLAIN
    },
    Interaction {
        name: "^S and ^Q",
        script: "echo begun; read x; echo got $x",
        steps: &[Sees("begun"), Types(b"\x13go\r\x11"), Sees("got go")],
        same: Same::Screen,
        ..PLAIN
    },
    Interaction {
        name: "answers before the questions",
        script: "read a; read b; read -n 1 c; echo; echo $a-$b-$c",
        steps: &[Types(b"1\r2\r3"), Sees("1-2-3")],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a single key",
        script: "read -rsn1 -p 'press a key ' k; echo \"<$k>\"; read -rsn3 -p 'and an arrow ' k; printf '%q\\n' \"$k\"",
        steps: &[Sees("key "), Types(b"x"), Sees("<x>"), Sees("arrow "), Types(b"\x1b[A"), Sees("E[A")],
        ..PLAIN
    },
    Interaction {
        name: "a password twice",
        script: "read -rsp 'New: ' a; echo; read -rsp 'Again: ' b; echo; [ \"$a\" = \"$b\" ] && echo same",
        steps: &[Sees("New: "), Types(b"s3 cret\r"), Sees("Again: "), Types(b"s3 cret\r"), Sees("same")],
        ..PLAIN
    },
    Interaction {
        name: "a password to Python",
        script: "python3 -c 'import getpass; print(len(getpass.getpass()))'",
        steps: &[Sees("Password: "), Types(b"secret\r"), Sees("6")],
        needs: &["python3"],
        ..PLAIN
    },
    Interaction {
        name: "a question that is asked for a moment only",
        script: "read -t 0.1 -p 'now? ' x; echo \" $?\"",
        steps: &[Sees("now? "), Sees("142")],
        ..PLAIN
    },
    Interaction {
        name: "a menu",
        script: "select x in red green quit; do echo \"$REPLY=$x\"; [ \"$x\" = quit ] && break; done",
        steps: &[
            Sees("#? "),
            Types(b"2\r"),
            Sees("2=green"),
            Sees("#? "),
            Types(b"\r"),
            Sees("#? "),
            Types(b"9\r"),
            Sees("9="),
            Sees("#? "),
            Types(b"3\r"),
            Sees("3=quit"),
        ],
        ..PLAIN
    },
    Interaction {
        name: "echo that is switched off and on",
        script: "stty -echo; echo begun; read x; stty echo; echo \"got $x\"; read y; echo \"and $y\"",
        steps: &[Sees("begun"), Types(b"hidden\r"), Sees("got hidden"), Types(b"shown\r"), Sees("and shown")],
        ..PLAIN
    },
    Interaction {
        name: "keys with other meanings",
        script: "s=$(stty -g); stty erase '#' intr '^X' kill '@'; echo begun; read x; echo got $x; \
                 trap 'echo caught; stty $s; exit 4' INT; echo again; while :; do sleep 0.05; done",
        steps: &[Sees("begun"), Types(b"no@ab#c\r"), Sees("got ac"), Sees("again\r\n"), Types(b"\x18"), Sees("caught")],
        ends: Ended::Code(4),
        ..PLAIN
    },
    Interaction {
        name: "a question to the terminal in a pipeline",
        script: "echo data | { read a; read -p 'sure? ' b </dev/tty; echo \"$a $b\"; } | cat",
        steps: &[Sees("sure? "), Types(b"yes\r"), Sees("data yes")],
        ..PLAIN
    },
    Interaction { name: "much output", script: "seq 1 20000", steps: &[Sees("20000")], ..PLAIN },
];

/// Keys that are signals, and windows that change.
const SIGNALS: &[Interaction] = &[
    Interaction {
        name: "^C in a pipeline",
        script: "echo begun; sleep 1000 | cat; echo never",
        steps: &[Sees("begun\r\n"), Types(b"\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "^C in a loop",
        // A shell that gets INT just as its child ends well takes it for the child's, and goes on.
        script: "echo begun; while :; do sleep 1000; done; echo never",
        steps: &[Sees("begun\r\n"), Types(b"\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "^C to a question",
        script: "read -p 'name? ' x; echo never",
        steps: &[Sees("name? "), Types(b"half\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "^C to Python",
        script: "python3 -c 'import time; print(\"begun\")\nwhile True: time.sleep(0.02)'",
        steps: &[Sees("begun\r\n"), Types(b"\x03"), Sees("KeyboardInterrupt")],
        ends: Ended::Signal(2),
        needs: &["python3"],
        // The traceback says where it was.
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "^C that Python catches, in a script that goes on",
        script: "python3 -c 'import time\ntry:\n print(\"begun\")\n while True: time.sleep(0.02)\nexcept KeyboardInterrupt: print(\"caught\")'; \
                 echo code $?",
        steps: &[Sees("begun\r\n"), Types(b"\x03"), Sees("code 0")],
        needs: &["python3"],
        ..PLAIN
    },
    Interaction {
        name: "^C that a part of the script ignores",
        script: "(trap '' INT; echo begun; read x; echo got $x); echo after",
        steps: &[Sees("begun\r\n"), Types(b"\x03"), Types(b"on\r"), Sees("got on"), Sees("after")],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "^\\ in a pipeline",
        script: "ulimit -c 0; yes | cat; echo code $?",
        steps: &[Sees("y\r\n"), Types(b"\x1c"), Sees("code 131")],
        same: Same::Nothing,
        ..PLAIN
    },
    Interaction {
        name: "a window that changes three times below Python",
        script: "python3 -c 'import os, signal, sys, time\n\
                 def changed(*_):\n \
                 os.write(1, repr(os.get_terminal_size()).encode())\n \
                 if os.get_terminal_size()[0] == 80: sys.exit(3)\n\
                 signal.signal(signal.SIGWINCH, changed)\n\
                 print(\"begun\")\n\
                 while True: time.sleep(0.02)'",
        steps: &[
            Sees("begun"),
            Resizes(111, 33),
            Sees("columns=111, lines=33"),
            Resizes(40, 10),
            Sees("columns=40, lines=10"),
            Resizes(80, 24),
            Sees("columns=80, lines=24"),
        ],
        ends: Ended::Code(3),
        needs: &["python3"],
        ..PLAIN
    },
];

#[test]
#[ignore = "long: 19 dialogues in two shells"]
fn interactions_at_a_terminal_are_those_of_the_real_shell() {
    compare(&Host::with(MIRROR), INTERACTIONS);
}

#[test]
#[ignore = "long: 19 dialogues in two shells"]
fn lines_are_edited_as_with_the_real_shell() {
    compare(&Host::with(MIRROR), LINES);
}

#[test]
fn keys_that_are_signals_and_new_sizes_do_what_they_do_with_the_real_shell() {
    compare(&Host::with(MIRROR), SIGNALS);
}
