//! Verbs about commands that run: pause, resume, kill with a signal, status.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::support::call::{Calling, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::reader::Reader;
use crate::support::terminal::Terminal;
use crate::support::waiting::{self, PATIENCE};

/// What rexec prints beside this host, and its exit code.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn rexec(host: &Host, args: &[&str]) -> Said {
    let mut command = programs::command(programs::rexec());
    command.args(args).env_clear().env("PATH", programs::PATH).stdin(Stdio::null());
    command.env("REXEC_SOCKET", host.socket()).env("REXEC_HOME", host.journal_home());
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Said { code: status.code().expect("it exits"), out: text(stdout), err: text(stderr) }
}

pub(crate) fn start(host: &Host, name: &str, script: &str) -> Calling {
    let call = host.call(script).env(&format!("REXEC_WHOAMI={name}"));
    call.start(Target::Shim(&host.socket())).expect("the shim starts")
}

/// The processes whose numbers the command has written into `pids`, once there are this many.
pub(super) fn processes(host: &Host, count: usize) -> Vec<Process> {
    let pids = || {
        let text = fs::read_to_string(host.home.join("pids")).unwrap_or_default();
        let found: Vec<Process> =
            text.split_ascii_whitespace().filter_map(|pid| Process::of(pid.parse().ok()?)).collect();
        (found.len() >= count).then_some(found)
    };
    waiting::until(PATIENCE, pids).expect("the command starts")
}

