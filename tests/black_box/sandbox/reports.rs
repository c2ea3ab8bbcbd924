//! Commands that run in their callers' sandboxes are shown, journalled and can be ended, and run as with bash.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::{TABLE, has_sight, run, users};
use crate::support::call::{Call, Calling, Outcome, Target};
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// A call whose shell enters a sandbox that every kernel has, and is the shim there.
pub(crate) fn caged(host: &Host, script: &str) -> Call {
    let shim = programs::shims().join("bash");
    let call =
        host.call(&format!("unset REXEC_INSIDE; exec setpriv --no-new-privs '{}' -c \"$SCRIPT\"", shim.display()));
    call.env(&format!("REXEC_SOCKET={}", host.socket().display())).env(&format!("SCRIPT={script}"))
}

/// The same with bash in place of the shim.
pub(super) fn plain(host: &Host, script: &str) -> Call {
    host.call("exec setpriv --no-new-privs bash -c \"$SCRIPT\"").env(&format!("SCRIPT={script}"))
}

pub(crate) fn can_run() -> bool {
    has_sight() && programs::has("setpriv")
}

pub(super) fn ended(host: &Host, command: &str) -> Value {
    host.wait_for("the end of a reported command", |journal| journal.end_of(command).cloned())
}

pub(super) fn rexec(host: &Host, args: &[&str]) -> String {
    let mut command = programs::command(programs::rexec());
    let output = command.args(args).env("REXEC_SOCKET", host.socket()).output().expect("it starts");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

pub(super) fn begin(host: &Host, script: &str) -> (Calling, u64) {
    let calling = caged(host, script).start(Target::Real).expect("it starts");
    let is_it = |start: &&Value| start["command"].as_str() == Some(script);
    let start = host.wait_for("its start", |journal| journal.of_type("start").find(is_it).cloned());
    (calling, start["seq"].as_u64().expect("a number"))
}

#[test]
#[ignore = "long: 14 kinds of sandbox, as every user"]
fn commands_in_every_sandbox_are_journalled_and_shown() {
    if !can_run() {
        return;
    }
    let mut wrong = Vec::new();
    for user in users() {
        let host = Host::with(Setup { user, ..PLAIN });
        let is_root = user.is_none() && nix::unistd::geteuid().is_root();
        let mut count = 0;
        // Its first child would be the init of a namespace, so the shim makes none and reports nothing.
        let is_init = |enter: &str| enter == "unshare --pid";
        let usable = |enter: &str, needs_root: bool| (is_root || !needs_root) && !is_init(enter);
        for sandbox in TABLE.iter().filter(|sandbox| usable(sandbox.enter, sandbox.needs_root)) {
            let seen = run(&host, sandbox);
            if seen.code() == 77 || seen.code() == 127 {
                continue;
            }
            count += 1;
            if (seen.out().as_str(), seen.err().as_str(), seen.code()) != ("inside\n", "", 0) {
                wrong.push(format!("{} {user:?}: {seen:?}", sandbox.enter));
            }
            let is_there = || host.journal().of_type("end").count() == count;
            if !waiting::until_true(PATIENCE, is_there) {
                wrong.push(format!("{} {user:?} is not in the journal: {}", sandbox.enter, host.console_text()));
                break;
            }
        }
        for end in host.journal().of_type("end") {
            let is_right = end["output"] == "inside\n" && end["exit"] == 0 && end["whoami"] == "caged";
            if !is_right || end["sandbox"].as_str().is_none_or(str::is_empty) {
                wrong.push(format!("{end:#}"));
            }
        }
        let are_shown = || host.console_text().matches(" · in its sandbox (").count() == count;
        assert!(waiting::until_true(PATIENCE, are_shown), "{count}: {}", host.console_text());
        assert!(!host.console_text().contains("unseen"), "{}", host.console_text());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the caller sees is what bash gives it.
#[test]
#[ignore = "long: 13 commands, twice each"]
fn a_reported_command_is_as_with_bash() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    for script in [
        "echo out; echo err >&2; exit 3",
        "kill -TERM $$",
        "kill -KILL $$",
        "exec >&-; sleep .05; echo late >&2",
        "yes | head -c 300000; echo",
        "head -c 200000 /dev/zero >&2; exit 9",
        "umask; ulimit -n; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; test -p /dev/stdout && echo pipe",
        "trap 'echo caught; exit 4' TERM; kill $$; sleep 5",
        "cat; ls /proc/self/fd | wc -l",
        "no-such-program",
        "if",
        "(sleep .2; echo background) & echo first",
        "kill -INT 0; sleep 5",
    ] {
        let [real, ours]: [Outcome; 2] =
            [plain(&host, script), caged(&host, script)].map(|call| call.run(Target::Real));
        assert_eq!((&real.stdout, real.ended), (&ours.stdout, ours.ended), "{script}");
        assert_eq!(real.err().replace("/bin/bash", "bash"), ours.err().replace("/bin/bash", "bash"), "{script}");
        let end = ended(&host, script);
        assert_eq!(end["exit"].as_i64(), Some(i64::from(ours.code())), "{script}: {end}");
    }
}

/// A signal for the group reaches the shell once; one for the process that the caller knows, too.
#[test]
fn a_signal_reaches_the_shell_once() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "trap 'echo usr1' USR1; trap 'echo term' TERM; echo ready; while ! test -e done; do sleep .02; done";
    let (mut calling, _) = begin(&host, script);
    let has = |calling: &Calling, text: &str, count: usize| {
        let reader = calling.stdout.as_ref().expect("a pipe");
        waiting::until_true(PATIENCE, || String::from_utf8_lossy(&reader.so_far()).matches(text).count() >= count)
    };
    assert!(has(&calling, "ready", 1));
    let pid = nix::unistd::Pid::from_raw(calling.pid());
    let group = nix::unistd::getpgid(Some(pid)).expect("it lives");
    for round in 1..=3 {
        nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGUSR1).expect("a group");
        assert!(has(&calling, "usr1", round));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("a process");
        assert!(has(&calling, "term", round));
    }
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.out().matches("usr1").count(), seen.out().matches("term").count()), (3, 3), "{}", seen.out());
}

