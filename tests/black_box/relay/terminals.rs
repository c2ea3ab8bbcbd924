//! Callers with a terminal: what becomes of it when somebody is killed, hangs up, is slow, or shares it with other files.

use std::io::Write;
use std::time::Duration;

use super::demand::started;
use super::interaction::{TERMINAL, shells};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::host::{Host, MIRROR};
use crate::support::procs;
use crate::support::temp::TempDir;
use crate::support::typist::{At, Typist};
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::Ended;

/// A shim that relays `SCRIPT` and has begun.
fn relaying(host: &Host, home: &TempDir, script: &str) -> Typist {
    let [_, (shell, env)] = shells(host);
    let mut typist = Typist::start(&shell, &["bash", "-c", script], &env, home.path(), TERMINAL);
    typist.sees("begun");
    assert!(typist.is_raw());
    typist
}

/// The same below a shell that leads the session and stays when the shim has ended: the kernel resets the modes of a
/// terminal whose session leader ends.
fn relaying_below(host: &Host, home: &TempDir, script: &str, stdin: &str) -> Typist {
    let [_, (shell, env)] = shells(host);
    let script = format!("$SH -c '{script}' {stdin}; echo code $?; read x; exit");
    let mut typist = started(&script, &shell, &env, home.path());
    typist.sees("begun");
    assert!(typist.is_raw());
    typist
}

fn shim_of(typist: &Typist) -> Pid {
    Pid::from_raw(procs::children(typist.warden.pid()).first().expect("the shim").pid)
}

#[test]
fn the_terminal_is_as_it_was_whoever_is_killed() {
    kill_each("echo begun $PPID; exec sleep 1000", "");
}

#[test]
fn a_terminal_on_demand_is_as_it_was_whoever_is_killed() {
    kill_each("echo begun $PPID; read x </dev/tty", "</dev/null");
}

#[test]
fn modes_that_a_command_has_set_do_not_outlast_a_kill() {
    kill_each("stty -echo -icanon erase +; echo begun $PPID; exec sleep 1000", "");
    kill_each("stty -F /dev/tty -echo -icanon erase +; echo begun $PPID; read x </dev/tty", "</dev/null");
}

fn kill_each(script: &str, stdin: &str) {
    let home = TempDir::new(None);
    let host = Host::with(MIRROR);
    let relaying = |host: &Host| relaying_below(host, &home, script, stdin);
    let ends = |mut typist: Typist, code: &str| {
        typist.sees(code);
        assert!(typist.has_its_modes(true), "{code}: {:?}", typist.terminal.modes());
        typist.types(b"\r");
        assert_eq!(typist.ends(), Ended::Code(0));
    };

    let typist = relaying(&host);
    kill(shim_of(&typist), Signal::SIGKILL).expect("it runs");
    ends(typist, "code 137");
    host.wait_idle();

    let mut typist = relaying(&host);
    let line = typist.sees("\n");
    let guard = line.trim().parse().expect("the guard's number");
    kill(Pid::from_raw(guard), Signal::SIGKILL).expect("it runs");
    ends(typist, "again\r\ncode 125");
    host.wait_idle();

    let typist = relaying(&host);
    let (_home, mut warden) = host.kill();
    ends(typist, "code 125");
    assert!(warden.is_empty_within(PATIENCE));

    let host = Host::with(MIRROR);
    let typist = relaying(&host);
    host.stop();
    kill(shim_of(&typist), Signal::SIGKILL).expect("it runs");
    let (_home, mut warden) = host.kill();
    ends(typist, "code 137");
    assert!(warden.is_empty_within(PATIENCE));
}

