//! Callers with a terminal: the same interaction with the real shell and with the shim, seen from the terminal.

use std::io::Write;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::host::{Host, MIRROR};
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::typist::{At, Typist};
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::Ended;

const TERMINAL: [At; 3] = [At::Terminal; 3];

/// What a person does.
#[derive(Debug, Clone, Copy)]
enum Step {
    Types(&'static [u8]),
    Sees(&'static str),
    Resizes(u16, u16),
}

use Step::{Resizes, Sees, Types};

/// One interaction with `bash -c SCRIPT` at a terminal.
#[derive(Debug)]
struct Interaction {
    name: &'static str,
    options: &'static [&'static str],
    script: &'static str,
    steps: &'static [Step],
    ends: Ended,
    needs: &'static [&'static str],
    /// The whole screen is compared, and not only what is waited for.
    is_exact: bool,
}

const PLAIN: Interaction = Interaction {
    name: "",
    options: &["-c"],
    script: "",
    steps: &[],
    ends: Ended::Code(0),
    needs: &[],
    is_exact: true,
};

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
        is_exact: false,
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
        is_exact: false,
        ..PLAIN
    },
    Interaction {
        name: "^C in a flood",
        script: "yes",
        steps: &[Sees("y\r\ny\r\n"), Types(b"\x03")],
        ends: Ended::Signal(2),
        is_exact: false,
        ..PLAIN
    },
    Interaction {
        name: "^Z where nobody could continue it",
        script: "echo begun; read x; echo on $x",
        steps: &[Sees("begun\r\n"), Types(b"\x1a"), Types(b"go\r"), Sees("on go")],
        is_exact: false,
        ..PLAIN
    },
    Interaction {
        name: "a window that changes",
        script: "trap 'stty size' WINCH; sleep 1000 & echo begun; wait; kill $!; echo end",
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
        script: "echo begun; read x; echo got $x; sleep 1000",
        steps: &[Sees("begun"), Types(b"a b\r"), Sees("got a b"), Types(b"\x03")],
        ends: Ended::Signal(2),
        ..PLAIN
    },
    Interaction {
        name: "a pager",
        script: "seq 1 1000 | LESS= less",
        steps: &[Sees(":"), Types(b"/500\r"), Sees("500"), Types(b"q")],
        needs: &["less"],
        is_exact: false,
        ..PLAIN
    },
    Interaction {
        name: "an editor",
        script: "vi -u NONE -n f; cat f",
        steps: &[Sees("~"), Types(b"ihello\x1b"), Sees("hello"), Types(b":wq\r"), Sees("hello\r\n")],
        needs: &["vi"],
        is_exact: false,
        ..PLAIN
    },
    Interaction {
        name: "a language's own prompt",
        script: "python3 -q",
        steps: &[Sees(">>> "), Types(b"6*7\r"), Sees("42"), Types(b"\x04")],
        needs: &["python3"],
        is_exact: false,
        ..PLAIN
    },
    Interaction {
        name: "a shell below",
        script: "PS1='$ ' bash --norc",
        steps: &[Sees("$ "), Types(b"echo $((6*7))\r"), Sees("42"), Types(b"exit 5\r")],
        ends: Ended::Code(5),
        is_exact: false,
        ..PLAIN
    },
    Interaction { name: "no output", script: "exit 7", ends: Ended::Code(7), ..PLAIN },
    Interaction { name: "a death by signal", script: "kill -TERM $$", ends: Ended::Signal(15), ..PLAIN },
];

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

fn perform(typist: &mut Typist, steps: &[Step]) {
    for step in steps {
        match step {
            Types(keys) => typist.types(keys),
            Sees(text) => drop(typist.sees(text)),
            Resizes(cols, rows) => typist.resizes(*cols, *rows),
        }
    }
}

fn shells(host: &Host) -> [(std::path::PathBuf, Vec<String>); 2] {
    let socket = format!("REXEC_SOCKET={}", host.socket().display());
    [("/bin/bash".into(), vec!["REXEC_INSIDE=1".into()]), (programs::shims().join("rexec-bash"), vec![socket])]
}

