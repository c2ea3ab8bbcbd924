//! The host's options and the caller's variables, each by its effect on the output.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::call::{Output, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::waiting::PATIENCE;

fn host(flags: &'static [&'static str]) -> Host {
    Host::with(Setup { flags, ..PLAIN })
}

const REDRAWN: &str = r"printf '\033[31m10 %%\r20 %%\033[0m\n'; printf '\033[1merror\033[m\n' >&2";
const RAW: &str = "\x1b[31m10 %\r20 %\x1b[0m\n";
const STRIPPED: &str = "10 %\n20 %\n";
const COLLAPSED: &str = "20 %\n";

#[test]
fn the_host_treats_output_as_told_and_the_caller_may_want_it_otherwise() {
    for (flags, usual) in [
        (&[][..], COLLAPSED),
        (&["--sanitize", "collapse"], COLLAPSED),
        (&["--sanitize=strip"], STRIPPED),
        (&["--sanitize", "raw"], RAW),
    ] {
        let host = host(flags);
        for (variable, expected) in [
            ("REXEC_SANITIZE=", usual),
            ("REXEC_SANITIZE=raw", RAW),
            ("REXEC_SANITIZE=strip", STRIPPED),
            ("REXEC_SANITIZE=collapse", COLLAPSED),
            ("REXEC_SANITIZE=tidy", COLLAPSED),
        ] {
            let seen = host.call(REDRAWN).env(variable).run(Target::Shim(&host.socket()));
            let err = if expected == RAW { "\x1b[1merror\x1b[m\n" } else { "error\n" };
            assert_eq!((seen.out().as_str(), seen.err().as_str()), (expected, err), "{flags:?}, {variable}");
        }
        let pipes = host.call(REDRAWN).env("REXEC_TTY=never").run(Target::Shim(&host.socket()));
        let expected = if usual == RAW { RAW } else { COLLAPSED };
        assert_eq!(pipes.out(), expected, "{flags:?}: pipes are tidied unless the caller wants raw bytes");
    }
}

#[test]
fn pipes_are_tidied() {
    const PIPED: &str = r"printf 'a\r\nb\f\n\033[31m10 %%\r20 %%\033[0m\n'; printf '\0\033[m\r\n'";
    const TIDY: &str = "a\r\nb\x0c\n20 %\n\0\x1b[m\r\n";
    for flags in [&["--tty=auto"][..], &["--no-pty"], &["--no-pty", "--sanitize=tidy"]] {
        assert_eq!(host(flags).run(PIPED).out(), TIDY, "{flags:?}");
    }
    let usual = host(&[]);
    let asked = usual.call(PIPED).env("REXEC_TTY=never").env("REXEC_SANITIZE=tidy");
    assert_eq!(asked.run(Target::Shim(&usual.socket())).out(), TIDY);
}

#[test]
fn sizes_and_pipes_are_as_told() {
    const SCRIPT: &str = "stty size </dev/tty 2>/dev/null; test -t 1 && echo terminal || echo pipe";
    for (flags, expected) in [
        (&[][..], "48 160\nterminal\n"),
        (&["--pty-size", "91x33"], "33 91\nterminal\n"),
        (&["--pty-size=91x33", "--tty=auto", "--prompts=ask"], "33 91\npipe\n"),
        (&["--tty=auto", "--prompts=ask"], "24 80\npipe\n"),
        (&["--tty=auto"], "pipe\n"),
        (&["--pty-size=91x33", "--no-pty", "--prompts=ask"], "pipe\n"),
        (&["--tty", "never", "--prompts=ask"], "pipe\n"),
    ] {
        assert_eq!(host(flags).run(SCRIPT).out(), expected, "{flags:?}");
    }
}

const SECRET: &str = "API_TOKEN=correct-horse-battery";
/// The secret on both streams: whole, and in two writes with a pause in between.
const TELLS: &str = r"
echo $API_TOKEN; printf 'a %s' ${API_TOKEN:0:9}; sleep 0.05; printf '%s z\n' ${API_TOKEN:9}
exec >&2
echo $API_TOKEN; printf 'a %s' ${API_TOKEN:0:9}; sleep 0.05; printf '%s z\n' ${API_TOKEN:9}";

#[test]
#[ignore = "long: 24 commands with pauses on 3 hosts"]
fn agents_get_secrets_masked_only_if_told() {
    let lines = |word: &str| format!("{word}\na {word} z\n");
    for (flags, expected) in [
        (&[][..], lines("correct-horse-battery")),
        (&["--redact-agents"], lines("«redacted:API_TOKEN»")),
        (&["--redact-agents", "--no-pty"], lines("«redacted:API_TOKEN»")),
    ] {
        let host = host(flags);
        for mode in ["REXEC_SANITIZE=", "REXEC_SANITIZE=strip", "REXEC_SANITIZE=raw", "REXEC_TTY=never"] {
            let call = || host.call(TELLS).env(SECRET).env(mode);
            let seen = call().run(Target::Shim(&host.socket()));
            assert_eq!((seen.out(), seen.err()), (expected.clone(), expected.clone()), "{flags:?}, {mode}");
            let mut one = call();
            one.output = Output::OneFile;
            let seen = one.run(Target::Shim(&host.socket()));
            assert_eq!(seen.out(), expected.repeat(2), "{flags:?}, {mode}, one file");
        }
    }
}

/// A busy machine may need more than the usual grace for little, so one success is enough.
#[test]
fn the_grace_is_the_time_to_clean_up() {
    // Far less than the usual grace, and far more than none.
    assert!((0..5).any(|_| end_of_what_cleans(&[], "0.05") == ("on\ncleaned\n".to_owned(), 3)));
    assert_eq!(end_of_what_cleans(&["--grace", "0"], "1000"), ("on\n".to_owned(), 137));
}

/// What a command that cleans up for this time says, and how it ends, when its host ends.
fn end_of_what_cleans(flags: &'static [&'static str], takes: &str) -> (String, i32) {
    let cleans = format!("trap 'sleep {takes}; echo cleaned; exit 3' TERM; echo on; while :; do sleep 0.01; done");
    let mut host = host(flags);
    let mut calling = host.call(&cleans).start(Target::Shim(&host.socket())).expect("the shim starts");
    assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"on\n", PATIENCE));
    host.signal(Signal::SIGTERM);
    let seen = calling.finish(PATIENCE + Duration::from_secs(5)).expect("it ends");
    host.check_end();
    (seen.out(), seen.code())
}