#[test]
fn the_list_of_past_commands_says_which_ones_ran_in_a_sandbox() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    assert_eq!(caged(&host, "echo mine").run(Target::Real).out(), "mine\n");
    ended(&host, "echo mine");
    host.run("echo plain");
    ended(&host, "echo plain");
    let log = |args: &[&str]| {
        let mut command = programs::command(programs::rexec());
        let output = command.arg("log").args(args).env("REXEC_HOME", host.journal_home()).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let rows = log(&[]);
    assert!(rows.contains("echo mine · in its sandbox (no_new_privs)\n") && rows.contains("echo plain\n"), "{rows}");
    let lines = log(&["--json"]);
    assert_eq!(lines.matches(r#""sandbox":"no_new_privs""#).count(), 1, "{lines}");
    assert_eq!(lines.matches(r#""sandbox":null"#).count(), 1, "{lines}");
}

#[test]
fn secrets_of_a_sandboxed_command_are_masked() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let script = "echo $DEPLOY_TOKEN";
    let seen = caged(&host, script).env("DEPLOY_TOKEN=cGFzc3dvcmQ5Nzgx").run(Target::Real);
    assert_eq!(seen.out(), "cGFzc3dvcmQ5Nzgx\n");
    let end = ended(&host, script);
    assert!(!end.to_string().contains("cGFzc3dvcmQ5Nzgx"), "{end}");
}

#[test]
#[ignore = "long: waits out a grace of 2 s"]
fn a_person_ends_a_sandboxed_command() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let stubborn = "trap '' TERM; sleep 1000 & while :; do wait; done";
    for (script, signal) in [("sleep 1000 & wait", 15), (stubborn, 9)] {
        let (mut calling, seq) = begin(&host, script);
        let listed = || rexec(&host, &["ps", "-v"]);
        let is_listed = || {
            let listed = listed();
            listed.contains("in its sandbox (no_new_privs)") && listed.contains("  sleep ")
        };
        assert!(waiting::until_true(PATIENCE, is_listed), "{}", listed());
        let said = rexec(&host, &["kill", &seq.to_string()]);
        assert!(said.contains(&format!("#{seq} has ended")), "{said}");
        let seen = calling.finish(PATIENCE).expect("it ends");
        assert_eq!(seen.code(), 128 + signal, "{seen:?}");
        let end = ended(&host, script);
        assert_eq!(
            (end["error"].as_str(), end["signal"].as_i64()),
            (Some("aborted"), Some(i64::from(signal))),
            "{end}"
        );
    }
}

#[test]
fn a_command_whose_shim_was_killed_is_lost_and_its_shell_dead() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let script = "echo begun; exec sleep 1000";
    let (mut calling, seq) = begin(&host, script);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(calling.pid()), nix::sys::signal::Signal::SIGKILL)
        .expect("it lives");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 137);
    assert_eq!(ended(&host, script)["error"], "lost");
    let is_told = || host.console_text().contains("lost: nobody saw how it ended");
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    assert!(rexec(&host, &["kill", &seq.to_string()]).contains("no command"), "it is forgotten");
}