#[test]
fn a_terminal_that_hangs_up_hangs_up_the_command() {
    let host = Host::with(MIRROR);
    // What the trap writes first fails, as on any terminal that hung up. It brings no SIGPIPE.
    let script = "trap 'echo out; echo err >&2; sleep 0.3; echo hup > hup; exit' HUP; echo > begun; while :; do sleep 0.05; done";
    for (shell, env) in shells(&host) {
        for at in [TERMINAL, [At::Null, At::Terminal, At::Terminal], [At::Null, At::Terminal, At::Null]] {
            let home = TempDir::new(None);
            let typist = Typist::blind(&shell, &["bash", "-c", script], &env, home.path(), at);
            assert!(waiting::until_true(PATIENCE, || home.join("begun").exists()));
            let mut warden = typist.hangs_up();
            let ended = warden.wait(PATIENCE);
            let case = format!("{} {at:?}", shell.display());
            assert!(ended.is_some(), "{case} does not end: {:#?}", warden.tree());
            assert!(waiting::until_true(PATIENCE, || home.join("hup").exists()), "{case} ran no trap: {ended:?}");
        }
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
    let before = procs::memory(host.pid());
    let script = "echo begun; head -c 8000000 /dev/zero | tr '\\0' x; echo; echo end";
    // ^S: the terminal itself takes no more.
    let mut typist = Typist::start(&shell, &["bash", "-c", script], &env, home.path(), TERMINAL);
    typist.sees("begun");
    typist.types(b"\x13");
    procs::wait_until_held(host.pid(), "tr");
    let grown = procs::memory(host.pid()).saturating_sub(before);
    assert!(grown < 4 << 20, "the host has grown by {grown}");
    typist.types(b"\x11");
    typist.sees("end");
    assert_eq!((typist.ends(), typist.has_its_modes(true)), (Ended::Code(0), true));
}

#[test]
fn a_terminal_that_is_read_late_gets_every_line_in_order() {
    const LINES: u32 = 1_000_000;
    let home = TempDir::new(None);
    let host = Host::with(MIRROR);
    let [_, (shell, env)] = shells(&host);
    let before = procs::memory(host.pid());
    let argv = ["bash", "-c", &format!("seq {LINES}; echo end")];
    let mut typist = Typist::blind(&shell, &argv, &env, home.path(), TERMINAL);
    let writer = || host.tree().into_iter().find(|process| process.comm == "seq");
    let writer = waiting::until(PATIENCE, writer).expect("it begins").pid;
    let written = || std::fs::read_to_string(format!("/proc/{writer}/io")).expect("it still writes");
    waiting::until_steady(Duration::from_millis(200), written);
    let grown = procs::memory(host.pid()).saturating_sub(before);
    assert!(grown < 4 << 20, "the host has grown by {grown}");
    assert_eq!(host.run("echo beside").out(), "beside\n");
    typist.sees("end");
    assert_eq!(typist.ends(), Ended::Code(0));
    let expected: String = (1..=LINES).map(|n| format!("{n}\r\n")).chain(["end\r\n".to_owned()]).collect();
    assert!(typist.screen() == expected, "{} of {} bytes came", typist.screen().len(), expected.len());
}

#[test]
fn in_every_other_mixture_the_terminal_is_left_alone() {
    use At::{Null, Pipe, Terminal};
    let host = Host::with(MIRROR);
    const SCRIPT: &str = "for n in 0 1 2; do [ -t $n ] && printf 't%s ' $n; done >&9; echo out; echo err >&2; \
                          read -t 60 x; echo \"[$x]\" >&9";
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

#[test]
fn a_window_of_any_size_is_the_commands_too() {
    let host = Host::with(MIRROR);
    let script = "read x; $SH -c 'stty size; trap \"stty size; exit\" WINCH; echo begun; while :; do sleep 0.02; done'";
    for (cols, rows) in [(0, 0), (5000, 1000), (65535, 65535), (1, 0)] {
        let seen = shells(&host).map(|(shell, env)| {
            let home = TempDir::new(None);
            let mut typist = started(script, &shell, &env, home.path());
            typist.resizes(cols, rows);
            typist.types(b"\r");
            typist.sees("begun\r\n");
            typist.resizes(80, 24);
            typist.sees("24 80\r\n");
            assert_eq!(typist.ends(), Ended::Code(0));
            typist.screen()
        });
        assert_eq!(seen[0], seen[1], "{cols} columns, {rows} rows");
        assert!(seen[0].contains(&format!("{rows} {cols}\r\n")), "{:?}", seen[0]);
    }
}

#[test]
fn modes_that_a_command_leaves_last() {
    let host = Host::with(MIRROR);
    for (script, stdin) in [
        ("stty -echo; echo begun", ""),
        ("stty raw -echo erase + min 3; echo begun; exit 3", ""),
        ("stty -ixon tostop; echo begun; stty ixon", ""),
        ("echo begun", ""),
        ("exec </dev/tty; stty -echo; echo begun", "</dev/null"),
        ("exec </dev/tty; stty raw -echo erase +; exec </dev/null; sleep 0.1; echo begun", "</dev/null"),
        ("stty -F /dev/tty -echo; stty -F /dev/tty echo; echo begun", "</dev/null"),
        ("stty -F /dev/tty -echo; kill -TERM $$", "</dev/null"),
    ] {
        let left = shells(&host).map(|(shell, env)| {
            let home = TempDir::new(None);
            let script = format!("$SH -c '{script}' {stdin}; echo left; read x; exit 0");
            let mut typist = started(&script, &shell, &env, home.path());
            typist.sees("left");
            let modes = typist.terminal.modes();
            typist.types(b"\n\n\n");
            (typist.ends(), modes)
        });
        let is_killed = script.contains("kill");
        assert!(is_killed || left[0] == left[1], "{script:?}: {left:?}");
        assert_eq!(left[0].0, left[1].0);
    }
}