#[test]
fn interactions_at_a_terminal_are_those_of_the_real_shell() {
    let host = Host::with(MIRROR);
    for case in INTERACTIONS.iter().filter(|case| case.needs.iter().all(|program| programs::has(program))) {
        let screens = shells(&host).map(|(shell, env)| {
            let home = TempDir::new(None);
            let argv: Vec<&str> = ["bash"].iter().chain(case.options).copied().chain([case.script]).collect();
            let mut typist = Typist::start(&shell, &argv, &env, home.path(), TERMINAL);
            perform(&mut typist, case.steps);
            let ended = typist.ends();
            assert_eq!(ended, case.ends, "{} by {}: {}", case.name, shell.display(), typist.screen());
            assert!(typist.has_its_modes(true), "{} by {}", case.name, shell.display());
            typist.screen()
        });
        if case.is_exact {
            assert_eq!(screens[0], screens[1], "{}", case.name);
        }
    }
    let ran = host.journal().of_type("end").count();
    assert!(ran >= INTERACTIONS.len() - 4, "{ran} are in the journal");
}

#[test]
fn jobs_of_an_interactive_shell_stop_and_go_on_alike() {
    let host = Host::with(MIRROR);
    for case in JOBS.iter().filter(|case| case.needs.iter().all(|program| programs::has(program))) {
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

/// A shim that relays `SCRIPT` and has begun.
fn relaying(host: &Host, home: &TempDir, script: &str) -> Typist {
    let [_, (shell, env)] = shells(host);
    let mut typist = Typist::start(&shell, &["bash", "-c", script], &env, home.path(), TERMINAL);
    typist.sees("begun");
    assert!(typist.is_raw());
    typist
}

#[test]
fn the_terminal_is_as_it_was_whoever_is_killed() {
    let home = TempDir::new(None);
    let host = Host::with(MIRROR);
    let mut typist = relaying(&host, &home, "echo begun; exec sleep 1000");
    kill(Pid::from_raw(typist.warden.pid()), Signal::SIGKILL).expect("it runs");
    assert!(typist.has_its_modes(true), "the shim was killed");
    assert_eq!(typist.ends(), Ended::Signal(9));
    host.wait_idle();

    let mut typist = relaying(&host, &home, "echo begun $PPID; exec sleep 1000");
    let line = typist.sees("\r\n");
    let guard = line.trim().parse().expect("the guard's number");
    kill(Pid::from_raw(guard), Signal::SIGKILL).expect("it runs");
    assert_eq!((typist.ends(), typist.has_its_modes(true)), (Ended::Code(125), true), "{}", typist.screen());
    assert!(typist.screen().ends_with("again\r\n"), "{:?}", typist.screen());
    host.wait_idle();

    let mut typist = relaying(&host, &home, "echo begun; exec sleep 1000");
    let (_home, mut warden) = host.kill();
    assert_eq!((typist.ends(), typist.has_its_modes(true)), (Ended::Code(125), true));
    assert!(warden.is_empty_within(PATIENCE));

    let host = Host::with(MIRROR);
    let typist = relaying(&host, &home, "echo begun; exec sleep 1000");
    host.stop();
    kill(Pid::from_raw(typist.warden.pid()), Signal::SIGKILL).expect("it runs");
    let (_home, mut warden) = host.kill();
    assert!(
        typist.has_its_modes(true),
        "shim and host were killed: {:?} {:#?}",
        typist.terminal.modes(),
        warden.tree()
    );
    assert!(warden.is_empty_within(PATIENCE));
}

#[test]
fn a_terminal_that_hangs_up_hangs_up_the_command() {
    let host = Host::with(MIRROR);
    for (shell, env) in shells(&host) {
        let home = TempDir::new(None);
        let script = "trap 'echo hup > hup; exit' HUP; echo > begun; while :; do sleep 0.05; done";
        let typist = Typist::blind(&shell, &["bash", "-c", script], &env, home.path(), TERMINAL);
        assert!(waiting::until_true(PATIENCE, || home.join("begun").exists()));
        let mut warden = typist.hangs_up();
        assert!(warden.wait(PATIENCE).is_some(), "{}", shell.display());
        assert!(waiting::until_true(PATIENCE, || home.join("hup").exists()), "{}", shell.display());
    }
}

#[test]
fn a_paste_is_not_lost_when_the_program_is_slow() {
    let home = TempDir::new(None);
    let host = Host::with(MIRROR);
    let script = "stty -echo -icanon; echo begun; until [ -e go ]; do sleep 0.05; done; head -c 100000 >got; stty sane";
    let mut typist = relaying(&host, &home, script);
    let paste: Vec<u8> = (0..100_000_u32).map(|n| b'a' + u8::try_from(n % 26).expect("below 26")).collect();
    let (mut there, keys) = (typist.terminal.master_file(), paste.clone());
    let written = std::thread::spawn(move || there.write_all(&keys));
    std::fs::write(home.join("go"), "").expect("a file");
    assert_eq!(typist.ends(), Ended::Code(0));
    written.join().expect("no panic").expect("the terminal takes it");
    assert!(std::fs::read(home.join("got")).expect("it was written") == paste);
}

#[test]
fn a_terminal_that_takes_nothing_holds_the_command_and_no_memory() {
    let home = TempDir::new(None);
    let host = Host::with(MIRROR);
    let [_, (shell, env)] = shells(&host);
    let before = procs::memory(host.pid(), "VmRSS");
    let script = "echo begun; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end";
    // ^S: the terminal itself takes no more.
    let mut typist = Typist::start(&shell, &["bash", "-c", script], &env, home.path(), TERMINAL);
    typist.sees("begun");
    typist.types(b"\x13");
    let is_blocked = || {
        let writer = host.tree().into_iter().find(|process| process.comm == "tr");
        writer.is_none_or(|process| Process::of(process.pid).is_none_or(|process| process.state == 'S'))
    };
    assert!(waiting::until_true(PATIENCE, is_blocked));
    let grown = procs::memory(host.pid(), "VmRSS").saturating_sub(before);
    assert!(grown < 4 << 20, "the host has grown by {grown}");
    typist.types(b"\x11");
    typist.sees("end");
    assert_eq!((typist.ends(), typist.has_its_modes(true)), (Ended::Code(0), true));
}

#[test]
fn in_every_other_mixture_the_terminal_is_left_alone() {
    use At::{Null, Pipe, Terminal};
    let host = Host::with(MIRROR);
    const SCRIPT: &str = "for n in 0 1 2; do [ -t $n ] && printf 't%s ' $n; done >&9; echo out; echo err >&2; \
                          read -t 5 x; echo \"[$x]\" >&9";
    for at in [
        [Terminal, Null, Null],
        [Terminal, Pipe, Null],
        [Null, Terminal, Terminal],
        [Null, Terminal, Null],
        [Null, Null, Terminal],
        [Null, Pipe, Terminal],
    ] {
        let seen = shells(&host).map(|(shell, env)| {
            let home = TempDir::new(None);
            let script = format!("exec 9>>said; {SCRIPT}");
            let mut typist = Typist::start(&shell, &["bash", "-c", &script], &env, home.path(), at);
            if at[0] == Terminal {
                let said = home.join("said");
                assert!(waiting::until_true(PATIENCE, || said.metadata().is_ok_and(|data| data.len() > 0)));
                typist.types(b"typed\r");
            }
            assert!(typist.has_its_modes(true), "{at:?}");
            let ended = typist.ends();
            assert_eq!(ended, Ended::Code(0), "{at:?} by {}", shell.display());
            let said = std::fs::read_to_string(home.join("said")).expect("it was written");
            let pipe = typist.pipe.as_ref().map(|pipe| pipe.so_far());
            (said, typist.screen(), pipe)
        });
        assert_eq!(seen[0], seen[1], "{at:?}");
    }
}

#[test]
fn interactive_shells_are_told_of_or_relayed() {
    let host = Host::with(MIRROR);
    let home = TempDir::new(None);
    let [_, (shell, mut env)] = shells(&host);
    env.extend(["PS1=$ ".to_owned(), "HISTFILE=".to_owned(), "REXEC_WHOAMI=aider".to_owned()]);
    let session = |env: &[String]| {
        let mut typist = Typist::start(&shell, &["bash", "--norc", "-i"], env, home.path(), TERMINAL);
        typist.sees("$ ");
        typist.types(b"echo $((6*7))\r");
        typist.sees("42");
        typist.types(b"exit 5\r");
        assert_eq!((typist.ends(), typist.has_its_modes(true)), (Ended::Code(5), true));
    };
    session(&env);
    let is_told = || host.console_text().contains("not shown: interactive shell of aider");
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    assert_eq!(host.journal().of_type("start").count(), 0);
    env.push("REXEC_INTERACTIVE=1".to_owned());
    session(&env);
    let end = host.wait_for("the session", |journal| journal.of_type("end").next().cloned());
    assert_eq!((&end["exit"], &end["whoami"]), (&5.into(), &"aider".into()));
}
