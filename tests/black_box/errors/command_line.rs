//! What the programs say to wrong arguments, and to requests for help.

use std::path::Path;
use std::process::Stdio;

use super::{fault, run};
use crate::support::programs;
use crate::support::reader::Reader;
use crate::support::temp::TempDir;
use crate::support::terminal::Terminal;

/// A call that a program refuses.
struct Wrong {
    program: fn() -> &'static Path,
    args: &'static [&'static str],
    code: i32,
    /// What the sentence names.
    names: &'static [&'static str],
}

const WRONG: &[Wrong] = &[
    Wrong { program: programs::host, args: &["--no-such-flag"], code: 2, names: &["--no-such-flag"] },
    Wrong { program: programs::host, args: &["-Z"], code: 2, names: &["-Z"] },
    Wrong { program: programs::host, args: &["stray"], code: 2, names: &["stray"] },
    Wrong { program: programs::host, args: &["--pty-size"], code: 2, names: &["--pty-size"] },
    Wrong { program: programs::host, args: &["--pty-size", "wide"], code: 2, names: &["--pty-size", "wide"] },
    Wrong { program: programs::host, args: &["--pty-size", "0x0"], code: 2, names: &["--pty-size", "0x0"] },
    Wrong { program: programs::host, args: &["--pty-size", "80"], code: 2, names: &["--pty-size", "80"] },
    Wrong { program: programs::host, args: &["--pty-size", "99999x5"], code: 2, names: &["--pty-size", "99999x5"] },
    Wrong { program: programs::host, args: &["--grace", "soon"], code: 2, names: &["--grace", "soon"] },
    Wrong { program: programs::host, args: &["--grace=-1"], code: 2, names: &["--grace", "-1"] },
    Wrong { program: programs::host, args: &["--grace", "99999999999999999999"], code: 2, names: &["--grace"] },
    Wrong { program: programs::host, args: &["--no-pty=yes"], code: 2, names: &["--no-pty"] },
    Wrong {
        program: programs::host,
        args: &["--sanitize", "a-little"],
        code: 2,
        names: &["--sanitize: `a-little` is not a valid value (raw,"],
    },
    Wrong { program: programs::host, args: &["--sanitize="], code: 2, names: &["--sanitize"] },
    Wrong { program: programs::host, args: &["--console", "RAW"], code: 2, names: &["--console", "RAW"] },
    Wrong { program: programs::host, args: &["--console"], code: 2, names: &["--console"] },
    Wrong { program: programs::host, args: &["--redact-agents=no"], code: 2, names: &["--redact-agents"] },
    Wrong { program: programs::host, args: &["--no-pyt"], code: 2, names: &["--no-pyt", "did you mean --no-pty?"] },
    Wrong { program: programs::host, args: &["--help-me"], code: 2, names: &["--help-me"] },
    Wrong { program: programs::host, args: &["--no-pty", "help"], code: 2, names: &["help"] },
    Wrong { program: programs::rexec, args: &["list"], code: 2, names: &["list", "did you mean --list?"] },
    Wrong { program: programs::rexec, args: &["klil", "3"], code: 2, names: &["klil", "did you mean kill?"] },
    Wrong {
        program: programs::rexec,
        args: &["help", "kil"],
        code: 2,
        names: &["kil", "did you mean rexec help kill?"],
    },
    Wrong { program: programs::rexec, args: &["help", "agens"], code: 2, names: &["agens", "rexec help agents?"] },
    Wrong { program: programs::rexec, args: &["help", "dance"], code: 2, names: &["dance", "rexec help lists"] },
    Wrong { program: programs::rexec, args: &["help", "ps", "kill"], code: 2, names: &["help: `kill` is too much"] },
    Wrong { program: programs::rexec, args: &["ps", "3"], code: 2, names: &["ps: `3` is too much"] },
    Wrong { program: programs::rexec, args: &["a\x1b[2Jb"], code: 2, names: &["a\\x1b[2Jb"] },
    Wrong { program: programs::rexec, args: &["--no-such-flag"], code: 2, names: &["--no-such-flag"] },
    Wrong { program: programs::rexec, args: &["dance"], code: 2, names: &["dance"] },
    Wrong { program: programs::rexec, args: &["kill"], code: 2, names: &["kill"] },
    Wrong { program: programs::rexec, args: &["kill", "12x"], code: 2, names: &["`12x` is not a command number"] },
    Wrong { program: programs::rexec, args: &["kill", "-9", "12"], code: 2, names: &["-9"] },
    Wrong { program: programs::rexec, args: &["ps", "ps"], code: 2, names: &["ps: `ps` is too much"] },
    Wrong { program: programs::rexec, args: &["kill", "--all", "3"], code: 2, names: &["either numbers or one of"] },
    Wrong { program: programs::rexec, args: &["kill", "--agnet", "codex"], code: 2, names: &["did you mean --agent?"] },
    Wrong {
        program: programs::rexec,
        args: &["kill", "--agent", ""],
        code: 2,
        names: &["kill --agent: `` is not valid"],
    },
    Wrong { program: programs::rexec, args: &["log", "--agent", " "], code: 2, names: &["--agent codex"] },
    Wrong {
        program: programs::rexec,
        args: &["tail", "-n", "5"],
        code: 2,
        names: &["needs a command number with --lines"],
    },
    Wrong { program: programs::rexec, args: &["kill", "--agent"], code: 2, names: &["--agent needs a value"] },
    Wrong { program: programs::rexec, args: &["kill", "--all=3"], code: 2, names: &["--all takes no value"] },
    Wrong { program: programs::rexec, args: &["ps", "--jsno"], code: 2, names: &["--jsno", "did you mean --json?"] },
    Wrong { program: programs::rexec, args: &["man", "pss"], code: 2, names: &["pss", "did you mean rexec help ps?"] },
    Wrong { program: programs::rexec, args: &["completions"], code: 2, names: &["completions needs a shell"] },
    Wrong { program: programs::rexec, args: &["completions", "zhs"], code: 2, names: &["did you mean zsh?"] },
    Wrong {
        program: programs::rexec,
        args: &["--start-host", "--no-pyt"],
        code: 2,
        names: &["did you mean --no-pty?"],
    },
    Wrong { program: programs::rexec, args: &["--check-host", "now"], code: 2, names: &["`now` is too much"] },
    Wrong { program: programs::rexec, args: &["--list", "many"], code: 2, names: &["many"] },
    Wrong { program: programs::rexec, args: &["--print"], code: 2, names: &["--print"] },
    Wrong { program: programs::rexec, args: &["--print", "no-such-one"], code: 1, names: &["no-such-one"] },
    Wrong { program: programs::rexec, args: &["--print", "../../etc/passwd"], code: 1, names: &["passwd"] },
];