#[test]
fn a_command_outlives_the_host_that_it_reports_to() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let script = "echo begun; while ! test -e done; do sleep .02; done; seq 1 100000 | tail -n 1; exit 7";
    let (mut calling, _) = begin(&host, script);
    let home = host.leave();
    assert!(!home.join("report").exists(), "the FIFO goes with its host");
    std::fs::write(home.join("done"), "").expect("the directory is ours");
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.out().as_str(), seen.code()), ("begun\n100000\n", 7));
}

#[test]
fn who_wants_no_reports_gets_none() {
    if !can_run() {
        return;
    }
    let host = Host::start();
    let seen = caged(&host, "echo mine").env("REXEC_REPORT=never").run(Target::Real);
    assert_eq!((seen.out().as_str(), seen.code()), ("mine\n", 0));
    let is_told = || host.console_text().contains("its command runs in its sandbox, unseen: echo mine");
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    let silent = Host::with(Setup { flags: &["--no-reports"], ..PLAIN });
    assert!(!silent.home.join("report").exists());
    assert_eq!(caged(&silent, "echo too").run(Target::Real).out(), "too\n");
    assert_eq!([&host, &silent].map(|host| host.journal().of_type("start").count()), [0, 0]);
    let link = format!("SHELL={}", programs::shims().join("bash").display());
    let [reported, unseen] = [&host, &silent].map(|host| caged(host, "echo $SHELL").env(&link).run(Target::Real).out());
    assert_eq!(unseen, reported, "SHELL is the real shell in both");
}

/// A process that the shell has left goes on writing to the caller, and the caller reads to the end.
#[test]
fn what_is_left_running_keeps_its_pipes() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "(while ! test -e done; do sleep .02; done; echo late) & disown; echo now";
    let mut calling = caged(&host, script).start(Target::Real).expect("it starts");
    let early = ended(&host, script);
    assert_eq!((early["output"].as_str(), early["exit"].as_i64()), (Some("now\n"), Some(0)));
    std::fs::write(host.home.join("done"), "").expect("the directory is ours");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").out(), "now\nlate\n");
    let is_gone = || calling.warden.is_empty_within(Duration::ZERO);
    assert!(waiting::until_true(PATIENCE, is_gone), "{:#?}", calling.warden.tree());
}

/// The one above reports what the one below writes, and a run's host sees all of it.
#[test]
fn a_command_is_reported_once() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let shim = programs::shims().join("bash");
    let nested = format!("'{}' -c 'echo nested; exit 5'", shim.display());
    assert_eq!(caged(&host, &nested).run(Target::Real).out(), "nested\n");
    assert_eq!(ended(&host, &nested)["output"], "nested\n");
    // It is another user there, to whom a host at the usual place belongs.
    let none = host.home.join("none.sock");
    let nested = format!("env REXEC_SOCKET='{}' {nested}", none.display());
    let below_a_guard = format!("setpriv --no-new-privs unshare --user --pid --fork {nested}");
    let seen = host.run(&below_a_guard);
    let end = ended(&host, &below_a_guard);
    if seen.code() == 5 {
        assert_eq!(end["output"], "nested\n");
    }
    host.wait_idle();
    let starts = host.journal().of_type("start").count();
    assert_eq!(starts, 2, "{:#?}", host.journal());
}

/// Agents with a pid namespace for each command, as most sandboxes are.
#[test]
fn a_command_in_another_pid_namespace_is_found_from_outside() {
    if !can_run() || !programs::has("bwrap") {
        return;
    }
    let host = Host::start();
    let shim = programs::shims().join("bash");
    let cage = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--proc", "/proc", "--dev", "/dev"];
    let works = programs::command(cage[0]).args(&cage[1..]).arg("true").stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return programs::skipped("bwrap cannot be had here");
    }
    let script =
        format!("unset REXEC_INSIDE; exec {} '{}' -c 'echo inside; sleep 1000'", cage.join(" "), shim.display());
    let call = host.call(&script).env(&format!("REXEC_SOCKET={}", host.socket().display())).env("CODEX_CI=1");
    let mut calling = call.start(Target::Real).expect("it starts");
    let start = host.wait_for("its start", |journal| journal.of_type("start").next().cloned());
    assert_eq!((start["whoami"].as_str(), start["sandbox"].as_str()), (Some("Codex"), Some("codex read-only")));
    assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"inside\n", PATIENCE), "it never began");
    let said = rexec(&host, &["kill", "1"]);
    assert!(said.contains("#1 has ended"), "{said}");
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.out().as_str(), seen.code()), ("inside\n", 143), "{seen:?}");
    assert!(Path::new("/proc/self").exists());
}
