//! How a shell ends: every code, every signal, and what it prints when it cannot go on.

use super::case::{Case, PLAIN};

const TABLE: &[Case] = &[
    Case { name: "true", script: b"true", ..PLAIN },
    Case { name: "false", script: b"false", ..PLAIN },
    Case { name: "a code above 255", script: b"exit 300", ..PLAIN },
    Case { name: "a negative code", script: b"exit -1", ..PLAIN },
    Case { name: "a code that is not a number", script: b"exit abc", ..PLAIN },
    Case { name: "the code of the last command", script: b"false; true; ls /nonexistent", ..PLAIN },
    Case { name: "a command that does not exist", script: b"no-such-command-here", ..PLAIN },
    Case { name: "a file that may not be executed", script: b"./plain; echo $?; touch plain; ./plain", ..PLAIN },
    Case { name: "a directory as command", script: b"/tmp", ..PLAIN },
    Case { name: "a syntax error", script: b"if true; then", ..PLAIN },
    Case { name: "a syntax error in the second line", script: b"echo one\necho )\necho three", ..PLAIN },
    Case { name: "set -e", script: b"set -e; echo before; false; echo after", ..PLAIN },
    Case { name: "set -u", script: b"set -u; echo $unset_name; echo after", ..PLAIN },
    Case { name: "pipefail", script: b"set -o pipefail; false | true; echo $?; false | cat", ..PLAIN },
    Case { name: "the states of a pipeline", script: b"true | false | (exit 7); echo ${PIPESTATUS[*]}", ..PLAIN },
    Case { name: "exec of another program", script: b"exec ls /nonexistent", ..PLAIN },
    Case { name: "exec of a shell", script: b"exec sh -c 'exit 9'", ..PLAIN },
    Case { name: "exec that fails", script: b"exec no-such-command-here; echo not reached", ..PLAIN },
    Case { name: "a subshell killed", script: b"(kill -9 $BASHPID); echo $?", ..PLAIN },
    Case { name: "a child killed", script: b"sh -c 'kill -TERM $$'; echo $?", ..PLAIN },
    Case { name: "a child killed by SEGV", script: b"sh -c 'kill -SEGV $$'; exit $?", ..PLAIN },
    Case { name: "a child killed by a real-time signal", script: b"sh -c 'kill -40 $$'; exit $?", ..PLAIN },
    Case { name: "timeout", script: b"timeout 0.1 sleep 5; echo $?", ..PLAIN },
    Case { name: "timeout by KILL", script: b"timeout -s KILL 0.1 sleep 5; echo $?", ..PLAIN },
    Case { name: "wait for a child", script: b"(exit 3) & wait $!; echo $?", ..PLAIN },
    Case { name: "wait for any child", script: b"(exit 4) & wait -n; exit $?", ..PLAIN },
    Case { name: "an empty command", script: b" ", ..PLAIN },
    Case { name: "only a comment", script: b"# nothing", ..PLAIN },
    Case {
        name: "sh: a command that does not exist",
        script: b"no-such-command-here",
        shell: "sh",
        argv0: "sh",
        ..PLAIN
    },
    Case { name: "sh: a syntax error", script: b"if then", shell: "sh", argv0: "sh", ..PLAIN },
    Case { name: "sh: a signal", script: b"kill -9 $$", shell: "sh", argv0: "sh", ..PLAIN },
    Case {
        name: "sh: which one it is",
        script: b"echo ${BASH_VERSION-none} $0",
        shell: "rexec-sh",
        argv0: "rexec-sh",
        ..PLAIN
    },
    Case {
        name: "bash: which one it is",
        script: b"echo $BASH_VERSION $0",
        shell: "rexec-bash",
        argv0: "rexec-bash",
        ..PLAIN
    },
];

#[test]
fn some_shells_end_alike() {
    super::case::check_some(TABLE);
}

#[test]
#[ignore = "long: every case, as every user"]
fn shells_end_alike() {
    super::case::check(TABLE);
}

/// Every nth code as the shell's own.
fn codes(nth: usize) -> Vec<Case> {
    let case = |code: usize| Case {
        name: leak(format!("exit {code}")),
        script: leak(format!("exit {code}")).as_bytes(),
        ..PLAIN
    };
    (0..=255).step_by(nth).map(case).collect()
}

#[test]
fn some_codes_are_the_same() {
    super::case::check_some(&codes(51));
}

#[test]
#[ignore = "long: every case, as every user"]
fn every_code_is_the_same() {
    super::case::check(&codes(if crate::support::waiting::is_long() { 1 } else { 15 }));
    let each = br#"for n in {0..255}; do (exit $n); echo -n "$? "; done"#;
    super::case::check(&[Case { name: "every code in one run", script: each, ..PLAIN }]);
}

/// Death by every signal. Those that stop a process are left out: nobody would continue it.
fn deaths() -> Vec<Case> {
    let case = |n: usize| Case {
        name: leak(format!("killed by signal {n}")),
        script: leak(format!("echo before; kill -{n} $$; echo after; exit 5")).as_bytes(),
        ..PLAIN
    };
    (1..=64).filter(|n| !(19..=22).contains(n)).map(case).collect()
}

#[test]
fn some_signals_are_the_same() {
    super::case::check_some(&deaths());
}

#[test]
#[ignore = "long: every case, as every user"]
fn every_signal_is_the_same() {
    super::case::check(&deaths());
}

fn leak(text: String) -> &'static str {
    text.leak()
}
