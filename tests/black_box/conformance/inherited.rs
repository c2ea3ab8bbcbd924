//! What a command inherits: masks, limits, priorities, ignored signals, descriptors.

use nix::sys::resource::Resource::{RLIMIT_CORE, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_STACK};
use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1};

use super::case::{Case, Mode, PLAIN};
use crate::support::call::{Input, Output, Target};
use crate::support::warden::{State, USUAL};

const IGNORED: &[u8] = b"grep -E 'Sig(Ign|Blk)' /proc/self/status";

const TABLE: &[Case] = &[
    Case { name: "umask 022", script: b"umask; touch f; mkdir d; stat -c %a f d", ..PLAIN },
    Case {
        name: "umask 077",
        script: b"umask; touch f; stat -c %a f",
        state: State { umask: 0o077, ..USUAL },
        ..PLAIN
    },
    Case { name: "umask 0", script: b"umask; touch f; stat -c %a f", state: State { umask: 0, ..USUAL }, ..PLAIN },
    Case { name: "all limits", script: b"ulimit -aS; ulimit -aH", ..PLAIN },
    Case {
        name: "descriptors, soft",
        script: b"ulimit -Sn; ulimit -Hn",
        state: State { limits: &[(RLIMIT_NOFILE, 256, 4096)], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "descriptors, hard",
        script: b"ulimit -n 512; ulimit -n",
        state: State { limits: &[(RLIMIT_NOFILE, 128, 128)], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "few descriptors",
        script: b"cat /proc/self/limits | grep open",
        state: State { limits: &[(RLIMIT_NOFILE, 32, 32)], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "file size",
        script: b"(head -c 10000 /dev/zero > f) 2>/dev/null; echo $?; exit 3",
        state: State { limits: &[(RLIMIT_FSIZE, 4096, 4096)], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "processor time",
        script: b"while :; do :; done",
        state: State { limits: &[(RLIMIT_CPU, 1, 1)], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "core size",
        script: b"ulimit -c; ulimit -Hc",
        state: State { limits: &[(RLIMIT_CORE, 0, 0)], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "stack",
        script: b"ulimit -s",
        state: State { limits: &[(RLIMIT_STACK, 1 << 20, 2 << 20)], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "nice",
        script: b"nice; ps -o ni= -p $$; nice -n 3 nice",
        state: State { nice: 5, ..USUAL },
        needs: &["ps"],
        ..PLAIN
    },
    Case { name: "nicest", script: b"nice", state: State { nice: 19, ..USUAL }, ..PLAIN },
    Case {
        name: "the first processor",
        script: b"nproc; taskset -pc $$ | sed 's/.*: //'",
        state: State { cpu: Some(0), ..USUAL },
        needs: &["taskset"],
        ..PLAIN
    },
    Case { name: "all processors", script: b"nproc", ..PLAIN },
    Case { name: "nothing ignored", script: IGNORED, ..PLAIN },
    Case {
        name: "SIGPIPE ignored",
        script: b"grep SigIgn /proc/self/status; yes | head -n 1; echo ${PIPESTATUS[*]}",
        state: State { ignored: &[SIGPIPE], ..USUAL },
        ..PLAIN
    },
    Case { name: "SIGPIPE not ignored", script: b"yes | head -n 1; echo ${PIPESTATUS[*]}", ..PLAIN },
    Case {
        name: "SIGINT and SIGQUIT ignored",
        script: b"trap 'echo trapped' INT; kill -INT $$; trap; grep SigIgn /proc/self/status",
        state: State { ignored: &[SIGINT, SIGQUIT], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "SIGHUP ignored",
        script: b"kill -HUP $$; echo lives",
        state: State { ignored: &[SIGHUP], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "SIGTERM and SIGUSR1 ignored",
        script: b"kill -TERM $$; kill -USR1 $$; echo lives; exit 2",
        state: State { ignored: &[SIGTERM, SIGUSR1], ..USUAL },
        ..PLAIN
    },
    Case { name: "descriptor 3", script: b"cat <&3; echo; ls -m /proc/self/fd", third: Some(b"from three"), ..PLAIN },
    Case { name: "no descriptor 3", script: b"cat <&3; echo $?", ..PLAIN },
    Case { name: "no more descriptors than wanted", script: b"ls /proc/self/fd | tr '\\n' ' '", ..PLAIN },
    Case {
        name: "what the descriptors are",
        script: b"for n in 0 2; do readlink /proc/self/fd/$n | tr -d '0-9'; done",
        modes: &[Mode::Pipe],
        ..PLAIN
    },
    Case { name: "is it a terminal", script: b"test -t 0; echo $?; test -t 1; echo $?; test -t 2; echo $?", ..PLAIN },
    Case {
        name: "is it a terminal, in one file",
        script: b"test -t 1; echo $?; test -t 2; echo $?",
        output: Output::OneFile,
        modes: &[Mode::Raw, Mode::Strip, Mode::Collapse],
        ..PLAIN
    },
    Case {
        name: "the size of the terminal",
        script: b"stty size <&1; stty -a <&1 | grep -o -- '-*opost'; tput cols",
        modes: &[Mode::Raw, Mode::Strip, Mode::Collapse],
        needs: &["tput"],
        ..PLAIN
    },
    Case { name: "the usual variables", script: b"echo $SHELL $HOME $TERM $REXEC_INSIDE $SHLVL $PATH", ..PLAIN },
    Case { name: "who it is", script: b"id -u; id -g; id -G; whoami", ..PLAIN },
    Case {
        name: "sh: ignored signals",
        script: IGNORED,
        shell: "sh",
        argv0: "sh",
        state: State { ignored: &[SIGPIPE, SIGINT], ..USUAL },
        ..PLAIN
    },
    Case {
        name: "sh: umask",
        script: b"umask",
        shell: "sh",
        argv0: "sh",
        state: State { umask: 0o027, ..USUAL },
        ..PLAIN
    },
    Case {
        name: "stdin closed",
        script: b"test -e /proc/$$/fd/0; echo $?; read x; echo $?",
        input: Input::Closed,
        ..PLAIN
    },
];

#[test]
fn some_commands_inherit_alike() {
    super::case::check_some(TABLE);
}

#[test]
#[ignore = "long: every case, as every user"]
fn commands_inherit_alike() {
    super::case::check(TABLE);
}

/// What few callers change, but `chrt`, `ionice`, `setarch` and `prlimit` do for whole build scripts.
#[test]
fn scheduling_and_personality_are_the_callers() {
    let host = crate::support::host::Host::start();
    if !["chrt", "ionice", "setarch"].into_iter().all(crate::support::programs::has) {
        return;
    }
    let show = "chrt -p $$ | sed 's/.*: //'; ionice -p $$; cat /proc/$$/personality /proc/$$/coredump_filter";
    let script = |shell: &str| {
        format!("echo 0x7 >/proc/self/coredump_filter; exec chrt -b 0 ionice -c 3 setarch -R '{shell}' -c \"{show}\"")
            .replace("$$", "\\$\\$")
    };
    let call = |shell: &str| {
        let call = host.call(&format!("unset REXEC_INSIDE; {}", script(shell)));
        call.env(&format!("REXEC_SOCKET={}", host.socket().display())).run(Target::Real)
    };
    let (theirs, ours) =
        (call("/bin/bash"), call(&crate::support::programs::shims().join("bash").display().to_string()));
    assert!(theirs.out().contains("SCHED_BATCH") && theirs.out().contains("00040000"), "{theirs:?}");
    assert_eq!((ours.out(), ours.code()), (theirs.out(), theirs.code()), "{ours:?}");
    host.wait_for("the command", |journal| journal.of_type("end").next().cloned());
}
