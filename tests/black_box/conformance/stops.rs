//! Stops at the terminal: programs that ask again and again, programs that survive the hang-up, programs that stay
//! stopped, and programs that must be left alone.

use std::fs;

use nix::sys::signal::Signal;

use super::prompts::{HANG, UNANSWERED, describe, notes};
use crate::support::call::{Call, Outcome, Target};
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// A host that gives every command's output a terminal, and end of file at once to what reads it.
fn on_terminal(script: &str, check: impl Fn(&Outcome) -> bool) {
    ends_on(PLAIN, script, check);
}

/// The same, and on pipes, with a terminal at which nobody answers.
fn everywhere(script: &str, check: impl Fn(&Outcome) -> bool) {
    on_terminal(script, &check);
    ends_on(UNANSWERED, script, check);
}

fn ends_on(setup: Setup, script: &str, check: impl Fn(&Outcome) -> bool) {
    let host = Host::with(setup);
    let call = host.call(script).env("REXEC_SANITIZE=strip");
    let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
    let Some(seen) = calling.finish(HANG) else { panic!("{script} hangs: {:#?}", host.tree()) };
    assert!(check(&seen), "{script} {:?} {}", setup.flags, describe(&seen));
    host.finish();
}

#[test]
fn a_program_that_reads_again_and_again_is_hung_up() {
    // Without a terminal to open, this loop would run for ever, with the real shell, too.
    on_terminal("while :; do read x </dev/tty; done; echo end", |seen| {
        (seen.code(), seen.out().as_str()) == (129, "") && notes(seen) == ["bash"]
    });
    on_terminal("timeout 60 sh -c 'while :; do read x </dev/tty; done'; echo $? end", |seen| {
        (seen.code(), seen.out().as_str()) == (0, "129 end\n") && notes(seen) == ["sh"]
    });
}

#[test]
fn a_program_that_ignores_the_end_of_input_is_hung_up() {
    if programs::has("python3") {
        let script = "python3 -c 'while True:
    try: input()
    except EOFError: pass' </dev/tty; echo end";
        everywhere(script, |seen| (seen.code(), seen.out().as_str()) == (0, "end\n") && notes(seen) == ["python3"]);
    }
}

/// What its shell writes next belongs to no screen, and a program that reads next reads lines.
#[test]
fn the_terminal_comes_back_from_a_full_screen_program_that_is_hung_up() {
    if !programs::has("less") {
        return;
    }
    let script = "less /etc/services >/dev/tty; seq 100; read x </dev/tty; echo $? end";
    let expected = (1..=100).map(|n| format!("{n}\n")).collect::<String>() + "1 end\n";
    for setup in [PLAIN, UNANSWERED] {
        let host = Host::with(setup);
        let seen = host.call(script).env("REXEC_SANITIZE=collapse").run(Target::Shim(&host.socket()));
        assert!(seen.out().ends_with(&expected) && !seen.out().contains("(END)"), "{}", describe(&seen));
        assert_eq!((seen.code(), notes(&seen)), (0, vec!["less".to_owned()]), "{}", describe(&seen));
        let shown = || host.console_text().lines().any(|line| line == "100");
        assert!(waiting::until_true(PATIENCE, shown), "{}", host.console_text());
        host.finish();
    }
}

#[test]
#[ignore = "long: programs that are hung up again and again"]
fn a_loop_around_a_program_that_is_hung_up_ends() {
    let ask = "sh -c 'while read x </dev/tty || :; do :; done'";
    on_terminal(&format!("{ask}; {ask}; echo end"), |seen| (seen.code(), seen.out().as_str()) == (0, "end\n"));
    on_terminal(&format!("until {ask}; do :; done; echo end"), |seen| (seen.code(), seen.out().as_str()) == (129, ""));
}

#[test]
#[ignore = "long: waits out the time after a hang-up"]
fn a_program_that_survives_the_hang_up_and_reads_on_is_killed() {
    on_terminal("trap '' HUP; while :; do read x </dev/tty; done; echo end", |seen| {
        (seen.code(), seen.out().as_str()) == (137, "") && notes(seen) == ["bash"]
    });
    on_terminal("timeout 60 sh -c 'trap \"\" HUP; while :; do read x </dev/tty; done'; echo $? end", |seen| {
        (seen.code(), seen.out().as_str()) == (0, "137 end\n")
    });
}

