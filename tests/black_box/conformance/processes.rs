//! Traps, jobs, and what stays in the background when the shell has ended.

use super::case::{Case, Mode, PLAIN};
use crate::support::call::{Output, Target};
use crate::support::host::{Host, MIRROR};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

const TRAPS: &[Case] = &[
    Case { name: "trap EXIT", script: b"trap 'echo bye $?' EXIT; echo hi; exit 4", ..PLAIN },
    Case { name: "trap ERR", script: b"trap 'echo err $?' ERR; false; true", ..PLAIN },
    Case { name: "trap TERM", script: b"trap 'echo term; exit 5' TERM; kill $$; echo after", ..PLAIN },
    Case { name: "trap of an ignored signal", script: b"trap '' TERM; kill $$; echo after", ..PLAIN },
    Case {
        name: "trap in a subshell",
        script: b"trap 'echo outer' EXIT; (trap 'echo inner' EXIT; exit 2); echo $?",
        ..PLAIN
    },
    Case {
        name: "trap and wait",
        // The signal comes once the shell waits.
        script: b"trap 'echo usr' USR1; (until grep -q '^State:.S' /proc/$$/status; do :; done; kill -USR1 $$) & wait; echo $?; wait; echo $?",
        ..PLAIN
    },
    Case { name: "the list of traps", script: b"trap 'echo x' INT TERM; trap", ..PLAIN },
    Case { name: "a child's signal is not the shell's", script: b"sh -c 'kill -INT $$'; echo $?", ..PLAIN },
    Case { name: "job control on", script: b"set -m; sleep 0.1 & wait; echo $?; jobs", ..PLAIN },
    Case { name: "job control off", script: b"sleep 60 & jobs | wc -l; kill %1; wait; echo $?; fg", ..PLAIN },
    Case {
        name: "a coprocess",
        script: b"coproc cat; echo hi >&${COPROC[1]}; read x <&${COPROC[0]}; echo $x",
        ..PLAIN
    },
    Case { name: "kill a group", script: b"set -m; (sleep 60 & sleep 60) & kill -- -$!; wait $!; echo $?", ..PLAIN },
    Case {
        name: "a shell in a shell in a shell",
        script: b"bash -c 'sh -c \"exit 6\"; echo $?; exit 7'; echo $?",
        ..PLAIN
    },
    Case { name: "the shell's own variable", script: b"$SHELL -c 'echo nested $0; exit 8'; echo $?", ..PLAIN },
    Case { name: "env -i", script: b"env -i /bin/sh -c 'echo bare; env | grep -v -e ^PWD -e ^_'", ..PLAIN },
    Case { name: "xargs", script: b"printf '%s\\n' a b c | xargs -n 1 -P 1 echo item", ..PLAIN },
    Case {
        name: "find with a failing exec",
        script: b"touch x; find . -name x -exec false {} \\;; echo $?; find . -name x -exec false {} +; echo $?",
        ..PLAIN
    },
];

