//! The host's own words to a caller: one line on standard error, and only when something was withheld or refused.

use crate::support::call::{Outcome, Target};
use crate::support::host::Host;
use crate::support::programs;

struct Noted {
    name: &'static str,
    script: &'static str,
    needs: &'static [&'static str],
    out: &'static str,
    /// What each line on standard error begins with, in order.
    notes: &'static [&'static str],
}

const NOTED: Noted = Noted { name: "", script: "", needs: &[], out: "", notes: &[] };
const FULL_SCREEN: &str = "rexec: a full-screen program drew ";
const ASKED: &str = "rexec: command asked for terminal input (";

const TABLE: &[Noted] = &[
    Noted {
        name: "a full-screen program",
        script: r"echo a; printf '\033[?1049h\033[Hmenu\033[?1049l'; echo z",
        out: "a\nz\n",
        notes: &["rexec: a full-screen program drew 4 bytes, which are not kept"],
        ..NOTED
    },
    Noted {
        name: "two full-screen programs",
        script: r"for n in 1 2; do printf '\033[?47h\033[Hmenu\033[?47l'; done; echo z",
        out: "z\n",
        notes: &["rexec: a full-screen program drew 8 bytes, which are not kept"],
        ..NOTED
    },
    Noted {
        name: "an alternate screen without a word on it",
        script: r"printf '\033[?1049h\033[?1049l'; echo z",
        out: "z\n",
        ..NOTED
    },
    Noted { name: "colours and a title", script: r"printf '\033]0;t\007\033[1mbold\033[m\n'", out: "bold\n", ..NOTED },
    Noted { name: "a progress bar", script: r"printf '1 %%\r2 %%\n'", out: "2 %\n", ..NOTED },
    Noted { name: "a question", script: "read x </dev/tty; echo $?", out: "1\n", notes: &[ASKED], ..NOTED },
    Noted {
        name: "vim",
        script: "echo text >f; vim -u NONE -c 'normal iX' -c wq f </dev/tty; cat f",
        needs: &["vim"],
        out: "Xtext\n",
        notes: &[FULL_SCREEN],
    },
];

/// The notes that a command's caller gets, or what is wrong with them.
fn fault(noted: &Noted, seen: &Outcome) -> Option<String> {
    let err = seen.err();
    let lines: Vec<&str> = err.lines().collect();
    let is_right = seen.out().ends_with(noted.out)
        && !seen.out().contains("rexec:")
        && lines.len() == noted.notes.len()
        && lines.iter().zip(noted.notes).all(|(line, note)| line.starts_with(note));
    (!is_right).then(|| format!("{}: {seen:?}", noted.name))
}

#[test]
fn a_caller_is_told_what_was_withheld() {
    let host = Host::start();
    let runs = TABLE.iter().filter(|noted| noted.needs.iter().all(|program| programs::has(program)));
    let wrong: Vec<String> = runs.filter_map(|noted| fault(noted, &host.run(noted.script))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_caller_that_gets_everything_is_told_nothing() {
    let host = Host::start();
    for mode in ["REXEC_SANITIZE=raw", "REXEC_SANITIZE=strip"] {
        let seen = host.call(TABLE[0].script).env(mode).run(Target::Shim(&host.socket()));
        assert!(seen.out().contains("menu") && seen.err().is_empty(), "{mode}: {seen:?}");
    }
}

/// Any process may call itself anything.
#[test]
fn the_name_of_a_program_is_only_a_name() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::start();
    let rename = r"import ctypes; ctypes.CDLL(None).prctl(15, b'\033]0;x\007\nno'); open('/dev/tty').read()";
    let seen = host.run(&format!("exec python3 -c \"{rename}\""));
    assert_eq!(seen.err(), "rexec: command asked for terminal input (?]0;x??no); got end of file\n");
}