/// It restores the terminal's modes when it is hung up, as editors do, but its shell is gone by then.
#[test]
fn what_is_left_and_wants_the_terminal_again_ends() {
    if !programs::has("python3") {
        return;
    }
    let script = "python3 -c 'import os, signal, termios, time
signal.signal(signal.SIGHUP, signal.SIG_IGN); f = os.open(\"/dev/tty\", os.O_RDWR)
shell = os.getppid(); print(os.getpid(), flush=True)
while os.getppid() == shell: time.sleep(0.01)
while True: termios.tcsetattr(f, termios.TCSANOW, termios.tcgetattr(f))' >pid & until test -s pid; do :; done; echo end";
    let host = Host::start();
    assert_eq!(host.run(script).out(), "end\n");
    let pid = fs::read_to_string(host.home.join("pid")).expect("it ran").trim().parse().expect("a pid");
    let is_gone = || Process::of(pid).is_none_or(|process| process.is_zombie());
    assert!(waiting::until_true(PATIENCE, is_gone), "it lives on: {:#?}", host.tree());
    host.finish();
}

#[test]
fn what_is_left_stopped_goes_on_and_is_hung_up() {
    let host = Host::start();
    let script = "sh -c 'trap \"echo hup >told; exit\" HUP; kill -STOP $$; echo on >told' & \
                  until grep -q '(sh) T' /proc/$!/stat; do :; done; echo end";
    assert_eq!(host.run(script).out(), "end\n");
    let told = || fs::read_to_string(host.home.join("told")).ok().filter(|text| !text.is_empty());
    assert_eq!(waiting::until(PATIENCE, told).as_deref(), Some("hup\n"));
    host.finish();
}

/// A multiplexer's sleeping jobs, for example: their terminal is another one.
#[test]
fn what_is_left_stopped_elsewhere_is_let_be() {
    let host = Host::start();
    let script = "setsid sh -c 'echo $$ >pid; kill -STOP $$; echo on >told' & \
                  until test -s pid && grep -q '(sh) T' /proc/$(cat pid)/stat; do :; done; echo end";
    assert_eq!(host.run(script).out(), "end\n");
    let pid = fs::read_to_string(host.home.join("pid")).expect("it ran").trim().parse().expect("a pid");
    let left = Process::of(pid).expect("it was left");
    assert_eq!(left.state, 'T');
    left.signal(Signal::SIGCONT);
    let told = || fs::read_to_string(host.home.join("told")).ok().filter(|text| !text.is_empty());
    assert_eq!(waiting::until(PATIENCE, told).as_deref(), Some("on\n"));
    host.finish();
}

/// Its guard looks for it several times meanwhile.
#[test]
#[ignore = "long: waits for what must not come"]
fn a_program_that_does_not_touch_the_terminal_again_is_never_signalled() {
    let told = "for s in HUP INT QUIT TERM CONT USR1 TSTP; do trap \"echo $s\" $s; done";
    let lasting = "sleep 8 & while ! wait $!; do :; done";
    everywhere(&format!("stty sane </dev/tty; {told}; {lasting}; echo end"), |seen| {
        (seen.code(), seen.out().as_str()) == (0, "end\n") && notes(seen).is_empty()
    });
}

#[test]
fn prompts_of_several_runs_do_not_meet() {
    let host = Host::start();
    let socket = host.socket();
    let start = |script: &str| {
        let call: Call = host.call(script);
        call.start(Target::Shim(&socket)).expect("the shim starts")
    };
    let lines = 2_000;
    let mut printing = start(&format!("for ((i = 1; i <= {lines}; i++)); do echo $i; ((i % 50)) || sleep 0.05; done"));
    let mut reading =
        [start("read x </dev/tty; echo one $?"), start("timeout 60 sh -c 'read x </dev/tty; echo two $?'")];
    let [one, two] = reading.each_mut().map(|calling| calling.finish(HANG).expect("it ends"));
    assert_eq!((one.out(), notes(&one)), ("one 1\n".to_owned(), vec!["bash".to_owned()]));
    assert_eq!((two.out(), notes(&two)), ("two 1\n".to_owned(), vec!["sh".to_owned()]));
    let printed = printing.finish(HANG).expect("it ends");
    let expected: String = (1..=lines).map(|n| format!("{n}\n")).collect();
    assert_eq!((printed.code(), printed.out(), printed.err()), (0, expected, String::new()));
    host.finish();
}

/// The group of a caller that leads its session, or is in its leader's group, is orphaned: only SIGSTOP stops it.
#[test]
fn the_signals_of_keys_stop_nothing_in_an_orphaned_group() {
    if !programs::has("setsid") {
        return;
    }
    let commands = [
        "kill -TSTP $$; echo after",
        "kill -TTIN $$; kill -TTOU $$; echo after",
        "sh -c 'kill -TSTP $$; echo below'; echo $? after",
        "sleep 0.1 & kill -TSTP $!; wait; echo after",
        "(until grep -q ') T' /proc/$$/stat; do :; done; kill -CONT $$) & kill -STOP $$; echo after",
        "set -m; sleep 1000 & kill -TSTP $!; until grep -q ') T' /proc/$!/stat; do :; done; echo a job stops; kill -KILL $!",
    ];
    let host = Host::with(MIRROR);
    for starts in ["exec setsid -w $SH -c \"$COMMAND\"", "setsid -w sh -c '$SH -c \"$COMMAND\"; exit $?'"] {
        for command in commands {
            let seen = [Target::Real, Target::Shim(&host.socket())].map(|target| {
                let shell = format!("SH={}", target.program("bash").display());
                let call = host.call(starts).env(&shell).env(&format!("COMMAND={command}")).env("REXEC_INSIDE=");
                let call = call.env(&format!("REXEC_SOCKET={}", host.socket().display()));
                let mut calling = call.start(Target::Real).expect("it starts");
                calling.finish(HANG).unwrap_or_else(|| panic!("{command} hangs: {:#?}", host.tree()))
            });
            assert_eq!((seen[0].code(), seen[0].out()), (seen[1].code(), seen[1].out()), "{starts} {command}");
        }
    }
    host.finish();
}

/// The shell that started it as a job ends, and was its group's only tie to its session.
#[test]
fn a_group_that_is_orphaned_meanwhile_is_so_for_its_command() {
    if !programs::has("setsid") {
        return;
    }
    let alone = "until test -s first && ! test -e /proc/$(cat first); do :; done";
    let stopped = "until test -s shell && grep -q ') T' /proc/$(cat shell)/stat; do :; done";
    let cases = [
        (format!("{alone}; kill -TSTP $$; kill -TTIN $$; kill -TTOU $$; echo after"), ""),
        ("trap '' HUP; echo $$ >shell; kill -TSTP $$; echo after".to_owned(), stopped),
        ("trap 'echo hup' HUP; echo $$ >shell; kill -STOP $$; echo after".to_owned(), stopped),
    ];
    let host = Host::with(MIRROR);
    for job in ["$SH -c \"$COMMAND\"", "($SH -c \"$COMMAND\"; exit $?)"] {
        for (command, wait) in &cases {
            let starts = format!("setsid -w bash -c 'set -m; {job} & disown; echo $$ >first; eval \"$WAIT\"'");
            let seen = [Target::Real, Target::Shim(&host.socket())].map(|target| {
                let _ = ["first", "shell"].map(|file| fs::remove_file(host.home.join(file)));
                let shell = format!("SH={}", target.program("bash").display());
                let call = host
                    .call(&starts)
                    .env(&shell)
                    .env(&format!("COMMAND={command}"))
                    .env("REXEC_INSIDE=")
                    .env(&format!("WAIT={wait}"));
                let call = call.env(&format!("REXEC_SOCKET={}", host.socket().display()));
                let mut calling = call.start(Target::Real).expect("it starts");
                calling.finish(HANG).unwrap_or_else(|| panic!("{command} hangs: {:#?}", host.tree()))
            });
            assert_eq!((seen[0].code(), seen[0].out()), (seen[1].code(), seen[1].out()), "{starts} {command}");
        }
    }
    host.finish();
}