/// Each leaves something that writes `later` after the shell's exit.
const BACKGROUND: &[Case] = &[
    left("&", b"(sleep 0.3; echo alive > later) & echo started"),
    left("& with a failing shell", b"(sleep 0.3; echo alive > later) & echo started; exit 9"),
    left("& redirected", b"(sleep 0.3; echo alive > later) >/dev/null 2>&1 </dev/null & echo started"),
    left("& into a file", b"(echo line; sleep 0.3; echo alive > later) > log 2>&1 & echo started; wait -n 2>/dev/null || sleep 0.2"),
    left("two at once", b"(sleep 0.3; echo alive > later) & sleep 0.2 & echo started"),
    left("nohup", b"nohup sh -c 'sleep 0.3; echo alive > later' >/dev/null 2>&1 & echo started"),
    left("nohup into a file", b"nohup sh -c 'sleep 0.3; echo alive > later' >nohup.log 2>&1 & echo started; sleep 0.2"),
    left("setsid", b"setsid sh -c 'sleep 0.3; echo alive > later' & echo started"),
    left("setsid --fork", b"setsid --fork sh -c 'sleep 0.3; echo alive > later'; echo started"),
    left("disown", b"(sleep 0.3; echo alive > later) & disown; echo started"),
    left("disown -h", b"(sleep 0.3; echo alive > later) & disown -h %1; echo started"),
    left("set -m and &", b"set -m; (sleep 0.3; echo alive > later) & echo started"),
    left("a coprocess left", b"coproc { sleep 0.3; echo alive > later; }; echo started"),
    left("a double fork", b"( (sleep 0.3; echo alive > later) & ); echo started"),
    left("from a substitution", b"x=$( (sleep 0.3; echo alive > later) >/dev/null 2>&1 & ); echo started"),
    left("a process substitution left", b"exec 5> >(sleep 0.3; echo alive > later); echo started"),
    left("env -i", b"env -i /bin/sh -c 'sleep 0.3; echo alive > /proc/self/cwd/later' & echo started"),
    left("another shell's", b"bash -c '(sleep 0.3; echo alive > later) &'; echo started"),
    left("a trap for HUP", b"(trap 'echo hup > later; exit' HUP; sleep 0.3; echo alive > later) & echo started"),
    Case { needs: &["python3"], ..left("python without a shell", b"python3 -c 'import subprocess; subprocess.Popen([\"sh\", \"-c\", \"sleep 0.3; echo alive > later\"])'; echo started") },
    Case { output: Output::OneFile, ..left("& in one file", b"(sleep 0.3; echo alive > later) & echo started; echo err >&2") },
    Case { shell: "sh", argv0: "sh", ..left("sh: &", b"(sleep 0.3; echo alive > later) & echo started") },
];

const fn left(name: &'static str, script: &'static [u8]) -> Case {
    Case {
        name,
        script,
        later: Some("later"),
        modes: &[Mode::Pipe, Mode::Default, Mode::Strip, Mode::Collapse],
        ..PLAIN
    }
}

#[test]
fn some_traps_and_jobs_are_alike() {
    super::case::check_some(TRAPS);
}

#[test]
#[ignore = "long: every case, as every user"]
fn traps_and_jobs_are_alike() {
    super::case::check(TRAPS);
}

#[test]
fn some_of_what_is_left_in_the_background_lives() {
    super::case::check_some(BACKGROUND);
}

#[test]
#[ignore = "long: every case, as every user"]
fn what_is_left_in_the_background_lives() {
    super::case::check(BACKGROUND);
}

/// Each counts the processes with a word of the command in their arguments; pgrep(1) leaves out itself.
const LOOKS: [&str; 4] = [
    "pgrep -fc \"$1\"",
    "pgrep -fc \"$1\"; true",
    "timeout 60 pgrep -fc \"$1\"",
    "pgrep -f \"$1\" >found; wc -l <found",
];

#[test]
fn the_process_table_has_the_command_as_often_as_with_the_real_shell() {
    if !programs::has("pgrep") {
        return;
    }
    let host = Host::with(MIRROR);
    for script in LOOKS {
        let [theirs, ours] = [Target::Real, Target::Shim(&host.socket())].map(|target| {
            let word = format!("word-of-{}-{}", std::process::id(), matches!(target, Target::Real));
            let mut call = host.call(script);
            call.argv.extend(["name".into(), word.into()]);
            let seen = call.start(target).expect("it starts").finish(PATIENCE).expect("it ends");
            (seen.out(), seen.err(), seen.ended)
        });
        assert_eq!(theirs, ours, "{script}");
    }
}

#[test]
fn the_process_of_a_call_has_no_name_of_a_shell_while_the_command_runs() {
    let host = Host::with(MIRROR);
    let calling = host.call("echo >begun; until [ -e go ]; do sleep 0.02; done").start(Target::Shim(&host.socket()));
    let mut calling = calling.expect("it starts");
    assert!(waiting::until_true(PATIENCE, || host.home.join("begun").exists()));
    let shim = Process::of(calling.pid()).expect("it waits");
    assert_eq!((shim.comm.as_str(), shim.command().as_str()), ("rexec", "rexec"));
    std::fs::write(host.home.join("go"), "").expect("a file");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 0);
}