#[test]
fn wrong_calls_are_told() {
    let home = TempDir::new(None);
    let path = |name: &str| home.join(name).to_str().expect("a path in UTF-8").to_owned();
    let (socket, journal) = (path("host.sock"), path("journal"));
    let mut found = Vec::new();
    for wrong in WRONG {
        let output = run((wrong.program)(), wrong.args, &[("REXEC_SOCKET", &socket), ("REXEC_HOME", &journal)]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let fault = fault(&text).or_else(|| {
            let unnamed = wrong.names.iter().any(|name| !text.contains(name));
            let silent = output.stdout.is_empty();
            let code = output.status.code();
            if unnamed {
                Some("it does not name what is wrong")
            } else if code != Some(wrong.code) && code != Some(if wrong.code == 1 { 2 } else { wrong.code }) {
                Some("another code")
            } else {
                (!silent).then_some("it writes on stdout too")
            }
        });
        found.extend(fault.map(|fault| format!("{:?}: {fault}: {:?}\n{text}", wrong.args, output.status.code())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Programs read errors by lines; a person reads whole words.
#[test]
#[ignore = "long: 51 wrong calls, twice each"]
fn a_terminal_gets_no_line_that_it_would_break_within_a_word() {
    for wrong in WRONG {
        let on_pipe = run((wrong.program)(), wrong.args, &[("REXEC_SOCKET", "/no/host.sock"), ("REXEC_HOME", "/no")]);
        let terminal = Terminal::new(40, 24);
        let shown = Reader::new(terminal.master_file().into(), usize::MAX);
        let mut command = programs::command((wrong.program)());
        command.args(wrong.args).env_clear().env("PATH", programs::PATH);
        command.env("REXEC_SOCKET", "/no/host.sock").env("REXEC_HOME", "/no");
        let ended = command.stdin(Stdio::null()).stderr(terminal.slave()).status().expect("the program starts");
        let shown = String::from_utf8(shown.to_silence()).expect("text").replace('\r', "");
        assert_eq!(ended.code(), on_pipe.status.code(), "{:?}", wrong.args);
        let is_short = |line: &str| line.chars().count() <= 40 || !line.trim_start().contains(' ');
        assert!(shown.lines().all(is_short), "{:?}: {shown}", wrong.args);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&shown), words(&String::from_utf8_lossy(&on_pipe.stderr)), "{:?}", wrong.args);
        assert_eq!(on_pipe.stderr.iter().filter(|&&byte| byte == b'\n').count(), 2, "one line each: {:?}", wrong.args);
    }
}

#[test]
fn help_is_there_however_it_is_asked_for() {
    let calls: [(&Path, &[&str], &str); 17] = [
        (programs::rexec(), &[], "usage: rexec COMMAND"),
        (programs::rexec(), &["help"], "usage: rexec COMMAND"),
        (programs::rexec(), &["--help"], "usage: rexec COMMAND"),
        (programs::rexec(), &["-h"], "usage: rexec COMMAND"),
        (programs::rexec(), &["help", "kill"], "usage: rexec kill [options] N..."),
        (programs::rexec(), &["kill", "--help"], "usage: rexec kill [options] N..."),
        (programs::rexec(), &["kill", "3", "-h"], "usage: rexec kill [options] N..."),
        (programs::rexec(), &["ps", "--help"], "usage: rexec ps"),
        (programs::rexec(), &["help", "ps"], "usage: rexec ps"),
        (programs::rexec(), &["--list", "--help"], "usage: rexec --list"),
        (programs::rexec(), &["-l", "-h"], "usage: rexec --list"),
        (programs::rexec(), &["help", "list"], "usage: rexec --list"),
        (programs::rexec(), &["help", "--print"], "usage: rexec --print"),
        (programs::rexec(), &["--print", "--help"], "usage: rexec --print"),
        (programs::rexec(), &["--check-host", "--help"], "usage: rexec --check-host"),
        (programs::host(), &["help"], "usage: rexec-host"),
        (programs::host(), &["--help"], "usage: rexec-host"),
    ];
    for (program, args, usage) in calls {
        let output = run(program, args, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
        assert!(text.contains(usage), "{args:?}: {text}");
    }
}