fn state(process: &Process) -> char {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

/// A tree of four processes, whose numbers it writes into `pids`.
///
/// A shell that uses vfork(2) waits in the kernel while its child has not executed its program. If that child is stopped,
/// the shell stands still as well, but is not in state T; so the one in a session of its own has its child already.
const TREE: &str = "echo $$ >>pids; sleep 1000 & echo $! >>pids; \
                    setsid sh -c 'sleep 1000 & echo $$ >>pids; wait' & \
                    (kill -STOP $BASHPID) & echo $! >>pids; until test -e go; do sleep 0.05; done; echo went on; kill %1";

#[test]
fn a_paused_command_stands_still_and_goes_on_where_it_was() {
    let host = Host::start();
    let mut calling = start(&host, "Ann", TREE);
    let tree = processes(&host, 4);
    let stopped = &tree[2..];
    assert!(waiting::until_true(PATIENCE, || stopped.iter().any(|process| state(process) == 'T')));
    let said = rexec(&host, &["pause", "#1"]);
    assert_eq!((said.code, said.out.as_str()), (0, "#1 is paused\n"), "{}", said.err);
    // The kernel stops a process at its next return to its own code, which on a busy machine comes after the answer.
    waiting::wait_until("the stop", || tree.iter().all(|process| state(process) == 'T'));
    assert!(rexec(&host, &["ps"]).out.contains("paused"));
    assert_eq!(rexec(&host, &["status", "--short"]).out, "1 run, 1 paused\n");
    fs::write(host.home.join("go"), "").expect("a file");
    assert!(rexec(&host, &["pause", "--all"]).err.contains("nothing runs that can be paused"));
    assert!(tree.iter().all(|process| state(process) == 'T'), "it noticed the file");
    let said = rexec(&host, &["resume", "--agent", "ann"]);
    assert_eq!((said.code, said.out.as_str()), (0, "#1 goes on\n"), "{}", said.err);
    let (mut out, mut code) = (String::new(), 0);
    // What the command itself stopped stays so, and is hung up at its end.
    waiting::wait_until("its end", || {
        let outcome = calling.finish_early(PATIENCE);
        outcome.is_some_and(|seen| {
            (out, code) = (seen.out(), seen.code());
            true
        })
    });
    assert_eq!((out.as_str(), code), ("went on\n", 0));
    waiting::wait_until("the console tells", || host.console_text().contains("#1 is paused: you asked"));
    let said = rexec(&host, &["kill", "1"]);
    assert!(said.code == 0 || said.err.contains("no command #1 runs"), "{}", said.err);
    host.finish();
}

/// For kill(1), `-1` means every process, so `rexec kill` takes it for a mistake.
#[test]
fn the_newest_command_is_minus_one() {
    let host = Host::start();
    let first = start(&host, "Ann", "echo $$ >>pids; exec sleep 1000");
    processes(&host, 1);
    let second = start(&host, "Ann", "echo $$ >>pids; echo said; exec sleep 1000");
    processes(&host, 2);
    host.wait_for("both starts", |journal| (journal.of_type("start").count() == 2).then_some(()));
    assert_eq!(rexec(&host, &["pause", "-1"]).out, "#2 is paused\n");
    assert_eq!(rexec(&host, &["resume", "-2"]).err.lines().next(), Some("rexec: #1 is not paused"));
    assert_eq!(rexec(&host, &["resume", "-1"]).out, "#2 goes on\n");
    assert_eq!(rexec(&host, &["wait", "-1", "--text", "said"]).code, 0);
    assert!(rexec(&host, &["send", "-1", "--", "-1"]).err.contains("#2 does not wait for an answer"));
    assert_eq!((rexec(&host, &["attach", "-3"]).code, rexec(&host, &["kill", "-1"]).code), (3, 2));
    for seq in ["1", "2"] {
        assert_eq!(rexec(&host, &["kill", seq]).code, 0);
    }
    drop((first, second));
    host.finish();
}

/// A process that is started during the pause, and that nobody has stopped, stops for a read of its own.
#[test]
fn a_process_that_asks_during_a_pause_gets_end_of_file_when_the_command_goes_on() {
    let host = Host::with(PLAIN);
    let script = "echo $$ >pids; until test -e go; do sleep 0.01; done; \
                  (sh -c 'echo $$ >asker.new; mv asker.new asker; read x </dev/tty; echo asked >done' &); \
                  until test -e done; do sleep 0.01; done; echo over";
    let mut call = start(&host, "claude", script);
    let guard = processes(&host, 1)[0].parent;
    assert_eq!(rexec(&host, &["pause", "#1"]).code, 0);
    // The guard knows of the pause, and the command goes on by another hand.
    fs::write(host.home.join("go"), "").expect("a file");
    let asker = || fs::read_to_string(host.home.join("asker")).ok()?.trim().parse::<i32>().ok().and_then(Process::of);
    let has_asked = waiting::until_true(PATIENCE, || {
        let ours = |process: &Process| asker().is_none_or(|asker| asker.pid != process.pid);
        crate::support::procs::descendants(guard)
            .iter()
            .filter(|process| ours(process))
            .for_each(|process| process.signal(nix::sys::signal::Signal::SIGCONT));
        asker().is_some_and(|asker| asker.state == 'T' && asker.parent == guard)
    });
    assert!(has_asked, "it never asked");
    assert!(waiting::until_true(PATIENCE, || Process::of(guard).is_some_and(|guard| guard.state == 'S')));
    let said = rexec(&host, &["resume", "#1"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let outcome = call.finish(PATIENCE).expect("it goes on");
    assert!(outcome.out().contains("over"), "{outcome:?}");
}

#[test]
fn a_paused_command_can_be_ended_by_a_person_and_by_its_caller() {
    let host = Host::start();
    let mut first = start(&host, "Ann", "echo $$ >>pids; sleep 1000; :");
    let tree = processes(&host, 1);
    assert_eq!(rexec(&host, &["pause", "1"]).code, 0);
    assert_eq!(rexec(&host, &["kill", "1"]).out, "#1 has ended\n");
    assert_eq!(first.finish(PATIENCE).expect("it ends").code(), 143);
    assert!(!tree[0].is_alive());
    fs::remove_file(host.home.join("pids")).expect("the file");
    let second = start(&host, "Ann", "echo $$ >>pids; setsid sleep 1000 & echo $! >>pids; wait");
    let tree = processes(&host, 2);
    assert_eq!(rexec(&host, &["pause", "2"]).code, 0);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(second.pid()), nix::sys::signal::Signal::SIGKILL).expect("ours");
    assert!(waiting::until_true(PATIENCE, || !tree.iter().any(Process::is_alive)), "{:?}", host.tree());
    drop(second);
    host.finish();
}

#[test]
fn a_signal_reaches_the_command_and_what_it_left() {
    let host = Host::with(Setup { flags: &["--grace", "60"], ..PLAIN });
    let mut calling =
        start(&host, "Ann", "trap 'echo hup' HUP; trap '' TERM; echo $$ >>pids; while :; do sleep 0.1; done");
    processes(&host, 1);
    assert_eq!(rexec(&host, &["kill", "--signal", "SIGHUP", "1"]).out, "#1 got the signal\n");
    // It ignores SIGTERM and the grace is long, so only SIGKILL ends it in time.
    let said = rexec(&host, &["kill", "-s", "9", "1"]);
    assert_eq!((said.code, said.out.as_str()), (0, "#1 has ended\n"), "{}", said.err);
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 137);
    fs::remove_file(host.home.join("pids")).expect("the file");
    assert_eq!(
        host.run("(trap 'echo usr1 >>heard; exit' USR1; echo $BASHPID >>pids; while :; do sleep 0.05; done) &").code(),
        0
    );
    let left = processes(&host, 1);
    assert_eq!(rexec(&host, &["kill", "--signal", "usr1", "2"]).code, 0);
    assert!(waiting::until_true(PATIENCE, || !left[0].is_alive()));
    let said = rexec(&host, &["kill", "--signal", "INT", "77"]);
    assert_eq!((said.code, said.err.contains("no command #77 runs")), (3, true), "{}", said.err);
    host.finish();
}

#[test]
fn the_status_says_what_runs_and_how_commands_ended() {
    let host = Host::start();
    assert_eq!(rexec(&host, &["status", "--short"]).out, "idle\n");
    assert_eq!(host.run("exit 3").code(), 3);
    assert_eq!(host.run("exit 0").code(), 0);
    let calling = start(&host, "Ann", "echo $$ >>pids; sleep 1000; :");
    processes(&host, 1);
    let (mut status, mut value) = (String::new(), serde_json::Value::Null);
    // A command counts as left until its guard has reported that no process is.
    let is_told = waiting::until_true(PATIENCE, || {
        status = rexec(&host, &["status", "--json"]).out;
        value = serde_json::from_str(&status).expect("JSON");
        let counts = ["commands", "failed", "running", "paused", "left"].map(|name| value[name].as_u64());
        counts == [Some(3), Some(1), Some(1), Some(0), Some(0)]
    });
    assert!(is_told, "{status}");
    assert_eq!((&value["last"]["seq"], &value["last"]["exit"]), (&2.into(), &0.into()), "{status}");
    let said = rexec(&host, &["status"]).out;
    assert!(
        said.contains("1 run: Ann\nsession 2") && said.contains(": 3 commands, 1 failed\n#2 of shell ended"),
        "{said}"
    );
    assert_eq!(rexec(&host, &["kill", "--all"]).code, 0);
    drop(calling);
    let socket = host.socket();
    host.finish();
    let gone = programs::command(programs::rexec()).args(["status", "--short"]).env("REXEC_SOCKET", socket).output();
    let gone = gone.expect("the program starts");
    assert_eq!((gone.status.code(), gone.stdout.as_slice(), gone.stderr.as_slice()), (Some(127), &b""[..], &b""[..]));
}

/// An update puts another file in the place of the program that runs.
#[test]
fn the_status_names_a_host_whose_program_was_replaced() {
    const WRAPPER: &[&str] = &["sh", "-c", "cp \"$0\" program; exec ./program \"$@\""];
    let host = Host::with(Setup { wrapper: WRAPPER, ..PLAIN });
    let says = |what: &str| rexec(&host, &["status"]).out.contains(what);
    let replaced = "its program was replaced after it had started: restart rexec-host";
    assert!(!says(replaced));
    std::fs::remove_file(host.home.join("program")).expect("the copy is there");
    assert!(says(replaced));
    host.finish();
}

/// What a person sees on a terminal of this width: the lines without their colours.
fn on_terminal(host: &Host, args: &[&str], columns: u16) -> Vec<String> {
    let mut command = programs::command(programs::rexec());
    command.args(args).env_clear().env("REXEC_SOCKET", host.socket());
    shown_by(command, columns)
}

/// What a person sees of a program that ends with 0 or 1, on a terminal of this width: the lines without their colours.
pub(crate) fn shown_by(mut command: Command, columns: u16) -> Vec<String> {
    let terminal = Terminal::new(columns, 40);
    command.env("TERM", "xterm-256color");
    let shown = Reader::new(terminal.master_file().into(), usize::MAX);
    let mut child = command.stdin(Stdio::null()).stdout(terminal.slave()).spawn().expect("the program starts");
    assert!(matches!(child.wait().expect("it ends").code(), Some(0 | 1)));
    let text = String::from_utf8(shown.to_silence()).expect("text");
    let mut plain = String::new();
    for (at, part) in text.split("\x1b[").enumerate() {
        plain += if at == 0 { part } else { part.split_once('m').expect("a colour").1 };
    }
    plain.replace('\r', "").lines().map(str::to_owned).collect()
}

#[test]
fn the_list_fits_every_terminal_and_names_what_matters() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::start();
    let ports = "import os, socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); \
                 open('port', 'w').write(str(s.getsockname()[1])); open('pids', 'a').write(f'{os.getpid()}\\n'); time.sleep(1000)";
    let server = start(&host, "Claude Code", &format!("python3 -c \"{ports}\"\necho over"));
    processes(&host, 1);
    let left = start(&host, "Codex", "sleep 1000 >/dev/null 2>&1 & echo $! >>pids");
    processes(&host, 2);
    waiting::wait_until("the second command is over", || rexec(&host, &["ps"]).out.contains("left"));
    let port = fs::read_to_string(host.home.join("port")).expect("the port");
    for columns in [30, 40, 60, 80, 120, 200] {
        let status = on_terminal(&host, &["status"], columns);
        assert!(status.iter().all(|line| line.chars().count() <= columns.into()), "{columns}: {status:#?}");
        for args in [&["ps"][..], &["ps", "-v"]] {
            let lines = on_terminal(&host, args, columns);
            assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{columns}: {lines:#?}");
            let is_whole = lines.len() >= 4 && lines[1].contains("running");
            assert!(is_whole && lines.iter().any(|line| line.contains("left")), "{columns}, {args:?}: {lines:#?}");
        }
    }
    let lines = on_terminal(&host, &["ps"], 120);
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!((words[0], words[1], words[3]), ("1", "claude", "running"), "{lines:#?}");
    assert!(words.contains(&port.as_str()) && lines[1].ends_with("⏎ +1 line"), "{lines:#?}");
    assert!(lines[2].ends_with(" sleep 1000 >/dev/null 2>&1 & echo $! >>pids +1 process"), "{lines:#?}");
    assert!(lines[3].starts_with("2 commands of 2 agents · rexec kill N"), "{lines:#?}");
    let json = rexec(&host, &["ps", "--json"]).out;
    let runs: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((runs.len(), &runs[0]["ports"][0]), (2, &port.parse::<u64>().expect("a number").into()), "{json}");
    assert!(runs[0]["rss_bytes"].as_u64() > Some(1_000_000) && json.starts_with("{\"v\":1,\"seq\":1,"), "{json}");
    assert_eq!(rexec(&host, &["kill", "--all"]).code, 0);
    drop((server, left));
    host.finish();
}
